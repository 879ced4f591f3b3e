/*
 * One GPU: samples in, settled windows out to the ledger.
 *
 * gpu.c takes samples in and cuts time into windows at ticks of the energy counter;
 * gpu_processes.c notes which processes the driver shows; gpu_settle.c decides who pays for a
 * window, with what gpu_intensity.c learned of the processes. A window is settled some time after
 * it closes, when everything that belongs to it has arrived, or, where processes share it, when no
 * more is to be learned of them; until then its energy is pending. Driven by the times of the
 * samples alone, so the same samples always give the same bookings. No I/O, no clock.
 */
#pragma once

#include "attribution/gpu/idle.h"
#include "attribution/gpu/intensity/clients.h"
#include "attribution/gpu/intensity/intensity.h"
#include "attribution/gpu/intensity/tenants.h"
#include "attribution/gpu/sightings.h"
#include "attribution/gpu/timeshare.h"
#include "attribution/gpu/util_sample.h"
#include "attribution/gpu/window.h"
#include "attribution/ledger/ledger.h"
#include "model/policy.h"
#include "model/sample.h"
#include "model/snapshot.h"
#include "model/workload.h"

/* Room for methods that settle up to 60 s late. */
enum { GPU_WINDOWS_MAX = 64 };

enum { GPU_UNKNOWN_READINGS = 3 };

struct gpu_options {
    uint64_t interval_us; /* the length of a window */
    enum idle_policy idle_policy;
    enum attribution_method attribution;
    uint64_t patience_us; /* how long a shared window may wait for what is learned later */

    /* Who pays for a process; WORKLOAD_PROCESS if nothing is known of it. Pure. */
    void (*find_owner)(const struct sample_process *who, struct workload_owner *ret_owner);
};

/* A reading that is valid for a while. */
struct gpu_reading {
    uint64_t t_us; /* 0: never read */
    uint64_t value;
};

/* What --attribution=intensity knows; see gpu_intensity.c. */
struct gpu_learning {
    struct tenants tenants;
    struct slots slots;
    struct intensity intensity;
    struct clients clients;
    struct {
        uint64_t energy_uj, duration_us;
        bool context;
    } quiet; /* the time since the last slot in which something ran */
};

enum { GPU_XIDS_MAX = 16 };

struct gpu_xid {
    uint32_t xid; /* 0: unused */
    uint64_t count;
};

struct gpu {
    struct gpu_options options;
    struct ledger *ledger;
    struct sightings *sightings;
    uint32_t index;
    uint32_t meter;
    char *uuid, *name, *driver;
    uint64_t power_limit_mw, memory_bytes; /* 0: unknown */
    bool has_minor;
    uint32_t minor;

    uint64_t latest_us; /* the latest time of any sample */

    bool counter_seen;
    bool counter_is_integral;     /* energy is power x time: nothing is measured */
    uint64_t counter_uj, tick_us; /* the last tick */
    uint64_t resets;

    /* Closed windows that wait for settlement, then the open one, which is always there. */
    struct window windows[GPU_WINDOWS_MAX];
    size_t first_window, window_count;
    size_t observed_count; /* the first of them have taught what they can of idle levels */
    uint64_t settled_until_us;

    struct util_samples labels;
    struct gpu_learning *learning;          /* NULL: --attribution=timeshare */
    uint64_t list_round[SAMPLE_LIST_KINDS]; /* lists of this kind read so far */
    bool list_named[SAMPLE_LIST_KINDS];     /* the last one named somebody */
    struct idle_levels idle;

    /* The shares of the last window that had samples, for busy windows without any. */
    struct claimant *held;
    size_t held_count, held_capacity;
    uint64_t held_until_us;

    /* Who can use the board, by the latest word. */
    struct attached *attached;
    size_t attached_count;

    /* Memory in use that belongs to no listed process, as last read; see gpu_memory.c. */
    uint64_t unknown_bytes[GPU_UNKNOWN_READINGS];
    size_t unknown_readings;
    uint64_t list_us[SAMPLE_LIST_KINDS]; /* when it was last read */

    struct gpu_reading gauges[GPU_GAUGE_COUNT];
    struct gpu_xid xids[GPU_XIDS_MAX]; /* counted since the start; the rest is in the last */

    /* Scratch of gpu_settle.c, kept so that a steady state allocates nothing. */
    struct claimant *claimants;
    struct share *shares;
    struct booking *bookings;
    size_t scratch_capacity;
};

/* The ledger and the sightings, which all GPUs share, must outlive it. */
int gpu_init(struct gpu *gpu, uint32_t index, const struct sample_device *device,
             const struct gpu_options *options, struct ledger *ledger, struct sightings *sightings);
void gpu_done(struct gpu *gpu);

/* Takes one sample of this GPU. 0 or -ENOMEM; then the books still balance. */
int gpu_ingest(struct gpu *gpu, const struct sample *sample);

/* Closes the open window at the last tick and settles everything. For the end of a run. */
int gpu_finish(struct gpu *gpu);

/* Read from the counter but not settled yet. */
uint64_t gpu_pending_uj(const struct gpu *gpu);

/* Does a list in force name the process? */
bool gpu_is_listed(const struct gpu *gpu, uint32_t process);
bool gpu_is_mps_client(const struct gpu *gpu, uint32_t process);

/* What the samples of the last 10 s say of a process. */
struct gpu_won {
    uint64_t sm_percent, memory_percent;
};

/* Adds what each process won, by its index in the ledger. Returns the number of samples. */
uint64_t gpu_count_won(const struct gpu *gpu, struct gpu_won *won);

/* Describe the GPU and one of its processes for a snapshot, without gauges older than `stale_us`. 0
 * or -ENOMEM. */
int gpu_snapshot(const struct gpu *gpu, uint64_t now_us, uint64_t stale_us, struct arena *arena,
                 struct snapshot_gpu *to);
void gpu_snapshot_process(const struct gpu *gpu, uint32_t process, const struct gpu_won *won,
                          uint64_t samples, uint64_t now_us, uint64_t stale_us,
                          struct snapshot_process *to);

/* Takes over who can use the board. `attached` (from malloc) is the GPU's from then on. */
void gpu_set_attached(struct gpu *gpu, struct attached *attached, size_t count);

/* What the driver showed of a process that gpu_processes.c has opened. */
static inline struct sighting *gpu_sighting(const struct gpu *gpu, uint32_t process)
{
    return &gpu->sightings->items[process];
}

/* The lists in force that name the process, as bits 1 << enum sample_list_kind. */
static inline uint8_t gpu_lists_in_force(const struct gpu *gpu, uint32_t process)
{
    const struct sighting *seen = gpu_sighting(gpu, process);
    uint8_t lists = 0;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++)
        if (gpu->list_round[kind] > 0 && seen->list_round[kind] == gpu->list_round[kind])
            lists |= (uint8_t)(1 << kind);
    return lists;
}

/* The following five are in gpu_processes.c. These two open an account in the ledger, and its
 * sighting. */
int gpu_open_process(struct gpu *gpu, uint32_t pid, uint32_t *ret_process);
int gpu_open_unseen(struct gpu *gpu, const struct workload_owner *owner, uint32_t *ret_process);

/* Take samples; a list is of the open window. */
int gpu_take_process(struct gpu *gpu, uint64_t t_us, const struct sample_process *who);
int gpu_take_list(struct gpu *gpu, struct window *window, uint64_t t_us,
                  const struct sample_list *list);

/* Nobody is listed on a board that does not answer, until it answers again. */
void gpu_lose_lists(struct gpu *gpu);

/* Notes in the open window whether anybody holds a context, as far as the lists in force tell. */
void gpu_note_context(struct gpu *gpu, struct window *window);

/* Compares the memory in use with that of the listed processes. Used by gpu.c; in gpu_memory.c. */
void gpu_read_memory(struct gpu *gpu, uint64_t t_us, uint64_t used_bytes);

/* The memory that no listed process accounts for; false if that cannot be told. */
bool gpu_unknown_memory(const struct gpu *gpu, uint64_t *ret_bytes);

/* Learns the idle level from a window of which everything has arrived. In gpu_settle.c. */
void gpu_observe_window(struct gpu *gpu, const struct window *window);

/* Books the oldest closed window. Used by gpu.c; in gpu_settle.c. */
int gpu_settle_window(struct gpu *gpu, const struct window *window);

/* The rest is in gpu_intensity.c, and does nothing with --attribution=timeshare. */
int gpu_learning_init(struct gpu *gpu);
void gpu_learn_list(struct gpu *gpu, const struct sample_list *list);
void gpu_learn_label(struct gpu *gpu, const struct sample_label *sample,
                     const struct util_sample *label);
void gpu_learn_gpm(struct gpu *gpu, uint64_t t_us, const struct sample_gpm *gpm);
void gpu_learn_clock(struct gpu *gpu, uint32_t clock_mhz);
void gpu_learn_energy(struct gpu *gpu, uint64_t tick_us, uint64_t energy_uj);
void gpu_learn_restart(struct gpu *gpu, uint64_t tick_us);
void gpu_learn_the_rest(struct gpu *gpu);

/* Is there somebody in the window of whom more may be learned? */
bool gpu_may_learn_more(const struct gpu *gpu, const struct window *window);

/* Sets by what the first `count` claimants divide the active energy. `sampled`: somebody won
 * samples, be it one of them or a stranger. */
void gpu_weigh_claimants(struct gpu *gpu, const struct window *window, size_t count, bool sampled);

/* The window is settled. */
void gpu_forget_window(struct gpu *gpu, const struct window *window);
