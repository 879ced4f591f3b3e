/* Reads a trace: lines, `gpu` lines, records. What it does not know it skips, as every reader. */
#include "scenario.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "words.h"

enum {
    LINE_MAX_BYTES = 256 * 1024,
    SERIES_MAX = 1 << 22,
    ENTRIES_MAX = 1 << 16,
};

#define HEADER_1 "wattribute-trace 1"
#define HEADER_2 "wattribute-trace 2"
#define HEADER_3 "wattribute-trace 3"

const struct record *series_at(const struct series *series, uint64_t t_us)
{
    size_t low = 0, high = series->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (series->records[middle].t_us <= t_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &series->records[low - 1] : NULL;
}

const struct record *series_near(const struct series *series, uint64_t t_us)
{
    const struct record *record = series_at(series, t_us);

    return record || series->count == 0 ? record : &series->records[0];
}

static bool series_push(struct series *series, const struct record *record)
{
    if (series->count == series->size) {
        size_t size = series->size ? 2 * series->size : 64;
        struct record *records =
            size > SERIES_MAX ? NULL : realloc(series->records, size * sizeof(*records));

        if (!records)
            return false;
        series->records = records;
        series->size = size;
    }
    series->records[series->count++] = *record;
    return true;
}

/* Texts have `_` for a blank. */
static bool copy_text(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (len >= size)
        return false;
    for (size_t i = 0; i <= len; i++)
        to[i] = text[i] == '_' ? ' ' : text[i];
    return true;
}

static const char *parse_gpu_key(struct gpu *gpu, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *text;
        size_t size;
        uint64_t *number;
    } keys[] = {
        {"uuid", gpu->uuid, sizeof(gpu->uuid), NULL},
        {"name", gpu->name, sizeof(gpu->name), NULL},
        {"driver", gpu->driver, sizeof(gpu->driver), NULL},
        {"serial", gpu->serial, sizeof(gpu->serial), NULL},
        {"pci", gpu->pci, sizeof(gpu->pci), NULL},
        {"power_limit_mw", NULL, 0, &gpu->power_limit_mw},
        {"memory_bytes", NULL, 0, &gpu->memory_bytes},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        if (keys[i].text)
            return copy_text(keys[i].text, keys[i].size, value) ? NULL : "a text that is too long";
        return words_u64(value, keys[i].number) ? NULL : "a bad number";
    }
    return NULL;
}

static const char *parse_gpu_line(struct scenario *scenario, char *rest)
{
    struct gpu *gpu;
    uint64_t index;
    char *word;

    if (!words_u64(words_next(&rest), &index) || index >= SCENARIO_GPUS)
        return "not the index of a GPU (at most 16 GPUs)";
    gpu = &scenario->gpus[index];
    if (gpu->described)
        return "a GPU that was described before";
    gpu->described = true;
    if (index >= scenario->gpu_count)
        scenario->gpu_count = (unsigned)index + 1;
    while ((word = words_next(&rest))) {
        char *value = strchr(word, '=');
        const char *why;

        if (!value)
            return "a word that is not key=value";
        *value++ = '\0';
        why = parse_gpu_key(gpu, word, value);
        if (why)
            return why;
    }
    return gpu->uuid[0] ? NULL : "a GPU without uuid";
}

static const char *parse_values(struct record *record, size_t count, char *rest)
{
    for (size_t i = 0; i < count; i++)
        if (!words_u64(words_next(&rest), &record->values[i]))
            return "a record with a bad number";
    return words_next(&rest) ? "a record with too many words" : NULL;
}

/* `BYTES` or `BYTES:GI:CI`. */
static bool parse_listed(struct entry *entry, char *value)
{
    uint64_t gpu_instance = UINT32_MAX, compute_instance = UINT32_MAX;
    const char *bytes = strsep(&value, ":");

    if (value && (!words_u64(strsep(&value, ":"), &gpu_instance) ||
                  !words_u64(strsep(&value, ":"), &compute_instance) || value))
        return false;
    entry->gpu_instance = (uint32_t)gpu_instance;
    entry->compute_instance = (uint32_t)compute_instance;
    return words_u64(bytes, &entry->bytes);
}

/* `PID:BYTES` or `ID=VALUE`. */
static bool parse_entry(struct entry *entry, char *word, bool metric)
{
    char *value = strchr(word, metric ? '=' : ':');
    char *end;

    if (!value)
        return false;
    *value++ = '\0';
    if (!words_u64(word, &entry->key))
        return false;
    if (!metric)
        return parse_listed(entry, value);
    entry->value = strtod(value, &end);
    return end != value && *end == '\0';
}

static const char *parse_entries(struct record *record, char *rest, bool metric)
{
    size_t size = 0;
    char *word;

    while ((word = words_next(&rest))) {
        if (record->count == size) {
            struct entry *entries;

            size = size ? 2 * size : 8;
            entries = size > ENTRIES_MAX
                          ? NULL
                          : reallocarray(record->entries, size, sizeof(*record->entries));
            if (!entries)
                return "a record with too many entries";
            record->entries = entries;
        }
        if (!parse_entry(&record->entries[record->count], word, metric))
            return "a record with a bad entry";
        record->count++;
    }
    return NULL;
}

static const char *parse_list(struct record *record, enum kind *kind, char *rest)
{
    const char *list = words_next(&rest);
    uint64_t count;
    const char *why;

    if (!list || list[0] == '\0' || list[1] != '\0' || !strchr("cmg", list[0]))
        return "a list that is not c, m or g";
    *kind = list[0] == 'c' ? KIND_COMPUTE : list[0] == 'm' ? KIND_MPS : KIND_GRAPHICS;
    if (!words_u64(words_next(&rest), &count))
        return "a list without its length";
    why = parse_entries(record, rest, false);
    if (!why && record->count != count)
        return "a list that is not as long as it says";
    return why;
}

/* Gives the kind and its fields; KIND_COUNT for a kind that has no place in NVML. */
static const char *parse_fields(struct record *record, enum kind *kind, char letter, char *rest)
{
    const char *why;

    *kind = KIND_COUNT;
    switch (letter) {
    case 'E':
        *kind = KIND_ENERGY;
        why = parse_values(record, 1, rest);
        return !why && record->values[0] == 0 ? "an energy counter of zero" : why;
    case 'P':
        *kind = KIND_POWER;
        return parse_values(record, 3, rest);
    case 'U':
        *kind = KIND_UTILIZATION;
        return parse_values(record, 4, rest);
    case 'M':
        *kind = KIND_MEMORY;
        return parse_values(record, 3, rest);
    case 'S':
        *kind = KIND_SAMPLE;
        return parse_values(record, 6, rest);
    case 'R':
        return parse_list(record, kind, rest);
    case 'G':
        *kind = rest && strncmp(rest, "i=", 2) == 0 ? KIND_INSTANCE_GPM : KIND_GPM;
        if (*kind == KIND_INSTANCE_GPM && !words_u64(words_next(&rest) + 2, &record->values[0]))
            return "a bad GPU instance";
        return parse_entries(record, rest, true);
    case 'B':
        *kind = KIND_LAYOUT;
        return partitions_parse_layout(record, rest);
    case 'K':
        *kind = KIND_INSTANCE_MEMORY;
        return partitions_parse_memory(record, rest);
    case 'V':
        *kind = KIND_VGPUS;
        return partitions_parse_vgpus(record, rest);
    case 'Y':
        *kind = KIND_VGPU_USE;
        return parse_values(record, 6, rest);
    default:
        return NULL;
    }
}

static const char *parse_record(struct scenario *scenario, uint64_t t_us, uint64_t line,
                                unsigned gpu, char letter, char *rest)
{
    struct record record = {.t_us = t_us, .line = line};
    enum kind kind;
    const char *why = parse_fields(&record, &kind, letter, rest);

    if (!why && kind != KIND_COUNT) {
        struct series *series = &scenario->gpus[gpu].series[kind];

        if (scenario->start_us == 0)
            scenario->start_us = t_us;
        if (t_us < series->last_line_us)
            why = "time goes back";
        series->last_line_us = t_us;
        if (kind == KIND_SAMPLE || kind == KIND_VGPU_USE)
            record.t_us = record.values[1];
        if (!why && !series_push(series, &record))
            why = "too many records";
    }
    if (why)
        free(record.entries);
    return why;
}

static const char *parse_timed_line(struct scenario *scenario, uint64_t line, char *rest)
{
    uint64_t t_us, gpu = 0;
    const char *kind, *word;
    bool all;

    if (!words_u64(words_next(&rest), &t_us))
        return "a line that starts with neither gpu nor a time";
    kind = words_next(&rest);
    word = words_next(&rest);
    if (!kind || !word)
        return "a record without GPU";
    if (kind[1] != '\0' || !strchr("EPUMSRGBKVYX", kind[0]))
        return NULL;
    all = kind[0] == 'X' && strcmp(word, "*") == 0;
    if (!all && (!words_u64(word, &gpu) || gpu >= SCENARIO_GPUS || !scenario->gpus[gpu].described))
        return "a GPU that was not described";
    if (kind[0] == 'X')
        return directives_add(&scenario->directives, t_us, line, all ? DIRECTIVE_ALL : (int)gpu,
                              rest);
    return parse_record(scenario, t_us, line, (unsigned)gpu, kind[0], rest);
}

static const char *parse_line(struct scenario *scenario, uint64_t number, char *line)
{
    if (number == 1)
        return strcmp(line, HEADER_1) == 0 || strcmp(line, HEADER_2) == 0 ||
                       strcmp(line, HEADER_3) == 0
                   ? NULL
                   : "not a trace: no " HEADER_3;
    if (strncmp(line, "gpu ", 4) == 0)
        return parse_gpu_line(scenario, line + 4);
    return parse_timed_line(scenario, number, line);
}

static int compare_records(const void *left, const void *right)
{
    const struct record *a = left, *b = right;

    if (a->t_us != b->t_us)
        return a->t_us < b->t_us ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static void sort_series(struct series *series)
{
    if (series->count > 0)
        qsort(series->records, series->count, sizeof(*series->records), compare_records);
}

static const char *finish(struct scenario *scenario)
{
    const struct directive *loop;

    for (unsigned i = 0; i < scenario->gpu_count; i++) {
        if (!scenario->gpus[i].described)
            return "the indices of the GPUs have a gap";
        sort_series(&scenario->gpus[i].series[KIND_SAMPLE]);
        sort_series(&scenario->gpus[i].series[KIND_VGPU_USE]);
    }
    directives_sort(&scenario->directives);
    if (scenario->start_us == 0 && scenario->directives.count > 0)
        scenario->start_us = scenario->directives.items[0].t_us;
    loop = directives_last(&scenario->directives, DIRECTIVE_LOOP, 0, DIRECTIVE_ALL, UINT64_MAX);
    if (!loop)
        return NULL;
    scenario->loop_us = loop->t_us;
    if (loop->t_us <= scenario->start_us)
        return "loop at or before the start of the trace";
    if (directives_last(&scenario->directives, DIRECTIVE_DRIVER, 0, DIRECTIVE_ALL, UINT64_MAX))
        return "loop and driver-unload do not go together";
    return NULL;
}

static const char *read_lines(struct scenario *scenario, gzFile file, uint64_t *number)
{
    char *line = malloc(LINE_MAX_BYTES);
    const char *why = line ? NULL : "out of memory";

    while (!why && gzgets(file, line, LINE_MAX_BYTES)) {
        size_t len = strlen(line);

        ++*number;
        if (len == 0 || line[len - 1] != '\n') {
            why = "a line that is not whole, or too long";
            break;
        }
        line[len - 1] = '\0';
        why = parse_line(scenario, *number, line);
    }
    free(line);
    if (!why && !gzeof(file))
        why = "cannot be decompressed";
    if (!why && *number == 0)
        why = "empty";
    return why ? why : finish(scenario);
}

static char *folder_of(const char *path)
{
    char *copy = strdup(path);
    char *folder = copy ? strdup(dirname(copy)) : NULL;

    free(copy);
    return folder;
}

struct scenario *scenario_read(const char *path, char *why, size_t why_size)
{
    struct scenario *scenario = calloc(1, sizeof(*scenario));
    gzFile file = gzopen(path, "rbe");
    uint64_t number = 0;
    const char *reason = "cannot be opened";

    if (scenario && file) {
        scenario->folder = folder_of(path);
        reason = scenario->folder ? read_lines(scenario, file, &number) : "out of memory";
    }
    /* The checksum of a file that was cut is found missing here. */
    if (file && gzclose(file) != Z_OK && !reason)
        reason = "cut off, or damaged";
    if (scenario && !reason)
        return scenario;
    snprintf(why, why_size, "%s:%llu: %s", path, (unsigned long long)number, reason);
    scenario_free(scenario);
    return NULL;
}

void scenario_free(struct scenario *scenario)
{
    if (!scenario)
        return;
    for (unsigned gpu = 0; gpu < SCENARIO_GPUS; gpu++)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
            struct series *series = &scenario->gpus[gpu].series[kind];

            for (size_t i = 0; i < series->count; i++)
                free(series->records[i].entries);
            free(series->records);
        }
    directives_destroy(&scenario->directives);
    free(scenario->folder);
    free(scenario);
}
