/*
 * Delegation: a cgroup directory that root does not own. Its own name was given by whoever owns the
 * directory above; those below it, by its tenant. Only file systems tell, so the text of
 * /proc/PID/cgroup is marked when it is read, and whoever parses it later, from a trace even, sees
 * the same.
 *
 * The mark is "//UID" after the first delegated directory of a path:
 *
 *   0::/system.slice/batch.service//1000/docker-0123...scope
 *
 * The kernel writes no empty component, so no cgroup can be named like one. UID 0 is a directory of
 * root that others may write to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/span.h"

struct host;

#define CGROUP_NOT_DELEGATED UINT32_MAX

enum { CGROUP_MARK_BYTES = 16 }; /* "//4294967294" */

/* Pure. The user whom root lets make cgroups in this directory, 0 if that is any, or
 * CGROUP_NOT_DELEGATED. */
uint32_t cgroup_delegated_to(const struct stat *st);

struct cgroup_mark {
    struct span above; /* with the delegated directory */
    struct span below;
    uint32_t uid;
};

/* Pure. False: the path has no mark. */
bool cgroup_mark_find(struct span path, struct cgroup_mark *ret_mark);

/* Looks up a directory ("a/b") in the hierarchy that /proc/PID/cgroup calls "cpu,cpuacct" or
 * "name=systemd", or "" for v2. 0; -ENOENT: it is gone; -ENODEV: the hierarchy cannot be seen. */
typedef int cgroup_look_up(const void *context, struct span controllers, const char *path,
                           uint32_t *ret_delegated_to);

/*
 * Marks the lines of a /proc/PID/cgroup, in place. The path of a cgroup that is gone ends with the
 * first directory that is: who owned that is not known, so nothing below counts. Lines of
 * hierarchies that cannot be seen stay as they are.
 */
void cgroup_mark_file(cgroup_look_up *look_up, const void *context, char *text, size_t size_bytes,
                      size_t *len);

/* The hierarchies whose owners can be seen. */
struct cgroup_views;

/* Those that are mounted as a whole, and that root owns as seen from our user namespace: in one
 * without the node's root, all strangers look alike. NULL: out of memory. */
struct cgroup_views *cgroup_views_open(const struct host *host);
void cgroup_views_close(struct cgroup_views *views); /* accepts NULL */

/* As cgroup_mark_file, with a stat for each directory. Does nothing if `views` is NULL. */
void cgroup_views_mark(const struct cgroup_views *views, char *text, size_t size_bytes,
                       size_t *len);
