/*
 * The ledger: monotone integer accounts of meters, processes and workloads.
 *
 * For every meter, at every time: energy = sum of its unowned joules + sum over workloads, and for
 * a GPU the sum over workloads = the sum over processes. It books what it is told and nothing is
 * ever taken back; ledger_imbalance_uj recomputes both sums from the accounts. Bills, and the time
 * of devices, sum up as the joules do. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "model/account.h"
#include "model/embodied.h"
#include "model/meter.h"
#include "model/price.h"
#include "model/sample.h"
#include "model/workload.h"

#define LEDGER_NONE UINT32_MAX

/* Shared energy is booked up to a minute late. Prices change every few minutes, but who asks a
 * mirror may be told another one each second. */
enum { LEDGER_PRICES = 128 };

struct ledger_process;

struct ledger_options {
    size_t max_processes;
    size_t max_workloads;
    uint64_t retention_us; /* UINT64_MAX: for ever */
    struct embodied_rates embodied;

    /* Does the process still run, or is energy of it still to be settled? Then it is not forgotten.
     */
    bool (*is_live)(const void *context, const struct ledger_process *process);
    const void *context;

    /* Who pays for a process; WORKLOAD_PROCESS if nothing is known of it. Pure. */
    void (*find_owner)(const struct sample_process *who, struct workload_owner *ret_owner);
};

/* Names as they are shown: fixed once, because a label that changes would be another series. */
struct ledger_names {
    bool fixed;
    char *name, *namespace, *pod, *container; /* NULL: none */
    char *image;                              /* not shown with them */
};

/* Whose the time of a meter's device was; all 0 if it has no rate of embodied carbon. */
struct ledger_device {
    uint64_t total_us; /* that has an owner */
    uint64_t unowned_us[UNOWNED_COUNT];
    uint64_t undivided_us; /* of windows without a joule: it goes with the next that has one */
    uint64_t until_us;     /* how far it is counted; 0: it has not begun */
};

struct ledger_meter {
    enum meter_kind kind;
    char *meter_id;
    uint32_t gpu;       /* of a GPU; else 0 */
    uint64_t energy_uj; /* settled */
    uint64_t settled_until_us;
    uint64_t unowned_uj[UNOWNED_COUNT];
    uint64_t swept_uj; /* of processes that have no account any more */
    uint32_t overflow; /* the process account of those cut by max_processes; LEDGER_NONE at first */
    struct account retired; /* of workloads that have no account any more */
    struct bill bill;       /* of energy_uj */
    struct bill unowned_bill[UNOWNED_COUNT];
    struct ledger_device device;
};

/* When and where the driver showed a process. Kept by gpu.c; the ledger only clears it. */
struct ledger_sightings {
    uint64_t first_listed_us, last_listed_us; /* 0: never */
    uint64_t last_us;                         /* on a list or in a sample */
    uint64_t list_round[SAMPLE_LIST_KINDS];   /* the last round of this list that named it */
    uint64_t memory_bytes[SAMPLE_LIST_KINDS]; /* what it said */
    uint64_t window;                          /* the last window in which it is present */
    size_t window_index;                      /* its place there */
    bool is_mps_server;                       /* its samples are those of its clients */
    uint8_t tenant;                           /* its place in the estimator, from 1; 0: none */
};

/* A process on one GPU. The key is (gpu, pid, start time). */
struct ledger_process {
    bool used;       /* or a free slot */
    bool superseded; /* its pid belongs to another process by now */
    bool unseen;     /* stands for all processes of its workload that nobody sees; has no pid */
    bool identified;
    uint32_t pid;
    uint32_t meter;
    uint32_t workload;
    uint32_t uid;      /* or SAMPLE_UID_UNKNOWN */
    uint64_t start_us; /* 0: unknown */
    uint64_t opened_us;
    char *name;         /* may be NULL */
    char *container_id; /* the container that it is in; may be NULL */
    bool container_is_claim;
    char *pod_uid; /* may be NULL */
    struct ledger_names names;
    uint64_t active_uj, idle_uj;
    uint64_t measured_uj;    /* the part of both that was measured */
    uint64_t known_uj;       /* as in struct account */
    uint64_t last_booked_us; /* when, not for which window: that may be a minute earlier */
    struct ledger_sightings seen;
};

struct ledger_workload {
    bool used;
    enum workload_kind kind;
    char *id;
    char *container_id; /* may be NULL */
    char *pod_uid;      /* may be NULL */
    uint64_t opened_us;
    struct ledger_names names;
    size_t member_count;         /* see ledger_join_workload */
    uint32_t first_account;      /* a list over ledger_account.next */
    uint64_t weight[TIER_COUNT]; /* see ledger_weigh */
};

/* A workload at a meter. */
struct ledger_account {
    uint32_t meter;
    uint32_t next; /* of the same workload, or free */
    struct account account;
    double power_mw; /* smoothed, as of power_us */
    uint64_t power_us;
};

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
    struct ledger_meter *meters;
    size_t meter_count;
    struct ledger_process *processes; /* slots keep their index for as long as they are used */
    size_t process_slots, process_count;
    struct map process_map;
    struct ledger_workload *workloads; /* likewise */
    size_t workload_slots, workload_count;
    struct map workload_map;
    struct ledger_account *accounts; /* likewise */
    size_t account_slots;
    uint32_t free_account;
    struct ledger_rates emission_rates, cost_rates; /* each changes at its own times */
    uint64_t latest_us;                             /* the latest time of any sample; 0: none yet */
    uint64_t retired_at_us;                         /* when workloads were last retired; 0: never */
    uint64_t processes_dropped, workloads_dropped;
    uint64_t names_fixed; /* how often, of workloads */
    unsigned weighed;     /* see ledger_weigh; so are the weights */
    uint64_t unowned_weight[UNOWNED_COUNT];
};

/* Where a part of a window's energy goes: to a process and its workload, to a workload alone (where
 * processes are not told apart), or to nobody. */
struct booking {
    uint32_t process; /* or LEDGER_NONE */
    bool to_workload; /* read only then */
    uint32_t workload;
    enum unowned unowned; /* read only if neither */
    enum tier tier;
    enum method method;
    uint64_t energy_uj;
    uint64_t known_uj; /* as in struct account */
};

void ledger_init(struct ledger *ledger, const struct ledger_options *options);
void ledger_done(struct ledger *ledger);

/* The meter of this id: a board that was lost and came back goes on where it was. */
int ledger_add_meter(struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                     uint32_t gpu, uint32_t *ret_meter);

/* The account of this pid at this meter, if there is one. */
bool ledger_find_process(const struct ledger *ledger, uint32_t meter, uint32_t pid,
                         uint32_t *ret_process);

/*
 * The same, opened where there is none. At --max-processes the process that ended first makes room;
 * if none has ended, it is the meter's overflow account.
 */
int ledger_open_process(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t *ret_process);

/* Says who a pid is. Another start time than the known one means another process. */
int ledger_identify(struct ledger *ledger, uint32_t meter, const struct sample_process *who,
                    uint32_t *ret_process);

/* The account for those processes of an owner that the driver does not show, opened where there is
 * none. As ledger_open_process. */
int ledger_open_unseen(struct ledger *ledger, uint32_t meter, const struct workload_owner *owner,
                       uint32_t *ret_process);

/* The workload of this owner, if there is one. */
bool ledger_find_workload(const struct ledger *ledger, const struct workload_owner *owner,
                          uint32_t *ret_workload);

/* From `from_us` on energy has this price; of what it does not know, the factor or the cost, the
 * one before. Without any nothing is billed. */
void ledger_set_price(struct ledger *ledger, const struct price *price, uint64_t from_us);
struct price_rate ledger_rate_at(const struct ledger *ledger, uint64_t t_us);

/* Settles a window: `energy_uj` of the meter from `start_us` to `end_us`, divided as the bookings
 * say. All of it has the price of the window's end, however late it is booked. */
int ledger_book(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                uint64_t end_us, const struct booking *bookings, size_t count);

/* Divides the time of a window as its joules are, which ledger_book has done; for one that is not
 * booked because it has none, it is to be said alone. */
void ledger_book_time(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us,
                      const struct booking *bookings, size_t count);

/* Joules that nobody watched, at the latest price. The time in which they were used is told by the
 * next window. */
void ledger_book_gap(struct ledger *ledger, uint32_t meter, uint64_t energy_uj);

/*
 * Sets all weights to 0, and from now on adds to the weight of an owner what is booked to it at
 * meters of these kinds (bits 1 << kind; 0: nothing). The node's rest is divided by them, and may
 * add to them itself. A workload with a weight is not retired but to make room; what it weighs is
 * unattributed then.
 */
void ledger_weigh(struct ledger *ledger, unsigned kinds);

/*
 * Forgets processes that ended longer than the retention ago, and retires workloads whose processes
 * are all forgotten.
 */
void ledger_sweep(struct ledger *ledger, uint64_t now_us);

/* The account of a workload at a meter, opened where there is none. */
int ledger_open_account(struct ledger *ledger, uint32_t workload, uint32_t meter,
                        uint32_t *ret_account);

/*
 * The workload of this owner, opened where there is none. At --max-workloads those without a
 * process are retired to make room; if there are none, it is the workload `other`.
 */
int ledger_open_workload(struct ledger *ledger, const struct workload_owner *owner,
                         uint32_t *ret_workload);

/* Counts a member of a workload in or out: a process, or what its cgroup is. A workload without
 * members that never had a joule goes at once. */
void ledger_join_workload(struct ledger *ledger, uint32_t workload);
void ledger_leave_workload(struct ledger *ledger, uint32_t workload);

/* Moves the accounts of all workloads without a process to the meters' `retired`, once in a while.
 */
void ledger_retire_workloads(struct ledger *ledger, uint64_t now_us);

/*
 * Fixes the names of what has none yet: as soon as `find` knows them, and after 15 s in any case,
 * or a minute where `is_awaited` (or NULL) says that it is worth it. Until then it is booked but
 * not shown. The found names need not outlive the call.
 */
typedef bool ledger_find_names(void *context, const struct workload_owner *owner,
                               struct workload_names *ret_names);
typedef bool ledger_await_names(void *context, const struct workload_owner *owner);
struct ledger_namer {
    ledger_find_names *find;
    ledger_await_names *is_awaited;
    void *context;
};
int ledger_fix_names(struct ledger *ledger, uint64_t now_us, const struct ledger_namer *namer);

/* Smoothed power of an account, over about 10 s. */
double ledger_power_mw(const struct ledger *ledger, const struct ledger_account *account);

/* Free what a slot owns; the slot is empty then. */
void ledger_process_done(struct ledger_process *process);
void ledger_workload_done(struct ledger_workload *workload);
void ledger_names_done(struct ledger_names *names);

/* The sum of a meter's accounts, of workloads that are there and of the retired. */
struct account ledger_owned(const struct ledger *ledger, uint32_t meter);

/* Meter minus everything booked, and workloads minus processes; the worse of the two. 0, or a bug.
 */
int64_t ledger_imbalance_uj(const struct ledger *ledger, uint32_t meter);

/* Bill of the meter minus all bills of its owners. 0, or a bug. */
struct bill ledger_bill_imbalance(const struct ledger *ledger, uint32_t meter);

/* The device's time minus that of all its owners. 0, or a bug. */
int64_t ledger_time_imbalance_us(const struct ledger *ledger, uint32_t meter);
