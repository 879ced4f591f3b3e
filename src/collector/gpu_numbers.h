/*
 * GPU numbers: under which index the GPU of a source is shown. Each source numbers its own, and two
 * sources can come to the same number: a driver is loaded later, or a GPU is plugged in. Whoever
 * was there first keeps the index; the other one gets the next that is free. Pure.
 */
#pragma once

#include "model/sample.h"
#include "sources/source.h"

/* Zeroed, all are free. A number that was given is kept for good. */
struct gpu_numbers {
    struct {
        const struct source_ops *source; /* NULL: free */
        uint32_t number;                 /* the source's own */
    } owners[SAMPLE_GPU_MAX];
    bool is_full; /* a GPU has got none; it is not counted */
};

/* Numbers the samples of a source, and drops those of GPUs without a number. Returns how many GPUs
 * have just got another index than their own, or none. */
size_t gpu_numbers_apply(struct gpu_numbers *numbers, const struct source_ops *source,
                         struct batch *batch);
