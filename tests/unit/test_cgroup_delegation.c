#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "host/cgroup_delegation.h"

static void a_directory_is_delegated_unless_root_alone_can_write_to_it(void **state)
{
    static const struct {
        struct stat st;
        uint32_t to;
    } cases[] = {
        {{.st_mode = S_IFDIR | 0755}, CGROUP_NOT_DELEGATED},
        {{.st_mode = S_IFDIR | 0555}, CGROUP_NOT_DELEGATED},
        {{.st_mode = S_IFDIR | 0775}, CGROUP_NOT_DELEGATED}, /* root's own group */
        {{.st_mode = S_IFDIR | 0775, .st_gid = 27}, 0},
        {{.st_mode = S_IFDIR | 0755, .st_gid = 27}, CGROUP_NOT_DELEGATED},
        {{.st_mode = S_IFDIR | 0757}, 0},
        {{.st_mode = S_IFDIR | 01777}, 0},
        {{.st_mode = S_IFDIR | 0755, .st_uid = 1000}, 1000},
        {{.st_mode = S_IFDIR | 0777, .st_uid = 1000}, 1000},
        {{.st_mode = S_IFDIR | 0555, .st_uid = 1000}, 1000}, /* who may change that */
        {{.st_mode = S_IFDIR | 0755, .st_uid = 100000}, 100000},
        {{.st_mode = S_IFDIR | 0755, .st_uid = UINT32_MAX - 1}, UINT32_MAX - 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(cgroup_delegated_to(&cases[i].st), cases[i].to);
}

static void a_mark_is_an_empty_component_and_a_uid(void **state)
{
    static const struct {
        const char *path, *above, *below; /* NULL: there is none */
        uint32_t uid;
    } cases[] = {
        {"/a//1000/b/c", "/a", "b/c", 1000},
        {"/a//1000", "/a", "", 1000},
        {"/a/b//0/c", "/a/b", "c", 0},
        {"/a//1000/b//2000/c", "/a", "b//2000/c", 1000},
        {"/a//4294967294/b", "/a", "b", 4294967294},
        {"//docker//1000x//7/b", "//docker//1000x", "b", 7},
        {.path = "/a//4294967295/b"}, /* no uid */
        {.path = "/a//-1/b"},
        {.path = "/a/1000/b"},
        {.path = "/1000/b"},
        {.path = "/a//b"},
        {.path = "/a//"},
        {.path = "//"},
        {.path = "/"},
        {.path = ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cgroup_mark mark;

        assert_int_equal(cgroup_mark_find(span_of(cases[i].path), &mark), cases[i].above != NULL);
        if (!cases[i].above)
            continue;
        assert_true(span_equals(mark.above, cases[i].above));
        assert_true(span_equals(mark.below, cases[i].below));
        assert_int_equal(mark.uid, cases[i].uid);
    }
}

/* A tree in which directories called "alice" and "bob" are theirs, and "gone" is gone. */
static int look_up(const void *context, struct span controllers, const char *path,
                   uint32_t *ret_delegated_to)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    (void)context;
    assert_true(path[0] != '/' && path[0] != '\0');
    if (span_equals(controllers, "freezer"))
        return -ENODEV;
    *ret_delegated_to = strcmp(name, "alice") == 0 ? 1000
                        : strcmp(name, "bob") == 0 ? 1001
                                                   : CGROUP_NOT_DELEGATED;
    return strcmp(name, "gone") == 0 ? -ENOENT : 0;
}

static void the_first_directory_that_root_does_not_own_is_marked_on_each_line(void **state)
{
    static const struct {
        const char *text, *marked;
    } cases[] = {
        {"0::/system.slice/nginx.service\n", "0::/system.slice/nginx.service\n"},
        {"0::/\n", "0::/\n"},
        {"0::/a/alice\n", "0::/a/alice//1000\n"},
        {"0::/alice/b/bob/c\n", "0::/alice//1000/b/bob/c\n"},
        {"0::/bob/..x/docker\n", "0::/bob//1001/..x/docker\n"},
        {"0::/alice/b (deleted)\n", "0::/alice//1000/b (deleted)\n"},
        {"2:cpu,cpuacct:/a:b/bob/c\n1:freezer:/alice/b\n0::/alice/b\n",
         "2:cpu,cpuacct:/a:b/bob//1001/c\n1:freezer:/alice/b\n0::/alice//1000/b\n"},
        {"0::/a/alice", "0::/a/alice//1000"}, /* no newline */
        {"3:pids:/alice/b\n2:cpu:/alice/b\n1:freezer:/a\n0::/a\n",
         "3:pids:/alice//1000/b\n2:cpu:/alice//1000/b\n1:freezer:/a\n0::/a\n"},
        /* Who owned what is gone is not known. Its own name was given by who owns what is above. */
        {"0::/a/gone/b/c\n1:pids:/x\n", "0::/a/gone\n1:pids:/x\n"},
        {"0::/a/gone\n", "0::/a/gone\n"},
        {"0::/alice/gone/b\n", "0::/alice//1000/gone/b\n"},
        /* Not a path of ours. */
        {"0::/../alice/b\n", "0::/../alice/b\n"},
        {"garbage\n\n::\n", "garbage\n\n::\n"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        size_t len = strlen(cases[i].text);

        memcpy(text, cases[i].text, len + 1);
        cgroup_mark_file(look_up, NULL, text, sizeof(text), &len);
        assert_string_equal(text, cases[i].marked);
        assert_int_equal(len, strlen(text));
    }
}

static void without_room_for_the_mark_the_path_ends_above_it(void **state)
{
    char text[] = "1:cpu:/alice/victim\n0::/a/b\n";
    size_t len = strlen(text);

    (void)state;
    cgroup_mark_file(look_up, NULL, text, sizeof(text), &len);
    assert_string_equal(text, "1:cpu:/alice\n0::/a/b\n");
    assert_int_equal(len, strlen(text));
}

static int count_look_ups(const void *context, struct span controllers, const char *path,
                          uint32_t *ret_delegated_to)
{
    ++*(int *)context;
    return look_up(NULL, controllers, path, ret_delegated_to);
}

static void a_path_that_root_made_in_one_hierarchy_is_not_looked_up_in_others(void **state)
{
    char text[256] = "5:freezer:/a/b/c\n4:cpu:/a/b/c\n3:pids:/\n2:blkio:/a/b/c\n1:rdma:/x\n0::/x\n";
    size_t len = strlen(text);
    int count = 0;

    (void)state;
    cgroup_mark_file(count_look_ups, &count, text, sizeof(text), &len);
    assert_int_equal(count, 1 + 3 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_delegated_unless_root_alone_can_write_to_it),
        cmocka_unit_test(a_mark_is_an_empty_component_and_a_uid),
        cmocka_unit_test(the_first_directory_that_root_does_not_own_is_marked_on_each_line),
        cmocka_unit_test(without_room_for_the_mark_the_path_ends_above_it),
        cmocka_unit_test(a_path_that_root_made_in_one_hierarchy_is_not_looked_up_in_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
