/*
 * One GPU: samples in, settled windows out to the ledger. A window is settled when all its samples
 * have arrived or, where processes share it, when no more is to be learned of them; until then its
 * energy is pending. Driven by the times of samples alone, so a replay gives the same bookings.
 */
#pragma once

#include "attribution/gpu/gpu_mig.h"
#include "attribution/gpu/intensity/clients.h"
#include "attribution/gpu/intensity/intensity.h"
#include "attribution/gpu/intensity/tenants.h"
#include "attribution/gpu/timeshare.h"
#include "attribution/resumed_meters.h"
#include "core/macros.h"
#include "model/snapshot.h"
#include "model/workload.h"

/* Room for methods that settle up to 60 s late. */
enum { GPU_WINDOWS_MAX = 64 };

enum { GPU_UNKNOWN_READINGS = 3 };

/* The list of vGPUs, after those of processes: a virtual machine is booked as a process without a
 * pid. */
enum { GPU_LIST_VGPU = SAMPLE_LIST_KINDS, GPU_LIST_KINDS };

struct gpu_options {
    uint64_t interval_us; /* the length of a window */
    enum idle_policy idle_policy;
    const struct gpu_idle_powers *idle_powers; /* NULL: all are learned. The caller's */
    enum attribution_method attribution;
    uint64_t patience_us; /* how long a shared window may wait for what is learned later */

    /* The owner to charge for a process; WORKLOAD_PROCESS if it is unknown. Pure. */
    void (*find_owner)(const struct sample_process *who, struct workload_owner *ret_owner);

    /* The names of an owner as far as they are known by now, until the next call. They decide whose
     * program a container runs, and are shown nowhere. NULL: none are known. */
    bool (*find_names)(void *context, const struct workload_owner *owner,
                       struct workload_names *ret_names);
    /* The virtual machine with this id: its UUID, or the hypervisor's domain id. False: unknown.
     * NULL: all are. */
    bool (*find_vm)(void *context, const char *vm, bool is_uuid, struct workload_owner *ret_owner);
    void *names_context;
};

/* What the driver has shown of a process. Lists are numbered by rounds, windows by number. */
struct sighting {
    uint64_t serial;                          /* of the account: another one starts over */
    uint64_t first_listed_us, last_listed_us; /* 0: never */
    uint64_t list_round[GPU_LIST_KINDS];      /* of the last list of this kind with it */
    uint64_t memory_bytes[GPU_LIST_KINDS];    /* in that list */
    uint32_t gpu_instance, compute_instance;  /* or SAMPLE_NO_INSTANCE */
    uint64_t window;                          /* the last window in which it is present */
    size_t window_index;                      /* its presence there */
    bool is_mps_server;                       /* of its clients; without any, it is as others are */
    uint8_t tenant;                           /* its place in the estimator, from 1; 0: none */
    uint64_t busy_at_us;                      /* when the driver last counted for it; 0: never */
    uint32_t busy_permille;                   /* of the device, then */
};

/* By the index of the process in the ledger. All boards share it: an account is of one board. */
struct sightings {
    struct sighting *items;
    size_t slots;
};

/* A process on a list. Bits are 1 << enum sample_list_kind, or GPU_LIST_VGPU. */
struct presence {
    uint32_t process;
    uint8_t listed;        /* by lists read in this window */
    uint8_t inherited;     /* by the lists in force when it began */
    uint32_t gpu_instance; /* of the window: by its settlement the process may be in another */
    uint64_t busy_us;      /* that the driver counted in this window */
};

/* The energy between two ticks of the counter, and the processes present meanwhile. */
struct window {
    uint64_t number; /* from 1 */
    uint64_t start_us, end_us;
    uint64_t energy_uj;
    uint8_t lists_renewed;   /* bits: kinds of list that were read soon after its begin */
    uint8_t busiest_percent; /* the highest device utilisation read */
    bool saw_utilisation;    /* it was read at all: with MIG it cannot be */
    bool saw_context;        /* the lists in force had a process at some time */
    bool saw_no_context;     /* they had none at some time */
    bool is_by_presence;     /* of what was counted, single processes are not known */
    /* Bits: instances of MIG, by their order, whose memory is in use, and whose GPM was read. */
    uint32_t occupied, gpm_read;
    struct presence *presences;
    size_t presence_count, presence_slots;
};

/* Utilisation samples: each is counted once, in the window of its own time, and kept for 10 s for
 * the ratios. The driver makes five a second, so that these are over three minutes. */
enum { GPU_SAMPLES_MAX = 1024 };
#define GPU_SAMPLES_RATIO_US ((uint64_t)10000000)

struct gpu_sample {
    uint64_t at_us;
    uint32_t pid;
    uint32_t process; /* LEDGER_NONE: not known yet */
    uint8_t sm_percent, memory_percent;
    uint8_t weight; /* the busiest engine of the process, percent */
    bool in_proc;
    bool counted; /* its window is settled */
};

struct gpu_samples {
    struct gpu_sample ring[GPU_SAMPLES_MAX];
    size_t first, count;
    bool are_made;     /* the driver has made one, or counts: it has the utilisation of processes */
    bool are_counted;  /* it counts the time of each process, and makes none */
    bool are_missing;  /* it has made none, though a process kept the device busy */
    uint64_t garbage;  /* dropped: above 100 % */
    uint64_t repeated; /* dropped: a repetition */
    uint64_t late;     /* not counted: after their window was settled */
};

/* The state of --attribution=intensity; see gpu_learn.c. */
struct gpu_learning {
    struct tenants tenants;
    struct slots slots;
    struct intensity intensity;
    struct clients clients;
    bool has_others; /* there are processes in TENANT_OTHERS */
    struct {
        uint64_t energy_uj, duration_us;
        bool context;
    } quiet; /* since the last slot with activity */
};

struct gpu {
    struct gpu_options options;
    struct ledger *ledger;
    struct sightings *sightings;
    uint32_t index;
    uint32_t meter;
    char *uuid, *name, *driver;
    uint64_t power_limit_mw; /* 0: unknown */
    uint64_t memory_bytes;   /* 0: unknown */
    bool has_minor;
    uint32_t minor, render_minor;
    bool is_renumbered;         /* as in struct sample_device */
    char pci[SAMPLE_PCI_BYTES]; /* "": unknown */

    uint64_t latest_us; /* of any sample */
    bool out_of_memory; /* since the last gpu_ingest: something was not attributed */

    bool counter_seen;
    bool counter_is_integral;     /* energy is power x time: nothing is measured */
    uint64_t counter_uj, tick_us; /* the last tick */
    uint64_t resets;
    /* Both are of the previous run: what the counter has moved since then is a gap. */
    bool is_resumed;
    uint64_t integral_base_uj; /* an integral starts over with each run, and is added to this */

    /* Closed windows to be settled, then the open one, which is always there. */
    struct window windows[GPU_WINDOWS_MAX];
    size_t first_window, window_count;
    size_t observed_count; /* windows from the first on that idle levels were learned from */
    uint64_t settled_until_us;

    struct gpu_samples samples;
    struct program_memory *programs;     /* of the board and its instances */
    struct gpu_learning *learning;       /* both NULL: --attribution=timeshare */
    struct gpu_mig *mig;                 /* NULL: the board is not in MIG mode */
    uint64_t list_round[GPU_LIST_KINDS]; /* lists of this kind read so far */
    bool list_named[GPU_LIST_KINDS];     /* the last one had a process */
    uint64_t list_us[GPU_LIST_KINDS];    /* when it was last read */
    struct gpu_vgpus *vgpus;             /* NULL: there never was one */
    struct idle_levels idle;

    /* The shares of the last window with samples, for busy windows without any. */
    struct claimants held;
    uint64_t held_until_us;

    /* The workloads with access to the board. */
    struct attached *attached;
    size_t attached_count;
    bool is_memory_requested; /* by all candidates */

    /* The last readings of memory in use by no listed process. */
    uint64_t unknown_bytes[GPU_UNKNOWN_READINGS];
    size_t unknown_readings;

    struct gpu_reading gauges[GPU_GAUGE_COUNT];
    /* Since the start; the last entry counts all others. */
    __typeof__(((struct snapshot_gpu *)0)->xids) xids;

    /* Scratch of gpu_settle.c, kept so that a steady state allocates nothing. */
    struct claimants claimants;
    struct bookings bookings;
};

/* The ledger and the sightings, which all GPUs share, must outlive it. */
int gpu_init(struct gpu *gpu, uint32_t index, const struct sample_device *device,
             const struct gpu_options *options, struct ledger *ledger, struct sightings *sightings);
void gpu_done(struct gpu *gpu);

/* The driver reports the board again, perhaps with another driver or power limit. 0 or -ENOMEM. */
int gpu_describe(struct gpu *gpu, const struct sample_device *device);

/* Is this another branch of the driver ("580" of 580.65.06) or another power limit (0: unknown)? */
bool gpu_is_changed(const struct gpu *gpu, const char *driver, uint64_t power_limit_mw);

/* Goes on where the previous run ended; before the first sample. */
void gpu_resume(struct gpu *gpu, const struct resumed_meter *before);

/* What the next run needs to do so. The texts stay the GPU's. */
struct resumed_meter gpu_resumed_meter(const struct gpu *gpu);

/* Takes one sample of this GPU. 0 or -ENOMEM; the books balance either way. */
int gpu_ingest(struct gpu *gpu, const struct sample *sample);

/* Closes the open window at the last tick and settles everything. For the end of a run. */
int gpu_finish(struct gpu *gpu);

/* Counted but not settled yet. */
uint64_t gpu_pending_uj(const struct gpu *gpu);

/* Sets the workloads with access to the board. The GPU will free `attached`. */
void gpu_set_attached(struct gpu *gpu, struct attached *attached, size_t count);

/* The weight of an attached workload, in which unknown memory and work are inferred: the memory it
 * requested if all did, else how often it was granted the GPU. */
static inline uint64_t gpu_attached_weight(const struct gpu *gpu, const struct attached *attached)
{
    return gpu->is_memory_requested ? attached->memory_bytes : MAX(attached->units, 1U);
}

/* In gpu_snapshot.c. */

/* Describe the GPU and one of its processes, without gauges older than `stale_us`. 0 or -ENOMEM. */
int gpu_snapshot(const struct gpu *gpu, uint64_t now_us, uint64_t stale_us, struct arena *arena,
                 struct snapshot_gpu *to);
void gpu_snapshot_process(const struct gpu *gpu, uint32_t process, uint64_t now_us,
                          uint64_t stale_us, struct snapshot_process *to);

/* Writes the rows of the GPU's containers: those with visible processes, and those to which its
 * unknown memory is inferred. Counts them in the snapshot. 0 or -ENOMEM. */
int gpu_snapshot_containers(const struct gpu *gpu, struct snapshot *snapshot,
                            struct snapshot_gpu *to, struct snapshot_container *rows);

/* In gpu_processes.c. */

/* Makes room for a sighting of each process and of one more, before its account is opened: there is
 * no way back. 0 or -ENOMEM. */
int gpu_reserve_sightings(struct gpu *gpu);

/* Makes no sighting later than now, after the clock was set back, and drops windows, lists and
 * places after the board was away. */
void gpu_reset_sightings(struct gpu *gpu, bool was_away, uint64_t now_us);

/* The processes of a GPU instance have no place in its estimator: it is a new one. */
void gpu_forget_places(struct gpu *gpu, uint32_t instance);

static inline struct sighting *gpu_sighting(const struct gpu *gpu, uint32_t process)
{
    return &gpu->sightings->items[process];
}

/* Is the process on the list of this kind that is in force? */
static inline bool gpu_is_on_list(const struct gpu *gpu, uint32_t process, unsigned kind)
{
    return gpu->list_round[kind] > 0 &&
           gpu_sighting(gpu, process)->list_round[kind] == gpu->list_round[kind];
}

/* Is it an account of this board? */
bool gpu_has_process(const struct gpu *gpu, uint32_t process);

/* Is it the MPS server of this client? Anybody may give a program its name: that of a user serves
 * only this user's clients, that of root all in its GPU instance. */
bool gpu_serves_mps(const struct gpu *gpu, uint32_t server, uint32_t client);

/* The lists in force that it is on, as bits 1 << enum sample_list_kind. */
uint8_t gpu_lists_of(const struct gpu *gpu, uint32_t process);

/* Open an account in the ledger, and its sighting. */
int gpu_open_process(struct gpu *gpu, uint32_t pid, uint32_t *ret_process);
int gpu_open_unseen(struct gpu *gpu, const struct workload_owner *owner, uint32_t *ret_process);

void gpu_take_process(struct gpu *gpu, uint64_t t_us, const struct sample_process *who);
/* `window` is the open one. */
void gpu_take_list(struct gpu *gpu, struct window *window, uint64_t t_us,
                   const struct sample_list *list);

/* Records that a process is on the list of this kind that is read now. */
void gpu_take_listed(struct gpu *gpu, struct window *window, uint64_t t_us, uint32_t process,
                     unsigned kind, uint64_t memory_bytes);

/* Is it an MPS server that cannot work itself? It holds less memory than a context takes, which a
 * program that has merely the name of one could not. */
bool gpu_is_small_server(const struct gpu *gpu, uint32_t process);

/* The same, without clients in the window: it holds no context. */
bool gpu_is_idle_server(const struct gpu *gpu, const struct window *window, uint32_t process);

/* Records in the window whether there is a context, as far as the lists in force tell. */
void gpu_record_context(struct gpu *gpu, struct window *window);

/* Starts a window, which may be `before` itself, with the processes of the lists in force. */
void gpu_begin_window(struct gpu *gpu, struct window *window, const struct window *before,
                      uint64_t start_us);

/* The lists that a process was on: those read in the window, and those in force when it began, but
 * for lists that were read again so soon that it can hardly have been there. */
static inline uint8_t window_lists_of(const struct window *window, const struct presence *presence)
{
    return presence->listed | (uint8_t)(presence->inherited & ~window->lists_renewed);
}

/* Adds what the driver has counted to the open window. */
void gpu_take_busy(struct gpu *gpu, struct window *window, uint64_t t_us,
                   const struct sample_busy *busy);

/* Compares the memory in use with that of the listed processes. */
void gpu_take_memory(struct gpu *gpu, uint64_t t_us, uint64_t used_bytes);

/* In gpu_readings.c. `window` is the open one. */

/* The driver or the power limit is this now: what programs drew before a change counts less. */
void gpu_age_programs(struct gpu *gpu, const char *driver, uint64_t power_limit_mw);
void gpu_take_utilisation(struct gpu *gpu, struct window *window, uint64_t t_us,
                          const struct sample_utilisation *utilisation);
/* Of an instance it is the utilisation that the board does not have in MIG mode. */
void gpu_take_gpm(struct gpu *gpu, struct window *window, uint64_t t_us,
                  const struct sample_gpm *gpm);
void gpu_take_gauge(struct gpu *gpu, struct window *window, uint64_t t_us,
                    const struct sample_gauge *gauge);
void gpu_take_xid(struct gpu *gpu, uint32_t xid);

/* Adds a sample. NULL if it is garbage or a repetition. Windows are settled until the time given.
 */
struct gpu_sample *gpu_samples_add(struct gpu_samples *samples, const struct sample_label *sample,
                                   uint64_t settled_until_us);
struct gpu_sample *gpu_samples_at(struct gpu_samples *samples, size_t index);

/* Drops samples that are counted and too old for the ratios. */
void gpu_samples_prune(struct gpu_samples *samples, uint64_t now_us);

/* In gpu_vgpu.c. `window` is the open one. */
void gpu_take_vgpus(struct gpu *gpu, struct window *window, uint64_t t_us,
                    const struct sample_vgpus *vgpus);
void gpu_take_vgpu_use(struct gpu *gpu, const struct sample_vgpu_use *use);

/* What the driver has counted in a window, of an instance; NULL: of no known one. */
uint64_t gpu_busy_in(const struct gpu *gpu, const struct window *window,
                     const struct gpu_instance *instance);

/* In gpu_observe.c. Learns the idle level from a window with all its samples. */
void gpu_observe_window(struct gpu *gpu, const struct window *window);

/* In gpu_settle.c. Books the oldest closed window. */
void gpu_settle_window(struct gpu *gpu, const struct window *window);

/* In gpu_programs.c. By which the program of a process is remembered: its keys together with who
 * runs it and, in MIG mode, the profile of its instance. 0 while that is unknown. */
struct program_key gpu_program_of(const struct gpu *gpu, uint32_t process);

/* The GPU instance of a process; NULL: the board is whole, or it is unknown. */
const struct gpu_instance *gpu_instance_of(const struct gpu *gpu, uint32_t process);

/* In gpu_learn.c. */

/* Is there a process in the window of which more may be learned? */
bool gpu_may_learn_more(const struct gpu *gpu, const struct window *window);

/* The place of a process where a window is divided, or TENANT_NONE. */
uint32_t gpu_place_in(const struct gpu *gpu, const struct gpu_learning *learning, uint32_t process);

/* The estimator of the board, then those of its instances; NULL after the last. */
struct gpu_learning *gpu_learning_at(const struct gpu *gpu, size_t index);

/* These need gpu->learning. The last slots are learned at the end of a run. */
void gpu_learn_list(struct gpu *gpu, const struct sample_list *list);
void gpu_learn_sample(struct gpu *gpu, const struct sample_label *sample,
                      const struct gpu_sample *taken);
void gpu_learn_busy(struct gpu *gpu, uint64_t t_us, const struct sample_busy *busy);
void gpu_learn_energy(struct gpu *gpu, uint64_t tick_us, uint64_t energy_uj);
void gpu_learn_last(struct gpu *gpu);
struct intensity_memory gpu_program_memory(const struct gpu *gpu);

/* Drops the slots of a settled window, and the tenants that ended. */
void gpu_forget_window(struct gpu *gpu, const struct window *window);

/* In gpu_weigh.c. */

/* Sets the active weights of the claimants and their errors. `sampled`: the window has samples,
 * some perhaps of unknown processes. */
void gpu_weigh_claimants(struct gpu *gpu, const struct window *window, bool sampled,
                         uint64_t unknown_weight);

/* The same for the claimants of a part of a board in MIG mode, which has no samples. */
void gpu_weigh_part(struct gpu *gpu, const struct window *window, const struct gpu_part *part);
