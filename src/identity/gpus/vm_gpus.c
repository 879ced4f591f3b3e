#include "identity/vm_gpus.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/json_reader.h"
#include "core/macros.h"
#include "core/parse.h"

enum {
    OPTION_BYTES = 512, /* "sysfsdev=" and a path; longer ones are no devices */
    BUS_MAX = 0xff,
    SLOT_MAX = 0x1f,
    FUNCTION_MAX = 7,
};

static bool parse_hex(struct span text, uint32_t max, uint32_t *ret_value)
{
    uint64_t value = 0;

    if (text.len == 0 || text.len > 8)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int c = tolower((unsigned char)text.data[i]);

        if (!isxdigit(c))
            return false;
        value = value << 4 | (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    *ret_value = (uint32_t)value;
    return value <= max;
}

bool vm_gpus_parse_address(struct span text, char ret_address[static SAMPLE_PCI_BYTES])
{
    struct span bus = span_cut(&text, ':'), slot = span_cut(&text, ':'), domain = {"0", 1};
    uint32_t numbers[4];

    if (text.len > 0) {
        domain = bus;
        bus = slot;
        slot = text;
    }
    text = slot;
    slot = span_cut(&text, '.');
    if (!parse_hex(domain, UINT32_MAX, &numbers[0]) || !parse_hex(bus, BUS_MAX, &numbers[1]) ||
        !parse_hex(slot, SLOT_MAX, &numbers[2]) || !parse_hex(text, FUNCTION_MAX, &numbers[3]))
        return false;
    snprintf(ret_address, SAMPLE_PCI_BYTES, "%04x:%02x:%02x.%x", numbers[0], numbers[1], numbers[2],
             numbers[3]);
    return true;
}

/* Cuts off the last component of a path. */
static struct span cut_last(struct span *path)
{
    const char *slash = path->len > 0 ? memrchr(path->data, '/', path->len) : NULL;
    struct span last = *path;

    path->len = slash ? (size_t)(slash - path->data) : 0;
    if (slash)
        last = (struct span){slash + 1, last.len - path->len - 1};
    return last;
}

bool vm_gpus_parse_mdev_link(struct span link, char ret_address[static SAMPLE_PCI_BYTES])
{
    return parse_is_uuid(cut_last(&link)) && vm_gpus_parse_address(cut_last(&link), ret_address);
}

/* The options of one -device that count. */
struct device_options {
    char driver[32], host[64], sysfsdev[OPTION_BYTES];
};

static void set_option(struct device_options *options, struct span name, struct span value)
{
    const struct {
        const char *name;
        char *text;
        size_t size_bytes;
    } known[] = {
        {"driver", options->driver, sizeof(options->driver)},
        {"host", options->host, sizeof(options->host)},
        {"sysfsdev", options->sysfsdev, sizeof(options->sysfsdev)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (span_equals(name, known[i].name)) {
            size_t len = value.len < known[i].size_bytes ? value.len : 0;

            if (len > 0)
                memcpy(known[i].text, value.data, len);
            known[i].text[len] = '\0';
        }
}

/* Cuts off "NAME=VALUE" up to a comma that is not doubled. A text that does not fit is empty. */
static struct span cut_option(struct span *rest, char buffer[static OPTION_BYTES])
{
    size_t len = 0, i = 0;

    while (i < rest->len) {
        char c = rest->data[i++];

        if (c == ',' && (i == rest->len || rest->data[i] != ','))
            break;
        i += c == ',';
        if (len < OPTION_BYTES)
            buffer[len] = c;
        len++;
    }
    *rest = (struct span){rest->data + i, rest->len - i};
    return (struct span){buffer, len <= OPTION_BYTES ? len : 0};
}

/* "vfio-pci,host=0000:65:00.0,id=hostdev0": the first may leave out "driver=". */
static void read_options(struct span text, struct device_options *options)
{
    char buffer[OPTION_BYTES];

    for (bool is_first = true; text.len > 0; is_first = false) {
        struct span value = cut_option(&text, buffer);
        bool has_name = value.len > 0 && memchr(value.data, '=', value.len);

        if (has_name)
            set_option(options, span_cut(&value, '='), value);
        else if (is_first)
            set_option(options, span_of("driver"), value);
    }
}

static void read_json(struct span text, struct device_options *options)
{
    static const char *const names[] = {"driver", "host", "sysfsdev"};
    struct json *json = NULL;

    if (json_read(text, &json) < 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = json_text(json_get(json, names[i]));

        if (value)
            set_option(options, span_of(names[i]), span_of(value));
    }
    json_free(json);
}

static void add_device(struct vm_device_list *devices, bool is_mediated, struct span name)
{
    struct vm_device device = {.is_mediated = is_mediated};

    if (devices->count == VM_DEVICES_MAX)
        return;
    memcpy(device.name, name.data, MIN(name.len, sizeof(device.name) - 1));
    devices->items[devices->count++] = device;
}

static void add_vfio_device(struct vm_device_list *devices, struct span text)
{
    struct device_options options = {.driver = ""};
    char address[SAMPLE_PCI_BYTES];
    struct span path, name;

    if (!memmem(text.data, text.len, "vfio-pci", strlen("vfio-pci")))
        return; /* spares the other thirty of a guest */
    if (text.data[0] == '{')
        read_json(text, &options);
    else
        read_options(text, &options);
    /* libvirt takes the second for a vGPU with a display. */
    if (strcmp(options.driver, "vfio-pci") != 0 &&
        strcmp(options.driver, "vfio-pci-nohotplug") != 0)
        return;
    path = span_of(options.sysfsdev);
    name = options.sysfsdev[0] ? cut_last(&path) : span_of(options.host);
    if (options.sysfsdev[0] && parse_is_uuid(name))
        add_device(devices, true, name);
    else if (vm_gpus_parse_address(name, address))
        add_device(devices, false, span_of(address));
}

bool vm_gpus_parse_cmdline(struct span cmdline, struct vm_device_list *devices)
{
    bool has_name = false;

    while (cmdline.len > 0) {
        struct span argument = span_cut(&cmdline, '\0');

        if (span_equals(argument, "-name"))
            has_name = true;
        else if ((span_equals(argument, "-device") || span_equals(argument, "--device")) &&
                 cmdline.len > 0)
            add_vfio_device(devices, span_cut(&cmdline, '\0'));
    }
    return has_name;
}

/* From here on: sysfs. */

#define PCI_DEVICES  "bus/pci/devices"
#define MDEV_DEVICES "bus/mdev/devices"

enum { SYSFS_PATH_BYTES = 128 };

/* The text of a link is data: it is not followed. */
static bool read_link(const struct host *host, const char *path, char text[static PATH_MAX],
                      struct span *ret_link)
{
    ssize_t len = readlinkat(host->sysfs_fd, path, text, PATH_MAX);

    if (len <= 0 || len == PATH_MAX)
        return false;
    *ret_link = (struct span){text, (size_t)len};
    return true;
}

static bool read_device_link(const struct host *host, const char *address, const char *name,
                             char text[static PATH_MAX], struct span *ret_last)
{
    char path[SYSFS_PATH_BYTES];
    struct span link;

    snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, name);
    if (!read_link(host, path, text, &link))
        return false;
    *ret_last = cut_last(&link);
    return true;
}

static bool attribute_begins_with(const struct host *host, const char *address, const char *name,
                                  const char *prefix)
{
    char path[SYSFS_PATH_BYTES], text[32];
    size_t len;

    snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, name);
    return fs_read_at(host->sysfs_fd, path, text, sizeof(text), &len) == 0 &&
           strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Vendor NVIDIA, class display controller: not the sound or USB of a board. */
static bool is_nvidia_gpu(const struct host *host, const char *address)
{
    return attribute_begins_with(host, address, "vendor", "0x10de") &&
           attribute_begins_with(host, address, "class", "0x03");
}

/* "vfio-pci", or a variant such as "nvgrace-gpu-vfio-pci". */
static bool has_vfio_driver(const struct host *host, const char *address)
{
    char text[PATH_MAX];
    struct span driver;

    return read_device_link(host, address, "driver", text, &driver) &&
           memmem(driver.data, driver.len, "vfio", strlen("vfio"));
}

/* A virtual function becomes its board. False: it is a board itself. */
static bool find_physical(const struct host *host, char address[static SAMPLE_PCI_BYTES])
{
    char text[PATH_MAX];
    struct span physical;

    return read_device_link(host, address, "physfn", text, &physical) &&
           vm_gpus_parse_address(physical, address);
}

static bool find_board(const struct host *host, const struct vm_device *device,
                       char address[static SAMPLE_PCI_BYTES])
{
    char path[SYSFS_PATH_BYTES], text[PATH_MAX];
    struct span link;
    bool is_part;

    if (device->is_mediated) {
        snprintf(path, sizeof(path), MDEV_DEVICES "/%s", device->name);
        if (!read_link(host, path, text, &link) || !vm_gpus_parse_mdev_link(link, address))
            return false;
    } else if (!vm_gpus_parse_address(span_of(device->name), address)) {
        return false;
    }
    is_part = find_physical(host, address) || device->is_mediated;
    return is_nvidia_gpu(host, address) && (is_part || has_vfio_driver(host, address));
}

static void add_board(struct gpu_access_list *gpus, const char *address)
{
    struct gpu_access access = {.kind = ALLOCATION_PCI, .source = ALLOCATED_BY_QEMU};

    snprintf(access.id, sizeof(access.id), "%s", address);
    gpu_access_add(gpus, &access);
}

void vm_gpus_add_boards(const struct host *host, const struct vm_device_list *devices,
                        struct gpu_access_list *gpus)
{
    char address[SAMPLE_PCI_BYTES];

    for (size_t i = 0; i < devices->count; i++)
        if (find_board(host, &devices->items[i], address))
            add_board(gpus, address);
}

void vm_gpus_list_passed_through(const struct host *host, struct gpu_access_list *gpus)
{
    DIR *dir = fs_open_dir(host->sysfs_fd, PCI_DEVICES);
    char address[SAMPLE_PCI_BYTES];
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (vm_gpus_parse_address(span_of(entry->d_name), address) &&
            is_nvidia_gpu(host, address) && has_vfio_driver(host, address) &&
            !find_physical(host, address))
            add_board(gpus, address);
    if (dir)
        closedir(dir);
}
