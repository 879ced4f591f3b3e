/* host/memory_read: files of processes that may block their readers. */
#include "file_fixture.h"
#include "tree_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/memory_read.h"

enum { USERS = MEMORY_READS_MAX / MEMORY_READS_PER_USER_MAX };

/* A directory for each process, as in /proc. */
struct processes {
    char path[32];
    int dir_fd;
};

static void make_processes(struct processes *processes)
{
    *processes = (struct processes){.path = "/tmp/wattribute-test-XXXXXX"};
    assert_non_null(mkdtemp(processes->path));
    processes->dir_fd = open(processes->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(processes->dir_fd >= 0);
}

static void remove_processes(struct processes *processes)
{
    close(processes->dir_fd);
    tree_remove(processes->path, "");
}

static int open_process(const struct processes *processes, const char *name)
{
    int fd;

    (void)mkdirat(processes->dir_fd, name, 0755);
    fd = openat(processes->dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* One that blocks its readers: they wait until a pipe has a writer. */
static int open_blocked_process(const struct processes *processes, const char *name)
{
    int fd = open_process(processes, name);

    assert_int_equal(mkfifoat(fd, "environ", 0600), 0);
    return fd;
}

static void unblock(int process_fd)
{
    int fd = openat(process_fd, "environ", O_WRONLY | O_CLOEXEC); /* waits for the reader */

    assert_true(fd >= 0);
    close(fd);
}

/* As soon as one that has ended makes room. */
static struct memory_read *start_when_there_is_room(int process_fd, uint32_t uid, size_t max_bytes)
{
    struct memory_read *read;

    while (!(read = memory_read_start(process_fd, uid, "environ", max_bytes)))
        usleep(1000);
    return read;
}

static void assert_reads(int process_fd, size_t max_bytes, const char *expected)
{
    struct memory_read *read = start_when_there_is_room(process_fd, 1, max_bytes);
    struct span text = {"untouched", 9};

    assert_true(memory_read_wait(read, 10000, &text));
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);
    memory_read_free(read);
}

static void as_much_of_a_file_is_read_as_fits(void **state)
{
    struct processes processes;
    int fd;

    (void)state;
    make_processes(&processes);
    fd = open_process(&processes, "7");
    assert_reads(fd, 100, ""); /* no such file */
    file_write_at(fd, "environ", "A=1 B=2", 7);
    assert_reads(fd, 100, "A=1 B=2");
    assert_reads(fd, 7, "A=1 B=2");
    assert_reads(fd, 3, "A=1");
    close(fd);
    memory_read_free(NULL);
    remove_processes(&processes);
}

static void a_process_blocks_one_read_of_a_file_and_no_other_process(void **state)
{
    struct memory_read *blocked, *other;
    struct processes processes;
    struct span text;
    int fd;

    (void)state;
    make_processes(&processes);
    fd = open_blocked_process(&processes, "7");
    blocked = start_when_there_is_room(fd, 1, 100);
    assert_false(memory_read_wait(blocked, 1, &text));
    assert_null(memory_read_start(fd, 1, "environ", 100));
    other = memory_read_start(fd, 1, "cmdline", 100);
    assert_non_null(other);
    assert_true(memory_read_wait(other, 10000, &text));
    memory_read_free(other);
    unblock(fd);
    assert_true(memory_read_wait(blocked, 10000, &text));
    assert_int_equal(text.len, 0);
    memory_read_free(blocked);
    close(fd);
    remove_processes(&processes);
}

static void a_user_can_block_some_reads_and_all_users_a_bounded_number(void **state)
{
    int fds[USERS * MEMORY_READS_PER_USER_MAX], next_fd;
    struct processes processes;
    char name[16];

    (void)state;
    make_processes(&processes);
    next_fd = open_process(&processes, "next");
    file_write_at(next_fd, "environ", "A=1", 3);
    for (uint32_t i = 0; i < ARRAY_SIZE(fds); i++) {
        uint32_t uid = 1000 + i / MEMORY_READS_PER_USER_MAX;

        if (i > 0 && i % MEMORY_READS_PER_USER_MAX == 0) {
            assert_null(memory_read_start(next_fd, uid - 1, "environ", 100));
            assert_reads(next_fd, 100, "A=1"); /* of another user */
        }
        snprintf(name, sizeof(name), "%u", i);
        fds[i] = open_blocked_process(&processes, name);
        memory_read_free(start_when_there_is_room(fds[i], uid, 100)); /* its thread stays */
    }
    assert_null(memory_read_start(next_fd, 1, "environ", 100));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        unblock(fds[i]);
        close(fds[i]);
    }
    assert_reads(next_fd, 100, "A=1");
    close(next_fd);
    remove_processes(&processes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_much_of_a_file_is_read_as_fits),
        cmocka_unit_test(a_process_blocks_one_read_of_a_file_and_no_other_process),
        cmocka_unit_test(a_user_can_block_some_reads_and_all_users_a_bounded_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
