/* collector/tariff_clock: each window of energy is billed at the price of the minute in which it
 * ended, whatever clocks do. */
#include "pipeline_fixture.h"

#include <errno.h>
#include <time.h>

#include "collector/tariff_clock.h"
#include "config/tariff_config.h"

#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

enum { LOW = 182800, HIGH = 251600 };

#define HEAD          "currency: EUR\nprice: 0.1828\nperiods:\n"
#define WORKING_HOURS HEAD "  - {price: 0.2516, days: mon-fri, from: '07:00', to: '23:00'}\n"
#define NIGHT         HEAD "  - {price: 0.2516, from: '22:00', to: '06:00'}\n"

static uint64_t utc(int year, int month, int day, int hour, int minute)
{
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute};

    return (uint64_t)timegm(&tm) * SECOND;
}

static struct tariff tariff_of(const char *text)
{
    struct tariff tariff;
    struct error err = {""};

    if (tariff_config_parse(span_of(text), "t.yaml", &tariff, &err) < 0)
        fail_msg("%s", err.text);
    return tariff;
}

static void use_zone(const char *name)
{
    struct error err = {""};

    if (tariff_config_use_zone(name, &err) < 0)
        fail_msg("%s", err.text);
}

static int in_paris(void **state)
{
    (void)state;
    use_zone("Europe/Paris");
    return 0;
}

/* The times at which the price changes between two times. */
static void assert_changes(const char *text, uint64_t from_us, uint64_t until_us,
                           const uint64_t *changes, size_t count)
{
    const struct tariff tariff = tariff_of(text);
    struct tariff_clock clock;
    size_t found = 0;
    uint64_t price;

    tariff_clock_start(&clock, &tariff, from_us);
    price = clock.cost.micro_per_kwh;
    for (uint64_t t = from_us;;) {
        t = tariff_clock_next_change_us(&tariff, t);
        if (t > until_us)
            break;
        tariff_clock_start(&clock, &tariff, t);
        if (clock.cost.micro_per_kwh == price)
            continue;
        price = clock.cost.micro_per_kwh;
        if (found == count || t != changes[found])
            fail_msg("change %zu is at %llu", found, (unsigned long long)(t / SECOND));
        found++;
    }
    assert_int_equal(found, count);
}

#define CHANGES(text, from_us, until_us, ...)                                                      \
    assert_changes(text, from_us, until_us, (const uint64_t[]){__VA_ARGS__},                       \
                   ARRAY_SIZE(((const uint64_t[]){__VA_ARGS__})))

static void the_next_change_is_at_its_minute(void **state)
{
    const struct tariff tariff = tariff_of(WORKING_HOURS);
    uint64_t seven = utc(2026, 11, 16, 6, 0); /* a Monday; in winter Paris is an hour ahead */

    (void)state;
    assert_int_equal(tariff_clock_next_change_us(&tariff, seven - 3 * HOUR - 12345678), seven);
    assert_int_equal(tariff_clock_next_change_us(&tariff, seven - 1), seven);
    assert_int_equal(tariff_clock_next_change_us(&tariff, seven), seven + 16 * HOUR);
    assert_int_equal(tariff_clock_next_change_us(&tariff, seven + 1), seven + 16 * HOUR);
}

static void where_nothing_changes_for_a_day_the_next_look_is_a_day_later(void **state)
{
    const struct tariff weekdays = tariff_of(WORKING_HOURS);
    const struct tariff constant = tariff_of("currency: EUR\nprice: 0.1828\n");
    uint64_t saturday = utc(2026, 11, 14, 9, 0);

    (void)state;
    assert_int_equal(tariff_clock_next_change_us(&weekdays, saturday + 17), saturday + DAY);
    assert_int_equal(tariff_clock_next_change_us(&constant, saturday), saturday + DAY);
    CHANGES(WORKING_HOURS, saturday, saturday + 3 * DAY, utc(2026, 11, 16, 6, 0),
            utc(2026, 11, 16, 22, 0), utc(2026, 11, 17, 6, 0));
}

static void a_month_begins_at_local_midnight(void **state)
{
    (void)state;
    CHANGES(HEAD "  - {price: 0.2516, months: nov-mar}\n", utc(2026, 10, 30, 0, 0),
            utc(2027, 4, 5, 0, 0), utc(2026, 10, 31, 23, 0), utc(2027, 3, 31, 22, 0));
}

static void a_zone_half_an_hour_off_changes_at_half_past(void **state)
{
    (void)state;
    use_zone("+05:30");
    CHANGES(WORKING_HOURS, utc(2026, 11, 16, 0, 0), utc(2026, 11, 16, 23, 0),
            utc(2026, 11, 16, 1, 30), utc(2026, 11, 16, 17, 30));
}

/* At 01:00 UTC of 29 March 2026 clocks in Paris go from 02:00 to 03:00. */
static void in_the_night_that_lacks_an_hour_the_clock_on_the_wall_counts(void **state)
{
    uint64_t from = utc(2026, 3, 28, 12, 0), until = utc(2026, 3, 29, 12, 0);

    (void)state;
    CHANGES(HEAD "  - {price: 0.2516, from: '02:30', to: '03:30'}\n", from, until,
            utc(2026, 3, 29, 1, 0), utc(2026, 3, 29, 1, 30));
    CHANGES(NIGHT, from, until, utc(2026, 3, 28, 21, 0), utc(2026, 3, 29, 4, 0));
    /* It never is between them. */
    assert_changes(HEAD "  - {price: 0.2516, from: '02:10', to: '02:50'}\n", from, until, NULL, 0);
}

/* At 01:00 UTC of 25 October 2026 they go from 03:00 to 02:00. */
static void in_the_night_that_has_an_hour_twice_a_period_holds_twice(void **state)
{
    uint64_t from = utc(2026, 10, 24, 12, 0), until = utc(2026, 10, 25, 12, 0);

    (void)state;
    CHANGES(HEAD "  - {price: 0.2516, from: '02:30', to: '03:30'}\n", from, until,
            utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 0), utc(2026, 10, 25, 1, 30),
            utc(2026, 10, 25, 2, 30));
    CHANGES(NIGHT, from, until, utc(2026, 10, 24, 20, 0), utc(2026, 10, 25, 5, 0));
}

/* A pipeline and the clock that tells it prices. */
struct rig {
    struct pipeline *pipeline;
    struct tariff_clock clock;
};

static struct rig open_rig(const char *text, uint64_t now_us)
{
    const struct tariff tariff = tariff_of(text);
    struct pipeline_options options = default_options();
    struct rig rig;

    tariff_clock_start(&rig.clock, &tariff, now_us);
    options.price.cost = rig.clock.cost;
    options.price.pue_millionths = 2;
    rig.pipeline = pipeline_with(options);
    return rig;
}

static bool follow(struct rig *rig, uint64_t now_us)
{
    return tariff_clock_follow(&rig->clock, now_us, rig->pipeline);
}

static uint64_t micro_at(const struct rig *rig, uint64_t t_us)
{
    return ledger_rate_at(rig->pipeline->ledger, t_us).cost / 2;
}

static void a_price_holds_from_its_minute_on_however_late_it_is_told(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, seven - HOUR);

    (void)state;
    assert_string_equal(rig.pipeline->price.cost.currency, "EUR");
    assert_int_equal(rig.pipeline->price.cost.micro_per_kwh, LOW);
    assert_false(follow(&rig, seven - 1));
    assert_true(follow(&rig, seven + 40 * SECOND));
    assert_false(follow(&rig, seven + 40 * SECOND));
    assert_int_equal(micro_at(&rig, seven - 1), LOW);
    assert_int_equal(micro_at(&rig, seven), HIGH);
    assert_int_equal(rig.pipeline->price.cost.micro_per_kwh, HIGH);
    /* The machine slept for 25 hours, over two changes. */
    assert_true(follow(&rig, seven + 25 * HOUR));
    assert_int_equal(micro_at(&rig, seven + 16 * HOUR - 1), HIGH);
    assert_int_equal(micro_at(&rig, seven + 16 * HOUR), LOW);
    assert_int_equal(micro_at(&rig, seven + 24 * HOUR - 1), LOW);
    assert_int_equal(micro_at(&rig, seven + 24 * HOUR), HIGH);
    pipeline_free(rig.pipeline);
}

static void the_time_to_wait_ends_with_the_price(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, seven - HOUR);

    (void)state;
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven - 1500), 1500);
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven), 0);
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven + HOUR), 0);
    assert_true(follow(&rig, seven + HOUR));
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven + HOUR), 15 * HOUR);
    pipeline_free(rig.pipeline);
}

static void what_is_told_of_cost_leaves_the_emission_factor_alone(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, seven - HOUR);
    const struct price factor = {.factor = {.known = true, .ug_per_kwh = 44179000},
                                 .pue_millionths = 2};

    (void)state;
    pipeline_set_price(rig.pipeline, &factor, seven - MINUTE);
    assert_true(follow(&rig, seven));
    assert_int_equal(rig.pipeline->price.factor.ug_per_kwh, 44179000);
    assert_int_equal(ledger_rate_at(rig.pipeline->ledger, seven).emission, 44179000 * 2);
    assert_int_equal(ledger_rate_at(rig.pipeline->ledger, seven - MINUTE - 1).emission,
                     (uint64_t)473007000 * 2);
    pipeline_free(rig.pipeline);
}

static void a_clock_that_is_set_back_over_a_change_meets_it_again(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, seven - HOUR);

    (void)state;
    assert_true(follow(&rig, seven + MINUTE));
    assert_true(follow(&rig, seven - 10 * MINUTE));
    assert_int_equal(rig.pipeline->price.cost.micro_per_kwh, LOW);
    assert_int_equal(micro_at(&rig, seven - 10 * MINUTE), LOW);
    assert_int_equal(micro_at(&rig, seven - 1), LOW);
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven - 10 * MINUTE), 10 * MINUTE);
    assert_false(follow(&rig, seven - 1));
    assert_true(follow(&rig, seven));
    assert_int_equal(micro_at(&rig, seven - 1), LOW);
    assert_int_equal(micro_at(&rig, seven), HIGH);
    pipeline_free(rig.pipeline);
}

static void a_clock_that_is_set_back_before_the_start_has_the_price_of_then(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, seven + HOUR);

    (void)state;
    assert_true(follow(&rig, seven - HOUR));
    assert_int_equal(micro_at(&rig, seven - HOUR), LOW);
    assert_true(follow(&rig, 0)); /* a battery that is empty */
    assert_int_equal(micro_at(&rig, 0), LOW);
    assert_true(follow(&rig, seven));
    assert_int_equal(micro_at(&rig, seven), HIGH);
    pipeline_free(rig.pipeline);
}

static void a_clock_that_is_set_ahead_by_years_is_right_at_once(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    struct rig rig = open_rig(WORKING_HOURS, utc(1970, 1, 1, 0, 3));

    (void)state;
    assert_true(follow(&rig, seven + 2 * SECOND));
    assert_int_equal(micro_at(&rig, seven - MINUTE), LOW);
    assert_int_equal(micro_at(&rig, seven - 1), LOW);
    assert_int_equal(micro_at(&rig, seven), HIGH);
    assert_int_equal(rig.clock.until_us, seven + 16 * HOUR);
    pipeline_free(rig.pipeline);
}

/* 20 s of a board at 100 W, in windows of a second that end at half seconds. What was read arrives
 * in pieces of 2.5 s, so that the change is told late. */
static void each_window_costs_the_price_of_its_end(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0), from = seven - 19 * SECOND / 2, counter_uj = 0;
    struct rig rig = open_rig(WORKING_HOURS, from);
    struct snapshot *snapshot;

    (void)state;
    energy(rig.pipeline, 0, from, 0);
    for (uint64_t t = from; t < from + 20 * SECOND; t += 5 * SECOND / 2) {
        (void)follow(&rig, t + 5 * SECOND / 2);
        counter_uj = ticks(rig.pipeline, 0, t, t + 5 * SECOND / 2, counter_uj, 100);
    }
    assert_int_equal(pipeline_finish(rig.pipeline), 0);
    snapshot = books(rig.pipeline);
    assert_int_equal(snapshot->meters[0].energy_uj, 2000 * JOULE);
    /* Nine windows end before seven; the tenth, half of which is older, after it. */
    assert_true(snapshot->meters[0].bill.cost ==
                (unsigned __int128)JOULE * 2 * (900 * LOW + 1100 * HIGH));
    close_books(snapshot);
    pipeline_free(rig.pipeline);
}

/* A kilowatt, all week, in windows of a minute that end at its half, booked up to a minute late. */
static struct bill bill_of_week(const char *text, uint64_t from_us)
{
    struct rig rig = open_rig(text, from_us);
    struct bill bill;

    for (uint64_t t = from_us + MINUTE / 2; t < from_us + 7 * DAY; t += MINUTE) {
        uint64_t late_us = t / MINUTE % 7 * 10 * SECOND;
        const struct booking booking = {
            .process = LEDGER_NONE, .unowned = UNOWNED_IDLE, .energy_uj = 60000 * JOULE};

        (void)follow(&rig, t + late_us);
        assert_int_equal(
            ledger_book(rig.pipeline->ledger, 0, 60000 * JOULE, t - MINUTE, t, &booking, 1), 0);
    }
    bill = ledger_meter(rig.pipeline->ledger, 0)->bill;
    pipeline_free(rig.pipeline);
    return bill;
}

static unsigned __int128 cost_of(uint64_t low_minutes, uint64_t high_minutes)
{
    return (unsigned __int128)60000 * JOULE * 2 * (low_minutes * LOW + high_minutes * HIGH);
}

static void a_week_costs_what_its_minutes_cost(void **state)
{
    const uint64_t week = 7 * 1440, dear = 5 * 16 * 60, nights = 7 * 8 * 60;

    (void)state;
    assert_true(bill_of_week(WORKING_HOURS, utc(2026, 11, 10, 10, 0)).cost ==
                cost_of(week - dear, dear));
    /* With the night that lacks an hour, and that which has one twice. */
    assert_true(bill_of_week(NIGHT, utc(2026, 3, 26, 10, 0)).cost ==
                cost_of(week - nights + 60, nights - 60));
    assert_true(bill_of_week(NIGHT, utc(2026, 10, 22, 10, 0)).cost ==
                cost_of(week - nights - 60, nights + 60));
}

static void a_file_is_opened_with_its_zone(void **state)
{
    char path[] = "/tmp/wattribute-tariff-XXXXXX", described[TARIFF_CLOCK_TEXT_BYTES];
    static const char text[] = NIGHT "timezone: Asia/Tokyo\n",
                      wrong[] = NIGHT "timezone: No/Such\n";
    _cleanup_close_ int fd = mkstemp(path);
    struct tariff_clock clock;
    struct error err = {""};

    (void)state;
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    /* 21:59:30 in Tokyo */
    assert_int_equal(tariff_clock_open(&clock, path, utc(2026, 7, 1, 12, 59) + MINUTE / 2, &err),
                     0);
    assert_true(clock.cost.known);
    assert_int_equal(clock.cost.micro_per_kwh, LOW);
    assert_int_equal(clock.until_us, utc(2026, 7, 1, 13, 0));
    tariff_clock_describe(&clock, described);
    assert_string_equal(described, "0.182800 EUR per kWh at 2026-07-01T21:59:30+0900");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, wrong, sizeof(wrong) - 1, 0), sizeof(wrong) - 1);
    assert_int_equal(tariff_clock_open(&clock, path, 0, &err), -ENOENT);
    assert_memory_equal(err.text, path, strlen(path));
    assert_non_null(strstr(err.text, ": timezone: there is no time zone 'No/Such'"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tariff_clock_open(&clock, path, 0, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot be read"));
}

/* A file that a rig's clock was read from. */
struct file {
    char path[32];
};

static struct file open_file(const char *text)
{
    struct file file = {"/tmp/wattribute-tariff-XXXXXX"};
    _cleanup_close_ int fd = mkstemp(file.path);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return file;
}

/* By a rename, so that it is another file however alike. */
static void replace(const struct file *file, const char *text)
{
    const struct file news = open_file(text);

    assert_int_equal(rename(news.path, file->path), 0);
}

static struct rig open_rig_of(const struct file *file, uint64_t now_us)
{
    struct pipeline_options options = default_options();
    struct error err = {""};
    struct rig rig;

    if (tariff_clock_open(&rig.clock, file->path, now_us, &err) < 0)
        fail_msg("%s", err.text);
    options.price.cost = rig.clock.cost;
    options.price.pue_millionths = 2;
    rig.pipeline = pipeline_with(options);
    return rig;
}

static int look(struct rig *rig, uint64_t now_us)
{
    struct error err = {""};

    return tariff_clock_check(&rig->clock, now_us, rig->pipeline, &err);
}

/* 20 s of a board at 100 W, in windows of a second that end at half seconds. */
static void a_file_that_changes_bills_what_ends_after_it_was_noticed(void **state)
{
    uint64_t from = utc(2026, 11, 16, 9, 0) + SECOND / 2, noticed = from + 7 * SECOND + SECOND / 2;
    const struct file file = open_file("currency: EUR\nprice: 0.1828\n");
    struct rig rig = open_rig_of(&file, from);
    struct snapshot *snapshot;
    uint64_t counter_uj;

    (void)state;
    energy(rig.pipeline, 0, from, 0);
    assert_int_equal(look(&rig, from), 0);
    replace(&file, "currency: EUR\nprice: 0.2516\n");
    counter_uj = ticks(rig.pipeline, 0, from, from + 5 * SECOND, 0, 100);
    assert_int_equal(look(&rig, noticed), 1);
    assert_int_equal(look(&rig, noticed), 0);
    assert_int_equal(micro_at(&rig, noticed - 1), LOW);
    assert_int_equal(micro_at(&rig, noticed), HIGH);
    assert_int_equal(rig.pipeline->price.cost.micro_per_kwh, HIGH);
    /* Two windows that had ended by then are booked only now. */
    ticks(rig.pipeline, 0, from + 5 * SECOND, from + 20 * SECOND, counter_uj, 100);
    assert_int_equal(pipeline_finish(rig.pipeline), 0);
    snapshot = books(rig.pipeline);
    assert_int_equal(snapshot->meters[0].energy_uj, 2000 * JOULE);
    assert_true(snapshot->meters[0].bill.cost ==
                (unsigned __int128)JOULE * 2 * (700 * LOW + 1300 * HIGH));
    close_books(snapshot);
    pipeline_free(rig.pipeline);
    unlink(file.path);
}

static void the_periods_of_a_new_tariff_hold_and_those_of_the_old_one_no_more(void **state)
{
    uint64_t seven = utc(2026, 11, 16, 6, 0);
    const struct file file = open_file(WORKING_HOURS);
    struct rig rig = open_rig_of(&file, seven - HOUR);

    (void)state;
    replace(&file, HEAD "  - {price: 0.5, from: '08:00', to: '09:00'}\n");
    /* It is noticed late, after a change of the old tariff that nobody has followed yet. */
    assert_int_equal(look(&rig, seven + MINUTE + 1), 1);
    assert_int_equal(micro_at(&rig, seven - 1), LOW);
    assert_int_equal(micro_at(&rig, seven), HIGH);
    assert_int_equal(micro_at(&rig, seven + MINUTE), HIGH);
    assert_int_equal(micro_at(&rig, seven + MINUTE + 1), LOW);
    assert_int_equal(tariff_clock_wait_us(&rig.clock, seven + MINUTE + 1), HOUR - MINUTE - 1);
    assert_true(follow(&rig, seven + 3 * HOUR));
    assert_int_equal(micro_at(&rig, seven + HOUR - 1), LOW);
    assert_int_equal(micro_at(&rig, seven + HOUR), 500000);
    assert_int_equal(micro_at(&rig, seven + 2 * HOUR), LOW);
    pipeline_free(rig.pipeline);
    unlink(file.path);
}

static void a_clock_set_back_behind_a_new_tariff_leaves_the_old_one_its_windows(void **state)
{
    uint64_t noticed = utc(2026, 11, 16, 9, 0);
    const struct file file = open_file("currency: EUR\nprice: 0.1828\n");
    struct rig rig = open_rig_of(&file, noticed - HOUR);

    (void)state;
    replace(&file, "currency: EUR\nprice: 0.2516\n");
    assert_int_equal(look(&rig, noticed), 1);
    assert_true(tariff_clock_follow(&rig.clock, noticed - SECOND, rig.pipeline));
    assert_int_equal(micro_at(&rig, noticed - SECOND - 1), LOW);
    assert_int_equal(micro_at(&rig, noticed - SECOND), HIGH);
    assert_true(tariff_clock_follow(&rig.clock, noticed - HOUR / 2, rig.pipeline));
    assert_int_equal(micro_at(&rig, noticed - HOUR / 2 - 1), LOW);
    assert_int_equal(micro_at(&rig, noticed - HOUR / 2), HIGH);
    pipeline_free(rig.pipeline);
    unlink(file.path);
}

static void assert_refused(struct rig *rig, uint64_t now_us, int code, const char *words)
{
    struct error err = {""};

    assert_int_equal(tariff_clock_check(&rig->clock, now_us, rig->pipeline, &err), code);
    if (!strstr(err.text, rig->clock.path) || !strstr(err.text, words))
        fail_msg("%s", err.text);
    assert_int_equal(look(rig, now_us), 0); /* once */
    assert_int_equal(rig->clock.cost.micro_per_kwh, LOW);
    assert_int_equal(micro_at(rig, now_us), LOW);
}

static void what_cannot_be_used_is_said_once_and_the_tariff_before_stays(void **state)
{
    uint64_t now = utc(2026, 11, 16, 9, 0);
    const struct file file = open_file("currency: EUR\nprice: 0.1828\ntimezone: Europe/Paris\n");
    struct rig rig = open_rig_of(&file, now);

    (void)state;
    replace(&file, "currency: EUR\nprice: -1\ntimezone: Europe/Paris\n");
    assert_refused(&rig, now += SECOND, -EINVAL, ":2:8: price: '-1' is negative");
    replace(&file, "currency: USD\nprice: 1\ntimezone: Europe/Paris\n");
    assert_refused(&rig, now += SECOND, -EINVAL,
                   "currency cannot be changed from EUR to USD while the exporter runs; restart "
                   "it, or give the prices in EUR");
    replace(&file, "currency: EUR\nprice: 1\ntimezone: Asia/Tokyo\n");
    assert_refused(&rig, now += SECOND, -EINVAL,
                   "timezone cannot be changed from Europe/Paris to Asia/Tokyo while the exporter "
                   "runs; restart it");
    replace(&file, "currency: EUR\nprice: 1\n");
    assert_refused(&rig, now += SECOND, -EINVAL, "from Europe/Paris to the machine's own");
    assert_int_equal(unlink(file.path), 0);
    assert_refused(&rig, now += SECOND, -ENOENT, "cannot be read");
    replace(&file, "currency: EUR\nprice: 0.2516\ntimezone: Europe/Paris\n");
    assert_int_equal(look(&rig, now += SECOND), 1);
    assert_int_equal(micro_at(&rig, now - 1), LOW);
    assert_int_equal(micro_at(&rig, now), HIGH);
    pipeline_free(rig.pipeline);
    unlink(file.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_next_change_is_at_its_minute, in_paris),
        cmocka_unit_test_setup(where_nothing_changes_for_a_day_the_next_look_is_a_day_later,
                               in_paris),
        cmocka_unit_test_setup(a_month_begins_at_local_midnight, in_paris),
        cmocka_unit_test_setup(a_zone_half_an_hour_off_changes_at_half_past, in_paris),
        cmocka_unit_test_setup(in_the_night_that_lacks_an_hour_the_clock_on_the_wall_counts,
                               in_paris),
        cmocka_unit_test_setup(in_the_night_that_has_an_hour_twice_a_period_holds_twice, in_paris),
        cmocka_unit_test_setup(a_price_holds_from_its_minute_on_however_late_it_is_told, in_paris),
        cmocka_unit_test_setup(the_time_to_wait_ends_with_the_price, in_paris),
        cmocka_unit_test_setup(what_is_told_of_cost_leaves_the_emission_factor_alone, in_paris),
        cmocka_unit_test_setup(a_clock_that_is_set_back_over_a_change_meets_it_again, in_paris),
        cmocka_unit_test_setup(a_clock_that_is_set_back_before_the_start_has_the_price_of_then,
                               in_paris),
        cmocka_unit_test_setup(a_clock_that_is_set_ahead_by_years_is_right_at_once, in_paris),
        cmocka_unit_test_setup(each_window_costs_the_price_of_its_end, in_paris),
        cmocka_unit_test_setup(a_week_costs_what_its_minutes_cost, in_paris),
        cmocka_unit_test_setup(a_file_is_opened_with_its_zone, in_paris),
        cmocka_unit_test_setup(a_file_that_changes_bills_what_ends_after_it_was_noticed, in_paris),
        cmocka_unit_test_setup(the_periods_of_a_new_tariff_hold_and_those_of_the_old_one_no_more,
                               in_paris),
        cmocka_unit_test_setup(a_clock_set_back_behind_a_new_tariff_leaves_the_old_one_its_windows,
                               in_paris),
        cmocka_unit_test_setup(what_cannot_be_used_is_said_once_and_the_tariff_before_stays,
                               in_paris),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
