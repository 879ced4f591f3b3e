/* Cards in sysfs, with the links of the kernel: what /sys/class has is a link to a device, and what
 * a device belongs to is found upwards from there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "writers.h"

#define BRIDGE_DEVICE "devices/pci0000:00/0000:00:01.1"
#define BRIDGE        "sys/" BRIDGE_DEVICE

/* A number that is its own, as hwmon's are: 0 and 1 are chips of the mainboard. */
static unsigned hwmon_number(unsigned board)
{
    return 2 + board;
}

unsigned fake_render_minor(const struct fake_script *script, unsigned board, unsigned partition)
{
    unsigned minor = FAKE_RENDER_MINOR + partition;

    for (unsigned i = 0; i < board; i++)
        minor += script->boards[i].chip->xccs ? FAKE_PARTITIONS_MAX : 1;
    return minor;
}

const char *fake_board_path(const struct fake_machine *machine, unsigned board, const char *name,
                            char path[FAKE_PATH_BYTES])
{
    snprintf(path, FAKE_PATH_BYTES, "%s/%s/%s", BRIDGE, machine->script->boards[board].pci, name);
    return path;
}

static const char *hwmon_path(const struct fake_machine *machine, unsigned board, const char *name,
                              char path[FAKE_PATH_BYTES])
{
    char file[64];

    snprintf(file, sizeof(file), "hwmon/hwmon%u/%s", hwmon_number(board), name);
    return fake_board_path(machine, board, file, path);
}

#define PRINT(machine, board, name, ...)                                                           \
    do {                                                                                           \
        char path_[FAKE_PATH_BYTES];                                                               \
        fake_tree_print(machine, fake_board_path(machine, board, name, path_), __VA_ARGS__);       \
    } while (0)

#define PRINT_HWMON(machine, board, name, ...)                                                     \
    do {                                                                                           \
        char path_[FAKE_PATH_BYTES];                                                               \
        fake_tree_print(machine, hwmon_path(machine, board, name, path_), __VA_ARGS__);            \
    } while (0)

/* card0 and renderD128 of a device, with a link from their class and one back to the device. */
static void add_nodes(const struct fake_machine *machine, const char *device, const char *name,
                      unsigned card, unsigned minor)
{
    char path[FAKE_PATH_BYTES], target[FAKE_PATH_BYTES], node[32];

    for (int is_render = 0; is_render < 2; is_render++) {
        unsigned number = is_render ? minor : card;

        snprintf(node, sizeof(node), is_render ? "renderD%u" : "card%u", number);
        snprintf(path, sizeof(path), "%s/drm/%s/dev", device, node);
        fake_tree_print(machine, path, "226:%u\n", number);
        snprintf(path, sizeof(path), "%s/drm/%s/device", device, node);
        snprintf(target, sizeof(target), "../../../%s", name);
        fake_tree_link(machine, path, target);
        snprintf(target, sizeof(target), "../../%s/drm/%s", device + strlen("sys/"), node);
        snprintf(path, sizeof(path), "sys/class/drm/%s", node);
        fake_tree_link(machine, path, target);
        snprintf(path, sizeof(path), "sys/dev/char/226:%u", number);
        fake_tree_link(machine, path, target);
    }
    /* A connector, which is no card. */
    snprintf(path, sizeof(path), "sys/class/drm/card%u-DP-1", card);
    fake_tree_make_directory(machine, path);
}

static void platform_name(unsigned index, char name[32])
{
    snprintf(name, 32, "amdgpu_xcp_%u", index);
}

/* The nodes of partitions 1 and up are made with the board, in every mode
 * (amdgpu_xcp_dev_register). Their platform devices are numbered through the machine from 0
 * (amdgpu_xcp_drm_dev_alloc), and have no driver. */
static void add_partition_nodes(const struct fake_machine *machine, unsigned board)
{
    for (unsigned i = 1; i < FAKE_PARTITIONS_MAX; i++) {
        unsigned minor = fake_render_minor(machine->script, board, i);
        char device[FAKE_PATH_BYTES], name[32];

        platform_name(fake_card_number(machine->script, board, i) - 1 - board, name);
        snprintf(device, sizeof(device), "sys/devices/platform/%s", name);
        add_nodes(machine, device, name, minor - FAKE_RENDER_MINOR, minor);
    }
}

static void print_uevent(const struct fake_machine *machine, unsigned board)
{
    const struct fake_chip *chip = machine->script->boards[board].chip;

    PRINT(machine, board, "uevent",
          "DRIVER=%s\nPCI_CLASS=30000\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:0C34\n"
          "PCI_SLOT_NAME=%s\nMODALIAS=pci:v%08Xd%08X\n",
          chip->driver, chip->vendor_id, chip->device_id, chip->vendor_id,
          machine->script->boards[board].pci, chip->vendor_id, chip->device_id);
}

static void add_amd(const struct fake_machine *machine, unsigned board)
{
    const struct fake_board *script = &machine->script->boards[board];
    const struct fake_chip *chip = script->chip;

    PRINT(machine, board, "product_name", "%s\n", chip->product_name);
    PRINT(machine, board, "mem_info_vram_total", "%" PRIu64 "\n", chip->vram_bytes);
    PRINT(machine, board, "mem_info_vis_vram_total", "%" PRIu64 "\n", chip->vram_bytes);
    PRINT(machine, board, "mem_info_gtt_total", "%" PRIu64 "\n", (uint64_t)64 << 30);
    PRINT(machine, board, "mem_info_gtt_used", "%u\n", 14 << 20);
    if (script->unique_id)
        PRINT(machine, board, "unique_id", "%016" PRIx64 "\n", script->unique_id);
    if (chip->xccs)
        PRINT(machine, board, "current_memory_partition", "NPS1\n");
    PRINT_HWMON(machine, board, "name", "amdgpu\n");
    PRINT_HWMON(machine, board, "power1_label", "PPT\n");
    /* APUs have no edge of memory, and no limit that can be read. */
    PRINT_HWMON(machine, board, "temp1_label", "edge\n");
    PRINT_HWMON(machine, board, "temp1_input", "41000\n");
    PRINT_HWMON(machine, board, "freq1_label", "sclk\n");
    if (chip->is_apu)
        return;
    PRINT_HWMON(machine, board, "temp2_label", "junction\n");
    PRINT_HWMON(machine, board, "temp3_label", "mem\n");
    PRINT_HWMON(machine, board, "temp3_input", "44000\n");
    PRINT_HWMON(machine, board, "freq2_label", "mclk\n");
    PRINT_HWMON(machine, board, "freq2_input", "1600000000\n");
    /* aldebaran_get_power_limit: 0 on the second die. */
    PRINT_HWMON(machine, board, "power1_cap", "%" PRIu64 "\n",
                script->is_second_die ? 0 : (uint64_t)chip->power_cap_w * 1000000);
}

static void add_intel(const struct fake_machine *machine, unsigned board)
{
    const struct fake_chip *chip = machine->script->boards[board].chip;

    PRINT_HWMON(machine, board, "name", "%s\n", chip->driver);
    PRINT_HWMON(machine, board, "power1_max", "%" PRIu64 "\n",
                (uint64_t)chip->power_cap_w * 1000000);
    PRINT_HWMON(machine, board, "power1_rated_max", "%" PRIu64 "\n",
                (uint64_t)chip->power_cap_w * 1000000);
    if (strcmp(chip->driver, "xe") != 0)
        return;
    PRINT_HWMON(machine, board, "energy1_label", "card\n");
    if (chip->has_package_energy)
        PRINT_HWMON(machine, board, "energy2_label", "pkg\n");
}

void fake_card_plug(const struct fake_machine *machine, unsigned board)
{
    const struct fake_board *script = &machine->script->boards[board];
    const struct fake_chip *chip = script->chip;
    unsigned minor = fake_render_minor(machine->script, board, 0);
    char path[FAKE_PATH_BYTES], target[FAKE_PATH_BYTES];

    PRINT(machine, board, "vendor", "0x%04x\n", chip->vendor_id);
    PRINT(machine, board, "device", "0x%04x\n", chip->device_id);
    PRINT(machine, board, "subsystem_vendor", "0x%04x\n", chip->vendor_id);
    PRINT(machine, board, "subsystem_device", "0x0c34\n");
    PRINT(machine, board, "class", "0x0%s00\n", chip->kfd_name && !chip->is_apu ? "3800" : "3000");
    PRINT(machine, board, "numa_node", "0\n");
    PRINT(machine, board, "power/runtime_status", "active\n");
    print_uevent(machine, board);
    snprintf(path, sizeof(path), "sys/bus/pci/drivers/%s", chip->driver);
    fake_tree_make_directory(machine, path);
    snprintf(target, sizeof(target), "../../../../bus/pci/drivers/%s", chip->driver);
    fake_tree_link(machine, fake_board_path(machine, board, "driver", path), target);
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", script->pci);
    snprintf(target, sizeof(target), "../../../%s/%s", BRIDGE_DEVICE, script->pci);
    fake_tree_link(machine, path, target);
    snprintf(target, sizeof(target), "%s/%s", BRIDGE, script->pci);
    add_nodes(machine, target, script->pci, minor - FAKE_RENDER_MINOR, minor);
    if (fake_is_amd(chip))
        add_amd(machine, board);
    else
        add_intel(machine, board);
    snprintf(path, sizeof(path), "sys/class/hwmon/hwmon%u", hwmon_number(board));
    snprintf(target, sizeof(target), "../../%s/%s/hwmon/hwmon%u", BRIDGE_DEVICE, script->pci,
             hwmon_number(board));
    fake_tree_link(machine, path, target);
    if (chip->xccs)
        add_partition_nodes(machine, board);
}

void fake_card_unplug(const struct fake_machine *machine, unsigned board)
{
    const struct fake_script *script = machine->script;
    unsigned nodes = script->boards[board].chip->xccs ? FAKE_PARTITIONS_MAX : 1;
    char path[FAKE_PATH_BYTES], name[32];

    for (unsigned i = 0; i < nodes; i++) {
        unsigned minor = fake_render_minor(script, board, i), card = minor - FAKE_RENDER_MINOR;

        snprintf(path, sizeof(path), "sys/class/drm/card%u", card);
        fake_tree_remove(machine, path);
        snprintf(path, sizeof(path), "sys/class/drm/card%u-DP-1", card);
        fake_tree_remove(machine, path);
        snprintf(path, sizeof(path), "sys/class/drm/renderD%u", minor);
        fake_tree_remove(machine, path);
        snprintf(path, sizeof(path), "sys/dev/char/226:%u", minor);
        fake_tree_remove(machine, path);
        snprintf(path, sizeof(path), "sys/dev/char/226:%u", card);
        fake_tree_remove(machine, path);
        if (i == 0)
            continue;
        platform_name(card - 1 - board, name);
        snprintf(path, sizeof(path), "sys/devices/platform/%s", name);
        fake_tree_remove(machine, path);
    }
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", script->boards[board].pci);
    fake_tree_remove(machine, path);
    snprintf(path, sizeof(path), "sys/class/hwmon/hwmon%u", hwmon_number(board));
    fake_tree_remove(machine, path);
    fake_tree_remove(machine, fake_board_path(machine, board, "", path));
}

static uint64_t used_bytes(const struct fake_machine *machine, unsigned board, uint64_t t_us)
{
    const struct fake_script *script = machine->script;
    uint64_t used = script->boards[board].chip->reserved_bytes;

    for (size_t i = 0; i < fake_process_count(script); i++) {
        const struct fake_process *process = &script->processes[i];

        if (process->board == board && !process->client_of &&
            (fake_is_running(process, t_us) || fake_is_in_kfd(process, t_us)))
            used += process->memory_bytes;
    }
    return used;
}

static void write_amd(const struct fake_machine *machine, unsigned board, uint64_t t_us)
{
    static const char *const modes[] = {
        [1] = "SPX", [2] = "DPX", [3] = "TPX", [4] = "QPX", [8] = "CPX"};
    const struct fake_board *script = &machine->script->boards[board];
    const struct fake_chip *chip = script->chip;
    unsigned busy = fake_busy_permille(machine->script, board, t_us);
    uint8_t table[FAKE_METRICS_BYTES];
    char path[FAKE_PATH_BYTES];

    PRINT(machine, board, "gpu_busy_percent", "%u\n", busy / 10);
    PRINT(machine, board, "mem_busy_percent", "%u\n", busy / 20);
    PRINT(machine, board, "mem_info_vram_used", "%" PRIu64 "\n", used_bytes(machine, board, t_us));
    PRINT(machine, board, "mem_info_vis_vram_used", "%" PRIu64 "\n",
          used_bytes(machine, board, t_us));
    if (chip->xccs)
        PRINT(machine, board, "current_compute_partition", "%s\n",
              modes[machine->boards[board].partitions]);
    if (chip->metrics_format > 0)
        fake_tree_put(machine, fake_board_path(machine, board, "gpu_metrics", path), table,
                      fake_metrics(machine, board, t_us, table));
    PRINT_HWMON(machine, board, "freq1_input", "%u000000\n", busy > 0 ? 1700 : 800);
    if (!chip->is_apu)
        PRINT_HWMON(machine, board, "temp2_input", "%u\n", 48000 + busy / 40 * 1000);
    /* Since Linux 6.6 the second die has no such file; before, it was 0
     * (aldebaran_get_smu_metrics_data). */
    if (!script->is_second_die)
        PRINT_HWMON(machine, board, chip->power_file, "%" PRIu64 "\n",
                    fake_power_uw(machine->script, board, t_us));
}

static void write_intel(const struct fake_machine *machine, unsigned board, uint64_t t_us)
{
    const struct fake_board *script = &machine->script->boards[board];
    uint64_t energy_uj = fake_energy_uj(machine->script, board, t_us);
    unsigned busy = fake_busy_permille(machine->script, board, t_us);
    unsigned clock_mhz = busy > 0 ? 2400 : 300, temperature = 40000 + busy / 40 * 1000;
    char path[FAKE_PATH_BYTES];

    if (strcmp(script->chip->driver, "xe") == 0) { /* xe_gt_freq.c, xe_hwmon.c */
        PRINT(machine, board, "tile0/gt0/freq0/act_freq", "%u\n", clock_mhz);
        PRINT_HWMON(machine, board, "temp2_input", "%u\n", temperature);
        PRINT_HWMON(machine, board, "temp3_input", "%u\n", temperature + 2000);
    } else { /* i915_sysfs.c, i915_hwmon.c */
        snprintf(path, sizeof(path), "drm/card%u/gt_act_freq_mhz",
                 fake_card_number(machine->script, board, 0));
        PRINT(machine, board, path, "%u\n", clock_mhz);
        PRINT_HWMON(machine, board, "temp1_input", "%u\n", temperature);
    }
    PRINT_HWMON(machine, board, "energy1_input", "%" PRIu64 "\n", energy_uj);
    /* The package is a part of the card. */
    if (script->chip->has_package_energy)
        PRINT_HWMON(machine, board, "energy2_input", "%" PRIu64 "\n", energy_uj / 10 * 9);
}

void fake_card_write(const struct fake_machine *machine, unsigned board, uint64_t t_us)
{
    bool is_suspended = machine->boards[board].is_suspended;

    PRINT(machine, board, "power/runtime_status", "%s\n", is_suspended ? "suspended" : "active");
    if (is_suspended)
        return;
    if (fake_is_amd(machine->script->boards[board].chip))
        write_amd(machine, board, t_us);
    else
        write_intel(machine, board, t_us);
}
