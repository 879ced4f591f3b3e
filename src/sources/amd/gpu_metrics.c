#include "sources/amd/gpu_metrics.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/span.h"

enum { HEADER_BYTES = 4, PERCENT_MAX = 100 };

/* How a value is written, and how it becomes the unit that its metric has. */
struct encoding {
    uint8_t bytes;
    bool is_signed; /* negative is absent */
    uint16_t count; /* of several the first that is known is taken */
    uint16_t multiply, divide;
    uint32_t absent; /* means so, as all ones do; 0: no other value does */
};

static const struct encoding u16 = {.bytes = 2, .count = 1, .multiply = 1, .divide = 1};
static const struct encoding u32 = {.bytes = 4, .count = 1, .multiply = 1, .divide = 1};
static const struct encoding u64 = {.bytes = 8, .count = 1, .multiply = 1, .divide = 1};
static const struct encoding u16_of_8 = {.bytes = 2, .count = 8, .multiply = 1, .divide = 1};
static const struct encoding watts = {.bytes = 2, .count = 1, .multiply = 1000, .divide = 1};
static const struct encoding hundredths = {.bytes = 2, .count = 1, .multiply = 1, .divide = 100};
/* Drivers of chips without the counter write UINT_MAX (smu_v13_0_7_ppt.c, smu_v14_0_2_ppt.c). */
static const struct encoding u64_or_max = {
    .bytes = 8, .count = 1, .multiply = 1, .divide = 1, .absent = UINT32_MAX};

struct field {
    enum amd_metric metric;
    const struct encoding *encoding;
    uint16_t offset;
};

static const struct field fields_1_0[] = {
    {AMD_ENERGY, &u32, 36},         {AMD_POWER_MW, &watts, 34}, {AMD_GFX_PERCENT, &u16, 28},
    {AMD_MEMORY_PERCENT, &u16, 30}, {AMD_EDGE_C, &u16, 16},     {AMD_HOTSPOT_C, &u16, 18},
    {AMD_MEMORY_C, &u16, 20},       {AMD_GFX_MHZ, &u16, 54},    {AMD_MEMORY_MHZ, &u16, 58},
};

static const struct field fields_1_1[] = {
    {AMD_ENERGY, &u64_or_max, 24},  {AMD_POWER_MW, &watts, 22}, {AMD_GFX_PERCENT, &u16, 16},
    {AMD_MEMORY_PERCENT, &u16, 18}, {AMD_EDGE_C, &u16, 4},      {AMD_HOTSPOT_C, &u16, 6},
    {AMD_MEMORY_C, &u16, 8},        {AMD_GFX_MHZ, &u16, 54},    {AMD_MEMORY_MHZ, &u16, 58},
};

static const struct field fields_1_4[] = {
    {AMD_ENERGY, &u64, 24},         {AMD_POWER_MW, &watts, 10},  {AMD_GFX_PERCENT, &u16, 12},
    {AMD_MEMORY_PERCENT, &u16, 14}, {AMD_HOTSPOT_C, &u16, 4},    {AMD_MEMORY_C, &u16, 6},
    {AMD_GFX_MHZ, &u16_of_8, 240},  {AMD_MEMORY_MHZ, &u16, 280},
};

static const struct field fields_1_5[] = {
    {AMD_ENERGY, &u64, 88},         {AMD_POWER_MW, &watts, 10},  {AMD_GFX_PERCENT, &u16, 12},
    {AMD_MEMORY_PERCENT, &u16, 14}, {AMD_HOTSPOT_C, &u16, 4},    {AMD_MEMORY_C, &u16, 6},
    {AMD_GFX_MHZ, &u16_of_8, 312},  {AMD_MEMORY_MHZ, &u16, 352},
};

static const struct field fields_1_6[] = {
    {AMD_ENERGY, &u64, 16},         {AMD_POWER_MW, &watts, 10},  {AMD_GFX_PERCENT, &u16, 12},
    {AMD_MEMORY_PERCENT, &u16, 14}, {AMD_HOTSPOT_C, &u16, 4},    {AMD_MEMORY_C, &u16, 6},
    {AMD_GFX_MHZ, &u16_of_8, 264},  {AMD_MEMORY_MHZ, &u16, 304},
};

static const struct field fields_1_7[] = {
    {AMD_ENERGY, &u64, 24},         {AMD_POWER_MW, &watts, 10},  {AMD_GFX_PERCENT, &u16, 12},
    {AMD_MEMORY_PERCENT, &u16, 14}, {AMD_HOTSPOT_C, &u16, 4},    {AMD_MEMORY_C, &u16, 6},
    {AMD_GFX_MHZ, &u16_of_8, 296},  {AMD_MEMORY_MHZ, &u16, 336},
};

static const struct field fields_2_4[] = {
    {AMD_GFX_PERCENT, &hundredths, 28},
    {AMD_EDGE_C, &hundredths, 4},
    {AMD_GFX_MHZ, &u16, 76},
    {AMD_MEMORY_MHZ, &u16, 80},
};

/* Its activity is declared in percent, but smu_v14_0_0_ppt.c fills it with hundredths. */
static const struct field fields_3_0[] = {
    {AMD_POWER_MW, &u32, 112},
};

#define FIELDS(array) (array), ARRAY_SIZE(array)

static const struct layout {
    uint8_t format, content;
    uint16_t bytes;
    const struct field *fields;
    size_t field_count;
} layouts[] = {
    {1, 0, 80, FIELDS(fields_1_0)},
    {1, 1, 96, FIELDS(fields_1_1)},
    {1, 2, 104, FIELDS(fields_1_1)},
    {1, 3, 120, FIELDS(fields_1_1)},
    {1, 4, 288, FIELDS(fields_1_4)},
    {1, 5, 360, FIELDS(fields_1_5)},
    {1, 6, 1664, FIELDS(fields_1_6)},
    {1, 7, 2208, FIELDS(fields_1_7)},
    {1, 8, 3872, FIELDS(fields_1_7)},
    {2, 0, 120, NULL, 0}, /* before 2.4 no units are declared */
    {2, 1, 120, NULL, 0},
    {2, 2, 128, NULL, 0},
    {2, 3, 152, NULL, 0},
    {2, 4, 168, FIELDS(fields_2_4)},
    {3, 0, 264, FIELDS(fields_3_0)},
};

static uint64_t number_at(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return le64toh(value);
}

/* All ones are absent; in signed fields they are -1. */
static bool number_is_known(uint64_t value, const struct encoding *encoding)
{
    uint64_t all_ones = UINT64_MAX >> (64 - 8 * encoding->bytes);

    if (encoding->absent && value == encoding->absent)
        return false;
    return value < (encoding->is_signed ? all_ones / 2 + 1 : all_ones);
}

static bool number_find_known(const uint8_t *at, const struct encoding *encoding,
                              uint64_t *ret_value)
{
    for (size_t i = 0; i < encoding->count; i++) {
        uint64_t value = number_at(at + i * encoding->bytes, encoding->bytes);

        if (!number_is_known(value, encoding))
            continue;
        *ret_value = value;
        return true;
    }
    return false;
}

static void metric_read(enum amd_metric metric, const uint8_t *at, const struct encoding *encoding,
                        struct amd_metrics *metrics)
{
    bool is_percent = metric == AMD_GFX_PERCENT || metric == AMD_MEMORY_PERCENT;
    uint64_t value;

    if (!number_find_known(at, encoding, &value) ||
        __builtin_mul_overflow(value, encoding->multiply, &value))
        return;
    value /= encoding->divide;
    if (is_percent && value > PERCENT_MAX) /* in a unit that is not known */
        return;
    metrics->values[metric] = value;
    metrics->valid |= UINT32_C(1) << metric;
}

static void layout_read(const struct layout *layout, const uint8_t *table,
                        struct amd_metrics *metrics)
{
    for (size_t i = 0; i < layout->field_count; i++) {
        const struct field *field = &layout->fields[i];

        metric_read(field->metric, table + field->offset, field->encoding, metrics);
    }
}

/* 1.9: a list of attributes, each a word that describes it and then its values, without padding. */

enum { ATTRIBUTE_COUNT_OFFSET = 4, ATTRIBUTES_OFFSET = 8, ATTRIBUTE_TYPES = 8 };
enum attribute_unit { UNIT_NONE, UNIT_MHZ, UNIT_C, UNIT_W, UNIT_PERCENT = 10 };

static const struct {
    uint16_t id;
    enum attribute_unit unit; /* in another one it is not read */
    enum amd_metric metric;
    uint16_t multiply;
} attributes[] = {
    {0, UNIT_C, AMD_HOTSPOT_C, 1},
    {1, UNIT_C, AMD_MEMORY_C, 1},
    {3, UNIT_W, AMD_POWER_MW, 1000},
    {4, UNIT_PERCENT, AMD_GFX_PERCENT, 1},
    {5, UNIT_PERCENT, AMD_MEMORY_PERCENT, 1},
    {7, UNIT_NONE, AMD_ENERGY, 1},
    {33, UNIT_MHZ, AMD_GFX_MHZ, 1},
    {37, UNIT_MHZ, AMD_MEMORY_MHZ, 1},
};

struct attribute {
    uint16_t id;
    uint8_t unit;
    struct encoding encoding;
    const uint8_t *values; /* all of them within the table */
};

static void attribute_read(const struct attribute *attribute, struct amd_metrics *metrics)
{
    struct encoding encoding = attribute->encoding;

    for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
        if (attributes[i].id != attribute->id || attributes[i].unit != attribute->unit)
            continue;
        encoding.multiply = attributes[i].multiply;
        metric_read(attributes[i].metric, attribute->values, &encoding, metrics);
    }
}

/* Cuts the next one off `rest`. -EINVAL: not an attribute, or longer than the rest. */
static int attribute_next(struct span *rest, size_t word_bytes, struct attribute *ret_attribute)
{
    const uint8_t *at = (const uint8_t *)rest->data;
    struct encoding encoding;
    uint64_t word;
    size_t bytes;
    unsigned type;

    if (rest->len < word_bytes)
        return -EINVAL;
    word = number_at(at, word_bytes);
    type = word >> 20 & 0xf; /* u8, s8, u16, s16, ... s64 */
    encoding = (struct encoding){
        .bytes = (uint8_t)(1U << type / 2),
        .is_signed = type % 2,
        .count = word & 0x3ff,
        .divide = 1,
    };
    bytes = word_bytes + (size_t)encoding.count * encoding.bytes;
    /* None is empty; but zeros look so if they are taken for a word. */
    if (type >= ATTRIBUTE_TYPES || encoding.count == 0 || rest->len < bytes)
        return -EINVAL;
    *ret_attribute = (struct attribute){
        .id = word >> 10 & 0x3ff,
        .unit = word >> 24 & 0xff,
        .encoding = encoding,
        .values = at + word_bytes,
    };
    *rest = (struct span){rest->data + bytes, rest->len - bytes};
    return 0;
}

/* -EINVAL: they do not end where the table does. */
static int attributes_read(struct span table, size_t word_bytes, struct amd_metrics *metrics)
{
    uint64_t count = number_at((const uint8_t *)table.data + ATTRIBUTE_COUNT_OFFSET, 4);
    struct span rest = {table.data + ATTRIBUTES_OFFSET, table.len - ATTRIBUTES_OFFSET};

    for (uint64_t i = 0; i < count; i++) {
        struct attribute attribute;
        int r = attribute_next(&rest, word_bytes, &attribute);

        if (r < 0)
            return r;
        attribute_read(&attribute, metrics);
    }
    return rest.len == 0 ? 0 : -EINVAL;
}

static int attributes_parse(struct span table, struct amd_metrics *metrics)
{
    /* Review versions of the driver had words of 32 bits. */
    static const size_t word_bytes[] = {8, 4};

    if (table.len < ATTRIBUTES_OFFSET)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(word_bytes); i++) {
        struct amd_metrics attempt = *metrics;

        if (attributes_read(table, word_bytes[i], &attempt) < 0)
            continue;
        *metrics = attempt;
        return 0;
    }
    return -EINVAL;
}

static const struct layout *layout_find(uint8_t format, uint8_t content)
{
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
        if (layouts[i].format == format && layouts[i].content == content)
            return &layouts[i];
    return NULL;
}

static int table_parse(struct span table, struct amd_metrics *metrics)
{
    const struct layout *layout = layout_find(metrics->format, metrics->content);
    bool is_list = metrics->format == 1 && metrics->content == 9;

    metrics->is_known = is_list || layout;
    if (is_list)
        return attributes_parse(table, metrics);
    if (!layout)
        return 0;
    /* 1.6 had other offsets, and another size, while it was developed. */
    if (table.len != layout->bytes)
        return -EINVAL;
    layout_read(layout, (const uint8_t *)table.data, metrics);
    return 0;
}

int amd_metrics_parse(const void *data, size_t size, struct amd_metrics *ret_metrics)
{
    const uint8_t *header = data;
    struct amd_metrics metrics;
    struct span table;
    int r;

    if (size < HEADER_BYTES)
        return -EINVAL;
    table = (struct span){data, (size_t)number_at(header, 2)};
    if (table.len < HEADER_BYTES || table.len > size)
        return -EINVAL;
    metrics = (struct amd_metrics){.format = header[2], .content = header[3]};
    r = table_parse(table, &metrics);
    if (r < 0)
        return r;
    *ret_metrics = metrics;
    return 0;
}

uint64_t amd_energy_uj(uint64_t count)
{
    /* 10^6 / 2^16, reduced. */
    unsigned __int128 energy_uj = (unsigned __int128)count * 15625 / 1024;

    return (uint64_t)MIN(energy_uj, (unsigned __int128)UINT64_MAX);
}
