#include "attribution/node/node_overhead.h"

#include <stdlib.h>

#include "core/macros.h"

/* A BMC is up to 10 s late, and tells means: what is shorter is mostly error. */
static const uint64_t WINDOW_MIN_US = 30 * USEC_PER_SEC;
enum { WINDOW_INTERVALS = 3 };

/* One in which something was not read for so long is given up. */
static const uint64_t WINDOW_MAX_US = 300 * USEC_PER_SEC;

/* The others are read at least every 5 s, or in every window. */
static const uint64_t LATE_MIN_US = 10 * USEC_PER_SEC;
enum { LATE_INTERVALS = 2 };

/* What lateness and means can explain is less than the whole draws in this time. */
static const uint64_t DEFICIT_US = 300 * USEC_PER_SEC;

void node_overhead_init(struct node_overhead *overhead, const struct node_overhead_options *options,
                        uint64_t interval_us, struct node *node, struct gpu *const *gpus)
{
    *overhead = (struct node_overhead){
        .options = *options,
        .ledger = node->ledger,
        .node = node,
        .gpus = gpus,
        .window_us = MAX(WINDOW_MIN_US, WINDOW_INTERVALS * interval_us),
        .late_us = MAX(LATE_MIN_US, LATE_INTERVALS * interval_us),
        .meter = LEDGER_NONE,
    };
    overhead_weights_init(&overhead->weights, node->ledger);
    gpu_inclusion_init(&overhead->coverage);
}

void node_overhead_done(struct node_overhead *overhead)
{
    overhead_weights_done(&overhead->weights);
    free(overhead->shares);
    free(overhead->bookings);
    *overhead = (struct node_overhead){0};
}

static bool is_part(const struct node_meter *meter)
{
    return meter->meter != LEDGER_NONE &&
           (meter->kind == METER_PACKAGE || meter->kind == METER_DRAM);
}

/* Adds the GPUs to a reading; what they used is unknown if any of them is not read. */
static void read_gpus(const struct node_overhead *overhead, struct node_overhead_reading *reading)
{
    reading->gpus_known = true;
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++) {
        const struct gpu *gpu = overhead->gpus[i];

        if (!gpu)
            continue;
        if (!gpu->counter_seen || gpu->tick_us + overhead->late_us < reading->t_us)
            reading->gpus_known = false;
        reading->gpus_uj += gpu->counter_uj;
        reading->gpu_resets += gpu->resets;
    }
}

/* False if one of the counts is not of this time. */
static bool read_counts(const struct node_overhead *overhead, uint64_t t_us,
                        struct node_overhead_reading *ret_reading)
{
    struct node_overhead_reading reading = {.t_us = t_us};

    for (size_t i = 0; i < overhead->node->meter_count; i++) {
        const struct node_meter *meter = &overhead->node->meters[i];

        if (node_overhead_is_whole(overhead, meter))
            reading.total_uj += meter->counter_uj;
        else if (is_part(meter))
            reading.parts_uj += meter->counter_uj;
        else
            continue;
        if (meter->read_us + overhead->late_us < t_us)
            return false;
        reading.lapses += meter->lapses;
        reading.meter_count++;
        reading.has_package |= meter->kind == METER_PACKAGE;
    }
    read_gpus(overhead, &reading);
    *ret_reading = reading;
    return reading.gpus_known || !overhead->includes_gpus;
}

static void close_window(struct node_overhead *overhead)
{
    overhead->is_open = false;
    overhead_weights_end(&overhead->weights);
    gpu_inclusion_interrupt(&overhead->coverage);
}

/* Begins a window with the latest reading. */
static int open_window(struct node_overhead *overhead)
{
    int r;

    overhead->start = overhead->latest;
    overhead->busy_us = overhead->capacity_us = 0;
    overhead->is_open = overhead->start.gpus_known || !overhead->includes_gpus;
    if (!overhead->is_open) {
        overhead_weights_end(&overhead->weights);
        return 0;
    }
    r = overhead_weights_begin(&overhead->weights, node_overhead_weighed_kinds(overhead));
    if (r < 0)
        close_window(overhead);
    return r;
}

void node_overhead_gpu_changed(struct node_overhead *overhead)
{
    if (overhead->is_open)
        close_window(overhead);
}

/* Was everything counted on from the start of the window to this reading? */
static bool goes_on(const struct node_overhead *overhead,
                    const struct node_overhead_reading *reading)
{
    const struct node_overhead_reading *start = &overhead->start;

    return reading->t_us >= start->t_us && reading->meter_count == start->meter_count &&
           reading->lapses == start->lapses &&
           (!overhead->includes_gpus || reading->gpu_resets == start->gpu_resets);
}

static int take_whole(struct node_overhead *overhead, uint64_t t_us)
{
    struct node_overhead_reading reading;
    int r = 0;

    if (!read_counts(overhead, t_us, &reading))
        return 0; /* counts go on: a later reading has it all */
    overhead->latest = reading;
    if (!overhead->is_open || !goes_on(overhead, &reading)) {
        gpu_inclusion_interrupt(&overhead->coverage);
        r = open_window(overhead);
    }
    /* The books are opened when there is something to compute: no rest, no series. */
    if (r == 0 && overhead->meter == LEDGER_NONE)
        r = ledger_add_meter(overhead->ledger, METER_REST, overhead->meter_id, 0, &overhead->meter);
    return r;
}

/*
 * What the whole used more than its parts. Counts that are late or means make it negative now and
 * then: nobody is given anything back, and the next windows are less by as much, so that the sum is
 * right.
 */
static uint64_t left_over(struct node_overhead *overhead, uint64_t total_uj,
                          unsigned __int128 parts_uj)
{
    uint64_t duration_us = overhead->latest.t_us - overhead->start.t_us;
    unsigned __int128 limit_uj = (unsigned __int128)total_uj * DEFICIT_US / duration_us;

    parts_uj += overhead->deficit_uj;
    if (total_uj >= parts_uj) {
        overhead->deficit_uj = 0;
        overhead->mismatch = false;
        return total_uj - (uint64_t)parts_uj;
    }
    limit_uj = MIN(limit_uj, (unsigned __int128)UINT64_MAX);
    parts_uj -= total_uj;
    overhead->mismatch |= parts_uj > limit_uj;
    overhead->deficit_uj = (uint64_t)MIN(parts_uj, limit_uj);
    return 0;
}

/* What was booked under another opinion stays. */
static void learn_coverage(struct node_overhead *overhead, uint64_t node_uj, uint64_t gpus_uj)
{
    double duration_us = (double)(overhead->latest.t_us - overhead->start.t_us);

    if (!overhead->learns_coverage)
        return;
    if (!overhead->start.gpus_known || !overhead->latest.gpus_known ||
        overhead->start.gpu_resets != overhead->latest.gpu_resets)
        gpu_inclusion_interrupt(&overhead->coverage);
    else /* uJ / us = W; of the node without its parts, negative where these are ahead */
        gpu_inclusion_learn(&overhead->coverage, (double)(int64_t)node_uj / duration_us,
                            (double)gpus_uj / duration_us);
    if (overhead->includes_gpus == overhead->coverage.included)
        return;
    overhead->includes_gpus = overhead->coverage.included;
    overhead->deficit_uj = 0;
    overhead->mismatch = false;
}

static int settle(struct node_overhead *overhead)
{
    uint64_t total_uj = overhead->latest.total_uj - overhead->start.total_uj;
    uint64_t parts_uj = overhead->latest.parts_uj - overhead->start.parts_uj;
    uint64_t gpus_uj = overhead->latest.gpus_uj - overhead->start.gpus_uj;
    unsigned __int128 inside_uj = (unsigned __int128)parts_uj;
    int divided, opened;

    if (overhead->includes_gpus)
        inside_uj += gpus_uj;
    divided = node_overhead_divide(overhead, left_over(overhead, total_uj, inside_uj));
    learn_coverage(overhead, total_uj - parts_uj, gpus_uj);
    opened = open_window(overhead);
    return divided < 0 ? divided : opened;
}

static int take_usage(struct node_overhead *overhead, uint64_t t_us,
                      const struct sample_usage *usage)
{
    uint64_t start_us = overhead->start.t_us;
    int weighed, settled;

    if (!overhead->total)
        node_overhead_choose_total(overhead, t_us);
    if (!overhead->is_open || overhead->meter == LEDGER_NONE)
        return 0;
    weighed = node_overhead_weigh_usage(overhead, usage);
    if (overhead->latest.t_us >= start_us + overhead->window_us) {
        settled = settle(overhead);
        return settled < 0 ? settled : weighed;
    }
    if (t_us > start_us + WINDOW_MAX_US || t_us + WINDOW_MAX_US < start_us)
        close_window(overhead);
    return weighed;
}

int node_overhead_ingest(struct node_overhead *overhead, const struct sample *sample)
{
    if (sample->kind == SAMPLE_USAGE)
        return take_usage(overhead, sample->t_us, &sample->usage);
    if (sample->kind == SAMPLE_METER && node_overhead_completes_whole(overhead, &sample->meter))
        return take_whole(overhead, sample->t_us);
    return 0;
}
