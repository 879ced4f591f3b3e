/* identity/vm_gpus: the GPUs of virtual machines, by QEMU's command line and sysfs. */
#include "node_fixture.h"

#include <stdlib.h>

#include "identity/gpus/attachments.h"
#include "identity/job_gpus.h"
#include "identity/process_table.h"
#include "identity/vm_gpus.h"

#define U "9d0a4a52-3f0b-11ef-9f2c-0242ac120002"
#define W "a2c4b6de-3f0b-11ef-8a10-0242ac120002"
#define Z "\0"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal "", sizeof(literal) - 1,                                                           \
    }

/* "m" a mediated device, "p" one of PCI. */
static const char *words(const struct vm_device_list *devices)
{
    static char text[8192];

    text[0] = '\0';
    for (size_t i = 0; i < devices->count; i++)
        sprintf(text + strlen(text), "%s%c%s", i ? " " : "",
                devices->items[i].is_mediated ? 'm' : 'p', devices->items[i].name);
    return text;
}

static void a_command_line_names_the_devices_of_its_guest(void **state)
{
    static const struct {
        struct span text;
        const char *expected;
    } cases[] = {
        /* As libvirt 5 writes them. */
        {TEXT("-device" Z "vfio-pci,id=hostdev0,sysfsdev=/sys/bus/mdev/devices/" U
              ",display=off,bus=pci.0,addr=0x5" Z),
         "m" U},
        {TEXT("-device" Z "vfio-pci,host=0000:65:00.0,id=hostdev0,bus=pci.0,addr=0x6" Z "-device" Z
              "vfio-pci,host=0000:65:00.1,id=hostdev1" Z),
         "p0000:65:00.0 p0000:65:00.1"},
        {TEXT("-device" Z "vfio-pci-nohotplug,id=h,sysfsdev=/sys/bus/mdev/devices/" U
              ",display=on,ramfb=on" Z),
         "m" U},
        /* As libvirt 8 writes them. */
        {TEXT("-device" Z "{\"driver\":\"vfio-pci\",\"id\":\"hostdev0\",\"sysfsdev\":"
              "\"/sys/bus/mdev/devices/" U "\",\"display\":\"off\",\"bus\":\"pci.5\"}" Z),
         "m" U},
        {TEXT("-device" Z
              "{\"driver\":\"vfio-pci\",\"host\":\"0000:41:00.4\",\"id\":\"hostdev0\"}" Z),
         "p0000:41:00.4"},
        /* As Proxmox and administrators do. */
        {TEXT("-device" Z "vfio-pci,host=01:00.0,id=hostpci0" Z), "p0000:01:00.0"},
        {TEXT("--device" Z "driver=vfio-pci,host=10000:1:2.3" Z), "p10000:01:02.3"},
        {TEXT("-device" Z "vfio-pci,sysfsdev=/sys/bus/pci/devices/0000:3D:00.4" Z),
         "p0000:3d:00.4"},
        {TEXT("-device" Z "vfio-pci,sysfsdev=/sys/devices/pci0000:40/0000:41:00.0/" W), "m" W},
        {TEXT("-device" Z "vfio-pci,host=0000:01:00.0,host=0000:02:00.0" Z), "p0000:02:00.0"},
        /* Others. */
        {TEXT("-device" Z "virtio-net-pci,host=0000:65:00.0,id=vfio-pci" Z), ""},
        {TEXT("-device" Z "vfio-ccw,sysfsdev=/sys/bus/mdev/devices/" U Z), ""},
        {TEXT("-device" Z "{\"driver\":\"vfio-ap\",\"sysfsdev\":\"/vfio-pci/" U "\"}" Z), ""},
        {TEXT("-name" Z "vfio-pci,host=0000:65:00.0" Z), ""},
        {TEXT("-append" Z "-device" Z "-cpu" Z "vfio-pci,host=0000:65:00.0" Z), ""},
        {TEXT("-device" Z "vfio-pci,id=a,,host=0000:65:00.0" Z), ""}, /* of the id */
        {TEXT("-device" Z "vfio-pci,host=0000:65:00.0,sysfsdev=/sys/bus/mdev/devices/../" Z), ""},
        {TEXT("-device" Z "vfio-pci,sysfsdev=/sys/bus/mdev/devices/" U "x" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=" U Z), ""},
        {TEXT("-device" Z "vfio-pci,host=0000:100:00.0" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=0000:65:20.0" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=0000:65:00.8" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=0000:65:00" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=0000:0000:65:00.0" Z), ""},
        {TEXT("-device" Z "vfio-pci,host=-1:65:00.0" Z), ""},
        {TEXT("-device" Z "vfio-pci" Z), ""},
        {TEXT("-device" Z "vfio-pci," Z), ""},
        {TEXT("-device" Z "vfio-pci,,," Z), ""},
        {TEXT("-device" Z "{\"driver\":\"vfio-pci\",\"host\":" Z), ""},
        {TEXT("-device" Z "{\"driver\":[\"vfio-pci\"],\"host\":7}" Z), ""},
        {TEXT("-device" Z), ""},
        {TEXT("-device"), ""},
        {TEXT(""), ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vm_device_list devices = {.count = 0};

        (void)vm_gpus_parse_cmdline(cases[i].text, &devices);
        if (strcmp(words(&devices), cases[i].expected) != 0)
            fail_msg("case %zu: '%s'", i, words(&devices));
    }
}

static void a_command_line_is_that_of_a_qemu_if_it_has_a_name(void **state)
{
    static const char named[] = "qemu-system-x86_64" Z "-name" Z "guest=web,debug-threads=on";
    static const char helper[] = "swtpm" Z "socket" Z "--tpmstate" Z "dir=/x";
    struct vm_device_list devices = {.count = 0};

    (void)state;
    assert_true(vm_gpus_parse_cmdline((struct span){named, sizeof(named)}, &devices));
    assert_false(vm_gpus_parse_cmdline((struct span){helper, sizeof(helper)}, &devices));
    assert_int_equal(devices.count, 0);
}

static void a_guest_has_no_more_devices_than_fit(void **state)
{
    struct vm_device_list devices = {.count = 0};
    char text[8192];
    size_t len = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        len += (size_t)sprintf(text + len, "-device") + 1;
        len += (size_t)sprintf(text + len, "vfio-pci,host=%02x:00.0", i) + 1;
    }
    (void)vm_gpus_parse_cmdline((struct span){text, len}, &devices);
    assert_int_equal(devices.count, VM_DEVICES_MAX);
    assert_string_equal(devices.items[VM_DEVICES_MAX - 1].name, "0000:3f:00.0");
}

static void an_option_that_is_too_long_is_none(void **state)
{
    struct vm_device_list devices = {.count = 0};
    char text[4096] = "-device";
    size_t front = strlen(text) + 1;

    (void)state;
    for (size_t zeros = 1; zeros < 2000; zeros++) {
        memset(text + front, '0', sizeof(text) - front);
        memcpy(text + front, "vfio-pci,host=", 14);
        memcpy(text + front + 14 + zeros, "65:00.0,x=", 11);
        (void)vm_gpus_parse_cmdline((struct span){text, front + 14 + zeros + 10}, &devices);
    }
    assert_int_equal(devices.count, 6); /* a number has up to eight digits */
}

static void the_link_of_a_mediated_device_names_the_one_above(void **state)
{
    static const struct {
        const char *link, *expected; /* NULL: none */
    } cases[] = {
        {"../../../devices/pci0000:40/0000:40:03.1/0000:41:00.4/" U, "0000:41:00.4"},
        {"0000:41:00.4/" U, "0000:41:00.4"},
        {"/sys/devices/0000:41:00.4/" U "/", NULL},
        {"../../../devices/css0/0.0.0313/" U, NULL},
        {"../../../devices/vfio_ap/matrix/" U, NULL},
        {"../../../devices/virtual/mtty/mtty/" U, NULL},
        {"../../../devices/0000:41:00.4/" U "/more", NULL},
        {U, NULL},
        {"/" U, NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char address[SAMPLE_PCI_BYTES] = "";
        bool is = vm_gpus_parse_mdev_link(span_of(cases[i].link), address);

        if (is != (cases[i].expected != NULL) || (is && strcmp(address, cases[i].expected) != 0))
            fail_msg("'%s': '%s'", cases[i].link, address);
    }
}

/* From here on: a node of ordinary files. */

static void put(const struct node *node, const char *text, const char *format, ...) PRINTF(3, 4);
static void put(const struct node *node, const char *text, const char *format, ...)
{
    char name[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    tree_write(node->path, name, text);
}

static void put_link(const struct node *node, const char *text, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", node->path, name);
    unlink(path);
    assert_int_equal(symlink(text, path), 0);
}

/* A PCI device; `physical` is the board of a virtual function. */
static void put_device(const struct node *node, const char *address, const char *vendor,
                       const char *class, const char *driver, const char *physical)
{
    char name[128], text[128];

    put(node, vendor, "sys/bus/pci/devices/%s/vendor", address);
    put(node, class, "sys/bus/pci/devices/%s/class", address);
    if (driver) {
        snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/driver", address);
        snprintf(text, sizeof(text), "../../../../bus/pci/drivers/%s", driver);
        put_link(node, text, name);
    }
    if (physical) {
        snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/physfn", address);
        snprintf(text, sizeof(text), "../%s", physical);
        put_link(node, text, name);
    }
}

#define NVIDIA "0x10de\n"
#define SCREEN "0x030000\n"
#define TENSOR "0x030200\n"

/* A Turing with a vGPU, an Ampere with virtual functions, and what is passed through. */
static void put_devices(const struct node *node)
{
    put_device(node, "0000:21:00.0", NVIDIA, TENSOR, "nvidia", NULL);
    put_device(node, "0000:41:00.0", NVIDIA, TENSOR, "nvidia", NULL);
    put_device(node, "0000:41:00.4", NVIDIA, TENSOR, "nvidia", "0000:41:00.0");
    put_device(node, "0000:41:00.5", NVIDIA, TENSOR, "vfio-pci", "0000:41:00.0");
    put_device(node, "0000:65:00.0", NVIDIA, SCREEN, "vfio-pci", NULL);
    put_device(node, "0000:65:00.1", NVIDIA, "0x040300\n", "vfio-pci", NULL);
    put_device(node, "0000:66:00.0", NVIDIA, TENSOR, "nvgrace-gpu-vfio-pci", NULL);
    put_device(node, "0000:67:00.0", "0x1002\n", TENSOR, "vfio-pci", NULL);
    put_device(node, "0000:68:00.0", "0x8086\n", TENSOR, "i915", NULL);
    put_device(node, "0000:69:00.0", NVIDIA, TENSOR, NULL, NULL);
    put(node, "", "sys/bus/mdev/devices/README");
    put_link(node, "../../../devices/pci0000:20/0000:21:00.0/" U, "sys/bus/mdev/devices/" U);
    put_link(node, "../../../devices/pci0000:40/0000:41:00.4/" W, "sys/bus/mdev/devices/" W);
    put_link(node, "../../../devices/pci0000:60/0000:68:00.0/b" W,
             "sys/bus/mdev/devices/b2c4b6de-3f0b-11ef-8a10-0242ac120002");
    put_link(node, "../../../devices/pci0000:60/0000:68:00.0/c2c4b6de-3f0b-11ef-8a10-0242ac120002",
             "sys/bus/mdev/devices/c2c4b6de-3f0b-11ef-8a10-0242ac120002");
    put_link(node, "/etc/passwd", "sys/bus/mdev/devices/d2c4b6de-3f0b-11ef-8a10-0242ac120002");
}

static const char *boards(const struct gpu_access_list *gpus)
{
    static char text[2048];

    text[0] = '\0';
    for (size_t i = 0; i < gpus->count; i++) {
        assert_int_equal(gpus->items[i].kind, ALLOCATION_PCI);
        assert_int_equal(gpus->items[i].source, ALLOCATED_BY_QEMU);
        assert_false(gpus->items[i].is_unverified || gpus->items[i].is_privileged);
        sprintf(text + strlen(text), "%s%s", i ? " " : "", gpus->items[i].id);
    }
    return text;
}

static void a_device_is_of_the_board_that_sysfs_shows(void **state)
{
    static const struct {
        struct vm_device device;
        const char *expected;
    } cases[] = {
        {{true, U}, "0000:21:00.0"},
        {{true, W}, "0000:41:00.0"},
        {{false, "0000:41:00.4"}, "0000:41:00.0"},
        {{false, "0000:41:00.5"}, "0000:41:00.0"},
        {{false, "0000:65:00.0"}, "0000:65:00.0"},
        {{false, "0000:66:00.0"}, "0000:66:00.0"},
        {{false, "0000:65:00.1"}, ""}, /* sound */
        {{false, "0000:67:00.0"}, ""}, /* of another vendor */
        {{false, "0000:21:00.0"}, ""}, /* unplugged from the guest, and the driver's again */
        {{false, "0000:69:00.0"}, ""}, /* nobody's */
        {{false, "0000:70:00.0"}, ""},
        {{true, "b2c4b6de-3f0b-11ef-8a10-0242ac120002"}, ""}, /* not a uuid at the end */
        {{true, "c2c4b6de-3f0b-11ef-8a10-0242ac120002"}, ""}, /* of another vendor */
        {{true, "d2c4b6de-3f0b-11ef-8a10-0242ac120002"}, ""}, /* somewhere else */
        {{true, "e2c4b6de-3f0b-11ef-8a10-0242ac120002"}, ""}, /* gone */
    };
    const struct node *node = *state;

    put_devices(node);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vm_device_list devices = {.items = {cases[i].device}, .count = 1};
        struct gpu_access_list gpus = {.count = 0};

        vm_gpus_add_boards(&node->host, &devices, &gpus);
        if (strcmp(boards(&gpus), cases[i].expected) != 0)
            fail_msg("%s: '%s'", cases[i].device.name, boards(&gpus));
    }
}

static void a_board_with_two_vgpus_of_a_guest_counts_once(void **state)
{
    static const struct vm_device_list devices = {
        .items = {{true, W}, {false, "0000:41:00.5"}, {true, U}}, .count = 3};
    const struct node *node = *state;
    struct gpu_access_list gpus = {.count = 0};

    put_devices(node);
    vm_gpus_add_boards(&node->host, &devices, &gpus);
    assert_string_equal(boards(&gpus), "0000:41:00.0 0000:21:00.0");
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct gpu_access *)a)->id, ((const struct gpu_access *)b)->id);
}

static void boards_that_vfio_has_are_listed_whole(void **state)
{
    const struct node *node = *state;
    struct gpu_access_list gpus = {.count = 0};

    vm_gpus_list_passed_through(&node->host, &gpus);
    assert_int_equal(gpus.count, 0); /* without PCI */
    put_devices(node);
    vm_gpus_list_passed_through(&node->host, &gpus);
    qsort(gpus.items, gpus.count, sizeof(*gpus.items), by_id);
    assert_string_equal(boards(&gpus), "0000:65:00.0 0000:66:00.0");
}

static void note(void *context, const struct attachment *attachment)
{
    char *text = context;

    assert_true(strlen(text) < 3000);
    assert_int_equal(attachment->source, ALLOCATED_BY_QEMU);
    assert_false(attachment->is_unverified);
    sprintf(text + strlen(text), "%s %s %s; ", workload_words[attachment->owner_kind],
            attachment->owner_id, attachment->id);
}

static const char *scan(struct node *node, uint64_t now_us)
{
    static char text[4096];

    text[0] = '\0';
    assert_int_equal(process_table_scan(node->table, false, NULL, NULL), 0);
    job_gpus_scan(&node->host, node->table, node->attachments, 16, 2000, now_us);
    attachments_each(node->attachments, now_us, note, text);
    return text;
}

static void put_process(const struct node *node, uint32_t pid, const char *cgroup,
                        struct span cmdline)
{
    char path[128];
    int fd;

    put(node, cgroup, "proc/%u/cgroup", pid);
    put(node, "", "proc/%u/cmdline", pid);
    snprintf(path, sizeof(path), "%s/proc/%u/cmdline", node->path, pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, cmdline.data, cmdline.len), cmdline.len);
    close(fd);
}

#define SCOPE(name) "0::/machine.slice/machine-qemu\\x2d1\\x2d" name ".scope/libvirt/emulator\n"
#define QEMU        "qemu-system-x86_64" Z "-name" Z "guest=web" Z "-device" Z
#define HAS_U       QEMU "vfio-pci,sysfsdev=/sys/bus/mdev/devices/" U Z
#define HAS_W       QEMU "{\"driver\":\"vfio-pci\",\"sysfsdev\":\"/sys/bus/mdev/devices/" W "\"}" Z
#define HAS_65      QEMU "vfio-pci,host=0000:65:00.0" Z

static void machines_of_libvirt_and_proxmox_have_their_boards(void **state)
{
    struct node *node = *state;

    put_devices(node);
    put_process(node, 10, SCOPE("web"), (struct span)TEXT(HAS_U));
    put_process(node, 11, "0::/qemu.slice/100.scope\n", (struct span)TEXT(HAS_65));
    put_process(node, 12, "0::/machine/qemu-2-old.libvirt-qemu/emulator\n",
                (struct span)TEXT(HAS_W));
    put_process(node, 13, SCOPE("none"), (struct span)TEXT(QEMU "virtio-net-pci" Z));
    assert_string_equal(scan(node, 1), "vm web 0000:21:00.0; vm 100 0000:65:00.0; "
                                       "vm old 0000:41:00.0; ");
}

static void only_the_machines_of_root_are_believed(void **state)
{
    struct node *node = *state;

    put_devices(node);
    /* In a container, in a user's session, in a directory of a tenant's, and in none at all. */
    put_process(node, 10,
                "0::/docker/a3f0c1d2e4b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff"
                "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope\n",
                (struct span)TEXT(HAS_U));
    put_process(node, 11, "0::/user.slice/user-7.slice/machine-qemu\\x2d1\\x2dweb.scope\n",
                (struct span)TEXT(HAS_U));
    put_process(node, 12, "0::/system.slice/b.service//1000/machine-qemu\\x2d1\\x2dweb.scope\n",
                (struct span)TEXT(HAS_U));
    put_process(node, 13, "0::/system.slice/b.service\n", (struct span)TEXT(HAS_U));
    put_process(node, 14, "0::/slurm/uid_0/job_7/step_0\n", (struct span)TEXT(HAS_U));
    assert_string_equal(scan(node, 1), "");
}

static void a_helper_of_a_machine_does_not_hide_its_qemu(void **state)
{
    struct node *node = *state;

    put_devices(node);
    put_process(node, 10, SCOPE("web"), (struct span)TEXT("swtpm" Z "socket" Z));
    assert_string_equal(scan(node, 1), ""); /* not yet: it is asked again in 2 s */
    put_process(node, 11, SCOPE("web"), (struct span)TEXT(HAS_U));
    assert_string_equal(scan(node, 1 + 2 * USEC_PER_SEC), "vm web 0000:21:00.0; ");
}

static void a_vgpu_that_is_gone_is_dropped_after_a_minute(void **state)
{
    struct node *node = *state;

    put_devices(node);
    put_process(node, 10, SCOPE("web"), (struct span)TEXT(HAS_U));
    assert_string_equal(scan(node, 1), "vm web 0000:21:00.0; ");
    tree_remove(node->path, "sys/bus/mdev/devices/" U);
    assert_string_equal(scan(node, 59 * USEC_PER_SEC), "vm web 0000:21:00.0; ");
    assert_string_equal(scan(node, 61 * USEC_PER_SEC), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_line_names_the_devices_of_its_guest),
        cmocka_unit_test(a_command_line_is_that_of_a_qemu_if_it_has_a_name),
        cmocka_unit_test(a_guest_has_no_more_devices_than_fit),
        cmocka_unit_test(an_option_that_is_too_long_is_none),
        cmocka_unit_test(the_link_of_a_mediated_device_names_the_one_above),
        node_test(a_device_is_of_the_board_that_sysfs_shows),
        node_test(a_board_with_two_vgpus_of_a_guest_counts_once),
        node_test(boards_that_vfio_has_are_listed_whole),
        node_test(machines_of_libvirt_and_proxmox_have_their_boards),
        node_test(only_the_machines_of_root_are_believed),
        node_test(a_helper_of_a_machine_does_not_hide_its_qemu),
        node_test(a_vgpu_that_is_gone_is_dropped_after_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
