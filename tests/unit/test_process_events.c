/*
 * identity/process/events: messages of the kernel, and the real kernel where it permits it.
 * Where it does not, the tests of the real one assert just how it refuses.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "identity/process/connector.h"
#include "identity/process_events.h"

extern char **environ;

/* Everything that a message holds that matters. */
struct parts {
    size_t cut; /* bytes that are missing at the end */
    uint16_t type;
    int32_t length_off; /* of the netlink header */
    int32_t data_off;   /* of the connector header */
    uint32_t idx, val;
    uint32_t what;
    uint32_t data[4];
};

static struct span message_of(const struct parts *parts, char buffer[static 128])
{
    struct proc_event event = {0};
    struct nlmsghdr netlink = {.nlmsg_type = parts->type};
    struct cn_msg connector = {.id = {parts->idx, parts->val}, .ack = 5};
    size_t len = sizeof(netlink) + sizeof(connector) + sizeof(event);

    netlink.nlmsg_len = (uint32_t)((int32_t)len + parts->length_off);
    connector.len = (uint16_t)((int32_t)sizeof(event) + parts->data_off);
    memcpy(&event.what, &parts->what, sizeof(parts->what));
    memcpy(&event.event_data, parts->data, sizeof(parts->data));
    memcpy(buffer, &netlink, sizeof(netlink));
    memcpy(buffer + sizeof(netlink), &connector, sizeof(connector));
    memcpy(buffer + sizeof(netlink) + sizeof(connector), &event, sizeof(event));
    return (struct span){buffer, len - parts->cut};
}

#define KERNELS .type = NLMSG_DONE, .idx = CN_IDX_PROC, .val = CN_VAL_PROC

static void only_whole_messages_of_the_connector_are_parsed(void **state)
{
    static const struct {
        struct parts parts;
        int r;
        struct process_event event;
    } cases[] = {
        {{KERNELS, .what = PROC_EVENT_EXEC, .data = {8, 7}}, 0, {PROCESS_EVENT_EXEC, 7, 0, 5}},
        {{KERNELS, .what = PROC_EVENT_FORK, .data = {1, 1, 9, 9}},
         0,
         {PROCESS_EVENT_FORK, 9, 0, 5}},
        {{KERNELS, .what = PROC_EVENT_FORK, .data = {1, 1, 9, 1}},
         0,
         {PROCESS_EVENT_OTHER, 0, 0, 5}},
        {{KERNELS, .what = PROC_EVENT_NONE, .data = {EPERM}}, 0, {PROCESS_EVENT_ACK, 0, -EPERM, 5}},
        {{KERNELS, .what = PROC_EVENT_NONE}, 0, {PROCESS_EVENT_ACK, 0, 0, 5}},
        {{KERNELS, .what = PROC_EVENT_EXIT, .data = {8, 7}}, 0, {PROCESS_EVENT_OTHER, 0, 0, 5}},
        {{KERNELS, .what = 0x1234, .data = {8, 7}}, 0, {PROCESS_EVENT_OTHER, 0, 0, 5}},
        {{KERNELS, .what = PROC_EVENT_NONE, .data = {4096}}, -EBADMSG, {0}},
        {{KERNELS, .what = PROC_EVENT_NONE, .data = {UINT32_MAX}}, -EBADMSG, {0}},
        {{KERNELS, .what = PROC_EVENT_EXEC, .data = {8, 0}}, -EBADMSG, {0}},
        {{KERNELS, .what = PROC_EVENT_EXEC, .data = {8, 0x80000000}}, -EBADMSG, {0}},
        {{KERNELS, .what = PROC_EVENT_FORK, .data = {1, 1, 0, 0}}, -EBADMSG, {0}},
        {{.type = NLMSG_ERROR, .idx = CN_IDX_PROC, .val = CN_VAL_PROC}, -EBADMSG, {0}},
        {{.type = NLMSG_DONE, .idx = 2, .val = CN_VAL_PROC}, -EBADMSG, {0}},
        {{.type = NLMSG_DONE, .idx = CN_IDX_PROC, .val = 2}, -EBADMSG, {0}},
        {{KERNELS, .length_off = 1, .what = PROC_EVENT_EXEC, .data = {8, 7}}, -EBADMSG, {0}},
        {{KERNELS, .length_off = -1, .what = PROC_EVENT_EXEC, .data = {8, 7}}, -EBADMSG, {0}},
        {{KERNELS, .length_off = -77, .what = PROC_EVENT_EXEC, .data = {8, 7}}, -EBADMSG, {0}},
        {{KERNELS, .data_off = 1, .what = PROC_EVENT_EXEC, .data = {8, 7}}, -EBADMSG, {0}},
        {{KERNELS, .data_off = -17, .what = PROC_EVENT_EXEC, .data = {8, 7}}, -EBADMSG, {0}},
        {{KERNELS, .data_off = -30, .what = PROC_EVENT_EXIT}, -EBADMSG, {0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct process_event event = {PROCESS_EVENT_OTHER, 77, 77, 77};
        char buffer[128];
        struct span message = message_of(&cases[i].parts, buffer);

        assert_int_equal(process_event_parse(message, &event), cases[i].r);
        if (cases[i].r < 0) {
            assert_int_equal(event.pid, 77);
            continue;
        }
        assert_int_equal(event.kind, cases[i].event.kind);
        assert_int_equal(event.pid, cases[i].event.pid);
        assert_int_equal(event.error, cases[i].event.error);
        assert_int_equal(event.ack, cases[i].event.ack);
    }
}

static void a_message_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= 76; cut++) {
        struct parts parts = {KERNELS, .cut = cut, .what = PROC_EVENT_EXEC, .data = {8, 7}};
        struct process_event event;
        char buffer[128];

        assert_int_equal(process_event_parse(message_of(&parts, buffer), &event), -EBADMSG);
    }
}

/* From here on: the real kernel. */

struct fixture {
    struct host host;
    struct process_events *events;
    struct arena arena;
};

static bool has_net_admin(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {0};

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return data[0].effective & (1U << CAP_NET_ADMIN);
}

/* The initial ones have fixed inodes (include/linux/proc_ns.h, PROC_USER_INIT_INO and so on). */
static bool is_initial(const char *path, ino_t initial)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_ino == initial;
}

/* Linux 6.6 lets every user listen ("connector/cn_proc: Allow non-root users access"). */
static bool is_open_to_all(void)
{
    struct utsname name;
    unsigned long major, minor;
    char *end;

    assert_int_equal(uname(&name), 0);
    major = strtoul(name.release, &end, 10);
    minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major > 6 || (major == 6 && minor >= 6);
}

static bool is_in_initial_namespaces(void)
{
    return is_initial("/proc/self/ns/user", 0xEFFFFFFD) &&
           is_initial("/proc/self/ns/pid", 0xEFFFFFFC);
}

static bool is_permitted(void)
{
    return is_in_initial_namespaces() && (has_net_admin() || is_open_to_all());
}

/* False where there are no events, as it must be. Its own network namespace cannot be told from
 * the initial one, so that refusal is believed. */
static bool start(struct fixture *fixture)
{
    int r;

    fixture->events = NULL;
    r = process_events_start(&fixture->host, &clock_system, &fixture->events);
    if (is_permitted() && r != -ECONNREFUSED) {
        assert_int_equal(r, 0);
        return true;
    }
    assert_true(r == -EPERM || r == -ECONNREFUSED);
    assert_null(fixture->events);
    return false;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture)
        return -1;
    fixture->host = (struct host){.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                                  .sysfs_fd = -1,
                                  .rootfs_fd = -1};
    arena_init(&fixture->arena, 16 << 20);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    process_events_stop(fixture->events);
    arena_done(&fixture->arena);
    host_close(&fixture->host);
    free(fixture);
    return 0;
}

static uint64_t deadline(void)
{
    return clock_system.monotonic_us(&clock_system) + 10 * USEC_PER_SEC;
}

static bool is_over(uint64_t deadline_us)
{
    sched_yield();
    return clock_system.monotonic_us(&clock_system) > deadline_us;
}

static bool await(struct fixture *fixture, pid_t pid, struct sample_process *ret_process)
{
    uint64_t until_us = deadline();

    while (process_events_find(fixture->events, (uint32_t)pid, ret_process, &fixture->arena) < 0)
        if (is_over(until_us))
            return false;
    return true;
}

/* Between its two events it has its parent's name. */
static bool await_named(struct fixture *fixture, pid_t pid, const char *name,
                        struct sample_process *ret_process)
{
    uint64_t until_us = deadline();

    while (await(fixture, pid, ret_process))
        if (strcmp(ret_process->name, name) == 0)
            return true;
        else if (is_over(until_us))
            return false;
    return false;
}

static pid_t start_true(void)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    pid_t pid;

    assert_int_equal(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
    return pid;
}

static pid_t fork_sleeper(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

static void kill_and_reap(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Others' processes take from the same rate: then another try, with a rate of its own. */
static bool every_one_of_a_hundred_is_known(struct fixture *fixture)
{
    struct sample_process process;
    pid_t pids[100];
    bool all = true;

    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        pids[i] = start_true();
    /* They are not reaped before: there must be something left to be read. */
    for (size_t i = 0; i < ARRAY_SIZE(pids) && all; i++)
        all = await_named(fixture, pids[i], "true", &process);
    for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    if (!all)
        assert_true(process_events_lost(fixture->events) > 0);
    for (size_t i = 0; i < ARRAY_SIZE(pids) && all; i++) {
        assert_int_equal(
            process_events_find(fixture->events, (uint32_t)pids[i], &process, &fixture->arena), 0);
        assert_int_equal(process.pid, pids[i]);
        assert_int_equal(process.uid, getuid());
        assert_string_equal(process.name, "true");
        assert_true(process.start_us > 0);
        /* v1 has put it into the root by now, which says nothing. */
        assert_true(process.cgroup[0] == '\0' || strstr(process.cgroup, ":/"));
    }
    return all;
}

static void short_programs_are_known_after_their_end(void **state)
{
    struct fixture *fixture = *state;
    bool known = false;

    for (int i = 0; i < 3 && !known; i++) {
        process_events_stop(fixture->events);
        if (!start(fixture))
            return;
        known = every_one_of_a_hundred_is_known(fixture);
    }
    assert_true(known);
}

static void a_fork_without_a_new_program_is_known_after_its_end(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;
    pid_t child;

    if (!start(fixture))
        return;
    child = fork_sleeper();
    assert_true(await(fixture, child, &process));
    kill_and_reap(child);
    assert_int_equal(
        process_events_find(fixture->events, (uint32_t)child, &process, &fixture->arena), 0);
    assert_string_equal(process.name, "test_process_events");
}

static void *write_thread_id(void *arg)
{
    *(pid_t *)arg = (pid_t)syscall(SYS_gettid);
    return NULL;
}

static void threads_are_no_processes(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;
    pid_t ids[20], child;

    if (!start(fixture))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write_thread_id, &ids[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    child = fork_sleeper(); /* it comes behind them */
    assert_true(await(fixture, child, &process));
    kill_and_reap(child);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        assert_int_equal(
            process_events_find(fixture->events, (uint32_t)ids[i], &process, &fixture->arena),
            -ESRCH);
}

static void what_is_beyond_the_rate_is_counted(void **state)
{
    struct fixture *fixture = *state;
    uint64_t until_us = deadline();

    if (!start(fixture))
        return;
    for (int i = 0; i < 1500; i++) {
        pid_t child = fork();

        if (child == 0)
            _exit(0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    while (process_events_lost(fixture->events) == 0 && !is_over(until_us))
        ;
    assert_true(process_events_lost(fixture->events) > 0);
}

static void it_stops_at_any_time(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 20; i++) {
        if (!start(fixture))
            return;
        if (i % 2)
            assert_int_equal(waitpid(start_true(), NULL, 0) > 0, 1);
        process_events_stop(fixture->events);
        fixture->events = NULL;
    }
}

static void without_events_no_process_is_known(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;

    assert_int_equal(process_events_find(NULL, 1, &process, &fixture->arena), -ESRCH);
    process_events_stop(NULL);
}

static int start_without_privilege(const struct host *host)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {0};
    struct process_events *events;

    if (syscall(SYS_capset, &header, none) < 0)
        return -errno;
    return process_events_start(host, &clock_system, &events);
}

/* Where no namespace may be made, this one is as good as refused. */
static int start_in_new_network(const struct host *host)
{
    struct process_events *events;

    if (unshare(CLONE_NEWNET) < 0)
        return -ECONNREFUSED;
    return process_events_start(host, &clock_system, &events);
}

/* In a child: dropped privileges do not come back. */
static int result_of(int (*start_one)(const struct host *host), const struct host *host)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0)
        _exit(-start_one(host));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void without_the_privilege_the_kernel_decides(void **state)
{
    struct fixture *fixture = *state;
    int r = result_of(start_without_privilege, &fixture->host);

    if (is_in_initial_namespaces() && is_open_to_all() && r != -ECONNREFUSED)
        assert_int_equal(r, 0);
    else
        assert_true(r == -EPERM || r == -ECONNREFUSED);
}

static void in_another_network_namespace_there_are_none(void **state)
{
    struct fixture *fixture = *state;
    int r = result_of(start_in_new_network, &fixture->host);

    if (is_permitted() || is_open_to_all())
        assert_int_equal(r, -ECONNREFUSED);
    else
        assert_true(r == -EPERM || r == -ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_messages_of_the_connector_are_parsed),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test_setup_teardown(short_programs_are_known_after_their_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_fork_without_a_new_program_is_known_after_its_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(threads_are_no_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_beyond_the_rate_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_stops_at_any_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_events_no_process_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_the_privilege_the_kernel_decides, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(in_another_network_namespace_there_are_none, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
