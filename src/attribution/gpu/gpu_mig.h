/*
 * A board in MIG mode. It has one energy counter; a GPU instance of it has slices, memory and
 * processes of its own, and GPM shows its activity where the board has GPM at all. So the board's
 * energy is divided among its instances first, and each of them is then a board of its own.
 *
 * There are no utilisation samples in MIG mode: processes of one instance are told apart as clients
 * of MPS are, by what their programs showed alone.
 */
#pragma once

#include "attribution/gpu/idle.h"
#include "attribution/gpu/intensity/gains.h"
#include "attribution/gpu/intensity/unit_watts.h"
#include "model/sample.h"
#include "model/snapshot.h"

struct gpu;
struct gpu_learning;
struct window;

enum { GPU_INSTANCES_MAX = 16, GPU_INSTANCE_TEXT_BYTES = 96 }; /* bits of window.occupied */

struct gpu_reading {
    uint64_t t_us; /* 0: never read */
    uint64_t value;
};

/* A compute instance: SMs of a GPU instance. */
struct gpu_compute {
    uint32_t id;
    uint32_t index;  /* of the MIG device on its board, in NVML's order */
    uint32_t slices; /* 1 where unknown */
    char uuid[GPU_INSTANCE_TEXT_BYTES];
    char profile[GPU_INSTANCE_TEXT_BYTES];
};

struct gpu_instance {
    uint32_t id;
    uint32_t slices;   /* 1 where unknown */
    uint32_t sm_count; /* of its compute instances; 0: unknown */
    char profile[GPU_INSTANCE_TEXT_BYTES];
    struct mig_placement placement;
    struct gpu_compute computes[GPU_INSTANCES_MAX];
    size_t compute_count;
    struct gpu_learning *learning; /* NULL: --attribution=timeshare */
    uint64_t memory_bytes;         /* 0: unknown */
    uint64_t left_us;              /* when its last process had left; 0: none was there */
    bool is_occupied;              /* its memory is in use */
    struct gpu_reading gauges[GPU_GAUGE_COUNT];
};

struct gpu_mig {
    enum layout_kind kind;
    uint32_t slices;   /* of the board, and not less than its instances have */
    uint32_t sm_count; /* of the largest instance that it can have; 0: unknown */
    struct gpu_instance instances[GPU_INSTANCES_MAX];
    size_t count;
    struct unit_watts units;
    struct gains gains; /* of its instances, in their order; on units as other boards have them */
    bool has_gpm;       /* it was read of an instance */
};

/* A part of a window: an instance, or the processes of which none is known. */
struct gpu_part {
    const struct gpu_instance *instance; /* NULL: the processes of no known instance */
    struct idle_part idle;
    uint64_t active_uj;
    bool has_context;
    bool is_occupied; /* its memory is in use, and no process of it is listed */
    bool is_active;
    double error; /* of active_uj, expected; relative to it */
};

struct gpu_parts {
    struct gpu_part items[GPU_INSTANCES_MAX + 1];
    size_t count;
    uint64_t free_uj; /* the idle floor of slices that no instance has */
};

/* NULL if there is none. */
struct gpu_instance *gpu_mig_find(const struct gpu_mig *mig, uint32_t instance);
const struct gpu_compute *gpu_mig_find_compute(const struct gpu_instance *instance,
                                               uint32_t compute);

/* Is the board partitioned otherwise than before? */
bool gpu_mig_is_changed(const struct gpu *gpu, const struct sample_layout *layout);

/* Takes a changed layout. What was learned of instances that stay is kept. 0 or -ENOMEM: the board
 * is not divided. */
int gpu_mig_take_layout(struct gpu *gpu, const struct sample_layout *layout);
void gpu_mig_free(struct gpu_mig *mig);

/* Divides the energy of a window among its parts. */
void gpu_mig_divide(const struct gpu *gpu, const struct window *window,
                    struct gpu_parts *ret_parts);

/* Learns the watts of units from a slot of the board, divides its energy among the slots of the
 * instances, and learns from these. */
void gpu_mig_learn_slot(struct gpu *gpu, const struct slot *slot);
