#include "sources/amd/kfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

#define TOPOLOGY "class/kfd/kfd/topology"

enum {
    NUMBER_BYTES = 32,
    PROPERTIES_BYTES = 8192,
    PATH_BYTES = 40, /* "stats_4294967295/cu_occupancy" */
    NODES_LISTED_MAX = 256,
    READS_MAX = 4, /* of a topology that changes */
    CONTEXTS_MAX = 256,
    QUEUES_MAX = 8192, /* more than the kernel allows a process: 1024, 4160 proposed */
};
enum { RENDER_MINOR_MIN = 128, RENDER_MINOR_MAX = (1 << 20) - 1 };
enum { QUEUE_COMPUTE = 0 }; /* KFD_QUEUE_TYPE_COMPUTE; AQL queues, too */

/* Sysfs answers a read with the whole file, so that one read will do. Some files end with a
 * newline. */
static int read_number(int dir_fd, const char *path, uint64_t max, uint64_t *ret_value)
{
    _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char buffer[NUMBER_BYTES];
    struct span text = {buffer, 0};
    int r = fd < 0 ? -errno : fs_reread(fd, buffer, sizeof(buffer), &text.len);

    if (r < 0)
        return r;
    span_strip_suffix(&text, "\n");
    return parse_u64_max(text, max, ret_value) < 0 ? -EINVAL : 0;
}

/* A number as the kernel prints it: without leading zeros. */
static bool is_numbered(const char *name, uint64_t max, uint64_t *ret_number)
{
    return (name[0] != '0' || name[1] == '\0') &&
           parse_u64_max(span_of(name), max, ret_number) == 0;
}

/* Descriptors and memory run out for a while: nothing must look gone because of it. */
static bool is_transient(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* From here on: the topology. */

enum property { LOCATION, DOMAIN, RENDER_MINOR, SIMD_COUNT, SIMD_PER_CU, UNIQUE_ID, PROPERTIES };

/* Leaves alone what is missing or malformed. */
static void parse_values(struct span text, uint64_t values[static PROPERTIES])
{
    static const struct {
        const char *name;
        uint64_t max;
    } properties[PROPERTIES] = {
        [LOCATION] = {"location_id", UINT32_MAX},
        [DOMAIN] = {"domain", UINT32_MAX},
        [RENDER_MINOR] = {"drm_render_minor", RENDER_MINOR_MAX},
        [SIMD_COUNT] = {"simd_count", UINT32_MAX},
        [SIMD_PER_CU] = {"simd_per_cu", UINT32_MAX},
        [UNIQUE_ID] = {"unique_id", UINT64_MAX},
    };

    while (text.len > 0) {
        struct span value = span_cut(&text, '\n'), name = span_cut(&value, ' ');

        for (enum property i = 0; i < PROPERTIES; i++)
            if (span_equals(name, properties[i].name))
                (void)parse_u64_max(value, properties[i].max, &values[i]);
    }
}

int kfd_parse_properties(struct span text, struct kfd_node *ret_node)
{
    uint64_t values[PROPERTIES] = {[LOCATION] = UINT64_MAX};
    struct kfd_node node = {0};

    parse_values(text, values);
    if (values[LOCATION] > UINT32_MAX)
        return -EINVAL;
    /* Partitions are numbered in bits 28 to 31, or in the function's place in some kernels. Old
     * kernels print no domain. */
    snprintf(node.pci, sizeof(node.pci), "%04x:%02x:%02x.0", (unsigned)values[DOMAIN],
             (unsigned)(values[LOCATION] >> 8 & 0xff), (unsigned)(values[LOCATION] >> 3 & 0x1f));
    node.has_render = values[RENDER_MINOR] >= RENDER_MINOR_MIN;
    if (node.has_render)
        node.render_minor = (uint32_t)values[RENDER_MINOR];
    if (values[SIMD_PER_CU] > 0)
        node.compute_units = (uint32_t)(values[SIMD_COUNT] / values[SIMD_PER_CU]);
    node.unique_id = values[UNIQUE_ID];
    *ret_node = node;
    return 0;
}

int kfd_read_generation(int sysfs_fd, uint64_t *ret_generation)
{
    int r = read_number(sysfs_fd, TOPOLOGY "/generation_id", UINT64_MAX, ret_generation);

    return r == -ENOENT ? -ENODEV : r;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static size_t list_nodes(DIR *directory, uint32_t numbers[static NODES_LISTED_MAX])
{
    const struct dirent *entry;
    size_t count = 0;
    uint64_t number;

    while (count < NODES_LISTED_MAX && (entry = readdir(directory)))
        if (is_numbered(entry->d_name, UINT32_MAX, &number))
            numbers[count++] = (uint32_t)number;
    qsort(numbers, count, sizeof(numbers[0]), ascending);
    return count;
}

/* -ENOENT, -EPERM or another -errno, or -EINVAL: it is malformed, or a CPU. */
static int read_node(int nodes_fd, uint32_t number, struct kfd_node *ret_node)
{
    char path[PATH_BYTES], buffer[PROPERTIES_BYTES];
    struct span text = {buffer, 0};
    uint64_t gpu_id;
    int r;

    snprintf(path, sizeof(path), "%u/gpu_id", number);
    r = read_number(nodes_fd, path, UINT32_MAX, &gpu_id);
    if (r < 0 || gpu_id == 0)
        return r < 0 ? r : -EINVAL;
    snprintf(path, sizeof(path), "%u/properties", number);
    r = fs_read_at(nodes_fd, path, buffer, sizeof(buffer), &text.len);
    if (r == 0)
        r = kfd_parse_properties(text, ret_node);
    if (r == 0)
        ret_node->gpu_id = (uint32_t)gpu_id;
    return r;
}

static int read_nodes(int sysfs_fd, struct kfd_topology *topology)
{
    DIR *directory = fs_open_dir(sysfs_fd, TOPOLOGY "/nodes");
    uint32_t numbers[NODES_LISTED_MAX];
    size_t count;
    int r = 0;

    if (!directory)
        return errno == ENOENT ? -ENODEV : -errno;
    count = list_nodes(directory, numbers);
    topology->count = topology->denied = 0;
    for (size_t i = 0; i < count && topology->count < KFD_NODES_MAX && !is_transient(r); i++) {
        r = read_node(dirfd(directory), numbers[i], &topology->nodes[topology->count]);
        topology->count += r == 0;
        topology->denied += r == -EPERM; /* kfd_devcgroup_check_permission */
    }
    closedir(directory);
    return is_transient(r) ? r : 0;
}

int kfd_read_topology(int sysfs_fd, struct kfd_topology *ret_topology)
{
    struct kfd_topology topology = {0};
    uint64_t generation;
    int r = kfd_read_generation(sysfs_fd, &generation);

    for (int reads = 0; r == 0 && reads < READS_MAX; reads++) {
        topology.generation = generation;
        r = read_nodes(sysfs_fd, &topology);
        if (r == 0)
            r = kfd_read_generation(sysfs_fd, &generation);
        if (r == 0 && generation == topology.generation) {
            *ret_topology = topology;
            return 0;
        }
    }
    return r < 0 ? r : -EAGAIN;
}

/* From here on: processes. */

/* The files of a process for one GPU. */
struct gpu_files {
    uint32_t gpu_id;
    bool with_occupancy;
    char vram[PATH_BYTES], sdma[PATH_BYTES], evicted[PATH_BYTES], occupancy[PATH_BYTES];
};

static void add_saturated(uint64_t *sum, uint64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = UINT64_MAX;
}

static void add_number(int fd, const char *path, bool *has, uint64_t *sum)
{
    uint64_t value;

    if (read_number(fd, path, UINT64_MAX, &value) < 0)
        return;
    *has = true;
    add_saturated(sum, value);
}

static bool is_compute_queue(int queues_fd, uint32_t number, uint32_t gpu_id)
{
    char path[PATH_BYTES];
    uint64_t value;

    snprintf(path, sizeof(path), "%u/gpuid", number);
    if (read_number(queues_fd, path, UINT32_MAX, &value) < 0 || value != gpu_id)
        return false;
    snprintf(path, sizeof(path), "%u/type", number);
    return read_number(queues_fd, path, UINT32_MAX, &value) == 0 && value == QUEUE_COMPUTE;
}

static bool has_compute_queue(int fd, uint32_t gpu_id)
{
    const struct dirent *entry;
    bool is_found = false;
    struct stat st;
    uint64_t number;
    DIR *directory;

    /* Two links: no directories in it, so no queues. That saves listing it. */
    if (fstatat(fd, "queues", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink == 2)
        return false;
    directory = fs_open_dir(fd, "queues");
    for (size_t i = 0; directory && !is_found && i < QUEUES_MAX && (entry = readdir(directory));
         i++)
        is_found = is_numbered(entry->d_name, UINT32_MAX, &number) &&
                   is_compute_queue(dirfd(directory), (uint32_t)number, gpu_id);
    if (directory)
        closedir(directory);
    return is_found;
}

/* Adds a context to what its process has. False: it has no files for this GPU. */
static bool add_context(int fd, const struct gpu_files *files, struct kfd_usage *usage)
{
    uint64_t value;
    int r = read_number(fd, files->vram, UINT64_MAX, &value);

    /* All of a GPU's files are made together: without this one there are none. */
    if (r == -ENOENT || r == -ENODEV)
        return false;
    if (r == 0) {
        usage->has_memory = true;
        add_saturated(&usage->vram_bytes, value);
    }
    add_number(fd, files->sdma, &usage->has_sdma, &usage->sdma_us);
    add_number(fd, files->evicted, &usage->has_evicted, &usage->evicted_ms);
    if (files->with_occupancy && read_number(fd, files->occupancy, UINT32_MAX, &value) == 0) {
        usage->has_occupancy = true;
        usage->compute_units += MIN((uint32_t)value, UINT32_MAX - usage->compute_units);
    }
    /* Whatever occupies compute units came through a queue: the queues need not be listed. */
    usage->has_queues =
        usage->has_queues || usage->compute_units > 0 || has_compute_queue(fd, files->gpu_id);
    return true;
}

/* Adds the process and its further contexts, which newer kernels put below it. */
static bool add_process(DIR *directory, const struct gpu_files *files, struct kfd_usage *usage)
{
    bool is_found = add_context(dirfd(directory), files, usage);
    const struct dirent *entry;
    size_t contexts = 0;

    while (contexts < CONTEXTS_MAX && (entry = readdir(directory))) {
        struct span name = span_of(entry->d_name);
        _cleanup_close_ int fd = -1;
        uint64_t number;

        if (!span_strip_prefix(&name, "context_") || parse_u64(name, &number) < 0)
            continue;
        contexts++;
        fd = openat(dirfd(directory), entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && add_context(fd, files, usage))
            is_found = true;
    }
    return is_found;
}

/* -ENODEV: it is gone, or cannot use the GPU. */
static int read_process(int proc_fd, const char *name, const struct gpu_files *files,
                        struct kfd_usage *usage)
{
    DIR *directory = fs_open_dir(proc_fd, name);
    bool is_found;

    if (!directory)
        return is_transient(-errno) ? -errno : -ENODEV;
    is_found = add_process(directory, files, usage);
    closedir(directory);
    return is_found ? 0 : -ENODEV;
}

int kfd_each_process(int sysfs_fd, uint32_t gpu_id, bool with_occupancy, kfd_visit *visit,
                     void *context)
{
    struct gpu_files files = {.gpu_id = gpu_id, .with_occupancy = with_occupancy};
    DIR *directory = fs_open_dir(sysfs_fd, "class/kfd/kfd/proc");
    const struct dirent *entry;
    size_t count = 0;
    int r = 0;

    if (!directory)
        return errno == ENOENT ? -ENODEV : -errno;
    snprintf(files.vram, sizeof(files.vram), "vram_%u", gpu_id);
    snprintf(files.sdma, sizeof(files.sdma), "sdma_%u", gpu_id);
    snprintf(files.evicted, sizeof(files.evicted), "stats_%u/evicted_ms", gpu_id);
    snprintf(files.occupancy, sizeof(files.occupancy), "stats_%u/cu_occupancy", gpu_id);
    while (r >= 0 && count < KFD_PROCESSES_MAX && (entry = readdir(directory))) {
        struct kfd_usage usage = {0};
        uint64_t pid;

        if (!is_numbered(entry->d_name, INT32_MAX, &pid) || pid == 0)
            continue;
        count++;
        usage.pid = (uint32_t)pid;
        r = read_process(dirfd(directory), entry->d_name, &files, &usage);
        if (r == 0)
            r = visit(context, &usage);
        else if (r == -ENODEV)
            r = 0;
    }
    closedir(directory);
    return MIN(r, 0);
}
