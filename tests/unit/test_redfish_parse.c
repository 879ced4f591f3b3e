/* fetcher/redfish/redfish_parse: resources of BMCs, well-formed and not. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "fetcher/redfish/redfish_parse.h"

#define SYSTEM "/redfish/v1/Systems/1"

/* Valid until the next call. */
static const struct json *resource(const char *text)
{
    static struct json *tree;

    json_free(TAKE_PTR(tree));
    if (text)
        assert_int_equal(json_read(span_of(text), &tree), 0);
    return tree;
}

static void only_paths_below_the_root_of_the_same_server_are_links(void **state)
{
    static const struct {
        const char *text;
        bool is_path;
    } cases[] = {
        {"/redfish/v1", true},
        {"/redfish/v1/", true},
        {"/redfish/v1/Chassis/System.Embedded.1/Power", true},
        {"/redfish/v1/Chassis/1%20a/Sensors/x~y", true},
        {"", false},
        {"/", false},
        {"redfish/v1/Chassis", false},
        {"/redfish/v1x/Chassis", false},
        {"/redfish/v2/Chassis", false},
        {"/redfish/v1/../../etc", false},
        {"/redfish/v1/./Chassis", false},
        {"/redfish/v1/..", false},
        {"/redfish/v1//Chassis", false},
        {"//other/redfish/v1/Chassis", false},
        {"https://other/redfish/v1/Chassis", false},
        {"/redfish/v1/Chassis?a=b", false},
        {"/redfish/v1/Power#/PowerControl/0", false},
        {"/redfish/v1/a b", false},
        {"/redfish/v1/a\r\nX: y", false},
        {"/redfish/v1/\\other", false},
        {"/redfish/v1/\xc3\xa9", false},
    };
    char long_path[REDFISH_PATH_BYTES + 1] = "/redfish/v1/";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (redfish_is_path(cases[i].text) != cases[i].is_path)
            fail_msg("'%s'", cases[i].text);
    memset(long_path + strlen(long_path), 'a', sizeof(long_path) - 1 - strlen(long_path));
    assert_false(redfish_is_path(long_path));
    long_path[REDFISH_PATH_BYTES - 1] = '\0';
    assert_true(redfish_is_path(long_path));
}

static void links_to_other_places_are_none(void **state)
{
    static const struct {
        const char *text, *path;
    } cases[] = {
        {"{\"Chassis\":{\"@odata.id\":\"/redfish/v1/Chassis\"}}", "/redfish/v1/Chassis"},
        {"{\"Chassis\":{\"@odata.id\":\"https://x/redfish/v1/Chassis\"}}", ""},
        {"{\"Chassis\":{\"@odata.id\":7}}", ""},
        {"{\"Chassis\":\"/redfish/v1/Chassis\"}", ""},
        {"{}", ""},
        {"[]", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct redfish_path path = redfish_link(resource(cases[i].text), "Chassis");

        assert_string_equal(path.text, cases[i].path);
    }
    assert_string_equal(redfish_id(resource("{\"@odata.id\":\"/redfish/v1/a\"}")).text,
                        "/redfish/v1/a");
}

static void members_that_lead_elsewhere_are_left_out(void **state)
{
    struct redfish_members members;

    (void)state;
    redfish_parse_members(
        resource("{\"Members\":[{\"@odata.id\":\"https://x/redfish/v1/Chassis/1\"},"
                 "{\"@odata.id\":\"/redfish/v1/Chassis/2\"},null,{},7]}"),
        &members);
    assert_int_equal(members.count, 1);
    assert_string_equal(members.paths[0].text, "/redfish/v1/Chassis/2");
    redfish_parse_members(resource("{\"Members\":{}}"), &members);
    assert_int_equal(members.count, 0);
}

static void a_collection_without_end_is_cut(void **state)
{
    static char text[64 << 10] = "{\"Members\":[";
    static struct redfish_members members;
    size_t len = strlen(text);

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "%s{\"@odata.id\":\"/redfish/v1/Chassis/%u\"}", i ? "," : "", i);
    snprintf(text + len, sizeof(text) - len, "]}");
    redfish_parse_members(resource(text), &members);
    assert_int_equal(members.count, REDFISH_MEMBERS_MAX);
}

static void a_chassis_is_ranked_by_what_it_holds(void **state)
{
#define SYSTEMS "\"Links\":{\"ComputerSystems\":[{\"@odata.id\":\"" SYSTEM "\"}]}"
    static const struct {
        const char *text;
        enum redfish_rank rank;
    } cases[] = {
        {"{\"ChassisType\":\"RackMount\"," SYSTEMS "}", REDFISH_NODE},
        {"{\"ChassisType\":\"Blade\",\"Status\":{\"State\":\"Enabled\"}," SYSTEMS "}",
         REDFISH_NODE},
        {"{" SYSTEMS "}", REDFISH_UNKNOWN},
        {"{\"ChassisType\":\"Other\"," SYSTEMS "}", REDFISH_UNKNOWN},
        {"{\"ChassisType\":\"Module\"," SYSTEMS "}", REDFISH_PART},
        {"{\"ChassisType\":\"Enclosure\"," SYSTEMS "}", REDFISH_PART},
        {"{\"ChassisType\":\"RackMount\",\"Status\":{\"State\":\"Absent\"}," SYSTEMS "}",
         REDFISH_NO_NODE},
        {"{\"ChassisType\":\"RackMount\"}", REDFISH_NO_NODE},
        {"{\"ChassisType\":\"RackMount\",\"Links\":{\"ComputerSystems\":[]}}", REDFISH_NO_NODE},
    };
#undef SYSTEMS

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct redfish_chassis chassis = redfish_parse_chassis(resource(cases[i].text));

        if (chassis.rank != cases[i].rank)
            fail_msg("%s is %d", cases[i].text, (int)chassis.rank);
        assert_string_equal(chassis.environment.text, "");
    }
}

static void a_supply_that_is_not_enabled_is_not_in_use(void **state)
{
    static const struct {
        const char *text;
        bool is_in_use;
    } cases[] = {
        {"{\"Status\":{\"State\":\"Enabled\"}}", true},
        {"{\"Status\":{}}", true},
        {"{}", true},
        {"{\"Status\":{\"State\":\"Absent\"}}", false},
        {"{\"Status\":{\"State\":\"UnavailableOffline\"}}", false},
        {"{\"Status\":{\"State\":\"StandbyOffline\"}}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(redfish_is_in_use(resource(cases[i].text)), cases[i].is_in_use);
}

static void watts_are_integers_or_reals_that_a_node_can_draw(void **state)
{
    static const struct {
        const char *reading;
        int r;
        uint64_t power_mw;
    } cases[] = {
        {"612", 0, 612000},
        {"612.5", 0, 612500},
        {"0.0004", 0, 0},
        {"6.12e2", 0, 612000},
        {"49999.999", 0, 49999999},
        {"50000", -ENODATA, 0},
        {"0", 0, 0},
        {"0.0", 0, 0},
        {"-3", -ENODATA, 0},
        {"-0.5", -ENODATA, 0},
        {"null", -ENODATA, 0},
        {"\"612\"", -ENODATA, 0},
        {"true", -ENODATA, 0},
        {"{}", -ENODATA, 0},
        {"1e300", -ENODATA, 0},
        {"65535", -ENODATA, 0},
        {"9223372036854775807", -ENODATA, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t power_mw = 77;
        char text[128];
        int r;

        snprintf(text, sizeof(text), "{\"PowerWatts\":{\"Reading\":%s}}", cases[i].reading);
        r = redfish_parse_sensor(resource(text), "PowerWatts", &power_mw);
        if (r != cases[i].r || power_mw != (r == 0 ? cases[i].power_mw : 77))
            fail_msg("%s gave %d, %llu mW", cases[i].reading, r, (unsigned long long)power_mw);
    }
}

static void a_reading_that_is_not_there_is_none(void **state)
{
    static const char *const cases[] = {"{}", "{\"PowerWatts\":612}", "[]",
                                        "{\"InputPowerWatts\":{\"Reading\":1}}"};
    uint64_t power_mw = 77;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(redfish_parse_sensor(resource(cases[i]), "PowerWatts", &power_mw),
                         -ENODATA);
    assert_int_equal(power_mw, 77);
}

static void the_power_control_of_the_system_wins(void **state)
{
#define WATTS(n) "\"PowerConsumedWatts\":" #n
#define OF_SYSTEM                                                                                  \
    "\"RelatedItem\":[{\"@odata.id\":\"/redfish/v1/Chassis/1\"},{\"@odata.id\":\"" SYSTEM "\"}]"
    static const struct {
        const char *controls;
        uint64_t power_w; /* 0: none */
    } cases[] = {
        {"{" WATTS(611) "}", 611},
        {"{\"PhysicalContext\":\"Chassis\"," WATTS(611) "}", 611},
        {"{\"PhysicalContext\":\"CPU\"," WATTS(150) "},{" WATTS(611) "}", 611},
        {"{" WATTS(611) "},{" WATTS(300) "}", 611},
        {"{" WATTS(300) "},{" WATTS(611) "," OF_SYSTEM "}", 611},
        {"{" WATTS(611) "," OF_SYSTEM "},{" WATTS(300) "," OF_SYSTEM "}", 611},
        {"{\"PhysicalContext\":\"Memory\"," WATTS(50) "," OF_SYSTEM "},{" WATTS(611) "}", 611},
        {"{" WATTS(null) "},{" WATTS(611) "}", 611},
        {"{" WATTS(null) "," OF_SYSTEM "},{" WATTS(611) "}", 611},
        {"{" WATTS(0) "}", 0},
        {"{\"Status\":{\"State\":\"Absent\"}," WATTS(611) "}", 0},
        {"{\"PhysicalContext\":\"GPU\"," WATTS(611) "}", 0},
        {"", 0},
        {"null,7,[]", 0},
    };
#undef WATTS
#undef OF_SYSTEM

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t power_mw = 0;
        char text[512];
        int r;

        snprintf(text, sizeof(text), "{\"PowerControl\":[%s]}", cases[i].controls);
        r = redfish_parse_power(resource(text), SYSTEM, &power_mw);
        if (r != (cases[i].power_w ? 0 : -ENODATA) || power_mw != cases[i].power_w * 1000)
            fail_msg("%s gave %d, %llu mW", text, r, (unsigned long long)power_mw);
    }
}

static void without_a_control_the_supplies_are_summed_all_or_none(void **state)
{
#define SUPPLY(state, watts) "{\"Status\":{\"State\":\"" state "\"},\"PowerInputWatts\":" watts "}"
    static const struct {
        const char *supplies;
        uint64_t power_w; /* 0: none */
    } cases[] = {
        {SUPPLY("Enabled", "311") "," SUPPLY("Enabled", "300"), 611},
        {SUPPLY("Enabled", "611") "," SUPPLY("Enabled", "0"), 611},
        {SUPPLY("Enabled", "611") "," SUPPLY("Absent", "null"), 611},
        {SUPPLY("Enabled", "311") "," SUPPLY("Enabled", "null"), 0},
        {SUPPLY("Enabled", "49999") "," SUPPLY("Enabled", "49999"), 0},
        {SUPPLY("Enabled", "0"), 0},
        {SUPPLY("Absent", "311"), 0},
    };
#undef SUPPLY

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t power_mw = 0;
        char text[512];
        int r;

        snprintf(text, sizeof(text), "{\"PowerControl\":[{}],\"PowerSupplies\":[%s]}",
                 cases[i].supplies);
        r = redfish_parse_power(resource(text), "", &power_mw);
        if (r != (cases[i].power_w ? 0 : -ENODATA) || power_mw != cases[i].power_w * 1000)
            fail_msg("%s gave %d, %llu mW", text, r, (unsigned long long)power_mw);
    }
}

static void an_error_has_a_message(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"error\":{\"message\":\"see\",\"@Message.ExtendedInfo\":[{\"Message\":\"no such"
         " thing\"}]}}",
         "no such thing"},
        {"{\"error\":{\"message\":\"busy\"}}", "busy"},
        {"{\"error\":7}", ""},
        {NULL, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(redfish_error_message(resource(cases[i].text)), cases[i].message);
    (void)resource(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_paths_below_the_root_of_the_same_server_are_links),
        cmocka_unit_test(links_to_other_places_are_none),
        cmocka_unit_test(members_that_lead_elsewhere_are_left_out),
        cmocka_unit_test(a_collection_without_end_is_cut),
        cmocka_unit_test(a_chassis_is_ranked_by_what_it_holds),
        cmocka_unit_test(a_supply_that_is_not_enabled_is_not_in_use),
        cmocka_unit_test(watts_are_integers_or_reals_that_a_node_can_draw),
        cmocka_unit_test(a_reading_that_is_not_there_is_none),
        cmocka_unit_test(the_power_control_of_the_system_wins),
        cmocka_unit_test(without_a_control_the_supplies_are_summed_all_or_none),
        cmocka_unit_test(an_error_has_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
