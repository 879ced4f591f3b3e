/* Utilisation samples of one GPU: each is counted once, in the window of its own time, and kept for
 * 10 s for the utilisation ratios. A ring of fixed size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sample.h"

/* The driver makes five a second and keeps 14 s of them; these are over three minutes. */
enum { UTIL_SAMPLES_MAX = 1024 };
#define UTIL_SAMPLES_RATIO_US ((uint64_t)10000000)

struct util_sample {
    uint64_t at_us;
    uint32_t pid;
    uint32_t process; /* LEDGER_NONE: not known yet */
    uint8_t sm_percent, memory_percent;
    uint8_t weight; /* the busiest engine of the process, percent */
    bool in_proc;
    bool counted; /* its window is settled */
};

struct util_samples {
    struct util_sample ring[UTIL_SAMPLES_MAX];
    size_t first, count;
    uint64_t garbage;  /* dropped: above 100 % */
    uint64_t repeated; /* dropped: a repetition */
    uint64_t late;     /* not counted: after their window was settled */
};

/* Adds a sample. NULL if it is garbage or a repetition. Windows are settled until the time given.
 */
struct util_sample *util_samples_add(struct util_samples *samples,
                                     const struct sample_label *sample, uint64_t settled_until_us);

struct util_sample *util_samples_at(struct util_samples *samples, size_t index);

/* Drops samples that are counted and too old for the ratios. */
void util_samples_prune(struct util_samples *samples, uint64_t now_us);
