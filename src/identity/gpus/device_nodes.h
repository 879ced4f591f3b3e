/*
 * The GPUs that a container can open, by the nodes in its /dev and, with cgroup v1, by its device
 * rules.
 *
 * Root in a container can make nodes (Docker grants CAP_MKNOD) that it may not open: so where the
 * rules can be read, they must allow what the nodes show. With v2 they are a program in the kernel,
 * and a container that makes nodes for itself is believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "host/host.h"
#include "identity/gpus/attachments.h"
#include "identity/process_table.h"
#include "model/workload.h"

/* Stats an entry of a directory, without following links: 0 or -errno. Tests have their own,
 * because only root can make nodes. */
typedef int device_nodes_stat(int dir_fd, const char *name, struct stat *ret_stat);
device_nodes_stat device_nodes_stat_at;

/* Adds what the process can open, if it is still the owner's. 0, -ESRCH, or another -errno: its
 * root is not accessible. Opens nothing but directories, and those only as paths. */
int device_nodes_find(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                      device_nodes_stat *stat_at, struct gpu_access_list *gpus);

/* Inspects every container of the table that is new, and the others once a minute, and reports them
 * as `source`. Containers that a tenant may have named are left out. */
void device_nodes_scan(const struct host *host, const struct process_table *processes,
                       device_nodes_stat *stat_at, struct attachments *attachments, unsigned source,
                       uint64_t now_us);
