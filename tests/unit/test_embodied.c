/* Embodied carbon: a device's time goes with the joules, all of it and once. */
#include "pipeline_fixture.h"

#include "attribution/ledger/ledger_private.h"
#include "random.h"
#include "restart_fixture.h"

enum { METERS = 3, OWNERS = 12 };

#define HOUR (3600 * SECOND)

/* The first two are of a kind that has a rate. */
enum { GPU, GPU_TOO, PACKAGE };

static const struct embodied_rates rates = {{[METER_GPU] = {true, 28500000}}};

/* The time of a device with the rate of a GPU. */
static uint64_t gpu_us(const struct bill *bill)
{
    return embodied_us(bill, rates.of[METER_GPU]);
}

static uint64_t total_us(const struct ledger *ledger, uint32_t meter)
{
    return gpu_us(&ledger_meter(ledger, meter)->bill);
}

static uint64_t unowned_us(const struct ledger *ledger, uint32_t meter, enum unowned owner)
{
    return gpu_us(&ledger_meter(ledger, meter)->unowned_bill[owner]);
}

static struct ledger *open_ledger(void)
{
    static const struct {
        enum meter_kind kind;
        const char *id;
    } meters[METERS] = {{METER_GPU, "GPU-0"}, {METER_GPU, "GPU-1"}, {METER_PACKAGE, "0"}};
    const struct ledger_options options = {
        .max_processes = 64, .max_workloads = 64, .embodied = rates};
    struct ledger *ledger = NULL;
    uint32_t meter;

    assert_int_equal(ledger_new(&options, &ledger), 0);
    for (uint32_t i = 0; i < METERS; i++)
        assert_int_equal(ledger_add_meter(ledger, meters[i].kind, meters[i].id, 0, &meter), 0);
    return ledger;
}

static uint32_t open_workload(struct ledger *ledger, unsigned number)
{
    struct workload_owner owner = {.kind = WORKLOAD_UNIT};
    uint32_t workload;

    snprintf(owner.id, sizeof(owner.id), "/%u", number);
    assert_int_equal(ledger_open_workload(ledger, &owner, &workload), 0);
    return workload;
}

static struct booking to_workload(struct ledger *ledger, unsigned number, uint64_t energy_uj)
{
    return (struct booking){.process = LEDGER_NONE,
                            .to_workload = true,
                            .workload = open_workload(ledger, number),
                            .energy_uj = energy_uj};
}

static struct booking to_nobody(enum unowned owner, uint64_t energy_uj)
{
    return (struct booking){.process = LEDGER_NONE, .unowned = owner, .energy_uj = energy_uj};
}

static void book(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us,
                 const struct booking *bookings, size_t count)
{
    uint64_t energy_uj = 0;

    for (size_t i = 0; i < count; i++)
        energy_uj += bookings[i].energy_uj;
    assert_int_equal(ledger_book(ledger, meter, energy_uj, start_us, end_us, bookings, count), 0);
    assert_true(bill_imbalance(ledger, meter).embodied == 0);
}

/* A window of the first GPU, all of one workload, or empty. */
static void window(struct ledger *ledger, uint64_t start_us, uint64_t end_us, uint64_t energy_uj)
{
    const struct booking booking = to_workload(ledger, 0, energy_uj);

    book(ledger, GPU, start_us, end_us, &booking, energy_uj > 0);
}

static uint64_t workload_us(const struct ledger *ledger, unsigned number, uint32_t meter)
{
    struct workload_owner owner = {.kind = WORKLOAD_UNIT};
    const struct ledger_account *at = NULL;
    uint32_t workload;
    uint64_t time_us = 0;

    snprintf(owner.id, sizeof(owner.id), "/%u", number);
    if (!ledger_find_workload(ledger, &owner, &workload))
        return 0;
    while ((at = ledger_next_account(ledger, ledger_workload(ledger, workload), at)))
        if (at->meter == meter)
            time_us += gpu_us(&at->account.bill);
    return time_us;
}

/* Of the first GPU: all time, that of its one workload, and gaps. */
static void assert_time(const struct ledger *ledger, uint64_t all_us, uint64_t paid_us,
                        uint64_t gap_us)
{
    assert_int_equal(total_us(ledger, GPU), all_us);
    assert_int_equal(workload_us(ledger, 0, GPU), paid_us);
    assert_int_equal(unowned_us(ledger, GPU, UNOWNED_GAP), gap_us);
}

static void an_hour_of_a_gpu_is_its_rate_in_sum(void **state)
{
    struct random_source random = {28};
    unsigned __int128 sum = 0;
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    for (uint64_t t = T0; t < T0 + HOUR; t += SECOND) {
        struct booking bookings[4] = {to_nobody(UNOWNED_IDLE, random_u64(&random) % 100000007)};

        for (unsigned i = 1; i < ARRAY_SIZE(bookings); i++)
            bookings[i] = to_workload(ledger, i, random_u64(&random) % 100000007);
        book(ledger, GPU, t, t + SECOND, bookings, ARRAY_SIZE(bookings));
    }
    for (unsigned i = 1; i < 4; i++)
        sum += embodied_bill(rates.of[METER_GPU], workload_us(ledger, i, GPU));
    for (int i = 0; i < UNOWNED_COUNT; i++)
        sum += embodied_bill(rates.of[METER_GPU], unowned_us(ledger, GPU, i));
    assert_true(sum == BILL_ONE / 10 * 285);
    assert_true(sum == embodied_bill(rates.of[METER_GPU], total_us(ledger, GPU)));
    ledger_free(ledger);
}

static void the_dearest_century_fits_a_bill(void **state)
{
    const struct embodied_rate dearest = {true, EMBODIED_MAX_G * JOULE};
    const uint64_t hours = (uint64_t)100 * 8766;

    (void)state;
    assert_true(embodied_bill(dearest, hours * HOUR) == BILL_ONE * EMBODIED_MAX_G * hours);
}

static void three_quarters_of_the_energy_have_three_quarters_of_the_time(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    for (uint64_t t = T0; t < T0 + 10 * SECOND; t += SECOND) {
        const struct booking bookings[] = {to_workload(ledger, 0, 300), to_workload(ledger, 1, 60),
                                           to_workload(ledger, 1, 40)};

        book(ledger, GPU, t, t + SECOND, bookings, ARRAY_SIZE(bookings));
    }
    assert_int_equal(workload_us(ledger, 0, GPU), 7500000);
    assert_int_equal(workload_us(ledger, 1, GPU), 2500000);
    ledger_free(ledger);
}

static void time_that_does_not_divide_evenly_is_booked_whole(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    book(ledger, GPU, T0, T0 + SECOND,
         (struct booking[]){to_nobody(UNOWNED_IDLE, 1), to_nobody(UNOWNED_SYSTEM, 1),
                            to_workload(ledger, 0, 1)},
         3);
    assert_int_equal(unowned_us(ledger, GPU, UNOWNED_IDLE), 333333);
    assert_int_equal(unowned_us(ledger, GPU, UNOWNED_SYSTEM), 333333);
    assert_int_equal(workload_us(ledger, 0, GPU), 333334);
    ledger_free(ledger);
}

static void what_a_process_is_booked_is_time_of_its_workload(void **state)
{
    const struct sample_process who = {.pid = 7, .start_us = T0, .cgroup = "/0", .name = "x"};
    struct booking booking = {.energy_uj = 5};
    struct workload_owner owner;
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    own_by_cgroup(&who, &owner);
    assert_int_equal(ledger_identify(ledger, GPU, &who, &owner, &booking.process), 0);
    book(ledger, GPU, T0, T0 + SECOND, &booking, 1);
    assert_time(ledger, SECOND, SECOND, 0);
    ledger_free(ledger);
}

static void time_without_joules_goes_with_the_next_that_has_some(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + SECOND, 9);
    window(ledger, T0 + SECOND, T0 + 2 * SECOND, 0);
    window(ledger, T0 + 2 * SECOND, T0 + 3 * SECOND, 0);
    assert_time(ledger, SECOND, SECOND, 0);
    window(ledger, T0 + 3 * SECOND, T0 + 4 * SECOND, 9);
    assert_time(ledger, 4 * SECOND, 4 * SECOND, 0);
    window(ledger, T0 + 4 * SECOND, T0 + 5 * SECOND, 9);
    assert_time(ledger, 5 * SECOND, 5 * SECOND, 0);
    ledger_free(ledger);
}

static void time_begins_with_the_first_joule(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + SECOND, 0);
    window(ledger, T0 + 2 * SECOND, T0 + 3 * SECOND, 9);
    assert_time(ledger, SECOND, SECOND, 0);
    ledger_free(ledger);
}

static void a_device_without_joules_for_an_hour_was_idle(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0 - SECOND, T0, 9);
    for (uint64_t t = T0; t < T0 + HOUR; t += SECOND)
        window(ledger, t, t + SECOND, 0);
    assert_time(ledger, SECOND, SECOND, 0);
    window(ledger, T0 + HOUR, T0 + HOUR + SECOND, 0);
    assert_int_equal(unowned_us(ledger, GPU, UNOWNED_IDLE), HOUR + SECOND);
    window(ledger, T0 + HOUR + SECOND, T0 + HOUR + 2 * SECOND, 9);
    assert_time(ledger, HOUR + 3 * SECOND, 2 * SECOND, 0);
    ledger_free(ledger);
}

static void time_between_two_windows_is_a_gap(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + SECOND, 9);
    ledger_book_gap(ledger, GPU, 12345, 0, 0);
    assert_time(ledger, SECOND, SECOND, 0);
    window(ledger, T0 + 31 * SECOND, T0 + 32 * SECOND, 9);
    assert_time(ledger, 32 * SECOND, 2 * SECOND, 30 * SECOND);
    ledger_free(ledger);
}

static void what_is_longer_than_an_hour_is_no_time_of_the_device(void **state)
{
    static const struct {
        const char *what;
        uint64_t start_us, end_us; /* of the second window, after the end of the first */
        uint64_t paid_us, gap_us;
    } cases[] = {
        {"an hour between them", HOUR, HOUR + SECOND, SECOND, HOUR},
        {"more than that", HOUR + 1, HOUR + SECOND, SECOND - 1, 0},
        {"a year", 8766 * HOUR, 8766 * HOUR + SECOND, SECOND, 0},
        {"a window of an hour", 0, HOUR, HOUR, 0},
        {"of more", 0, HOUR + 1, 0, 0},
        {"of more, after a hole", SECOND, 2 * HOUR, 0, SECOND},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const uint64_t first_us = T0 + SECOND, second_us = first_us + cases[i].end_us;
        struct ledger *ledger;

        ledger = open_ledger();
        window(ledger, T0, first_us, 9);
        window(ledger, first_us + cases[i].start_us, second_us, 9);
        window(ledger, second_us, second_us + SECOND, 9); /* it goes on from there */
        if (workload_us(ledger, 0, GPU) != 2 * SECOND + cases[i].paid_us ||
            unowned_us(ledger, GPU, UNOWNED_GAP) != cases[i].gap_us)
            fail_msg("%s", cases[i].what);
        ledger_free(ledger);
    }
}

static void windows_that_overlap_count_once(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + 2 * SECOND, 9);
    window(ledger, T0 + SECOND, T0 + 3 * SECOND, 9);
    assert_time(ledger, 3 * SECOND, 3 * SECOND, 0);
    window(ledger, T0, T0 + 3 * SECOND, 9);
    assert_time(ledger, 3 * SECOND, 3 * SECOND, 0);
    ledger_free(ledger);
}

static void a_clock_that_is_set_back_counts_no_time_twice(void **state)
{
    struct ledger *ledger;
    uint64_t t = T0;

    (void)state;
    ledger = open_ledger();
    for (; t < T0 + 100 * SECOND; t += SECOND)
        window(ledger, t, t + SECOND, 9);
    window(ledger, t, t - 60 * SECOND, 9); /* in this window */
    for (t -= 60 * SECOND; t < T0 + 100 * SECOND; t += SECOND) {
        window(ledger, t, t + SECOND, 9);
        assert_time(ledger, 100 * SECOND, 100 * SECOND, 0);
    }
    window(ledger, t, t + SECOND, 9);
    assert_time(ledger, 101 * SECOND, 101 * SECOND, 0);
    ledger_free(ledger);
}

static void a_clock_that_is_set_and_set_right_again_has_counted_what_passed(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + 100 * SECOND, 9);
    window(ledger, T0 - 500 * SECOND, T0 - 490 * SECOND, 9);
    window(ledger, T0 + 110 * SECOND, T0 + 120 * SECOND, 9);
    assert_time(ledger, 120 * SECOND, 110 * SECOND, 10 * SECOND);
    ledger_free(ledger);
}

static void a_clock_that_is_set_back_by_more_than_an_hour_begins_anew(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + SECOND, 9);
    window(ledger, T0 - HOUR, T0 - HOUR + SECOND, 9); /* an hour: time stands still */
    assert_time(ledger, SECOND, SECOND, 0);
    window(ledger, T0 - 9 * HOUR, T0 - 9 * HOUR + SECOND, 9);
    assert_time(ledger, 2 * SECOND, 2 * SECOND, 0);
    window(ledger, T0 - 9 * HOUR + 2 * SECOND, T0 - 9 * HOUR + 3 * SECOND, 9);
    assert_time(ledger, 4 * SECOND, 3 * SECOND, SECOND);
    window(ledger, T0 - 9 * HOUR + 3 * SECOND, T0 - 19 * HOUR, 9); /* set back within it */
    assert_time(ledger, 4 * SECOND, 3 * SECOND, SECOND);
    window(ledger, T0 - 19 * HOUR, T0 - 19 * HOUR + SECOND, 9);
    assert_time(ledger, 5 * SECOND, 4 * SECOND, SECOND);
    ledger_free(ledger);
}

static void the_time_of_a_workload_that_ended_is_with_the_retired(void **state)
{
    struct ledger *ledger;
    uint32_t workload;

    (void)state;
    ledger = open_ledger();
    workload = open_workload(ledger, 0);
    ledger_join_workload(ledger, workload);
    window(ledger, T0, T0 + SECOND, 9);
    ledger_leave_workload(ledger, workload);
    ledger_retire_workloads(ledger, T0);
    assert_int_equal(ledger_counts(ledger)->workloads, 0);
    assert_int_equal(gpu_us(&ledger_meter(ledger, GPU)->retired.bill), SECOND);
    assert_true(bill_imbalance(ledger, GPU).embodied == 0);
    ledger_free(ledger);
}

static void a_kind_without_a_rate_counts_no_time(void **state)
{
    struct ledger *ledger;
    struct booking booking;

    (void)state;
    ledger = open_ledger();
    booking = to_workload(ledger, 0, 9);
    book(ledger, PACKAGE, T0, T0 + SECOND, &booking, 1);
    book(ledger, PACKAGE, T0 + 2 * SECOND, T0 + 3 * SECOND, NULL, 0);
    assert_int_equal(workload_us(ledger, 0, PACKAGE), 0);
    assert_memory_equal(&ledger_meter(ledger, PACKAGE)->device, &(struct ledger_device){0},
                        sizeof(struct ledger_device));
    ledger_free(ledger);
}

static void time_that_is_lost_is_an_imbalance(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    window(ledger, T0, T0 + SECOND, 9);
    assert_true(bill_imbalance(ledger, GPU).embodied == 0);
    ledger->accounts[0].account.bill.embodied -= 1;
    assert_false(bill_imbalance(ledger, GPU).embodied == 0);
    ledger->accounts[0].account.bill.embodied += 2;
    assert_false(bill_imbalance(ledger, GPU).embodied == 0);
    ledger_free(ledger);
}

/* Windows with holes, overlaps and leaps of the clock, of owners that come and go. */
static void in_any_history_the_owners_time_is_the_devices(void **state)
{
    struct random_source random = {20262};
    uint64_t t[METERS] = {T0, T0, T0}, covered_us[METERS] = {0}, seen_us[METERS] = {0};
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t meter = (uint32_t)(random_u64(&random) % METERS);
        struct booking bookings[4];
        size_t count = random_u64(&random) % (ARRAY_SIZE(bookings) + 1);
        uint64_t start_us, end_us;

        switch (random_u64(&random) % 16) {
        case 0:
            t[meter] += random_u64(&random) % (2 * HOUR);
            break;
        case 1:
            t[meter] -= random_u64(&random) % (2 * HOUR);
            break;
        case 2:
            t[meter] -= random_u64(&random) % SECOND;
            break;
        default:
            break;
        }
        start_us = t[meter];
        end_us = t[meter] += random_u64(&random) % (2 * SECOND);
        for (size_t i = 0; i < count; i++) {
            uint64_t energy_uj = random_u64(&random) % (3 * JOULE) * (random_u64(&random) % 3);

            bookings[i] =
                random_u64(&random) % 4
                    ? to_workload(ledger, (unsigned)(random_u64(&random) % OWNERS), energy_uj)
                    : to_nobody((enum unowned)(random_u64(&random) % UNOWNED_COUNT), energy_uj);
        }
        book(ledger, meter, start_us, end_us, bookings, count);
        if (random_u64(&random) % 64 == 0) {
            ledger->latest_us += 60 * SECOND;
            ledger_retire_workloads(ledger, ledger->latest_us);
        }
        for (uint32_t m = 0; m < METERS; m++) {
            uint64_t billed_us = total_us(ledger, m);
            uint64_t counted_us = billed_us + ledger_meter(ledger, m)->device.undivided_us;

            assert_true(bill_imbalance(ledger, m).embodied == 0);
            assert_true(billed_us >= seen_us[m]);
            assert_true(counted_us - covered_us[m] <= HOUR + 2 * SECOND);
            seen_us[m] = billed_us;
            covered_us[m] = counted_us;
        }
    }
    assert_true(seen_us[GPU] > 10 * HOUR && seen_us[GPU_TOO] > 10 * HOUR);
    assert_int_equal(seen_us[PACKAGE], 0);
    assert_true(gpu_us(&ledger_meter(ledger, GPU)->retired.bill) > 0);
    ledger_free(ledger);
}

/* A board that is read for a minute, lost for half of one, and read again. */
static void of_a_board_the_time_that_was_settled_counts_and_the_rest_is_a_gap(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;
    uint64_t counter_uj;

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 5);
    counter_uj = ticks(pipeline, 0, T0, T0 + 60 * SECOND, 0, 100);
    energy(pipeline, 0, T0 + 90 * SECOND, counter_uj += 3000 * JOULE);
    ticks(pipeline, 0, T0 + 90 * SECOND, T0 + 100 * SECOND, counter_uj, 100);
    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->meters[0].energy_uj, 10000 * JOULE);
    assert_int_equal(gpu_us(&snapshot->meters[0].bill), 100 * SECOND);
    assert_int_equal(gpu_us(&snapshot->meters[0].unowned_bill[UNOWNED_GAP]), 30 * SECOND);
    assert_true(
        embodied_bill(snapshot->embodied.of[METER_GPU], gpu_us(&snapshot->meters[0].bill)) ==
        BILL_ONE / 36000 * 28500); /* 28.5 g x 100 s / 3600 s */
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void own_as_reserved(const struct sample_process *who, struct workload_owner *ret_owner)
{
    (void)who;
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_CONTAINER, .id = "reserved"};
}

/* The M of the SCI: time reserved, at work or not. */
static void a_reserved_idle_board_books_its_time_to_the_grantee(void **state)
{
    struct pipeline_options options = default_options();
    struct attached *attached = calloc(1, sizeof(*attached));
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    assert_non_null(attached);
    options.gpu.idle_policy = IDLE_POLICY_RESERVED;
    options.find_owner = own_as_reserved;
    pipeline = pipeline_with(options);
    attached->units = 1;
    attached->pays_idle = true;
    own_as_reserved(NULL, &attached->owner);
    pipeline_set_attached(pipeline, 0, attached, 1);
    for (uint64_t t = T0; t < T0 + 60 * SECOND; t += TICK) {
        energy(pipeline, 0, t, (t - T0) * 75);
        utilisation(pipeline, 0, t, 0);
    }
    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->workload_count, 1);
    assert_int_equal(gpu_us(&snapshot->workloads[0].account.bill), 60 * SECOND - TICK);
    assert_int_equal(gpu_us(&snapshot->meters[0].bill), 60 * SECOND - TICK);
    close_books(snapshot);
    pipeline_free(pipeline);
}

/* A counter that stands still, as of a board that sleeps. */
static void a_board_that_is_read_and_uses_nothing_for_hours_has_its_time(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t end_us = T0 + 60 * SECOND + 2 * HOUR, counter_uj;
    struct snapshot *snapshot;

    (void)state;
    energy(pipeline, 0, T0, 0);
    counter_uj = ticks(pipeline, 0, T0, T0 + 60 * SECOND, 0, 100);
    for (uint64_t t = T0 + 61 * SECOND; t <= end_us; t += SECOND) {
        energy(pipeline, 0, t, counter_uj);
        utilisation(pipeline, 0, t, 0);
    }
    ticks(pipeline, 0, end_us, end_us + 60 * SECOND, counter_uj, 100);
    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    assert_in_range(gpu_us(&snapshot->meters[0].bill), 2 * HOUR + 118 * SECOND,
                    2 * HOUR + 120 * SECOND);
    assert_in_range(gpu_us(&snapshot->meters[0].unowned_bill[UNOWNED_IDLE]), 2 * HOUR,
                    2 * HOUR + 120 * SECOND);
    assert_in_range(gpu_us(&snapshot->meters[0].unowned_bill[UNOWNED_GAP]), 0, 10 * SECOND);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void own_as_system(const struct sample_process *who, struct workload_owner *ret_owner)
{
    (void)who;
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_SYSTEM, .id = "system"};
}

static void work_for_ten_seconds(struct pipeline *pipeline)
{
    identify(pipeline, 0, T0, 5, T0, "/a", "worker");
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 5);
    ticks(pipeline, 0, T0, T0 + 10 * SECOND, 0, 100);
    assert_int_equal(pipeline_finish(pipeline), 0);
}

static void the_time_of_the_system_is_shown_as_unowned(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.find_owner = own_as_system;
    pipeline = pipeline_with(options);
    work_for_ten_seconds(pipeline);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->workload_count, 0);
    assert_int_equal(gpu_us(&snapshot->meters[0].unowned_bill[UNOWNED_SYSTEM]), 10 * SECOND);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static bool know_no_names(void *context, const struct workload_owner *owner,
                          struct workload_names *ret_names)
{
    (void)context;
    (void)owner;
    (void)ret_names;
    return false;
}

static void time_of_a_row_that_is_held_back_is_not_shown_yet(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.find_names = know_no_names;
    pipeline = pipeline_with(options);
    work_for_ten_seconds(pipeline);
    snapshot = books(pipeline);
    assert_int_equal(gpu_us(&snapshot->meters[0].bill), 0);
    close_books(snapshot);
    pipeline_fix_names(pipeline, T0 + 100 * SECOND); /* names are not awaited for so long */
    snapshot = books(pipeline);
    assert_int_equal(gpu_us(&snapshot->meters[0].bill), 10 * SECOND);
    assert_int_equal(gpu_us(&snapshot->workloads[0].account.bill), 10 * SECOND);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void read_package(struct pipeline *pipeline, const char *source, uint64_t t_us,
                         uint64_t counter_uj)
{
    bool modelled = strcmp(source, "model") == 0;

    feed(pipeline, (struct sample){.kind = SAMPLE_METER,
                                   .t_us = t_us,
                                   .meter = {.source = source,
                                             .kind = METER_PACKAGE,
                                             .id = modelled ? "model" : "0",
                                             .modelled = modelled,
                                             .counter_uj = counter_uj}});
}

static void report_usage(struct pipeline *pipeline, uint64_t t_us)
{
    feed(pipeline,
         (struct sample){
             .kind = SAMPLE_USAGE,
             .t_us = t_us,
             .usage = {.is_first = t_us == T0, .busy_us = 5 * SECOND, .capacity_us = 5 * SECOND}});
}

static struct pipeline *pipeline_of_a_package(const char *source)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;

    options.embodied.of[METER_PACKAGE] = rates.of[METER_GPU];
    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    read_package(pipeline, source, T0, 0);
    report_usage(pipeline, T0);
    return pipeline;
}

static void of_a_package_that_is_read_late_the_time_goes_with_its_joules(void **state)
{
    struct pipeline *pipeline = pipeline_of_a_package("rapl");
    const struct ledger *ledger = pipeline->ledger;

    (void)state;
    read_package(pipeline, "rapl", T0 + 5 * SECOND - 1, 500 * JOULE);
    report_usage(pipeline, T0 + 5 * SECOND);
    assert_int_equal(total_us(ledger, 0), 5 * SECOND);
    report_usage(pipeline, T0 + 10 * SECOND); /* just before it is read */
    assert_int_equal(total_us(ledger, 0), 5 * SECOND);
    read_package(pipeline, "rapl", T0 + 10 * SECOND + 1, 1000 * JOULE);
    report_usage(pipeline, T0 + 15 * SECOND);
    assert_int_equal(total_us(ledger, 0), 15 * SECOND);
    assert_int_equal(unowned_us(ledger, 0, UNOWNED_GAP), 0);
    assert_true(bill_imbalance(ledger, 0).embodied == 0);
    pipeline_free(pipeline);
}

static void the_time_of_a_package_that_is_not_read_is_a_gap(void **state)
{
    struct pipeline *pipeline = pipeline_of_a_package("rapl");
    const struct ledger *ledger = pipeline->ledger;

    (void)state;
    read_package(pipeline, "rapl", T0 + 5 * SECOND, 500 * JOULE);
    for (uint64_t t = T0 + 5 * SECOND; t <= T0 + 60 * SECOND; t += 5 * SECOND)
        report_usage(pipeline, t);
    read_package(pipeline, "rapl", T0 + 65 * SECOND, 1000 * JOULE);
    report_usage(pipeline, T0 + 65 * SECOND);
    assert_int_equal(total_us(ledger, 0), 65 * SECOND);
    assert_int_equal(unowned_us(ledger, 0, UNOWNED_GAP), 45 * SECOND);
    pipeline_free(pipeline);
}

static void a_model_that_gave_way_to_a_meter_has_no_time_any_more(void **state)
{
    struct pipeline *pipeline = pipeline_of_a_package("model");
    const struct ledger *ledger = pipeline->ledger;

    (void)state;
    for (uint64_t t = 5; t <= 60; t += 5) {
        read_package(pipeline, "model", T0 + t * SECOND, t * 100 * JOULE);
        if (t >= 30)
            read_package(pipeline, "rapl", T0 + t * SECOND, t * 100 * JOULE);
        report_usage(pipeline, T0 + t * SECOND);
    }
    assert_int_equal(ledger_meter_count(ledger), 2);
    assert_int_equal(total_us(ledger, 0), 30 * SECOND);
    assert_int_equal(total_us(ledger, 1) + total_us(ledger, 0), 60 * SECOND);
    pipeline_free(pipeline);
}

/* Ten seconds of a board, with a process of a unit, in a run with this rate; then the next run. */
static struct pipeline *run_at(struct pipeline *pipeline, struct embodied_rate rate, uint64_t t_us)
{
    struct pipeline_options options = default_options();

    options.embodied.of[METER_GPU] = rate;
    if (pipeline) {
        pipeline = restart_with(pipeline, options,
                                (struct pipeline_resumption){.is_same_boot = true, .now_us = t_us});
        add_gpu(pipeline, 0);
    } else {
        pipeline = pipeline_with(options);
    }
    energy(pipeline, 0, t_us, (t_us - T0) * 100);
    identify(pipeline, 0, t_us, 10, T0 - SECOND, "a.service", "trainer");
    LIST(pipeline, t_us + 1, 10);
    (void)ticks(pipeline, 0, t_us, t_us + 10 * SECOND, (t_us - T0) * 100, 100);
    assert_int_equal(pipeline_finish(pipeline), 0);
    return pipeline;
}

static void over_restarts_time_is_billed_at_the_rate_of_its_time(void **state)
{
    static const struct {
        struct embodied_rate rate;
        uint64_t billed_ug; /* so far, an hour each */
    } runs[] = {
        {{true, 3600000000}, 10000000}, {{true, 360000000}, 11000000}, {{true, 0}, 11000000},
        {{false, 0}, 11000000},         {{true, 720000000}, 13000000},
    };
    struct pipeline *pipeline = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        unsigned __int128 expected = BILL_ONE / 1000000 * runs[i].billed_ug, unowned = 0;
        struct snapshot *snapshot;

        pipeline = run_at(pipeline, runs[i].rate, T0 + i * 10 * SECOND);
        snapshot = books(pipeline);
        for (int owner = 0; owner < UNOWNED_COUNT; owner++)
            unowned += snapshot->meters[0].unowned_bill[owner].embodied;
        assert_true(snapshot->meters[0].bill.embodied == expected);
        assert_int_equal(snapshot->workload_count, 1);
        assert_true(snapshot->workloads[0].account.bill.embodied + unowned == expected);
        assert_true(snapshot->workloads[0].account.bill.embodied > expected / 2);
        close_books(snapshot);
    }
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_of_a_gpu_is_its_rate_in_sum),
        cmocka_unit_test(the_dearest_century_fits_a_bill),
        cmocka_unit_test(three_quarters_of_the_energy_have_three_quarters_of_the_time),
        cmocka_unit_test(time_that_does_not_divide_evenly_is_booked_whole),
        cmocka_unit_test(what_a_process_is_booked_is_time_of_its_workload),
        cmocka_unit_test(time_without_joules_goes_with_the_next_that_has_some),
        cmocka_unit_test(time_begins_with_the_first_joule),
        cmocka_unit_test(a_device_without_joules_for_an_hour_was_idle),
        cmocka_unit_test(time_between_two_windows_is_a_gap),
        cmocka_unit_test(what_is_longer_than_an_hour_is_no_time_of_the_device),
        cmocka_unit_test(windows_that_overlap_count_once),
        cmocka_unit_test(a_clock_that_is_set_back_counts_no_time_twice),
        cmocka_unit_test(a_clock_that_is_set_and_set_right_again_has_counted_what_passed),
        cmocka_unit_test(a_clock_that_is_set_back_by_more_than_an_hour_begins_anew),
        cmocka_unit_test(the_time_of_a_workload_that_ended_is_with_the_retired),
        cmocka_unit_test(a_kind_without_a_rate_counts_no_time),
        cmocka_unit_test(time_that_is_lost_is_an_imbalance),
        cmocka_unit_test(in_any_history_the_owners_time_is_the_devices),
        cmocka_unit_test(of_a_board_the_time_that_was_settled_counts_and_the_rest_is_a_gap),
        cmocka_unit_test(a_reserved_idle_board_books_its_time_to_the_grantee),
        cmocka_unit_test(a_board_that_is_read_and_uses_nothing_for_hours_has_its_time),
        cmocka_unit_test(the_time_of_the_system_is_shown_as_unowned),
        cmocka_unit_test(time_of_a_row_that_is_held_back_is_not_shown_yet),
        cmocka_unit_test(of_a_package_that_is_read_late_the_time_goes_with_its_joules),
        cmocka_unit_test(the_time_of_a_package_that_is_not_read_is_a_gap),
        cmocka_unit_test(a_model_that_gave_way_to_a_meter_has_no_time_any_more),
        cmocka_unit_test(over_restarts_time_is_billed_at_the_rate_of_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
