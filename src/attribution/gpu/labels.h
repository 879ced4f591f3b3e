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
enum { LABELS_MAX = 1024 };
#define LABELS_RATIO_US ((uint64_t)10000000)

struct label {
    uint64_t at_us;
    uint32_t pid;
    uint32_t process; /* LEDGER_NONE until it is known */
    uint8_t sm_percent, memory_percent;
    uint8_t weight; /* the busiest engine of the process, percent */
    bool in_proc;
    bool counted; /* its window is settled, or it came too late for one */
};

struct labels {
    struct label ring[LABELS_MAX];
    size_t first, count;
    uint64_t garbage;  /* dropped: above 100 % */
    uint64_t repeated; /* dropped: seen before */
    uint64_t late;     /* not counted: their window was settled */
};

/*
 * Takes a sample in. NULL if it is garbage or was seen before. `settled_until_us` is the end of the
 * last settled window.
 */
struct label *labels_add(struct labels *labels, const struct sample_label *sample,
                         uint64_t settled_until_us);

struct label *labels_at(struct labels *labels, size_t index);
const struct label *labels_peek(const struct labels *labels, size_t index);

/* Drops what is counted and older than the ratios need. */
void labels_prune(struct labels *labels, uint64_t now_us);

/* Drops all of them. */
void labels_clear(struct labels *labels);
