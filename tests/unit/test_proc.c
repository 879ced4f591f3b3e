/* host/proc: the identity of a pid, from any text in /proc. */
#include "file_fixture.h"
#include "tree_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/program_read.h"

#define TAIL " S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 0\n"

static void a_command_may_hold_anything_and_the_start_is_the_22nd_field(void **state)
{
    static const struct {
        const char *text;
        const char *command; /* NULL: refused */
    } cases[] = {
        {"7 (python3)" TAIL, "python3"},
        {"7 (a b)" TAIL, "a b"},
        {"7 (evil) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99)" TAIL,
         "evil) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99"},
        {"7 ()" TAIL, ""},
        {"7 (((" TAIL, NULL},
        {"", NULL},
        {"7", NULL},
        {"7 (x)", NULL},
        {"7 (x) ", NULL},
        {"7 (x) S 1 1", NULL},
        {")(", NULL},
        {"7 (x)S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span command = {"untouched", 9};
        uint64_t ticks = 77;
        int r = proc_parse_stat(span_of(cases[i].text), &command, &ticks);

        assert_int_equal(r, cases[i].command ? 0 : -EBADMSG);
        if (!cases[i].command)
            continue;
        assert_true(span_equals(command, cases[i].command));
        assert_int_equal(ticks, 12345);
    }
}

static void a_zombie_has_left_its_cgroups_unless_v2_still_shows_its_own(void **state)
{
    static const struct {
        char state;
        const char *cgroup;
        bool has_left;
    } cases[] = {
        {'S', "5:devices:/\n0::/\n", false}, /* it lives in the root */
        {'S', "0::/a (deleted)\n", false},
        {'Z', "5:devices:/\n0::/a/b\n", false},
        {'Z', "5:devices:/\n0::/a/b (deleted)\n", true},
        {'X', "0::/a (deleted)", true},
        {'Z', "5:devices:/\n1:name=systemd:/\n", true},
        {'Z', "5:devices:/a\n0::/\n", false},
        {'Z', "", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (proc_has_left_cgroups(cases[i].state, span_of(cases[i].cgroup)) != cases[i].has_left)
            fail_msg("%c %s", cases[i].state, cases[i].cgroup);
}

static void the_user_is_the_real_one(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint32_t uid;
    } cases[] = {
        {"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 0, 1000},
        {"Uid:\t0\t0\t0\t0\n", 0, 0},
        {"Uid:\t4294967294", 0, 4294967294},
        {"Uid:\t4294967295\t0\n", -EBADMSG, 0}, /* means "none" to the kernel */
        {"Name:\tUid:\t7\n", -EBADMSG, 0},
        {"Uid:\t-1\n", -EBADMSG, 0},
        {"Uid:", -EBADMSG, 0},
        {"", -EBADMSG, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t uid = 0;

        assert_int_equal(proc_parse_uid(span_of(cases[i].text), &uid), cases[i].r);
        assert_int_equal(uid, cases[i].uid);
    }
}

static void the_boot_is_in_whole_seconds(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t boot_us;
    } cases[] = {
        {"cpu  1 2 3 4\nbtime 1769041911\nprocesses 1\n", 0, 1769041911000000},
        {"btime 1099511627776", 0, (uint64_t)1099511627776 * 1000000},
        {"btime 1099511627777\n", -EBADMSG, 7}, /* its microseconds would not fit */
        {"xbtime 1\nbtime -1\n", -EBADMSG, 7},
        {"", -EBADMSG, 7},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t boot_us = 7;

        assert_int_equal(proc_parse_boot(span_of(cases[i].text), &boot_us), cases[i].r);
        assert_int_equal(boot_us, cases[i].boot_us);
    }
}

static void this_process_is_known_by_its_executable(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1};
    struct sample_process process;
    struct proc_reader reader;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, &host);
    assert_int_equal(proc_identify(&reader, (uint32_t)getpid(), &arena, &process), 0);
    assert_string_equal(process.name, "test_proc");
    assert_true(process.start_us > 1500000000 * USEC_PER_SEC);
    assert_non_null(strstr(process.cgroup, ":/"));
    assert_int_equal(process.uid, getuid());
    assert_true(proc_exists(&reader, (uint32_t)getpid()));
    arena_done(&arena);
    close(host.procfs_fd);
}

static void a_pid_that_is_not_there_is_no_process(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1};
    struct sample_process process;
    struct proc_reader reader;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, &host);
    assert_int_equal(proc_identify(&reader, 4194305, &arena, &process), -ESRCH); /* above PID_MAX */
    assert_false(proc_exists(&reader, 4194305));
    arena_done(&arena);
    close(host.procfs_fd);
}

/* A fake /proc with the process 7. */
struct fake_proc {
    char path[32];
    struct host host;
};

static void fake_proc_make(struct fake_proc *fake)
{
    *fake = (struct fake_proc){
        .path = "/tmp/wattribute-test-XXXXXX",
        .host = {.sysfs_fd = -1, .rootfs_fd = -1, .program_secret = {{1, 2}}},
    };
    assert_non_null(mkdtemp(fake->path));
    fake->host.procfs_fd = open(fake->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fake->host.procfs_fd >= 0);
    tree_write(fake->path, "7/stat", "7 (python3)" TAIL);
    tree_write(fake->path, "7/status", "Uid:\t1000\t0\t0\t0\n");
    tree_write(fake->path, "7/cgroup", "0::/user.slice\n");
}

static void fake_proc_remove(struct fake_proc *fake)
{
    close(fake->host.procfs_fd);
    tree_remove(fake->path, "");
}

/* NULL: it cannot be read. */
static void set_program(const struct fake_proc *fake, const char *executable, const char *arguments,
                        size_t len)
{
    (void)unlinkat(fake->host.procfs_fd, "7/exe", 0);
    (void)unlinkat(fake->host.procfs_fd, "7/cmdline", 0);
    if (executable)
        assert_int_equal(symlinkat(executable, fake->host.procfs_fd, "7/exe"), 0);
    if (arguments)
        file_write_at(fake->host.procfs_fd, "7/cmdline", arguments, len);
}

static struct program_key key_of(const struct host *host, uint32_t pid)
{
    struct sample_process process;
    struct program_read *read;
    struct proc_reader reader;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, host);
    assert_int_equal(proc_identify(&reader, pid, &arena, &process), 0);
    read = program_read_start(&reader, &process);
    if (read)
        assert_true(program_read_wait(read, 10000, &process.program));
    program_read_free(read);
    arena_done(&arena);
    return process.program;
}

#define PYTHON  "/usr/bin/python3.12"
#define COMMAND "python3\0train.py" /* with the NUL that ends it */

static void a_process_has_the_keys_of_its_executable_and_arguments(void **state)
{
    struct fake_proc fake;
    struct program_key expected, key;

    (void)state;
    fake_proc_make(&fake);
    expected = program_key_of(&fake.host.program_secret, span_of(PYTHON),
                              (struct span){COMMAND, sizeof(COMMAND)});
    set_program(&fake, PYTHON, COMMAND, sizeof(COMMAND));
    key = key_of(&fake.host, 7);
    assert_int_not_equal(key.exact, 0);
    assert_int_equal(key.exact, expected.exact);
    assert_int_equal(key.coarse, expected.coarse);
    set_program(&fake, PYTHON " (deleted)", COMMAND, sizeof(COMMAND)); /* after an upgrade */
    assert_int_equal(key_of(&fake.host, 7).exact, expected.exact);
    expected = program_key_of(&fake.host.program_secret, (struct span){"", 0},
                              (struct span){COMMAND, sizeof(COMMAND)});
    set_program(&fake, NULL, COMMAND, sizeof(COMMAND)); /* without CAP_SYS_PTRACE */
    assert_int_not_equal(expected.exact, 0);
    assert_int_equal(key_of(&fake.host, 7).exact, expected.exact);
    fake_proc_remove(&fake);
}

static void without_arguments_or_secret_there_is_no_key(void **state)
{
    struct fake_proc fake;

    (void)state;
    fake_proc_make(&fake);
    set_program(&fake, NULL, "", 0); /* a kernel thread */
    assert_int_equal(key_of(&fake.host, 7).exact, 0);
    set_program(&fake, PYTHON, "", 0); /* a zombie */
    assert_int_equal(key_of(&fake.host, 7).exact, 0);
    set_program(&fake, PYTHON, NULL, 0);
    assert_int_equal(key_of(&fake.host, 7).exact, 0);
    set_program(&fake, PYTHON, COMMAND, sizeof(COMMAND));
    fake.host.program_secret = (struct program_secret){{0, 0}};
    assert_int_equal(key_of(&fake.host, 7).exact, 0);
    assert_int_equal(key_of(&fake.host, 7).coarse, 0);
    fake_proc_remove(&fake);
}

/* As if the process held the lock that readers of its arguments wait for: a pipe without writer. */
static void a_read_that_hangs_costs_only_its_keys(void **state)
{
    struct sample_process process = {.pid = 7, .uid = 1000};
    struct program_read *dropped, *read;
    struct program_key key = {0};
    struct proc_reader reader;
    struct fake_proc fake;
    int fd;

    (void)state;
    fake_proc_make(&fake);
    set_program(&fake, PYTHON, NULL, 0);
    assert_int_equal(mkfifoat(fake.host.procfs_fd, "7/cmdline", 0600), 0);
    proc_reader_init(&reader, &fake.host);
    fd = proc_open(&fake.host, 7);
    assert_int_equal(proc_read_start(fd, reader.boot_us, &process.start_us), 0);
    close(fd);
    dropped = program_read_start(&reader, &process);
    assert_non_null(dropped);
    assert_false(program_read_wait(dropped, 1, &key));
    assert_null(program_read_start(&reader, &process)); /* it would hang, too */
    program_read_free(dropped);                         /* its thread will free it */
    fd = openat(fake.host.procfs_fd, "7/cmdline", O_WRONLY | O_CLOEXEC); /* when it has opened it */
    assert_true(fd >= 0);
    set_program(&fake, PYTHON, COMMAND, sizeof(COMMAND));
    close(fd);
    while (!(read = program_read_start(&reader, &process))) /* the other is about to end */
        usleep(1000);
    assert_true(program_read_wait(read, 10000, &key));
    assert_int_not_equal(key.exact, 0);
    program_read_free(read);
    process.start_us++; /* the pid was reused */
    read = program_read_start(&reader, &process);
    assert_true(program_read_wait(read, 10000, &key));
    assert_int_equal(key.exact, 0);
    program_read_free(read);
    fake_proc_remove(&fake);
}

static void a_command_line_of_32_kib_or_more_has_no_key(void **state)
{
    static char arguments[32 << 10];
    struct fake_proc fake;

    (void)state;
    fake_proc_make(&fake);
    memset(arguments, 'a', sizeof(arguments));
    memcpy(arguments, COMMAND, sizeof(COMMAND));
    arguments[sizeof(arguments) - 2] = '\0';
    set_program(&fake, PYTHON, arguments, sizeof(arguments) - 1);
    assert_int_not_equal(key_of(&fake.host, 7).exact, 0);
    arguments[sizeof(arguments) - 2] = 'a';
    arguments[sizeof(arguments) - 1] = '\0';
    set_program(&fake, PYTHON, arguments, sizeof(arguments));
    assert_int_equal(key_of(&fake.host, 7).exact, 0);
    fake_proc_remove(&fake);
}

/* The key of a child of ours that did this to its arguments. */
static struct program_key key_of_child(const struct host *host, void (*change)(void))
{
    int ready[2], done[2];
    struct program_key key;
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        change();
        close(done[1]);
        _exit(write(ready[1], "", 1) != 1 || read(done[0], &byte, 1) != 0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    key = key_of(host, (uint32_t)pid);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return key;
}

static void change_nothing(void)
{
}

/* As setproctitle() does it: glibc's name points to the arguments themselves. */
static void write_title(void)
{
    memset(program_invocation_name, 'x', strlen(program_invocation_name));
}

static void a_process_that_overwrote_its_arguments_has_no_key(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1,
                        .program_secret = {{1, 2}}};
    struct program_key own = key_of(&host, (uint32_t)getpid());

    (void)state;
    if (getenv("MESON_EXE_WRAPPER"))
        skip(); /* the executable is the emulator */
    assert_int_not_equal(own.exact, 0);
    assert_int_equal(key_of_child(&host, change_nothing).exact, own.exact);
    assert_int_equal(key_of_child(&host, write_title).exact, 0);
    assert_int_equal(key_of_child(&host, write_title).coarse, 0);
    close(host.procfs_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_may_hold_anything_and_the_start_is_the_22nd_field),
        cmocka_unit_test(a_zombie_has_left_its_cgroups_unless_v2_still_shows_its_own),
        cmocka_unit_test(the_user_is_the_real_one),
        cmocka_unit_test(the_boot_is_in_whole_seconds),
        cmocka_unit_test(this_process_is_known_by_its_executable),
        cmocka_unit_test(a_pid_that_is_not_there_is_no_process),
        cmocka_unit_test(a_process_has_the_keys_of_its_executable_and_arguments),
        cmocka_unit_test(without_arguments_or_secret_there_is_no_key),
        cmocka_unit_test(a_read_that_hangs_costs_only_its_keys),
        cmocka_unit_test(a_command_line_of_32_kib_or_more_has_no_key),
        cmocka_unit_test(a_process_that_overwrote_its_arguments_has_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
