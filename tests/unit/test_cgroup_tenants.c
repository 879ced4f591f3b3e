/*
 * Impostors on this machine's own cgroups: whoever was given a directory and names a cgroup like
 * another's container, pod, job or VM is charged for it, and the victim is not. Needs root, and a
 * cgroup file system that may be written.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_rows.h"
#include "collector/source_set.h"
#include "core/fs.h"
#include "core/macros.h"
#include "host/proc.h"
#include "identity/identity.h"
#include "sources/cgroup/cgroups.h"
#include "sources/cgroup/reader.h"

enum { BURN_US = 20000, TENANT = 4711, PATH_BYTES = 512, MADE_MAX = 256 };

#define MAPPED_ROOT 100000

struct machine {
    struct host host;
    struct hierarchies hierarchies;
    struct cgroup_reader *reader;
    char top[64]; /* of all that is made here; a slice, so that units are found */
    char made[MADE_MAX][PATH_BYTES]; /* to be removed, the last one first */
    size_t made_count;
};

/* Makes it, and what is above, in every hierarchy. */
static void make(struct machine *machine, const char *path)
{
    char part[PATH_BYTES];

    for (size_t len = 1; len <= strlen(path); len++) {
        bool is_new = false;

        if (path[len] != '/' && path[len] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)len, path);
        for (size_t i = 0; i < machine->hierarchies.count; i++)
            if (mkdirat(machine->hierarchies.fds[i], part, 0755) == 0)
                is_new = true;
            else
                assert_int_equal(errno, EEXIST);
        if (is_new) {
            assert_true(machine->made_count < MADE_MAX);
            strcpy(machine->made[machine->made_count++], part);
        }
    }
}

static void give(const struct machine *machine, const char *path, uid_t uid)
{
    for (size_t i = 0; i < machine->hierarchies.count; i++)
        assert_int_equal(fchownat(machine->hierarchies.fds[i], path, uid, uid, 0), 0);
}

static const char *below(const struct machine *machine, const char *path, char *buffer)
{
    assert_true(snprintf(buffer, PATH_BYTES, "%s/%s", machine->top, path) < PATH_BYTES);
    return buffer;
}

static int set_up(void **state)
{
    struct machine *machine = calloc(1, sizeof(*machine));

    if (!machine || host_open("/proc", "/sys", "/", &machine->host, NULL) < 0 ||
        hierarchies_open(&machine->host, &machine->hierarchies) < 0)
        return -1;
    snprintf(machine->top, sizeof(machine->top), "wattributetest%d.slice", getpid());
    make(machine, machine->top);
    *state = machine;
    return cgroup_reader_new(&machine->host, source_set_classify_cgroup, &machine->reader);
}

static int tear_down(void **state)
{
    struct machine *machine = *state;

    while (machine->made_count > 0) {
        const char *path = machine->made[--machine->made_count];

        /* A cgroup may be busy for a moment after its last process was reaped. */
        for (size_t i = 0; i < machine->hierarchies.count; i++)
            while (unlinkat(machine->hierarchies.fds[i], path, AT_REMOVEDIR) < 0 && errno == EBUSY)
                sched_yield();
    }
    cgroup_reader_free(machine->reader);
    hierarchies_close(&machine->hierarchies);
    host_close(&machine->host);
    free(machine);
    return 0;
}

static void enter(const struct machine *machine, const char *path)
{
    char procs[PATH_BYTES + 16];

    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    for (size_t i = 0; i < machine->hierarchies.count; i++) {
        int fd = openat(machine->hierarchies.fds[i], procs, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || fs_write_all(fd, "0", 1) < 0)
            _exit(1);
        close(fd);
    }
}

static uint64_t thread_us(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * USEC_PER_SEC + (uint64_t)used.tv_nsec / 1000;
}

static void find_process_owner(const struct machine *machine, pid_t pid,
                               struct workload_owner *ret_owner)
{
    struct sample_process process;
    struct proc_reader reader;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, &machine->host);
    assert_int_equal(proc_identify(&reader, (uint32_t)pid, &arena, &process), 0);
    identity_find_owner(&process, ret_owner);
    arena_done(&arena);
}

/* A process of the tenant's works in this cgroup. Returns whom it belongs to. */
static void work_in(const struct machine *machine, const char *path, uid_t uid,
                    struct workload_owner *ret_owner)
{
    int inside[2], go[2], status;
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(inside, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t began_us;

        enter(machine, path);
        if (setuid(uid) < 0 || write(inside[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(1);
        began_us = thread_us();
        while (thread_us() < began_us + BURN_US)
            ;
        _exit(0);
    }
    close(inside[1]);
    assert_int_equal(read(inside[0], &byte, 1), 1);
    find_process_owner(machine, pid, ret_owner);
    assert_int_equal(write(go[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(inside[0]);
    close(go[0]);
    close(go[1]);
}

/* The CPU time of a row since the last report, without that of workloads inside. */
static uint64_t cpu_us_of(const struct machine *machine, const struct workload_owner *row)
{
    const struct usage_owner *items = machine->reader->items;
    size_t count = machine->reader->count;
    struct usage *did = calloc(count, sizeof(*did));
    uint64_t cpu_us = 0;
    struct arena arena;

    arena_init(&arena, 64 << 20);
    assert_non_null(did);
    assert_int_equal(usage_delta_compute(items, count, &arena, did), 0);
    for (size_t i = 0; i < count; i++)
        if (items[i].owner.kind == row->kind && strcmp(items[i].owner.id, row->id) == 0)
            cpu_us += usage_delta_cpu_us(&items[i], &did[i]);
    arena_done(&arena);
    free(did);
    return cpu_us;
}

static struct workload_owner row_of(enum workload_kind kind, const char *id)
{
    struct workload_owner row = {.kind = kind};

    snprintf(row.id, sizeof(row.id), "%s", id);
    return row;
}

#define POD     "kubepods/pod" U1
#define QEMU_VM "machine.slice/machine-qemu\\x2d2\\x2dvictim.scope"

static const struct {
    const char *path;
    enum workload_kind kind;
    const char *id;
    /* Of the same path below what a tenant was given: "" is the row around it. */
    enum workload_kind tenant_kind;
    const char *tenant_id;
} victims[] = {
    {"docker/" C1, WORKLOAD_CONTAINER, C1, WORKLOAD_CONTAINER, C1},
    {"docker-" C2 ".scope", WORKLOAD_CONTAINER, C2, WORKLOAD_CONTAINER, C2},
    {POD "/" C3, WORKLOAD_POD, C3, WORKLOAD_CONTAINER, C3},
    {"slurm/uid_0/job_7", WORKLOAD_SLURM, "7", WORKLOAD_UNIT, ""},
    {"slurmstepd.scope/job_8/step_0/user/task_0", WORKLOAD_SLURM, "8", WORKLOAD_UNIT, ""},
    {"lsf/cluster/job.9.1.2", WORKLOAD_LSF, "9", WORKLOAD_UNIT, ""},
    {"pbs_jobs.service/jobid/10.server", WORKLOAD_PBS, "10.server", WORKLOAD_UNIT, ""},
    {QEMU_VM, WORKLOAD_VM, "victim", WORKLOAD_UNIT, ""},
    {"qemu.slice/100.scope", WORKLOAD_VM, "100", WORKLOAD_UNIT, ""},
    {"lxc.payload.victim", WORKLOAD_LXC, "victim", WORKLOAD_LXC, "victim"},
    {"systemd-nspawn@victim.service", WORKLOAD_NSPAWN, "victim", WORKLOAD_NSPAWN, "victim"},
};

static const struct {
    const char *what, *path;
    uid_t given_to; /* 0: it stays root's */
    enum workload_kind kind;
    const char *id, *scope;
} points[] = {
    {"service with User= and Delegate=yes", "batch.service", TENANT, WORKLOAD_UNIT, "batch.service",
     "4711"},
    {"slot of an unknown scheduler", "batch/slot_17", TENANT, WORKLOAD_USER, "4711", "4711"},
    {"session", "user.slice/user-4711.slice/session-9.scope", TENANT, WORKLOAD_USER, "4711",
     "4711"},
    {"container of a user namespace", "docker/" C4, MAPPED_ROOT, WORKLOAD_CONTAINER, C4, C4},
};

/* Whoever works in victim `v`'s path below point `p`, or below the top, if there is no point. */
static void find_path(const struct machine *machine, size_t v, const char *point, char *path)
{
    char inside[PATH_BYTES];

    snprintf(inside, sizeof(inside), "%s%s%s", point, point[0] ? "/" : "", victims[v].path);
    below(machine, inside, path);
}

static void impersonate(struct machine *machine, size_t p, size_t v)
{
    struct workload_owner owner, around = row_of(points[p].kind, points[p].id), row = around;
    struct workload_owner victim = row_of(victims[v].kind, victims[v].id);
    bool is_container = points[p].kind == WORKLOAD_CONTAINER;
    uint64_t used_us, stolen_us;
    char path[PATH_BYTES];

    find_path(machine, v, points[p].path, path);
    make(machine, path);
    cgroup_reader_read(machine->reader, false);
    cgroup_reader_set_reported(machine->reader);
    work_in(machine, path, points[p].given_to, &owner);
    cgroup_reader_read(machine->reader, false);

    if (victims[v].tenant_id[0] &&
        (!is_container || victims[v].tenant_kind == WORKLOAD_CONTAINER)) {
        row.kind = victims[v].tenant_kind;
        snprintf(row.id, sizeof(row.id), "%s/%s", points[p].scope, victims[v].tenant_id);
    }
    if (owner.kind != row.kind || strcmp(owner.id, row.id) != 0)
        fail_msg("%s, %s: a process of %s %s, not of %s %s", points[p].what, path,
                 workload_words[owner.kind], owner.id, workload_words[row.kind], row.id);
    /* What is inside a container is counted with it. */
    used_us = cpu_us_of(machine, is_container ? &around : &row);
    stolen_us = cpu_us_of(machine, &victim);
    if (used_us < BURN_US || stolen_us != 0)
        fail_msg("%s, %s: %llu us in its row, %llu us in its victim's", points[p].what, path,
                 (unsigned long long)used_us, (unsigned long long)stolen_us);
}

static void an_impostor_is_charged_and_its_victim_is_not(void **state)
{
    struct machine *machine = *state;
    char path[PATH_BYTES];

    for (size_t v = 0; v < ARRAY_SIZE(victims); v++) {
        struct workload_owner owner, row = row_of(victims[v].kind, victims[v].id);

        find_path(machine, v, "", path);
        make(machine, path);
        cgroup_reader_read(machine->reader, false);
        cgroup_reader_set_reported(machine->reader);
        work_in(machine, path, 0, &owner);
        cgroup_reader_read(machine->reader, false);
        assert_int_equal(owner.kind, row.kind);
        assert_string_equal(owner.id, row.id);
        assert_true(cpu_us_of(machine, &row) >= BURN_US);
    }
    for (size_t p = 0; p < ARRAY_SIZE(points); p++) {
        make(machine, below(machine, points[p].path, path));
        give(machine, path, points[p].given_to);
        for (size_t v = 0; v < ARRAY_SIZE(victims); v++)
            impersonate(machine, p, v);
    }
}

/* systemd makes a unit's cgroup and gives it away a moment later. */
static void a_directory_that_is_given_away_later_is_noticed_with_the_next_cgroup_in_it(void **state)
{
    struct machine *machine = *state;
    struct workload_owner owner, victim = row_of(WORKLOAD_CONTAINER, C1);
    struct workload_owner impostor = row_of(WORKLOAD_CONTAINER, "4711/" C1);
    char path[PATH_BYTES];

    make(machine, below(machine, "late.service", path));
    cgroup_reader_read(machine->reader, false);
    give(machine, path, TENANT);
    make(machine, below(machine, "late.service/docker/" C1, path));
    cgroup_reader_read(machine->reader, false);
    cgroup_reader_set_reported(machine->reader);
    work_in(machine, path, TENANT, &owner);
    cgroup_reader_read(machine->reader, false);
    assert_string_equal(owner.id, impostor.id);
    assert_true(cpu_us_of(machine, &impostor) >= BURN_US);
    assert_int_equal(cpu_us_of(machine, &victim), 0);
}

static void a_slot_that_is_given_away_is_its_users_from_the_next_rescan_on(void **state)
{
    struct machine *machine = *state;
    struct workload_owner owner, user = row_of(WORKLOAD_USER, "4711");
    char path[PATH_BYTES];

    make(machine, below(machine, "batch/slot_18", path));
    cgroup_reader_read(machine->reader, false);
    give(machine, path, TENANT);
    cgroup_reader_read(machine->reader, true);
    cgroup_reader_set_reported(machine->reader);
    work_in(machine, path, 0, &owner); /* whoever works there */
    cgroup_reader_read(machine->reader, false);
    assert_int_equal(owner.kind, WORKLOAD_USER);
    assert_string_equal(owner.id, "4711");
    assert_true(cpu_us_of(machine, &user) >= BURN_US);

    /* And taken back. */
    give(machine, path, 0);
    cgroup_reader_read(machine->reader, true);
    cgroup_reader_set_reported(machine->reader);
    work_in(machine, path, 0, &owner);
    cgroup_reader_read(machine->reader, true);
    assert_int_equal(owner.kind, WORKLOAD_SYSTEM);
    assert_int_equal(cpu_us_of(machine, &user), 0);
}

/* May cgroups be made here? Where CI is set it fails instead: nothing may go untested there. */
static bool is_possible(void)
{
    struct hierarchies hierarchies;
    struct host host;
    bool writable = geteuid() == 0 && host_open("/proc", "/sys", "/", &host, NULL) == 0;

    if (!writable || hierarchies_open(&host, &hierarchies) < 0)
        return false;
    for (size_t i = 0; i < hierarchies.count; i++)
        writable &= faccessat(hierarchies.fds[i], ".", W_OK, 0) == 0;
    hierarchies_close(&hierarchies);
    host_close(&host);
    return writable;
}

int main(void)
{
    enum { SKIPPED = 77 };
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_impostor_is_charged_and_its_victim_is_not),
        TEST(a_directory_that_is_given_away_later_is_noticed_with_the_next_cgroup_in_it),
        TEST(a_slot_that_is_given_away_is_its_users_from_the_next_rescan_on),
    };

    if (!getenv("CI") && !is_possible()) {
        puts("skipped: making cgroups needs root and a writable cgroup file system");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
