#include "sources/cgroup/files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/cgroup/parse.h"

#define BIT(field)     USAGE_BIT(USAGE_##field)
#define IO_BIT(field)  (1U << (TELLS_IO_SHIFT + USAGE_IO_##field))
#define CPU_HALVES     (BIT(CPU_USER_US) | BIT(CPU_SYSTEM_US))
#define CPU_THROTTLING (BIT(CPU_PERIODS) | BIT(CPU_THROTTLED_PERIODS) | BIT(CPU_THROTTLED_US))
#define CPU_ALL        (BIT(CPU_US) | CPU_HALVES | CPU_THROTTLING)
#define CPU_STALLS     (BIT(CPU_SOME_US) | BIT(CPU_FULL_US))
#define MEMORY_RSS     BIT(MEMORY_RSS_BYTES)
#define MEMORY_USED    BIT(MEMORY_USED_BYTES)
#define MEMORY_SWAP    BIT(MEMORY_SWAP_BYTES)
#define MEMORY_PARTS   (MEMORY_RSS | BIT(MEMORY_CACHE_BYTES) | BIT(MEMORY_INACTIVE_FILE_BYTES))
#define MEMORY_V1      (MEMORY_PARTS | BIT(MEMORY_LIMIT_BYTES) | MEMORY_SWAP)
#define MEMORY_EVENTS  (BIT(MEMORY_FAILURES) | BIT(MEMORY_OOM_KILLS))
#define MEMORY_STALLS  (BIT(MEMORY_SOME_US) | BIT(MEMORY_FULL_US))
#define IO_STALLS      (BIT(IO_SOME_US) | BIT(IO_FULL_US))
#define IO_BYTES       (IO_BIT(READ_BYTES) | IO_BIT(WRITTEN_BYTES))
#define IO_COUNTS      (IO_BIT(READS) | IO_BIT(WRITES))

enum version { V1, V2 };

/* v2 has these whether or not a controller is enabled. */
enum { ANY = CONTROLLERS };

enum {
    CPU = CONTROLLER_CPU,
    CPUACCT = CONTROLLER_CPUACCT,
    MEMORY = CONTROLLER_MEMORY,
    BLKIO = CONTROLLER_IO,
    IO = CONTROLLER_IO,
    PIDS = CONTROLLER_PIDS,
    RDMA = CONTROLLER_RDMA,
};

/*
 * blkio: what throttling counts, then CFQ and BFQ. The files without "_recursive" lack what is
 * below, so that a job on a kernel that has no others shows no IO rather than a wrong one.
 * memory.max is no counter: the reader looks at it less often, and further up, too.
 */
static const struct {
    enum version version;
    unsigned controller;
    const char *name;
    uint32_t tells;
    void (*parse)(struct span text, struct usage *usage);
} known[] = {
    {V1, CPUACCT, "cpuacct.usage", BIT(CPU_US), cpu_stat_parse_cpuacct_usage},
    {V1, CPUACCT, "cpuacct.stat", CPU_HALVES, cpu_stat_parse_cpuacct},
    {V1, CPU, "cpu.stat", CPU_THROTTLING, cpu_stat_parse_v1},
    {V2, ANY, "cpu.stat", CPU_ALL, cpu_stat_parse},
    {V2, ANY, "cpu.pressure", CPU_STALLS, pressure_parse_cpu},

    {V1, MEMORY, "memory.stat", MEMORY_V1, memory_stat_parse_v1},
    {V1, MEMORY, "memory.usage_in_bytes", MEMORY_USED, NULL},
    {V1, MEMORY, "memory.failcnt", BIT(MEMORY_FAILURES), NULL},
    {V1, MEMORY, "memory.oom_control", BIT(MEMORY_OOM_KILLS), memory_stat_parse_oom_control},
    {V2, MEMORY, "memory.stat", MEMORY_PARTS, memory_stat_parse},
    {V2, MEMORY, "memory.current", MEMORY_USED, NULL},
    {V2, MEMORY, "memory.swap.current", MEMORY_SWAP, NULL},
    {V2, MEMORY, "memory.events", MEMORY_EVENTS, memory_stat_parse_events},
    {V2, ANY, "memory.pressure", MEMORY_STALLS, pressure_parse_memory},

    {V1, BLKIO, "blkio.throttle.io_service_bytes_recursive", IO_BYTES, io_stat_parse_blkio_bytes},
    {V1, BLKIO, "blkio.io_service_bytes_recursive", IO_BYTES, io_stat_parse_blkio_bytes},
    {V1, BLKIO, "blkio.bfq.io_service_bytes_recursive", IO_BYTES, io_stat_parse_blkio_bytes},
    {V1, BLKIO, "blkio.throttle.io_serviced_recursive", IO_COUNTS, io_stat_parse_blkio_counts},
    {V1, BLKIO, "blkio.io_serviced_recursive", IO_COUNTS, io_stat_parse_blkio_counts},
    {V1, BLKIO, "blkio.bfq.io_serviced_recursive", IO_COUNTS, io_stat_parse_blkio_counts},
    {V2, IO, "io.stat", IO_BYTES | IO_COUNTS, io_stat_parse},
    {V2, ANY, "io.pressure", IO_STALLS, pressure_parse_io},

    {V1, PIDS, "pids.current", BIT(PIDS), NULL},
    {V2, PIDS, "pids.current", BIT(PIDS), NULL},
    {V1, RDMA, "rdma.current", TELLS_RDMA, rdma_parse},
    {V2, RDMA, "rdma.current", TELLS_RDMA, rdma_parse},
};

/* Where a file of this version is; HIERARCHY_NONE: nowhere. */
static int find_home(const struct hierarchies *hierarchies, enum version version,
                     unsigned controller)
{
    int home = controller == ANY ? hierarchies->unified : hierarchies->homes[controller];

    return (home == hierarchies->unified) == (version == V2) ? home : HIERARCHY_NONE;
}

static void add(struct cgroup_files *files, const struct cgroup_file *file, int hierarchy)
{
    if (hierarchy == HIERARCHY_NONE || files->count == CGROUP_FILES_MAX)
        return;
    files->items[files->count] = *file;
    files->items[files->count++].hierarchy = hierarchy;
}

/* As the kernel names them: mem_fmt() in mm/hugetlb_cgroup.c. */
static void add_hugetlb(struct cgroup_files *files, const struct hierarchies *hierarchies,
                        uint64_t page_kib)
{
    int home = hierarchies->homes[CONTROLLER_HUGETLB];
    const char *unit = page_kib >= 1 << 20 ? "GB" : page_kib >= 1 << 10 ? "MB" : "KB";
    uint64_t size = page_kib >= 1 << 20   ? page_kib >> 20
                    : page_kib >= 1 << 10 ? page_kib >> 10
                                          : page_kib;
    struct cgroup_file file = {.page_bytes = page_kib << 10};

    snprintf(file.name, sizeof(file.name), "hugetlb.%llu%s.%s", (unsigned long long)size, unit,
             home == hierarchies->unified ? "current" : "usage_in_bytes");
    add(files, &file, home);
}

static void add_page_sizes(struct cgroup_files *files, const struct hierarchies *hierarchies,
                           const struct host *host)
{
    DIR *dir = fs_open_dir(host->sysfs_fd, "kernel/mm/hugepages");
    const struct dirent *entry;
    size_t sizes = 0;

    while (dir && sizes < USAGE_HUGETLB_MAX && (entry = readdir(dir))) {
        struct span name = span_of(entry->d_name);
        uint64_t page_kib;

        if (!span_strip_prefix(&name, "hugepages-") || !span_strip_suffix(&name, "kB") ||
            parse_u64_max(name, 1 << 30, &page_kib) < 0 || page_kib == 0)
            continue;
        add_hugetlb(files, hierarchies, page_kib);
        sizes++;
    }
    if (dir)
        closedir(dir);
}

void cgroup_files_choose(const struct hierarchies *hierarchies, const struct host *host,
                         struct cgroup_files *ret_files)
{
    struct cgroup_files *files = ret_files;

    files->count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        struct cgroup_file file = {.tells = known[i].tells, .parse = known[i].parse};

        snprintf(file.name, sizeof(file.name), "%s", known[i].name);
        add(files, &file, find_home(hierarchies, known[i].version, known[i].controller));
    }
    add_page_sizes(files, hierarchies, host);
}

bool cgroup_file_is_wanted(const struct cgroup_file *file, uint32_t told)
{
    return !(file->tells & -file->tells & told);
}

static enum usage_field first_field(uint32_t fields)
{
    return (enum usage_field)__builtin_ctz(fields);
}

static void add_huge_pages(const struct cgroup_file *file, uint64_t used_bytes, struct usage *usage)
{
    if (usage->hugetlb_count < usage->hugetlb_room)
        usage->hugetlb[usage->hugetlb_count++] =
            (struct usage_hugetlb){file->page_bytes, used_bytes};
}

void cgroup_file_parse_usage(const struct cgroup_file *file, struct span text, struct usage *usage)
{
    uint64_t value;

    if (file->parse)
        file->parse(text, usage);
    else if (cgroup_parse_number(text, &value) < 0)
        return;
    else if (file->page_bytes > 0)
        add_huge_pages(file, value, usage);
    else
        usage_set(usage, first_field(file->tells), value);
}

void cgroup_file_keep_usage(const struct cgroup_file *file, const struct usage *last,
                            struct usage *usage)
{
    for (uint32_t left = file->tells & last->valid; left; left &= left - 1)
        usage_set(usage, first_field(left), last->values[first_field(left)]);
    io_stat_keep(last, file->tells >> TELLS_IO_SHIFT, usage);
    if (file->tells & TELLS_RDMA) {
        usage->rdma_count = MIN(last->rdma_count, usage->rdma_room);
        for (size_t i = 0; i < usage->rdma_count; i++)
            usage->rdma[i] = last->rdma[i];
    }
    for (size_t i = 0; file->page_bytes > 0 && i < last->hugetlb_count; i++)
        if (last->hugetlb[i].page_bytes == file->page_bytes)
            add_huge_pages(file, last->hugetlb[i].used_bytes, usage);
}
