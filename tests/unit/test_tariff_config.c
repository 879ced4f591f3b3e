/* config/tariff_config: what the file may hold, and how the rest is rejected. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/tariff_config.h"
#include "core/buffer.h"
#include "core/fs.h"
#include "core/macros.h"

#define HEAD     "currency: EUR\nprice: 0.1828\n"
#define PERIODS  HEAD "periods:\n"
#define LONG     "abcdefghijklmnopqrstuvwxyzabcdefgh"
#define THE_REST ", price: 1}]\n"

static int parse(const char *text, struct tariff *ret_tariff, struct error *err)
{
    return tariff_config_parse(span_of(text), "t.yaml", ret_tariff, err);
}

static struct tariff parsed(const char *text)
{
    struct tariff tariff;
    struct error err = {""};

    if (parse(text, &tariff, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return tariff;
}

static void every_key_sets_its_field(void **state)
{
    const struct tariff tariff = parsed("# of a supplier\n"
                                        "currency: EUR\n"
                                        "timezone: Europe/Paris\n"
                                        "price: 0.1828\n"
                                        "periods:\n"
                                        "  - price: 0.2516\n"
                                        "    months: nov-mar\n"
                                        "    days: mon-fri\n"
                                        "    from: \"07:00\"\n"
                                        "    to: '23:00'\n"
                                        "  - {from: 22:30, to: 06:05, price: 100000}\n"
                                        "  - price: 0\n");

    (void)state;
    assert_string_equal(tariff.currency, "EUR");
    assert_string_equal(tariff.zone, "Europe/Paris");
    assert_int_equal(tariff.micro_per_kwh, 182800);
    assert_int_equal(tariff.period_count, 3);
    assert_int_equal(tariff.periods[0].micro_per_kwh, 251600);
    assert_int_equal(tariff.periods[0].months, 0xc07);
    assert_int_equal(tariff.periods[0].days, 0x3e);
    assert_int_equal(tariff.periods[0].from_minute, 420);
    assert_int_equal(tariff.periods[0].to_minute, 1380);
    assert_int_equal(tariff.periods[1].micro_per_kwh, 100000000000);
    assert_int_equal(tariff.periods[1].from_minute, 1350);
    assert_int_equal(tariff.periods[1].to_minute, 365);
    assert_int_equal(tariff.periods[2].micro_per_kwh, 0);
    assert_int_equal(tariff.periods[2].months, 0xfff);
    assert_int_equal(tariff.periods[2].days, 0x7f);
    assert_int_equal(tariff.periods[2].from_minute, 0);
    assert_int_equal(tariff.periods[2].to_minute, TARIFF_DAY_MINUTES);
}

static void currency_and_price_are_enough(void **state)
{
    const struct tariff tariff = parsed("price: 0.000001\ncurrency: JPY\n");

    (void)state;
    assert_int_equal(tariff.micro_per_kwh, 1);
    assert_string_equal(tariff.zone, "");
    assert_int_equal(tariff.period_count, 0);
    assert_int_equal(parsed(HEAD "periods: []\n").period_count, 0);
}

static void months_and_days_are_lists_of_names_and_ranges(void **state)
{
    static const struct {
        const char *key, *value;
        unsigned bits;
    } cases[] = {
        {"months", "jan", 0x001},
        {"months", "dec", 0x800},
        {"months", "jan,feb,nov-dec", 0xc03},
        {"months", "Jan, FEB , nov - dec", 0xc03},
        {"months", "jan-dec", 0xfff},
        {"months", "dec-jan", 0x801},
        {"months", "apr-mar", 0xfff},
        {"days", "sun", 0x01},
        {"days", "mon-fri", 0x3e},
        {"days", "sat-sun", 0x41},
        {"days", "fri-mon", 0x63},
        {"days", "fri-mon,sat,wed", 0x6b},
        {"days", "mon-mon", 0x02},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct tariff tariff;
        char text[256];

        snprintf(text, sizeof(text), PERIODS "  - price: 1\n    %s: \"%s\"\n", cases[i].key,
                 cases[i].value);
        tariff = parsed(text);
        assert_int_equal(cases[i].key[0] == 'm' ? tariff.periods[0].months : tariff.periods[0].days,
                         cases[i].bits);
    }
}

static void a_zone_is_a_name_or_an_offset(void **state)
{
    static const char *const good[] = {"UTC",    "Europe/Paris", "America/Argentina/Buenos_Aires",
                                       "+01:00", "-03:30",       "Etc/GMT+5"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        char text[256];

        snprintf(text, sizeof(text), HEAD "timezone: \"%s\"\n", good[i]);
        assert_string_equal(parsed(text).zone, good[i]);
    }
}

static void errors_name_their_place_and_what_to_write(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "t.yaml:1:1: not a tariff; write at least two lines"},
        {"# nothing\n", "not a tariff"},
        {"- price\n", "t.yaml:1:1: not a tariff"},
        {"0.25\n", "not a tariff"},
        {"price: 1\n", "t.yaml:1:1: currency is missing"},
        {"currency: EUR\n", "t.yaml:1:1: price is missing"},
        {"currency: eur\nprice: 1\n", "t.yaml:1:11: currency: 'eur' is not the code"},
        {"currency: EURO\n", "three capital letters"},
        {"currency:\n", "currency: '' is not"},
        {"currency: [EUR]\n", "currency is a list; write one value"},
        {"price: {}\n", "price is a mapping; write one value"},
        {"price: -0.05\n", "t.yaml:1:8: price: '-0.05' is negative"},
        {"price: cheap\n", "price: 'cheap' is not a number in range; use 0 to 100000"},
        {"price: 0,25\n", "six digits behind a point"},
        {"price: 1e3\n", "not a number"},
        {"price: .5\n", "not a number"},
        {"price: 0.1234567\n", "six digits behind a point"},
        {"price: 100000.000001\n", "not a number in range"},
        {"price: 99999999999999999999999\n", "not a number in range"},
        {"price: 1\nprice: 1\n", "t.yaml:2:1: price is given twice"},
        {"pryce: 1\n", "unknown key 'pryce' (did you mean 'price'?); docs/emissions.md"},
        {"? [a]\n: b\n", "the key is a list"},
        {HEAD "timezone: /etc/passwd\n", "t.yaml:3:11: timezone: '/etc/passwd' is not a time zone"},
        {HEAD "timezone: ../../etc/passwd\n", "use a name such as Europe/Paris"},
        {HEAD "timezone: Europe/../Paris\n", "not a time zone"},
        {HEAD "timezone: Mid dle\n", "not a time zone"},
        {HEAD "timezone: CET-1CEST,M3.5.0,M10.5.0/3\n", "not a time zone"},
        {HEAD "timezone: ''\n", "not a time zone"},
        {HEAD "timezone: +1\n", "not a time zone"},
        {HEAD "timezone: +15:00\n", "not a time zone"},
        {HEAD "timezone: +01:60\n", "not a time zone"},
        {HEAD "timezone: -1:00\n", "not a time zone"},
        {HEAD "timezone: [UTC]\n", "timezone is a list"},
        {HEAD "timezone: " LONG LONG "\n", "not a time zone"},
        {HEAD "periods: 1\n", "t.yaml:3:10: periods is not a list; write '- price: ...'"},
        {HEAD "periods:\n", "periods is not a list"},
        {HEAD "periods: {price: 1}\n", "periods is not a list"},
        {PERIODS "  - 0.25\n", "t.yaml:4:5: not a period; write '- price: ...'"},
        {PERIODS "  - []\n", "not a period"},
        {PERIODS "  - days: mon\n", "t.yaml:4:5: price is missing; add it"},
        {PERIODS "  - price: -1\n", "is negative"},
        {PERIODS "  - price: 1\n    price: 2\n", "t.yaml:5:5: price is given twice"},
        {PERIODS "  - price: 1\n    day: mon\n", "did you mean 'days'"},
        {PERIODS "  - price: 1\n    timezone: UTC\n", "unknown key 'timezone'"},
        {PERIODS "  [{months: january" THE_REST, "months: 'january' is not understood; use jan to"},
        {PERIODS "  [{months: 11-3" THE_REST, "nov-mar"},
        {PERIODS "  [{months: ''" THE_REST, "months: ''"},
        {PERIODS "  [{months: 'jan,'" THE_REST, "months: 'jan,'"},
        {PERIODS "  [{months: ',jan'" THE_REST, "not understood"},
        {PERIODS "  [{months: jan-" THE_REST, "not understood"},
        {PERIODS "  [{months: jan-feb-mar" THE_REST, "not understood"},
        {PERIODS "  [{months: mon" THE_REST, "not understood"},
        {PERIODS "  [{months: [jan, feb]" THE_REST, "months is a list; write one value"},
        {PERIODS "  [{days: weekend" THE_REST, "days: 'weekend' is not understood; use mon to sun"},
        {PERIODS "  [{days: -fri" THE_REST, "sat,sun"},
        {PERIODS "  [{days: jan" THE_REST, "not understood"},
        {PERIODS "  [{days: [sat, sun]" THE_REST, "days is a list"},
        {PERIODS "  [{from: 7" THE_REST, "t.yaml:4:11: from: '7' is not a time; use \"00:00\" to"},
        {PERIODS "  [{from: '7:00'" THE_REST, "is not a time"},
        {PERIODS "  [{from: '07:00:00'" THE_REST, "is not a time"},
        {PERIODS "  [{from: '24:00'" THE_REST, "from: '24:00' is not a time; use \"00:00\""},
        {PERIODS "  [{from: '07:60'" THE_REST, "is not a time"},
        {PERIODS "  [{from: '-1:00'" THE_REST, "is not a time"},
        {PERIODS "  [{from: [1]" THE_REST, "from is a list"},
        {PERIODS "  [{to: '24:01'" THE_REST,
         "to: '24:01' is not a time; use \"00:00\" to \"24:00\""},
        {PERIODS "  [{to: '25:00'" THE_REST, "is not a time"},
        {PERIODS "  [{to: {}" THE_REST, "to is a mapping"},
        {PERIODS "  [{from: '07:00', to: '07:00'" THE_REST, "t.yaml:4:4: from and to are the same"},
        {PERIODS "  [{to: '00:00'" THE_REST, "for the whole day leave both out"},
        {HEAD "---\n", "t.yaml:3:1: a second document"},
        {"price: &p 1\n", "anchors"},
        {"price: \"1\n", "not YAML"},
        {"price: \xff\n", "not UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct tariff tariff = {.period_count = 77};
        struct error err = {""};
        int r = parse(cases[i].text, &tariff, &err);

        if (r != -EINVAL || !strstr(err.text, cases[i].says))
            fail_msg("%s gave %d, '%s'", cases[i].text, r, err.text);
        assert_memory_equal(err.text, "t.yaml:", 7);
        assert_int_equal(tariff.period_count, 77); /* untouched */
    }
}

static void there_are_at_most_64_periods(void **state)
{
    struct tariff tariff;
    struct error err = {""};
    struct buffer text;

    (void)state;
    buffer_init(&text, 1 << 16);
    buffer_str(&text, PERIODS);
    for (uint64_t i = 0; i < TARIFF_PERIODS_MAX; i++) {
        buffer_str(&text, "  - price: ");
        buffer_u64(&text, i);
        buffer_char(&text, '\n');
    }
    assert_int_equal(
        tariff_config_parse((struct span){text.data, text.len}, "t.yaml", &tariff, &err), 0);
    assert_int_equal(tariff.period_count, TARIFF_PERIODS_MAX);
    assert_int_equal(tariff.periods[63].micro_per_kwh, 63000000);
    buffer_str(&text, "  - price: 64\n");
    assert_int_equal(
        tariff_config_parse((struct span){text.data, text.len}, "t.yaml", &tariff, &err), -EINVAL);
    assert_string_equal(err.text, "t.yaml:68:5: more than 64 periods; join some: months and days "
                                  "take lists and ranges");
    buffer_done(&text);
}

/* A file with this many bytes of comment behind a tariff. */
static void write_file(const char *path, size_t comment_bytes)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    _cleanup_free_ char *comment = malloc(comment_bytes + 1);

    assert_true(fd >= 0 && comment);
    memset(comment, '#', comment_bytes + 1);
    assert_int_equal(fs_write_all(fd, HEAD, strlen(HEAD)), 0);
    assert_int_equal(fs_write_all(fd, comment, comment_bytes), 0);
}

static void a_file_is_read_unless_it_is_missing_or_huge(void **state)
{
    char directory[] = "/tmp/wattribute-tariff-XXXXXX", path[64];
    struct tariff tariff = {0};
    struct error err = {""};

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/t.yaml", directory);
    assert_int_equal(tariff_config_load(path, &tariff, &err), -ENOENT);
    assert_non_null(strstr(err.text, "--cost.tariff-file"));
    assert_non_null(strstr(err.text, "cannot be read: No such file or directory; check the path"));
    write_file(path, 0);
    assert_int_equal(tariff_config_load(path, &tariff, &err), 0);
    assert_int_equal(tariff.micro_per_kwh, 182800);
    write_file(path, 64 << 10);
    assert_int_equal(tariff_config_load(path, &tariff, &err), -EFBIG);
    assert_non_null(strstr(err.text, "larger than 64 KiB"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
    assert_int_equal(tariff_config_load(path, &tariff, &err), -ENXIO);
    assert_non_null(strstr(err.text, "cannot be read: Not a regular file"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_sets_its_field),
        cmocka_unit_test(currency_and_price_are_enough),
        cmocka_unit_test(months_and_days_are_lists_of_names_and_ranges),
        cmocka_unit_test(a_zone_is_a_name_or_an_offset),
        cmocka_unit_test(errors_name_their_place_and_what_to_write),
        cmocka_unit_test(there_are_at_most_64_periods),
        cmocka_unit_test(a_file_is_read_unless_it_is_missing_or_huge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
