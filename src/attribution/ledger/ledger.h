/*
 * The ledger: monotone integer accounts of meters, processes and workloads.
 *
 * For every meter, at all times: energy = sum of its unowned energy + sum over workloads; for a GPU
 * the sum over workloads = the sum over processes. Bills add up the same way.
 * Nothing booked is ever taken back. It calls none of its users. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/history.h"
#include "core/pack.h"
#include "model/meter.h"
#include "model/price.h"
#include "model/sample.h"
#include "model/workload.h"

#define LEDGER_NONE UINT32_MAX

struct ledger;

struct ledger_options {
    size_t max_processes;
    size_t max_workloads;
    uint64_t retention_us; /* UINT64_MAX: for ever */
    struct embodied_rates embodied;
    struct history *history; /* gets all that is booked, with its time; NULL: none */
};

/* Time of a meter's device; all 0 without a rate of embodied carbon. */
struct ledger_device {
    uint64_t
        undivided_us;  /* of windows without energy: it goes with the next window that has some */
    uint64_t until_us; /* billed up to here, but for that; 0: not started */
};

/* Power, smoothed over about 10 s. */
struct ledger_power {
    double power_mw;
    uint64_t until_us; /* as of then */
};

struct ledger_meter {
    enum meter_kind kind;
    char *meter_id;
    uint32_t gpu;       /* 0 for other meters */
    uint64_t energy_uj; /* settled */
    uint64_t settled_until_us;
    uint64_t seen_from_us; /* the first window began; 0: none; 1: in a previous run */
    uint64_t unowned_uj[UNOWNED_COUNT];
    struct ledger_power unowned_power[UNOWNED_COUNT]; /* not of a previous run */
    uint64_t swept_uj;                                /* of processes without an account by now */
    uint64_t forget_before_us;                        /* see ledger_allow_forgetting */
    uint64_t unknown_gaps;                            /* see ledger_note_unknown_gap */
    uint32_t overflow; /* process account of those cut by max_processes; LEDGER_NONE at first */
    struct account retired; /* of workloads without an account by now */
    struct bill bill;       /* of energy_uj */
    struct bill unowned_bill[UNOWNED_COUNT];
    struct ledger_device device;
};

/* The container, pod and names of a row. Names are fixed once: a changed label is a new series. */
struct ledger_identity {
    char *container_id, *pod_uid; /* may be NULL */
    bool container_is_claim;
    bool is_named;               /* names are fixed */
    struct workload_names names; /* NULL: none */
    char *names_text;            /* holds them */
    uint64_t opened_us;          /* 0: before the first sample */
};

/* A process on one GPU. The key is (gpu, pid, start time). */
struct ledger_process {
    bool used;
    bool superseded; /* its pid belongs to another process by now */
    bool unseen;     /* stands for all invisible processes of its workload; has no pid */
    bool identified;
    uint64_t serial; /* unique among all accounts */
    uint32_t pid;
    uint32_t meter;
    uint32_t workload;
    uint32_t uid;      /* or SAMPLE_UID_UNKNOWN */
    uint64_t start_us; /* 0: unknown */
    uint64_t seen_us;  /* last; 0: never */
    char *name;        /* may be NULL */
    struct program_key program;
    uint64_t cgroup_hash; /* of its text, by siphash_public */
    struct ledger_identity identity;
    uint64_t active_uj, idle_uj;
    uint64_t measured_uj;    /* the measured part of both */
    uint64_t known_uj;       /* as in struct account */
    uint64_t uncertain_uj;   /* as in struct account */
    uint64_t last_booked_us; /* time of booking; the window may be a minute older */
};

struct ledger_workload {
    bool used;
    bool kept;       /* see ledger_keep_booked */
    uint64_t serial; /* unique among all accounts */
    enum workload_kind kind;
    char *id;
    struct ledger_identity identity;
    size_t member_count;    /* see ledger_join_workload */
    uint64_t left_us;       /* when its last process moved to another workload; 0: none did */
    uint32_t first_account; /* a list over ledger_account.next */
};

/* A workload at a meter. */
struct ledger_account {
    uint32_t meter;
    uint32_t next; /* of the same workload */
    struct account account;
    struct ledger_power power;
};

struct ledger_counts {
    size_t process_slots, workload_slots; /* ends of their indices */
    size_t processes, workloads;          /* in use */
    size_t accounts;                      /* at most, over all workloads and meters */
    uint64_t processes_dropped, workloads_dropped;
    uint64_t names_fixed;   /* of workloads */
    uint64_t retired_at_us; /* last retirement of workloads; 0: never */
};

/* A part of a window's energy: for a process and its workload, for a workload alone (where
 * processes cannot be distinguished), or unowned. */
struct booking {
    uint32_t process; /* or LEDGER_NONE; then: */
    bool to_workload;
    uint32_t workload; /* if to_workload, else: */
    enum unowned unowned;
    enum tier tier;
    enum method method;
    uint64_t energy_uj;
    uint64_t known_uj;     /* as in struct account */
    uint64_t uncertain_uj; /* as in struct account */
};

int ledger_new(const struct ledger_options *options, struct ledger **ret_ledger);
void ledger_free(struct ledger *ledger);

/* Read-only rows by index. Meters are never removed. A process or workload keeps its index while it
 * has an account; NULL: a free slot. Pointers are valid until the ledger changes. */
size_t ledger_meter_count(const struct ledger *ledger);
const struct ledger_meter *ledger_meter(const struct ledger *ledger, uint32_t meter);
const struct ledger_process *ledger_process(const struct ledger *ledger, uint32_t process);
const struct ledger_workload *ledger_workload(const struct ledger *ledger, uint32_t workload);

/* Iterates over the accounts of a workload, one per meter, from NULL to NULL. */
const struct ledger_account *ledger_next_account(const struct ledger *ledger,
                                                 const struct ledger_workload *workload,
                                                 const struct ledger_account *before);

const struct ledger_counts *ledger_counts(const struct ledger *ledger);
uint64_t ledger_retention_us(const struct ledger *ledger);

/* Advances to the time of a sample. Accounts are opened and booked at the latest time. */
void ledger_advance(struct ledger *ledger, uint64_t t_us);

/* Sets the time back, and with it any later time of this meter's processes. */
void ledger_set_clock_back(struct ledger *ledger, uint32_t meter, uint64_t now_us);

/* Adds a meter, or finds the one with this id: a board that was lost continues where it was. */
int ledger_add_meter(struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                     uint32_t gpu, uint32_t *ret_meter);

bool ledger_find_meter(const struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                       uint32_t *ret_meter);

bool ledger_find_process(const struct ledger *ledger, uint32_t meter, uint32_t pid,
                         uint32_t *ret_process);

/* Finds or opens the account of a pid at a meter. At --max-processes the process that ended first
 * makes room; if none has ended, it is the meter's overflow account. */
int ledger_open_process(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t *ret_process);

/* Sets identity and owner of a pid. A different start time means a different process. An owner of
 * kind WORKLOAD_PROCESS needs no id: the process is charged itself. */
int ledger_identify(struct ledger *ledger, uint32_t meter, const struct sample_process *who,
                    const struct workload_owner *owner, uint32_t *ret_process);

/* As ledger_open_process, for the processes of an owner that the driver does not show. */
int ledger_open_unseen(struct ledger *ledger, uint32_t meter, const struct workload_owner *owner,
                       uint32_t *ret_process);

/* Processes of the meter last seen before `before_us` may be forgotten, as that time is settled.
 * The others are live, at first all of them. UINT64_MAX: the meter is gone. */
void ledger_allow_forgetting(struct ledger *ledger, uint32_t meter, uint64_t before_us);
void ledger_see_process(struct ledger *ledger, uint32_t process, uint64_t t_us);
bool ledger_is_live(const struct ledger *ledger, uint32_t process);

bool ledger_find_workload(const struct ledger *ledger, const struct workload_owner *owner,
                          uint32_t *ret_workload);

/* Sets the price of energy from `from_us` on; a factor or cost that it does not know stays as it
 * was. Without any price nothing is billed. */
void ledger_set_price(struct ledger *ledger, const struct price *price, uint64_t from_us);
struct price_rate ledger_rate_at(const struct ledger *ledger, uint64_t t_us);

/* Settles a window: books `energy_uj` of the meter and the time of its device, divided by the
 * bookings, at the price of the window's end, however late. */
int ledger_book(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                uint64_t end_us, const struct booking *bookings, size_t count);

/* The same with one booking, as unattributed: when out of memory for others. */
void ledger_book_unattributed(struct ledger *ledger, uint32_t meter, uint64_t energy_uj,
                              uint64_t start_us, uint64_t end_us);

/* Advances the device time over a window without energy. */
void ledger_pass_time(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us);

/* Books energy of unmonitored time, at the latest price. Its device time comes with the next. Start
 * and end are the same if nobody knows how long it took. */
void ledger_book_gap(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                     uint64_t end_us);

/* Sets all costs to 0: the currency is another one. */
void ledger_drop_costs(struct ledger *ledger);

/* Energy was used that no count shows: over a restart the meter had none, or may have wrapped. */
void ledger_note_unknown_gap(struct ledger *ledger, uint32_t meter);

/* Keeps the workloads to which meters of these kinds (bits) book from now on, and those of
 * ledger_keep_workload, until the next call: they are retired only to make room. */
void ledger_keep_booked(struct ledger *ledger, unsigned kinds);
void ledger_keep_workload(struct ledger *ledger, uint32_t workload);

/* Forgets processes that ended before the retention, and retires workloads without members. */
void ledger_sweep(struct ledger *ledger, uint64_t now_us);

/* Finds or opens the workload of an owner. At --max-workloads those without members are retired to
 * make room; if there are none, it is the workload `other`. What one scope has too much of is the
 * workload that named it (model/scopes.h). */
int ledger_open_workload(struct ledger *ledger, const struct workload_owner *owner,
                         uint32_t *ret_workload);

/* Workloads are booked to `other` that the ledger never saw. */
void ledger_note_dropped(struct ledger *ledger);

/* Adds or removes a member of a workload: a process or a cgroup. A workload that loses its last
 * member and never had energy is closed at once. */
void ledger_join_workload(struct ledger *ledger, uint32_t workload);
void ledger_leave_workload(struct ledger *ledger, uint32_t workload);

/* The owner of a process, with the container of the process itself. */
void ledger_describe_owner(const struct ledger *ledger, const struct ledger_process *process,
                           struct workload_owner *ret_owner);

/* Iterates over the workloads, then the processes, without fixed names. False after the last. */
struct ledger_unnamed {
    size_t cursor; /* 0 at first */
    struct ledger_identity *identity;
    struct workload_owner owner;
    uint64_t opened_us; /* of what came before the first sample: time of the first query */
};
bool ledger_next_unnamed(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed);

/* Fixes the names of the row that ledger_next_unnamed returned. They are copied. */
int ledger_fix_names(struct ledger *ledger, const struct ledger_unnamed *unnamed,
                     const struct workload_names *names);

/* Power when the meter was last settled: all of a meter adds up. */
double ledger_power_mw(const struct ledger *ledger, const struct ledger_account *account);
double ledger_unowned_power_mw(const struct ledger *ledger, uint32_t meter, enum unowned owner);

/* Folds in the energy of a window, which ends after the one before, or with it. */
void ledger_power_add(struct ledger_power *power, uint64_t energy_uj, uint64_t start_us,
                      uint64_t end_us);
double ledger_power_at(const struct ledger_power *power, uint64_t t_us);

/* Of a mean over the time since `from_us`: what came before is not 0 but unknown. */
double ledger_power_since(double power_mw, uint64_t from_us, uint64_t until_us);

/* The sum of a meter's accounts, of present and of retired workloads. */
struct account ledger_owned(const struct ledger *ledger, uint32_t meter);

/* Do energy and bills of a meter add up? */
bool ledger_is_balanced(const struct ledger *ledger, uint32_t meter);

/* Packs the books, or unpacks them into an empty ledger; see core/pack.h. What was unpacked is
 * rejected if it does not balance; then the ledger can only be freed. Workloads have their
 * processes as members and no others yet, and all processes are live. */
void ledger_code_state(struct ledger *ledger, struct coder *coder);

/* Meter minus all bookings, or workloads minus processes, whichever is worse. 0, or a bug. */
int64_t ledger_imbalance_uj(const struct ledger *ledger, uint32_t meter);
