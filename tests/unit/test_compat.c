/* metrics/compat: pages under the names of other exporters, whole. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "../golden/golden.h"
#include "core/macros.h"
#include "metrics/exposition.h"

enum { CAP_BYTES = 1 << 20 };

#define GPU_0  "GPU-79185bc1-0000-4000-8000-000000000000"
#define GPU_1  "GPU-79185bc1-0000-4000-8000-000000000001"
#define POD    "2c9f8a79-5391-454b-88cb-86190881cb96"
#define WORKER "a3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define HELPER "b3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define WEB    "c3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define J      UINT64_C(1000000)

enum { GPU0, PACKAGE0, PACKAGE1, DRAM0, MODEL };

static const struct snapshot_meter meters[] = {
    [GPU0] = {.kind = METER_GPU, .meter_id = GPU_0, .has_counter = true, .counter_uj = 15503172900},
    [PACKAGE0] = {.kind = METER_PACKAGE,
                  .meter_id = "0",
                  .has_counter = true,
                  .counter_uj = 5000 * J,
                  .measured_mw = 61500.4},
    [PACKAGE1] = {.kind = METER_PACKAGE,
                  .meter_id = "1",
                  .has_counter = true,
                  .counter_uj = 7000 * J + 1,
                  .measured_mw = 83000},
    /* Its power is not known yet. */
    [DRAM0] = {.kind = METER_DRAM,
               .meter_id = "0",
               .has_counter = true,
               .counter_uj = 300 * J,
               .measured_mw = -1},
    /* An estimate is under no name that does not say so. */
    [MODEL] = {.kind = METER_PACKAGE,
               .meter_id = "model",
               .modelled = true,
               .has_counter = true,
               .counter_uj = 999 * J,
               .measured_mw = 999},
};

static const struct snapshot_observed observed[] = {{METER_PSYS, "0", 20000 * J}};

static const struct snapshot_node_power node_powers[] = {{"ipmi", 450000}, {"redfish", 451000}};

static const struct snapshot_instance instances[] = {
    {.gpu_instance = 1,
     .profile = "3g.71gb",
     .valid = 1ULL << GPU_GAUGE_POWER_MW | 1ULL << GPU_GAUGE_MEMORY_USED_BYTES,
     .gauges = {[GPU_GAUGE_POWER_MW] = 61500, [GPU_GAUGE_MEMORY_USED_BYTES] = 5 << 20}},
};

static const struct snapshot_gpu gpus[] = {
    {.gpu = 0,
     .uuid = GPU_0,
     .name = "NVIDIA H200",
     .driver = "580.159.04",
     .has_minor = true,
     .minor = 3,
     .pci = "0000:1b:00.0",
     .valid = (1ULL << GPU_GAUGE_COUNT) - 1,
     .gauges =
         {
             [GPU_GAUGE_POWER_MW] = 123162,
             [GPU_GAUGE_UTILISATION_PERCENT] = 99,
             [GPU_GAUGE_MEMORY_UTILISATION_PERCENT] = 45,
             [GPU_GAUGE_SM_CLOCK_MHZ] = 1980,
             [GPU_GAUGE_MEMORY_CLOCK_MHZ] = 3201,
             [GPU_GAUGE_TEMPERATURE_C] = 64,
             [GPU_GAUGE_MEMORY_TEMPERATURE_C] = 70,
             [GPU_GAUGE_MEMORY_RESERVED_BYTES] = 644939776,
             [GPU_GAUGE_MEMORY_USED_BYTES] = 7 << 20,
             [GPU_GAUGE_MEMORY_FREE_BYTES] = 150109879320ULL,
             [GPU_GAUGE_PCIE_REPLAYS] = 2,
         }},
    /* In MIG mode, without a meter. */
    {.gpu = 1,
     .uuid = GPU_1,
     .name = "NVIDIA H200",
     .driver = "580.159.04",
     .pci = "",
     .sharing = GPU_SHARING_MIG,
     .valid = 1ULL << GPU_GAUGE_POWER_MW | 1ULL << GPU_GAUGE_MEMORY_USED_BYTES,
     .gauges = {[GPU_GAUGE_POWER_MW] = 200000, [GPU_GAUGE_MEMORY_USED_BYTES] = 9 << 20},
     .instances = instances,
     .instance_count = ARRAY_SIZE(instances)},
};

#define NAMED(container_)                                                                          \
    .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = (container_)},  \
    .pod_uid = POD
#define ACTIVE_IDLE(active, idle)                                                                  \
    .account = {.energy_uj = {[TIER_ACTIVE] = {0, active, 0, 0}, [TIER_IDLE] = {0, idle, 0, 0}}}

static const struct snapshot_workload workloads[] = {
    {WORKLOAD_POD, HELPER, NAMED("helper"), .container_id = HELPER, .meter = PACKAGE0,
     ACTIVE_IDLE(10 * J, 0), .power_mw = 1000},
    {WORKLOAD_POD, WORKER, NAMED("worker"), .container_id = WORKER, .meter = GPU0,
     ACTIVE_IDLE(900 * J, 100 * J), .power_mw = 99000},
    {WORKLOAD_POD, WORKER, NAMED("worker"), .container_id = WORKER, .meter = PACKAGE0,
     ACTIVE_IDLE(20 * J, 0), .power_mw = 2000},
    {WORKLOAD_POD, WORKER, NAMED("worker"), .container_id = WORKER, .meter = PACKAGE1,
     ACTIVE_IDLE(40 * J, 0), .power_mw = 4000.4},
    {WORKLOAD_POD, WORKER, NAMED("worker"), .container_id = WORKER, .meter = MODEL,
     ACTIVE_IDLE(80 * J, 0), .power_mw = 8000},
    {WORKLOAD_CONTAINER, WEB, .names = {"web", "", "", "", NULL}, .container_id = WEB,
     .pod_uid = "", .meter = PACKAGE0, ACTIVE_IDLE(160 * J, 0), .power_mw = -1},
    {WORKLOAD_SLURM, "4711", .names = {"4711", "", "", "", NULL}, .container_id = "", .pod_uid = "",
     .meter = PACKAGE0, ACTIVE_IDLE(320 * J, 0), .power_mw = 16000},
    {WORKLOAD_VM, "guest", .names = {"guest", "", "", "", NULL}, .container_id = "", .pod_uid = "",
     .meter = PACKAGE1, ACTIVE_IDLE(640 * J, 0), .power_mw = 32000},
};

#define USED(user, system, rss)                                                                    \
    .usage = {.valid = USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) |                    \
                       USAGE_BIT(USAGE_CPU_SYSTEM_US) | USAGE_BIT(USAGE_MEMORY_RSS_BYTES) |        \
                       USAGE_BIT(USAGE_MEMORY_USED_BYTES) | USAGE_BIT(USAGE_MEMORY_LIMIT_BYTES) |  \
                       USAGE_BIT(USAGE_CPUS_THOUSANDTHS) | USAGE_BIT(USAGE_CPU_FULL_US),           \
              .values = {[USAGE_CPU_US] = (user) + (system),                                       \
                         [USAGE_CPU_USER_US] = user,                                               \
                         [USAGE_CPU_SYSTEM_US] = system,                                           \
                         [USAGE_MEMORY_RSS_BYTES] = rss,                                           \
                         [USAGE_MEMORY_USED_BYTES] = 2 * (rss),                                    \
                         [USAGE_MEMORY_LIMIT_BYTES] = 8 << 20,                                     \
                         [USAGE_CPUS_THOUSANDTHS] = 4000,                                          \
                         [USAGE_CPU_FULL_US] = 7}}

static const struct snapshot_usage usages[] = {
    {WORKLOAD_POD, HELPER, NAMED("helper"), .container_id = HELPER, USED(1000000, 500000, 100)},
    {WORKLOAD_POD, WORKER, NAMED("worker"), .container_id = WORKER, USED(2000000, 250000, 200)},
    {WORKLOAD_CONTAINER, WEB, .names = {"web", "", "", "", NULL}, .container_id = WEB,
     .pod_uid = "", USED(4000000, 0, 400)},
    {WORKLOAD_SLURM, "4711", .names = {"4711", "", "", "", NULL}, .container_id = "", .pod_uid = "",
     USED(8000000, 1, 800)},
    {WORKLOAD_SLURM, "4712", .names = {"4712", "", "", "", NULL}, .container_id = "",
     .pod_uid = ""},
};

#define INFO(kind_, id_, pod_uid_)                                                                 \
    {                                                                                              \
        kind_, id_, "", "", "", "", "", "", "", "", "", "", pod_uid_, ""                           \
    }

static const struct snapshot_info infos[] = {
    INFO(WORKLOAD_SLURM, "4711", ""),
    INFO(WORKLOAD_POD, WORKER, POD),
};

#define GIVEN(kind_, id_, gpu_)                                                                    \
    .kind = (kind_), .id = (id_), .uuid = (gpu_), .names = {"", "", "", "", NULL}

static const struct snapshot_allocation allocations[] = {
    {GIVEN(WORKLOAD_POD, WORKER, GPU_0), .gpu = 0},
    {GIVEN(WORKLOAD_SLURM, "4711", GPU_1), .gpu = 1, .has_instance = true, .gpu_instance = 1},
    /* Two share this one; a container is no unit. */
    {GIVEN(WORKLOAD_SLURM, "4711", GPU_1), .gpu = 1, .has_instance = true, .gpu_instance = 2},
    {GIVEN(WORKLOAD_SLURM, "4712", GPU_1), .gpu = 1, .has_instance = true, .gpu_instance = 2},
    {GIVEN(WORKLOAD_CONTAINER, WEB, "GPU-2"), .gpu = 2},
};

#define FACTOR(provider_, zone_, grams)                                                            \
    {                                                                                              \
        .factor = {.known = true, .ug_per_kwh = (grams)*J, .provider = provider_, .zone = zone_ }  \
    }

static const struct snapshot_factor factors[] = {
    FACTOR("rte", "FR", 31), FACTOR("electricity_maps", "FR", 33),
    FACTOR("neso", "GB", 100), /* they have no such provider */
};

static const struct snapshot node = {
    .meters = meters,
    .meter_count = ARRAY_SIZE(meters),
    .observed = observed,
    .observed_count = ARRAY_SIZE(observed),
    .node_powers = node_powers,
    .node_power_count = ARRAY_SIZE(node_powers),
    .gpus = gpus,
    .gpu_count = ARRAY_SIZE(gpus),
    .workloads = workloads,
    .workload_count = ARRAY_SIZE(workloads),
    .usages = usages,
    .usage_count = ARRAY_SIZE(usages),
    .infos = infos,
    .info_count = ARRAY_SIZE(infos),
    .allocations = allocations,
    .allocation_count = ARRAY_SIZE(allocations),
    .factors = factors,
    .factor_count = ARRAY_SIZE(factors),
    .node = "node-7",
};

static struct buffer render(unsigned compat, enum page_format format, enum expose expose,
                            unsigned parts)
{
    const struct exposition_options options = {.format = format,
                                               .process_prefix = "my_gpu_process",
                                               .compat = compat,
                                               .expose = expose,
                                               .version = "1.2.3"};
    struct buffer page;

    buffer_init(&page, CAP_BYTES);
    exposition_render(&node, &options, parts, &page);
    assert_false(buffer_failed(&page));
    return page;
}

/* The lines that only the page with --compat has. */
static struct buffer lines_of(unsigned compat)
{
    struct buffer page = render(compat, PAGE_TEXT, EXPOSE_ALL, EXPOSITION_ALL);
    struct buffer plain = render(0, PAGE_TEXT, EXPOSE_ALL, EXPOSITION_ALL);
    struct span rest = {page.data, page.len}, old = {plain.data, plain.len};
    struct span expected = span_cut(&old, '\n');
    struct buffer added;

    buffer_init(&added, CAP_BYTES);
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n');

        if (line.len == expected.len && memcmp(line.data, expected.data, line.len) == 0) {
            expected = span_cut(&old, '\n');
            continue;
        }
        buffer_bytes(&added, line.data, line.len);
        buffer_char(&added, '\n');
    }
    assert_int_equal(old.len + expected.len, 0); /* nothing is gone or moved */
    buffer_done(&page);
    buffer_done(&plain);
    return added;
}

static void each_exporter_has_the_page_of_its_golden_file(void **state)
{
    static const struct {
        enum compat compat;
        const char *golden;
    } pages[] = {
        {COMPAT_DCGM_EXPORTER, "compat.dcgm-exporter.txt"},
        {COMPAT_KEPLER, "compat.kepler.txt"},
        {COMPAT_CEEMS, "compat.ceems.txt"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct buffer added = lines_of(pages[i].compat);

        golden_check(pages[i].golden, &added);
        buffer_done(&added);
    }
}

static bool has(const struct buffer *page, const char *text)
{
    return memmem(page->data, page->len, text, strlen(text));
}

static void in_openmetrics_there_is_none_of_them(void **state)
{
    struct buffer page = render(~0U, PAGE_OPENMETRICS, EXPOSE_ALL, EXPOSITION_ALL);

    (void)state;
    assert_false(has(&page, "DCGM_"));
    assert_false(has(&page, "kepler_"));
    assert_false(has(&page, "ceems_"));
    buffer_done(&page);
}

/* Prometheus takes a page with a family in two places as it comes, and other readers do not. */
static void the_two_parts_of_a_page_share_no_family(void **state)
{
    struct buffer books = render(~0U, PAGE_TEXT, EXPOSE_ALL, EXPOSITION_BOOKS);
    struct buffer usage = render(~0U, PAGE_TEXT, EXPOSE_ALL, EXPOSITION_USAGE);
    struct span rest = {usage.data, usage.len};
    size_t families = 0;

    (void)state;
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n');
        char name[256];

        if (!span_strip_prefix(&line, "# TYPE "))
            continue;
        snprintf(name, sizeof(name), "# TYPE %.*s", (int)line.len, line.data);
        assert_false(has(&books, name));
        families++;
    }
    assert_true(families > 10);
    buffer_done(&books);
    buffer_done(&usage);
}

static void what_is_not_exposed_is_under_no_name(void **state)
{
    struct buffer page = render(~0U, PAGE_TEXT, EXPOSE_PODS, EXPOSITION_ALL);

    (void)state;
    assert_true(has(&page, "kepler_pod_cpu_joules_total{"));
    assert_false(has(&page, "uuid=\"4711\""));
    assert_false(has(&page, WEB));
    assert_false(has(&page, "vm_id"));
    buffer_done(&page);
}

/* increase() must not count the joules of a pod again when one of its containers retires. */
static void no_counter_goes_back_when_a_container_retires(void **state)
{
    struct buffer before = lines_of(COMPAT_KEPLER | COMPAT_CEEMS);
    struct span rest = {before.data, before.len};
    size_t counters = 0;

    (void)state;
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n');
        bool is_of_pods = memmem(line.data, line.len, POD, strlen(POD));

        if (line.data[0] == '#' || !memmem(line.data, line.len, "_total{", 7) || !is_of_pods)
            continue;
        assert_non_null(memmem(line.data, line.len, "container_id=\"", 14));
        counters++;
    }
    assert_int_equal(counters, 12);
    buffer_done(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_exporter_has_the_page_of_its_golden_file),
        cmocka_unit_test(in_openmetrics_there_is_none_of_them),
        cmocka_unit_test(the_two_parts_of_a_page_share_no_family),
        cmocka_unit_test(what_is_not_exposed_is_under_no_name),
        cmocka_unit_test(no_counter_goes_back_when_a_container_retires),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
