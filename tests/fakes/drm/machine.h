/*
 * Scripted machines with AMD and Intel GPUs: the files of /proc and /sys that their drivers would
 * show, below a directory, as of any instant.
 *
 * A script says what each process does to which board, and when. All else is derived, and agrees:
 * energy counters are the exact integral of power, engine times and occupied compute units are what
 * the processes do, and the script itself knows how many joules each of them caused.
 *
 * Whatever fails ends the program with a message: these are tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_BOARDS_MAX = 4,
    FAKE_PARTITIONS_MAX = 8, /* and XCCs of a board */
    FAKE_PROCESSES_MAX = 12,
    FAKE_ENGINES_MAX = 6,
    FAKE_STEPS_MAX = 6,
    FAKE_SPARED_MAX = 8,
};

/* A kind of engine, as fdinfo names it. */
struct fake_engine {
    const char *name;
    unsigned capacity; /* 0: ends the list */
};

/* What boards of one kind have in common. */
struct fake_chip {
    const char *driver; /* "amdgpu", "i915", "xe" */
    const char *product_name;
    unsigned vendor_id, device_id;

    /* AMD's. */
    uint8_t metrics_format, metrics_content; /* revision of gpu_metrics; 0: there is no such file */
    unsigned energy_bits;                    /* of its accumulator; 0: not available */
    const char *power_file;                  /* of hwmon */
    const char *kfd_name;                    /* NULL: KFD does not have it */
    unsigned compute_units, simd_per_cu, gfx_target_version;
    bool has_occupancy; /* KFD shows cu_occupancy */
    unsigned xccs;      /* 0: it cannot be partitioned */
    bool is_apu;
    bool has_old_fdinfo; /* of Linux before 5.19 */

    /* Intel's. */
    bool has_package_energy; /* energy2_input, beside the card's energy1_input */
    unsigned tiles;          /* each has memory of its own */

    struct fake_engine engines[FAKE_ENGINES_MAX];
    unsigned power_cap_w;
    uint64_t vram_bytes, reserved_bytes; /* the driver keeps some for itself */
};

struct fake_board {
    const struct fake_chip *chip;
    const char *pci;
    uint64_t unique_id; /* 0: none */
    unsigned idle_w;
    uint64_t first_uj;   /* in its counter when the script begins */
    bool is_second_die;  /* the board before counts its energy, too */
    unsigned partitions; /* at first; 0 is 1 */
};

/* How much of what it can use a process keeps busy, in thousandths; piecewise constant. */
struct fake_load {
    struct {
        unsigned ms, permille;
    } steps[FAKE_STEPS_MAX]; /* one of 0 ms is for ever, and the last */
    bool repeats;
};

struct fake_process {
    uint32_t pid; /* 0: ends the list */
    const char *name, *cgroup;
    const char *environment; /* lines "NAME=value"; NULL: none */
    unsigned board;
    unsigned partition, partitions; /* of so many; 0 is all of the board */
    const char *engine;             /* of a DRM client; NULL: a process of ROCm */
    const char *second_engine;      /* works half as long; NULL: none */
    uint32_t client_of;             /* has the DRM client of this process, too, and does nothing */
    unsigned from_ms, until_ms;     /* of its life; 0: to the end */
    unsigned kfd_until_ms;          /* KFD frees its memory as late as this; 0: when it ends */
    unsigned watts;                 /* above idle, for all that it can use */
    struct fake_load load;
    uint64_t memory_bytes;
};

struct fake_script {
    const char *name;
    struct fake_board boards[FAKE_BOARDS_MAX]; /* without chip: ends the list */
    struct fake_process processes[FAKE_PROCESSES_MAX];
};

/* All scripts; the last has no name. */
extern const struct fake_script fake_scripts[];
const struct fake_script *fake_script_find(const char *name); /* or it ends the program */

/* What the script says of an instant, in microseconds since it began. */

size_t fake_board_count(const struct fake_script *script);
uint64_t fake_energy_uj(const struct fake_script *script, unsigned board, uint64_t t_us);
/* As a reader of its counter sees it: in units of 2^-16 J, where AMD's counts; it does not wrap. */
uint64_t fake_counter_uj(const struct fake_script *script, unsigned board, uint64_t t_us);
uint64_t fake_power_uw(const struct fake_script *script, unsigned board, uint64_t t_us);
/* Joules above idle that a process has caused since the script began. */
double fake_truth_j(const struct fake_process *process, uint64_t t_us);

/* A machine of files. */
struct fake_machine {
    const struct fake_script *script;
    char root[256];
    uint64_t boot_s;  /* since the epoch: when the script began */
    bool is_replaced; /* files are, as a whole: for readers that run beside */
    unsigned generation;
    struct {
        bool is_plugged, is_suspended;
        unsigned partitions;
    } boards[FAKE_BOARDS_MAX];
    struct {
        bool is_running, is_in_kfd;
    } processes[FAKE_PROCESSES_MAX];
    const char *spared[FAKE_SPARED_MAX]; /* ends of paths that are left as a test made them */
};

/* `root` exists, and is empty or has other files; everything is as of the script's beginning. */
void fake_machine_init(struct fake_machine *machine, const struct fake_script *script,
                       const char *root, uint64_t boot_s, bool is_replaced);
void fake_machine_write(struct fake_machine *machine, uint64_t t_us);

/* A path below the root of a file of a board; in a buffer of the caller. */
enum { FAKE_PATH_BYTES = 512 };
const char *fake_board_path(const struct fake_machine *machine, unsigned board, const char *name,
                            char path[FAKE_PATH_BYTES]);

/* What may happen to a board; the files change at once. */
void fake_machine_unplug(struct fake_machine *machine, unsigned board);
void fake_machine_plug(struct fake_machine *machine, unsigned board, uint64_t t_us);
void fake_machine_suspend(struct fake_machine *machine, unsigned board, bool is_suspended);
/* 1 is SPX, 8 is CPX. KFD counts its topology anew. */
void fake_machine_partition(struct fake_machine *machine, unsigned board, unsigned partitions,
                            uint64_t t_us);
