/* sources/drm/fdinfo: what drivers report of their clients, and what of it is believed. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "sources/drm/fdinfo.h"

#define HEAD "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t685\n"
#define XE   "drm-driver:\txe\n"
#define KIB  ((uint64_t)1024)
#define MIB  ((uint64_t)1024 * 1024)

static const char i915[] = HEAD "drm-driver:\ti915\n"
                                "drm-client-id:\t42\n"
                                "drm-pdev:\t0000:03:00.0\n"
                                "drm-total-system0:\t312 KiB\n"
                                "drm-shared-system0:\t0\n"
                                "drm-active-system0:\t0\n"
                                "drm-resident-system0:\t312 KiB\n"
                                "drm-purgeable-system0:\t0\n"
                                "drm-total-local0:\t5396348 KiB\n"
                                "drm-shared-local0:\t32 MiB\n"
                                "drm-active-local0:\t0\n"
                                "drm-resident-local0:\t5396340 KiB\n"
                                "drm-purgeable-local0:\t0\n"
                                "drm-total-stolen-local0:\t64 KiB\n"
                                "drm-resident-stolen-local0:\t64 KiB\n"
                                "drm-engine-render:\t51781489656 ns\n"
                                "drm-engine-copy:\t2345 ns\n"
                                "drm-engine-video:\t0 ns\n"
                                "drm-engine-capacity-video:\t2\n"
                                "drm-engine-video-enhance:\t7 ns\n"
                                "drm-engine-compute:\t82420 ns\n"
                                "drm-engine-capacity-compute:\t4\n";

static const char i915_without_memory[] = HEAD "drm-driver:\ti915\n"
                                               "drm-client-id:\t280\n"
                                               "drm-pdev:\t0000:00:02.0\n"
                                               "drm-total-system0:\t3836720 KiB\n"
                                               "drm-resident-system0:\t3835792 KiB\n"
                                               "drm-total-stolen-local0:\t0\n"
                                               "drm-resident-stolen-local0:\t0\n"
                                               "drm-engine-render:\t123456789 ns\n";

#define XE_MEMORY                                                                                  \
    HEAD "drm-driver:\txe\n"                                                                       \
         "drm-client-id:\t3\n"                                                                     \
         "drm-pdev:\t0000:03:00.0\n"                                                               \
         "drm-total-system:\t0\n"                                                                  \
         "drm-resident-system:\t0\n"                                                               \
         "drm-total-gtt:\t192 KiB\n"                                                               \
         "drm-resident-gtt:\t192 KiB\n"                                                            \
         "drm-total-vram0:\t23992 KiB\n"                                                           \
         "drm-shared-vram0:\t16 MiB\n"                                                             \
         "drm-active-vram0:\t0\n"                                                                  \
         "drm-resident-vram0:\t23992 KiB\n"                                                        \
         "drm-total-vram1:\t8 MiB\n"                                                               \
         "drm-resident-vram1:\t8 MiB\n"                                                            \
         "drm-total-stolen:\t64 KiB\n"                                                             \
         "drm-resident-stolen:\t64 KiB\n"

static const char xe[] = XE_MEMORY "drm-cycles-rcs:\t28257900\n"
                                   "drm-total-cycles-rcs:\t7655183225\n"
                                   "drm-cycles-bcs:\t0\n"
                                   "drm-total-cycles-bcs:\t7655183225\n"
                                   "drm-cycles-ccs:\t5\n"
                                   "drm-total-cycles-ccs:\t7655183225\n"
                                   "drm-engine-capacity-ccs:\t4\n";

static const char amdgpu[] = HEAD "drm-driver:\tamdgpu\n"
                                  "drm-client-id:\t7568\n"
                                  "drm-client-name:\tdrm-pdev: and blanks\n"
                                  "drm-pdev:\t0000:c1:00.0\n"
                                  "pasid:\t32771\n"
                                  "drm-total-cpu:\t0\n"
                                  "drm-resident-cpu:\t0\n"
                                  "drm-total-gtt:\t2 MiB\n"
                                  "drm-resident-gtt:\t2 MiB\n"
                                  "drm-total-vram:\t1984704 KiB\n"
                                  "drm-shared-vram:\t16 MiB\n"
                                  "drm-resident-vram:\t1984700 KiB\n"
                                  "drm-purgeable-vram:\t4 KiB\n"
                                  "drm-total-doorbell:\t8 KiB\n"
                                  "drm-memory-vram:\t1984704 KiB\n"
                                  "drm-memory-gtt: \t2048 KiB\n"
                                  "drm-memory-cpu: \t0 KiB\n"
                                  "amd-evicted-vram:\t0 KiB\n"
                                  "amd-requested-vram:\t1984704 KiB\n"
                                  "amd-requested-gtt:\t2048 KiB\n"
                                  "drm-engine-gfx:\t123456789 ns\n"
                                  "drm-engine-enc_1:\t1000 ns\n";

static const char amdgpu_6_1[] = HEAD "pasid:\t32771\n"
                                      "drm-driver:\tamdgpu\n"
                                      "drm-pdev:\t0000:c1:00.0\n"
                                      "drm-client-id:\t147\n"
                                      "drm-memory-vram:\t12 KiB\n"
                                      "drm-memory-gtt: \t252368 KiB\n"
                                      "drm-memory-cpu: \t0 KiB\n"
                                      "drm-engine-compute:\t9 ns\n";

static const char amdgpu_5_15[] = HEAD "pdev:\t0000:0c:00.0\n"
                                       "pasid:\t32770\n"
                                       "vram mem:\t24576 kB\n"
                                       "gtt mem:\t2048 kB\n"
                                       "cpu mem:\t0 kB\n"
                                       "gfx0:\t12.34%\n"
                                       "dma0:\t0.7%\n";

static struct drm_client parse(const char *text)
{
    struct drm_client client;

    assert_int_equal(drm_fdinfo_parse(span_of(text), &client), 0);
    return client;
}

static const struct drm_engine *find_engine(const struct drm_client *client, const char *name)
{
    for (size_t i = 0; i < client->engine_count; i++)
        if (strcmp(client->engines[i].name, name) == 0)
            return &client->engines[i];
    return NULL;
}

static void each_driver_names_its_client_and_the_memory_it_holds(void **state)
{
    static const struct {
        const char *text;
        enum drm_driver driver;
        const char *pdev;
        bool has_id;
        uint64_t id;
        size_t engine_count;
        bool has_memory;
        uint64_t memory_bytes;
    } cases[] = {
        {i915, DRM_I915, "0000:03:00.0", true, 42, 5, true, 5396340 * KIB},
        {i915_without_memory, DRM_I915, "0000:00:02.0", true, 280, 1, false, 0},
        {xe, DRM_XE, "0000:03:00.0", true, 3, 3, true, 23992 * KIB + 8 * MIB},
        {amdgpu, DRM_AMDGPU, "0000:c1:00.0", true, 7568, 2, true, 1984700 * KIB},
        {amdgpu_6_1, DRM_AMDGPU, "0000:c1:00.0", true, 147, 1, true, 12 * KIB},
        {amdgpu_5_15, DRM_AMDGPU, "0000:0c:00.0", true, 32770, 0, true, 24576 * KIB},
        {"drm-driver:\tnouveau\n", DRM_OTHER, "", false, 0, 0, false, 0},
        {"drm-driver: xe\ndrm-pdev: 10000:e1:00.0\n", DRM_XE, "10000:e1:00.0", false, 0, 0, false,
         0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct drm_client client = parse(cases[i].text);

        assert_int_equal(client.driver, cases[i].driver);
        assert_string_equal(client.pdev, cases[i].pdev);
        assert_int_equal(client.has_id, cases[i].has_id);
        assert_int_equal(client.id, cases[i].id);
        assert_int_equal(client.engine_count, cases[i].engine_count);
        assert_int_equal(client.is_untimed, cases[i].text == amdgpu_5_15);
        assert_int_equal(client.has_memory, cases[i].has_memory);
        assert_int_equal(client.memory_bytes, cases[i].memory_bytes);
    }
}

static void engines_are_measured_in_time_or_in_cycles(void **state)
{
    static const struct {
        const char *text;
        struct drm_engine engine;
    } cases[] = {
        {i915, {"render", true, false, 51781489656, 0, 0, 1}},
        {i915, {"video", true, false, 0, 0, 0, 2}},
        {i915, {"video-enhance", true, false, 7, 0, 0, 1}},
        {i915, {"compute", true, false, 82420, 0, 0, 4}},
        {xe, {"rcs", false, true, 0, 28257900, 7655183225, 1}},
        {xe, {"ccs", false, true, 0, 5, 7655183225, 4}},
        {amdgpu, {"gfx", true, false, 123456789, 0, 0, 1}},
        {amdgpu, {"enc_1", true, false, 1000, 0, 0, 1}},
        /* Its keys in any order, and in both units. */
        {"drm-engine-capacity-rcs: 3\ndrm-total-cycles-rcs: 9\ndrm-cycles-rcs: 8\n"
         "drm-engine-rcs: 7 ns\n" XE,
         {"rcs", true, true, 7, 8, 9, 3}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct drm_client client = parse(cases[i].text);
        const struct drm_engine *engine = find_engine(&client, cases[i].engine.name);

        assert_non_null(engine);
        assert_int_equal(engine->has_time, cases[i].engine.has_time);
        assert_int_equal(engine->has_cycles, cases[i].engine.has_cycles);
        assert_int_equal(engine->busy_ns, cases[i].engine.busy_ns);
        assert_int_equal(engine->cycles, cases[i].engine.cycles);
        assert_int_equal(engine->total_cycles, cases[i].engine.total_cycles);
        assert_int_equal(engine->capacity, cases[i].engine.capacity);
    }
}

/* As xe reports while it cannot wake the GPU. */
static void engines_that_were_not_read_are_absent_not_idle(void **state)
{
    struct drm_client client = parse(XE_MEMORY);

    (void)state;
    assert_int_equal(client.engine_count, 0);
    assert_true(client.has_memory);
}

static void what_is_no_drm_file_has_no_client(void **state)
{
    static const char *const cases[] = {
        "",
        "\n\n",
        HEAD,
        HEAD "eventfd-count:\t0\n",
        "drm-driver",
        "drm-driver:\tamdgpu", /* cut off */
        "drm-driver:\n",       /* nameless */
        "drm-driver: two words\n",
        "drm-driver\n",
        " drm-driver:\txe\n",
        "drm-drivers:\txe\n",
        "drm-pdev:\t0000:03:00.0\ndrm-client-id:\t3\n",
        "pdev:\t0000:0c:00.0\npasid:\t3\n",
        "vram mem:\t24576 kB\n",
        "pdev:\tsomewhere\nvram mem:\t24576 kB\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct drm_client client = {.id = 77};

        assert_int_equal(drm_fdinfo_parse(span_of(cases[i]), &client), -ENODATA);
        assert_int_equal(client.id, 77);
    }
}

static void a_malformed_value_costs_its_key_alone(void **state)
{
    static const char *const cases[] = {
        "drm-engine-gfx:\t12\n",
        "drm-engine-gfx:\t12 us\n",
        "drm-engine-gfx:\t12ns\n",
        "drm-engine-gfx:\t-12 ns\n",
        "drm-engine-gfx:\t1 2 ns\n",
        "drm-engine-gfx:\t\n",
        "drm-engine-gfx\n",
        "drm-engine-:\t12 ns\n",
        "drm-engine-two words:\t12 ns\n",
        "drm-engine-a-name-of-24-characters-:\t12 ns\n",
        "drm-engine-capacity-gfx:\t4\n",
        "drm-engine-capacity-:\t4\n",
        "drm-cycles-gfx:\t4\n", /* of an unknown clock */
        "drm-total-cycles-gfx:\t4\n",
        "drm-cycles-gfx:\t4\ndrm-maxfreq-gfx:\t800 MHz\n",
        "drm-cycles-gfx:\t4 Hz\ndrm-total-cycles-gfx:\t5\n",
        "drm-client-id:\t0x3\n",
        "drm-client-id:\t99999999999999999999\n",
        "drm-client-id:\n",
        "drm-pdev:\t0000:03:00\n",
        "drm-pdev:\t0000:03:00.0.0\n",
        "drm-pdev:\t03:00.0\n",
        "drm-pdev:\t0000:03:0g.0\n",
        "drm-pdev:\t0000-03-00.0\n",
        "drm-pdev:\t123456789:03:00.0\n",
        "drm-resident-vram:\t5 GiB\n",
        "drm-resident-vram:\tKiB\n",
        "drm-resident-vram:\t5KiB\n",
        "drm-resident-vram-:\t5\n",
        "drm-resident-vramdisk:\t5\n",
        "drm-resident-:\t5\n",
        "drm-total-vram:\t5\n",
        "drm-total-vram:\t5\ndrm-active-vram:\t5\ndrm-shared-vram:\t5\ndrm-purgeable-vram:\t5\n",
        "drm-resident-stolen:\t5\n",
        ":\n:::\n\t\n",
        "drm-resident-vram:\t5 KiB", /* cut off */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        struct drm_client client;

        snprintf(text, sizeof(text), XE "%s", cases[i]);
        client = parse(text);
        assert_int_equal(client.driver, DRM_XE);
        assert_int_equal(client.engine_count, 0);
        assert_false(client.has_id);
        assert_false(client.has_memory);
        assert_string_equal(client.pdev, "");
        snprintf(text, sizeof(text), XE "%s\ndrm-engine-ok: 1 ns\ndrm-resident-vram: 2\n",
                 cases[i]);
        client = parse(text);
        assert_int_equal(client.engine_count, 1);
        assert_int_equal(client.memory_bytes, 2);
    }
}

static void a_nul_is_no_end_of_the_text(void **state)
{
    static const char text[] = "drm-driver:\txe\n"
                               "drm-client-id:\t3\0\n"
                               "drm-engine-r\0s:\t4 ns\n"
                               "drm-engine-bcs:\t5\0 ns\n"
                               "drm-pdev:\t0000:03:00.\0\n"
                               "drm-resident-vram\0:\t4\n"
                               "drm-engine-ccs:\t6 ns\n";
    struct drm_client client;

    (void)state;
    assert_int_equal(drm_fdinfo_parse((struct span){text, sizeof(text) - 1}, &client), 0);
    assert_false(client.has_id);
    assert_string_equal(client.pdev, "");
    assert_false(client.has_memory);
    assert_int_equal(client.engine_count, 1);
    assert_string_equal(client.engines[0].name, "ccs");
    assert_int_equal(drm_fdinfo_parse((struct span){"drm-driver:\txe\0\n", 16}, &client), -ENODATA);
    assert_int_equal(drm_fdinfo_parse((struct span){NULL, 0}, &client), -ENODATA);
}

static void memory_has_units_and_is_counted_once(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"drm-resident-vram: 5\n", 5},
        {"drm-resident-vram: 5 KiB\n", 5 * KIB},
        {"drm-resident-vram:\t 5   MiB \n", 5 * MIB},
        {"drm-memory-vram: 5 KiB\n", 5 * KIB},
        {"drm-resident-vram: 5 KiB\ndrm-memory-vram: 6 KiB\n", 5 * KIB},
        {"drm-memory-vram: 6 KiB\ndrm-resident-vram: 5 KiB\n", 5 * KIB},
        {"drm-memory-vram: 6 KiB\ndrm-resident-vram: 0\n", 0},
        {"drm-memory-vram: 6 KiB\ndrm-total-vram: 9 KiB\n", 6 * KIB},
        {"drm-resident-vram0: 1\ndrm-memory-vram1: 2\ndrm-resident-local0: 4\n", 7},
        {"drm-resident-vram0: 1\ndrm-resident-system: 2\ndrm-resident-gtt: 4\n", 1},
        /* The last counts, if it is valid. */
        {"drm-resident-vram: 5\ndrm-resident-vram: 6\n", 6},
        {"drm-resident-vram: 5\ndrm-resident-vram: many\n", 5},
        /* Saturated. */
        {"drm-resident-vram: 18446744073709551615\n", UINT64_MAX},
        {"drm-resident-vram: 18446744073709551616\n", UINT64_MAX},
        {"drm-resident-vram: 18014398509481984 KiB\n", UINT64_MAX},
        {"drm-resident-vram: 18014398509481983 KiB\n", 18014398509481983 * KIB},
        {"drm-resident-vram: 99999999999999999999999999 MiB\n", UINT64_MAX},
        {"drm-resident-vram0: 18446744073709551615\ndrm-resident-vram1: 1\n", UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        struct drm_client client;

        snprintf(text, sizeof(text), XE "%s", cases[i].text);
        client = parse(text);
        assert_true(client.has_memory);
        assert_int_equal(client.memory_bytes, cases[i].bytes);
    }
}

static void repeated_and_huge_values_of_engines_are_bounded(void **state)
{
    struct drm_client client = parse(XE "drm-engine-gfx: 5 ns\n"
                                        "drm-engine-gfx: 99999999999999999999 ns\n"
                                        "drm-engine-gfx: broken\n"
                                        "drm-engine-capacity-gfx: 2\n"
                                        "drm-engine-capacity-gfx: 0\n"
                                        "drm-engine-capacity-gfx: 4294967296\n"
                                        "drm-cycles-gfx: 99999999999999999999\n"
                                        "drm-total-cycles-gfx: 18446744073709551616\n"
                                        "drm-client-id: 18446744073709551615\n"
                                        "drm-client-id: 18446744073709551616\n"
                                        "drm-driver: amdgpu\n"
                                        "drm-driver:\n");

    (void)state;
    assert_int_equal(client.driver, DRM_AMDGPU);
    assert_int_equal(client.id, UINT64_MAX);
    assert_int_equal(client.engine_count, 1);
    assert_int_equal(client.engines[0].busy_ns, UINT64_MAX);
    assert_int_equal(client.engines[0].capacity, 2);
    assert_true(client.engines[0].has_cycles);
    assert_int_equal(client.engines[0].cycles, UINT64_MAX);
    assert_int_equal(client.engines[0].total_cycles, UINT64_MAX);
}

static void engines_and_regions_that_do_not_fit_are_left_out(void **state)
{
    char text[4096];
    size_t len = (size_t)snprintf(text, sizeof(text), XE);
    struct drm_client client;

    (void)state;
    for (unsigned i = 0; i < 2 * DRM_ENGINES_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "drm-engine-e%u: %u ns\ndrm-resident-vram%u: 1\n", i, i, i);
    client = parse(text);
    assert_int_equal(client.engine_count, DRM_ENGINES_MAX);
    assert_int_equal(client.engines[DRM_ENGINES_MAX - 1].busy_ns, DRM_ENGINES_MAX - 1);
    assert_int_equal(client.memory_bytes, 8);
    /* 23 characters fit. */
    client = parse(XE "drm-engine-a-name-of-23-characters: 1 ns\n");
    assert_string_equal(client.engines[0].name, "a-name-of-23-characters");
}

static void an_old_amdgpu_without_a_pasid_has_no_id(void **state)
{
    struct drm_client client = parse("pdev:\t0000:0c:00.0\npasid:\t0\nvram mem:\t1 kB\n");

    (void)state;
    assert_false(client.has_id);
    assert_int_equal(client.id, 0);
    assert_int_equal(client.memory_bytes, KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_driver_names_its_client_and_the_memory_it_holds),
        cmocka_unit_test(engines_are_measured_in_time_or_in_cycles),
        cmocka_unit_test(engines_that_were_not_read_are_absent_not_idle),
        cmocka_unit_test(what_is_no_drm_file_has_no_client),
        cmocka_unit_test(a_malformed_value_costs_its_key_alone),
        cmocka_unit_test(a_nul_is_no_end_of_the_text),
        cmocka_unit_test(memory_has_units_and_is_counted_once),
        cmocka_unit_test(repeated_and_huge_values_of_engines_are_bounded),
        cmocka_unit_test(engines_and_regions_that_do_not_fit_are_left_out),
        cmocka_unit_test(an_old_amdgpu_without_a_pasid_has_no_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
