/*
 * Usage: the counters and gauges of a workload's cgroup, as read; nothing is divided or smoothed.
 * A value is there only if its bit is set. Counters start with the cgroup and include everything
 * that was ever below it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/workload.h"

enum usage_field {
    /* Counters. The two halves of the CPU time add up to it. */
    USAGE_CPU_US,
    USAGE_CPU_USER_US,
    USAGE_CPU_SYSTEM_US,
    USAGE_CPU_PERIODS, /* of the quota, and those in which it was used up */
    USAGE_CPU_THROTTLED_PERIODS,
    USAGE_CPU_THROTTLED_US,
    USAGE_MEMORY_FAILURES, /* how often the limit was hit */
    USAGE_MEMORY_OOM_KILLS,
    USAGE_CPU_SOME_US, /* pressure: at least one task waited; none could go on */
    USAGE_CPU_FULL_US,
    USAGE_MEMORY_SOME_US,
    USAGE_MEMORY_FULL_US,
    USAGE_IO_SOME_US,
    USAGE_IO_FULL_US,

    /* Gauges, from here on. */
    USAGE_MEMORY_RSS_BYTES, /* anonymous */
    USAGE_MEMORY_CACHE_BYTES,
    USAGE_MEMORY_INACTIVE_FILE_BYTES, /* used less this is the working set */
    USAGE_MEMORY_USED_BYTES,
    USAGE_MEMORY_LIMIT_BYTES, /* the tightest on the way to the root; absent: there is none */
    USAGE_MEMORY_SWAP_BYTES,
    USAGE_PIDS, /* tasks, not processes */
    /* It may use as much: of its cpuset and the quotas on the way to the root, the least. */
    USAGE_CPUS_THOUSANDTHS,
    USAGE_FIELDS,
};

#define USAGE_BIT(field) ((uint32_t)1 << (field))
#define USAGE_COUNTERS   (USAGE_BIT(USAGE_MEMORY_RSS_BYTES) - 1)

/* Larger values mean "no limit", or are negative numbers printed as unsigned. */
#define USAGE_VALUE_MAX (((uint64_t)1 << 62) - 1)

enum usage_io_field {
    USAGE_IO_READ_BYTES,
    USAGE_IO_WRITTEN_BYTES,
    USAGE_IO_READS,
    USAGE_IO_WRITES,
    USAGE_IO_FIELDS,
};

enum { USAGE_DEVICE_BYTES = 32 }; /* the kernel's DISK_NAME_LEN, and names of RDMA devices */

/* A byte may be counted for a disk and for what lies on it (LVM, md): not to be added up. */
struct usage_io {
    uint32_t major, minor;
    uint32_t valid;                  /* by enum usage_io_field */
    char device[USAGE_DEVICE_BYTES]; /* "": not looked up */
    uint64_t values[USAGE_IO_FIELDS];
};

struct usage_rdma {
    char device[USAGE_DEVICE_BYTES];
    bool has_handles, has_objects;
    uint64_t handles, objects;
};

struct usage_hugetlb {
    uint64_t page_bytes;
    uint64_t used_bytes;
};

/* Caps for one cgroup. */
enum { USAGE_IO_MAX = 16, USAGE_RDMA_MAX = 8, USAGE_HUGETLB_MAX = 4 };

struct usage {
    uint32_t valid;    /* by enum usage_field */
    uint32_t left_out; /* values of devices beyond the caps */
    uint8_t io_count, rdma_count, hugetlb_count;
    uint8_t io_room, rdma_room, hugetlb_room; /* of the arrays below */
    uint64_t values[USAGE_FIELDS];
    struct usage_io *io;
    struct usage_rdma *rdma;
    struct usage_hugetlb *hugetlb;
};

/* Storage for the devices of a usage that is being read or computed. */
struct usage_storage {
    struct usage_io io[USAGE_IO_MAX];
    struct usage_rdma rdma[USAGE_RDMA_MAX];
    struct usage_hugetlb hugetlb[USAGE_HUGETLB_MAX];
};

/* An empty usage with that storage. */
static inline struct usage usage_in(struct usage_storage *room)
{
    return (struct usage){
        .io_room = USAGE_IO_MAX,
        .rdma_room = USAGE_RDMA_MAX,
        .hugetlb_room = USAGE_HUGETLB_MAX,
        .io = room->io,
        .rdma = room->rdma,
        .hugetlb = room->hugetlb,
    };
}

/* The first value stays. */
static inline void usage_set(struct usage *usage, enum usage_field field, uint64_t value)
{
    if (value > USAGE_VALUE_MAX || (usage->valid & USAGE_BIT(field)))
        return;
    usage->values[field] = value;
    usage->valid |= USAGE_BIT(field);
}

static inline bool usage_has(const struct usage *usage, enum usage_field field)
{
    return usage->valid & USAGE_BIT(field);
}

/* NULL: not found. */
struct usage_io *usage_find_io(const struct usage *usage, uint32_t major, uint32_t minor);
struct usage_rdma *usage_find_rdma(const struct usage *usage, const char *device);
struct usage_hugetlb *usage_find_hugetlb(const struct usage *usage, uint64_t page_bytes);

/* Finds or adds it. NULL: there is no room, which left_out counts. */
struct usage_io *usage_add_io(struct usage *usage, uint32_t major, uint32_t minor);

/* From here on `to` owns its devices: zeroed at first, freed by usage_done. 0 or -ENOMEM; then
 * devices are missing. */
int usage_copy(struct usage *to, const struct usage *from);
void usage_done(struct usage *usage);

/* Copies the counters that `from` has; others stay. */
int usage_copy_counters(struct usage *to, const struct usage *from);

/* Adds counters and gauges; of two limits the tighter one stays. */
int usage_add(struct usage *to, const struct usage *from);

/* Raises counters to those of `other` where these are higher or missing. 0 or -ENOMEM. */
int usage_raise(struct usage *usage, const struct usage *other);

/* For a workload that cannot be read: its totals stay true, its gauges do not. */
void usage_clear_gauges(struct usage *usage);

#define USAGE_AROUND_NONE UINT32_MAX

struct usage_owner {
    struct workload_owner owner;
    /* Of this directory, never used again: one of the same name that is made later has another id.
     * Two directories may have one owner. */
    uint64_t id;
    /* Index of the workload around this one, whose numbers contain these. */
    uint32_t around;
    bool ended; /* these are its last numbers; it is shown once more */
    struct usage usage;
    bool is_older;       /* than the first report: its earlier usage is unknown */
    struct usage before; /* the counters as last reported; empty: never */
};
