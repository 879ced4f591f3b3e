/* core/fs: whole files or an error, never a part that looks whole. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

#define UNTOUCHED 77

struct tree {
    char path[32];
    int fd;
};

static int make_tree(void **state)
{
    struct tree *tree = malloc(sizeof(*tree));

    if (!tree)
        return -1;
    strcpy(tree->path, "/tmp/test_fs.XXXXXX");
    if (!mkdtemp(tree->path))
        return -1;
    tree->fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *state = tree;
    return tree->fd < 0 ? -1 : 0;
}

static int remove_tree(void **state)
{
    struct tree *tree = *state;

    unlinkat(tree->fd, "file", 0);
    unlinkat(tree->fd, "directory", AT_REMOVEDIR);
    close(tree->fd);
    rmdir(tree->path);
    free(tree);
    return 0;
}

static void a_file_is_read_whole_and_ends_with_a_nul(void **state)
{
    const struct tree *tree = *state;
    char buffer[16];
    size_t len = UNTOUCHED;

    memset(buffer, 'x', sizeof(buffer));
    file_write_at(tree->fd, "file", "ab\0cd\n", 6);
    assert_int_equal(fs_read_at(tree->fd, "file", buffer, sizeof(buffer), &len), 0);
    assert_int_equal(len, 6);
    assert_memory_equal(buffer, "ab\0cd\n", 7);
    file_write_at(tree->fd, "file", "", 0);
    assert_int_equal(fs_read_at(tree->fd, "file", buffer, sizeof(buffer), &len), 0);
    assert_int_equal(len, 0);
    assert_string_equal(buffer, "");
}

static void a_file_that_does_not_fit_with_its_nul_is_refused(void **state)
{
    const struct tree *tree = *state;
    char buffer[8];
    size_t len = UNTOUCHED;

    file_write_at(tree->fd, "file", "12345678", 8);
    assert_int_equal(fs_read_at(tree->fd, "file", buffer, sizeof(buffer), &len), -EFBIG);
    file_write_at(tree->fd, "file", "123456789", 9);
    assert_int_equal(fs_read_at(tree->fd, "file", buffer, sizeof(buffer), &len), -EFBIG);
    assert_int_equal(len, UNTOUCHED);
    file_write_at(tree->fd, "file", "1234567", 7);
    assert_int_equal(fs_read_at(tree->fd, "file", buffer, sizeof(buffer), &len), 0);
    assert_int_equal(len, 7);
    assert_string_equal(buffer, "1234567");
}

static void what_cannot_be_read_says_why(void **state)
{
    const struct tree *tree = *state;
    char buffer[8];
    size_t len = UNTOUCHED;

    assert_int_equal(mkdirat(tree->fd, "directory", 0700), 0);
    file_write_at(tree->fd, "file", "x", 1);
    assert_int_equal(fs_read_at(tree->fd, "missing", buffer, sizeof(buffer), &len), -ENOENT);
    assert_int_equal(fs_read_at(tree->fd, "file/x", buffer, sizeof(buffer), &len), -ENOTDIR);
    assert_int_equal(fs_read_at(tree->fd, "directory", buffer, sizeof(buffer), &len), -EISDIR);
    assert_int_equal(fs_read_at(-1, "file", buffer, sizeof(buffer), &len), -EBADF);
    assert_int_equal(len, UNTOUCHED);
}

/* A pseudo-file has a size of 0 and returns its text in pieces. */
static void a_pseudo_file_is_read_to_its_end(void **state)
{
    int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char buffer[1 << 16];
    struct stat stat;
    size_t len = 0;

    (void)state;
    assert_true(proc >= 0);
    assert_int_equal(fstatat(proc, "status", &stat, 0), 0);
    assert_int_equal(stat.st_size, 0);
    assert_int_equal(fs_read_at(proc, "status", buffer, sizeof(buffer), &len), 0);
    assert_true(len > 500);
    assert_int_equal(buffer[len - 1], '\n');
    close(proc);
}

static int open_memory(size_t len)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    _cleanup_free_ char *data = malloc(len + 1);

    assert_true(fd >= 0);
    assert_non_null(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i % 251);
    assert_int_equal(fs_write_all(fd, data, len), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void a_descriptor_is_read_whole_up_to_its_cap(void **state)
{
    /* Around the sizes at which the memory grows. */
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 100000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        int fd = open_memory(sizes[i]);
        char *data = NULL;
        size_t len = UNTOUCHED;

        assert_int_equal(fs_read_fd(fd, sizes[i], &data, &len), 0);
        assert_int_equal(len, sizes[i]);
        for (size_t at = 0; at < len; at++)
            assert_int_equal((unsigned char)data[at], at % 251);
        assert_int_equal(data[len], '\0');
        free(data);
        close(fd);
    }
}

static void a_descriptor_with_more_than_its_cap_is_refused(void **state)
{
    static const size_t sizes[] = {1, 4096, 4097, 8193, 1 << 20};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        int fd = open_memory(sizes[i]);
        char *data = NULL;
        size_t len = UNTOUCHED;

        assert_int_equal(fs_read_fd(fd, sizes[i] - 1, &data, &len), -EFBIG);
        assert_null(data);
        assert_int_equal(len, UNTOUCHED);
        close(fd);
    }
}

static void a_descriptor_that_cannot_be_read_says_why(void **state)
{
    char *data = NULL;
    size_t len = UNTOUCHED;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_int_equal(fs_read_fd(-1, 100, &data, &len), -EBADF);
    assert_int_equal(fs_read_fd(fd, 100, &data, &len), -EISDIR);
    assert_null(data);
    assert_int_equal(len, UNTOUCHED);
    close(fd);
}

static void a_file_that_stays_open_is_read_anew_from_its_start(void **state)
{
    int fd = memfd_create("kept", MFD_CLOEXEC), dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char text[8] = "";
    size_t len = UNTOUCHED;

    (void)state;
    assert_int_equal(pwrite(fd, "1234567", 7, 0), 7);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fs_reread(fd, text, sizeof(text), &len), 0);
        assert_string_equal(text, "1234567");
        assert_int_equal(len, 7);
    }
    assert_int_equal(pwrite(fd, "9", 1, 0), 1);
    assert_int_equal(fs_reread(fd, text, sizeof(text), &len), 0);
    assert_string_equal(text, "9234567");
    assert_int_equal(fs_reread(fd, text, sizeof(text) - 1, &len), -EFBIG);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fs_reread(fd, text, sizeof(text), &len), 0);
    assert_int_equal(len, 0);
    assert_string_equal(text, "");
    assert_int_equal(fs_reread(dir, text, sizeof(text), &len), -EISDIR);
    close(dir);
    close(fd);
}

static int open_in(const struct tree *tree, const char *name)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", tree->path, name);
    fd = fs_open_regular(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : fd;
}

static void only_a_regular_file_is_opened_for_a_user_and_a_pipe_does_not_block(void **state)
{
    const struct tree *tree = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *data = NULL;
    size_t len;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/file", tree->path);
    assert_int_equal(bind(socket_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(open_in(tree, "file"), -ENXIO);
    close(socket_fd);
    assert_int_equal(unlinkat(tree->fd, "file", 0), 0);

    assert_int_equal(mkfifoat(tree->fd, "file", 0600), 0);
    assert_int_equal(open_in(tree, "file"), -ENXIO);
    assert_int_equal(unlinkat(tree->fd, "file", 0), 0);

    assert_int_equal(symlinkat("/dev/zero", tree->fd, "file"), 0);
    assert_int_equal(open_in(tree, "file"), -ENXIO);
    assert_int_equal(unlinkat(tree->fd, "file", 0), 0);

    assert_int_equal(open_in(tree, "."), -EISDIR);
    assert_int_equal(open_in(tree, "file"), -ENOENT);
    file_write_at(tree->fd, "file", "ab", 2);
    assert_int_equal(open_in(tree, "file"), 0);
    assert_int_equal(fs_read_regular("/dev/null", 10, &data, &len), 0);
    assert_int_equal(len, 0);
    free(data);
}

static void what_is_no_regular_file_is_called_so(void **state)
{
    (void)state;
    assert_string_equal(fs_strerror(-ENXIO), "Not a regular file");
    assert_string_equal(fs_strerror(-EISDIR), "Is a directory");
}

static void a_write_that_fails_says_why(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(fs_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(fs_write_all(-1, "", 0), 0);
    assert_int_equal(fs_write_all(full, "x", 1), -ENOSPC);
    close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_whole_and_ends_with_a_nul, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(a_file_that_does_not_fit_with_its_nul_is_refused, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_says_why, make_tree, remove_tree),
        cmocka_unit_test(a_pseudo_file_is_read_to_its_end),
        cmocka_unit_test(a_descriptor_is_read_whole_up_to_its_cap),
        cmocka_unit_test(a_descriptor_with_more_than_its_cap_is_refused),
        cmocka_unit_test(a_descriptor_that_cannot_be_read_says_why),
        cmocka_unit_test(a_file_that_stays_open_is_read_anew_from_its_start),
        cmocka_unit_test_setup_teardown(
            only_a_regular_file_is_opened_for_a_user_and_a_pipe_does_not_block, make_tree,
            remove_tree),
        cmocka_unit_test(what_is_no_regular_file_is_called_so),
        cmocka_unit_test(a_write_that_fails_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
