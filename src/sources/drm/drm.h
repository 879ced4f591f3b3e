/*
 * AMD and Intel GPUs, through the files of their kernel drivers amdgpu, i915 and xe: sysfs, hwmon,
 * KFD and fdinfo. No vendor's library is needed, and neither /dev/kfd nor /dev/dri is opened.
 *
 * The source itself is one thread, which looks for cards. Each card is a unit with a thread of its
 * own, which alone reads what its driver answers, so that one that hangs does not hold up the
 * others.
 *
 * drm.c is the source; drm_card.c reads what cards have in common, drm_processes.c who uses them
 * and for how long, drm_amd.c and drm_intel.c what differs. files.c finds the processes that have a
 * card open, clients.c reads what they did. drm_check.c is `check`.
 */
#pragma once

#include <stdatomic.h>

#include "model/counter.h"
#include "sources/amd/kfd.h"
#include "sources/drm/clients.h"
#include "sources/gpu_pids.h"

extern const struct source_ops drm_source;

enum { DRM_CARDS_MAX = 256, DRM_TEXT_BYTES = 96 };

/* A device of the PCI bus. */
struct drm_die {
    uint32_t card; /* N of /sys/class/drm/cardN; another after a boot */
    char pci[SAMPLE_PCI_BYTES];
};

/* A card that was found. Of two dies on one board, the first counts the energy of both. */
struct drm_found {
    const struct drm_vendor *vendor;
    const char *driver; /* a literal */
    struct drm_die dies[DRM_DIES_MAX];
    size_t die_count;
};

/* Its directory in sysfs (O_PATH), or -errno. */
int drm_open_die(const struct host *host, const struct drm_die *die);

/* The numbers of NVIDIA's GPUs come first, as NVML counts them, whether its driver runs or not. */
uint32_t drm_first_index(const struct host *host);

/* What the threads share. It lives as long as one of them does. */
struct drm_shared {
    atomic_uint references;
    const struct source_context *context;
    struct proc_reader proc;
    struct drm_files files;
    uint32_t first_index;
    uint64_t polls_per_window;
    char pci[SAMPLE_GPU_MAX][SAMPLE_PCI_BYTES]; /* by index: a card keeps its number */
    atomic_bool running[SAMPLE_GPU_MAX];
    /* The card is a die of a board that was found to have more of them: it must begin anew. */
    atomic_bool is_outdated[SAMPLE_GPU_MAX];
    /* Its counter, or that of the next, shows that they are not dies of one board. */
    atomic_bool is_single[SAMPLE_GPU_MAX];
    size_t die_counts[SAMPLE_GPU_MAX];
    uint64_t next_search_us;
    size_t left_out; /* cards for which there was no number then */
};

void drm_shared_unref(void *shared);

/* Finds the cards of known drivers, in the order of their PCI addresses. Reads nothing that asks a
 * device: one may hang. Returns how many. */
size_t drm_find_cards(const struct drm_shared *shared,
                      struct drm_found cards[static DRM_CARDS_MAX]);

/* A process of a card. Times are of the whole card: half of its units for a second is half of one.
 */
struct drm_process {
    uint32_t pid;
    uint32_t parts;        /* bits: those in which it is; 0: unknown */
    bool is_present;       /* at this poll */
    bool is_compute;       /* by KFD */
    bool has_worked;       /* or holds memory: else it merely has the card open */
    uint64_t memory_bytes; /* or SAMPLE_MEMORY_UNKNOWN */
    /* Since they were last passed on. */
    uint64_t engine_us, copy_us, evicted_us;
    double occupied_us;       /* compute units */
    bool is_untimed;          /* it has clients whose work nothing counts */
    bool is_uncounted;        /* it has those, or queues of which nothing counts what they do */
    uint64_t occupancy_at_us; /* the last reading, by the monotonic clock; 0: none */
    /* Of KFD's counts the most that they showed, once it is known. */
    bool is_known;
    uint64_t copied_us, evicted_ms;
    struct { /* what KFD shows at this poll, of all parts */
        bool is_present, has_occupancy, has_queues;
        uint64_t memory_bytes, copied_us, evicted_ms;
        uint32_t compute_units;
    } kfd;
};

/* A part of a card that is used as a GPU of its own: a partition of AMD's, or a die. */
struct drm_part {
    char id[DRM_TEXT_BYTES]; /* "PCI-0000:19:00.0", "amdgpu_xcp_3" */
    uint32_t gpu_id;         /* KFD's */
    uint32_t render_minor, compute_units;
};

struct drm_card {
    struct drm_shared *shared;
    struct drm_found found;
    uint32_t index;
    int device_fds[DRM_DIES_MAX]; /* -1: not opened yet */
    int hwmon_fd;                 /* -1: none */
    char uuid[DRM_TEXT_BYTES], name[DRM_TEXT_BYTES], driver[DRM_TEXT_BYTES];
    uint64_t polls;
    uint64_t describe_us; /* when to pass on what it is; all of these by the monotonic clock */
    uint64_t poll_us;     /* the last poll */
    uint64_t busy_us;     /* when busy times were last passed on; 0: never */
    uint64_t activity_us; /* when its activity was last read; 0: never */
    uint64_t active_us;   /* how long it was active between those two */

    struct drm_clients clients;
    struct gpu_pids pids;
    struct drm_process *processes;
    size_t process_count, process_capacity;
    uint64_t list_hash;

    /* AMD's. One part: the card is whole. */
    struct drm_part parts[KFD_NODES_MAX];
    size_t part_count;
    uint32_t compute_units; /* of all parts; 0: unknown */
    bool has_topology;
    bool is_joined;       /* the counters of its two dies show that they are one board */
    uint64_t generation;  /* of the topology */
    char profile[16];     /* "CPX" */
    bool is_apu;          /* its power contains that of the processors */
    uint32_t failures;    /* windows in which gpu_metrics could not be read, until it could */
    struct counter count; /* of energy: in 2^-16 J */
    uint64_t first_count;
    struct counter suspect; /* from where it has jumped to */
    uint64_t suspect_us;    /* when that was, if it has a last value */

    /* Intel's. */
    const char *energy_file; /* of hwmon; NULL: none has counted yet */
    uint64_t last_energy_uj, last_energy_us;

    /* Decided by the first answer, as the two must not be mixed. NONE is final: it may come when
     * the energy turns out to be in a meter of the processors. */
    enum { DRM_ENERGY_UNKNOWN, DRM_ENERGY_COUNTER, DRM_ENERGY_INTEGRAL, DRM_ENERGY_NONE } energy;
    struct integrator integrator;
};

/* A read in progress. */
struct drm_poll {
    struct drm_card *card;
    struct batch *batch;
    struct error *err;
    uint64_t now_us, mono_us;
    bool window_ends;
    int result; /* -ENODEV and -ENOMEM end it */
};

/* What a card shows of itself at the end of a window. */
struct drm_meters {
    bool has_energy, has_power, has_activity;
    bool may_have_energy; /* it could not be read, but perhaps soon */
    uint64_t energy_uj, power_uw;
    struct sample_utilisation utilisation;
};

/* What differs between vendors. */
struct drm_vendor {
    const char *name;
    const char *power_limit; /* a file of hwmon, in uW */
    /* A stable id and a name, as far as it has them. NULL: it has none. */
    void (*identify)(struct drm_card *card);
    /* Passes on how the card is partitioned, if that has changed, or `always`. NULL: never is. */
    void (*read_parts)(struct drm_poll *poll, bool always);
    /* Adds what its processes did besides fdinfo. NULL: nothing. */
    void (*read_processes)(struct drm_poll *poll);
    /* What has to be read between the ends of windows, too: power and activity. NULL: nothing. */
    void (*read_instant)(const struct drm_card *card, struct drm_meters *meters);
    /* Adds gauges, too. */
    void (*read_meters)(struct drm_poll *poll, struct drm_meters *meters);
    void (*check)(struct report *report, const struct drm_card *card);
    /* Is it a die, as the one beside it? NULL: there are none. */
    bool (*is_die)(int device_fd);
};

extern const struct drm_vendor drm_amd, drm_intel;

/* The unit of a card, which its first read opens. Takes a reference. 0 or -ENOMEM. */
int drm_card_new(struct drm_shared *shared, uint32_t index, const struct drm_found *found,
                 void **ret_state);
extern const struct source_ops drm_card_unit;

/* For `check`, too. 0 or -errno with a text. */
int drm_card_open(struct drm_card *card, struct error *err);
void drm_card_close(struct drm_card *card);
/* A read would wake a device that the kernel has suspended. */
bool drm_card_is_suspended(const struct drm_card *card);

bool drm_poll_is_over(const struct drm_poll *poll);
void drm_poll_out_of_memory(struct drm_poll *poll);
void drm_poll_add(struct drm_poll *poll, struct sample sample);
void drm_poll_add_gauge(struct drm_poll *poll, enum gpu_gauge gauge, uint64_t value);

/* Who is on the card; lists are passed on when they change, and at the end of a window. */
void drm_poll_read_processes(struct drm_poll *poll);
/* Does the card's own activity tell what some of them do beside others? */
bool drm_card_has_uncounted(const struct drm_card *card);
/* What they did in the window. */
void drm_poll_pass_busy(struct drm_poll *poll);

/* What all of them did since then, of the card's time. */
uint8_t drm_poll_busy_percent(const struct drm_poll *poll);

/* The process of a pid, which is present at this poll. NULL: out of memory. */
struct drm_process *drm_poll_process(struct drm_poll *poll, uint32_t pid);

/* A number in a file below a directory. False: there is none, or it cannot be read. */
bool drm_read_number(int directory_fd, const char *name, uint64_t *ret_value);
/* A line of text; "" if there is none. */
void drm_read_text(int directory_fd, const char *name, char *text, size_t size_bytes);
/* The last part of a link's target; "" if it cannot be read. */
void drm_read_link(int directory_fd, const char *name, char *text, size_t size_bytes);
/* The sum over the dies. False: not all have it. */
bool drm_card_sum(const struct drm_card *card, const char *name, uint64_t *ret_sum);

void drm_check(const struct source_context *context, struct report *report);
