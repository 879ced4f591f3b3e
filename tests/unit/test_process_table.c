/* identity/process/table: the owner of each process, with as few reads as possible. */
#include "file_fixture.h"
#include "node_fixture.h"

#include <errno.h>
#include <fcntl.h>
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

static void put(const struct node *node, const char *name, const char *file, const char *text,
                size_t len)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", name, file);
    file_write_at(node->host.procfs_fd, path, text, len);
}

static void put_cgroup(const struct node *node, uint32_t pid, const char *cgroup)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", pid);
    put(node, name, "cgroup", cgroup, strlen(cgroup));
}

static void put_process(const struct node *node, const char *name, uint32_t uid, const char *cgroup)
{
    char text[256];
    int len;

    assert_int_equal(mkdirat(node->host.procfs_fd, name, 0700), 0);
    len = snprintf(text, sizeof(text), "Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
    put(node, name, "status", text, (size_t)len);
    put(node, name, "cgroup", cgroup, strlen(cgroup));
}

static void start(const struct node *node, uint32_t pid, uint32_t uid, const char *cgroup)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", pid);
    put_process(node, name, uid, cgroup);
}

static void end(const struct node *node, uint32_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%u", pid);
    tree_remove(node->path, path);
}

/* The new directory is made before the old one goes: so it has another inode, as in procfs. */
static void reuse(const struct node *node, uint32_t pid, uint32_t uid, const char *cgroup)
{
    char name[16];

    put_process(node, "next", uid, cgroup);
    end(node, pid);
    snprintf(name, sizeof(name), "%u", pid);
    assert_int_equal(renameat(node->host.procfs_fd, "next", node->host.procfs_fd, name), 0);
}

static struct process_table_stats scan(struct node *node)
{
    struct process_table_stats stats;

    assert_int_equal(process_table_scan(node->table, false, NULL, NULL), 0);
    process_table_get_stats(node->table, &stats);
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

static void assert_owner(const struct node *node, uint32_t pid, enum workload_kind kind,
                         const char *id)
{
    const struct process_table_owner *owner = find_owner(node->table, pid);

    assert_non_null(owner);
    assert_int_equal(owner->owner.kind, kind);
    if (id)
        assert_string_equal(owner->owner.id, id);
}

static void assert_container(const struct node *node, uint32_t pid, const char *id)
{
    const struct process_table_owner *owner = find_owner(node->table, pid);

    assert_non_null(owner);
    assert_int_equal(owner->owner.kind, WORKLOAD_CONTAINER);
    assert_string_equal(owner->owner.container_id, id);
}

static void every_process_has_an_owner_by_its_cgroups_and_user(void **state)
{
    struct node *node = *state;
    struct process_table_stats stats;

    start(node, 2, 0, "0::/\n");
    start(node, 1000, 1001, "0::/\n");
    start(node, 9, 0, IN_A);
    start(node, 10, 1001, IN_A);
    start(node, 77, 1001, IN_B);
    assert_int_equal(mkdirat(node->host.procfs_fd, "sys", 0700), 0);
    assert_int_equal(mkdirat(node->host.procfs_fd, "12x", 0700), 0);
    assert_int_equal(mkdirat(node->host.procfs_fd, "99999999999", 0700), 0);
    stats = scan(node);
    assert_int_equal(stats.processes, 5);
    assert_int_equal(stats.owners, 4);
    assert_owner(node, 2, WORKLOAD_SYSTEM, NULL);
    assert_owner(node, 1000, WORKLOAD_USER, NULL);
    assert_container(node, 9, ID_A);
    assert_ptr_equal(find_owner(node->table, 9), find_owner(node->table, 10));
    assert_int_equal(find_owner(node->table, 9)->count, 2);
    assert_container(node, 77, ID_B);
    assert_null(find_owner(node->table, 78));
    /* cgroup of each, and status where the cgroup names no owner */
    assert_int_equal(stats.files_read, 5 + 2);
}

static void a_process_that_did_not_change_is_left_alone_but_for_its_turn(void **state)
{
    enum { COUNT = 119, TURNS = 119 / 60 + 1 };
    struct node *node = *state;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(node, pid, 0, IN_A);
    assert_int_equal(scan(node).files_read, COUNT);
    /* The next two read again those that were new. */
    assert_int_equal(scan(node).files_read, COUNT);
    assert_int_equal(scan(node).files_read, COUNT);
    for (int i = 0; i < 200; i++) {
        uint64_t files = scan(node).files_read;

        assert_true(files <= TURNS);
    }
}

static void everyones_turn_comes_about_every_sixty_scans(void **state)
{
    enum { COUNT = 119 };
    struct node *node = *state;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(node, pid, 0, IN_A);
    for (int i = 0; i < 10; i++)
        scan(node);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        put_cgroup(node, pid, IN_B);
    for (int i = 0; i < 61; i++)
        scan(node);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        assert_container(node, pid, ID_B);
    assert_int_equal(scan(node).owners, 1);
}

static void a_new_process_that_moves_is_noticed_at_the_next_scan(void **state)
{
    struct node *node = *state;

    for (uint32_t pid = 100; pid < 300; pid++) /* so that it is not its turn by chance */
        start(node, pid, 0, IN_A);
    for (int i = 0; i < 4; i++)
        scan(node);
    start(node, 50, 0, "0::/\n");
    scan(node);
    assert_owner(node, 50, WORKLOAD_SYSTEM, NULL);
    put_cgroup(node, 50, IN_B);
    scan(node);
    assert_container(node, 50, ID_B);
    put_cgroup(node, 50, IN_A);
    scan(node);
    assert_container(node, 50, ID_A);
    assert_int_equal(find_owner(node->table, 50)->count, 201);
}

static void processes_and_owners_that_are_gone_are_forgotten(void **state)
{
    struct node *node = *state;

    start(node, 5, 0, IN_A);
    start(node, 6, 0, IN_A);
    start(node, 7, 0, IN_B);
    scan(node);
    assert_int_equal(find_owner(node->table, 6)->pid, 5);
    end(node, 5);
    end(node, 7);
    scan(node);
    assert_null(find_owner(node->table, 5));
    assert_null(find_owner(node->table, 7));
    /* What is left of A names a process that lives. */
    assert_int_equal(find_owner(node->table, 6)->pid, 6);
    assert_int_equal(find_owner(node->table, 6)->count, 1);
    assert_ptr_equal(process_table_owner_at(node->table, 0), find_owner(node->table, 6));
    assert_null(process_table_owner_at(node->table, 1));
    end(node, 6);
    assert_int_equal(scan(node).processes, 0);
    assert_null(process_table_owner_at(node->table, 0));
}

static void a_reused_pid_is_another_process(void **state)
{
    struct node *node = *state;

    for (uint32_t pid = 100; pid < 300; pid++)
        start(node, pid, 0, IN_A);
    start(node, 50, 0, IN_A);
    for (int i = 0; i < 5; i++)
        scan(node);
    reuse(node, 50, 0, IN_B);
    scan(node);
    assert_container(node, 50, ID_B);
    assert_int_equal(find_owner(node->table, 50)->count, 1);
    assert_int_equal(find_owner(node->table, 100)->count, 200);
    assert_in_range(find_owner(node->table, 100)->pid, 100, 299);
}

static void a_process_that_dies_while_it_is_read_is_skipped(void **state)
{
    struct node *node = *state;
    struct process_table_stats stats;

    start(node, 5, 0, IN_A);
    assert_int_equal(mkdirat(node->host.procfs_fd, "6", 0700), 0);
    put(node, ".", "7", "", 0);
    start(node, 8, 0, IN_A);
    scan(node);
    assert_int_equal(unlinkat(node->host.procfs_fd, "8/cgroup", 0), 0);
    stats = scan(node);
    assert_int_equal(stats.processes, 1);
    assert_int_equal(stats.unread, 0);
    assert_null(find_owner(node->table, 6));
    assert_null(find_owner(node->table, 8));
    assert_int_equal(find_owner(node->table, 5)->count, 1);
}

static void a_process_that_cannot_be_read_is_kept_without_an_owner(void **state)
{
    struct node *node = *state;
    struct process_table_stats stats;

    start(node, 5, 0, IN_A);
    scan(node);
    /* Also root cannot read a directory. */
    assert_int_equal(unlinkat(node->host.procfs_fd, "5/cgroup", 0), 0);
    assert_int_equal(mkdirat(node->host.procfs_fd, "5/cgroup", 0700), 0);
    stats = scan(node);
    assert_int_equal(stats.processes, 1);
    assert_int_equal(stats.unread, 1);
    assert_int_equal(stats.owners, 0);
    assert_null(find_owner(node->table, 5));
    assert_int_equal(unlinkat(node->host.procfs_fd, "5/cgroup", AT_REMOVEDIR), 0);
    put_cgroup(node, 5, IN_B);
    assert_int_equal(scan(node).unread, 0);
    assert_container(node, 5, ID_B);
}

static void garbage_is_the_users(void **state)
{
    static const char garbage[] = "\0\xff garbage\n:::\nno colons\n";
    struct node *node = *state;
    struct process_table_stats stats;

    start(node, 5, 1001, IN_A);
    put(node, "5", "cgroup", garbage, sizeof(garbage) - 1);
    start(node, 6, 1001, "");
    start(node, 7, 0, "");
    put(node, "7", "status", garbage, sizeof(garbage) - 1);
    stats = scan(node);
    assert_int_equal(stats.processes, 3);
    assert_owner(node, 5, WORKLOAD_USER, NULL);
    assert_owner(node, 6, WORKLOAD_USER, NULL);
    assert_non_null(find_owner(node->table, 7));
}

static void a_cgroup_text_is_read_whole_up_to_64_kib(void **state)
{
    struct node *node = *state;
    char *text = malloc(PROC_CGROUP_BYTES);
    size_t fill = PROC_CGROUP_BYTES - 1 - strlen(IN_A);

    assert_non_null(text);
    for (size_t i = 0; i < fill; i++)
        text[i] = i % 64 == 63 || i + 1 == fill ? '\n' : 'x';
    memcpy(text + fill, IN_A, strlen(IN_A));
    start(node, 5, 0, "");
    put(node, "5", "cgroup", text, PROC_CGROUP_BYTES - 1);
    assert_int_equal(scan(node).unread, 0);
    assert_container(node, 5, ID_A);
    text[PROC_CGROUP_BYTES - 1] = '\n'; /* one byte more */
    start(node, 6, 0, "");
    put(node, "6", "cgroup", text, PROC_CGROUP_BYTES);
    assert_int_equal(scan(node).unread, 1);
    assert_null(find_owner(node->table, 6));
    free(text);
}

static void what_is_beyond_the_caps_is_counted_and_not_kept(void **state)
{
    struct node *node = *state;
    struct process_table_stats stats;

    start(node, 5, 0, IN_A);
    start(node, 6, 0, IN_A);
    start(node, 7, 0, IN_B);
    start(node, 8, 0, IN_B);
    process_table_set_caps(node->table, 10, 1);
    stats = scan(node);
    assert_int_equal(stats.owners, 1);
    assert_int_equal(stats.left_out, 2);
    assert_int_equal(stats.unread, 0);
    assert_container(node, 5, ID_A);
    assert_null(find_owner(node->table, 7));
    process_table_set_caps(node->table, 10, 2);
    assert_int_equal(scan(node).left_out, 0);
    assert_container(node, 7, ID_B);
    process_table_set_caps(node->table, 3, 2);
    stats = scan(node);
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
    struct node *node = *state;
    struct seen seen = {0};

    start(node, 5, 0, IN_A);
    start(node, 6, 0, IN_A);
    process_table_scan(node->table, false, see, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last_count, 2); /* the scan is done */
    assert_int_equal(seen.last_pid, 5);
    assert_ptr_equal(seen.last, find_owner(node->table, 5));
    reuse(node, 5, 0, IN_A);
    end(node, 6);
    process_table_scan(node->table, true, see, &seen);
    process_table_scan(node->table, false, see, &seen);
    assert_int_equal(seen.count, 1);
    start(node, 9, 0, IN_B);
    process_table_scan(node->table, false, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.last_pid, 9);
    end(node, 9);
    process_table_scan(node->table, false, see, &seen);
    start(node, 9, 0, IN_B);
    process_table_scan(node->table, false, see, &seen);
    assert_int_equal(seen.count, 3);
}

static void a_scan_of_all_reads_every_process(void **state)
{
    enum { COUNT = 100 };
    struct node *node = *state;
    struct process_table_stats stats;

    for (uint32_t pid = 1; pid <= COUNT; pid++)
        start(node, pid, 0, pid % 2 ? IN_A : IN_B);
    for (int i = 0; i < 5; i++)
        scan(node);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        put_cgroup(node, pid, pid % 2 ? IN_B : IN_A);
    assert_int_equal(process_table_scan(node->table, true, NULL, NULL), 0);
    process_table_get_stats(node->table, &stats);
    assert_int_equal(stats.files_read, COUNT);
    for (uint32_t pid = 1; pid <= COUNT; pid++)
        assert_container(node, pid, pid % 2 ? ID_B : ID_A);
    assert_int_equal(find_owner(node->table, 1)->count, COUNT / 2);
    assert_true(scan(node).files_read <= COUNT / 60 + 1); /* that made no process new */
}

static void a_job_has_its_users_uid_and_not_slurms(void **state)
{
    struct node *node = *state;

    start(node, 5, 0, JOB);
    scan(node);
    assert_owner(node, 5, WORKLOAD_SLURM, NULL);
    assert_int_equal(find_owner(node->table, 5)->uid, 0);
    start(node, 6, 1000, JOB);
    start(node, 7, 1000, JOB);
    scan(node);
    assert_int_equal(find_owner(node->table, 5)->uid, 1000);
    assert_int_equal(find_owner(node->table, 5)->pid, 6);
    for (int i = 0; i < 4; i++)
        scan(node);
    assert_int_equal(find_owner(node->table, 5)->pid, 6);
    end(node, 6);
    scan(node);
    assert_int_equal(find_owner(node->table, 5)->uid, 1000);
    assert_int_equal(find_owner(node->table, 5)->count, 2);
}

static void a_text_that_depends_on_the_user_is_each_users_own(void **state)
{
    struct node *node = *state;

    start(node, 5, 1001, "0::/\n");
    start(node, 6, 1002, "0::/\n");
    start(node, 7, 0, "0::/\n");
    start(node, 8, 1001, "0::/\n");
    assert_int_equal(scan(node).owners, 3);
    assert_int_equal(find_owner(node->table, 5)->count, 2);
    assert_ptr_equal(find_owner(node->table, 5), find_owner(node->table, 8));
    end(node, 5);
    end(node, 8);
    assert_int_equal(scan(node).owners, 2);
    put(node, "6", "status", "Uid:\t1003\t0\t0\t0\n", 15);
    scan(node);
    assert_owner(node, 6, WORKLOAD_USER, NULL);
    assert_int_equal(scan(node).owners, 2);
}

static void processes_outside_of_our_cgroup_namespace_are_counted(void **state)
{
    struct node *node = *state;

    start(node, 5, 0, "0::/../outer\n");
    start(node, 6, 0, "0::/../outer\n");
    start(node, 7, 0, IN_A);
    assert_int_equal(scan(node).outside, 2);
    assert_int_equal(scan(node).outside, 2);
    end(node, 5);
    assert_int_equal(scan(node).outside, 1);
}

static void what_was_known_stays_when_the_directory_cannot_be_read(void **state)
{
    struct node *node = *state;
    int procfs_fd = node->host.procfs_fd;
    struct process_table_stats stats;

    start(node, 5, 0, IN_A);
    scan(node);
    node->host.procfs_fd = open("/dev/null", O_PATH | O_CLOEXEC);
    assert_int_equal(process_table_scan(node->table, true, NULL, NULL), -ENOTDIR);
    close(node->host.procfs_fd);
    node->host.procfs_fd = procfs_fd;
    assert_container(node, 5, ID_A);
    process_table_get_stats(node->table, &stats);
    assert_int_equal(stats.processes, 1);
}

static uint32_t next_random(uint32_t *seed)
{
    return *seed = *seed * 1664525 + 1013904223;
}

/* Starts, ends or moves the process, by chance. */
static void change(struct node *node, uint32_t pid, bool *lives, uint32_t random)
{
    char cgroup[128];

    snprintf(cgroup, sizeof(cgroup), "0::/docker/%064x\n", random >> 16 & 7);
    if (!*lives)
        start(node, pid, 0, cgroup);
    else if (random >> 24 & 1)
        put_cgroup(node, pid, cgroup);
    else
        end(node, pid);
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
    struct node *node = *state;
    bool lives[PIDS] = {false};
    uint32_t seed = 1;

    for (int round = 0; round < 100; round++) {
        struct process_table_stats stats, fresh_stats;
        struct process_table *fresh;

        for (int i = 0; i < 10; i++) {
            uint32_t random = next_random(&seed), pid = random >> 8 & 31;

            change(node, pid + 1, &lives[pid], next_random(&seed));
        }
        assert_int_equal(process_table_new(&node->host, &fresh), 0);
        assert_int_equal(process_table_scan(fresh, false, NULL, NULL), 0);
        assert_int_equal(process_table_scan(node->table, true, NULL, NULL), 0);
        process_table_get_stats(node->table, &stats);
        process_table_get_stats(fresh, &fresh_stats);
        assert_int_equal(stats.processes, fresh_stats.processes);
        assert_int_equal(stats.owners, fresh_stats.owners);
        for (uint32_t pid = 1; pid <= PIDS; pid++)
            assert_same(node->table, fresh, pid);
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
        node_test(every_process_has_an_owner_by_its_cgroups_and_user),
        node_test(a_process_that_did_not_change_is_left_alone_but_for_its_turn),
        node_test(everyones_turn_comes_about_every_sixty_scans),
        node_test(a_new_process_that_moves_is_noticed_at_the_next_scan),
        node_test(processes_and_owners_that_are_gone_are_forgotten),
        node_test(a_reused_pid_is_another_process),
        node_test(a_process_that_dies_while_it_is_read_is_skipped),
        node_test(a_process_that_cannot_be_read_is_kept_without_an_owner),
        node_test(garbage_is_the_users),
        node_test(a_cgroup_text_is_read_whole_up_to_64_kib),
        node_test(what_is_beyond_the_caps_is_counted_and_not_kept),
        node_test(an_owner_appears_once_for_as_long_as_it_has_processes),
        node_test(a_scan_of_all_reads_every_process),
        node_test(a_job_has_its_users_uid_and_not_slurms),
        node_test(a_text_that_depends_on_the_user_is_each_users_own),
        node_test(processes_outside_of_our_cgroup_namespace_are_counted),
        node_test(what_was_known_stays_when_the_directory_cannot_be_read),
        node_test(after_any_changes_a_table_equals_a_new_one),
        cmocka_unit_test(a_child_has_the_owner_that_we_have_and_is_not_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
