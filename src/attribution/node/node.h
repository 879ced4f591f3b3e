/*
 * The node beside its GPUs: readings of its meters and usage of its workloads in, settled windows
 * out to the ledger. A window lasts from one usage report to the next. Meters that contain others,
 * or are contained in them, are only observed. A model stands in for package meters until there are
 * any. docs/power.md explains the division.
 */
#pragma once

#include "attribution/bookings.h"
#include "attribution/gpu/idle.h"
#include "attribution/node/workload_usage.h"
#include "attribution/resumed_meters.h"

enum { NODE_METERS_MAX = 256, NODE_POWERS_MAX = 8 };

struct node_meter {
    const char *source; /* a literal */
    enum meter_kind kind;
    char *id;
    bool modelled;
    uint32_t meter; /* in the ledger; LEDGER_NONE: only observed */
    uint64_t counter_uj, read_us;
    uint64_t base_uj;  /* of the counter: what it had before the source began to count */
    bool has_hardware; /* a count of its own, as last read: */
    uint64_t hardware;
    uint32_t breaks;
    uint64_t lapses;                   /* discontinuities of the count */
    uint64_t pending_uj;               /* since the last usage report */
    uint64_t idle_uj, pending_idle_uj; /* of a model: the idle part of counter and pending */
    struct idle_levels idle;
    struct meter_limits limits;
};

struct node_power {
    const char *source; /* a literal */
    uint64_t power_mw, read_us;
};

struct node {
    struct ledger *ledger;
    struct node_meter *meters;
    size_t meter_count, meter_slots;
    struct resumed_meters *resumed; /* NULL: none */
    struct workload_usages usages;
    bool has_no_usage; /* no report will come: energy is unattributed when it is read */
    uint64_t settled_until_us;
    struct node_power powers[NODE_POWERS_MAX];
    size_t power_count;
    struct bookings bookings;
};

void node_init(struct node *node, struct ledger *ledger);
void node_done(struct node *node);

/* What the next run needs to go on with a meter. The texts stay the meter's. */
struct resumed_meter node_resumed_meter(const struct node_meter *meter);

/* Takes a sample that is not of a GPU. 0 or -ENOMEM; the books balance either way. */
int node_ingest(struct node *node, const struct sample *sample);

/* Books pending energy as a gap: no usage report will follow. For the end of a run. */
void node_finish(struct node *node);

/* The meter that was read, or NULL: it is new. */
struct node_meter *node_find_meter(const struct node *node, const struct sample_meter *reading);

/* The meter with this index in the ledger, or NULL. */
const struct node_meter *node_meter_of(const struct node *node, uint32_t meter);
