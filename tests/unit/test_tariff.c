/* model/price: the price of a tariff by month, day and minute. */
#include "unit.h"

#include <stdbool.h>
#include <time.h>

#include "core/macros.h"
#include "model/price.h"

enum { SUNDAY, MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY };
enum { JANUARY = 0, MARCH = 2, APRIL = 3, OCTOBER = 9, NOVEMBER = 10, DECEMBER = 11 };
enum { ALL_MONTHS = 0xfff, ALL_DAYS = 0x7f, WORKING_DAYS = 0x3e };
enum { BASE = 10, FIRST = 20, SECOND = 30 };

#define AT(hour, minute) ((hour)*60 + (minute))

/* Of a month whose days do not matter unless it is the first. */
static uint64_t price_on(const struct tariff *tariff, int month, int day, int weekday, int minute)
{
    return tariff_price_at(tariff, &(struct tm){.tm_mon = month,
                                                .tm_mday = day,
                                                .tm_wday = weekday,
                                                .tm_hour = minute / 60,
                                                .tm_min = minute % 60,
                                                .tm_sec = 59});
}

static struct tariff tariff_with(struct tariff_period period)
{
    struct tariff tariff = {.micro_per_kwh = BASE, .periods = {period}, .period_count = 1};

    tariff.periods[0].micro_per_kwh = FIRST;
    return tariff;
}

static void without_periods_there_is_one_price(void **state)
{
    const struct tariff tariff = {.micro_per_kwh = BASE};

    (void)state;
    assert_int_equal(price_on(&tariff, JANUARY, 1, SUNDAY, 0), BASE);
    assert_int_equal(price_on(&tariff, DECEMBER, 31, SATURDAY, AT(23, 59)), BASE);
}

static void a_period_holds_from_its_first_minute_to_before_its_last(void **state)
{
    const struct tariff tariff = tariff_with((struct tariff_period){
        .months = ALL_MONTHS, .days = ALL_DAYS, .from_minute = AT(7, 0), .to_minute = AT(23, 0)});

    (void)state;
    assert_int_equal(price_on(&tariff, MARCH, 5, MONDAY, AT(6, 59)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 5, MONDAY, AT(7, 0)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 5, MONDAY, AT(22, 59)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 5, MONDAY, AT(23, 0)), BASE);
}

static void a_whole_day_ends_at_midnight(void **state)
{
    const struct tariff tariff = tariff_with((struct tariff_period){
        .months = ALL_MONTHS, .days = 1 << SATURDAY, .to_minute = TARIFF_DAY_MINUTES});

    (void)state;
    assert_int_equal(price_on(&tariff, MARCH, 6, FRIDAY, AT(23, 59)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 7, SATURDAY, 0), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 7, SATURDAY, AT(23, 59)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 8, SUNDAY, 0), BASE);
}

static void a_period_holds_on_its_days_and_in_its_months_only(void **state)
{
    const struct tariff tariff =
        tariff_with((struct tariff_period){.months = 1 << NOVEMBER | 1 << DECEMBER | 1 << JANUARY,
                                           .days = WORKING_DAYS,
                                           .to_minute = TARIFF_DAY_MINUTES});

    (void)state;
    for (int day = SUNDAY; day <= SATURDAY; day++)
        for (int month = JANUARY; month <= DECEMBER; month++) {
            bool holds = day != SUNDAY && day != SATURDAY &&
                         (month == NOVEMBER || month == DECEMBER || month == JANUARY);

            assert_int_equal(price_on(&tariff, month, 15, day, AT(12, 0)), holds ? FIRST : BASE);
        }
}

static void a_night_is_of_the_day_on_which_it_begins(void **state)
{
    const struct tariff tariff = tariff_with((struct tariff_period){.months = ALL_MONTHS,
                                                                    .days = WORKING_DAYS,
                                                                    .from_minute = AT(22, 0),
                                                                    .to_minute = AT(6, 0)});

    (void)state;
    assert_int_equal(price_on(&tariff, MARCH, 1, SUNDAY, AT(23, 0)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 2, MONDAY, AT(5, 59)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 2, MONDAY, AT(22, 0)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 3, TUESDAY, AT(5, 59)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 3, TUESDAY, AT(6, 0)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 6, FRIDAY, AT(23, 59)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 7, SATURDAY, AT(5, 59)), FIRST);
    assert_int_equal(price_on(&tariff, MARCH, 7, SATURDAY, AT(22, 0)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 8, SUNDAY, AT(3, 0)), BASE);
}

static void the_night_to_the_first_is_of_the_month_before(void **state)
{
    const struct tariff tariff =
        tariff_with((struct tariff_period){.months = 1 << MARCH | 1 << DECEMBER,
                                           .days = ALL_DAYS,
                                           .from_minute = AT(22, 0),
                                           .to_minute = AT(6, 0)});

    (void)state;
    assert_int_equal(price_on(&tariff, MARCH, 1, SUNDAY, AT(5, 0)), BASE);
    assert_int_equal(price_on(&tariff, MARCH, 31, TUESDAY, AT(22, 0)), FIRST);
    assert_int_equal(price_on(&tariff, APRIL, 1, WEDNESDAY, AT(5, 59)), FIRST);
    assert_int_equal(price_on(&tariff, APRIL, 1, WEDNESDAY, AT(22, 0)), BASE);
    assert_int_equal(price_on(&tariff, APRIL, 2, THURSDAY, AT(5, 0)), BASE);
    assert_int_equal(price_on(&tariff, JANUARY, 1, FRIDAY, AT(5, 0)), FIRST);
}

static void a_period_can_end_with_its_day_in_two_ways(void **state)
{
    static const unsigned ends[] = {0, TARIFF_DAY_MINUTES};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        const struct tariff tariff = tariff_with((struct tariff_period){.months = ALL_MONTHS,
                                                                        .days = 1 << FRIDAY,
                                                                        .from_minute = AT(22, 0),
                                                                        .to_minute = ends[i]});

        assert_int_equal(price_on(&tariff, MARCH, 6, FRIDAY, AT(21, 59)), BASE);
        assert_int_equal(price_on(&tariff, MARCH, 6, FRIDAY, AT(23, 59)), FIRST);
        assert_int_equal(price_on(&tariff, MARCH, 7, SATURDAY, 0), BASE);
    }
}

static void of_two_periods_the_first_that_holds_counts(void **state)
{
    const struct tariff tariff = {
        .micro_per_kwh = BASE,
        .periods = {{.micro_per_kwh = FIRST,
                     .months = ALL_MONTHS,
                     .days = ALL_DAYS,
                     .from_minute = AT(8, 0),
                     .to_minute = AT(12, 0)},
                    {.micro_per_kwh = SECOND,
                     .months = ALL_MONTHS,
                     .days = ALL_DAYS,
                     .from_minute = AT(6, 0),
                     .to_minute = AT(18, 0)}},
        .period_count = 2,
    };

    (void)state;
    assert_int_equal(price_on(&tariff, OCTOBER, 2, FRIDAY, AT(5, 59)), BASE);
    assert_int_equal(price_on(&tariff, OCTOBER, 2, FRIDAY, AT(7, 59)), SECOND);
    assert_int_equal(price_on(&tariff, OCTOBER, 2, FRIDAY, AT(8, 0)), FIRST);
    assert_int_equal(price_on(&tariff, OCTOBER, 2, FRIDAY, AT(12, 0)), SECOND);
    assert_int_equal(price_on(&tariff, OCTOBER, 2, FRIDAY, AT(18, 0)), BASE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_periods_there_is_one_price),
        cmocka_unit_test(a_period_holds_from_its_first_minute_to_before_its_last),
        cmocka_unit_test(a_whole_day_ends_at_midnight),
        cmocka_unit_test(a_period_holds_on_its_days_and_in_its_months_only),
        cmocka_unit_test(a_night_is_of_the_day_on_which_it_begins),
        cmocka_unit_test(the_night_to_the_first_is_of_the_month_before),
        cmocka_unit_test(a_period_can_end_with_its_day_in_two_ways),
        cmocka_unit_test(of_two_periods_the_first_that_holds_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
