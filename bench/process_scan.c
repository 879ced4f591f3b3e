/*
 * What keeping the table of processes costs, against the bare cost of reading their files.
 *
 * usage: process_scan
 *
 * Makes 500 cgroups as Docker does, in every hierarchy that takes them, with 2,000 sleeping
 * processes in fours, and removes everything at its end, also on SIGINT and SIGTERM. Needs root.
 * Costs are CPU times of this thread, medians of 9 rounds; compare them within a run, not between
 * machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/span.h"
#include "host/proc.h"
#include "identity/process_table.h"

enum {
    CONTAINERS = 500,
    PROCESSES_EACH = 4,
    PROCESSES = CONTAINERS * PROCESSES_EACH,
    HIERARCHIES_MAX = 16,
    ROUNDS = 9,
    SETTLING_SCANS = 4,
};

struct fleet {
    int hierarchies[HIERARCHIES_MAX]; /* mount points of cgroup filesystems */
    size_t hierarchy_count;
    pid_t pids[PROCESSES];
    size_t count;
};

static volatile sig_atomic_t stop;

static void ask_to_stop(int signal)
{
    (void)signal;
    stop = 1;
}

/* The same in every run, so that a run cleans up after one that was killed. */
static void container_path(size_t index, char path[static 128])
{
    snprintf(path, 128, "docker/5ca9be9c%056zx", index);
}

/* A line of mountinfo: "36 35 0:30 ROOT PATH OPTIONS [...] - TYPE ..." (proc_pid_mountinfo(5)). */
static void add_hierarchy(struct fleet *fleet, char *line)
{
    char *type = strstr(line, " - cgroup"), *path = line;
    int fd;

    if (!type || fleet->hierarchy_count == HIERARCHIES_MAX)
        return;
    for (int i = 0; i < 4 && path; i++)
        path = strchr(path + 1, ' ');
    if (!path)
        return;
    path[1 + strcspn(path + 1, " ")] = '\0';
    fd = open(path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fleet->hierarchies[fleet->hierarchy_count++] = fd;
}

static void find_hierarchies(struct fleet *fleet)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096];

    if (!file)
        return;
    while (fgets(line, sizeof(line), file))
        add_hierarchy(fleet, line);
    fclose(file);
}

static bool move_to(int hierarchy, size_t container, pid_t pid)
{
    char path[128], text[16];
    int fd, len = snprintf(text, sizeof(text), "%d", pid);
    bool moved;

    container_path(container, path);
    strcat(path, "/cgroup.procs");
    fd = openat(hierarchy, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    moved = write(fd, text, (size_t)len) == len;
    close(fd);
    return moved;
}

static void make_containers(const struct fleet *fleet)
{
    for (size_t h = 0; h < fleet->hierarchy_count; h++) {
        mkdirat(fleet->hierarchies[h], "docker", 0755);
        for (size_t i = 0; i < CONTAINERS && !stop; i++) {
            char path[128];

            container_path(i, path);
            mkdirat(fleet->hierarchies[h], path, 0755);
        }
    }
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever happens to the bench */
    for (;;)
        pause();
}

/* Returns how many hierarchies took all of their processes. */
static size_t start_processes(struct fleet *fleet)
{
    bool takes[HIERARCHIES_MAX];
    size_t taking = 0;

    memset(takes, true, sizeof(takes));
    while (fleet->count < PROCESSES && !stop) {
        pid_t pid = start_sleeper();

        if (pid < 0)
            break;
        for (size_t h = 0; h < fleet->hierarchy_count; h++)
            takes[h] =
                takes[h] && move_to(fleet->hierarchies[h], fleet->count / PROCESSES_EACH, pid);
        fleet->pids[fleet->count++] = pid;
    }
    for (size_t h = 0; h < fleet->hierarchy_count; h++)
        taking += takes[h];
    return taking;
}

/* A cgroup may be busy for a moment after its last process was reaped. */
static void remove_cgroup(int hierarchy, const char *path)
{
    static const struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 1000; i++) {
        if (unlinkat(hierarchy, path, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        nanosleep(&moment, NULL);
    }
    fprintf(stderr, "process_scan: %s stays: %s\n", path, strerror(errno));
}

static void remove_fleet(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        kill(fleet->pids[i], SIGKILL);
    for (size_t i = 0; i < fleet->count; i++)
        waitpid(fleet->pids[i], NULL, 0);
    for (size_t h = 0; h < fleet->hierarchy_count; h++) {
        for (size_t i = 0; i < CONTAINERS; i++) {
            char path[128];

            container_path(i, path);
            remove_cgroup(fleet->hierarchies[h], path);
        }
        unlinkat(fleet->hierarchies[h], "docker", AT_REMOVEDIR); /* stays if it is Docker's */
        close(fleet->hierarchies[h]);
    }
}

static double cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void read_file(int procfs_fd, pid_t pid, const char *name)
{
    char path[32], text[PROC_CGROUP_BYTES];
    int fd;

    snprintf(path, sizeof(path), "%d/%s", pid, name);
    fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
        fprintf(stderr, "process_scan: cannot read %s: %s\n", path, strerror(errno));
    close(fd);
}

static void read_files(const struct fleet *fleet, int procfs_fd)
{
    for (size_t i = 0; i < fleet->count; i++) {
        read_file(procfs_fd, fleet->pids[i], "stat");
        read_file(procfs_fd, fleet->pids[i], "cgroup");
    }
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

static void scan(struct process_table *table, bool all)
{
    int r = process_table_scan(table, all, NULL, NULL);

    if (r < 0)
        fprintf(stderr, "process_scan: scan failed: %s\n", strerror(-r));
}

enum kind { BARE, FULL, STEADY, KINDS };

static void do_once(enum kind kind, const struct fleet *fleet, const struct host *host,
                    struct process_table *table)
{
    if (kind == BARE)
        read_files(fleet, host->procfs_fd);
    else
        scan(table, kind == FULL);
}

static void print_costs(double costs_us[static KINDS][ROUNDS], const struct process_table *table)
{
    double bare_us = median(costs_us[BARE]), full_us = median(costs_us[FULL]);
    double steady_us = median(costs_us[STEADY]);
    struct process_table_stats stats;

    process_table_get_stats(table, &stats);
    printf("%zu processes of %zu owners; a steady scan reads %zu files\n\n",
           (size_t)stats.processes, (size_t)stats.owners, (size_t)stats.files_read);
    printf("%-24s %10s %8s %8s\n", "", "CPU us", "ratio", "allowed");
    printf("%-24s %10.0f %8.2f\n", "bare: stat and cgroup", bare_us, 1.0);
    printf("%-24s %10.0f %8.2f %8s\n", "full rescan", full_us, full_us / bare_us, "2.5");
    printf("%-24s %10.0f %8.3f %8s\n", "steady scan", steady_us, steady_us / bare_us, "0.1");
}

/* In turn, so that what else the machine does falls on all kinds; each is done once before it is
 * timed, so that none pays for the caches that another one emptied. */
static int measure(const struct fleet *fleet, const struct host *host)
{
    double costs_us[KINDS][ROUNDS];
    struct process_table *table;
    int r = process_table_new(host, &table);

    if (r < 0)
        return r;
    for (int i = 0; i < SETTLING_SCANS; i++)
        scan(table, false);
    for (int i = 0; i < ROUNDS && !stop; i++)
        for (enum kind kind = BARE; kind < KINDS; kind++) {
            double begin_us;

            do_once(kind, fleet, host, table);
            begin_us = cpu_us();
            do_once(kind, fleet, host, table);
            costs_us[kind][i] = cpu_us() - begin_us;
        }
    if (!stop)
        print_costs(costs_us, table);
    process_table_free(table);
    return 0;
}

int main(void)
{
    static struct fleet fleet;
    struct sigaction action = {.sa_handler = ask_to_stop};
    struct host host;
    struct error err;
    size_t taking;
    int r = host_open("/proc", "/sys", "/", &host, &err);

    if (r < 0) {
        fprintf(stderr, "process_scan: %s\n", err.text);
        return 1;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    find_hierarchies(&fleet);
    make_containers(&fleet);
    taking = start_processes(&fleet);
    if (fleet.count == PROCESSES && taking > 0) {
        printf("%d processes in %d containers, in %zu of %zu hierarchies\n", PROCESSES, CONTAINERS,
               taking, fleet.hierarchy_count);
        r = measure(&fleet, &host);
    } else if (!stop) {
        fprintf(stderr, "process_scan: cannot make 500 cgroups and 2,000 processes; is this root, "
                        "and is a cgroup filesystem writable?\n");
        r = -EPERM;
    }
    remove_fleet(&fleet);
    host_close(&host);
    return r < 0 || stop ? 1 : 0;
}
