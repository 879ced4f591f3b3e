/* The inside of the ledger. */
#pragma once

#include "attribution/ledger/ledger.h"
#include "core/map.h"

/* Shared energy is booked up to a minute late. Prices change every few minutes, but a mirror may
 * return another one each second. */
enum { LEDGER_PRICES = 128 };

struct ledger_rate {
    uint64_t from_us, rate;
};

/* By time; the first holds before it, too. */
struct ledger_rates {
    struct ledger_rate of[LEDGER_PRICES];
    size_t count;
};

struct ledger {
    struct ledger_options options;
    struct ledger_counts counts;
    struct ledger_meter *meters;
    size_t meter_count;
    struct ledger_process *processes; /* slots keep their index for as long as they are used */
    size_t process_slots;
    struct map process_map;
    struct ledger_workload *workloads; /* likewise */
    size_t workload_slots;
    struct map workload_map;
    struct ledger_account *accounts; /* likewise */
    size_t account_slots;
    uint32_t free_account;
    uint64_t last_serial;
    struct ledger_rates emission_rates, cost_rates; /* each changes at its own times */
    uint64_t latest_us;                             /* the latest time of any sample; 0: none yet */
    unsigned kept_kinds;                            /* see ledger_keep_booked */
};

/* The account of a workload at a meter, opened where there is none. */
int ledger_open_account(struct ledger *ledger, uint32_t workload, uint32_t meter,
                        uint32_t *ret_account);

/* The sum of a meter's accounts, of workloads that are there and of the retired. */
struct account ledger_owned(const struct ledger *ledger, uint32_t meter);

/* Free what a slot owns; the slot is empty then. */
void ledger_process_done(struct ledger_process *process);
void ledger_workload_done(struct ledger_workload *workload);
void ledger_names_done(struct ledger_names *names);
