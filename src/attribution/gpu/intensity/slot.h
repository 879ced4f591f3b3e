/*
 * Slot: the activity of a GPU in a fifth of a second, or between two ticks of its counter if they
 * are further apart, and the tenants present. A ring of them covers the latest settlement.
 *
 * Readings have different delays (measured, H200): the energy counter and GPM lag the utilisation
 * samples by 0.05 s. Times of slots are those of the samples.
 */
#pragma once

#include "model/sample.h"

#define TENANT_NONE UINT32_MAX

/* Processes distinguished on one GPU. The last place is shared by all others. */
enum { TENANTS_MAX = 32, TENANT_OTHERS = TENANTS_MAX - 1 };

/* Activity of the device's units, relative to the maximum. Without GPM only that of the memory. */
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

/* Activity, integrated over the time in which it is known. */
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
    uint32_t listed;  /* bits: tenants on a list */
    uint32_t clients; /* bits: those that no sample tells apart: MPS clients, or all with MIG */
    uint32_t servers; /* bits: MPS servers, whose samples are those of the clients */
    uint32_t
        resting; /* bits: those on a list of which no sample was for long: they hold a context */
    uint16_t others;  /* those that no sample tells apart in TENANT_OTHERS */
    bool has_changed; /* one came or went: not all of them were there at the same time */
    bool is_counted;  /* `won` is time that the driver counts: a share of all of it, and no draws */
    uint8_t won[TENANTS_MAX];
    struct slot_activity gpm;
    struct slot_activity sampled; /* by the utilisation samples */
};

enum { SLOTS_MAX = 384 };

struct slots {
    struct slot ring[SLOTS_MAX]; /* the last one is open */
    size_t first, count;
    size_t unread; /* closed ones, at the end */
    uint64_t latest_us;
    uint64_t gpm_us;    /* the last such sample */
    uint64_t sample_us; /* the last utilisation sample */
    double units[UNIT_COUNT];
    uint32_t clock_mhz;                /* as last read; 0: never */
    uint32_t listed, clients, servers; /* by the lists in force */
    uint32_t resting;
    uint16_t others;
};

/* The activity of a slot, as far as it is known. */
struct slot_reading {
    bool has_gpm;
    double busy_s;
    double clock_mhz;         /* 0: unknown */
    double units[UNIT_COUNT]; /* while busy; without GPM [0] alone */
};

/* Adds energy up to a tick, and closes the slot if it is long enough. */
void slots_take_energy(struct slots *slots, uint64_t tick_us, uint64_t energy_uj);

/* Restarts at a tick: the time since the last one is unknown. */
void slots_restart(struct slots *slots, uint64_t tick_us);

void slots_take_gpm(struct slots *slots, uint64_t t_us, const struct sample_gpm *gpm);
/* From now on GPM is read, which it was not since its last reading, or never: the device was idle,
 * or what it did is unknown. */
void slots_begin_gpm(struct slots *slots, uint64_t t_us, bool was_idle);
void slots_take_sample(struct slots *slots, const struct sample_label *sample);
/* The same where the driver counts: engines worked for so long of the time up to now. */
void slots_take_busy(struct slots *slots, uint64_t t_us, uint64_t interval_us, uint64_t busy_us);
/* The samples, or pieces of counted time, that were a tenant's. */
void slots_take_wins(struct slots *slots, uint64_t at_us, uint32_t tenant, uint32_t count);
void slots_take_clock(struct slots *slots, uint32_t clock_mhz);
void slots_take_listed(struct slots *slots, uint32_t listed, uint32_t clients, uint32_t servers);

/* With those: how many of them are in TENANT_OTHERS, and no sample tells them apart. */
void slots_take_others(struct slots *slots, size_t others);

/* Until one of these has a sample. */
void slots_take_resting(struct slots *slots, uint32_t resting);

/* The clients of MPS on the lists in force, and those that share the board with them, as bits. */
static inline uint32_t slots_clients(const struct slots *slots)
{
    return slots->clients ? slots->listed & ~slots->servers & ~slots->resting : 0;
}

/* All tenants in the ring, as bits. */
uint32_t slots_tenants(const struct slots *slots);

/* The next closed slot with all its samples; NULL if there is none yet. */
const struct slot *slots_next(struct slots *slots, bool is_last_call);

/* Passes over closed slots until the one that ends at this time. NULL if there is none. */
struct slot *slots_next_until(struct slots *slots, uint64_t end_us);

/* Iterates over the slots whose middle is in a window, from `*cursor` = 0; NULL after the last. */
const struct slot *slots_of_window(const struct slots *slots, uint64_t start_us, uint64_t end_us,
                                   size_t *cursor);

/* Drops the slots of settled windows. */
void slots_drop_until(struct slots *slots, uint64_t tick_us);

/* False if the activity is not known. */
bool slot_read(const struct slot *slot, struct slot_reading *ret_reading);

/* The tenants that hold a context, as bits, and those of them that can have been at work. */
static inline uint32_t slot_contexts(const struct slot *slot)
{
    return slot->listed & ~slot->servers;
}
static inline uint32_t slot_workers(const struct slot *slot)
{
    return slot_contexts(slot) & ~slot->resting;
}

/* Was the device certainly idle? */
bool slot_is_quiet(const struct slot *slot);

/* Moves what a tenant did to another place; to TENANT_NONE: forgets it. */
void slots_move(struct slots *slots, uint32_t tenant, uint32_t to);
