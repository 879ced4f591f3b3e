/* identity/process/table: the owner of each process, with as few reads as possible. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/proc.h"
#include "identity/process_table.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define IN_A "0::/docker/" ID_A "\n"
#define IN_B "0::/docker/" ID_B "\n"
#define JOB  "4:memory:/slurm/uid_1000/job_42/step_0/task_0\n"

/* A procfs made of ordinary files, and a table over it. */
struct fixture {
    char path[40];
    struct host host;
    struct process_table *table;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture)
        return -1;
    strcpy(fixture->path, "/tmp/test_process_table.XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    fixture->host =
        (struct host){.procfs_fd = open(fixture->path, O_PATH | O_DIRECTORY | O_CLOEXEC),
                      .sysfs_fd = -1,
                      .rootfs_fd = -1};
    *state = fixture;
    return process_table_new(&fixture->host, &fixture->table);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    process_table_free(fixture->table);
    host_close(&fixture->host);
    nftw(fixture->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static void put(const struct fixture *fixture, const char *name, const char *file, const char *text,
                size_t len)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", name, file);
    file_write_at(fixture->host.procfs_fd, path, text, len);
}

static void put_cgroup(const struct fixture *fixture, uint32_t pid, const char *cgroup)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", pid);
    put(fixture, name, "cgroup", cgroup, strlen(cgroup));
}

static void put_process(const struct fixture *fixture, const char *name, uint32_t uid,
                        const char *cgroup)
{
    char text[256];
    int len;

    assert_int_equal(mkdirat(fixture->host.procfs_fd, name, 0700), 0);
    len = snprintf(text, sizeof(text), "Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
    put(fixture, name, "status", text, (size_t)len);
    put(fixture, name, "cgroup", cgroup, strlen(cgroup));
}

static void start(const struct fixture *fixture, uint32_t pid, uint32_t uid, const char *cgroup)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", pid);
    put_process(fixture, name, uid, cgroup);
}

static void end(const struct fixture *fixture, uint32_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%u", fixture->path, pid);
    assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The new directory is made before the old one goes: so it has another inode, as in procfs. */
static void reuse(const struct fixture *fixture, uint32_t pid, uint32_t uid, const char *cgroup)
{
    char name[16];

    put_process(fixture, "next", uid, cgroup);
    end(fixture, pid);
    snprintf(name, sizeof(name), "%u", pid);
    assert_int_equal(renameat(fixture->host.procfs_fd, "next", fixture->host.procfs_fd, name), 0);
}

static struct process_table_stats scan(struct fixture *fixture)
{
    struct process_table_stats stats;

    assert_int_equal(process_table_scan(fixture->table, false, NULL, NULL), 0);
    process_table_get_stats(fixture->table, &stats);
    return stats;
}

/* The owner of this pid; NULL if it has none. */
static const struct process_table_owner *find_owner(const struct process_table *table, uint32_t pid)
{
    const struct process_table_owner *owner;

    for (size_t i = 0; (owner = process_table_owner_at(table, i)); i++)
        for (uint32_t at = 0; (at = process_table_next_pid(table, owner, at)) != 0;)
            if (at == pid)
                return owner;
    return NULL;
}

static void assert_owner(const struct fixture *fixture, uint32_t pid, enum workload_kind kind,
                         const char *id)
{
    const struct process_table_owner *owner = find_owner(fixture->table, pid);

    assert_non_null(owner);
    assert_int_equal(owner->owner.kind, kind);
    if (id)
        assert_string_equal(owner->owner.id, id);
}

static void assert_container(const struct fixture *fixture, uint32_t pid, const char *id)
{
    const struct process_table_owner *owner = find_owner(fixture->table, pid);

    assert_non_null(owner);
    assert_int_equal(owner->owner.kind, WORKLOAD_CONTAINER);
    assert_string_equal(owner->owner.container_id, id);
}

static void every_process_has_an_owner_by_its_cgroups_and_user(void **state)
{
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    start(fixture, 2, 0, "0::/\n");
    start(fixture, 1000, 1001, "0::/\n");
    start(fixture, 9, 0, IN_A);
    start(fixture, 10, 1001, IN_A);
    start(fixture, 77, 1001, IN_B);
    assert_int_equal(mkdirat(fixture->host.procfs_fd, "sys", 0700), 0);
    assert_int_equal(mkdirat(fixture->host.procfs_fd, "12x", 0700), 0);
    assert_int_equal(mkdirat(fixture->host.procfs_fd, "99999999999", 0700), 0);
    stats = scan(fixture);
    assert_int_equal(stats.processes, 5);
    assert_int_equal(stats.owners, 4);
    assert_owner(fixture, 2, WORKLOAD_SYSTEM, NULL);
    assert_owner(fixture, 1000, WORKLOAD_USER, NULL);
    assert_container(fixture, 9, ID_A);
    assert_ptr_equal(find_owner(fixture->table, 9), find_owner(fixture->table, 10));
    assert_int_equal(find_owner(fixture->table, 9)->count, 2);
    assert_container(fixture, 77, ID_B);
    assert_null(find_owner(fixture->table, 78));
    /* cgroup of each, and status where the cgroup names no owner */
    assert_int_equal(stats.files_read, 5 + 2);
}

static void a_process_that_did_not_change_is_left_alone_but_for_its_turn(void **state)
{
    enum { COUNT = 119, TURNS = 119 / 60 + 1 };
    struct fixture *fixture = *state;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(fixture, pid, 0, IN_A);
    assert_int_equal(scan(fixture).files_read, COUNT);
    /* The next two read again those that were new. */
    assert_int_equal(scan(fixture).files_read, COUNT);
    assert_int_equal(scan(fixture).files_read, COUNT);
    for (int i = 0; i < 200; i++) {
        uint64_t files = scan(fixture).files_read;

        assert_true(files <= TURNS);
    }
}

static void everyones_turn_comes_about_every_sixty_scans(void **state)
{
    enum { COUNT = 119 };
    struct fixture *fixture = *state;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(fixture, pid, 0, IN_A);
    for (int i = 0; i < 10; i++)
        scan(fixture);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        put_cgroup(fixture, pid, IN_B);
    for (int i = 0; i < 61; i++)
        scan(fixture);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        assert_container(fixture, pid, ID_B);
    assert_int_equal(scan(fixture).owners, 1);
}

static void a_new_process_that_moves_is_noticed_at_the_next_scan(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t pid = 100; pid < 300; pid++) /* so that it is not its turn by chance */
        start(fixture, pid, 0, IN_A);
    for (int i = 0; i < 4; i++)
        scan(fixture);
    start(fixture, 50, 0, "0::/\n");
    scan(fixture);
    assert_owner(fixture, 50, WORKLOAD_SYSTEM, NULL);
    put_cgroup(fixture, 50, IN_B);
    scan(fixture);
    assert_container(fixture, 50, ID_B);
    put_cgroup(fixture, 50, IN_A);
    scan(fixture);
    assert_container(fixture, 50, ID_A);
    assert_int_equal(find_owner(fixture->table, 50)->count, 201);
}

static void processes_and_owners_that_are_gone_are_forgotten(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 5, 0, IN_A);
    start(fixture, 6, 0, IN_A);
    start(fixture, 7, 0, IN_B);
    scan(fixture);
    assert_int_equal(find_owner(fixture->table, 6)->pid, 5);
    end(fixture, 5);
    end(fixture, 7);
    scan(fixture);
    assert_null(find_owner(fixture->table, 5));
    assert_null(find_owner(fixture->table, 7));
    /* What is left of A names a process that lives. */
    assert_int_equal(find_owner(fixture->table, 6)->pid, 6);
    assert_int_equal(find_owner(fixture->table, 6)->count, 1);
    assert_ptr_equal(process_table_owner_at(fixture->table, 0), find_owner(fixture->table, 6));
    assert_null(process_table_owner_at(fixture->table, 1));
    end(fixture, 6);
    assert_int_equal(scan(fixture).processes, 0);
    assert_null(process_table_owner_at(fixture->table, 0));
}

static void a_reused_pid_is_another_process(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t pid = 100; pid < 300; pid++)
        start(fixture, pid, 0, IN_A);
    start(fixture, 50, 0, IN_A);
    for (int i = 0; i < 5; i++)
        scan(fixture);
    reuse(fixture, 50, 0, IN_B);
    scan(fixture);
    assert_container(fixture, 50, ID_B);
    assert_int_equal(find_owner(fixture->table, 50)->count, 1);
    assert_int_equal(find_owner(fixture->table, 100)->count, 200);
    assert_in_range(find_owner(fixture->table, 100)->pid, 100, 299);
}

static void a_process_that_dies_while_it_is_read_is_skipped(void **state)
{
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    start(fixture, 5, 0, IN_A);
    assert_int_equal(mkdirat(fixture->host.procfs_fd, "6", 0700), 0);
    put(fixture, ".", "7", "", 0);
    start(fixture, 8, 0, IN_A);
    scan(fixture);
    assert_int_equal(unlinkat(fixture->host.procfs_fd, "8/cgroup", 0), 0);
    stats = scan(fixture);
    assert_int_equal(stats.processes, 1);
    assert_int_equal(stats.unread, 0);
    assert_null(find_owner(fixture->table, 6));
    assert_null(find_owner(fixture->table, 8));
    assert_int_equal(find_owner(fixture->table, 5)->count, 1);
}

static void a_process_that_cannot_be_read_is_kept_without_an_owner(void **state)
{
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    start(fixture, 5, 0, IN_A);
    scan(fixture);
    /* Also root cannot read a directory. */
    assert_int_equal(unlinkat(fixture->host.procfs_fd, "5/cgroup", 0), 0);
    assert_int_equal(mkdirat(fixture->host.procfs_fd, "5/cgroup", 0700), 0);
    stats = scan(fixture);
    assert_int_equal(stats.processes, 1);
    assert_int_equal(stats.unread, 1);
    assert_int_equal(stats.owners, 0);
    assert_null(find_owner(fixture->table, 5));
    assert_int_equal(unlinkat(fixture->host.procfs_fd, "5/cgroup", AT_REMOVEDIR), 0);
    put_cgroup(fixture, 5, IN_B);
    assert_int_equal(scan(fixture).unread, 0);
    assert_container(fixture, 5, ID_B);
}

static void garbage_is_the_users(void **state)
{
    static const char garbage[] = "\0\xff garbage\n:::\nno colons\n";
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    start(fixture, 5, 1001, IN_A);
    put(fixture, "5", "cgroup", garbage, sizeof(garbage) - 1);
    start(fixture, 6, 1001, "");
    start(fixture, 7, 0, "");
    put(fixture, "7", "status", garbage, sizeof(garbage) - 1);
    stats = scan(fixture);
    assert_int_equal(stats.processes, 3);
    assert_owner(fixture, 5, WORKLOAD_USER, NULL);
    assert_owner(fixture, 6, WORKLOAD_USER, NULL);
    assert_non_null(find_owner(fixture->table, 7));
}

static void a_cgroup_text_is_read_whole_up_to_64_kib(void **state)
{
    struct fixture *fixture = *state;
    char *text = malloc(PROC_CGROUP_BYTES);
    size_t fill = PROC_CGROUP_BYTES - 1 - strlen(IN_A);

    assert_non_null(text);
    for (size_t i = 0; i < fill; i++)
        text[i] = i % 64 == 63 || i + 1 == fill ? '\n' : 'x';
    memcpy(text + fill, IN_A, strlen(IN_A));
    start(fixture, 5, 0, "");
    put(fixture, "5", "cgroup", text, PROC_CGROUP_BYTES - 1);
    assert_int_equal(scan(fixture).unread, 0);
    assert_container(fixture, 5, ID_A);
    text[PROC_CGROUP_BYTES - 1] = '\n'; /* one byte more */
    start(fixture, 6, 0, "");
    put(fixture, "6", "cgroup", text, PROC_CGROUP_BYTES);
    assert_int_equal(scan(fixture).unread, 1);
    assert_null(find_owner(fixture->table, 6));
    free(text);
}

static void what_is_beyond_the_caps_is_counted_and_not_kept(void **state)
{
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    start(fixture, 5, 0, IN_A);
    start(fixture, 6, 0, IN_A);
    start(fixture, 7, 0, IN_B);
    start(fixture, 8, 0, IN_B);
    process_table_set_caps(fixture->table, 10, 1);
    stats = scan(fixture);
    assert_int_equal(stats.owners, 1);
    assert_int_equal(stats.left_out, 2);
    assert_int_equal(stats.unread, 0);
    assert_container(fixture, 5, ID_A);
    assert_null(find_owner(fixture->table, 7));
    process_table_set_caps(fixture->table, 10, 2);
    assert_int_equal(scan(fixture).left_out, 0);
    assert_container(fixture, 7, ID_B);
    process_table_set_caps(fixture->table, 3, 2);
    stats = scan(fixture);
    assert_int_equal(stats.processes, 3);
    assert_int_equal(stats.left_out, 1);
}

struct seen {
    size_t count;
    const struct process_table_owner *last;
    uint32_t last_count, last_pid;
};

static void see(void *context, const struct process_table_owner *owner)
{
    struct seen *seen = context;

    seen->count++;
    seen->last = owner;
    seen->last_count = owner->count;
    seen->last_pid = owner->pid;
}

static void an_owner_appears_once_for_as_long_as_it_has_processes(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {0};

    start(fixture, 5, 0, IN_A);
    start(fixture, 6, 0, IN_A);
    process_table_scan(fixture->table, false, see, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last_count, 2); /* the scan is done */
    assert_int_equal(seen.last_pid, 5);
    assert_ptr_equal(seen.last, find_owner(fixture->table, 5));
    reuse(fixture, 5, 0, IN_A);
    end(fixture, 6);
    process_table_scan(fixture->table, true, see, &seen);
    process_table_scan(fixture->table, false, see, &seen);
    assert_int_equal(seen.count, 1);
    start(fixture, 9, 0, IN_B);
    process_table_scan(fixture->table, false, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.last_pid, 9);
    end(fixture, 9);
    process_table_scan(fixture->table, false, see, &seen);
    start(fixture, 9, 0, IN_B);
    process_table_scan(fixture->table, false, see, &seen);
    assert_int_equal(seen.count, 3);
}

static void a_scan_of_all_reads_every_process(void **state)
{
    enum { COUNT = 100 };
    struct fixture *fixture = *state;
    struct process_table_stats stats;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(fixture, pid, 0, pid % 2 ? IN_A : IN_B);
    for (int i = 0; i < 5; i++)
        scan(fixture);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        put_cgroup(fixture, pid, pid % 2 ? IN_B : IN_A);
    assert_int_equal(process_table_scan(fixture->table, true, NULL, NULL), 0);
    process_table_get_stats(fixture->table, &stats);
    assert_int_equal(stats.files_read, COUNT);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        assert_container(fixture, pid, pid % 2 ? ID_B : ID_A);
    assert_int_equal(find_owner(fixture->table, 1)->count, COUNT / 2);
    assert_true(scan(fixture).files_read <= COUNT / 60 + 1); /* that made no process new */
}

static void a_job_has_its_users_uid_and_not_slurms(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 5, 0, JOB);
    scan(fixture);
    assert_owner(fixture, 5, WORKLOAD_SLURM, NULL);
    assert_int_equal(find_owner(fixture->table, 5)->uid, 0);
    start(fixture, 6, 1000, JOB);
    start(fixture, 7, 1000, JOB);
    scan(fixture);
    assert_int_equal(find_owner(fixture->table, 5)->uid, 1000);
    assert_int_equal(find_owner(fixture->table, 5)->pid, 6);
    for (int i = 0; i < 4; i++)
        scan(fixture);
    assert_int_equal(find_owner(fixture->table, 5)->pid, 6);
    end(fixture, 6);
    scan(fixture);
    assert_int_equal(find_owner(fixture->table, 5)->uid, 1000);
    assert_int_equal(find_owner(fixture->table, 5)->count, 2);
}

static void a_text_that_depends_on_the_user_is_each_users_own(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 5, 1001, "0::/\n");
    start(fixture, 6, 1002, "0::/\n");
    start(fixture, 7, 0, "0::/\n");
    start(fixture, 8, 1001, "0::/\n");
    assert_int_equal(scan(fixture).owners, 3);
    assert_int_equal(find_owner(fixture->table, 5)->count, 2);
    assert_ptr_equal(find_owner(fixture->table, 5), find_owner(fixture->table, 8));
    end(fixture, 5);
    end(fixture, 8);
    assert_int_equal(scan(fixture).owners, 2);
    put(fixture, "6", "status", "Uid:\t1003\t0\t0\t0\n", 15);
    scan(fixture);
    assert_owner(fixture, 6, WORKLOAD_USER, NULL);
    assert_int_equal(scan(fixture).owners, 2);
}

static void processes_outside_of_our_cgroup_namespace_are_counted(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 5, 0, "0::/../outer\n");
    start(fixture, 6, 0, "0::/../outer\n");
    start(fixture, 7, 0, IN_A);
    assert_int_equal(scan(fixture).outside, 2);
    assert_int_equal(scan(fixture).outside, 2);
    end(fixture, 5);
    assert_int_equal(scan(fixture).outside, 1);
}

static void what_was_known_stays_when_the_directory_cannot_be_read(void **state)
{
    struct fixture *fixture = *state;
    int procfs_fd = fixture->host.procfs_fd;
    struct process_table_stats stats;

    start(fixture, 5, 0, IN_A);
    scan(fixture);
    fixture->host.procfs_fd = open("/dev/null", O_PATH | O_CLOEXEC);
    assert_int_equal(process_table_scan(fixture->table, true, NULL, NULL), -ENOTDIR);
    close(fixture->host.procfs_fd);
    fixture->host.procfs_fd = procfs_fd;
    assert_container(fixture, 5, ID_A);
    process_table_get_stats(fixture->table, &stats);
    assert_int_equal(stats.processes, 1);
}

static uint32_t next_random(uint32_t *seed)
{
    return *seed = *seed * 1664525 + 1013904223;
}

/* Starts, ends or moves the process, by chance. */
static void change(struct fixture *fixture, uint32_t pid, bool *lives, uint32_t random)
{
    char cgroup[128];

    snprintf(cgroup, sizeof(cgroup), "0::/docker/%064x\n", random >> 16 & 7);
    if (!*lives)
        start(fixture, pid, 0, cgroup);
    else if (random >> 24 & 1)
        put_cgroup(fixture, pid, cgroup);
    else
        end(fixture, pid);
    *lives = !*lives || (random >> 24 & 1);
}

static void assert_same(const struct process_table *a, const struct process_table *b, uint32_t pid)
{
    const struct process_table_owner *x = find_owner(a, pid), *y = find_owner(b, pid);

    assert_int_equal(!x, !y);
    if (!x)
        return;
    assert_string_equal(x->owner.id, y->owner.id);
    assert_int_equal(x->count, y->count);
    assert_ptr_equal(find_owner(a, x->pid), x);
}

static void after_any_changes_a_table_equals_a_new_one(void **state)
{
    enum { PIDS = 32 };
    struct fixture *fixture = *state;
    bool lives[PIDS] = {false};
    uint32_t seed = 1;

    for (int round = 0; round < 100; round++) {
        struct process_table_stats stats, fresh_stats;
        struct process_table *fresh;

        for (int i = 0; i < 10; i++) {
            uint32_t random = next_random(&seed), pid = random >> 8 & 31;

            change(fixture, pid + 1, &lives[pid], next_random(&seed));
        }
        assert_int_equal(process_table_new(&fixture->host, &fresh), 0);
        assert_int_equal(process_table_scan(fresh, false, NULL, NULL), 0);
        assert_int_equal(process_table_scan(fixture->table, true, NULL, NULL), 0);
        process_table_get_stats(fixture->table, &stats);
        process_table_get_stats(fresh, &fresh_stats);
        assert_int_equal(stats.processes, fresh_stats.processes);
        assert_int_equal(stats.owners, fresh_stats.owners);
        for (uint32_t pid = 1; pid <= PIDS; pid++)
            assert_same(fixture->table, fresh, pid);
        process_table_free(fresh);
    }
}

/* Against this node's own procfs. */
static void a_child_has_the_owner_that_we_have_and_is_not_read_again(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1};
    struct process_table_stats first, steady;
    struct process_table *table;
    pid_t child;

    (void)state;
    assert_int_equal(process_table_new(&host, &table), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_int_equal(process_table_scan(table, false, NULL, NULL), 0);
    process_table_get_stats(table, &first);
    assert_non_null(find_owner(table, (uint32_t)getpid()));
    assert_ptr_equal(find_owner(table, (uint32_t)child), find_owner(table, (uint32_t)getpid()));
    assert_true(first.files_read >= first.processes);
    for (int i = 0; i < 3; i++)
        assert_int_equal(process_table_scan(table, false, NULL, NULL), 0);
    process_table_get_stats(table, &steady);
    assert_non_null(find_owner(table, (uint32_t)child));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_table_scan(table, false, NULL, NULL), 0);
    assert_null(find_owner(table, (uint32_t)child));
    /* Others come and go meanwhile, but not most of them. */
    assert_true(steady.files_read < first.files_read / 2);
    process_table_free(table);
    host_close(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_process_has_an_owner_by_its_cgroups_and_user, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_process_that_did_not_change_is_left_alone_but_for_its_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(everyones_turn_comes_about_every_sixty_scans, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_new_process_that_moves_is_noticed_at_the_next_scan,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_and_owners_that_are_gone_are_forgotten, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reused_pid_is_another_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_dies_while_it_is_read_is_skipped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_cannot_be_read_is_kept_without_an_owner,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbage_is_the_users, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cgroup_text_is_read_whole_up_to_64_kib, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_beyond_the_caps_is_counted_and_not_kept, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_owner_appears_once_for_as_long_as_it_has_processes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_scan_of_all_reads_every_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_has_its_users_uid_and_not_slurms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_text_that_depends_on_the_user_is_each_users_own, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(processes_outside_of_our_cgroup_namespace_are_counted,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_known_stays_when_the_directory_cannot_be_read,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_any_changes_a_table_equals_a_new_one, set_up,
                                        tear_down),
        cmocka_unit_test(a_child_has_the_owner_that_we_have_and_is_not_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
