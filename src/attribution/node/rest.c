#include "attribution/node/rest.h"

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

void rest_init(struct rest *rest, const struct rest_options *options, uint64_t interval_us,
               struct node *node, struct gpu *const *gpus)
{
    *rest = (struct rest){
        .options = *options,
        .ledger = node->ledger,
        .node = node,
        .gpus = gpus,
        .window_us = MAX(WINDOW_MIN_US, WINDOW_INTERVALS * interval_us),
        .late_us = MAX(LATE_MIN_US, LATE_INTERVALS * interval_us),
        .meter = LEDGER_NONE,
    };
    coverage_init(&rest->coverage);
}

void rest_done(struct rest *rest)
{
    free(rest->shares);
    free(rest->bookings);
    *rest = (struct rest){0};
}

static bool is_part(const struct node_meter *meter)
{
    return meter->meter != LEDGER_NONE &&
           (meter->kind == METER_PACKAGE || meter->kind == METER_DRAM);
}

/* Adds the GPUs to a reading; what they used is unknown if any of them is not read. */
static void read_gpus(const struct rest *rest, struct rest_reading *reading)
{
    reading->gpus_known = true;
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++) {
        const struct gpu *gpu = rest->gpus[i];

        if (!gpu)
            continue;
        if (!gpu->counter_seen || gpu->tick_us + rest->late_us < reading->t_us)
            reading->gpus_known = false;
        reading->gpus_uj += gpu->counter_uj;
        reading->gpu_resets += gpu->resets;
    }
}

/* False if one of the counts is not of this time. */
static bool read_counts(const struct rest *rest, uint64_t t_us, struct rest_reading *ret_reading)
{
    struct rest_reading reading = {.t_us = t_us};

    for (size_t i = 0; i < rest->node->meter_count; i++) {
        const struct node_meter *meter = &rest->node->meters[i];

        if (rest_is_whole(rest, meter))
            reading.total_uj += meter->counter_uj;
        else if (is_part(meter))
            reading.parts_uj += meter->counter_uj;
        else
            continue;
        if (meter->read_us + rest->late_us < t_us)
            return false;
        reading.lapses += meter->lapses;
        reading.meter_count++;
        reading.has_package |= meter->kind == METER_PACKAGE;
    }
    read_gpus(rest, &reading);
    *ret_reading = reading;
    return reading.gpus_known || !rest->includes_gpus;
}

static void close_window(struct rest *rest)
{
    rest->is_open = false;
    ledger_weigh(rest->ledger, 0);
    coverage_interrupt(&rest->coverage);
}

/* Begins a window with the latest reading. */
static void open_window(struct rest *rest)
{
    rest->start = rest->latest;
    rest->busy_us = rest->capacity_us = 0;
    rest->is_open = rest->start.gpus_known || !rest->includes_gpus;
    ledger_weigh(rest->ledger, rest->is_open ? rest_weighed_kinds(rest) : 0);
}

void rest_gpu_changed(struct rest *rest)
{
    if (rest->is_open)
        close_window(rest);
}

/* Was everything counted on from the start of the window to this reading? */
static bool goes_on(const struct rest *rest, const struct rest_reading *reading)
{
    const struct rest_reading *start = &rest->start;

    return reading->t_us >= start->t_us && reading->meter_count == start->meter_count &&
           reading->lapses == start->lapses &&
           (!rest->includes_gpus || reading->gpu_resets == start->gpu_resets);
}

static int take_whole(struct rest *rest, uint64_t t_us)
{
    struct rest_reading reading;

    if (!read_counts(rest, t_us, &reading))
        return 0; /* counts go on: a later reading has it all */
    rest->latest = reading;
    if (!rest->is_open || !goes_on(rest, &reading)) {
        coverage_interrupt(&rest->coverage);
        open_window(rest);
    }
    /* The books are opened when there is something to compute: no rest, no series. */
    return rest->meter == LEDGER_NONE
               ? ledger_add_meter(rest->ledger, METER_REST, rest->meter_id, 0, &rest->meter)
               : 0;
}

/*
 * What the whole used more than its parts. Counts that are late or means make it negative now and
 * then: nobody is given anything back, and the next windows are less by as much, so that the sum is
 * right.
 */
static uint64_t left_over(struct rest *rest, uint64_t total_uj, unsigned __int128 parts_uj)
{
    uint64_t duration_us = rest->latest.t_us - rest->start.t_us;
    unsigned __int128 limit_uj = (unsigned __int128)total_uj * DEFICIT_US / duration_us;

    parts_uj += rest->deficit_uj;
    if (total_uj >= parts_uj) {
        rest->deficit_uj = 0;
        rest->mismatch = false;
        return total_uj - (uint64_t)parts_uj;
    }
    limit_uj = MIN(limit_uj, (unsigned __int128)UINT64_MAX);
    parts_uj -= total_uj;
    rest->mismatch |= parts_uj > limit_uj;
    rest->deficit_uj = (uint64_t)MIN(parts_uj, limit_uj);
    return 0;
}

/* What was booked under another opinion stays. */
static void learn_coverage(struct rest *rest, uint64_t node_uj, uint64_t gpus_uj)
{
    double duration_us = (double)(rest->latest.t_us - rest->start.t_us);

    if (!rest->learns_coverage)
        return;
    if (!rest->start.gpus_known || !rest->latest.gpus_known ||
        rest->start.gpu_resets != rest->latest.gpu_resets)
        coverage_interrupt(&rest->coverage);
    else /* uJ / us = W; of the node without its parts, negative where these are ahead */
        coverage_learn(&rest->coverage, (double)(int64_t)node_uj / duration_us,
                       (double)gpus_uj / duration_us);
    if (rest->includes_gpus == rest->coverage.included)
        return;
    rest->includes_gpus = rest->coverage.included;
    rest->deficit_uj = 0;
    rest->mismatch = false;
}

static int settle(struct rest *rest)
{
    uint64_t total_uj = rest->latest.total_uj - rest->start.total_uj;
    uint64_t parts_uj = rest->latest.parts_uj - rest->start.parts_uj;
    uint64_t gpus_uj = rest->latest.gpus_uj - rest->start.gpus_uj;
    unsigned __int128 inside_uj = (unsigned __int128)parts_uj;
    int r;

    if (rest->includes_gpus)
        inside_uj += gpus_uj;
    r = rest_divide(rest, left_over(rest, total_uj, inside_uj));
    learn_coverage(rest, total_uj - parts_uj, gpus_uj);
    open_window(rest);
    return r;
}

static int take_usage(struct rest *rest, uint64_t t_us, const struct sample_usage *usage)
{
    uint64_t start_us = rest->start.t_us;

    if (!rest->total)
        rest_choose_total(rest, t_us);
    if (!rest->is_open || rest->meter == LEDGER_NONE)
        return 0;
    rest_weigh_usage(rest, usage);
    if (rest->latest.t_us >= start_us + rest->window_us)
        return settle(rest);
    if (t_us > start_us + WINDOW_MAX_US || t_us + WINDOW_MAX_US < start_us)
        close_window(rest);
    return 0;
}

int rest_ingest(struct rest *rest, const struct sample *sample)
{
    if (sample->kind == SAMPLE_USAGE)
        return take_usage(rest, sample->t_us, &sample->usage);
    if (sample->kind == SAMPLE_METER && rest_completes_whole(rest, &sample->meter))
        return take_whole(rest, sample->t_us);
    return 0;
}
