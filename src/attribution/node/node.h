/*
 * The node beside its GPUs: readings of its meters and what workloads did in, settled windows out
 * to the ledger.
 *
 * A window lasts from one report of usage to the next. Package energy goes by CPU time, DRAM energy
 * by memory traffic where that is counted, else by the memory that is held; what the machine did
 * outside of any workload is `system`, and the level that it draws when it does nothing is `idle`.
 * Meters that contain others, or are contained in them, are only observed. A model stands in for
 * meters of the packages as long as there are none; it tells itself what of its energy is idle. No
 * I/O, no clock.
 */
#pragma once

#include "attribution/gpu/idle.h"
#include "attribution/ledger/ledger.h"
#include "attribution/node/workload_usage.h"
#include "attribution/share.h"
#include "model/sample.h"

enum { NODE_METERS_MAX = 256, NODE_POWERS_MAX = 8 };

struct node_meter {
    const char *source; /* a literal */
    enum meter_kind kind;
    char *id;
    bool integrated, modelled;
    uint32_t meter; /* in the ledger; LEDGER_NONE: only observed */
    uint64_t counter_uj, read_us;
    uint32_t breaks;
    uint64_t lapses;                   /* times that the count did not go on from the last one */
    uint64_t pending_uj;               /* read since the last report of usage */
    uint64_t idle_uj, pending_idle_uj; /* of a model: the idle part of the counter and of pending */
    struct idle_levels idle;
};

struct node_power {
    const char *source; /* a literal */
    uint64_t power_mw, read_us;
};

struct node {
    struct ledger *ledger;
    struct node_meter *meters;
    size_t meter_count;
    struct workload_usages members;
    uint64_t settled_until_us;
    struct node_power powers[NODE_POWERS_MAX];
    size_t power_count;

    /* Scratch, kept so that a steady state allocates nothing. */
    struct share *shares;
    struct booking *bookings;
    size_t scratch_capacity;
};

void node_init(struct node *node, struct ledger *ledger);
void node_done(struct node *node);

/* Takes a sample that is of no GPU. 0 or -ENOMEM; then the books still balance. */
int node_ingest(struct node *node, const struct sample *sample);

/* Books what is pending as a gap: nobody will say who used it. For the end of a run. */
void node_finish(struct node *node);

/* The meter of the ledger's index, or NULL. */
const struct node_meter *node_meter_of(const struct node *node, uint32_t meter);
