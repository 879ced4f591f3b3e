/*
 * The utilisation samples of one GPU: each is counted once, in the window that its own time falls
 * in, and kept for 10 s for the utilisation ratios. A ring of fixed size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sample.h"

/* The driver makes five a second and keeps 14 s of them; this holds over three minutes. */
enum { UTIL_SAMPLES_MAX = 1024 };
#define UTIL_SAMPLES_RATIO_US ((uint64_t)10000000)

struct util_sample {
    uint64_t at_us;
    uint32_t pid;
    uint32_t process; /* LEDGER_NONE until it is known */
    uint8_t sm_percent, memory_percent;
    uint8_t weight; /* the busiest engine of the process, percent */
    bool in_proc;
    bool counted; /* its window is settled, or it came too late for one */
};

struct util_samples {
    struct util_sample ring[UTIL_SAMPLES_MAX];
    size_t first, count;
    uint64_t garbage;  /* dropped: above 100 % */
    uint64_t repeated; /* dropped: seen before */
    uint64_t late;     /* not counted: their window was settled */
};

/*
 * Takes a sample in. NULL if it is garbage or was seen before. `settled_until_us` is the end of the
 * last settled window.
 */
struct util_sample *util_samples_add(struct util_samples *labels, const struct sample_label *sample,
                                     uint64_t settled_until_us);

struct util_sample *util_samples_at(struct util_samples *labels, size_t index);
const struct util_sample *util_samples_peek(const struct util_samples *labels, size_t index);

/* Drops what is counted and older than the ratios need. */
void util_samples_prune(struct util_samples *labels, uint64_t now_us);

/* Drops all of them. */
void util_samples_clear(struct util_samples *labels);
