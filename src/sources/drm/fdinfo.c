#include "sources/drm/fdinfo.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

enum { REGIONS_MAX = 8 };

/* A part of the GPU's own memory. */
struct region {
    struct span name;
    bool has_resident, has_memory;
    uint64_t resident_bytes, memory_bytes;
};

struct reader {
    struct drm_client client;
    bool has_driver;
    bool has_cycles[DRM_ENGINES_MAX], has_total_cycles[DRM_ENGINES_MAX];
    struct region regions[REGIONS_MAX];
    size_t region_count;
    bool has_pasid, has_old_memory;
    uint64_t pasid, old_memory_bytes;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct span trim_blanks(struct span text)
{
    while (text.len > 0 && is_blank(text.data[0]))
        text = (struct span){text.data + 1, text.len - 1};
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

static bool is_word(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return text.len > 0;
}

/* "0000:03:00.0"; domains beyond 16 bits have more digits. */
static bool is_pci_address(struct span text)
{
    static const char tail[] = ":xx:xx.x";
    size_t domain_len = text.len - strlen(tail);

    if (text.len < strlen("0000:03:00.0") || text.len > strlen("ffffffff:ff:1f.7"))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char expected = 'x';

        if (i >= domain_len)
            expected = tail[i - domain_len];
        if (expected == 'x' ? !parse_is_hex(text.data[i]) : text.data[i] != expected)
            return false;
    }
    return true;
}

/* "12 KiB": a number, saturated, and its unit, which may be empty. */
static bool parse_quantity(struct span value, uint64_t *ret_number, struct span *ret_unit)
{
    struct span number = span_cut(&value, ' ');
    int r = parse_u64(number, ret_number);

    if (r == -ERANGE)
        *ret_number = UINT64_MAX;
    *ret_unit = trim_blanks(value);
    return r != -EINVAL;
}

static bool parse_count(struct span value, const char *unit, uint64_t *ret_count)
{
    struct span actual;

    return parse_quantity(value, ret_count, &actual) && span_equals(actual, unit);
}

static bool parse_bytes(struct span value, uint64_t *ret_bytes)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"kB", 1 << 10}};
    struct span unit;

    if (!parse_quantity(value, ret_bytes, &unit))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (span_equals(unit, units[i].name)) {
            if (__builtin_mul_overflow(*ret_bytes, units[i].bytes, ret_bytes))
                *ret_bytes = UINT64_MAX;
            return true;
        }
    return false;
}

/* From here on: what each key sets. `name` is what follows the key's prefix. */

static void set_driver(struct reader *reader, struct span name, struct span value)
{
    static const char *const drivers[] = {
        [DRM_AMDGPU] = "amdgpu", [DRM_I915] = "i915", [DRM_XE] = "xe"};

    (void)name;
    if (!is_word(value))
        return;
    reader->has_driver = true;
    reader->client.driver = DRM_OTHER;
    for (enum drm_driver i = DRM_OTHER + 1; i < ARRAY_SIZE(drivers); i++)
        if (span_equals(value, drivers[i]))
            reader->client.driver = i;
}

static void set_pdev(struct reader *reader, struct span name, struct span value)
{
    (void)name;
    if (!is_pci_address(value))
        return;
    memcpy(reader->client.pdev, value.data, value.len);
    reader->client.pdev[value.len] = '\0';
}

static void set_id(struct reader *reader, struct span name, struct span value)
{
    (void)name;
    if (parse_u64(value, &reader->client.id) == 0)
        reader->client.has_id = true;
}

/* DRM_ENGINES_MAX: the name is no name, or there is no room. */
static size_t find_engine(struct reader *reader, struct span name)
{
    struct drm_client *client = &reader->client;
    struct drm_engine *engine;

    if (!is_word(name) || name.len >= DRM_ENGINE_BYTES)
        return DRM_ENGINES_MAX;
    for (size_t i = 0; i < client->engine_count; i++)
        if (span_equals(name, client->engines[i].name))
            return i;
    if (client->engine_count == DRM_ENGINES_MAX)
        return DRM_ENGINES_MAX;
    engine = &client->engines[client->engine_count];
    *engine = (struct drm_engine){.capacity = 1};
    memcpy(engine->name, name.data, name.len);
    return client->engine_count++;
}

static void set_capacity(struct reader *reader, struct span name, struct span value)
{
    uint64_t capacity;
    size_t i;

    if (parse_u64_max(value, UINT32_MAX, &capacity) < 0 || capacity == 0)
        return;
    i = find_engine(reader, name);
    if (i < DRM_ENGINES_MAX)
        reader->client.engines[i].capacity = (uint32_t)capacity;
}

static void set_time(struct reader *reader, struct span name, struct span value)
{
    uint64_t busy_ns;
    size_t i;

    if (!parse_count(value, "ns", &busy_ns))
        return;
    i = find_engine(reader, name);
    if (i < DRM_ENGINES_MAX) {
        reader->client.engines[i].has_time = true;
        reader->client.engines[i].busy_ns = busy_ns;
    }
}

static void set_cycles(struct reader *reader, struct span name, struct span value)
{
    uint64_t cycles;
    size_t i;

    if (!parse_count(value, "", &cycles))
        return;
    i = find_engine(reader, name);
    if (i < DRM_ENGINES_MAX) {
        reader->has_cycles[i] = true;
        reader->client.engines[i].cycles = cycles;
    }
}

static void set_total_cycles(struct reader *reader, struct span name, struct span value)
{
    uint64_t cycles;
    size_t i;

    if (!parse_count(value, "", &cycles))
        return;
    i = find_engine(reader, name);
    if (i < DRM_ENGINES_MAX) {
        reader->has_total_cycles[i] = true;
        reader->client.engines[i].total_cycles = cycles;
    }
}

/* amdgpu's "vram", "vram0" of xe, "local0" of i915. Stolen memory is the system's on GPUs without
 * memory of their own, whatever its name. */
static bool is_own_memory(struct span name)
{
    if (!span_strip_prefix(&name, "vram") && !span_strip_prefix(&name, "local"))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!parse_is_digit(name.data[i]))
            return false;
    return true;
}

/* NULL: it is not the GPU's own, or there is no room. */
static struct region *find_region(struct reader *reader, struct span name)
{
    if (!is_own_memory(name))
        return NULL;
    for (size_t i = 0; i < reader->region_count; i++)
        if (reader->regions[i].name.len == name.len &&
            memcmp(reader->regions[i].name.data, name.data, name.len) == 0)
            return &reader->regions[i];
    if (reader->region_count == REGIONS_MAX)
        return NULL;
    reader->regions[reader->region_count].name = name;
    return &reader->regions[reader->region_count++];
}

static void set_resident(struct reader *reader, struct span name, struct span value)
{
    uint64_t bytes;
    struct region *region = parse_bytes(value, &bytes) ? find_region(reader, name) : NULL;

    if (region) {
        region->has_resident = true;
        region->resident_bytes = bytes;
    }
}

static void set_memory(struct reader *reader, struct span name, struct span value)
{
    uint64_t bytes;
    struct region *region = parse_bytes(value, &bytes) ? find_region(reader, name) : NULL;

    if (region) {
        region->has_memory = true;
        region->memory_bytes = bytes;
    }
}

static void set_pasid(struct reader *reader, struct span name, struct span value)
{
    (void)name;
    /* 0: the GPU had none left. */
    if (parse_u64(value, &reader->pasid) == 0)
        reader->has_pasid = reader->pasid > 0;
}

static void set_old_memory(struct reader *reader, struct span name, struct span value)
{
    uint64_t bytes;

    (void)name;
    if (parse_bytes(value, &bytes)) {
        reader->has_old_memory = true;
        reader->old_memory_bytes = bytes;
    }
}

static void read_line(struct reader *reader, struct span line)
{
    static const struct {
        const char *key;
        bool has_name; /* what follows `key`: an engine, or a region of memory */
        void (*set)(struct reader *reader, struct span name, struct span value);
    } keys[] = {
        {"drm-driver", false, set_driver},
        {"drm-pdev", false, set_pdev},
        {"drm-client-id", false, set_id},
        {"drm-engine-capacity-", true, set_capacity}, /* not the time of an engine "capacity-" */
        {"drm-engine-", true, set_time},
        {"drm-cycles-", true, set_cycles},
        {"drm-total-cycles-", true, set_total_cycles},
        {"drm-resident-", true, set_resident},
        {"drm-memory-", true, set_memory},
        {"pdev", false, set_pdev}, /* amdgpu before Linux 5.19, as the two below */
        {"vram mem", false, set_old_memory},
        {"pasid", false, set_pasid}, /* still there */
    };
    struct span key = span_cut(&line, ':');

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct span name = key;

        if (span_strip_prefix(&name, keys[i].key) && (name.len > 0) == keys[i].has_name) {
            keys[i].set(reader, name, trim_blanks(line));
            return;
        }
    }
}

/* Keeps the engines that have a measure. Cycles alone are none: their clock is unknown. */
static void finish_engines(struct reader *reader)
{
    struct drm_client *client = &reader->client;
    size_t kept = 0;

    for (size_t i = 0; i < client->engine_count; i++) {
        struct drm_engine engine = client->engines[i];

        engine.has_cycles = reader->has_cycles[i] && reader->has_total_cycles[i];
        if (!engine.has_cycles)
            engine.cycles = engine.total_cycles = 0;
        if (engine.has_time || engine.has_cycles)
            client->engines[kept++] = engine;
    }
    client->engine_count = kept;
}

/*
 * Adds the regions up. `drm-memory-` is an alias of `drm-resident-`, and amdgpu writes both: one of
 * them counts. `drm-total-` does not stand in for them, because it includes buffers that were never
 * backed by memory.
 */
static void finish_memory(struct reader *reader)
{
    struct drm_client *client = &reader->client;

    for (size_t i = 0; i < reader->region_count; i++) {
        const struct region *region = &reader->regions[i];
        uint64_t bytes = region->has_resident ? region->resident_bytes : region->memory_bytes;

        client->has_memory = true;
        if (__builtin_add_overflow(client->memory_bytes, bytes, &client->memory_bytes))
            client->memory_bytes = UINT64_MAX;
    }
}

/* amdgpu of Linux 5.14 to 5.18 names no driver, and measures engines in percent of an unknown time:
 * those are left out. */
static int finish_old(struct reader *reader)
{
    struct drm_client *client = &reader->client;

    if (client->pdev[0] == '\0' || !reader->has_old_memory)
        return -ENODATA;
    client->driver = DRM_AMDGPU;
    client->is_untimed = true;
    client->has_id = reader->has_pasid;
    client->id = reader->has_pasid ? reader->pasid : 0;
    client->has_memory = true;
    client->memory_bytes = reader->old_memory_bytes;
    client->engine_count = 0;
    return 0;
}

int drm_fdinfo_parse(struct span text, struct drm_client *ret_client)
{
    struct reader reader = {.has_driver = false};

    while (text.len > 0 && memchr(text.data, '\n', text.len))
        read_line(&reader, span_cut(&text, '\n'));
    if (reader.has_driver) {
        finish_engines(&reader);
        finish_memory(&reader);
    } else if (finish_old(&reader) < 0) {
        return -ENODATA;
    }
    *ret_client = reader.client;
    return 0;
}
