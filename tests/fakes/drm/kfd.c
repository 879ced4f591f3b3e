/* KFD in sysfs: kfd_topology.c and kfd_process.c of the kernel. */
#include <inttypes.h>
#include <stdio.h>

#include "writers.h"

#define TOPOLOGY "sys/class/kfd/kfd/topology"

/* A hash in the kernel; here a number that is no index. */
static unsigned gpu_id(unsigned board, unsigned partition)
{
    return 20000 + 1000 * board + 37 * partition;
}

static uint64_t location_of(const struct fake_board *board, unsigned partition, unsigned partitions)
{
    unsigned domain, bus, device, function;

    if (sscanf(board->pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        fake_die("%s is no PCI address", board->pci);
    /* kfd_topology_add_device: "On multi-partition nodes, node id = location_id[31:28]" */
    return (uint64_t)(partitions > 1 ? partition : 0) << 28 | bus << 8 | device << 3 | function;
}

static void write_gpu_node(const struct fake_machine *machine, unsigned node, unsigned board,
                           unsigned partition)
{
    const struct fake_board *script = &machine->script->boards[board];
    const struct fake_chip *chip = script->chip;
    unsigned partitions = machine->boards[board].partitions;
    unsigned units = chip->compute_units / partitions;
    char path[FAKE_PATH_BYTES];

    snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/gpu_id", node);
    fake_tree_print(machine, path, "%u\n", gpu_id(board, partition));
    snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/name", node);
    fake_tree_print(machine, path, "%s\n", chip->kfd_name);
    snprintf(path, sizeof(path), TOPOLOGY "/nodes/%u/properties", node);
    fake_tree_print(
        machine, path,
        "cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\ncaches_count 1\nio_links_count 1\n"
        "p2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 2147487744\nmax_waves_per_simd 8\n"
        "lds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws 64\nwave_front_size 64\narray_count 8\n"
        "simd_arrays_per_engine 1\ncu_per_simd_array 14\nsimd_per_cu %u\nmax_slots_scratch_cu 32\n"
        "gfx_target_version %u\nvendor_id %u\ndevice_id %u\nlocation_id %" PRIu64 "\ndomain 0\n"
        "drm_render_minor %u\nhive_id 0\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 0\n"
        "num_sdma_queues_per_engine 8\nnum_cp_queues 24\nmax_engine_clk_fcompute 1700\n"
        "local_mem_size 0\nfw_version 71\ncapability 1019200128\ndebug_prop 1495\n"
        "sdma_fw_version 8\nunique_id %" PRIu64 "\nnum_xcc %u\nmax_engine_clk_ccompute 3700\n",
        units * chip->simd_per_cu, chip->simd_per_cu, chip->gfx_target_version, chip->vendor_id,
        chip->device_id, location_of(script, partition, partitions),
        fake_render_minor(machine->script, board, partition), script->unique_id,
        chip->xccs ? chip->xccs / partitions : 1);
}

static bool has_kfd(const struct fake_script *script)
{
    for (unsigned i = 0; i < fake_board_count(script); i++)
        if (script->boards[i].chip->kfd_name)
            return true;
    return false;
}

void fake_kfd_write_topology(const struct fake_machine *machine)
{
    unsigned node = 1;

    if (!has_kfd(machine->script))
        return;
    fake_tree_remove(machine, TOPOLOGY "/nodes");
    fake_tree_print(machine, TOPOLOGY "/nodes/0/gpu_id", "0\n");
    fake_tree_print(machine, TOPOLOGY "/nodes/0/name", "\n");
    fake_tree_print(machine, TOPOLOGY "/nodes/0/properties",
                    "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\ndevice_id 0\nlocation_id 0\n"
                    "domain 0\ndrm_render_minor 0\n");
    for (unsigned i = 0; i < fake_board_count(machine->script); i++)
        for (unsigned k = 0; machine->script->boards[i].chip->kfd_name &&
                             machine->boards[i].is_plugged && k < machine->boards[i].partitions;
             k++)
            write_gpu_node(machine, node++, i, k);
    fake_tree_make_directory(machine, "sys/class/kfd/kfd/proc");
    fake_tree_print(machine, TOPOLOGY "/generation_id", "%u\n", machine->generation);
}

__attribute__((format(printf, 4, 5))) static void print_of(const struct fake_machine *machine,
                                                           const struct fake_process *process,
                                                           const char *file, const char *format,
                                                           ...)
{
    char path[FAKE_PATH_BYTES], text[64];
    __builtin_va_list arguments;

    snprintf(path, sizeof(path), "sys/class/kfd/kfd/proc/%u/%s", process->pid, file);
    __builtin_va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    __builtin_va_end(arguments);
    fake_tree_print(machine, path, "%s", text);
}

/* What a process did on one GPU. All of them have files, also where it did nothing. */
static void write_files(const struct fake_machine *machine, const struct fake_process *process,
                        unsigned id, const struct fake_chip *chip, uint64_t vram_bytes,
                        uint64_t sdma_us, unsigned units)
{
    char file[64];

    snprintf(file, sizeof(file), "vram_%u", id);
    print_of(machine, process, file, "%" PRIu64 "\n", vram_bytes);
    snprintf(file, sizeof(file), "sdma_%u", id);
    print_of(machine, process, file, "%" PRIu64 "\n", sdma_us);
    if (!chip->has_occupancy)
        return;
    snprintf(file, sizeof(file), "stats_%u/cu_occupancy", id);
    print_of(machine, process, file, "%u\n", units);
}

void fake_kfd_add(const struct fake_machine *machine, const struct fake_process *process)
{
    unsigned id = gpu_id(process->board, process->partition);
    char file[64];

    for (unsigned i = 0; i < fake_board_count(machine->script); i++) {
        const struct fake_chip *chip = machine->script->boards[i].chip;

        for (unsigned k = 0; chip->kfd_name && k < machine->boards[i].partitions; k++) {
            write_files(machine, process, gpu_id(i, k), chip, 0, 0, 0);
            snprintf(file, sizeof(file), "stats_%u/evicted_ms", gpu_id(i, k));
            print_of(machine, process, file, "0\n");
        }
    }
    print_of(machine, process, "pasid", "%u\n", 32768 + process->pid % 1000);
    /* These have no newline: kfd_procfs_queue_show prints "%u". */
    print_of(machine, process, "queues/0/gpuid", "%u", id);
    print_of(machine, process, "queues/0/type", "0");
    print_of(machine, process, "queues/0/size", "1048576");
}

void fake_kfd_remove(const struct fake_machine *machine, const struct fake_process *process)
{
    char path[FAKE_PATH_BYTES];

    snprintf(path, sizeof(path), "sys/class/kfd/kfd/proc/%u", process->pid);
    fake_tree_remove(machine, path);
}

void fake_kfd_write(const struct fake_machine *machine, const struct fake_process *process,
                    uint64_t t_us)
{
    const struct fake_chip *chip = machine->script->boards[process->board].chip;
    unsigned parts = process->partitions ? process->partitions : 1;
    unsigned units = chip->compute_units / parts;
    unsigned share = fake_share(process, t_us);

    /* Waves in flight, rounded up to whole compute units (kgd_gfx_v9_get_cu_occupancy). The copy
     * engines work a hundredth of the time. */
    write_files(machine, process, gpu_id(process->board, process->partition), chip,
                process->memory_bytes, fake_work(process, t_us) / 1000 / 100,
                (share * units + 999) / 1000);
}
