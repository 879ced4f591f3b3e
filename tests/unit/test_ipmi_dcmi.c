/* sources/bmc/ipmi: responses of a BMC, byte by byte. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "sources/bmc/ipmi.h"

#define VALUES "00 dc 2c 01 44 00 f8 01 5c 01"
#define TIMES  VALUES " 10 20 30 65 e8 03 00 00"
#define ZEROS  " 00 00 00 00 00 00"

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Pairs of hexadecimal digits with one blank in between. */
static struct span bytes_of(const char *hex, char buffer[static 32])
{
    size_t len = 0;

    for (; *hex; hex += hex[2] ? 3 : 2)
        buffer[len++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
    assert_true(len <= 32);
    return (struct span){buffer, len};
}

static void readings_are_taken_as_the_bmc_gives_them(void **state)
{
    static const struct {
        const char *what, *hex;
        uint16_t current_w;
        uint32_t time_s;
    } cases[] = {
        {"whole", TIMES " 40", 300, 0x65302010},
        {"reserved bits set", TIMES " ff", 300, 0x65302010},
        {"inactive", TIMES " bf", 300, 0x65302010}, /* OpenBMC is always, and measures */
        {"OpenBMC", "00 dc 3f 01 3f 01 3f 01 3f 01" ZEROS " 00 00 00", 319, 0},
        {"no state", TIMES, 300, 0x65302010},
        {"times cut", VALUES " 10 20 30 65 e8", 300, 0},
        {"four values", VALUES, 300, 0},
        {"longer", TIMES " 40 01 02", 300, 0x65302010},
        {"no statistics", "00 dc 01 00" ZEROS ZEROS " 00 00 40", 1, 0},
        {"high bytes", "00 dc 4f c3 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 40", 49999,
         UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};
        struct dcmi_power power;
        char buffer[32];

        if (dcmi_parse_power(bytes_of(cases[i].hex, buffer), &power, &err) < 0)
            fail_msg("%s: %s", cases[i].what, err.text);
        assert_int_equal(power.current_w, cases[i].current_w);
        assert_int_equal(power.time_s, cases[i].time_s);
    }
}

static uint64_t hash_of(const char *hex)
{
    struct dcmi_power power;
    char buffer[32];

    assert_int_equal(dcmi_parse_power(bytes_of(hex, buffer), &power, NULL), 0);
    return power.hash;
}

static void readings_differ_by_any_statistic_but_not_by_their_state(void **state)
{
    static const char *const others[] = {
        "00 dc 2d 01 44 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 45 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f9 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5d 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5c 01 11 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5c 01 10 20 30 65 e9 03 00 00 40",
    };

    (void)state;
    assert_true(hash_of(TIMES " 40") == hash_of(TIMES " 00"));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_true(hash_of(TIMES " 40") != hash_of(others[i]));
}

static void what_is_no_reading_is_refused_with_its_reason(void **state)
{
    static const struct {
        const char *hex;
        int r;
        const char *text;
    } cases[] = {
        {"c0", -EAGAIN, "busy"},
        {"c1", -EOPNOTSUPP, "does not know the command (completion code 0xc1)"},
        {"c1 dc", -EOPNOTSUPP, "0xc1"},
        {"c3", -ETIMEDOUT, "timeout"},
        {"c7", -EOPNOTSUPP, "length"},
        {"c9", -EOPNOTSUPP, "range"},
        {"cb", -ENODATA, "sensor"},
        {"cc", -EOPNOTSUPP, "invalid field"},
        {"ce", -ENODATA, "cannot provide"},
        {"d1", -EBUSY, "updated"},
        {"d2", -EBUSY, "starting"},
        {"d4", -EOPNOTSUPP, "privilege"},
        {"d5", -ENODATA, "present state"},
        {"d6", -ENODATA, "disabled"},
        {"ff", -EAGAIN, "unspecified"},
        {"80", -EAGAIN, "completion code 0x80"},
        {"00 dc" ZEROS ZEROS " 00 00 00 00 00", -ENODATA, "0 W, measuring inactive"},
        {"00 dc" ZEROS ZEROS " 00 00 00 00 40", -ENODATA, "0 W, measuring active"},
        {"00 dc 00 00 44 00 f8 01 5c 01", -ENODATA, "0 W"},
        {"00 dc ff ff" ZEROS, -ENODATA, "65535 W"},
        {"00 dc 50 c3" ZEROS, -ENODATA, "50000 W"},
        {"00 dc ff 7f" ZEROS, -ENODATA, "32767 W"},
        {"00 aa 2c 01 44 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40", -EBADMSG, "group 0xaa"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dcmi_power power = {.current_w = 77};
        struct error err = {""};
        char buffer[32];

        assert_int_equal(dcmi_parse_power(bytes_of(cases[i].hex, buffer), &power, &err),
                         cases[i].r);
        if (!strstr(err.text, cases[i].text))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].text);
        assert_int_equal(power.current_w, 77);
    }
}

static void an_answer_without_its_four_values_is_refused(void **state)
{
    char buffer[32];
    struct span whole = bytes_of(VALUES, buffer);

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        struct dcmi_power power;

        assert_int_equal(dcmi_parse_power((struct span){whole.data, len}, &power, NULL), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_taken_as_the_bmc_gives_them),
        cmocka_unit_test(readings_differ_by_any_statistic_but_not_by_their_state),
        cmocka_unit_test(what_is_no_reading_is_refused_with_its_reason),
        cmocka_unit_test(an_answer_without_its_four_values_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
