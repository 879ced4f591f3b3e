/*
 * Memory traffic by container, from the resctrl groups of runtimes and administrators (Memory
 * Bandwidth Monitoring of Intel and AMD). Read only: no group is made, no task moved.
 *
 * A class (CTRL_MON group) counts itself and the monitoring groups in it, which are subtracted.
 * Tasks without a group are in the default class, the root. Each read interrupts a CPU of the L3
 * cache, so with too many files nothing is read at all.
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

/* Reads all groups. True: the traffic since the last call is known. False: there is nothing to
 * read, or this is the first time. May block as long as the kernel does. */
bool resctrl_read(struct resctrl *resctrl, uint64_t now_us);

/* After a successful reading: bytes of all groups, and of the groups of one container. False: it
 * has none, or they are unknown. */
uint64_t resctrl_total_bytes(const struct resctrl *resctrl);
bool resctrl_find(const struct resctrl *resctrl, const char *container_id, uint64_t *ret_bytes);

/* Groups of containers at the last reading. */
size_t resctrl_container_count(const struct resctrl *resctrl);

/* One counter of memory traffic; zeroed, it has seen nothing. The kernel widens it to 64 bits, but
 * it begins anew when the hardware reassigns it. And a class without its groups is a difference of
 * numbers read one after another: it may go back a little, or far for once, if a group went away in
 * between. So a lower value is accepted only when it is seen twice. */
struct resctrl_counter {
    bool has_last;
    bool was_lower;
    uint64_t last, last_us;
};

enum resctrl_step {
    RESCTRL_FIRST,
    RESCTRL_KNOWN,
    RESCTRL_LOWER,
    RESCTRL_ABSURD, /* no memory is that fast */
};

/* Takes a value read at a monotonic time. Writes the traffic since the last one if that is
 * RESCTRL_KNOWN. */
enum resctrl_step resctrl_counter_update(struct resctrl_counter *counter, uint64_t t_us,
                                         uint64_t value, uint64_t *ret_bytes);

/* Pure parsers (Documentation/filesystems/resctrl.rst). */

enum { RESCTRL_DOMAIN_MAX = 99999 };

/* "mon_L3_00", the directory of an L3 cache. -EINVAL: another name. */
int resctrl_parse_domain(struct span name, uint32_t *ret_id);

/* The text of mbm_total_bytes. -EINVAL: no number, such as "Unavailable", "Unassigned", "Error". */
int resctrl_parse_bytes(struct span text, uint64_t *ret_bytes);

/* The container of a group: the name is its id of 64 hexadecimal digits (runc, crun), or ends with
 * it after a separator ("goresctrl.ID", "container-ID"). False: not a container's. */
bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES]);
