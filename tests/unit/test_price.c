/* What joules emit and cost: exact bills that sum up, each joule at the price of its time. */
#include "pipeline_fixture.h"

#include "attribution/ledger/ledger_private.h"
#include "random.h"

enum { METERS = 2, OWNERS = 12 };

static const uint64_t KWH_UJ = 3600000 * JOULE;

static struct price price_of(uint64_t ug_per_kwh, uint64_t micro_per_kwh, uint64_t pue_millionths)
{
    return (struct price){
        .factor = {.known = true, .ug_per_kwh = ug_per_kwh},
        .cost = {.known = true, .micro_per_kwh = micro_per_kwh, .currency = "EUR"},
        .pue_millionths = pue_millionths,
    };
}

static void assert_bill(struct bill bill, unsigned __int128 emission, unsigned __int128 cost)
{
    assert_true(bill.emission == emission);
    assert_true(bill.cost == cost);
}

static struct ledger *open_ledger(void)
{
    static const char *const names[METERS] = {"0", "1"};
    const struct ledger_options options = {.max_processes = 64, .max_workloads = 64};
    struct ledger *ledger = NULL;
    uint32_t meter;

    assert_int_equal(ledger_new(&options, &ledger), 0);
    for (uint32_t i = 0; i < METERS; i++)
        assert_int_equal(ledger_add_meter(ledger, METER_PACKAGE, names[i], 0, &meter), 0);
    return ledger;
}

static struct workload_owner owner_of(unsigned number)
{
    struct workload_owner owner = {.kind = WORKLOAD_UNIT};

    snprintf(owner.id, sizeof(owner.id), "/%u", number);
    return owner;
}

static uint32_t open_workload(struct ledger *ledger, unsigned number)
{
    struct workload_owner owner = owner_of(number);
    uint32_t workload;

    assert_int_equal(ledger_open_workload(ledger, &owner, &workload), 0);
    return workload;
}

static void book(struct ledger *ledger, uint32_t workload, uint64_t energy_uj, uint64_t end_us)
{
    const struct booking booking = {
        .process = LEDGER_NONE, .to_workload = true, .workload = workload, .energy_uj = energy_uj};

    assert_int_equal(ledger_book(ledger, 0, energy_uj, end_us - SECOND, end_us, &booking, 1), 0);
}

static void a_kilowatt_hour_emits_the_factor_and_costs_the_price_times_the_pue(void **state)
{
    const struct price price = price_of(473007000, 300000, 1250000);
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    ledger_set_price(ledger, &price, 0);
    book(ledger, open_workload(ledger, 0), KWH_UJ, T0);
    /* 473.007 g x 1.25 = 591.25875 g; 0.30 x 1.25 = 0.375 */
    assert_bill(ledger->accounts[0].account.bill, BILL_ONE / 100000 * 59125875,
                BILL_ONE / 1000 * 375);
    assert_bill(ledger_meter(ledger, 0)->bill, BILL_ONE / 100000 * 59125875, BILL_ONE / 1000 * 375);
    assert_bill(ledger_meter(ledger, 1)->bill, 0, 0);
    ledger_free(ledger);
}

static void the_dearest_energy_that_fits_an_account_fits_a_bill(void **state)
{
    const struct price price =
        price_of(PRICE_FACTOR_MAX_G * JOULE, PRICE_COST_MAX * JOULE, (uint64_t)10 * PRICE_PUE_ONE);
    struct price_rate rate = price_rate_of(&price);
    struct bill bill = {0};

    (void)state;
    assert_int_equal(rate.emission, 50000000000000000);
    assert_int_equal(rate.cost, 1000000000000000000);
    bill_add_energy(&bill, UINT64_MAX, rate);
    assert_true(bill.emission / rate.emission == UINT64_MAX);
    assert_true(bill.cost / rate.cost == UINT64_MAX);
}

static void a_window_has_the_price_of_its_end_however_late_it_is_booked(void **state)
{
    const struct price old = price_of(100, 1, 1), new = price_of(300, 3, 1);
    struct ledger *ledger;
    uint32_t workload;

    (void)state;
    ledger = open_ledger();
    workload = open_workload(ledger, 0);
    ledger_set_price(ledger, &old, T0);
    ledger_set_price(ledger, &new, T0 + 60 * SECOND);
    book(ledger, workload, 10, T0 + 70 * SECOND);
    assert_bill(ledger_meter(ledger, 0)->bill, 3000, 30);
    book(ledger, workload, 10, T0 + 60 * SECOND - 1);
    assert_bill(ledger_meter(ledger, 0)->bill, 4000, 40);
    book(ledger, workload, 10, T0 + 60 * SECOND);
    assert_bill(ledger_meter(ledger, 0)->bill, 7000, 70);
    book(ledger, workload, 10, T0 - SECOND); /* before the first price: that one */
    assert_bill(ledger_meter(ledger, 0)->bill, 8000, 80);
    ledger_free(ledger);
}

static void a_clock_that_is_set_back_takes_prices_of_later_with_it(void **state)
{
    const struct price again = price_of(9, 0, 1);
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    for (uint64_t i = 1; i <= 3; i++) {
        const struct price price = price_of(i, 0, 1);

        ledger_set_price(ledger, &price, T0 + i * SECOND);
    }
    ledger_set_price(ledger, &again, T0 + 2 * SECOND);
    assert_int_equal(ledger_rate_at(ledger, T0 + SECOND).emission, 1);
    assert_int_equal(ledger_rate_at(ledger, T0 + 2 * SECOND).emission, 9);
    assert_int_equal(ledger_rate_at(ledger, T0 + 30 * SECOND).emission, 9);
    ledger_free(ledger);
}

static void of_many_prices_the_latest_are_kept(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    for (uint64_t i = 1; i <= 200; i++) {
        const struct price price = price_of(i, 0, 1);

        ledger_set_price(ledger, &price, T0 + i * SECOND);
    }
    assert_int_equal(ledger_rate_at(ledger, T0 + 999 * SECOND).emission, 200);
    assert_int_equal(ledger_rate_at(ledger, T0 + 150 * SECOND).emission, 150);
    assert_int_equal(ledger_rate_at(ledger, T0).emission, 200 - LEDGER_PRICES + 1);
    ledger_free(ledger);
}

static void without_a_price_nothing_is_billed(void **state)
{
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    book(ledger, open_workload(ledger, 0), KWH_UJ, T0);
    ledger_book_gap(ledger, 0, KWH_UJ, 0, 0);
    assert_bill(ledger_meter(ledger, 0)->bill, 0, 0);
    ledger_free(ledger);
}

static void the_bill_of_a_workload_that_ended_is_with_the_retired(void **state)
{
    const struct price price = price_of(500, 7, 2);
    struct ledger *ledger;
    uint32_t workload;

    (void)state;
    ledger = open_ledger();
    ledger_set_price(ledger, &price, 0);
    workload = open_workload(ledger, 0);
    ledger_join_workload(ledger, workload);
    book(ledger, workload, 1000, T0);
    ledger_leave_workload(ledger, workload);
    ledger_retire_workloads(ledger, T0);
    assert_int_equal(ledger_counts(ledger)->workloads, 0);
    assert_bill(ledger_meter(ledger, 0)->retired.bill, 1000000, 14000);
    assert_bill(bill_imbalance(ledger, 0), 0, 0);
    ledger_free(ledger);
}

static void a_bill_that_is_lost_is_an_imbalance(void **state)
{
    const struct price price = price_of(500, 7, 2);
    struct ledger *ledger;

    (void)state;
    ledger = open_ledger();
    ledger_set_price(ledger, &price, 0);
    book(ledger, open_workload(ledger, 0), 1000, T0);
    ledger->accounts[0].account.bill.emission -= 3;
    ledger->accounts[0].account.bill.cost -= 5;
    assert_bill(bill_imbalance(ledger, 0), 3, 5);
    ledger_free(ledger);
}

/* The history given to a ledger, as the test knows it. */
struct price_history {
    struct random_source random;
    struct ledger *ledger;
    struct price prices[64];
    uint64_t from_us[64];
    size_t price_count;
    unsigned __int128 emission[METERS], cost[METERS]; /* by hand */
};

static uint64_t below(struct price_history *history, uint64_t limit)
{
    return random_u64(&history->random) % limit;
}

static void change_price(struct price_history *history, uint64_t t_us)
{
    if (history->price_count == ARRAY_SIZE(history->prices))
        return;
    history->prices[history->price_count] =
        price_of(below(history, 5000000000), below(history, 1000000000),
                 PRICE_PUE_ONE + below(history, 9 * PRICE_PUE_ONE));
    history->from_us[history->price_count] = t_us;
    ledger_set_price(history->ledger, &history->prices[history->price_count++], t_us);
}

static void integrate(struct price_history *history, uint32_t meter, uint64_t energy_uj,
                      uint64_t end_us)
{
    size_t p = history->price_count - 1;

    while (history->from_us[p] > end_us)
        p--;
    history->emission[meter] += (unsigned __int128)energy_uj *
                                history->prices[p].factor.ug_per_kwh *
                                history->prices[p].pue_millionths;
    history->cost[meter] += (unsigned __int128)energy_uj * history->prices[p].cost.micro_per_kwh *
                            history->prices[p].pue_millionths;
}

/* A window of up to four owners, some of them unowned. */
static void book_at_random(struct price_history *history, uint64_t t_us)
{
    struct booking bookings[4] = {0};
    size_t count = 1 + below(history, ARRAY_SIZE(bookings));
    uint32_t meter = (uint32_t)below(history, METERS);
    uint64_t energy_uj = 0, late_us = below(history, 60) * SECOND;

    for (size_t i = 0; i < count; i++) {
        bookings[i] = (struct booking){
            .process = LEDGER_NONE,
            .to_workload = below(history, 4) > 0,
            .unowned = (enum unowned)below(history, UNOWNED_COUNT),
            .tier = (enum tier)below(history, TIER_COUNT),
            .method = (enum method)below(history, METHOD_COUNT),
            .energy_uj = below(history, 700 * JOULE),
        };
        if (bookings[i].to_workload)
            bookings[i].workload = open_workload(history->ledger, (unsigned)below(history, OWNERS));
        energy_uj += bookings[i].energy_uj;
    }
    assert_int_equal(ledger_book(history->ledger, meter, energy_uj, t_us - late_us - SECOND,
                                 t_us - late_us, bookings, count),
                     0);
    integrate(history, meter, energy_uj, t_us - late_us);
}

static void in_any_history_bills_balance_and_are_the_integral_of_price_and_energy(void **state)
{
    struct price_history history = {.random = {20261}};

    (void)state;
    history.ledger = open_ledger();
    change_price(&history, 0);
    for (uint64_t t = T0; t < T0 + 1800 * SECOND; t += SECOND) {
        ledger_advance(history.ledger, t);
        if ((t - T0) % (40 * SECOND) == 0)
            change_price(&history, t - below(&history, 5) * SECOND);
        book_at_random(&history, t);
        if (below(&history, 20) == 0) {
            ledger_book_gap(history.ledger, 1, 12345, 0, 0);
            integrate(&history, 1, 12345, t);
        }
        ledger_retire_workloads(history.ledger, t); /* all of them: there are no members */
        for (uint32_t m = 0; m < METERS; m++) {
            assert_bill(bill_imbalance(history.ledger, m), 0, 0);
            assert_int_equal(ledger_imbalance_uj(history.ledger, m), 0);
            assert_bill(ledger_meter(history.ledger, m)->bill, history.emission[m],
                        history.cost[m]);
        }
    }
    assert_true(history.price_count > 40);
    assert_true(ledger_meter(history.ledger, 0)->retired.bill.emission > 0);
    ledger_free(history.ledger);
}

/* Shared by two, so that all waits for a minute; the price changes at its tenth second. */
static void energy_that_waits_is_billed_at_the_price_of_its_time(void **state)
{
    struct pipeline_options options = default_options();
    const struct price new = price_of(40, 4, 1);
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.price = price_of(10, 1, 1);
    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 60 * SECOND;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 5, 6);
    label(pipeline, 0, T0 + 4 * TICK, 5, T0 + 3 * TICK, 99);
    label(pipeline, 0, T0 + 8 * TICK, 6, T0 + 7 * TICK, 99);
    ticks(pipeline, 0, T0, T0 + 10 * SECOND, 0, 100);
    pipeline_set_price(pipeline, &new, T0 + 10 * SECOND + 1);
    ticks(pipeline, 0, T0 + 10 * SECOND, T0 + 15 * SECOND, 1000 * JOULE, 100);
    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->meters[0].energy_uj, 1500 * JOULE);
    assert_bill(snapshot->meters[0].bill, (1000 * 10 + 500 * 40) * JOULE,
                (1000 * 1 + 500 * 4) * JOULE);
    assert_int_equal(snapshot->price.factor.ug_per_kwh, 40);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void a_factor_that_is_not_known_any_more_goes_on(void **state)
{
    struct pipeline_options options = default_options();
    const struct price neither = {.pue_millionths = 2};
    struct pipeline *pipeline;

    (void)state;
    options.price = price_of(10, 1, 2);
    pipeline = pipeline_with(options);
    pipeline_set_price(pipeline, &neither, T0);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0).emission, 20);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0).cost, 2);
    pipeline_free(pipeline);
}

/* As a tariff does, that is looked at a moment after its minute. */
static void a_late_cost_leaves_the_factors_since_then_alone(void **state)
{
    struct pipeline_options options = default_options();
    struct price factor = price_of(30, 0, 1), cost = price_of(0, 5, 1);
    struct pipeline *pipeline;

    (void)state;
    factor.cost.known = cost.factor.known = false;
    options.price = price_of(10, 1, 1);
    pipeline = pipeline_with(options);
    pipeline_set_price(pipeline, &factor, T0 + 60 * SECOND);
    pipeline_set_price(pipeline, &cost, T0 + 30 * SECOND);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0 + 45 * SECOND).emission, 10);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0 + 45 * SECOND).cost, 5);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0 + 60 * SECOND).emission, 30);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0 + 60 * SECOND).cost, 5);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0 + 29 * SECOND).cost, 1);
    pipeline_free(pipeline);
}

static void what_is_not_billed_from_the_start_on_never_is(void **state)
{
    struct pipeline_options options = default_options();
    const struct price both = price_of(10, 1, 1);
    struct pipeline *pipeline;

    (void)state;
    options.price = (struct price){.pue_millionths = 1};
    pipeline = pipeline_with(options);
    pipeline_set_price(pipeline, &both, T0);
    assert_false(pipeline->price.factor.known || pipeline->price.cost.known);
    assert_int_equal(ledger_rate_at(pipeline->ledger, T0).emission, 0);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kilowatt_hour_emits_the_factor_and_costs_the_price_times_the_pue),
        cmocka_unit_test(the_dearest_energy_that_fits_an_account_fits_a_bill),
        cmocka_unit_test(a_window_has_the_price_of_its_end_however_late_it_is_booked),
        cmocka_unit_test(a_clock_that_is_set_back_takes_prices_of_later_with_it),
        cmocka_unit_test(of_many_prices_the_latest_are_kept),
        cmocka_unit_test(without_a_price_nothing_is_billed),
        cmocka_unit_test(the_bill_of_a_workload_that_ended_is_with_the_retired),
        cmocka_unit_test(a_bill_that_is_lost_is_an_imbalance),
        cmocka_unit_test(in_any_history_bills_balance_and_are_the_integral_of_price_and_energy),
        cmocka_unit_test(energy_that_waits_is_billed_at_the_price_of_its_time),
        cmocka_unit_test(a_factor_that_is_not_known_any_more_goes_on),
        cmocka_unit_test(a_late_cost_leaves_the_factors_since_then_alone),
        cmocka_unit_test(what_is_not_billed_from_the_start_on_never_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
