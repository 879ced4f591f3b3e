/* Meters that go, come back, or are read by another source: no joule is lost or booked twice. */
#include "restart_fixture.h"

static void board(struct pipeline *pipeline, uint32_t index, const char *uuid)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE,
                                   .gpu = index,
                                   .device = {.uuid = uuid,
                                              .name = "NVIDIA H200",
                                              .driver = "580",
                                              .power_limit_mw = 700000}});
}

static const struct ledger_meter *meter_of(const struct pipeline *pipeline, enum meter_kind kind,
                                           const char *id)
{
    uint32_t meter;

    assert_true(ledger_find_meter(pipeline->ledger, kind, id, &meter));
    close_books(books(pipeline)); /* which checks them */
    return ledger_meter(pipeline->ledger, meter);
}

/* Two boards at 300 W until T0 + 10 s, A with the index 0. Then A goes, and B has its index. */
static struct pipeline *board_that_goes(uint64_t *ret_a_uj, uint64_t *ret_b_uj)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    board(pipeline, 0, "A");
    board(pipeline, 1, "B");
    energy(pipeline, 0, T0, 7 * JOULE);
    energy(pipeline, 1, T0, 9 * JOULE);
    *ret_a_uj = ticks(pipeline, 0, T0, T0 + 10 * SECOND, 7 * JOULE, 300);
    *ret_b_uj = ticks(pipeline, 1, T0, T0 + 10 * SECOND, 9 * JOULE, 300);
    board(pipeline, 0, "B");
    return pipeline;
}

static void what_a_board_counts_until_it_has_another_index_is_a_gap(void **state)
{
    uint64_t a_uj, b_uj;
    struct pipeline *pipeline = board_that_goes(&a_uj, &b_uj);

    (void)state;
    energy(pipeline, 0, T0 + 70 * SECOND, b_uj += 18000 * JOULE);
    b_uj = ticks(pipeline, 0, T0 + 70 * SECOND, T0 + 80 * SECOND, b_uj, 300);
    assert_int_equal(meter_of(pipeline, METER_GPU, "B")->unowned_uj[UNOWNED_GAP], 18000 * JOULE);
    board(pipeline, 1, "A");
    energy(pipeline, 1, T0 + 110 * SECOND, a_uj += 5000 * JOULE);
    assert_int_equal(meter_of(pipeline, METER_GPU, "A")->unowned_uj[UNOWNED_GAP], 5000 * JOULE);
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_int_equal(meter_of(pipeline, METER_GPU, "A")->energy_uj, a_uj - 7 * JOULE);
    assert_int_equal(meter_of(pipeline, METER_GPU, "B")->energy_uj, b_uj - 9 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

static void what_a_board_that_is_gone_counts_over_a_restart_is_a_gap(void **state)
{
    uint64_t a_uj, b_uj;
    struct pipeline *pipeline = board_that_goes(&a_uj, &b_uj);

    (void)state;
    pipeline = restart(pipeline, T0 + 60 * SECOND);
    board(pipeline, 0, "A");
    energy(pipeline, 0, T0 + 110 * SECOND, a_uj += 5000 * JOULE);
    assert_int_equal(meter_of(pipeline, METER_GPU, "A")->unowned_uj[UNOWNED_GAP], 5000 * JOULE);
    assert_int_equal(meter_of(pipeline, METER_GPU, "A")->energy_uj, a_uj - 7 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

static void boards_that_come_and_go_a_thousand_times_are_kept_once_each(void **state)
{
    uint64_t a_uj, b_uj;
    struct pipeline *pipeline = board_that_goes(&a_uj, &b_uj);

    (void)state;
    for (uint64_t i = 1; i <= 2000; i++) {
        board(pipeline, 0, i % 2 ? "A" : "B");
        energy(pipeline, 0, T0 + (100 + i) * SECOND, i % 2 ? ++a_uj : ++b_uj);
    }
    assert_int_equal(pipeline->resumed.count, 2); /* with that of the fixture */
    assert_int_equal(meter_of(pipeline, METER_GPU, "A")->energy_uj, a_uj - 7 * JOULE);
    assert_int_equal(meter_of(pipeline, METER_GPU, "B")->energy_uj, b_uj - 9 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

/* One socket at 100 W that two sources measure, each from when it was opened. */
struct socket {
    struct pipeline *pipeline;
    const char *source, *id;
    uint64_t now_us, opened_us, shown_uj;
};

static uint64_t truth_uj(const struct socket *socket)
{
    return (socket->now_us - T0) * 100;
}

static void read_socket(struct socket *socket)
{
    struct counter hardware = {.last = 5000 * JOULE + truth_uj(socket)};

    counter_limit(&hardware, 0, 2000 * JOULE);
    feed(socket->pipeline,
         (struct sample){.kind = SAMPLE_METER,
                         .t_us = socket->now_us,
                         .meter = {.source = socket->source,
                                   .kind = METER_PACKAGE,
                                   .id = socket->id,
                                   .counter_uj = (socket->now_us - socket->opened_us) * 100,
                                   .hardware = &hardware}});
}

static void report_usage(struct socket *socket, bool is_first)
{
    feed(socket->pipeline,
         (struct sample){
             .kind = SAMPLE_USAGE,
             .t_us = socket->now_us,
             .usage = {.is_first = is_first, .busy_us = 4 * SECOND, .capacity_us = 4 * SECOND}});
}

/* What the page shows of the meter: one counter, which never goes back. */
static void check_hardware(struct socket *socket)
{
    struct snapshot *snapshot = malloc(sizeof(*snapshot));
    uint64_t shown_uj = 0;
    size_t count = 0;

    assert_non_null(snapshot);
    snapshot_init(snapshot);
    assert_int_equal(pipeline_snapshot(socket->pipeline, socket->now_us, SECOND, snapshot), 0);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].has_counter && snapshot->meters[i].kind == METER_PACKAGE &&
            strcmp(snapshot->meters[i].meter_id, socket->id) == 0) {
            shown_uj = snapshot->meters[i].counter_uj;
            count++;
        }
    for (size_t i = 0; i < snapshot->observed_count; i++)
        if (snapshot->observed[i].kind == METER_PACKAGE &&
            strcmp(snapshot->observed[i].id, socket->id) == 0) {
            shown_uj = snapshot->observed[i].counter_uj;
            count++;
        }
    assert_int_equal(count, 1);
    assert_true(shown_uj >= socket->shown_uj);
    socket->shown_uj = shown_uj;
    close_books(snapshot);
}

static void read_for(struct socket *socket, uint64_t seconds)
{
    for (uint64_t s = 0; s < seconds; s++) {
        socket->now_us += SECOND;
        read_socket(socket);
        if ((s + 1) % 5 == 0)
            report_usage(socket, false);
        check_hardware(socket);
    }
}

/* A run of this source: reports at its begin and every 5 s, a reading every second. It is killed
 * after its last reading, and a second passes until the next run. */
static void run_source(struct socket *socket, const char *source, const char *id, uint64_t seconds)
{
    if (socket->pipeline)
        socket->pipeline = restart(socket->pipeline, socket->now_us += SECOND);
    else
        assert_int_equal(pipeline_new(&(struct pipeline_options){.gpu = {.interval_us = SECOND},
                                                                 .max_processes = 16,
                                                                 .max_workloads = 64,
                                                                 .retention_us = UINT64_MAX},
                                      &socket->pipeline),
                         0);
    if (strcmp(id, socket->id) != 0)
        socket->shown_uj = 0;
    socket->source = source;
    socket->id = id;
    socket->opened_us = socket->now_us;
    read_socket(socket);
    report_usage(socket, true);
    read_for(socket, seconds);
}

/* Energy of all packages, with what is pending. */
static uint64_t packages_uj(const struct socket *socket)
{
    struct snapshot *snapshot = books(socket->pipeline);
    uint64_t energy_uj = 0;

    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].kind == METER_PACKAGE)
            energy_uj += snapshot->meters[i].energy_uj + snapshot->meters[i].pending_uj;
    close_books(snapshot);
    return energy_uj;
}

static void what_one_source_booked_is_no_gap_of_another(void **state)
{
    static const struct {
        const char *other, *id;
    } cases[] = {{"hwmon", "0"}, {"cray", "cray"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct socket socket = {.now_us = T0, .id = "0"};
        uint64_t before_uj;

        run_source(&socket, "rapl", "0", 27);
        assert_int_equal(packages_uj(&socket), 2700 * JOULE);
        run_source(&socket, cases[i].other, cases[i].id, 27);
        assert_int_equal(packages_uj(&socket), 5400 * JOULE); /* of 5500: a second is unknown */
        run_source(&socket, "rapl", "0", 27);
        assert_int_equal(packages_uj(&socket), 8100 * JOULE);
        run_source(&socket, cases[i].other, cases[i].id, 27);
        before_uj = packages_uj(&socket);
        assert_int_equal(before_uj, 10800 * JOULE);
        assert_int_equal(truth_uj(&socket), 11100 * JOULE);
        /* Where the id is new there was nothing to miss. */
        assert_int_equal(pipeline_unknown_gaps(socket.pipeline), i == 0 ? 3 : 2);
        run_source(&socket, cases[i].other, cases[i].id, 3); /* the same again: all is known */
        assert_int_equal(packages_uj(&socket), before_uj + 400 * JOULE);
        assert_int_equal(pipeline_unknown_gaps(socket.pipeline), i == 0 ? 3 : 2);
        pipeline_free(socket.pipeline);
    }
}

static void a_source_that_comes_beside_the_booked_one_is_shown_once(void **state)
{
    struct socket socket = {.now_us = T0, .id = "0"};

    (void)state;
    run_source(&socket, "hwmon", "0", 12);
    socket.source = "rapl";
    socket.opened_us = socket.now_us;
    read_for(&socket, 3);
    assert_int_equal(packages_uj(&socket), 1200 * JOULE);
    run_source(&socket, "rapl", "0", 12);
    assert_int_equal(packages_uj(&socket), 2400 * JOULE); /* of 2800 */
    assert_int_equal(pipeline_unknown_gaps(socket.pipeline), 1);
    pipeline_free(socket.pipeline);
}

static void what_was_counted_before_books_were_ever_open_is_a_gap(void **state)
{
    struct socket socket = {.now_us = T0, .id = "0"};

    (void)state;
    for (int run = 0; run < 3; run++)
        run_source(&socket, "rapl", "0", 3);
    run_source(&socket, "rapl", "0", 9);
    assert_int_equal(packages_uj(&socket), truth_uj(&socket));
    assert_int_equal(socket.shown_uj, truth_uj(&socket));
    assert_int_equal(pipeline_unknown_gaps(socket.pipeline), 0);
    pipeline_free(socket.pipeline);
}

/* A whole node of 400 W, of which a rest is booked beside the packages and GPUs that are read. */
static void read_node(struct socket *socket, uint64_t seconds)
{
    for (uint64_t s = 0; s < seconds; s++) {
        socket->now_us += SECOND;
        feed(socket->pipeline,
             (struct sample){.kind = SAMPLE_METER,
                             .t_us = socket->now_us,
                             .meter = {.source = "cray",
                                       .kind = METER_NODE,
                                       .id = "cray",
                                       .counter_uj = (socket->now_us - T0) * 400}});
        if (s % 5 == 0)
            report_usage(socket, s == 0);
    }
}

static void what_was_in_the_rest_of_the_node_is_no_gap_of_a_package_or_board(void **state)
{
    static const struct {
        uint64_t away_s;
        bool has_rest;
    } cases[] = {{20, false}, {120, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct socket socket = {.now_us = T0, .id = "0"};
        uint64_t away_uj = (cases[i].away_s + 2) * 100 * JOULE;
        uint64_t gap_uj = cases[i].has_rest ? 0 : away_uj;
        const struct ledger_meter *gpu;

        run_source(&socket, "rapl", "0", 10);
        board(socket.pipeline, 0, "A");
        energy(socket.pipeline, 0, socket.now_us, 7 * JOULE);
        socket.pipeline = restart(socket.pipeline, socket.now_us += SECOND);
        read_node(&socket, cases[i].away_s); /* neither is read */
        socket.id = "cray";
        assert_int_equal(ledger_meter_count(socket.pipeline->ledger), 2 + cases[i].has_rest);
        socket.shown_uj = 0;
        run_source(&socket, "rapl", "0", 0);
        board(socket.pipeline, 0, "A");
        energy(socket.pipeline, 0, socket.now_us, 7 * JOULE + away_uj);
        assert_int_equal(packages_uj(&socket), 1000 * JOULE + gap_uj);
        gpu = meter_of(socket.pipeline, METER_GPU, "A");
        assert_int_equal(gpu->energy_uj, gap_uj);
        assert_int_equal(gpu->unknown_gaps, cases[i].has_rest);
        assert_int_equal(pipeline_unknown_gaps(socket.pipeline), 2 * cases[i].has_rest);
        pipeline_free(socket.pipeline);
    }
}

static size_t usage_rows(const struct socket *socket)
{
    struct snapshot *snapshot = books(socket->pipeline);
    size_t count = snapshot->usage_count;

    close_books(snapshot);
    return count;
}

static void use_cpu(struct socket *socket, bool is_first)
{
    struct usage did = {.valid = USAGE_BIT(USAGE_CPU_US), .values[USAGE_CPU_US] = SECOND};
    const struct sample_workload workload = {.kind = WORKLOAD_UNIT,
                                             .id = "a.service",
                                             .container_id = "",
                                             .pod_uid = "",
                                             .cpu_us = SECOND,
                                             .did = &did};

    feed(socket->pipeline,
         (struct sample){.kind = SAMPLE_USAGE,
                         .t_us = socket->now_us,
                         .usage = {.is_first = is_first, .count = 1, .workloads = &workload}});
}

static void without_usage_reports_energy_is_unattributed_and_rows_of_usage_end(void **state)
{
    struct pipeline_options options = default_options();
    uint64_t booked_uj, unattributed_uj;

    (void)state;
    options.has_no_usage = true;
    for (int is_fresh = 0; is_fresh < 2; is_fresh++) {
        struct socket socket = {.now_us = T0, .id = "0"};

        if (!is_fresh) {
            run_source(&socket, "rapl", "0", 10);
            use_cpu(&socket, false);
            assert_int_equal(usage_rows(&socket), 1);
            socket.pipeline = restart_with(
                socket.pipeline, options,
                (struct pipeline_resumption){.is_same_boot = true, .now_us = socket.now_us});
        } else {
            assert_int_equal(pipeline_new(&options, &socket.pipeline), 0);
            socket.source = "rapl";
        }
        booked_uj = packages_uj(&socket);
        socket.opened_us = socket.now_us;
        read_socket(&socket);
        for (int s = 0; s < 60; s++) {
            socket.now_us += SECOND;
            read_socket(&socket);
            unattributed_uj = unowned_uj(socket.pipeline, UNOWNED_UNATTRIBUTED);
            assert_int_equal(unattributed_uj, (uint64_t)(s + 1) * 100 * JOULE);
            assert_int_equal(meter_uj(socket.pipeline, 0), booked_uj + unattributed_uj);
            check_hardware(&socket);
        }
        assert_int_equal(pipeline_unknown_gaps(socket.pipeline), 0);
        pipeline_sweep(socket.pipeline, T0 + 310 * SECOND);
        assert_int_equal(usage_rows(&socket), !is_fresh);
        pipeline_sweep(socket.pipeline, T0 + 311 * SECOND);
        assert_int_equal(usage_rows(&socket), 0);
        pipeline_free(socket.pipeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_board_counts_until_it_has_another_index_is_a_gap),
        cmocka_unit_test(what_a_board_that_is_gone_counts_over_a_restart_is_a_gap),
        cmocka_unit_test(boards_that_come_and_go_a_thousand_times_are_kept_once_each),
        cmocka_unit_test(what_one_source_booked_is_no_gap_of_another),
        cmocka_unit_test(a_source_that_comes_beside_the_booked_one_is_shown_once),
        cmocka_unit_test(what_was_counted_before_books_were_ever_open_is_a_gap),
        cmocka_unit_test(what_was_in_the_rest_of_the_node_is_no_gap_of_a_package_or_board),
        cmocka_unit_test(without_usage_reports_energy_is_unattributed_and_rows_of_usage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
