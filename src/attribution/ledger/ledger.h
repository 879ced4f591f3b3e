/*
 * The ledger: monotone integer accounts of meters, processes and workloads.
 *
 * For every meter, at every time: energy = sum of its unowned joules + sum over workloads, and for
 * a GPU the sum over workloads = the sum over processes. It books what it is told and nothing is
 * ever taken back; ledger_imbalance_uj recomputes both sums from the accounts. Bills, and the time
 * of devices, sum up as the joules do. It calls none of its users. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/meter.h"
#include "model/price.h"
#include "model/sample.h"
#include "model/workload.h"

#define LEDGER_NONE UINT32_MAX

struct ledger; /* see ledger_private.h */

struct ledger_options {
    size_t max_processes;
    size_t max_workloads;
    uint64_t retention_us; /* UINT64_MAX: for ever */
    struct embodied_rates embodied;
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
    uint64_t swept_uj;         /* of processes that have no account any more */
    uint64_t forget_before_us; /* see ledger_allow_forgetting */
    uint32_t overflow; /* the process account of those cut by max_processes; LEDGER_NONE at first */
    struct account retired; /* of workloads that have no account any more */
    struct bill bill;       /* of energy_uj */
    struct bill unowned_bill[UNOWNED_COUNT];
    struct ledger_device device;
};

/* A process on one GPU. The key is (gpu, pid, start time). */
struct ledger_process {
    bool used;       /* or a free slot */
    bool superseded; /* its pid belongs to another process by now */
    bool unseen;     /* stands for all processes of its workload that nobody sees; has no pid */
    bool identified;
    uint64_t serial; /* of the account: no other ever has the same */
    uint32_t pid;
    uint32_t meter;
    uint32_t workload;
    uint32_t uid;      /* or SAMPLE_UID_UNKNOWN */
    uint64_t start_us; /* 0: unknown */
    uint64_t opened_us;
    uint64_t seen_us;   /* the last time; 0: never */
    char *name;         /* may be NULL */
    char *container_id; /* the container that it is in; may be NULL */
    bool container_is_claim;
    char *pod_uid; /* may be NULL */
    struct ledger_names names;
    uint64_t active_uj, idle_uj;
    uint64_t measured_uj;    /* the part of both that was measured */
    uint64_t known_uj;       /* as in struct account */
    uint64_t last_booked_us; /* when, not for which window: that may be a minute earlier */
};

struct ledger_workload {
    bool used;
    bool kept;       /* see ledger_keep_booked */
    uint64_t serial; /* likewise */
    enum workload_kind kind;
    char *id;
    char *container_id; /* may be NULL */
    char *pod_uid;      /* may be NULL */
    uint64_t opened_us;
    struct ledger_names names;
    size_t member_count;    /* see ledger_join_workload */
    uint32_t first_account; /* a list over ledger_account.next */
};

/* A workload at a meter. */
struct ledger_account {
    uint32_t meter;
    uint32_t next; /* of the same workload, or free */
    struct account account;
    double power_mw; /* smoothed, as of power_us */
    uint64_t power_us;
};

struct ledger_counts {
    size_t processes, workloads; /* that have an account now */
    uint64_t processes_dropped, workloads_dropped;
    uint64_t names_fixed;   /* how often, of workloads */
    uint64_t retired_at_us; /* when workloads were last retired; 0: never */
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

int ledger_new(const struct ledger_options *options, struct ledger **ret_ledger);
void ledger_free(struct ledger *ledger);

/*
 * Rows by index, to read. A meter is never removed. A process or workload keeps its index as long
 * as it has an account; NULL: the slot is free. A pointer is valid until the ledger changes.
 */
size_t ledger_meter_count(const struct ledger *ledger);
const struct ledger_meter *ledger_meter(const struct ledger *ledger, uint32_t meter);
size_t ledger_process_slots(const struct ledger *ledger);
const struct ledger_process *ledger_process(const struct ledger *ledger, uint32_t process);
size_t ledger_workload_slots(const struct ledger *ledger);
const struct ledger_workload *ledger_workload(const struct ledger *ledger, uint32_t workload);

/* Iterates over the accounts of a workload, one for each meter: the first for NULL, and NULL after
 * the last. All workloads together have at most ledger_account_slots. */
const struct ledger_account *ledger_next_account(const struct ledger *ledger,
                                                 const struct ledger_workload *workload,
                                                 const struct ledger_account *before);
size_t ledger_account_slots(const struct ledger *ledger);

struct ledger_counts ledger_counts(const struct ledger *ledger);
uint64_t ledger_retention_us(const struct ledger *ledger);

/* Moves the time on to that of a sample. Accounts are opened and booked at the latest time. */
void ledger_advance(struct ledger *ledger, uint64_t t_us);

/* Sets the time back, and with it whatever of this meter's processes is later. */
void ledger_set_clock_back(struct ledger *ledger, uint32_t meter, uint64_t now_us);

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

/* Says who a pid is, and who pays for it. Another start time than the known one means another
 * process. An owner of the kind WORKLOAD_PROCESS needs no id: the process pays for itself. */
int ledger_identify(struct ledger *ledger, uint32_t meter, const struct sample_process *who,
                    const struct workload_owner *owner, uint32_t *ret_process);

/* The account for those processes of an owner that the driver does not show, opened where there is
 * none. As ledger_open_process. */
int ledger_open_unseen(struct ledger *ledger, uint32_t meter, const struct workload_owner *owner,
                       uint32_t *ret_process);

/*
 * A process of the meter that was last seen before `before_us` may be forgotten: the energy of that
 * time is settled. The others are live, at first all of them. UINT64_MAX: the meter is gone.
 */
void ledger_allow_forgetting(struct ledger *ledger, uint32_t meter, uint64_t before_us);
void ledger_see_process(struct ledger *ledger, uint32_t process, uint64_t t_us);
bool ledger_is_live(const struct ledger *ledger, uint32_t process);

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
 * Keeps the workloads to which meters of these kinds (bits 1 << kind; 0: none) book from now on,
 * and those of ledger_keep_workload: they are not retired but to make room, until this is called
 * again.
 */
void ledger_keep_booked(struct ledger *ledger, unsigned kinds);
void ledger_keep_workload(struct ledger *ledger, uint32_t workload);

/*
 * Forgets processes that ended longer than the retention ago, and retires workloads whose processes
 * are all forgotten.
 */
void ledger_sweep(struct ledger *ledger, uint64_t now_us);

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

/* Iterates over the workloads, then the processes, whose names are not fixed. False after the last.
 */
struct ledger_unnamed {
    size_t cursor;               /* 0 at first */
    struct workload_owner owner; /* as it was found once */
    uint64_t opened_us; /* of what came before the first sample: when it was first asked for */
};
bool ledger_next_unnamed(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed);

/* Fixes the names of the one that was found last. They need not outlive the call. */
int ledger_fix_names(struct ledger *ledger, const struct ledger_unnamed *unnamed,
                     const struct workload_names *names);

/* Smoothed power of an account, over about 10 s. */
double ledger_power_mw(const struct ledger *ledger, const struct ledger_account *account);

/* Meter minus everything booked, and workloads minus processes; the worse of the two. 0, or a bug.
 */
int64_t ledger_imbalance_uj(const struct ledger *ledger, uint32_t meter);

/* Bill of the meter minus all bills of its owners. 0, or a bug. */
struct bill ledger_bill_imbalance(const struct ledger *ledger, uint32_t meter);

/* The device's time minus that of all its owners. 0, or a bug. */
int64_t ledger_time_imbalance_us(const struct ledger *ledger, uint32_t meter);
