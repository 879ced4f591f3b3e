#include "attribution/node/node_overhead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* The best meter of the whole node may not be the first to answer, and the choice is final. */
static const uint64_t CHOICE_US = 30 * USEC_PER_SEC;

/* A meter not read for this long is not chosen. */
static const uint64_t STALE_US = 60 * USEC_PER_SEC;

/* A BMC is up to 10 s late and reports means: shorter windows are mostly error. */
static const uint64_t WINDOW_MIN_US = 30 * USEC_PER_SEC;
enum { WINDOW_INTERVALS = 3 };

/* A window in which some meter was not read for this long is given up. */
static const uint64_t WINDOW_MAX_US = 300 * USEC_PER_SEC;

/* The other meters are read at least every 5 s, or in every window. */
static const uint64_t LATE_MIN_US = 10 * USEC_PER_SEC;
enum { LATE_INTERVALS = 2 };

/* A deficit due to lateness and means is below what the whole node draws in this time. */
static const uint64_t DEFICIT_US = 300 * USEC_PER_SEC;

/* A kind of meter that measures the whole node. */
struct node_overhead_total_meter {
    const char *source;
    enum meter_kind kind;
    enum includes_gpus includes_gpus; /* AUTO: it differs between machines */
    bool is_sum;                      /* of all such meters; otherwise there must be only one */
};

/* The best first: a counter of the node, then means of a BMC, then whatever the board's maker
 * wired. */
static const struct node_overhead_total_meter totals[] = {
    {"cray", METER_NODE, INCLUDES_GPUS_YES, false},
    {"redfish", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"ipmi", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"hwmon", METER_NODE, INCLUDES_GPUS_AUTO, false},
    /* Whether those of two sockets are two halves or twice the same differs between boards. */
    {"rapl", METER_PSYS, INCLUDES_GPUS_NO, false},
    {"hwmon", METER_MODULE, INCLUDES_GPUS_YES, true},
};

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
}

void node_overhead_done(struct node_overhead *overhead)
{
    free(overhead->weights);
    bookings_done(&overhead->bookings);
    *overhead = (struct node_overhead){0};
}

static bool is_of(const struct node_overhead_total_meter *total, enum meter_kind kind,
                  const char *source)
{
    return kind == total->kind && strcmp(source, total->source) == 0;
}

/* Finds the meter of this kind, or the last one of a sum. NULL: none, or not the only one. */
static const struct node_meter *find_total(const struct node *node,
                                           const struct node_overhead_total_meter *total,
                                           uint64_t now_us)
{
    const struct node_meter *found = NULL;

    for (size_t i = 0; i < node->meter_count; i++) {
        if (!is_of(total, node->meters[i].kind, node->meters[i].source))
            continue;
        if (found && !total->is_sum)
            return NULL;
        found = &node->meters[i];
    }
    return found && found->read_us + STALE_US >= now_us ? found : NULL;
}

/* What was learned about the chosen meter before holds still. */
static void recall_meter(struct node_overhead *overhead)
{
    const struct node_overhead_memory *before = &overhead->before;

    if (strcmp(before->source, overhead->source) != 0)
        return;
    overhead->idle = before->idle;
    overhead->deficit_uj = before->deficit_uj;
    if (overhead->learns_inclusion) {
        overhead->inclusion = before->inclusion;
        overhead->includes_gpus = !before->inclusion.excluded;
    }
    gpu_inclusion_interrupt(&overhead->inclusion);
}

/* Chooses the best meter of the whole node, once all had time to answer. */
static void choose_total(struct node_overhead *overhead, uint64_t now_us)
{
    enum includes_gpus includes = overhead->options.includes_gpus;
    const struct node_meter *meter = NULL;

    if (overhead->first_report_us == 0 ||
        now_us < overhead->first_report_us) /* the clock was set */
        overhead->first_report_us = now_us;
    if (now_us < overhead->first_report_us + CHOICE_US)
        return;
    for (size_t i = 0; !meter && i < ARRAY_SIZE(totals); i++) {
        meter = find_total(overhead->node, &totals[i], now_us);
        if (meter)
            overhead->total = &totals[i];
    }
    if (!meter)
        return;
    overhead->total_id = meter->id;
    overhead->source = meter->source;
    if (includes == INCLUDES_GPUS_AUTO)
        includes = overhead->total->includes_gpus;
    overhead->learns_inclusion = includes == INCLUDES_GPUS_AUTO;
    overhead->includes_gpus = includes != INCLUDES_GPUS_NO;
    recall_meter(overhead);
}

/* False if a counter is too old. The sum of the GPUs is unknown if any of theirs is. */
static bool read_counters(const struct node_overhead *overhead, uint64_t t_us,
                          struct node_overhead_reading *ret_reading)
{
    const struct node_overhead_total_meter *total = overhead->total;
    struct node_overhead_reading reading = {.t_us = t_us, .gpus_known = true};

    for (size_t i = 0; i < overhead->node->meter_count; i++) {
        const struct node_meter *meter = &overhead->node->meters[i];

        if (is_of(total, meter->kind, meter->source) &&
            (total->is_sum || strcmp(meter->id, overhead->total_id) == 0))
            reading.total_uj += meter->counter_uj;
        else if (meter->meter != LEDGER_NONE)
            reading.parts_uj += meter->counter_uj;
        else
            continue;
        if (meter->read_us + overhead->late_us < t_us)
            return false;
        reading.lapses += meter->lapses;
        reading.meter_count++;
        reading.has_package |= meter->kind == METER_PACKAGE;
    }
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++) {
        const struct gpu *gpu = overhead->gpus[i];

        if (!gpu)
            continue;
        reading.gpus_known &= gpu->counter_seen && gpu->tick_us + overhead->late_us >= t_us;
        reading.gpus_uj += gpu->counter_uj;
        reading.gpu_resets += gpu->resets;
    }
    *ret_reading = reading;
    return reading.gpus_known || !overhead->includes_gpus;
}

void node_overhead_close_window(struct node_overhead *overhead)
{
    overhead->is_open = false;
    ledger_keep_booked(overhead->ledger, 0);
    gpu_inclusion_interrupt(&overhead->inclusion);
}

/* Starts a window at the latest reading. */
static int open_window(struct node_overhead *overhead)
{
    int r;

    overhead->start = overhead->latest;
    overhead->busy_us = overhead->capacity_us = 0;
    overhead->is_open = overhead->start.gpus_known || !overhead->includes_gpus;
    if (!overhead->is_open) {
        ledger_keep_booked(overhead->ledger, 0);
        return 0;
    }
    r = node_overhead_reset_weights(overhead);
    if (r < 0)
        node_overhead_close_window(overhead);
    return r;
}

/* The meter is added with the first complete reading: without one there is no series. One of the
 * previous run has no counter to tell what was missed. */
static int add_meter(struct node_overhead *overhead, const char *meter_id)
{
    if (ledger_find_meter(overhead->ledger, METER_NODE_OVERHEAD, meter_id, &overhead->meter)) {
        ledger_note_unknown_gap(overhead->ledger, overhead->meter);
        return 0;
    }
    return ledger_add_meter(overhead->ledger, METER_NODE_OVERHEAD, meter_id, 0, &overhead->meter);
}

static int take_total(struct node_overhead *overhead, uint64_t t_us)
{
    const struct node_overhead_reading *start = &overhead->start;
    const char *meter_id = overhead->total_id;
    struct node_overhead_reading reading;
    int r = 0;

    if (!read_counters(overhead, t_us, &reading))
        return 0; /* a later reading includes it */
    overhead->latest = reading;
    /* A window in which a counter was interrupted is dropped. */
    if (!overhead->is_open || t_us < start->t_us || reading.meter_count != start->meter_count ||
        reading.lapses != start->lapses ||
        (overhead->includes_gpus && reading.gpu_resets != start->gpu_resets)) {
        gpu_inclusion_interrupt(&overhead->inclusion);
        r = open_window(overhead);
    }
    if (overhead->total->kind != METER_NODE) /* their ids are those of sockets */
        meter_id = meter_words[overhead->total->kind];
    if (r == 0 && overhead->meter == LEDGER_NONE)
        r = add_meter(overhead, meter_id);
    return r;
}

/* The energy of the whole beyond its parts. Late counters and means make it negative now and then:
 * nothing is taken back, but the next windows are reduced by as much, so that the sum is right. */
static uint64_t overhead_energy(struct node_overhead *overhead, uint64_t total_uj,
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

/* Learns whether the meter includes the GPUs. What is booked stays. */
static void learn_inclusion(struct node_overhead *overhead, uint64_t node_uj, uint64_t gpus_uj)
{
    double duration_us = (double)(overhead->latest.t_us - overhead->start.t_us);

    if (!overhead->learns_inclusion)
        return;
    if (!overhead->start.gpus_known || !overhead->latest.gpus_known ||
        overhead->start.gpu_resets != overhead->latest.gpu_resets)
        gpu_inclusion_interrupt(&overhead->inclusion);
    else /* uJ / us = W; without its parts, so negative where these are ahead */
        gpu_inclusion_learn(&overhead->inclusion, (double)(int64_t)node_uj / duration_us,
                            (double)gpus_uj / duration_us);
    if (overhead->includes_gpus != overhead->inclusion.excluded)
        return;
    overhead->includes_gpus = !overhead->inclusion.excluded;
    overhead->deficit_uj = 0;
    overhead->mismatch = false;
}

/* Meters that are gone were part of the whole, and so of its rest. */
static void disown_absent(struct node_overhead *overhead)
{
    struct resumed_meters *resumed = overhead->node->resumed;

    if (!resumed)
        return;
    resumed_meters_disown(resumed, METER_PACKAGE, NULL);
    resumed_meters_disown(resumed, METER_DRAM, NULL);
    if (overhead->includes_gpus)
        resumed_meters_disown(resumed, METER_GPU, NULL);
}

static bool settle_window(struct node_overhead *overhead)
{
    uint64_t total_uj = overhead->latest.total_uj - overhead->start.total_uj;
    uint64_t parts_uj = overhead->latest.parts_uj - overhead->start.parts_uj;
    uint64_t gpus_uj = overhead->latest.gpus_uj - overhead->start.gpus_uj;
    unsigned __int128 inside_uj =
        (unsigned __int128)parts_uj + (overhead->includes_gpus ? gpus_uj : 0);
    bool booked = node_overhead_book(overhead, overhead_energy(overhead, total_uj, inside_uj)) == 0;

    disown_absent(overhead);
    learn_inclusion(overhead, total_uj - parts_uj, gpus_uj);
    return open_window(overhead) == 0 && booked;
}

static int take_usage(struct node_overhead *overhead, uint64_t t_us,
                      const struct sample_usage *usage)
{
    uint64_t start_us = overhead->start.t_us;
    bool failed;

    if (!overhead->total)
        choose_total(overhead, t_us);
    if (!overhead->is_open || overhead->meter == LEDGER_NONE)
        return 0;
    failed = node_overhead_add_usage(overhead, usage) < 0;
    if (overhead->latest.t_us >= start_us + overhead->window_us)
        failed |= !settle_window(overhead);
    else if (t_us > start_us + WINDOW_MAX_US || t_us + WINDOW_MAX_US < start_us)
        node_overhead_close_window(overhead);
    return failed ? -ENOMEM : 0;
}

int node_overhead_ingest(struct node_overhead *overhead, const struct sample *sample)
{
    if (sample->kind == SAMPLE_USAGE)
        return take_usage(overhead, sample->t_us, &sample->usage);
    if (sample->kind == SAMPLE_METER && overhead->total &&
        is_of(overhead->total, sample->meter.kind, sample->meter.source) &&
        strcmp(sample->meter.id, overhead->total_id) == 0) /* of a sum, the last one */
        return take_total(overhead, sample->t_us);
    return 0;
}

static void code_inclusion(struct gpu_inclusion *inclusion, struct coder *coder)
{
    inclusion->excluded = code_u64(coder, inclusion->excluded, 1);
    inclusion->step_count = code_u64(coder, inclusion->step_count, GPU_INCLUSION_STEPS);
    inclusion->next_step = code_u64(coder, inclusion->next_step, GPU_INCLUSION_STEPS - 1);
    for (size_t i = 0; i < inclusion->step_count; i++) {
        inclusion->steps[i].node_w = code_double(coder, inclusion->steps[i].node_w);
        inclusion->steps[i].gpus_w = code_double(coder, inclusion->steps[i].gpus_w);
        inclusion->steps[i].before_w = code_double(coder, inclusion->steps[i].before_w);
    }
}

void node_overhead_code(struct node_overhead *overhead, struct coder *coder)
{
    struct node_overhead_memory *memory = &overhead->before;

    if (overhead->total) { /* what was known before has been recalled, or is of another meter */
        snprintf(memory->source, sizeof(memory->source), "%s", overhead->source);
        memory->idle = overhead->idle;
        memory->inclusion = overhead->inclusion;
        memory->deficit_uj = overhead->deficit_uj;
    }
    code_array_text(coder, memory->source, sizeof(memory->source));
    idle_levels_code(&memory->idle, coder);
    code_inclusion(&memory->inclusion, coder);
    memory->deficit_uj = code_u64(coder, memory->deficit_uj, UINT64_MAX);
}
