/*
 * Memory traffic by container, from the groups of resctrl that runtimes and administrators have
 * made (Memory Bandwidth Monitoring of Intel and AMD). Read only: no group is made, no task moved.
 *
 * A class (CTRL_MON group) shows the sum of itself and the monitoring groups in it; these are taken
 * out. What runs in no group is in the default class, the root. Each file that is read interrupts a
 * CPU of its L3 cache, so with too many of them nothing is read at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/host.h"

enum {
    RESCTRL_GROUPS_MAX = 512,   /* classes and monitoring groups together */
    RESCTRL_DOMAINS_MAX = 64,   /* L3 caches */
    RESCTRL_COUNTERS_MAX = 4096 /* the product of both */
};

struct resctrl;

/* 0 or -ENOMEM. Also where there is no resctrl: it may be mounted later. */
int resctrl_new(const struct host *host, struct resctrl **ret_resctrl);
void resctrl_free(struct resctrl *resctrl);

/* Reads all groups. True: what the machine did since the last call is known. False: it is not, as
 * there is nothing to be read or this is the first time. May block as long as the kernel does. */
bool resctrl_read(struct resctrl *resctrl, uint64_t now_us);

/* Of the last reading that gave true: bytes of all groups, and of those of one container. False: it
 * has none, or nobody can tell. */
uint64_t resctrl_total_bytes(const struct resctrl *resctrl);
bool resctrl_find(const struct resctrl *resctrl, const char *container_id, uint64_t *ret_bytes);

/* Containers with groups, at the last reading. One that has two counts twice. */
size_t resctrl_container_count(const struct resctrl *resctrl);
