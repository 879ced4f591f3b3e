/* What must not change charges: names, how a job is split into processes, inactive processes,
 * the length of a window. On a simulated GPU, and on a recorded one. */
#include "simulation.h"

#include "sources/trace.h"

#define RECORDED SOURCE_DIR "/data/h200-five-workers.trace.gz"

static const struct load MATRICES = {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}};
static const struct load STREAMS = {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}};
static const struct load FLOATS = {320, {0.95, 0.6, 0.2, 0, 0.1, 0, 0.85, 0}};

enum { PIDS_MAX = 16 };

/* The energy charged to each process, by its pid. */
struct shares {
    uint32_t pids[PIDS_MAX];
    uint64_t active_uj[PIDS_MAX], idle_uj[PIDS_MAX];
    size_t count;
};

/* Settles and reads the books, which checks that they balance. */
static struct shares close_pipeline(struct pipeline *pipeline)
{
    struct shares bill = {0};
    struct snapshot *snapshot;

    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    for (size_t i = 0; i < snapshot->process_count; i++) {
        assert_true(bill.count < PIDS_MAX);
        bill.pids[bill.count] = snapshot->processes[i].pid;
        bill.active_uj[bill.count] = snapshot->processes[i].active_uj;
        bill.idle_uj[bill.count++] = snapshot->processes[i].idle_uj;
    }
    close_books(snapshot);
    pipeline_free(pipeline);
    return bill;
}

static size_t find_pid(const struct shares *bill, uint32_t pid)
{
    for (size_t i = 0; i < bill->count; i++)
        if (bill->pids[i] == pid)
            return i;
    fail_msg("pid %u has no account", pid);
    return SIZE_MAX;
}

static uint64_t active_uj(const struct shares *bill, uint32_t pid)
{
    return bill->active_uj[find_pid(bill, pid)];
}

static double share(const struct shares *bill, uint32_t pid)
{
    double total = 0;

    for (size_t i = 0; i < bill->count; i++)
        total += (double)bill->active_uj[i];
    return (double)active_uj(bill, pid) / total;
}

/* Charged with `pid`: the energy of its half is its own. */
static void join(struct shares *bill, uint32_t half, uint32_t pid)
{
    bill->active_uj[find_pid(bill, pid)] += active_uj(bill, half);
    bill->active_uj[find_pid(bill, half)] = 0;
}

/* Half of the energy charged differently, relative to all. Every pid of `a` is in `b`. */
static double distance(const struct shares *a, const struct shares *b)
{
    double sum = 0;

    for (size_t i = 0; i < a->count; i++)
        sum += fabs(share(a, a->pids[i]) - share(b, a->pids[i])) / 2;
    return sum;
}

static void assert_swapped(const struct shares *bill, const struct shares *swapped, uint32_t one,
                           uint32_t other)
{
    assert_int_equal(bill->count, swapped->count);
    for (size_t i = 0; i < bill->count; i++) {
        uint32_t pid = bill->pids[i];
        size_t k = find_pid(swapped, pid == one ? other : pid == other ? one : pid);

        assert_int_equal(bill->active_uj[i], swapped->active_uj[k]);
        assert_int_equal(bill->idle_uj[i], swapped->idle_uj[k]);
    }
}

/*
 * Four minutes of three processes that pause and work in changing company. With `halves`, the first
 * is two processes, 11 and 19.
 */
static struct shares simulate(struct pipeline_options options, const uint32_t pids[4], bool halves)
{
    struct simulation simulation = {
        .gpu = {.idle_watts = 100,
                .count = 4,
                .loads = {MATRICES, MATRICES, STREAMS, FLOATS},
                .noise = 0.01},
        .pids = {pids[0], halves ? 19 : 0, pids[1], pids[2]},
    };
    struct pipeline *pipeline = pipeline_with(options);

    if (pids[3] > 0) {
        simulation.gpu.count = 5;
        simulation.pids[4] = pids[3]; /* does nothing */
    }
    simulation_begin(&simulation, pipeline);
    for (size_t i = 0; i < 1200; i++) {
        size_t at_work = i / 40 % 8; /* a bit for each */
        double each = 1.0 / MAX(__builtin_popcountl(at_work), 1);
        double first = at_work & 1 ? each : 0;

        simulation_run(&simulation, (const double[]){
                                        halves ? first / 2 : first,
                                        halves ? first / 2 : 0,
                                        at_work & 2 ? each : 0,
                                        at_work & 4 ? each : 0,
                                        0,
                                    });
    }
    return close_pipeline(pipeline);
}

#define PIDS(...) ((const uint32_t[4]){__VA_ARGS__})

/* Changes samples on their way; keeps what it needs in `pids`. */
typedef struct sample rewrite(struct batch *batch, struct sample sample, const uint32_t pids[2]);

static struct sample as_it_is(struct batch *batch, struct sample sample, const uint32_t pids[2])
{
    (void)batch;
    (void)pids;
    return sample;
}

static struct shares replay(struct pipeline_options options, rewrite *change,
                            const uint32_t pids[2])
{
    struct trace_reader *reader;
    struct pipeline *pipeline;
    struct batch batch;
    struct error err = {""};
    int r;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    assert_int_equal(trace_reader_open(RECORDED, &reader, &err), 0);
    batch_init(&batch);
    while ((r = trace_reader_next(reader, &batch, &err)) > 0) {
        feed(pipeline, change(&batch, batch.samples[0], pids));
        batch_reset(&batch);
    }
    assert_int_equal(r, 0);
    batch_done(&batch);
    trace_reader_close(reader);
    return close_pipeline(pipeline);
}

/* A copy of the list that may be changed, with room for one more. */
static struct sample_listed *copy_list(struct batch *batch, struct sample *sample)
{
    struct sample_listed *entries =
        arena_alloc(&batch->arena, (sample->list.count + 1) * sizeof(*entries));

    assert_non_null(entries);
    for (size_t i = 0; i < sample->list.count; i++)
        entries[i] = sample->list.entries[i];
    sample->list.entries = entries;
    return entries;
}

static struct sample list_with(struct batch *batch, struct sample sample, uint32_t pid)
{
    copy_list(batch, &sample)[sample.list.count] =
        (struct sample_listed){pid, 1 << 20, SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE};
    sample.list.count++;
    return sample;
}

static uint32_t swapped_pid(uint32_t pid, const uint32_t pids[2])
{
    return pid == pids[0] ? pids[1] : pid == pids[1] ? pids[0] : pid;
}

static struct sample swap(struct batch *batch, struct sample sample, const uint32_t pids[2])
{
    if (sample.kind == SAMPLE_LABEL)
        sample.label.pid = swapped_pid(sample.label.pid, pids);
    if (sample.kind == SAMPLE_PROCESS)
        sample.process.pid = swapped_pid(sample.process.pid, pids);
    if (sample.kind == SAMPLE_LIST) {
        struct sample_listed *entries = copy_list(batch, &sample);

        for (size_t i = 0; i < sample.list.count; i++)
            entries[i].pid = swapped_pid(entries[i].pid, pids);
    }
    return sample;
}

static bool lists_pid(const struct sample *sample, uint32_t pid)
{
    for (size_t i = 0; i < sample->list.count; i++)
        if (sample->list.entries[i].pid == pid)
            return true;
    return false;
}

/* pids[0] is two processes from now on: every other sample is that of pids[1]. */
static struct sample halve(struct batch *batch, struct sample sample, const uint32_t pids[2])
{
    if (sample.kind == SAMPLE_LABEL && sample.label.pid == pids[0] &&
        sample.label.at_us / 200000 % 2)
        sample.label.pid = pids[1];
    if (sample.kind == SAMPLE_LIST && lists_pid(&sample, pids[0]))
        return list_with(batch, sample, pids[1]);
    return sample;
}

static struct sample add_idler(struct batch *batch, struct sample sample, const uint32_t pids[2])
{
    if (sample.kind == SAMPLE_LIST && sample.list.kind == SAMPLE_LIST_COMPUTE &&
        sample.list.count > 0)
        return list_with(batch, sample, pids[1]);
    return sample;
}

static void swapped_pids_swap_what_is_charged(void **state)
{
    struct shares bill = simulate(intensity_options(), PIDS(11, 12, 13), false);
    struct shares swapped = simulate(intensity_options(), PIDS(12, 11, 13), false);

    (void)state;
    assert_swapped(&bill, &swapped, 11, 12);
}

static void swapped_pids_of_a_recording_swap_what_is_charged(void **state)
{
    struct shares bill = replay(intensity_options(), as_it_is, NULL);
    struct shares swapped = replay(intensity_options(), swap, (const uint32_t[]){541, 544});

    (void)state;
    assert_true(active_uj(&bill, 541) != active_uj(&bill, 544));
    assert_swapped(&bill, &swapped, 541, 544);
}

static void a_process_split_in_two_is_charged_the_same(void **state)
{
    struct shares bill = simulate(intensity_options(), PIDS(11, 12, 13), false);
    struct shares halves = simulate(intensity_options(), PIDS(11, 12, 13), true);

    (void)state;
    assert_true(share(&halves, 19) > 0.1 && share(&halves, 11) > 0.1);
    join(&halves, 19, 11);
    assert_true(distance(&bill, &halves) < 0.02);
}

static void a_process_split_in_two_in_a_recording_is_charged_the_same(void **state)
{
    struct shares bill = replay(intensity_options(), as_it_is, NULL);
    struct shares halves = replay(intensity_options(), halve, (const uint32_t[]){541, 999});

    (void)state;
    assert_true(share(&halves, 999) > 0.1 && share(&halves, 541) > 0.1);
    join(&halves, 999, 541);
    assert_true(distance(&bill, &halves) < 0.02);
}

static void an_inactive_process_is_charged_no_active_energy(void **state)
{
    struct shares bill = simulate(intensity_options(), PIDS(11, 12, 13), false);
    struct shares with_idler = simulate(intensity_options(), PIDS(11, 12, 13, 14), false);

    (void)state;
    assert_int_equal(active_uj(&with_idler, 14), 0);
    assert_true(distance(&bill, &with_idler) < 0.01);
}

static void an_inactive_process_in_a_recording_is_charged_no_active_energy(void **state)
{
    struct shares bill = replay(intensity_options(), as_it_is, NULL);
    struct shares with_idler = replay(intensity_options(), add_idler, (const uint32_t[]){0, 999});

    (void)state;
    assert_int_equal(active_uj(&bill, 546), 0); /* it was there, too */
    assert_int_equal(active_uj(&with_idler, 999), 0);
    assert_true(distance(&bill, &with_idler) < 0.01);
}

static void windows_of_two_seconds_give_the_same_as_those_of_one(void **state)
{
    struct pipeline_options joined = intensity_options();
    struct shares bill, long_bill;

    (void)state;
    joined.gpu.interval_us = 2 * SECOND;
    bill = simulate(intensity_options(), PIDS(11, 12, 13), false);
    long_bill = simulate(joined, PIDS(11, 12, 13), false);
    assert_true(distance(&bill, &long_bill) < 0.01);
    bill = replay(intensity_options(), as_it_is, NULL);
    long_bill = replay(joined, as_it_is, NULL);
    assert_true(distance(&bill, &long_bill) < 0.01);
}

static void the_time_share_is_as_it_was(void **state)
{
    struct pipeline_options options = default_options();
    struct shares bill;

    (void)state;
    options.gpu.patience_us = 60 * SECOND; /* is of no concern to it */
    bill = replay(options, as_it_is, NULL);
    /* To the microjoule, as before there was anything else. */
    assert_int_equal(active_uj(&bill, 541), 34604570026);
    assert_int_equal(active_uj(&bill, 542), 10127110946);
    assert_int_equal(active_uj(&bill, 543), 10974092289);
    assert_int_equal(active_uj(&bill, 544), 10379529255);
    assert_int_equal(active_uj(&bill, 545), 10251500156);
    assert_int_equal(active_uj(&bill, 546), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swapped_pids_swap_what_is_charged),
        cmocka_unit_test(swapped_pids_of_a_recording_swap_what_is_charged),
        cmocka_unit_test(a_process_split_in_two_is_charged_the_same),
        cmocka_unit_test(a_process_split_in_two_in_a_recording_is_charged_the_same),
        cmocka_unit_test(an_inactive_process_is_charged_no_active_energy),
        cmocka_unit_test(an_inactive_process_in_a_recording_is_charged_no_active_energy),
        cmocka_unit_test(windows_of_two_seconds_give_the_same_as_those_of_one),
        cmocka_unit_test(the_time_share_is_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
