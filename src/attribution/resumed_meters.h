/*
 * Resumed meters: meters as the previous run left them, or as they were when they went, until they
 * are read again. What a meter's own count has moved meanwhile is a gap. Pure.
 */
#pragma once

#include "attribution/gpu/idle.h"
#include "core/pack.h"
#include "model/counter.h"
#include "model/meter.h"

enum { RESUMED_METERS_MAX = 1024 };

struct resumed_meter {
    enum meter_kind kind;
    char *source, *id;   /* GPUs have no source: NULL */
    bool has_counter;    /* false: the machine was started again, and only levels are known */
    bool is_integral;    /* the counter is power x time, and starts over with each run */
    uint64_t counter_uj; /* as last shown */
    uint64_t read_us;
    bool has_hardware;   /* a count of its own; false: what it misses is unknown */
    uint64_t hardware;   /* as last read, unless it is the counter */
    bool is_booked;      /* the ledger has it: */
    uint64_t pending_uj; /* counted, but not booked */
    struct idle_levels idle;
};

/* Zeroed, it is empty. */
struct resumed_meters {
    struct resumed_meter *items;
    size_t count, slots;
};

void resumed_meter_code(struct resumed_meter *meter, struct coder *coder);
void idle_levels_code(struct idle_levels *levels, struct coder *coder);

/* Moves the record of this meter to the caller, who frees its texts. False: there is none. */
bool resumed_meters_take(struct resumed_meters *meters, enum meter_kind kind, const char *source,
                         const char *id, struct resumed_meter *ret_meter);

/* What meters of this kind measure was booked without them: by another source than this one, or
 * (NULL) as part of a whole. So it is no gap of theirs, and what they miss is unknown. */
void resumed_meters_disown(struct resumed_meters *meters, enum meter_kind kind, const char *source);

/* The highest count of this meter by any source; 0: none. */
uint64_t resumed_meters_highest_uj(const struct resumed_meters *meters, enum meter_kind kind,
                                   const char *id);

/* Keeps a copy of a meter that is gone, as that of a previous run. 0 or -ENOMEM. */
int resumed_meters_keep(struct resumed_meters *meters, const struct resumed_meter *meter);

void resumed_meter_done(struct resumed_meter *meter);
void resumed_meters_done(struct resumed_meters *meters);

/* What was used until this reading of the device's own count. False: unknown. */
bool resumed_meter_find_gap(const struct resumed_meter *meter, const struct counter *hardware,
                            uint64_t t_us, uint64_t *ret_gap_uj);
