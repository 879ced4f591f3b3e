/* run/: from the books to a report, and from reports to a comparison. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../golden/golden.h"
#include "core/json_reader.h"
#include "core/macros.h"
#include "run/compare.h"
#include "run/run_report.h"

enum { TICKS = 100, CAP_BYTES = 1 << 20 };

static void assert_near(double value, double expected, double distance)
{
    if (!(fabs(value - expected) <= distance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static const uint64_t BOOT_US = 1700000000 * USEC_PER_SEC;

static struct relative relatives[] = {
    {.pid = 100, .start_ticks = 5000, .name = "python3", .cpu_us = 3000000},
    {.pid = 101, .start_ticks = 5100, .name = "a\033[31mb", .cpu_us = 1000000},
};

static const struct family family = {.items = relatives, .count = ARRAY_SIZE(relatives)};

static struct books_row rows[] = {
    {.gpu = 0,
     .pid = 100,
     .start_us = 1700000050 * USEC_PER_SEC,
     .energy_uj = 800,
     .uncertain_uj = 8},
    {.gpu = 1,
     .pid = 101,
     .start_us = 1700000051 * USEC_PER_SEC,
     .energy_uj = 100,
     .uncertain_uj = 2},
    /* of others: another pid; our pid before it was ours */
    {.gpu = 0, .pid = 7, .start_us = 1700000050 * USEC_PER_SEC, .energy_uj = 5000},
    {.gpu = 0, .pid = 100, .start_us = 1600000000 * USEC_PER_SEC, .energy_uj = 7000},
};

static const struct books before = {
    .meters = {{.kind = METER_GPU, .id = "GPU-0", .gpu = 0, .counted_uj = 500, .divided_uj = 400},
               {.kind = METER_PACKAGE, .id = "0", .counted_uj = 1000, .divided_uj = 1000}},
    .meter_count = 2,
};

static const struct books after = {
    .meters = {{.kind = METER_GPU,
                .id = "GPU-0",
                .gpu = 0,
                .counted_uj = 1500,
                .divided_uj = 1450,
                .grams = 1.05},
               {.kind = METER_PACKAGE,
                .id = "0",
                .counted_uj = 5000,
                .divided_uj = 5000,
                .idle_uj = 1000,
                .command_uj = 2000,
                .grams = 5,
                .cost = 10},
               {.kind = METER_GPU, .id = "GPU-1", .gpu = 1, .counted_uj = 60, .divided_uj = 60},
               {.kind = METER_PSYS, .id = "psys", .counted_uj = 9000}},
    .meter_count = 4,
    .rows = rows,
    .row_count = ARRAY_SIZE(rows),
    .has_grams = true,
    .has_cost = true,
    .currency = "EUR",
};

static struct result_input input(void)
{
    return (struct result_input){
        .wall_us = 2 * USEC_PER_SEC,
        .cpu_us = 4 * USEC_PER_SEC,
        .family = &family,
        .boot_us = BOOT_US,
        .boundary_us = USEC_PER_SEC,
        .before = &before,
        .after = &after,
        .gpus = &after,
    };
}

static void gpu_energy_is_that_of_the_commands_processes(void **state)
{
    struct result_input from = input();
    struct result result;

    (void)state;
    result_make(&from, &result);
    assert_int_equal(result.meter_count, 3); /* what is only observed is left out */
    assert_int_equal(result.meters[0].command_uj, 800);
    assert_int_equal(result.meters[0].counted_uj, 1000);
    assert_int_equal(result.meters[0].uncertain_uj, 8 + 80); /* and two ticks of 20 */
    assert_int_equal(result.meters[0].pending_uj, 50);
    assert_int_equal(result.meters[1].command_uj, 2000);
    assert_int_equal(result.meters[1].counted_uj, 4000);
    assert_int_equal(result.meters[1].idle_uj, 1000);
    assert_false(result.meters[1].has_uncertainty);
    assert_int_equal(result.process_count, 2);
    assert_int_equal(result.processes[0].gpu_uj, 800);
    assert_int_equal(result.processes[0].cpu_uj, 1500);
    assert_int_equal(result.processes[1].gpu_uj, 100);
}

static void the_command_never_has_more_than_a_meter_counted(void **state)
{
    struct result_input from = input();
    struct result result;

    (void)state;
    result_make(&from, &result);
    assert_int_equal(result.meters[2].command_uj, 60); /* its row has 100 */
    assert_int_equal(result.meters[2].counted_uj, 60);
    for (size_t i = 0; i < result.meter_count; i++)
        assert_true(result.meters[i].command_uj <= result.meters[i].counted_uj);
    assert_true(result.meters[2].is_partial); /* it came while the command ran */
    assert_false(result.meters[0].is_partial);
}

/* The last window of a GPU ends after the command. */
static void what_a_gpu_counts_after_the_command_is_not_the_commands(void **state)
{
    struct result_input from = input();
    struct books ended = after, now = after;
    struct result result;

    (void)state;
    ended.meters[0].counted_uj = 1200;
    now.meters[0].counted_uj = 1250;
    from.after = &ended;
    from.gpus = &now;
    result_make(&from, &result);
    assert_int_equal(result.meters[0].counted_uj, 700);
    assert_int_equal(result.meters[0].command_uj, 700);
}

/* Its document may be a second old. */
static void what_a_daemon_counted_late_is_the_commands(void **state)
{
    struct result_input from = input();
    struct books ended = after, now = after;
    struct result result;

    (void)state;
    ended.meters[0].counted_uj = 1200;
    ended.meters[0].is_of_daemon = true;
    now.meters[0].counted_uj = 1250;
    from.after = &ended;
    from.gpus = &now;
    result_make(&from, &result);
    assert_int_equal(result.meters[0].counted_uj, 750);
    assert_int_equal(result.meters[0].command_uj, 750);
    assert_int_equal(result.meters[0].uncertain_uj, 8 + 187); /* and half a second of two */
}

static void bills_are_the_commands_part_of_what_the_meter_was_billed(void **state)
{
    struct result_input from = input();
    struct result result;
    double value;

    (void)state;
    result_make(&from, &result);
    assert_near(result.meters[0].grams, 1.05 * 800 / 1050, 1e-9);
    assert_near(result.meters[1].cost, 5, 1e-9); /* half of it */
    assert_true(result_get(&result, QUANTITY_COST, &value));
    assert_near(value, 5, 1e-9);
    assert_true(result_get(&result, QUANTITY_POWER, &value));
    assert_near(value, (800 + 2000 + 60) / 2e6, 1e-9);
    assert_false(result_get(&result, QUANTITY_DRAM_ENERGY, &value));
}

static void factor_and_price_are_those_of_the_flags_or_of_the_daemon(void **state)
{
    static const struct books daemon_after = {
        .meters = {{.kind = METER_GPU, .id = "GPU-2", .gpu = 2, .is_of_daemon = true}},
        .meter_count = 1,
        .has_grams = true,
        .has_cost = true,
        .grams_per_kwh = 3.6e9,
        .cost_per_kwh = 7.2e9,
        .currency = "USD",
    };
    struct result_input from = input();
    struct books own = after;
    struct result result;

    (void)state;
    own.grams_per_kwh = 3.6e10;
    own.cost_per_kwh = 3.6e10;
    from.after = &own;
    from.daemon_before = from.daemon_after = &daemon_after;
    result_make(&from, &result);
    assert_string_equal(result.currency, "USD");
    assert_near(result.meters[1].grams, 2, 1e-9);
    assert_near(result.meters[1].cost, 4, 1e-9);
    from.has_own_price = true;
    result_make(&from, &result);
    assert_string_equal(result.currency, "EUR");
    assert_near(result.meters[1].grams, 2, 1e-9);
    assert_near(result.meters[1].cost, 5, 1e-9); /* as this process billed it */
    from.has_own_factor = true;
    result_make(&from, &result);
    assert_near(result.meters[1].grams, 2.5, 1e-9);
}

/* A currency comes from somebody else, and goes to the terminal. */
static void what_is_no_currency_is_no_price(void **state)
{
    static const char TEXT[] = "{\"api\":1,\"price_per_kwh\":1,\"currency\":\"\\u001b[3\"}";
    struct books books = {0};
    struct error err;

    (void)state;
    assert_int_equal(books_take_document(&books, span_of(TEXT), &err), 0);
    assert_false(books.has_cost);
    assert_string_equal(books.currency, "");
    books_done(&books);
}

static void a_shared_gpu_is_billed_once_it_is_divided(void **state)
{
    struct result_input from = input();
    struct books ended = after;
    struct result result;

    (void)state;
    ended.meters[0].divided_uj = before.meters[0].divided_uj;
    ended.meters[0].grams = 0;
    from.after = &ended;
    result_make(&from, &result);
    assert_near(result.meters[0].grams, 1.05 * 800 / 1050, 1e-9);
}

static void what_a_daemon_reads_is_off_by_the_age_of_its_readings(void **state)
{
    struct result_input from = input();
    struct books of_daemon = after;
    struct result result;

    (void)state;
    of_daemon.meters[1].is_of_daemon = true;
    from.after = &of_daemon;
    from.is_estimated = true;
    result_make(&from, &result);
    assert_true(result.meters[1].has_uncertainty);
    assert_int_equal(result.meters[1].uncertain_uj, 1000); /* one second of two */
    assert_true(result.meters[1].is_estimated);
}

/* A daemon that ended with the first second of two: the other may have had the 3000 again. */
static void what_a_lost_daemon_did_not_count_is_uncertain(void **state)
{
    struct result_input from = input();
    struct books of_daemon = after;
    struct result result;

    (void)state;
    of_daemon.meters[1].is_of_daemon = true;
    from.after = &of_daemon;
    from.lost_us = USEC_PER_SEC;
    result_make(&from, &result);
    assert_int_equal(result.meters[1].command_uj, 2000);
    assert_int_equal(result.meters[1].uncertain_uj, 1000 + 3000);
    assert_true(result.meters[1].is_partial);
    assert_false(result.meters[0].is_partial); /* this process read it */
}

/* One second of four that nobody waited for. */
static void cpu_time_that_nobody_saw_is_uncertain(void **state)
{
    struct result_input from = input();
    struct result result;

    (void)state;
    from.is_estimated = true;
    from.missed_us = USEC_PER_SEC;
    result_make(&from, &result);
    assert_int_equal(result.meters[1].command_uj, 2000);
    assert_int_equal(result.meters[1].uncertain_uj, 500);
}

static void the_rest_of_the_node_follows_what_else_was_used(void **state)
{
    static const struct books daemon_after = {
        .meters = {{.kind = METER_NODE_OVERHEAD, .id = "node", .counted_uj = 1300, .idle_uj = 300}},
        .meter_count = 1,
    };
    struct result_input from = input();
    struct result result;

    (void)state;
    from.daemon_before = &(const struct books){.meter_count = 0};
    from.daemon_after = &daemon_after;
    result_make(&from, &result);
    assert_int_equal(result.meters[3].kind, METER_NODE_OVERHEAD);
    /* 2860 of the 4060 that were not idle */
    assert_int_equal(result.meters[3].command_uj, 704);
    assert_true(result.meters[3].is_estimated);
}

static void a_document_of_a_daemon_has_meters_and_processes(void **state)
{
    static const char TEXT[] =
        "{\"api\":1,\"currency\":\"EUR\",\"pue\":1.5,\"price_per_kwh\":0.5,\"grams_per_kwh\":100,\"meters\":["
        "{\"meter\":\"gpu\",\"meter_id\":\"GPU-0\",\"gpu\":3,\"energy_joules\":36,"
        "\"pending_joules\":1.5,\"unowned\":{\"idle\":{\"watts\":70.5,\"energy_joules\":6}}},"
        "{\"meter\":\"package\",\"meter_id\":\"0\",\"energy_joules\":10},"
        "{\"meter\":\"unheard\",\"meter_id\":\"0\",\"energy_joules\":10},{},7],"
        "\"workloads\":[{\"processes\":[{\"pid\":100,\"gpu\":3,\"name\":\"x\",\"energy_joules\":7,"
        "\"uncertainty_joules\":0.5,\"start_time\":1700000050.25}]}]}";
    struct books books = {0};
    struct sample samples[4];
    struct error err;

    (void)state;
    assert_int_equal(books_take_document(&books, span_of(TEXT), &err), 0);
    assert_int_equal(books.meter_count, 2);
    assert_int_equal(books.meters[0].gpu, 3);
    assert_int_equal(books.meters[0].divided_uj, 36000000);
    assert_int_equal(books.meters[0].counted_uj, 37500000);
    assert_int_equal(books.meters[0].idle_uj, 6000000);
    assert_near(books.meters[0].idle_w, 70.5, 1e-9);
    assert_near(books.grams_per_kwh, 150, 1e-9);
    assert_near(books.cost_per_kwh, 0.75, 1e-9);
    assert_string_equal(books.currency, "EUR");
    assert_int_equal(books.row_count, 1);
    assert_int_equal(books.rows[0].start_us, 1700000050250000);
    assert_int_equal(books.rows[0].energy_uj, 7000000);
    /* The processors may be read in the daemon's place; GPUs stay its own. */
    assert_int_equal(books_copy_samples(&books, 5, samples, ARRAY_SIZE(samples)), 1);
    assert_int_equal(samples[0].meter.kind, METER_PACKAGE);
    assert_int_equal(samples[0].meter.counter_uj, 10000000);
    books_done(&books);
}

static const struct books_meter *take(struct books *books, const char *text)
{
    struct error err;

    assert_int_equal(books_take_document(books, span_of(text), &err), 0);
    return &books->meters[0];
}

/* With the books of the one before, as with a state file, or without. */
static void a_daemon_that_was_started_anew_goes_on_with_the_books(void **state)
{
    static const char FORM[] =
        "{\"api\":1,\"start_time\":%d,\"meters\":[{\"meter\":\"gpu\",\"meter_id\":\"G\",\"gpu\":0,"
        "\"energy_joules\":%d,\"pending_joules\":1}],\"workloads\":[{\"processes\":[{\"pid\":100,"
        "\"gpu\":0,\"energy_joules\":%d}]}]}";
    static const struct {
        int started, energy, process;
        uint64_t counted_j, process_j;
    } documents[] = {{5, 100, 60, 101, 60},
                     {9, 7, 3, 109, 63},
                     {9, 9, 4, 111, 64},
                     {12, 2, 1, 114, 65},
                     {15, 50, 9, 162, 73}};
    struct books books = {0};
    char text[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
        snprintf(text, sizeof(text), FORM, documents[i].started, documents[i].energy,
                 documents[i].process);
        assert_int_equal(take(&books, text)->counted_uj, documents[i].counted_j * 1000000);
        assert_int_equal(books.rows[0].energy_uj, documents[i].process_j * 1000000);
    }
    books_done(&books);
}

static void a_meter_of_the_daemon_is_open_before_anything_is_booked(void **state)
{
    struct books books = {0}, of_daemon = before;

    (void)state;
    of_daemon.meters[1].counted_uj = 77;
    books_open_meters(&books, &of_daemon);
    assert_int_equal(books.meter_count, 1);
    assert_int_equal(books_find(&books, METER_PACKAGE, "0")->counted_uj, 0);
    books_done(&books);
}

static void a_replay_or_another_document_is_refused(void **state)
{
    struct books books = {0};
    struct error err;

    (void)state;
    assert_int_equal(books_take_document(&books, span_of("{\"api\":1,\"replay\":true}"), &err),
                     -ENOTSUP);
    assert_int_equal(books_take_document(&books, span_of("{\"api\":2}"), &err), -EBADMSG);
    assert_int_equal(books_take_document(&books, span_of("[]"), &err), -EBADMSG);
    assert_int_equal(books_take_document(&books, span_of("<html>"), &err), -EBADMSG);
    assert_int_equal(books.meter_count, 0);
}

static char *const argv[] = {"python3", "train it.py", "--lr=1", NULL};

static struct run_report report_of(const struct result *runs, size_t count, size_t wanted,
                                   const struct report *findings)
{
    return (struct run_report){.argv = argv,
                               .node = "gpu-07",
                               .time_us = BOOT_US,
                               .has_own_cgroup = true,
                               .runs = runs,
                               .count = count,
                               .wanted = wanted,
                               .findings = findings};
}

static void make_findings(struct report *findings)
{
    *findings = (struct report){.count = 0};
    report_add(findings, "rapl: dram", VERDICT_MISSING, "none", "its counter stays at %d", 0);
    report_add(findings, "fine", VERDICT_OK, NULL, "not shown");
}

/* To sizes that commands have. */
static void scale(struct books *books)
{
    enum { FACTOR = 1234567 };

    for (size_t i = 0; i < books->meter_count; i++) {
        struct books_meter *meter = &books->meters[i];

        meter->counted_uj *= FACTOR;
        meter->divided_uj *= FACTOR;
        meter->idle_uj *= FACTOR;
        meter->command_uj *= FACTOR;
    }
    for (size_t i = 0; i < books->row_count; i++) {
        books->rows[i].energy_uj *= FACTOR;
        books->rows[i].uncertain_uj *= FACTOR;
    }
}

static void the_text_and_the_json_are_those_of_the_golden_files(void **state)
{
    struct result_input from = input();
    struct books large_before = before, large_after = after;
    struct books_row large_rows[ARRAY_SIZE(rows)];
    struct run_summary last = {.runs = 1,
                               .time_us = BOOT_US,
                               .meters = 1U << 2 * METER_GPU | 1U << 2 * METER_PACKAGE,
                               .of = {[QUANTITY_ENERGY] = {.count = 1, .mean = 3000},
                                      [QUANTITY_WALL_TIME] = {.count = 1, .mean = 4}}};
    struct report *findings = calloc(1, sizeof(*findings));
    struct result runs[3];
    struct run_report report;
    struct buffer text;

    (void)state;
    make_findings(findings);
    memcpy(large_rows, rows, sizeof(rows));
    large_after.rows = large_rows;
    scale(&large_before);
    scale(&large_after);
    from.before = &large_before;
    from.after = from.gpus = &large_after;
    result_make(&from, &runs[0]);
    from.wall_us = 3 * USEC_PER_SEC;
    from.peak_w = 1.5;
    result_make(&from, &runs[1]);
    from.wall_us = USEC_PER_SEC;
    from.status = 4;
    result_make(&from, &runs[2]);
    buffer_init(&text, CAP_BYTES);
    report = report_of(runs, 1, 1, findings);
    report.last = &last;
    run_report_text(&report, &text);
    report = report_of(runs, 3, 5, findings);
    report.daemon = "http://localhost:9400";
    run_report_text(&report, &text);
    golden_check("run.txt", &text);
    text.len = 0;
    run_report_json(&report, &text);
    golden_check("run.json", &text);
    buffer_done(&text);
    free(findings);
}

static void names_that_would_control_a_terminal_do_not(void **state)
{
    struct result_input from = input();
    struct report *findings = calloc(1, sizeof(*findings));
    struct run_report report;
    struct result result;
    struct buffer text;

    (void)state;
    result_make(&from, &result);
    report = report_of(&result, 1, 1, findings);
    report.argv = (char *const[]){"\033]0;title\007", NULL};
    buffer_init(&text, CAP_BYTES);
    run_report_text(&report, &text);
    assert_null(memchr(text.data, '\033', text.len));
    assert_null(memchr(text.data, '\007', text.len));
    buffer_done(&text);
    free(findings);
}

static void a_long_command_is_cut(void **state)
{
    char text[16];

    (void)state;
    run_report_command((char *const[]){"echo", "0123456789012345", NULL}, text, sizeof(text));
    assert_int_equal(strlen(text), sizeof(text) - 1);
    assert_string_equal(text + 12, "...");
    run_report_command((char *const[]){"a", "", "b c", NULL}, text, sizeof(text));
    assert_string_equal(text, "a '' 'b c'");
}

static struct run_summary summary_of(double mean, double sd, size_t runs)
{
    struct run_summary summary = {.runs = runs};

    summary.of[QUANTITY_ENERGY] = (struct summary){runs, mean, sd, mean - sd, mean + sd};
    summary.of[QUANTITY_WALL_TIME] = (struct summary){runs, 10, 0, 10, 10};
    return summary;
}

static bool says(const struct run_summary *a, const struct run_summary *b, const char *words)
{
    struct buffer text;
    bool found;

    buffer_init(&text, CAP_BYTES);
    compare_text(a, b, &text);
    buffer_char(&text, '\0');
    found = !buffer_failed(&text) && strstr(text.data, words);
    buffer_done(&text);
    return found;
}

static void a_comparison_says_plainly_what_can_be_told(void **state)
{
    const struct run_summary a = summary_of(100, 2, 10), b = summary_of(90, 3, 10);
    const struct run_summary near = summary_of(100.5, 2, 10), one = summary_of(50, 0, 1);
    const struct run_summary still = summary_of(50, 0, 5), none = {.runs = 3};

    (void)state;
    assert_true(says(&a, &b, "They differ: B has 10 J less energy than A"));
    assert_true(says(&b, &a, "They differ: B has 10 J more energy than A"));
    assert_true(says(&a, &near, "No difference of energy can be told"));
    assert_true(says(&a, &one, "Too few runs to tell whether they differ: A has 10, B has 1."));
    assert_true(says(&still, &still, "no run differs from another"));
    assert_true(says(&a, &none, "Nothing was measured in both."));
}

static void joules_of_a_model_are_not_compared_with_those_of_a_meter(void **state)
{
    static const char FORM[] =
        "{\"run_report\":1,\"runs\":[{\"joules\":%d,\"meters\":[{\"meter\":\"package\"%s}]},"
        "{\"joules\":%d,\"meters\":[{\"meter\":\"package\"%s}]}]}";
    struct run_summary read[2];
    struct buffer json;
    struct error err;
    char text[256];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *modelled = i == 0 ? "" : ",\"modelled\":true";

        snprintf(text, sizeof(text), FORM, 10 * i + 1, modelled, 10 * i + 2, modelled);
        assert_int_equal(compare_read(span_of(text), &read[i], &err), 0);
    }
    assert_true(says(&read[0], &read[1],
                     "cannot be compared, as the meters differ: A has package; B has package "
                     "(modelled)."));
    assert_false(says(&read[0], &read[1], "They differ"));
    buffer_init(&json, CAP_BYTES);
    compare_json(&read[0], &read[1], &json);
    buffer_char(&json, '\0');
    assert_non_null(strstr(json.data, "\"meters_differ\":true"));
    assert_null(strstr(json.data, "\"differ\""));
    buffer_done(&json);
}

static void a_report_is_read_as_it_was_written(void **state)
{
    struct result_input from = input();
    struct report *findings = calloc(1, sizeof(*findings));
    struct run_summary written, read;
    struct run_report report;
    struct result runs[3];
    struct buffer text;
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        from.wall_us = (2 + i) * USEC_PER_SEC;
        result_make(&from, &runs[i]);
    }
    report = report_of(runs, 3, 3, findings);
    compare_summarise(runs, 3, &written);
    buffer_init(&text, CAP_BYTES);
    run_report_json(&report, &text);
    assert_int_equal(compare_read((struct span){text.data, text.len}, &read, &err), 0);
    assert_int_equal(read.runs, 3);
    assert_true(compare_same_meters(&read, &written));
    assert_string_equal(read.currency, "EUR");
    assert_int_equal(read.time_us, BOOT_US);
    assert_string_equal(read.command, "python3 train it.py --lr=1");
    for (int i = 0; i < QUANTITIES; i++) {
        assert_int_equal(read.of[i].count, written.of[i].count);
        assert_near(read.of[i].mean, written.of[i].mean, 1e-6);
        assert_near(read.of[i].sd, written.of[i].sd, 1e-6);
    }
    assert_int_equal(compare_read(span_of("{\"run_report\":1,\"runs\":[]}"), &read, &err),
                     -EBADMSG);
    assert_int_equal(compare_read(span_of("{\"run_report\":2,\"runs\":[{}]}"), &read, &err),
                     -EBADMSG);
    assert_int_equal(compare_read(span_of("not JSON"), &read, &err), -EBADMSG);
    buffer_done(&text);
    free(findings);
}

/* A failure is often early: it says nothing of what a run uses. */
static void runs_that_did_not_succeed_are_in_no_mean(void **state)
{
    struct result_input from = input();
    struct report *findings = calloc(1, sizeof(*findings));
    struct run_summary summary;
    struct run_report report;
    struct result runs[4];
    struct buffer text;
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        from.wall_us = (2 + i) * USEC_PER_SEC;
        from.status = i == 3;
        from.is_interrupted = i == 2;
        result_make(&from, &runs[i]);
    }
    compare_summarise(runs, 4, &summary);
    assert_int_equal(summary.runs, 2);
    assert_int_equal(summary.left_out, 2);
    assert_near(summary.of[QUANTITY_WALL_TIME].mean, 2.5, 1e-9);
    report = report_of(runs, 4, 5, findings);
    buffer_init(&text, CAP_BYTES);
    run_report_json(&report, &text);
    summary = (struct run_summary){.runs = 0};
    assert_int_equal(compare_read((struct span){text.data, text.len}, &summary, &err), 0);
    assert_int_equal(summary.runs, 2);
    assert_int_equal(summary.left_out, 2);
    assert_near(summary.of[QUANTITY_WALL_TIME].mean, 2.5, 1e-9);
    assert_true(says(&summary, &summary, ", without 2 that did not succeed"));
    /* Where none succeeded, they are what there is. */
    compare_summarise(&runs[3], 1, &summary);
    assert_int_equal(summary.runs, 1);
    assert_near(summary.of[QUANTITY_WALL_TIME].mean, 5, 1e-9);
    buffer_done(&text);
    free(findings);
}

static void figures_that_no_run_can_have_are_no_report(void **state)
{
    static const char TEXT[] =
        "{\"run_report\":1,\"runs\":[{\"joules\":1e308},{\"joules\":-1e308}]}";
    struct run_summary summary;
    struct error err;

    (void)state;
    assert_int_equal(compare_read(span_of(TEXT), &summary, &err), -EBADMSG);
    assert_string_equal(err.text, "it has figures that no run can have");
}

static void a_line_of_proc_tells_time_and_state(void **state)
{
    static const char TEXT[] = "42 (a) b (c)) R 1 42 42 0 -1 4194304 0 0 0 0 150 50 30 20 20 0 1 0 "
                               "7777 0 0";
    static const char ZOMBIE[] = "42 (x) Z 1 42 42 0 -1 4194304 0 0 0 0 1 1 1 1 20 0 1 0 5 0 0";
    struct relative relative;

    (void)state;
    assert_int_equal(family_parse_stat(TEXT, strlen(TEXT), 10000, &relative), 0);
    assert_string_equal(relative.name, "a) b (c)");
    assert_int_equal(relative.cpu_us, 2000000);
    assert_int_equal(relative.waited_cpu_us, 500000);
    assert_int_equal(relative.parent, 1);
    assert_int_equal(relative.start_ticks, 7777);
    assert_true(relative.is_alive);
    assert_int_equal(family_parse_stat(ZOMBIE, strlen(ZOMBIE), 10000, &relative), 0);
    assert_false(relative.is_alive);
    assert_int_equal(family_parse_stat("42 (x) R 1", 10, 10000, &relative), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpu_energy_is_that_of_the_commands_processes),
        cmocka_unit_test(the_command_never_has_more_than_a_meter_counted),
        cmocka_unit_test(what_a_gpu_counts_after_the_command_is_not_the_commands),
        cmocka_unit_test(what_a_daemon_counted_late_is_the_commands),
        cmocka_unit_test(bills_are_the_commands_part_of_what_the_meter_was_billed),
        cmocka_unit_test(factor_and_price_are_those_of_the_flags_or_of_the_daemon),
        cmocka_unit_test(what_is_no_currency_is_no_price),
        cmocka_unit_test(a_shared_gpu_is_billed_once_it_is_divided),
        cmocka_unit_test(what_a_daemon_reads_is_off_by_the_age_of_its_readings),
        cmocka_unit_test(what_a_lost_daemon_did_not_count_is_uncertain),
        cmocka_unit_test(cpu_time_that_nobody_saw_is_uncertain),
        cmocka_unit_test(the_rest_of_the_node_follows_what_else_was_used),
        cmocka_unit_test(a_document_of_a_daemon_has_meters_and_processes),
        cmocka_unit_test(a_daemon_that_was_started_anew_goes_on_with_the_books),
        cmocka_unit_test(a_meter_of_the_daemon_is_open_before_anything_is_booked),
        cmocka_unit_test(a_replay_or_another_document_is_refused),
        cmocka_unit_test(the_text_and_the_json_are_those_of_the_golden_files),
        cmocka_unit_test(names_that_would_control_a_terminal_do_not),
        cmocka_unit_test(a_long_command_is_cut),
        cmocka_unit_test(a_comparison_says_plainly_what_can_be_told),
        cmocka_unit_test(joules_of_a_model_are_not_compared_with_those_of_a_meter),
        cmocka_unit_test(a_report_is_read_as_it_was_written),
        cmocka_unit_test(runs_that_did_not_succeed_are_in_no_mean),
        cmocka_unit_test(figures_that_no_run_can_have_are_no_report),
        cmocka_unit_test(a_line_of_proc_tells_time_and_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
