/* host/host: the roots below which files are read, and the cgroup root in a namespace of our own.
 */
#include "tree_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "host/host.h"

/* The next free descriptor: the same before and after, if none leaked. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

static void each_root_is_opened_and_read_below(void **state)
{
    const int before = next_descriptor();
    struct host host;
    char text[4096];
    size_t len = 0;

    (void)state;
    assert_int_equal(host_open("/proc", "/sys", "/", &host, NULL), 0);
    assert_int_equal(fs_read_at(host.procfs_fd, "self/comm", text, sizeof(text), &len), 0);
    assert_true(len > 0);
    assert_int_equal(faccessat(host.sysfs_fd, "kernel", F_OK, 0), 0);
    assert_int_equal(faccessat(host.rootfs_fd, "proc", F_OK, 0), 0);
    host_close(&host);
    assert_int_equal(next_descriptor(), before);
}

static void an_error_names_the_flag_the_path_and_the_reason_and_leaves_nothing_open(void **state)
{
    static const struct {
        const char *procfs, *sysfs, *rootfs;
        int r;
        const char *flag, *path, *reason;
    } cases[] = {
        {"/nowhere", "/sys", "/", -ENOENT, "--path.procfs", "'/nowhere'", "No such file"},
        {"/proc", "/nowhere", "/", -ENOENT, "--path.sysfs", "'/nowhere'", "No such file"},
        {"/proc", "/sys", "/nowhere", -ENOENT, "--path.rootfs", "'/nowhere'", "No such file"},
        {"/proc", "/sys", "", -ENOENT, "--path.rootfs", "''", "No such file"},
        {"/proc", "/sys", "/dev/null", -ENOTDIR, "--path.rootfs", "'/dev/null'", "Not a directory"},
        {"/nowhere", "/nowhere", "/nowhere", -ENOENT, "--path.procfs", "'/nowhere'", "No such"},
    };
    const int before = next_descriptor();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct host host = {.procfs_fd = 77, .sysfs_fd = 77, .rootfs_fd = 77};
        struct error err = {""};

        assert_int_equal(host_open(cases[i].procfs, cases[i].sysfs, cases[i].rootfs, &host, &err),
                         cases[i].r);
        assert_non_null(strstr(err.text, cases[i].flag));
        assert_non_null(strstr(err.text, cases[i].path));
        assert_non_null(strstr(err.text, cases[i].reason));
        assert_int_equal(host.procfs_fd, 77);
        assert_int_equal(host.sysfs_fd, 77);
        assert_int_equal(host.rootfs_fd, 77);
        assert_int_equal(next_descriptor(), before);
    }
}

static void a_host_can_be_closed_twice(void **state)
{
    struct host host;
    int other;

    (void)state;
    assert_int_equal(host_open("/proc", "/sys", "/", &host, NULL), 0);
    host_close(&host);
    other = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes a number that was the host's */
    host_close(&host);
    assert_true(fcntl(other, F_GETFD) >= 0);
    close(other);
}

#define ROOT "/kubepods.slice/a.slice/cri-1.scope"

static void paths_are_resolved_from_where_the_namespace_begins(void **state)
{
    static const struct {
        const char *root, *text, *expected;
    } cases[] = {
        {ROOT, "0::/\n", "0::" ROOT "\n"},
        {ROOT, "0::/below\n", "0::" ROOT "/below\n"},
        {ROOT, "0::/..\n", "0::/kubepods.slice/a.slice\n"},
        {ROOT, "0::/../cri-2.scope\n", "0::/kubepods.slice/a.slice/cri-2.scope\n"},
        {ROOT, "0::/../../b.slice/cri-3.scope\n", "0::/kubepods.slice/b.slice/cri-3.scope\n"},
        {ROOT, "0::/../../../init.scope\n", "0::/init.scope\n"},
        {ROOT, "0::/../../..\n", "0::/\n"},
        {ROOT, "0::/../../../..\n", "0::/../../../..\n"}, /* above the node */
        {ROOT, "0::/..x/y\n", "0::" ROOT "/..x/y\n"},
        {ROOT, "0::/../x (deleted)\n", "0::/kubepods.slice/a.slice/x (deleted)\n"},
        {"/a", "4:memory:/../x\n0::/../y\n", "4:memory:/../x\n0::/y\n"},
        {"/a", "0::/../y\n1:cpu:/z", "0::/y\n1:cpu:/z"},
        {"/a", "0::/..", "0::/"},
        {"/a", "4:memory:/../x\n", "4:memory:/../x\n"},
        {"/a", "0::\n", "0::\n"},
        {"/a", "", ""},
        {"", "0::/x\n", "0::/x\n"},
        {"", "0::/../x\n", "0::/../x\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        size_t len = strlen(cases[i].text);

        strcpy(text, cases[i].text);
        assert_int_equal(host_apply_cgroup_root(span_of(cases[i].root), text, sizeof(text), &len),
                         0);
        assert_string_equal(text, cases[i].expected);
        assert_int_equal(len, strlen(cases[i].expected));
    }
}

static void what_does_not_fit_is_left_as_it_was(void **state)
{
    char text[16] = "0::/x\n";
    size_t len = strlen(text);

    (void)state;
    assert_int_equal(host_apply_cgroup_root(span_of("/0123456789"), text, sizeof(text), &len),
                     -EFBIG);
    assert_string_equal(text, "0::/x\n");
    assert_int_equal(host_apply_cgroup_root(span_of("/012345678"), text, sizeof(text), &len),
                     -EFBIG);
    assert_int_equal(host_apply_cgroup_root(span_of("/01234567"), text, sizeof(text), &len), 0);
    assert_string_equal(text, "0::/01234567/x\n");
}

/* A procfs and a sysfs in one directory. */
struct fixture {
    char path[40];
    struct host host;
};

static void write_file(const struct fixture *fixture, const char *name, const char *text)
{
    tree_write(fixture->path, name, text);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int fd;

    if (!fixture)
        return -1;
    strcpy(fixture->path, "/tmp/test_host.XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    fd = open(fixture->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fixture->host = (struct host){.procfs_fd = fd, .sysfs_fd = fd, .rootfs_fd = -1};
    write_file(fixture, "1/cgroup", "0::/../../../init.scope\n");
    write_file(fixture, "77/cgroup", "0::/\n");
    *state = fixture;
    return symlinkat("77", fd, "self");
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    close(fixture->host.procfs_fd);
    tree_remove(fixture->path, "");
    free(fixture);
    return 0;
}

static void assert_root(const struct fixture *fixture, const char *expected)
{
    _cleanup_free_ char *root = NULL;

    assert_int_equal(host_find_cgroup_root(&fixture->host, &root), 0);
    if (expected)
        assert_string_equal(root, expected);
    else
        assert_null(root);
}

static void write_tree(const struct fixture *fixture, const char *mount, const char *procs)
{
    static const char *const others[] = {"", "/init.scope", "/kubepods.slice",
                                         "/kubepods.slice/a.slice", "/kubepods.slice/b.slice"};
    char name[200];

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        snprintf(name, sizeof(name), "%s%s/cgroup.procs", mount, others[i]);
        write_file(fixture, name, "7\n771\n177\n");
    }
    snprintf(name, sizeof(name), "%s" ROOT "/cgroup.procs", mount);
    write_file(fixture, name, procs);
}

static void the_root_is_the_cgroup_that_holds_us(void **state)
{
    write_tree(*state, "fs/cgroup", "12\n77\n");
    assert_root(*state, ROOT);
}

static void a_hybrid_node_has_the_tree_elsewhere(void **state)
{
    write_file(*state, "fs/cgroup/memory/decoy/cgroup.procs", "77\n");
    write_tree(*state, "fs/cgroup/unified", "77\n");
    assert_root(*state, ROOT);
}

static void we_may_be_below_the_root(void **state)
{
    write_file(*state, "77/cgroup", "0::/cri-1.scope\n");
    write_tree(*state, "fs/cgroup", "77\n");
    assert_root(*state, "/kubepods.slice/a.slice");
    write_file(*state, "77/cgroup", "0::/elsewhere\n");
    assert_int_equal(host_find_cgroup_root(&((struct fixture *)*state)->host, &(char *){NULL}),
                     -ENOENT);
}

static void in_the_nodes_namespace_there_is_nothing_to_resolve(void **state)
{
    write_tree(*state, "fs/cgroup", "77\n");
    write_file(*state, "1/cgroup", "0::/init.scope\n");
    assert_root(*state, NULL);
    write_file(*state, "1/cgroup", "3:memory:/\n");
    assert_root(*state, NULL);
}

static void without_the_nodes_tree_nothing_is_found(void **state)
{
    struct fixture *fixture = *state;
    char *root = fixture->path;

    assert_int_equal(host_find_cgroup_root(&fixture->host, &root), -ENOENT);
    write_file(fixture, "fs/cgroup/cgroup.procs", "771\n");
    assert_int_equal(host_find_cgroup_root(&fixture->host, &root), -ENOENT);
    assert_ptr_equal(root, fixture->path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_root_is_opened_and_read_below),
        cmocka_unit_test(an_error_names_the_flag_the_path_and_the_reason_and_leaves_nothing_open),
        cmocka_unit_test(a_host_can_be_closed_twice),
        cmocka_unit_test(paths_are_resolved_from_where_the_namespace_begins),
        cmocka_unit_test(what_does_not_fit_is_left_as_it_was),
        cmocka_unit_test_setup_teardown(the_root_is_the_cgroup_that_holds_us, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hybrid_node_has_the_tree_elsewhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(we_may_be_below_the_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_the_nodes_namespace_there_is_nothing_to_resolve, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_the_nodes_tree_nothing_is_found, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
