/* sources/amd/gpu_metrics: each revision byte by byte, and what no driver should write. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sources/amd/gpu_metrics.h"

struct revision {
    uint8_t format, content;
    uint16_t bytes;
    uint16_t at[AMD_METRICS]; /* in the order of enum amd_metric; 0: it is not there, or unclear */
};

/* energy, power; gfx and memory percent; edge, hotspot, memory C; gfx and memory MHz */
static const struct revision revisions[] = {
    {1, 0, 80, {36, 34, 28, 30, 16, 18, 20, 54, 58}},
    {1, 1, 96, {24, 22, 16, 18, 4, 6, 8, 54, 58}},
    {1, 2, 104, {24, 22, 16, 18, 4, 6, 8, 54, 58}},
    {1, 3, 120, {24, 22, 16, 18, 4, 6, 8, 54, 58}},
    {1, 4, 288, {24, 10, 12, 14, 0, 4, 6, 240, 280}},
    {1, 5, 360, {88, 10, 12, 14, 0, 4, 6, 312, 352}},
    {1, 6, 1664, {16, 10, 12, 14, 0, 4, 6, 264, 304}},
    {1, 7, 2208, {24, 10, 12, 14, 0, 4, 6, 296, 336}},
    {1, 8, 3872, {24, 10, 12, 14, 0, 4, 6, 296, 336}},
    {2, 0, 120, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {2, 1, 120, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {2, 2, 128, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {2, 3, 152, {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {2, 4, 168, {0, 0, 28, 0, 4, 0, 0, 76, 80}},
    {3, 0, 264, {0, 112, 0, 0, 0, 0, 0, 0, 0}},
};

static bool is_revision(const struct revision *revision, uint8_t format, uint8_t content)
{
    return revision->format == format && revision->content == content;
}

static size_t width_of(const struct revision *revision, enum amd_metric metric)
{
    switch (metric) {
    case AMD_ENERGY:
        return is_revision(revision, 1, 0) ? 4 : 8;
    case AMD_POWER_MW:
        return is_revision(revision, 3, 0) ? 4 : 2;
    default:
        return 2;
    }
}

static size_t xccs_of(const struct revision *revision, enum amd_metric metric)
{
    return metric == AMD_GFX_MHZ && revision->format == 1 && revision->content >= 4 ? 8 : 1;
}

static void put(uint8_t *at, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* At an odd address, in memory of exactly that size: a sanitizer sees a read beyond it. */
static int parse(const uint8_t *table, size_t size, struct amd_metrics *ret_metrics)
{
    uint8_t *memory = malloc(1 + size);
    int r;

    assert_non_null(memory);
    memcpy(memory + 1, table, size);
    r = amd_metrics_parse(memory + 1, size, ret_metrics);
    free(memory);
    return r;
}

/* Percent and degrees, of which 2.4 has hundredths. */
static bool is_small(enum amd_metric metric)
{
    return metric >= AMD_GFX_PERCENT && metric <= AMD_MEMORY_C;
}

/* What the table has for a metric: another value in each, with the highest bytes in use. */
static uint64_t raw_of(const struct revision *revision, enum amd_metric metric)
{
    uint64_t low = 40 + (uint64_t)metric;

    if (is_small(metric))
        return is_revision(revision, 2, 4) ? low * 100 + (metric == AMD_EDGE_C ? 99 : 0) : low;
    return low << (8 * width_of(revision, metric) - 8) | low;
}

static uint64_t value_of(const struct revision *revision, enum amd_metric metric)
{
    uint64_t raw = raw_of(revision, metric);

    if (metric == AMD_POWER_MW && revision->format == 1)
        return raw * 1000;
    return is_revision(revision, 2, 4) && is_small(metric) ? raw / 100 : raw;
}

/* With noise wherever nothing is read. */
static void build(const struct revision *revision, uint8_t *table)
{
    for (size_t i = 0; i < revision->bytes; i++)
        table[i] = (uint8_t)(0x80 | i);
    put(table, 2, revision->bytes);
    table[2] = revision->format;
    table[3] = revision->content;
    for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
        if (revision->at[metric])
            put(table + revision->at[metric], width_of(revision, metric), raw_of(revision, metric));
}

static uint32_t valid_of(const struct revision *revision)
{
    uint32_t valid = 0;

    for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
        if (revision->at[metric])
            valid |= UINT32_C(1) << metric;
    return valid;
}

static void each_metric_of_each_revision_is_where_the_kernel_puts_it(void **state)
{
    uint8_t table[AMD_METRICS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++) {
        const struct revision *revision = &revisions[i];
        struct amd_metrics metrics;

        build(revision, table);
        assert_int_equal(parse(table, revision->bytes, &metrics), 0);
        assert_int_equal(metrics.format, revision->format);
        assert_int_equal(metrics.content, revision->content);
        assert_true(metrics.is_known);
        assert_int_equal(metrics.valid, valid_of(revision));
        for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
            if (revision->at[metric])
                assert_true(metrics.values[metric] == value_of(revision, metric));
    }
}

static void bytes_after_the_table_are_no_part_of_it(void **state)
{
    uint8_t table[AMD_METRICS_BYTES] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++) {
        struct amd_metrics metrics;

        build(&revisions[i], table);
        assert_int_equal(parse(table, sizeof(table), &metrics), 0);
        assert_int_equal(metrics.valid, valid_of(&revisions[i]));
    }
}

static void all_ones_in_a_field_mean_that_it_is_absent(void **state)
{
    uint8_t table[AMD_METRICS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++)
        for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++) {
            const struct revision *revision = &revisions[i];
            struct amd_metrics metrics;

            if (!revision->at[metric])
                continue;
            build(revision, table);
            memset(table + revision->at[metric], 0xff,
                   width_of(revision, metric) * xccs_of(revision, metric));
            assert_int_equal(parse(table, revision->bytes, &metrics), 0);
            assert_int_equal(metrics.valid, valid_of(revision) & ~(UINT32_C(1) << metric));
            assert_true(metrics.values[metric] == 0);
        }
}

static void zero_is_a_value(void **state)
{
    uint8_t table[AMD_METRICS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++) {
        struct amd_metrics metrics;

        build(&revisions[i], table);
        memset(table + 4, 0, revisions[i].bytes - 4U);
        assert_int_equal(parse(table, revisions[i].bytes, &metrics), 0);
        assert_int_equal(metrics.valid, valid_of(&revisions[i]));
        for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
            assert_true(metrics.values[metric] == 0);
    }
}

static void a_table_of_another_size_is_refused(void **state)
{
    uint8_t table[AMD_METRICS_BYTES] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++) {
        uint16_t bytes = revisions[i].bytes;
        struct amd_metrics metrics = {.format = 77};

        build(&revisions[i], table);
        assert_int_equal(parse(table, bytes - 1U, &metrics), -EINVAL);
        put(table, 2, bytes - 1U);
        assert_int_equal(parse(table, bytes, &metrics), -EINVAL);
        put(table, 2, bytes + 1U);
        assert_int_equal(parse(table, bytes, &metrics), -EINVAL);
        assert_int_equal(parse(table, bytes + 1U, &metrics), -EINVAL);
        assert_int_equal(metrics.format, 77);
    }
}

static void what_is_no_header_is_refused(void **state)
{
    static const uint8_t headers[][4] = {{0, 0, 1, 3}, {3, 0, 1, 3}, {5, 0, 1, 3}, {0xff, 0xff}};
    struct amd_metrics metrics;

    (void)state;
    for (size_t size = 0; size < 4; size++)
        assert_int_equal(parse((const uint8_t[]){4, 0, 9, 9}, size, &metrics), -EINVAL);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        assert_int_equal(parse(headers[i], 4, &metrics), -EINVAL);
}

static void of_an_unknown_revision_only_its_number_is_known(void **state)
{
    static const uint8_t unknown[][2] = {{0, 0}, {1, 10}, {2, 5}, {3, 1}, {4, 0}, {255, 255}};
    uint8_t table[120] = {120, 0};
    struct amd_metrics metrics;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
        memcpy(table + 2, unknown[i], 2);
        assert_int_equal(parse(table, sizeof(table), &metrics), 0);
        assert_int_equal(metrics.format, unknown[i][0]);
        assert_int_equal(metrics.content, unknown[i][1]);
        assert_false(metrics.is_known);
        assert_int_equal(metrics.valid, 0);
    }
    assert_int_equal(parse((const uint8_t[]){4, 0, 9, 9}, 4, &metrics), 0);
    assert_int_equal(metrics.valid, 0);
}

static const struct revision *revision_find(uint8_t format, uint8_t content)
{
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++)
        if (is_revision(&revisions[i], format, content))
            return &revisions[i];
    fail();
    return NULL;
}

static void the_clock_of_several_xccs_is_that_of_the_first_that_is_known(void **state)
{
    uint8_t table[AMD_METRICS_BYTES];

    (void)state;
    for (uint8_t content = 4; content <= 8; content++)
        for (uint16_t known = 0; known < 8; known++) {
            const struct revision *revision = revision_find(1, content);
            struct amd_metrics metrics;

            build(revision, table);
            memset(table + revision->at[AMD_GFX_MHZ], 0xff, 16);
            put(table + revision->at[AMD_GFX_MHZ] + 2 * known, 2, 1000U + known);
            put(table + revision->at[AMD_GFX_MHZ] + 14, 2, known == 7 ? 1007 : 77);
            assert_int_equal(parse(table, revision->bytes, &metrics), 0);
            assert_int_equal(metrics.values[AMD_GFX_MHZ], 1000 + known);
        }
}

static void chips_without_an_energy_counter_write_the_highest_number_of_32_bits(void **state)
{
    uint8_t table[AMD_METRICS_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++) {
        const struct revision *revision = &revisions[i];
        bool may_lack_energy = revision->format == 1 && revision->content <= 3;
        struct amd_metrics metrics;

        if (!revision->at[AMD_ENERGY] || width_of(revision, AMD_ENERGY) != 8)
            continue;
        build(revision, table);
        put(table + revision->at[AMD_ENERGY], 8, UINT32_MAX);
        assert_int_equal(parse(table, revision->bytes, &metrics), 0);
        assert_int_equal(metrics.valid >> AMD_ENERGY & 1, !may_lack_energy);
    }
}

static void more_than_100_percent_are_no_percentage(void **state)
{
    const struct revision *revision = revision_find(1, 3);
    uint8_t table[AMD_METRICS_BYTES];
    struct amd_metrics metrics;

    (void)state;
    build(revision, table);
    put(table + revision->at[AMD_GFX_PERCENT], 2, 100);
    put(table + revision->at[AMD_MEMORY_PERCENT], 2, 101);
    assert_int_equal(parse(table, revision->bytes, &metrics), 0);
    assert_int_equal(metrics.values[AMD_GFX_PERCENT], 100);
    assert_int_equal(metrics.valid, valid_of(revision) & ~(UINT32_C(1) << AMD_MEMORY_PERCENT));
}

/* 1.9: attributes. */

enum { U8, S8, U16, S16, U32, S32, U64, S64 };
enum { NONE, MHZ, CELSIUS, WATT, NS, TEN_NS, PERCENT = 10 };

struct list {
    uint8_t data[2048];
    size_t len, word_bytes;
    uint32_t count;
};

static void list_begin(struct list *list, size_t word_bytes)
{
    *list = (struct list){.len = 8, .word_bytes = word_bytes};
}

static void list_describe(struct list *list, uint64_t unit, uint64_t type, uint64_t id,
                          uint64_t count)
{
    put(list->data + list->len, list->word_bytes, unit << 24 | type << 20 | id << 10 | count);
    list->len += list->word_bytes;
    list->count++;
}

static void list_put(struct list *list, size_t bytes, uint64_t value)
{
    put(list->data + list->len, bytes, value);
    list->len += bytes;
}

static void list_add(struct list *list, uint64_t unit, uint64_t type, uint64_t id, uint64_t value)
{
    list_describe(list, unit, type, id, 1);
    list_put(list, (size_t)1 << type / 2, value);
}

static int list_parse(struct list *list, struct amd_metrics *ret_metrics)
{
    put(list->data, 2, list->len);
    list->data[2] = 1;
    list->data[3] = 9;
    put(list->data + 4, 4, list->count);
    return parse(list->data, list->len, ret_metrics);
}

/* In the order and with the types of SMU 13.0.6; between them, attributes that nobody reads. */
static void list_fill(struct list *list)
{
    list_add(list, CELSIUS, U16, 0, 71);
    list_add(list, CELSIUS, U16, 1, 62);
    list_add(list, CELSIUS, U16, 2, 53);
    list_add(list, WATT, U16, 3, 750);
    list_add(list, PERCENT, U16, 4, 98);
    list_add(list, PERCENT, U16, 5, 31);
    list_add(list, 8, U64, 6, 5300);
    list_add(list, NONE, U64, 7, UINT64_C(0x123456789abcd));
    list_add(list, NS, U64, 8, UINT64_C(0xfedcba987654));
    list_add(list, NONE, U32, 9, 0x87654321);
    list_add(list, PERCENT, U32, 20, 0xf0000001);
    list_add(list, PERCENT, U32, 21, 0xf0000002);
    list_add(list, TEN_NS, U64, 32, 4711);
    list_describe(list, MHZ, U16, 33, 8);
    list_put(list, 8, UINT64_C(0x0834ffffffff) << 16 | 0xffff);
    list_put(list, 8, UINT64_MAX);
    list_add(list, MHZ, U16, 37, 1300);
    list_describe(list, NONE, U64, 43, 8);
    for (uint64_t xcc = 0; xcc < 8; xcc++)
        list_put(list, 8, xcc < 6 ? UINT64_C(1000000000000) + xcc : UINT64_MAX);
    list_add(list, NONE, S64, 1023, 5);
    list_add(list, 255, U8, 48, 5);
}

static void assert_filled(const struct amd_metrics *metrics)
{
    static const uint64_t values[AMD_METRICS] = {
        [AMD_ENERGY] = UINT64_C(0x123456789abcd),
        [AMD_POWER_MW] = 750000,
        [AMD_GFX_PERCENT] = 98,
        [AMD_MEMORY_PERCENT] = 31,
        [AMD_HOTSPOT_C] = 71,
        [AMD_MEMORY_C] = 62,
        [AMD_GFX_MHZ] = 0x834,
        [AMD_MEMORY_MHZ] = 1300,
    };

    assert_int_equal(metrics->format, 1);
    assert_int_equal(metrics->content, 9);
    assert_true(metrics->is_known);
    for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++) {
        assert_int_equal(metrics->valid >> metric & 1, metric != AMD_EDGE_C);
        assert_true(metrics->values[metric] == values[metric]);
    }
}

static void attributes_are_read_and_unknown_ones_skipped(void **state)
{
    struct amd_metrics metrics;
    struct list list;

    (void)state;
    list_begin(&list, 8);
    list_fill(&list);
    assert_int_equal(list_parse(&list, &metrics), 0);
    assert_filled(&metrics);
}

static void words_of_32_bits_are_read_too(void **state)
{
    struct amd_metrics metrics;
    struct list list;

    (void)state;
    list_begin(&list, 4);
    list_fill(&list);
    assert_int_equal(list_parse(&list, &metrics), 0);
    assert_filled(&metrics);
}

static void a_list_that_is_cut_anywhere_is_refused(void **state)
{
    static const size_t word_bytes[] = {8, 4};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(word_bytes); i++) {
        struct amd_metrics metrics = {.format = 77};
        struct list list;
        size_t whole;

        list_begin(&list, word_bytes[i]);
        list_fill(&list);
        whole = list.len;
        assert_int_equal(list_parse(&list, &metrics), 0);
        assert_int_equal(parse(list.data, whole - 1, &metrics), -EINVAL);
        metrics.format = 77;
        for (list.len = 4; list.len < whole; list.len++)
            assert_int_equal(list_parse(&list, &metrics), -EINVAL);
        assert_int_equal(metrics.format, 77);
    }
}

static void a_list_must_end_where_its_table_ends(void **state)
{
    static const struct {
        uint32_t count;
        size_t padding;
        int r;
    } cases[] = {
        {1, 0, 0},       {0, 0, -EINVAL},          {2, 0, -EINVAL},
        {1, 1, -EINVAL}, {UINT32_MAX, 0, -EINVAL}, {INT32_MAX, 0, -EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct amd_metrics metrics;
        struct list list;

        list_begin(&list, 8);
        list_add(&list, NONE, U64, 7, 1000);
        list.count = cases[i].count;
        list.len += cases[i].padding;
        assert_int_equal(list_parse(&list, &metrics), cases[i].r);
    }
}

static void a_list_without_attributes_has_no_metric(void **state)
{
    struct amd_metrics metrics = {.valid = UINT32_MAX};
    struct list list;

    (void)state;
    list_begin(&list, 8);
    assert_int_equal(list_parse(&list, &metrics), 0);
    assert_int_equal(metrics.valid, 0);
}

static void an_unknown_type_makes_the_whole_list_unreadable(void **state)
{
    struct amd_metrics metrics;

    (void)state;
    for (uint64_t type = 8; type < 16; type++) {
        struct list list;

        list_begin(&list, 8);
        list_add(&list, NONE, U64, 7, 1000);
        list_describe(&list, NONE, type, 500, 1);
        list.len += (size_t)1 << type / 2;
        assert_int_equal(list_parse(&list, &metrics), -EINVAL);
    }
}

static void values_past_the_end_make_the_whole_list_unreadable(void **state)
{
    static const uint64_t counts[] = {2, 3, 1023};
    struct amd_metrics metrics;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct list list;

        list_begin(&list, 8);
        list_describe(&list, NONE, U64, 7, counts[i]);
        list_put(&list, 8, 1000);
        assert_int_equal(list_parse(&list, &metrics), -EINVAL);
    }
}

static void an_attribute_without_values_makes_the_whole_list_unreadable(void **state)
{
    static const size_t word_bytes[] = {8, 4};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(word_bytes); i++) {
        struct amd_metrics metrics;
        struct list list;

        list_begin(&list, word_bytes[i]);
        list_add(&list, NONE, U64, 7, 1000);
        list_describe(&list, MHZ, U16, 33, 0);
        assert_int_equal(list_parse(&list, &metrics), -EINVAL);
    }
}

static void attributes_may_have_any_width(void **state)
{
    static const struct {
        uint64_t type, raw;
        bool is_valid;
    } cases[] = {
        {U8, 0xfe, true},
        {U8, 0xff, false},
        {S8, 0x7f, true},
        {S8, 0x80, false},
        {S8, 0xff, false},
        {U16, 0xfffe, true},
        {U16, 0xffff, false},
        {S16, 0x7fff, true},
        {S16, 0x8000, false},
        {U32, 0xfffffffe, true},
        {U32, 0xffffffff, false},
        {S32, 0x7fffffff, true},
        {S32, 0x80000000, false},
        {U64, UINT64_MAX - 1, true},
        {U64, UINT64_MAX, false},
        {S64, INT64_MAX, true},
        {S64, (uint64_t)INT64_MAX + 1, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct amd_metrics metrics;
        struct list list;

        list_begin(&list, 8);
        list_add(&list, NONE, cases[i].type, 7, cases[i].raw);
        assert_int_equal(list_parse(&list, &metrics), 0);
        assert_int_equal(metrics.valid >> AMD_ENERGY & 1, cases[i].is_valid);
        assert_true(metrics.values[AMD_ENERGY] == (cases[i].is_valid ? cases[i].raw : 0));
    }
}

static void an_attribute_in_another_unit_is_not_read(void **state)
{
    static const uint64_t ids[] = {0, 1, 3, 4, 5, 7, 33, 37};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct amd_metrics metrics;
        struct list list;

        list_begin(&list, 8);
        list_add(&list, TEN_NS, U16, ids[i], 50);
        list_add(&list, 11, U16, ids[i], 50);
        assert_int_equal(list_parse(&list, &metrics), 0);
        assert_int_equal(metrics.valid, 0);
    }
}

static void a_value_that_overflows_in_our_unit_is_absent(void **state)
{
    struct amd_metrics metrics;
    struct list list;

    (void)state;
    list_begin(&list, 8);
    list_add(&list, WATT, U64, 3, UINT64_MAX / 1000 + 1);
    assert_int_equal(list_parse(&list, &metrics), 0);
    assert_int_equal(metrics.valid, 0);
}

static void energy_is_converted_exactly(void **state)
{
    static const struct {
        uint64_t count, energy_uj;
    } cases[] = {
        {0, 0},
        {1, 15},
        {2, 30},
        {1023, 15609},
        {1024, 15625},
        {65536, 1000000},
        {UINT32_MAX, 65535999984},
        {UINT64_C(1) << 48, UINT64_C(4294967296000000)},
        /* The highest that fits, and the first that does not. */
        {UINT64_C(1208925819614629174), UINT64_C(18446744073709551605)},
        {UINT64_C(1208925819614629175), UINT64_MAX},
        {UINT64_MAX - 1, UINT64_MAX},
        {UINT64_MAX, UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_true(amd_energy_uj(cases[i].count) == cases[i].energy_uj);
}

/* count * 10^6 / 2^16 as in the definition, where the conversion uses the reduced fraction. */
static void energy_agrees_with_its_definition_in_128_bits(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++)
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t count = (UINT64_MAX >> shift) - i * i;
            unsigned __int128 energy_uj = (unsigned __int128)count * 1000000 >> 16;

            assert_true(amd_energy_uj(count) ==
                        (energy_uj > UINT64_MAX ? UINT64_MAX : (uint64_t)energy_uj));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_metric_of_each_revision_is_where_the_kernel_puts_it),
        cmocka_unit_test(bytes_after_the_table_are_no_part_of_it),
        cmocka_unit_test(all_ones_in_a_field_mean_that_it_is_absent),
        cmocka_unit_test(zero_is_a_value),
        cmocka_unit_test(a_table_of_another_size_is_refused),
        cmocka_unit_test(what_is_no_header_is_refused),
        cmocka_unit_test(of_an_unknown_revision_only_its_number_is_known),
        cmocka_unit_test(the_clock_of_several_xccs_is_that_of_the_first_that_is_known),
        cmocka_unit_test(chips_without_an_energy_counter_write_the_highest_number_of_32_bits),
        cmocka_unit_test(more_than_100_percent_are_no_percentage),
        cmocka_unit_test(attributes_are_read_and_unknown_ones_skipped),
        cmocka_unit_test(words_of_32_bits_are_read_too),
        cmocka_unit_test(a_list_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_list_must_end_where_its_table_ends),
        cmocka_unit_test(a_list_without_attributes_has_no_metric),
        cmocka_unit_test(an_unknown_type_makes_the_whole_list_unreadable),
        cmocka_unit_test(values_past_the_end_make_the_whole_list_unreadable),
        cmocka_unit_test(an_attribute_without_values_makes_the_whole_list_unreadable),
        cmocka_unit_test(attributes_may_have_any_width),
        cmocka_unit_test(an_attribute_in_another_unit_is_not_read),
        cmocka_unit_test(a_value_that_overflows_in_our_unit_is_absent),
        cmocka_unit_test(energy_is_converted_exactly),
        cmocka_unit_test(energy_agrees_with_its_definition_in_128_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
