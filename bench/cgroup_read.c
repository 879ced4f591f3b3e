/*
 * What reading the cgroups of 1,000 workloads costs, against a bare loop of pread over the same
 * open files.
 *
 * usage: cgroup_read
 *
 * Makes 1,000 cgroups as Docker does, in every hierarchy that lets it, and removes them at its end,
 * also on SIGINT and SIGTERM. Where no hierarchy does, it makes a tree of files that look like
 * cgroup v2 in /dev/shm: there a pread costs less than in a cgroup file system, so that the ratio
 * is worse. Costs are CPU times of this thread, medians of 15 rounds; compare them within a run,
 * not between machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/source_set.h"
#include "core/fs.h"
#include "core/macros.h"
#include "host/cgroup_hierarchy.h"
#include "sources/cgroup/reader.h"

enum { CGROUPS = 1000, ROUNDS = 15 };

static volatile sig_atomic_t stop;

static void ask_to_stop(int signal)
{
    (void)signal;
    stop = 1;
}

/* The same in every run, so that a run cleans up after one that was killed. */
static void name_cgroup(size_t index, char name[static 96])
{
    snprintf(name, 96, "docker/5ca9be9d%056zx", index);
}

static bool make_cgroups(int dir_fd)
{
    char name[96];

    if (mkdirat(dir_fd, "docker", 0755) < 0 && errno != EEXIST)
        return false;
    for (size_t i = 0; i < CGROUPS && !stop; i++) {
        name_cgroup(i, name);
        if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static void remove_cgroups(int dir_fd)
{
    char name[96];

    for (size_t i = 0; i < CGROUPS; i++) {
        name_cgroup(i, name);
        unlinkat(dir_fd, name, AT_REMOVEDIR);
    }
    unlinkat(dir_fd, "docker", AT_REMOVEDIR); /* stays if it is Docker's */
}

/* Returns how many hierarchies took all of them. */
static size_t make_real(const struct hierarchies *hierarchies)
{
    size_t made = 0;

    for (size_t i = 0; i < hierarchies->count; i++)
        made += make_cgroups(hierarchies->fds[i]);
    return made;
}

static void remove_real(const struct hierarchies *hierarchies)
{
    for (size_t i = 0; i < hierarchies->count; i++)
        remove_cgroups(hierarchies->fds[i]);
}

/* Sizes as on a running node. */
static const struct {
    const char *name, *text;
} fixture_files[] = {
    {"cpu.stat", "usage_usec 81324567\nuser_usec 61324567\nsystem_usec 20000000\nnice_usec 0\n"
                 "core_sched.force_idle_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
                 "nr_bursts 0\nburst_usec 0\n"},
    {"cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\n"
                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"},
    {"memory.current", "123456789\n"},
    {"memory.max", "max\n"},
    {"memory.swap.current", "0\n"},
    {"memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"},
    {"memory.stat",
     "anon 123456789\nfile 12345678\nkernel 1234567\nkernel_stack 16384\npagetables 98304\n"
     "sec_pagetables 0\npercpu 1440\nsock 0\nvmalloc 0\nshmem 0\nzswap 0\nzswapped 0\n"
     "file_mapped 0\nfile_dirty 0\nfile_writeback 0\nswapcached 0\nanon_thp 0\nfile_thp 0\n"
     "shmem_thp 0\ninactive_anon 0\nactive_anon 0\ninactive_file 12345678\nactive_file 0\n"
     "unevictable 0\nslab_reclaimable 0\nslab_unreclaimable 0\nslab 0\n"
     "workingset_refault_anon 0\nworkingset_refault_file 0\nworkingset_activate_anon 0\n"
     "workingset_activate_file 0\nworkingset_restore_anon 0\nworkingset_restore_file 0\n"
     "workingset_nodereclaim 0\npgscan 0\npgsteal 0\npgfault 123456\npgmajfault 12\n"},
    {"memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\n"
                        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"},
    {"io.stat", "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n"
                "259:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=0 dios=0\n"},
    {"io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\n"
                    "full avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"},
    {"pids.current", "12\n"},
};

static int write_file(int dir_fd, const char *name, const char *text)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fs_write_all(fd, text, strlen(text));
}

static bool make_directory(int dir_fd, const char *name)
{
    return mkdirat(dir_fd, name, 0755) == 0 || errno == EEXIST;
}

static int make_fixture(int root_fd)
{
    static const char mountinfo[] = "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    static const char *const directories[] = {"proc",   "proc/self",     "sys",
                                              "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/docker"};
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
        if (!make_directory(root_fd, directories[i]))
            return -errno;
    r = write_file(root_fd, "proc/self/mountinfo", mountinfo);
    for (size_t i = 0; i < CGROUPS && r == 0 && !stop; i++) {
        char path[256], name[96];

        name_cgroup(i, name);
        snprintf(path, sizeof(path), "sys/fs/cgroup/%s", name);
        if (!make_directory(root_fd, path))
            return -errno;
        for (size_t f = 0; f < ARRAY_SIZE(fixture_files) && r == 0; f++) {
            snprintf(path, sizeof(path), "sys/fs/cgroup/%s/%s", name, fixture_files[f].name);
            r = write_file(root_fd, path, fixture_files[f].text);
        }
    }
    return r;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static double cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double values[static ROUNDS])
{
    qsort(values, ROUNDS, sizeof(*values), ascending);
    return values[ROUNDS / 2];
}

/* Returns how many reads failed. */
static size_t read_bare(const struct cgroup_reader *reader)
{
    static char buffer[64 << 10];
    size_t failed = 0;

    for (size_t i = 0; i < reader->count; i++)
        for (size_t f = 0; f < reader->files.count; f++)
            failed += reader->workloads[i].fds[f] >= 0 &&
                      pread(reader->workloads[i].fds[f], buffer, sizeof(buffer), 0) < 0;
    return failed;
}

enum kind { BARE, KEPT, RESCAN, UNKEPT, KINDS };

struct readers {
    struct cgroup_reader *kept, *unkept;
    size_t failed; /* bare reads */
};

static double time_one(enum kind kind, struct readers *readers)
{
    double begin_us = cpu_us();

    if (kind == BARE)
        readers->failed += read_bare(readers->kept);
    else
        cgroup_reader_read(kind == UNKEPT ? readers->unkept : readers->kept, kind == RESCAN);
    return cpu_us() - begin_us;
}

static void print_costs(double costs_us[static KINDS][ROUNDS])
{
    static const struct {
        const char *name, *allowed;
    } rows[KINDS] = {
        [BARE] = {"bare: pread", ""},
        [KEPT] = {"cycle", "1.5"},
        [RESCAN] = {"cycle with a rescan", ""},
        [UNKEPT] = {"cycle, no files kept", ""},
    };
    double bare_us = median(costs_us[BARE]);

    printf("%-24s %10s %8s %8s\n", "", "CPU us", "ratio", "allowed");
    for (enum kind kind = BARE; kind < KINDS; kind++)
        printf("%-24s %10.0f %8.2f %8s\n", rows[kind].name, median(costs_us[kind]),
               median(costs_us[kind]) / bare_us, rows[kind].allowed);
}

/* In turn, so that what else the machine does falls on all kinds. */
static int measure_readers(struct readers *readers)
{
    double costs_us[KINDS][ROUNDS];

    readers->unkept->kept_files_max = 0;
    cgroup_reader_read(readers->kept, true);
    cgroup_reader_read(readers->unkept, true);
    for (int i = 0; i < ROUNDS && !stop; i++)
        for (enum kind kind = BARE; kind < KINDS; kind++)
            costs_us[kind][i] = time_one(kind, readers);
    if (stop)
        return 0;
    if (readers->kept->tree.workload_count < CGROUPS || readers->kept->unkept > 0 ||
        readers->kept->files_failed > 0 || readers->failed > 0) {
        fprintf(stderr,
                "cgroup_read: %zu of %d cgroups read, %zu without keeping files; is the limit of "
                "open files (ulimit -n) too low?\n",
                (size_t)readers->kept->tree.workload_count, CGROUPS, (size_t)readers->kept->unkept);
        return -EMFILE;
    }
    printf("%zu workloads, %zu open files\n\n", (size_t)readers->kept->tree.workload_count,
           (size_t)readers->kept->kept_files);
    print_costs(costs_us);
    return 0;
}

static int measure(const struct host *host)
{
    struct readers readers = {0};
    int r = cgroup_reader_new(host, source_set_classify_cgroup, &readers.kept);

    if (r == 0)
        r = cgroup_reader_new(host, source_set_classify_cgroup, &readers.unkept);
    if (r == 0)
        r = measure_readers(&readers);
    cgroup_reader_free(readers.kept);
    cgroup_reader_free(readers.unkept);
    return r;
}

static int measure_real(void)
{
    struct hierarchies hierarchies;
    struct host host;
    struct error err;
    size_t made;
    int r = host_open("/proc", "/sys", "/", &host, &err);

    if (r < 0)
        return r;
    r = hierarchies_open(&host, &hierarchies);
    if (r == 0) {
        made = make_real(&hierarchies);
        printf("%d cgroups in %zu of %zu hierarchies of this machine: ", CGROUPS, made,
               hierarchies.count);
        r = made > 0 ? measure(&host) : -EPERM;
        remove_real(&hierarchies);
        hierarchies_close(&hierarchies);
    }
    host_close(&host);
    return r;
}

static int measure_fixture(void)
{
    char path[] = "/dev/shm/cgroup_read.XXXXXX";
    _cleanup_close_ int root_fd = -1;
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    int r;

    if (!mkdtemp(path) || (root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -errno;
    r = make_fixture(root_fd);
    host.procfs_fd = openat(root_fd, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    host.sysfs_fd = openat(root_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    printf("%d directories in %s that look like cgroup v2: ", CGROUPS, path);
    if (r == 0)
        r = measure(&host);
    host_close(&host);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return r;
}

static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop};
    int r;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    allow_many_files();
    r = measure_real();
    if (r == -EPERM || r == -ENOENT) {
        printf("none\n");
        r = measure_fixture();
    }
    if (r < 0)
        fprintf(stderr, "cgroup_read: %s\n", strerror(-r));
    return r < 0 || stop ? 1 : 0;
}
