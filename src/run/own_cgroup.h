/*
 * A cgroup for the command alone, below our own: what runs in it is counted to the last
 * microsecond, whoever started it and whether or not it still has its parent. The command leaves no
 * cgroup of ours: limits, owners and jobs stay what they are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

/* A hierarchy with a cgroup of the command. */
struct own_cgroup_dir {
    int parent_fd, fd; /* -1: none */
};

struct own_cgroup {
    struct own_cgroup_dir cpu;    /* v2, or cpuacct of v1 */
    struct own_cgroup_dir memory; /* of v1; in v2 it is the same as `cpu` */
    bool is_v2;
    char name[64];
};

/*
 * Makes one below the cgroup of this process, where that is permitted. `number` tells the runs of a
 * process apart. Those that a killed `run` has left there are removed, if they are empty. 0 or
 * -errno, with what failed: then none is left.
 */
int own_cgroup_make(struct own_cgroup *cgroup, unsigned number, struct error *err);

/* Moves a process into it, before it does anything. 0 or -errno. */
int own_cgroup_enter(const struct own_cgroup *cgroup, pid_t pid);

/* 0 or -errno. -ENODATA: memory is not counted there. */
int own_cgroup_read_cpu(const struct own_cgroup *cgroup, uint64_t *ret_cpu_us);
int own_cgroup_read_memory(const struct own_cgroup *cgroup, uint64_t *ret_bytes);

/* Moves what still runs in it back to our own cgroup, and removes it. Accepts a zeroed struct that
 * was never made. False: it stays, as somebody made others in it. */
bool own_cgroup_remove(struct own_cgroup *cgroup);
