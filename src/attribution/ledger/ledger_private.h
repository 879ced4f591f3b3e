/* Internals of the ledger. */
#pragma once

#include "attribution/ledger/ledger.h"
#include "core/map.h"
#include "model/scopes.h"

/* Shared energy is booked up to a minute late. Prices change every few minutes, but a mirror may
 * return another one each second. */
enum { LEDGER_PRICES = 128 };

/* Sorted by time; the first one also holds before its time. */
struct ledger_rates {
    struct {
        uint64_t from_us, rate;
    } of[LEDGER_PRICES];
    size_t count;
};

struct ledger {
    struct ledger_options options;
    struct ledger_counts counts;
    struct ledger_meter *meters;
    size_t meter_count, meter_slots;
    struct ledger_process *processes; /* a row keeps its index while it is used */
    struct map process_map;
    struct ledger_workload *workloads; /* likewise */
    struct map workload_map;
    uint32_t lowest_free;            /* no free place of a workload is before it */
    size_t permanent_workloads;      /* which the limit does not count */
    bool none_ended;                 /* no workload is without members: none can make room */
    struct scopes scopes;            /* of the workloads */
    struct ledger_account *accounts; /* likewise */
    size_t account_slots;
    uint32_t free_account; /* a list over `next` */
    uint64_t last_serial;
    struct ledger_rates emission_rates, cost_rates; /* each changes at its own times */
    uint64_t latest_us;                             /* of any sample; 0: none yet */
    unsigned kept_kinds;                            /* see ledger_keep_booked */
    uint64_t tidied_us; /* last retirement, by the clock as it was; unlike retired_at_us it goes
                         * back with it */
};

/* Opens the account of a workload at a meter if there is none. */
int ledger_open_account(struct ledger *ledger, uint32_t workload, uint32_t meter,
                        uint32_t *ret_account);

/* Make a row that was unpacked findable. 0, -EEXIST or -ENOMEM. */
int ledger_index_process(struct ledger *ledger, uint32_t process);
int ledger_index_workload(struct ledger *ledger, uint32_t workload);

/* Copies the names into the row. 0 or -ENOMEM. */
int ledger_names_set(struct ledger_identity *identity, const struct workload_names *names);

/* Retires workloads without members, at most once a minute. */
void ledger_retire_workloads(struct ledger *ledger, uint64_t now_us);

/* Free what a row owns and zero it. */
void ledger_process_done(struct ledger_process *process);
void ledger_workload_done(struct ledger_workload *workload);
void ledger_identity_done(struct ledger_identity *identity);

/* Replaces a text by a copy of another; "" becomes NULL. 0 or -ENOMEM. */
int ledger_text_set(char **text, const char *value);
