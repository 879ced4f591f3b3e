#include "sources/trace_record.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/trace/format.h"

static bool is_of_gpu(enum sample_kind kind)
{
    return kind < SAMPLE_METER;
}

static int take_gpu(struct span *rest, struct sample *sample, struct error *err)
{
    uint64_t gpu;
    int r = trace_take_u64(rest, SAMPLE_GPU_MAX - 1, "gpu index", &gpu, err);

    if (r == 0)
        sample->gpu = (uint32_t)gpu;
    return r;
}

static char *copy_value(struct batch *batch, struct span value)
{
    char *text = arena_copy(&batch->arena, value.data, value.len);

    for (char *p = text; p && *p; p++)
        if (*p == '_')
            *p = ' ';
    return text;
}

/* "gpu INDEX key=value ..." after its first word. */
static int parse_device(struct span *rest, struct batch *batch, struct sample *sample,
                        struct error *err)
{
    struct sample_device device = {.uuid = "", .name = "", .driver = ""};
    int r = take_gpu(rest, sample, err);

    if (r < 0)
        return r;
    while (rest->len > 0) {
        struct span value = span_cut(rest, ' ');
        struct span key = span_cut(&value, '=');
        uint64_t number = 0;
        const char **text = NULL;

        if (span_equals(key, "uuid"))
            text = &device.uuid;
        else if (span_equals(key, "name"))
            text = &device.name;
        else if (span_equals(key, "driver"))
            text = &device.driver;
        else if (span_equals(key, "power_limit_mw") || span_equals(key, "memory_bytes")) {
            if (parse_u64(value, &number) < 0)
                return error_set(err, -EBADMSG, "gpu: expected %.*s=NUMBER", (int)key.len,
                                 key.data);
            if (key.data[0] == 'm')
                device.memory_bytes = number;
            else if (number <= TRACE_POWER_MAX_MW)
                device.power_limit_mw = number;
            else
                return error_set(err, -EBADMSG, "gpu: a power limit above 100 kW");
        }
        if (text && !(*text = copy_value(batch, value)))
            return -ENOMEM;
    }
    if (device.uuid[0] == '\0')
        return error_set(err, -EBADMSG, "gpu: uuid=... is missing");
    sample->kind = SAMPLE_DEVICE;
    sample->device = device;
    return 0;
}

static int parse_record(const struct trace_record *record, struct span line, struct span rest,
                        struct batch *batch, struct sample *sample, struct error *err)
{
    int r = is_of_gpu(record->kind) ? take_gpu(&rest, sample, err) : 0;

    sample->kind = record->kind;
    if (r == 0)
        r = record->parse
                ? record->parse(&rest, batch, sample, err)
                : trace_take_fields(&rest, record->fields, record->count, batch, sample, err);
    if (r != 0)
        return r == -ENOTSUP ? 0 : r;
    if (rest.len > 0 || line.data[line.len - 1] == ' ')
        return error_set(err, -EBADMSG, "more fields than a record of kind %c has", record->letter);
    r = batch_add(batch, sample);
    return r < 0 ? r : 1;
}

int trace_parse_line(struct span line, struct batch *batch, struct error *err)
{
    struct sample sample = {0};
    struct span rest = line, first = span_cut(&rest, ' '), word;
    const struct trace_record *record;
    int r = 0;

    /* A NUL would end names early; no writer of text makes one. */
    if (memchr(line.data, '\0', line.len))
        return error_set(err, -EBADMSG, "a NUL byte (not a text file?)");
    if (span_equals(first, "gpu")) {
        r = parse_device(&rest, batch, &sample, err);
        if (r == 0)
            r = batch_add(batch, &sample);
        return r < 0 ? r : 1;
    }
    if (parse_u64_max(first, TRACE_TIME_MAX_US, &sample.t_us) < 0)
        return error_set(err, -EBADMSG, "expected a time in microseconds or 'gpu', got '%.*s'",
                         (int)MIN(first.len, (size_t)40), first.data);
    word = span_cut(&rest, ' ');
    if (word.len == 0)
        return error_set(err, -EBADMSG, "the kind of the record is missing");
    if (span_equals(word, "D"))
        return error_set(err, -EBADMSG, "a workload that belongs to no report (kind C)");
    record = trace_record_by_letter(word);
    return record ? parse_record(record, line, rest, batch, &sample, err) : 0;
}

int trace_parse_workload(struct span line, uint64_t t_us, struct batch *batch,
                         struct sample_workload *ret_workload, struct error *err)
{
    struct sample_workload workload = {0};
    struct span rest = line, time = span_cut(&rest, ' ');
    uint64_t at_us;
    size_t kind;
    int r;

    if (memchr(line.data, '\0', line.len))
        return error_set(err, -EBADMSG, "a NUL byte (not a text file?)");
    if (parse_u64(time, &at_us) < 0 || at_us != t_us || !span_strip_prefix(&rest, "D "))
        return error_set(err, -EBADMSG,
                         "expected the next workload (kind D) of the report (kind C) before it");
    kind = trace_take_word(&rest, workload_words, WORKLOAD_KINDS);
    /* The others are made by the books themselves. */
    if (kind <= WORKLOAD_PROCESS || kind >= WORKLOAD_OTHER)
        return error_set(err, -EBADMSG, "expected a kind of workload");
    workload.kind = (enum workload_kind)kind;
    r = trace_take_fields(&rest, trace_workload_fields, TRACE_WORKLOAD_FIELDS, batch, &workload,
                          err);
    if (r < 0)
        return r;
    if (rest.len > 0 || line.data[line.len - 1] == ' ')
        return error_set(err, -EBADMSG, "more fields than a record of kind D has");
    *ret_workload = workload;
    return 0;
}

void trace_write_header(struct buffer *out)
{
    buffer_str(out, TRACE_HEADER "\n");
}

/* Blanks become '_', as the format has it, and so does whatever would end the line. */
static void put_value(struct buffer *out, const char *key, const char *value)
{
    buffer_char(out, ' ');
    buffer_str(out, key);
    buffer_char(out, '=');
    for (; *value; value++)
        buffer_char(out, (char)((unsigned char)*value <= ' ' ? '_' : *value));
}

static void put_device(struct buffer *out, uint32_t gpu, const struct sample_device *device)
{
    buffer_str(out, "gpu");
    trace_put_number(out, gpu);
    put_value(out, "uuid", device->uuid);
    put_value(out, "name", device->name);
    put_value(out, "driver", device->driver);
    if (device->power_limit_mw > 0) {
        buffer_str(out, " power_limit_mw=");
        buffer_u64(out, device->power_limit_mw);
    }
    if (device->memory_bytes > 0) {
        buffer_str(out, " memory_bytes=");
        buffer_u64(out, device->memory_bytes);
    }
    buffer_char(out, '\n');
}

static void put_workload(struct buffer *out, uint64_t t_us, const struct sample_workload *workload)
{
    buffer_u64(out, t_us);
    buffer_str(out, " D ");
    buffer_str(out, workload_words[workload->kind]);
    trace_put_fields(out, trace_workload_fields, TRACE_WORKLOAD_FIELDS, workload);
    buffer_char(out, '\n');
}

static void put_record(struct buffer *out, uint64_t t_us, const struct sample *sample)
{
    const struct trace_record *record = trace_record_of(sample->kind);

    buffer_u64(out, t_us);
    buffer_char(out, ' ');
    buffer_char(out, record->letter);
    if (is_of_gpu(sample->kind))
        trace_put_number(out, sample->gpu);
    if (record->put)
        record->put(out, sample);
    else
        trace_put_fields(out, record->fields, record->count, sample);
    buffer_char(out, '\n');
    for (size_t i = 0; sample->kind == SAMPLE_USAGE && i < sample->usage.count; i++)
        put_workload(out, t_us, &sample->usage.workloads[i]);
}

static uint64_t keep_order(uint64_t *last_us, uint64_t t_us)
{
    *last_us = MAX(*last_us, t_us);
    return *last_us;
}

void trace_write_sample(struct trace_writer *writer, const struct sample *sample,
                        struct buffer *out)
{
    writer->has_meter |= sample->kind == SAMPLE_METER;
    if (sample->kind == SAMPLE_METER || sample->kind == SAMPLE_NODE_POWER ||
        sample->kind == SAMPLE_NAMES) {
        put_record(out, sample->t_us, sample); /* their sources have clocks of their own */
    } else if (sample->kind == SAMPLE_USAGE) {
        struct sample report = *sample;

        if (!writer->has_meter) /* then nobody needs to know who did what */
            report.usage.count = 0;
        put_record(out, keep_order(&writer->last_usage_us, sample->t_us), &report);
    } else if (sample->kind == SAMPLE_DEVICE && !writer->described[sample->gpu]) {
        put_device(out, sample->gpu, &sample->device);
        writer->described[sample->gpu] = true;
    } else if (trace_record_of(sample->kind) && writer->described[sample->gpu]) {
        put_record(out, keep_order(&writer->last_us[sample->gpu], sample->t_us), sample);
    }
}
