/*
 * The GPUs that a container can open, by the nodes in its /dev and, with version 1 of cgroups, by
 * its device rules.
 *
 * Whoever is root in a container can make nodes (Docker gives CAP_MKNOD) that it may not open: so
 * where the rules can be read, they must allow what the nodes show. With version 2 they are a
 * program in the kernel, and a container that makes nodes for itself is believed.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "host/host.h"
#include "identity/gpu_access.h"
#include "identity/gpus/attachments.h"
#include "identity/process_table.h"
#include "model/workload.h"

/* Of an entry of a directory, links not followed: 0 or -errno. Tests have their own, because only
 * root can make nodes. */
typedef int device_nodes_stat(int dir_fd, const char *name, struct stat *ret_stat);
device_nodes_stat device_nodes_stat_at;

/* Adds what the process can open, if it is still the owner's. 0, -ESRCH, or another -errno: its
 * root cannot be looked into. Opens nothing but directories, and those only as paths. */
int device_nodes_find(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                      device_nodes_stat *stat_at, struct gpu_access_list *gpus);

/* Looks into every container of the table that is new, and into the others once a minute: what it
 * finds is what `source` says. Containers that somebody else than the node's own services named
 * are left out. */
void device_nodes_scan(const struct host *host, const struct process_table *processes,
                       device_nodes_stat *stat_at, struct attachments *attachments, unsigned source,
                       uint64_t now_us);
