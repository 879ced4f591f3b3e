/* metrics/node_json: the document of /api/v1/node, whole, and what must never be in it. */
#include "unit.h"

#include <string.h>

#include "../golden/golden.h"
#include "core/json_reader.h"
#include "core/macros.h"
#include "core/utf8.h"
#include "metrics/node_json.h"

enum { CAP_BYTES = 1 << 20 };

#define HOSTILE   "<img onerror=alert(1)>\"\\\n\xff\x1b[0m caf\xc3\xa9 \xe2\x80\xa8"
#define CONTAINER "a3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define NAMELESS  .names = {"", "", "", "", ""}

static const struct snapshot_meter meters[] = {
    {.gpu = 3,
     .meter_id = "GPU-3",
     .has_uncertainty = true,
     .has_counter = true,
     .counter_uj = 15503172001,
     .energy_uj = 9007199254740993, /* 2^53 + 1: through a double it would be another number */
     .pending_uj = 250000,
     .unowned_uj = {1000000, 2000001, 3000020, 4000300},
     .settled_until_us = 1785000099500000,
     .power_mw = 412345.6,
     .measured_mw = 413000,
     .unowned_mw = {70000.4, 0, 1.5, 0}},
    /* Another board has its index; nothing was booked for long. */
    {.gpu = 3,
     .replaced = true,
     .meter_id = HOSTILE,
     .energy_uj = 7,
     .imbalance_uj = -1,
     .power_mw = -1,
     .measured_mw = -1},
    {.kind = METER_PACKAGE,
     .meter_id = "0",
     .modelled = true,
     .energy_uj = 5000000,
     .power_mw = 20000,
     .measured_mw = -1},
};

static const struct snapshot_workload workloads[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .meter = 0,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 2000000, 0, 0}},
                 .known_uj = 1850000,
                 .uncertain_uj = 48000,
                 .bill = {BILL_ONE / 1000 * 1500, BILL_ONE / 1000 * 25, 0}},
     .power_mw = 342000},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .meter = 1,
     .power_mw = 99000}, /* of a meter that is not booked now */
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .meter = 2,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 0, 0, 1000000}}},
     .power_mw = 12000.25},
    {.kind = WORKLOAD_UNIT,
     .id = HOSTILE ".service",
     .names = {.name = HOSTILE, .namespace = "", .pod = "", .container = ""},
     .meter = 2,
     .power_mw = 8000},
    {.kind = WORKLOAD_RETIRED,
     .id = "1785000100.000042",
     NAMELESS,
     .meter = 0,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 3000000, 0, 0}}},
     .power_mw = -1},
};

static const struct snapshot_usage usages[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .usage = {.valid = 1U << USAGE_CPU_US | 1U << USAGE_MEMORY_USED_BYTES,
               .values = {[USAGE_CPU_US] = 3000003, [USAGE_MEMORY_USED_BYTES] = 4096}}},
    /* It has used no energy yet. */
    {.kind = WORKLOAD_SLURM,
     .id = "211",
     .names = {.name = "211", .namespace = "", .pod = "", .container = ""}},
};

static const struct snapshot_info infos[] = {
    {.kind = WORKLOAD_SLURM,
     .id = "211",
     .namespace = "",
     .pod = "late",
     .container = "",
     .image = "",
     .user = "alice",
     .account = HOSTILE,
     .job_id = "211",
     .job_name = "",
     .uuid = "",
     .container_id = "",
     .pod_uid = "",
     .unverified = "account,job_name"},
};

static const struct snapshot_process processes[] = {
    {.kind = WORKLOAD_SYSTEM, .id = "system", .gpu = 3, .pid = 1, .name = "init", NAMELESS},
    {.kind = WORKLOAD_OTHER, .id = "other", .gpu = 3, .pid = 0, .name = "", NAMELESS},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .gpu = 3,
     .pid = 100,
     .valid = SNAPSHOT_PROCESS_MEMORY | SNAPSHOT_PROCESS_START | SNAPSHOT_PROCESS_UNCERTAINTY,
     .name = "python3",
     NAMELESS,
     .active_uj = 1000000,
     .idle_uj = 500000,
     .uncertain_uj = 7,
     .memory_bytes = 4000,
     .start_us = 1785000000123456},
    {.kind = WORKLOAD_POD, .id = CONTAINER, .gpu = 3, .pid = 101, .name = HOSTILE, NAMELESS},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .gpu = 3,
     .pid = 102,
     .hidden = true,
     .name = "hidden",
     NAMELESS},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .gpu = 3,
     .pid = 103,
     .superseded = true,
     .name = "superseded",
     NAMELESS},
};

static const struct snapshot_allocation allocations[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     NAMELESS,
     .gpu = 3,
     .uuid = "GPU-3",
     .source = ALLOCATED_BY_KUBELET},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     NAMELESS,
     .gpu = 4,
     .uuid = HOSTILE,
     .has_instance = true,
     .gpu_instance = 1,
     .source = ALLOCATED_BY_ENVIRONMENT,
     .is_unverified = true},
};

static const struct snapshot_instance instances[] = {
    {.gpu_instance = 1,
     .profile = "1g.18gb",
     .valid = 1ULL << GPU_GAUGE_POWER_MW,
     .gauges = {[GPU_GAUGE_POWER_MW] = 61500}},
};

static const struct snapshot_gpu gpus[] = {
    {.gpu = 3,
     .uuid = "GPU-3",
     .name = "NVIDIA H200",
     .driver = "580.159.04",
     .sharing = GPU_SHARING_MIG,
     .valid = (1ULL << GPU_GAUGE_COUNT) - 1,
     .gauges = {[GPU_GAUGE_POWER_MW] = 413001,
                [GPU_GAUGE_UTILISATION_PERCENT] = 99,
                [GPU_GAUGE_TEMPERATURE_C] = 64,
                [GPU_GAUGE_MEMORY_TOTAL_BYTES] = 150754820096ULL,
                [GPU_GAUGE_MEMORY_USED_BYTES] = 1000},
     .instances = instances,
     .instance_count = ARRAY_SIZE(instances)},
};

static const struct snapshot_source sources[] = {
    {.name = "nvml/0", .up = true, .age_us = 400000, .errors = 2},
    {.name = "rapl"},
};

static const struct snapshot full = {
    .time_us = 1785000100000001,
    .start_us = 1785000000000000,
    .node = HOSTILE,
    .replay_active = true,
    .price = {.factor = {.known = true, .ug_per_kwh = 56100000},
              .cost = {.known = true, .micro_per_kwh = 210000, .currency = "EUR"},
              .pue_millionths = 1250000},
    .meters = meters,
    .meter_count = ARRAY_SIZE(meters),
    .workloads = workloads,
    .workload_count = ARRAY_SIZE(workloads),
    .usages = usages,
    .usage_count = ARRAY_SIZE(usages),
    .infos = infos,
    .info_count = ARRAY_SIZE(infos),
    .processes = processes,
    .process_count = ARRAY_SIZE(processes),
    .allocations = allocations,
    .allocation_count = ARRAY_SIZE(allocations),
    .gpus = gpus,
    .gpu_count = ARRAY_SIZE(gpus),
    .sources = sources,
    .source_count = ARRAY_SIZE(sources),
};

static struct buffer render(const struct snapshot *snapshot, enum expose expose)
{
    const struct node_json_options options = {
        .version = "1.2.3", .expose = expose, .generation = 4711};
    struct buffer document;

    buffer_init(&document, CAP_BYTES);
    node_json(snapshot, &options, &document);
    assert_false(buffer_failed(&document));
    return document;
}

static void the_document_is_as_the_golden_file(void **state)
{
    struct buffer document = render(&full, EXPOSE_ALL);

    (void)state;
    buffer_char(&document, '\n');
    golden_check("node.json", &document);
    buffer_done(&document);
}

static void an_empty_node_has_a_whole_document(void **state)
{
    const struct snapshot nothing = {.node = "n"};
    struct buffer document = render(&nothing, EXPOSE_ALL);

    (void)state;
    buffer_char(&document, '\0');
    assert_string_equal(document.data,
                        "{\"api\":1,\"version\":\"1.2.3\",\"node\":\"n\",\"time\":0,"
                        "\"start_time\":0,\"generation\":4711,\"meters\":[],\"workloads\":[],"
                        "\"system_processes\":[],\"gpus\":[],\"sources\":[]}");
    buffer_done(&document);
}

static void hostile_names_leave_one_line_of_printable_utf8(void **state)
{
    struct buffer document = render(&full, EXPOSE_ALL);
    struct span rest = {document.data, document.len};
    struct json *parsed;

    (void)state;
    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);

        assert_true(len > 0 && (unsigned char)rest.data[0] >= ' ');
        rest = (struct span){rest.data + len, rest.len - len};
    }
    assert_int_equal(json_read((struct span){document.data, document.len}, &parsed), 0);
    assert_string_equal(json_text(json_get(json_at(json_get(parsed, "meters"), 1), "meter_id")),
                        "<img onerror=alert(1)>\"\\\n" UTF8_REPLACEMENT
                        "\x1b[0m caf\xc3\xa9 \xe2\x80\xa8");
    json_free(parsed);
    buffer_done(&document);
}

static void what_is_not_to_be_exposed_is_not_in_it(void **state)
{
    struct buffer document = render(&full, EXPOSE_PODS);

    (void)state;
    buffer_char(&document, '\0');
    assert_non_null(strstr(document.data, "train-0"));
    assert_null(strstr(document.data, "\"kind\":\"slurm\""));
    assert_null(strstr(document.data, "\"kind\":\"unit\""));
    assert_null(strstr(document.data, "\"pid\""));
    buffer_done(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_is_as_the_golden_file),
        cmocka_unit_test(an_empty_node_has_a_whole_document),
        cmocka_unit_test(hostile_names_leave_one_line_of_printable_utf8),
        cmocka_unit_test(what_is_not_to_be_exposed_is_not_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
