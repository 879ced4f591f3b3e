/*
 * A trace in memory: for each GPU and kind the records in order of time, and the directives.
 * Read whole at the start and constant from then on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "directive.h"

enum { SCENARIO_GPUS = 16 };

enum kind {
    KIND_ENERGY,      /* mJ */
    KIND_POWER,       /* mW: power, average, instant */
    KIND_UTILIZATION, /* gpu %, memory %, SM clock MHz, temperature C */
    KIND_MEMORY,      /* bytes: used with reserved, free, total */
    KIND_SAMPLE,      /* pid, sample time, sm %, mem %, enc %, dec %; t_us is the sample time */
    KIND_COMPUTE,     /* entries: pid, bytes */
    KIND_MPS,
    KIND_GRAPHICS,
    KIND_GPM,             /* entries: metric id, value */
    KIND_INSTANCE_GPM,    /* the same, and the GPU instance in values[0] */
    KIND_LAYOUT,          /* values: MIG mode, slices, SMs; instances */
    KIND_INSTANCE_MEMORY, /* GPU instance, enum instance_memory, bytes */
    KIND_VGPUS,           /* vgpus */
    KIND_VGPU_USE, /* vGPU, sample time, sm %, mem %, enc %, dec %; t_us is the sample time */
    KIND_COUNT,
};

enum instance_memory {
    INSTANCE_MEMORY_TOTAL,
    INSTANCE_MEMORY_RESERVED,
    INSTANCE_MEMORY_USED,
    INSTANCE_MEMORY_FREE,
    INSTANCE_MEMORY_WORDS,
};

struct entry {
    uint64_t key;
    union {
        uint64_t bytes;
        double value;
    };
    uint32_t gpu_instance, compute_instance; /* of a process; all ones: none */
};

/* A MIG device. */
struct instance {
    uint64_t gpu_instance, compute_instance, index, slices, compute_slices, sms, bytes;
    char profile[96], uuid[96];
    bool has_placement;
    uint64_t placement[3]; /* the id of its profile; first memory slice, and how many */
};

struct vgpu {
    uint64_t id, bytes;
    bool vm_is_uuid;
    char vm[80], uuid[80];
};

struct record {
    uint64_t t_us;
    uint64_t line; /* keeps the order of equal times */
    uint64_t values[6];
    union {
        struct entry *entries;
        struct instance *instances;
        struct vgpu *vgpus;
    };
    size_t count;
};

struct series {
    struct record *records;
    size_t count;
    size_t size;
    uint64_t last_line_us;
};

/* What a `gpu` line says; an empty text or a zero is a key that was not there. */
struct gpu {
    bool described;
    char uuid[96];
    char name[96];
    char driver[80];
    char serial[30];
    char pci[32];
    uint64_t power_limit_mw;
    uint64_t memory_bytes;
    struct series series[KIND_COUNT];
};

struct scenario {
    unsigned gpu_count;
    struct gpu gpus[SCENARIO_GPUS];
    struct directives directives;
    char *folder; /* of the file: relative names in it start there */
    uint64_t start_us;
    uint64_t loop_us; /* the time at which play starts again, or 0 */
};

/* Reads a file, plain or gzip. On error NULL, with the reason in why. */
struct scenario *scenario_read(const char *path, char *why, size_t why_size);
void scenario_free(struct scenario *scenario);

/* The fields of records B, K, V and Y: NULL, or what is wrong with them. */
const char *partitions_parse_layout(struct record *record, char *rest);
const char *partitions_parse_memory(struct record *record, char *rest);
const char *partitions_parse_vgpus(struct record *record, char *rest);

/* The last record at or before a time, or NULL. */
const struct record *series_at(const struct series *series, uint64_t t_us);

/* The same, and the first record for a time before it: a trace starts with one poll, whose calls
 * come one after another, and what they say was true when the poll began. */
const struct record *series_near(const struct series *series, uint64_t t_us);
