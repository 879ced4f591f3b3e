/* What one run of the command used. Made of the books before and after it and of its processes.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/books.h"
#include "run/family.h"

enum { RESULT_PROCESSES_MAX = 64 };

struct result_meter {
    enum meter_kind kind;
    char id[BOOKS_ID_BYTES];
    uint32_t gpu;
    bool is_modelled;  /* no meter: a model of one */
    bool is_estimated; /* the command's part is, by the CPU time of its processes */
    bool is_partial;   /* it was read only after the command had begun, or not to its end */
    bool has_uncertainty;
    uint64_t counted_uj; /* of which: */
    uint64_t idle_uj;    /* nobody's */
    uint64_t command_uj; /* never more than was counted */
    uint64_t uncertain_uj;
    uint64_t pending_uj; /* not divided yet: some of it may be the command's */
    double grams, cost;  /* of what is the command's */
};

struct result_process {
    pid_t pid;
    char name[FAMILY_NAME_BYTES];
    uint64_t cpu_us;
    uint64_t gpu_uj;
    uint64_t cpu_uj; /* its part of the processors' energy, by CPU time */
};

struct result {
    int status;          /* exit status, or 128 + signal */
    bool is_interrupted; /* a signal to end reached it */
    uint64_t wall_us, cpu_us;
    double peak_w; /* of the command, over a second; 0: it was shorter */
    bool has_grams, has_cost;
    char currency[4];
    struct result_meter meters[BOOKS_METERS_MAX];
    size_t meter_count;
    struct result_process processes[RESULT_PROCESSES_MAX]; /* those with the most energy first */
    size_t process_count;
    size_t process_total; /* all that were seen */
    size_t left_running;  /* when the command ended */
};

struct result_input {
    int status;
    bool is_interrupted;
    uint64_t wall_us, cpu_us;
    double peak_w;
    const struct family *family;
    uint64_t boot_us;     /* since the epoch: what start times of processes count from */
    bool is_estimated;    /* it had no cgroup of its own */
    uint64_t missed_us;   /* then: CPU time that its processes may have used unseen */
    uint64_t boundary_us; /* how far the readings of a daemon may be from beginning and end */
    uint64_t lost_us;     /* of the time its meters are in no reading */
    bool has_own_factor, has_own_price; /* those of a daemon are not wanted */
    /* Of this process, and of a daemon (NULL: none): the meters before it and after it. */
    const struct books *before, *after;
    const struct books *daemon_before, *daemon_after;
    const struct books *gpus; /* of the one that reads the GPUs, once all is divided that will be */
};

void result_make(const struct result_input *input, struct result *ret_result);

/* What all results have, for summaries and comparisons. */
enum quantity {
    QUANTITY_ENERGY,
    QUANTITY_GPU_ENERGY,
    QUANTITY_CPU_ENERGY,
    QUANTITY_DRAM_ENERGY,
    QUANTITY_REST_ENERGY,
    QUANTITY_POWER,
    QUANTITY_PEAK_POWER,
    QUANTITY_WALL_TIME,
    QUANTITY_CPU_TIME,
    QUANTITY_EMISSIONS,
    QUANTITY_COST,
    QUANTITIES,
};

struct quantity_words {
    const char *key;   /* in JSON */
    const char *title; /* in text */
    const char *unit;
};

extern const struct quantity_words quantity_words[QUANTITIES];

/* False: it was not measured. */
bool result_get(const struct result *result, enum quantity quantity, double *ret_value);

/* The expected error of the energy in all; 0: no meter knows its own. */
uint64_t result_uncertain_uj(const struct result *result);
