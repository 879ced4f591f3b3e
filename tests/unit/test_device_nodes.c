/* identity/gpus/device_nodes and identity/gpus/device_rules: the GPUs that a container can open. */
#include "node_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "identity/gpus/device_nodes.h"
#include "identity/gpus/device_rules.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define IN_A    "0::/docker/" A "\n"
#define IN_B    "0::/docker/" B "\n"
#define IN_A_V1 "5:devices:/docker/" A "\n1:name=systemd:/docker/" A "\n0::/\n"
#define RULES_A "sys/fs/cgroup/devices/docker/" A "/devices.list"

static void put(const struct node *node, const char *path, const char *text)
{
    tree_write(node->path, path, text);
}

static void put_process(const struct node *node, uint32_t pid, const char *cgroup)
{
    char path[128];

    snprintf(path, sizeof(path), "proc/%u/cgroup", pid);
    put(node, path, cgroup);
}

/* Only root can make nodes: here, a file's length is its number. */
static void put_node(const struct node *node, uint32_t pid, const char *name, unsigned major_number,
                     unsigned minor_number)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "proc/%u/root/dev/%s", pid, name);
    fd = tree_open(node->path, path);
    assert_int_equal(ftruncate(fd, 1000 * (off_t)major_number + minor_number), 0);
    close(fd);
}

static void put_gpu(const struct node *node, uint32_t pid, unsigned minor_number)
{
    char name[32];

    snprintf(name, sizeof(name), "nvidia%u", minor_number);
    put_node(node, pid, name, 195, minor_number);
    put_node(node, pid, "nvidiactl", 195, 255);
}

static size_t stat_count;

static int stat_at(int dir_fd, const char *name, struct stat *ret_stat)
{
    int r = device_nodes_stat_at(dir_fd, name, ret_stat);

    stat_count++;
    if (r == 0 && S_ISREG(ret_stat->st_mode)) {
        ret_stat->st_mode = S_IFCHR | 0600;
        ret_stat->st_rdev =
            makedev((unsigned)(ret_stat->st_size / 1000), (unsigned)(ret_stat->st_size % 1000));
    }
    return r;
}

static struct workload_owner container(const char *id)
{
    struct workload_owner owner = {.kind = WORKLOAD_CONTAINER};

    snprintf(owner.id, sizeof(owner.id), "%s", id);
    snprintf(owner.container_id, sizeof(owner.container_id), "%s", id);
    return owner;
}

/* The minors in `found`, "!" before those by privilege, "r" before render nodes; the result
 * otherwise. */
static int find(const struct node *node, uint32_t pid, device_nodes_stat *how, char *found)
{
    const struct workload_owner owner = container(A);
    struct gpu_access_list gpus = {.count = 0};
    int r = device_nodes_find(&node->host, pid, &owner, how, &gpus);

    found[0] = '\0';
    for (size_t i = 0; i < gpus.count; i++) {
        bool is_render = gpus.items[i].kind == ALLOCATION_RENDER;

        assert_true(is_render || gpus.items[i].kind == ALLOCATION_MINOR);
        sprintf(found + strlen(found), "%s%s%s%u", i ? " " : "",
                gpus.items[i].is_privileged ? "!" : "", is_render ? "r" : "", gpus.items[i].index);
    }
    return r;
}

static void the_nodes_in_a_containers_dev_are_its_gpus(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_gpu(node, 10, 0);
    put_gpu(node, 10, 3);
    put_gpu(node, 10, 11);
    put_node(node, 10, "nvidia-modeset", 195, 254);
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "0 3 11");
}

static void render_nodes_are_gpus_of_other_vendors(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_node(node, 10, "dri/card0", 226, 0);
    put_node(node, 10, "dri/renderD128", 226, 128);
    put_node(node, 10, "dri/renderD130", 226, 130);
    put_node(node, 10, "dri/renderD131", 226, 132);
    put_node(node, 10, "dri/renderD132", 195, 132);
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "r128 r130");
}

static void what_is_no_node_of_that_number_is_no_gpu(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_node(node, 10, "nvidiactl", 195, 255);
    put_node(node, 10, "nvidia0", 1, 3);   /* /dev/null by another name */
    put_node(node, 10, "nvidia1", 195, 2); /* another GPU's */
    put(node, "proc/10/root/dev/nvidia2/x", "");
    assert_int_equal(symlinkat("nvidiactl", node->fd, "proc/10/root/dev/nvidia3"), 0);
    put_node(node, 10, "nvidia04", 195, 4);
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "");
}

static void ordinary_files_are_no_nodes(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_gpu(node, 10, 0);
    assert_int_equal(find(node, 10, device_nodes_stat_at, found), 0);
    assert_string_equal(found, "");
}

static void two_stats_are_enough_where_there_is_no_driver(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_node(node, 10, "null", 1, 3);
    put_node(node, 10, "nvidia0", 195, 0); /* unusable */
    stat_count = 0;
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "");
    assert_int_equal(stat_count, 2);
}

static void a_dev_that_leads_elsewhere_is_not_followed(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_process(node, 11, IN_A);
    put_gpu(node, 10, 0);
    put(node, "proc/11/root/x", "");
    assert_int_equal(symlinkat("../../10/root/dev", node->fd, "proc/11/root/dev"), 0);
    assert_int_equal(find(node, 11, stat_at, found), 0);
    assert_string_equal(found, "");
    put_process(node, 12, IN_A);
    put(node, "proc/12/root/dev", "no directory");
    assert_int_equal(find(node, 12, stat_at, found), 0);
    assert_string_equal(found, "");
    assert_int_equal(mkfifoat(node->fd, "proc/13", 0600), 0);
    assert_true(find(node, 13, stat_at, found) < 0);
}

static void a_process_of_another_owner_does_not_count(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_B);
    put_gpu(node, 10, 0);
    assert_int_equal(find(node, 10, stat_at, found), -ESRCH);
    assert_string_equal(found, "");
    assert_int_equal(find(node, 99, stat_at, found), -ESRCH);
}

static void a_root_that_cannot_be_opened_is_an_error(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    assert_true(find(node, 10, stat_at, found) < 0);
}

static void rules_that_forbid_a_node_count_more_than_the_node(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A_V1);
    put_gpu(node, 10, 0);
    put_gpu(node, 10, 1);
    put(node, RULES_A, "c *:* m\nb *:* m\nc 1:3 rwm\nc 195:255 rw\nc 195:1 rw\n");
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "1");
    put(node, RULES_A, "c *:* m\nb *:* m\n"); /* made with CAP_MKNOD */
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "");
    put(node, RULES_A, "a *:* rwm\n");
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "!0 !1");
}

/* The text has the mark of delegation, the file system does not. */
static void rules_are_found_below_what_is_a_tenants(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, "5:devices:/docker/" A "//100000/init.scope\n0::/docker/" A "\n");
    put_gpu(node, 10, 0);
    put_gpu(node, 10, 1);
    put(node, RULES_A, "a *:* rwm\n");
    put(node, "sys/fs/cgroup/devices/docker/" A "/init.scope/devices.list",
        "c 195:255 rw\nc 195:1 rw\n");
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "1");
    put_process(node, 10, "5:devices:/docker/" A "//100000\n");
    put(node, RULES_A, "c 195:255 rw\nc 195:0 rw\n");
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "0");
}

static void a_container_with_the_kernels_log_has_everything(void **state)
{
    struct node *node = *state;
    char found[1024];

    put_process(node, 10, IN_A);
    put_gpu(node, 10, 0);
    put_node(node, 10, "kmsg", 1, 11);
    assert_int_equal(find(node, 10, stat_at, found), 0);
    assert_string_equal(found, "!0");
}

static void rules_allow_what_they_name_for_reading_and_writing(void **state)
{
    static const struct {
        const char *rules;
        bool allows, allows_all;
    } cases[] = {
        {"c 195:0 rwm", true, false},    {"c 195:0 rw\n", true, false},
        {"c 195:* rwm\n", true, false},  {"c *:* rwm\n", true, false},
        {"a *:* rwm\n", true, true},     {"b 8:0 r\na *:* rwm\n", true, true},
        {"c 195:1 rwm\n", false, false}, {"c 196:0 rwm\n", false, false},
        {"b 195:0 rwm\n", false, false}, {"c 195:0 r\n", false, false},
        {"c *:* m\n", false, false},     {"c 195:0\n", false, false},
        {"c 195 rwm\n", false, false},   {"", false, false},
        {"\n\n  \n", false, false},      {"c :0 rwm\n", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (device_rules_allow(span_of(cases[i].rules), 195, 0) != cases[i].allows ||
            device_rules_allow_all(span_of(cases[i].rules)) != cases[i].allows_all)
            fail_msg("'%s'", cases[i].rules);
}

static void the_path_is_that_of_the_devices_controller(void **state)
{
    static const struct {
        const char *text, *path; /* NULL: none */
    } cases[] = {
        {IN_A_V1, "/docker/" A},
        {"4:cpu,devices,pids:/x\n", "/x"},
        {"5:devices:/a:b\n", "/a:b"},
        {"5:devices:/\n", "/"},
        {"5:devices:/../x\n", NULL},
        {"5:devices:/a/../b\n", NULL},
        {"5:devices:\n", NULL},
        {"5:devices\n", NULL},
        {"5:mydevices:/x\n", NULL},
        {IN_A, NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span path = {NULL, 0};
        bool found = device_rules_find_path(span_of(cases[i].text), &path);

        if (found != (cases[i].path != NULL) || (found && !span_equals(path, cases[i].path)))
            fail_msg("'%s'", cases[i].text);
    }
}

static void note(void *context, const struct attachment *attachment)
{
    sprintf((char *)context + strlen(context), "%c%u ", attachment->owner_id[0], attachment->index);
}

static const char *scan(struct node *node, uint64_t now_us)
{
    static char text[4096];

    text[0] = '\0';
    assert_int_equal(process_table_scan(node->table, false, NULL, NULL), 0);
    device_nodes_scan(&node->host, node->table, stat_at, node->attachments, 15, now_us);
    attachments_each(node->attachments, now_us, note, text);
    return text;
}

static void remove_process(struct node *node, const char *pid)
{
    char path[128];

    snprintf(path, sizeof(path), "proc/%s", pid);
    tree_remove(node->path, path);
}

static void containers_are_inspected_when_they_appear_and_once_a_minute(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN_A);
    put_gpu(node, 10, 0);
    put_process(node, 11, IN_A); /* one of a container is enough */
    put_process(node, 20, IN_B);
    put(node, "proc/20/root/dev/null", "");
    assert_string_equal(scan(node, 1 * USEC_PER_SEC), "a0 ");
    put_gpu(node, 20, 1);
    stat_count = 0;
    assert_string_equal(scan(node, 60 * USEC_PER_SEC), "a0 ");
    assert_int_equal(stat_count, 0);
    assert_string_equal(scan(node, 61 * USEC_PER_SEC), "a0 b1 ");
    remove_process(node, "20");
    assert_string_equal(scan(node, 62 * USEC_PER_SEC), "a0 ");
    remove_process(node, "10"); /* the other process of it has no root */
    assert_string_equal(scan(node, 63 * USEC_PER_SEC), "a0 ");
    remove_process(node, "11");
    assert_string_equal(scan(node, 64 * USEC_PER_SEC), "");
}

static void only_containers_that_the_node_itself_named_are_inspected(void **state)
{
    struct node *node = *state;

    put_process(node, 10,
                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/"
                "libpod-" A ".scope/container\n");
    put_gpu(node, 10, 0);
    put_process(node, 20, "0::/system.slice/ssh.service\n");
    put_gpu(node, 20, 0);
    stat_count = 0;
    assert_string_equal(scan(node, 1), "");
    assert_int_equal(stat_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(the_nodes_in_a_containers_dev_are_its_gpus),
        node_test(render_nodes_are_gpus_of_other_vendors),
        node_test(what_is_no_node_of_that_number_is_no_gpu),
        node_test(ordinary_files_are_no_nodes),
        node_test(two_stats_are_enough_where_there_is_no_driver),
        node_test(a_dev_that_leads_elsewhere_is_not_followed),
        node_test(a_process_of_another_owner_does_not_count),
        node_test(a_root_that_cannot_be_opened_is_an_error),
        node_test(rules_that_forbid_a_node_count_more_than_the_node),
        node_test(rules_are_found_below_what_is_a_tenants),
        node_test(a_container_with_the_kernels_log_has_everything),
        cmocka_unit_test(rules_allow_what_they_name_for_reading_and_writing),
        cmocka_unit_test(the_path_is_that_of_the_devices_controller),
        node_test(containers_are_inspected_when_they_appear_and_once_a_minute),
        node_test(only_containers_that_the_node_itself_named_are_inspected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
