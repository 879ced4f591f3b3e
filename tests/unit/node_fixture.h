/* A node of ordinary files: procfs and sysfs below a directory of its own, and what is known of its
 * processes. */
#pragma once

#include "tree_fixture.h"

#include <stdlib.h>

#include "host/host.h"
#include "identity/gpus/attachments.h"
#include "identity/process_table.h"

struct node {
    char path[40];
    int fd;
    struct host host;
    struct process_table *table;
    struct attachments *attachments;
};

static int node_set_up(void **state)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node)
        return -1;
    strcpy(node->path, "/tmp/test_node.XXXXXX");
    if (!mkdtemp(node->path))
        return -1;
    node->fd = open(node->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mkdirat(node->fd, "proc", 0755);
    mkdirat(node->fd, "sys", 0755);
    node->host = (struct host){.procfs_fd = openat(node->fd, "proc", O_PATH | O_CLOEXEC),
                               .sysfs_fd = openat(node->fd, "sys", O_PATH | O_CLOEXEC),
                               .rootfs_fd = -1};
    *state = node;
    return process_table_new(&node->host, &node->table) < 0 ||
                   attachments_new(&node->attachments) < 0
               ? -1
               : 0;
}

static int node_tear_down(void **state)
{
    struct node *node = *state;

    attachments_free(node->attachments);
    process_table_free(node->table);
    host_close(&node->host);
    close(node->fd);
    tree_remove(node->path, "");
    free(node);
    return 0;
}

#define node_test(function) cmocka_unit_test_setup_teardown(function, node_set_up, node_tear_down)
