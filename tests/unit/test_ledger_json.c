/* metrics/ledger_json: the books in exact integers, against golden files. */
#include "unit.h"

#include <string.h>

#include "../golden/golden.h"
#include "core/macros.h"
#include "metrics/ledger_json.h"

enum { CAP_BYTES = 1 << 20 };

#define NO_NAMES                                                                                   \
    {                                                                                              \
        "", "", "", "", ""                                                                         \
    }

static const struct snapshot_meter meters[] = {
    {.gpu = 0,
     .meter_id = "GPU-79185bc1-0000-4000-8000-000000000000",
     .has_uncertainty = true,
     .has_counter = true,
     .counter_uj = 1,
     .energy_uj = 9007199254740993, /* 2^53 + 1 */
     .unowned_uj = {1, 20, 300, 4000}},
    {.gpu = 63, .meter_id = "a\"b\\c\nd\xff", .energy_uj = UINT64_MAX, .resets = 2},
};

static const struct snapshot_process processes[] = {
    {.gpu = 0, .pid = 0, .name = "cut by --max-processes", .active_uj = 600, .idle_uj = 66},
    {.gpu = 0,
     .pid = 100,
     .name = "measured",
     .active_uj = 5,
     .idle_uj = 1,
     .measured_uj = 6,
     .known_uj = 6,
     .valid = SNAPSHOT_PROCESS_UNCERTAINTY},
    /* In the sums a superseded process counts, so here it is listed. */
    {.gpu = 0, .pid = 101, .superseded = true, .name = "was before", .active_uj = 7},
    /* One measured, and of the shared ones half is known. */
    {.gpu = 0,
     .pid = 101,
     .name = "shared",
     .active_uj = 2,
     .idle_uj = 1,
     .measured_uj = 1,
     .known_uj = 2,
     .uncertain_uj = 1,
     .valid = SNAPSHOT_PROCESS_UNCERTAINTY},
    {.gpu = 63, .pid = INT32_MAX, .name = "without energy"},
    {.gpu = 63,
     .pid = 102,
     .name = "large",
     .active_uj = 1ULL << 62,
     .idle_uj = 1ULL << 62,
     .measured_uj = 1ULL << 60,
     .known_uj = 1ULL << 61},
};

static void the_ledger_is_that_of_the_golden_file(void **state)
{
    static const struct snapshot snapshot = {
        .meters = meters,
        .meter_count = ARRAY_SIZE(meters),
        .processes = processes,
        .process_count = ARRAY_SIZE(processes),
    };
    struct buffer json;

    (void)state;
    buffer_init(&json, CAP_BYTES);
    ledger_json(&snapshot, &json);
    golden_check("ledger.json", &json);
    buffer_done(&json);
}

static void a_node_with_meters_of_its_own_shows_workloads_and_what_is_only_observed(void **state)
{
    static const struct snapshot_meter node[] = {
        {.kind = METER_PACKAGE, .meter_id = "0", .energy_uj = 100, .unowned_uj = {1, 20, 3, 4}},
    };
    static const struct snapshot_workload workloads[] = {
        {.kind = WORKLOAD_SLURM,
         .id = "31",
         .names = NO_NAMES,
         .account = {.energy_uj = {{0, 60}, {0, 2}}}},
        {.kind = WORKLOAD_USER,
         .id = "\"1000\"",
         .names = NO_NAMES,
         .account = {.energy_uj = {{0, 10}}}},
    };
    static const struct snapshot_observed observed[] = {{METER_PSYS, "0", 7}};
    static const struct snapshot snapshot = {
        .meters = node,
        .meter_count = 1,
        .workloads = workloads,
        .workload_count = ARRAY_SIZE(workloads),
        .observed = observed,
        .observed_count = 1,
    };
    struct buffer json;

    (void)state;
    buffer_init(&json, CAP_BYTES);
    ledger_json(&snapshot, &json);
    buffer_char(&json, '\0');
    assert_string_equal(
        json.data,
        "{\"meters\":[\n"
        " {\"meter\":\"package\",\"meter_id\":\"0\",\"energy_uj\":100,\"idle_uj\":1,"
        "\"system_uj\":20,\"unattributed_uj\":3,\"gap_uj\":4,\"resets\":0}],\n"
        "\"processes\":[],\n"
        "\"workloads\":[\n"
        " {\"kind\":\"slurm\",\"id\":\"31\",\"meter\":\"package\",\"meter_id\":\"0\","
        "\"energy_uj\":62},\n"
        " {\"kind\":\"user\",\"id\":\"\\\"1000\\\"\",\"meter\":\"package\",\"meter_id\":\"0\","
        "\"energy_uj\":10}],\n"
        "\"observed\":[\n"
        " {\"meter\":\"psys\",\"meter_id\":\"0\",\"counter_uj\":7}]}\n");
    buffer_done(&json);
}

static void workloads_with_names_are_shown_also_where_there_are_only_gpus(void **state)
{
    static const struct snapshot_workload workloads[] = {
        {.kind = WORKLOAD_POD,
         .id = "abc",
         .names = {"train", "ml", "train", "\"worker\"", ""},
         .account = {.energy_uj = {{0, 60}}, .uncertain_uj = 9}},
        {.kind = WORKLOAD_PROCESS, .id = "7", .names = NO_NAMES, .account = {.energy_uj = {{4}}}},
    };
    struct snapshot snapshot = {
        .meters = meters,
        .meter_count = 1,
        .workloads = workloads,
        .workload_count = ARRAY_SIZE(workloads),
    };
    struct buffer json;

    (void)state;
    buffer_init(&json, CAP_BYTES);
    ledger_json(&snapshot, &json);
    buffer_char(&json, '\0');
    assert_non_null(strstr(
        json.data,
        "\"processes\":[],\n\"workloads\":[\n"
        " {\"kind\":\"pod\",\"id\":\"abc\",\"name\":\"train\",\"namespace\":\"ml\",\"pod\":\"train\","
        "\"container\":\"\\\"worker\\\"\",\"meter\":\"gpu\","
        "\"meter_id\":\"GPU-79185bc1-0000-4000-8000-000000000000\",\"energy_uj\":60,"
        "\"uncertainty_uj\":9},\n"
        " {\"kind\":\"process\",\"id\":\"7\",\"meter\":\"gpu\","
        "\"meter_id\":\"GPU-79185bc1-0000-4000-8000-000000000000\",\"energy_uj\":4,"
        "\"uncertainty_uj\":0}]}\n"));
    buffer_done(&json);
    /* Without a name, workloads add nothing to processes. */
    snapshot.workloads = &workloads[1];
    snapshot.workload_count = 1;
    buffer_init(&json, CAP_BYTES);
    ledger_json(&snapshot, &json);
    buffer_char(&json, '\0');
    assert_null(strstr(json.data, "workloads"));
    buffer_done(&json);
}

static void an_empty_ledger_is_an_object_of_empty_lists(void **state)
{
    static const struct snapshot snapshot;
    struct buffer json;

    (void)state;
    buffer_init(&json, CAP_BYTES);
    ledger_json(&snapshot, &json);
    buffer_char(&json, '\0');
    assert_string_equal(json.data, "{\"meters\":[],\n\"processes\":[]}\n");
    buffer_done(&json);
}

static void confidence_is_the_known_part_in_millionths(void **state)
{
    static const struct {
        uint64_t known_uj, energy_uj;
        int64_t millionths;
    } cases[] = {
        {0, 0, 0},
        {0, 1, 0},
        {1, 1, 1000000},
        {1, 3, 333333},
        {2, 3, 666666}, /* rounded down: never more certain than it is */
        {999999999, 1000000000, 999999},
        {UINT64_MAX, UINT64_MAX, 1000000},
        {UINT64_MAX / 2, UINT64_MAX, 499999},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(confidence_millionths(cases[i].known_uj, cases[i].energy_uj),
                         cases[i].millionths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledger_is_that_of_the_golden_file),
        cmocka_unit_test(a_node_with_meters_of_its_own_shows_workloads_and_what_is_only_observed),
        cmocka_unit_test(workloads_with_names_are_shown_also_where_there_are_only_gpus),
        cmocka_unit_test(an_empty_ledger_is_an_object_of_empty_lists),
        cmocka_unit_test(confidence_is_the_known_part_in_millionths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
