/*
 * Slot: what a GPU did in a fifth of a second, or between two ticks of its counter if they are
 * further apart, and who can have done it. A ring of them, long enough for the latest settlement.
 *
 * The readings of one instant come at different delays (measured, H200): the energy counter lags
 * the utilisation samples by 0.05 s, and so does GPM. Times of slots are those of the samples.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sample.h"

#define TENANT_NONE UINT32_MAX

/* Processes that are told apart on one GPU. The last place is that of all others together. */
enum { TENANTS_MAX = 32, TENANT_OTHERS = TENANTS_MAX - 1 };

/* What the units of the device did, each as a part of its maximum. Without GPM there is only how
 * busy the memory was. */
enum slot_unit {
    UNIT_SM,
    UNIT_OCCUPANCY,
    UNIT_INTEGER,
    UNIT_TENSOR,
    UNIT_DRAM,
    UNIT_FP64,
    UNIT_FP32,
    UNIT_FP16,
    UNIT_COUNT,
    UNIT_MEMORY_BUSY = 0, /* without GPM */
};

/* Activity, integrated over the time that it is known of. */
struct slot_activity {
    double known_us;
    double busy_us;
    double units_us[UNIT_COUNT];
};

struct slot {
    uint64_t start_us, end_us;
    uint64_t energy_uj;
    uint64_t clock_sum_mhz; /* over its readings */
    uint32_t clock_readings;
    uint32_t listed;  /* a bit for each tenant that a list named */
    uint32_t clients; /* those of them that are clients of MPS: they do not take turns */
    uint8_t won[TENANTS_MAX];
    struct slot_activity gpm;
    struct slot_activity sampled; /* by the utilisation samples */
};

enum { SLOTS_MAX = 384 };

struct slots {
    struct slot ring[SLOTS_MAX]; /* the last one is open */
    size_t first, count;
    size_t unread; /* of the closed ones, at the end */
    uint64_t latest_us;
    uint64_t gpm_us;    /* the last such sample */
    uint64_t sample_us; /* the last utilisation sample */
    double units[UNIT_COUNT];
    uint32_t clock_mhz;       /* as last read; 0: never */
    uint32_t listed, clients; /* by the lists in force */
};

/* What is known of a slot's activity. */
struct slot_reading {
    bool has_gpm;
    double busy_s;            /* how long something ran */
    double clock_mhz;         /* 0: unknown */
    double units[UNIT_COUNT]; /* meanwhile, as a part of the maximum; [0] alone without GPM */
};

/* Energy up to a tick. Closes the slot if it is long enough. */
void slots_take_energy(struct slots *slots, uint64_t tick_us, uint64_t energy_uj);

/* Begins anew at a tick: what came since the last one tells nothing. */
void slots_restart(struct slots *slots, uint64_t tick_us);

void slots_take_gpm(struct slots *slots, uint64_t t_us, const struct sample_gpm *gpm);
void slots_take_sample(struct slots *slots, const struct sample_label *sample);
void slots_take_win(struct slots *slots, uint64_t at_us, uint32_t tenant);
void slots_take_clock(struct slots *slots, uint32_t clock_mhz);
void slots_take_listed(struct slots *slots, uint32_t listed, uint32_t clients);

/* The next closed slot to which nothing more will be added; NULL if there is none yet. */
const struct slot *slots_next(struct slots *slots, bool is_last_call);

/* Walks over the slots of a window (those whose middle is in it), from `*cursor` = 0; NULL after
 * the last. */
const struct slot *slots_of_window(const struct slots *slots, uint64_t start_us, uint64_t end_us,
                                   size_t *cursor);

/* Drops what belongs to settled windows. */
void slots_drop_until(struct slots *slots, uint64_t tick_us);

/* False if nobody can say what the device did. */
bool slot_read(const struct slot *slot, struct slot_reading *ret_reading);

/* Did the device certainly do nothing? */
bool slot_is_quiet(const struct slot *slot);

/* A tenant's place is given to another; what it did here goes to the place `to`, or nowhere. */
void slots_move(struct slots *slots, uint32_t tenant, uint32_t to);
