/* config/file_stamp: every way in which files are replaced under a running program is noticed,
 * once. */
#include "tree_fixture.h"

#include <stdlib.h>

#include "config/file_stamp.h"

static char root[] = "/tmp/wattribute-mark-XXXXXX", path[64];

static int set_up(void **state)
{
    (void)state;
    memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/keys.yaml", root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_remove(root, "");
    return 0;
}

static void assert_moved_once(struct file_stamp *mark)
{
    assert_true(file_stamp_update(mark, path));
    assert_false(file_stamp_update(mark, path));
}

static void one_that_is_overwritten_is_another_version(void **state)
{
    struct file_stamp mark = {0};

    (void)state;
    tree_write(root, "keys.yaml", "entsoe: one\n");
    assert_moved_once(&mark);
    tree_write(root, "keys.yaml", "entsoe: three\n");
    assert_moved_once(&mark);
}

static void one_that_is_replaced_is_another_version_however_alike(void **state)
{
    struct file_stamp mark = {0};
    char other[64];

    (void)state;
    tree_write(root, "keys.yaml", "entsoe: one\n");
    assert_moved_once(&mark);
    tree_write(root, "other", "entsoe: two\n");
    snprintf(other, sizeof(other), "%s/other", root);
    assert_int_equal(rename(other, path), 0);
    assert_moved_once(&mark);
}

static void put_link(const char *to, const char *name)
{
    char link[64], news[64];

    snprintf(link, sizeof(link), "%s/%s", root, name);
    snprintf(news, sizeof(news), "%s/..new", root);
    assert_int_equal(symlink(to, news), 0);
    assert_int_equal(rename(news, link), 0);
}

/* As a kubelet writes Secrets and ConfigMaps: the file is a link through one that is swapped. */
static void a_link_on_the_way_that_leads_elsewhere_is_another_version(void **state)
{
    struct file_stamp mark = {0};

    (void)state;
    tree_write(root, "..1/keys.yaml", "entsoe: one\n");
    tree_write(root, "..2/keys.yaml", "entsoe: two\n");
    put_link("..1", "..data");
    put_link("..data/keys.yaml", "keys.yaml");
    assert_moved_once(&mark);
    put_link("..2", "..data");
    assert_moved_once(&mark);
}

static void a_file_that_goes_and_comes_back_is_reported_both_times(void **state)
{
    struct file_stamp mark = {0};

    (void)state;
    tree_write(root, "keys.yaml", "entsoe: one\n");
    assert_moved_once(&mark);
    tree_remove(root, "keys.yaml");
    assert_moved_once(&mark);
    tree_write(root, "keys.yaml", "entsoe: one\n");
    assert_moved_once(&mark);
}

static void without_a_file_nothing_ever_changes(void **state)
{
    struct file_stamp mark = {0};

    (void)state;
    assert_false(file_stamp_update(&mark, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_overwritten_is_another_version),
        TEST(one_that_is_replaced_is_another_version_however_alike),
        TEST(a_link_on_the_way_that_leads_elsewhere_is_another_version),
        TEST(a_file_that_goes_and_comes_back_is_reported_both_times),
        TEST(without_a_file_nothing_ever_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
