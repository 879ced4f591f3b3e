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

#include "core/span.h"
#include "host/host.h"
#include "model/workload.h"

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

/*
 * What one counter of memory traffic says, from one reading to the next. Pure.
 *
 * The kernel widens the hardware's counter to 64 bits, so it does not wrap; but it begins anew when
 * the hardware gives the counter to somebody else. And what a class does beside the groups in it is
 * a difference of numbers read one after another: it may go back a little, or far for once, if a
 * group went away in between. So a value that is lower is believed when it is seen twice.
 * Zeroed, it has seen nothing.
 */
struct resctrl_counter {
    bool has_last;
    bool was_lower;
    uint64_t last, last_us;
};

enum resctrl_step {
    RESCTRL_FIRST,
    RESCTRL_KNOWN,
    RESCTRL_LOWER,
    RESCTRL_ABSURD, /* nothing can move so much in that time */
};

/* Takes a value that was read at a time that never goes back. Writes what was counted since the
 * last one if that is known, and nothing else. */
enum resctrl_step resctrl_counter_take(struct resctrl_counter *counter, uint64_t t_us,
                                       uint64_t value, uint64_t *ret_bytes);

/* Parsers of its names and files (Documentation/filesystems/resctrl.rst). Pure. */

enum { RESCTRL_DOMAIN_MAX = 99999 };

/* "mon_L3_00", the directory of an L3 cache. -EINVAL: another name. */
int resctrl_parse_domain(struct span name, uint32_t *ret_id);

/* The text of mbm_total_bytes. -ENODATA: the kernel has none ("Unavailable", "Unassigned",
 * "Error"). -EINVAL: what else it may be. */
int resctrl_parse_bytes(struct span text, uint64_t *ret_bytes);

/*
 * The container whose group this is: its id of 64 hexadecimal digits is the name (runc, crun), or
 * stands at the end of it behind a mark ("goresctrl.ID", "container-ID"). False: not of one.
 */
bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES]);
