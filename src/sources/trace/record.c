/* The records of a trace: a table of their fields, and parsers for those that are no row of fields.
 */
#include "sources/trace.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/trace/fields.h"

/* Bounds of what hardware can report; beyond them a number is corrupt, and sums could overflow. */
#define TIME_MAX_US    ((uint64_t)1 << 60)
#define COUNTER_MAX_MJ ((uint64_t)1 << 50)   /* 700 W for 51 years */
#define POWER_MAX_MW   ((uint64_t)100000000) /* 100 kW */

enum { METER_ID_BYTES = 256 };

#define IN(type, member) .offset = offsetof(type, member), .size_bytes = sizeof(((type *)0)->member)
#define AT(member)       IN(struct sample, member)

#define NUMBER(label, limit) .type = TRACE_NUMBER, .what = (label), .max = (limit)
#define SPARE(label, limit)  .type = TRACE_SPARE_NUMBER, .what = (label), .max = (limit)
#define TEXT(label, size)    .type = TRACE_TEXT, .what = (label), .max = (size)
#define NAMED(prefix, label) .type = TRACE_NAMED, .name = (prefix), .what = (label)
#define KEY(prefix, label)   .type = TRACE_KEY, .name = (prefix), .what = (label)
#define FLAG(letter)         .type = TRACE_FLAG, .name = (letter)

static const struct trace_field energy[] = {
    {NUMBER("energy counter", COUNTER_MAX_MJ), AT(counter_uj), .unit = 1000},
};

static const struct trace_field integral[] = {
    {NUMBER("integrated energy", COUNTER_MAX_MJ * 1000), AT(counter_uj)},
};

/* Usage, average, instant: one of them is used. */
static const struct trace_field power[] = {
    {NUMBER("power", POWER_MAX_MW), AT(power_mw)},
    {SPARE("average power", POWER_MAX_MW), AT(power_mw)},
    {SPARE("instant power", POWER_MAX_MW), AT(power_mw)},
};

static const struct trace_field utilisation[] = {
    {NUMBER("utilisation", 100), AT(utilisation.gpu_percent)},
    {NUMBER("memory utilisation", SAMPLE_PERCENT_UNKNOWN), AT(utilisation.memory_percent)},
    {NUMBER("SM clock", 1000000), AT(utilisation.sm_clock_mhz)},
    {NUMBER("temperature", 1000), AT(utilisation.temperature_c)},
};

static const struct trace_field label[] = {
    {NUMBER("pid", INT32_MAX), AT(label.pid)},
    {NUMBER("sample time", TIME_MAX_US), AT(label.at_us)},
    {NUMBER("sm", TRACE_PERCENT_MAX), AT(label.sm_percent)},
    {NUMBER("mem", TRACE_PERCENT_MAX), AT(label.memory_percent)},
    {NUMBER("enc", TRACE_PERCENT_MAX), AT(label.encoder_percent)},
    {NUMBER("dec", TRACE_PERCENT_MAX), AT(label.decoder_percent)},
    {FLAG("p"), AT(label.in_proc)},
};

static const struct trace_field vgpu_use[] = {
    {NUMBER("vGPU", UINT32_MAX), AT(vgpu_use.vgpu)},
    {NUMBER("sample time", TIME_MAX_US), AT(vgpu_use.at_us)},
    {NUMBER("sm", TRACE_PERCENT_MAX), AT(vgpu_use.sm_percent)},
    {NUMBER("mem", TRACE_PERCENT_MAX), AT(vgpu_use.memory_percent)},
    {NUMBER("enc", TRACE_PERCENT_MAX), AT(vgpu_use.encoder_percent)},
    {NUMBER("dec", TRACE_PERCENT_MAX), AT(vgpu_use.decoder_percent)},
};

static const struct trace_field process[] = {
    {NUMBER("pid", INT32_MAX), AT(process.pid)},
    {NUMBER("start time", TIME_MAX_US), AT(process.start_us)},
    {TEXT("cgroup", 0), AT(process.cgroup)},
    {TEXT("process name", 0), AT(process.name)},
    {.type = TRACE_UID, .what = "user id", .max = SAMPLE_UID_UNKNOWN - 1, AT(process.uid)},
    {KEY("x=", "exact program key"), AT(process.program.exact)},
    {KEY("c=", "coarse program key"), AT(process.program.coarse)},
};

static const struct trace_field meter[] = {
    {.type = TRACE_SOURCE, AT(meter.source)},
    {.type = TRACE_METER, AT(meter.kind)},
    {TEXT("meter", METER_ID_BYTES), AT(meter.id)},
    {NUMBER("energy", COUNTER_MAX_MJ * 1000), AT(meter.counter_uj)},
    {NUMBER("breaks", UINT32_MAX), AT(meter.breaks)},
    {NAMED("m=", "idle part of the model"), AT(meter.idle_uj),
     .has_offset = offsetof(struct sample, meter.modelled)},
    {FLAG("i"), AT(meter.integrated)},
};

static const struct trace_field node_power[] = {
    {.type = TRACE_SOURCE, AT(node_power.source)},
    {NUMBER("power", POWER_MAX_MW), AT(node_power.power_mw)},
};

/* The head of a report: its workloads are on the lines that follow. */
static const struct trace_field usage[] = {
    {NUMBER("busy time", 0), AT(usage.busy_us)},
    {NUMBER("capacity", 0), AT(usage.capacity_us)},
    {NUMBER("memory used", 0), AT(usage.memory_used_bytes)},
    {NUMBER("memory", 0), AT(usage.memory_bytes)},
    {NUMBER("number of workloads", TRACE_LISTED_MAX), AT(usage.count)},
    {NAMED("t=", "memory traffic"), AT(usage.other_traffic_bytes),
     .has_offset = offsetof(struct sample, usage.has_traffic)},
    {FLAG("f"), AT(usage.is_first)},
    {FLAG("b"), AT(usage.is_blind)},
};

static const struct trace_field workload_fields[] = {
    {TEXT("id", WORKLOAD_ID_BYTES), IN(struct sample_workload, id)},
    {TEXT("container", WORKLOAD_CONTAINER_BYTES), IN(struct sample_workload, container_id)},
    {TEXT("pod", WORKLOAD_POD_UID_BYTES), IN(struct sample_workload, pod_uid)},
    {NUMBER("CPU time", 0), IN(struct sample_workload, cpu_us)},
    {NUMBER("memory", 0), IN(struct sample_workload, memory_bytes)},
    {NAMED("t=", "memory traffic"), IN(struct sample_workload, traffic_bytes),
     .has_offset = offsetof(struct sample_workload, has_traffic)},
};

#define FIELDS(list) .fields = (list), .count = ARRAY_SIZE(list)

/* Its fields, or else its parser and its writer. */
struct record {
    char letter;
    enum sample_kind kind;
    const struct trace_field *fields;
    size_t count;
    int (*parse)(struct span *rest, struct batch *batch, struct sample *sample, struct error *err);
    void (*put)(struct buffer *out, const struct sample *sample);
};

static const struct record records[] = {
    {'E', SAMPLE_ENERGY, FIELDS(energy)},
    {'I', SAMPLE_INTEGRAL, FIELDS(integral)},
    {'P', SAMPLE_POWER, FIELDS(power)},
    {'U', SAMPLE_UTILISATION, FIELDS(utilisation)},
    {'S', SAMPLE_LABEL, FIELDS(label)},
    {'A', SAMPLE_BUSY, .parse = trace_parse_busy, .put = trace_put_busy},
    {'R', SAMPLE_LIST, .parse = trace_parse_list, .put = trace_put_list},
    {'N', SAMPLE_PROCESS, FIELDS(process)},
    {'L', SAMPLE_LOST, .count = 0},
    {'G', SAMPLE_GPM, .parse = trace_parse_gpm, .put = trace_put_gpm},
    {'B', SAMPLE_LAYOUT, .parse = trace_parse_layout, .put = trace_put_layout},
    {'K', SAMPLE_GAUGE, .parse = trace_parse_instance_memory, .put = trace_put_instance_memory},
    {'V', SAMPLE_VGPUS, .parse = trace_parse_vgpus, .put = trace_put_vgpus},
    {'Y', SAMPLE_VGPU_USE, FIELDS(vgpu_use)},
    {'J', SAMPLE_METER, FIELDS(meter)},
    {'W', SAMPLE_NODE_POWER, FIELDS(node_power)},
    {'C', SAMPLE_USAGE, FIELDS(usage)},
    {'O', SAMPLE_NAMES, .parse = trace_parse_names, .put = trace_put_names},
};

static const struct record *find_record(enum sample_kind kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        if (records[i].kind == kind)
            return &records[i];
    return NULL;
}

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

/* The keys of a "gpu" line: texts, in which '_' stands for a blank, and numbers. */
static const struct {
    const char *key;
    size_t offset;
    uint64_t max; /* of a number; 0: a text */
} device_keys[] = {
    {"uuid", offsetof(struct sample_device, uuid), 0},
    {"name", offsetof(struct sample_device, name), 0},
    {"driver", offsetof(struct sample_device, driver), 0},
    {"power_limit_mw", offsetof(struct sample_device, power_limit_mw), POWER_MAX_MW},
    {"memory_bytes", offsetof(struct sample_device, memory_bytes), UINT64_MAX},
};

/* "gpu INDEX key=value ..." after its first word. Unknown keys are ignored. */
static int parse_device(struct span *rest, struct batch *batch, struct sample *sample,
                        struct error *err)
{
    struct sample_device device = {.uuid = "", .name = "", .driver = ""};
    int r = take_gpu(rest, sample, err);

    while (r == 0 && rest->len > 0) {
        struct span value = span_cut(rest, ' '), key = span_cut(&value, '=');
        void *member;
        char *text;
        size_t i = 0;

        while (i < ARRAY_SIZE(device_keys) && !span_equals(key, device_keys[i].key))
            i++;
        if (i == ARRAY_SIZE(device_keys))
            continue;
        member = (char *)&device + device_keys[i].offset;
        if (device_keys[i].max > 0) {
            r = trace_take_u64(&value, device_keys[i].max, device_keys[i].key, member, err);
            continue;
        }
        text = arena_copy(&batch->arena, value.data, value.len);
        if (!text)
            return -ENOMEM;
        *(const char **)member = text;
        while ((text = strchr(text, '_')))
            *text = ' ';
    }
    if (r == 0 && device.uuid[0] == '\0')
        r = error_set(err, -EBADMSG, "gpu: uuid=... is missing");
    sample->kind = SAMPLE_DEVICE;
    sample->device = device;
    return r;
}

static int check_end(struct span line, struct span rest, char letter, struct error *err)
{
    if (rest.len > 0 || line.data[line.len - 1] == ' ')
        return error_set(err, -EBADMSG, "more fields than a record of kind %c has", letter);
    return 0;
}

static int parse_record(const struct record *record, struct span line, struct span rest,
                        struct batch *batch, struct sample *sample, struct error *err)
{
    int r = is_of_gpu(record->kind) ? take_gpu(&rest, sample, err) : 0;

    sample->kind = record->kind;
    if (r == 0)
        r = record->parse
                ? record->parse(&rest, batch, sample, err)
                : trace_take_fields(&rest, record->fields, record->count, batch, sample, err);
    return r < 0 ? r : check_end(line, rest, record->letter, err);
}

int trace_parse_line(struct span line, struct batch *batch, struct error *err)
{
    struct sample sample = {0};
    struct span rest = line, first = span_cut(&rest, ' '), word;
    size_t i = 0;
    int r;

    /* A NUL would end names early; no writer of text makes one. */
    if (memchr(line.data, '\0', line.len))
        return error_set(err, -EBADMSG, "a NUL byte (not a text file?)");
    if (span_equals(first, "gpu")) {
        r = parse_device(&rest, batch, &sample, err);
    } else {
        if (parse_u64_max(first, TIME_MAX_US, &sample.t_us) < 0)
            return error_set(err, -EBADMSG, "expected a time in microseconds or 'gpu', got '%.*s'",
                             (int)MIN(first.len, (size_t)40), first.data);
        word = span_cut(&rest, ' ');
        if (word.len == 0)
            return error_set(err, -EBADMSG, "the kind of the record is missing");
        if (span_equals(word, "D"))
            return error_set(err, -EBADMSG, "a workload without a report (kind C) before it");
        while (i < ARRAY_SIZE(records) && (word.len > 1 || word.data[0] != records[i].letter))
            i++;
        if (i == ARRAY_SIZE(records))
            return 0;
        r = parse_record(&records[i], line, rest, batch, &sample, err);
    }
    if (r == 0)
        r = batch_add(batch, &sample);
    return r == -ENOTSUP ? 0 : r < 0 ? r : 1;
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
    /* The others are made by the ledger itself. */
    if (kind <= WORKLOAD_PROCESS || kind > WORKLOAD_OTHER)
        return error_set(err, -EBADMSG, "expected a kind of workload");
    workload.kind = (enum workload_kind)kind;
    r = trace_take_fields(&rest, workload_fields, ARRAY_SIZE(workload_fields), batch, &workload,
                          err);
    if (r == 0)
        r = check_end(line, rest, 'D', err);
    if (r == 0)
        *ret_workload = workload;
    return r;
}

void trace_write_header(struct buffer *out)
{
    buffer_str(out, TRACE_HEADER "\n");
}

static void put_device(struct buffer *out, uint32_t gpu, const struct sample_device *device)
{
    buffer_str(out, "gpu");
    trace_put_number(out, gpu);
    for (size_t i = 0; i < ARRAY_SIZE(device_keys); i++) {
        const void *member = (const char *)device + device_keys[i].offset;
        bool is_text = device_keys[i].max == 0;

        if (!is_text && *(const uint64_t *)member == 0)
            continue;
        buffer_char(out, ' ');
        buffer_str(out, device_keys[i].key);
        buffer_char(out, '=');
        if (!is_text)
            buffer_u64(out, *(const uint64_t *)member);
        /* Whatever would end the line becomes '_', too. */
        for (const char *c = is_text ? *(const char *const *)member : ""; *c; c++)
            buffer_char(out, (char)((unsigned char)*c <= ' ' ? '_' : *c));
    }
    buffer_char(out, '\n');
}

static void put_record(struct buffer *out, const struct sample *sample)
{
    const struct record *record = find_record(sample->kind);

    buffer_u64(out, sample->t_us);
    buffer_char(out, ' ');
    buffer_char(out, record->letter);
    if (is_of_gpu(sample->kind))
        trace_put_number(out, sample->gpu);
    if (record->put)
        record->put(out, sample);
    else
        trace_put_fields(out, record->fields, record->count, sample);
    buffer_char(out, '\n');
    for (size_t i = 0; sample->kind == SAMPLE_USAGE && i < sample->usage.count; i++) {
        const struct sample_workload *workload = &sample->usage.workloads[i];

        buffer_u64(out, sample->t_us);
        buffer_str(out, " D ");
        buffer_str(out, workload_words[workload->kind]);
        trace_put_fields(out, workload_fields, ARRAY_SIZE(workload_fields), workload);
        buffer_char(out, '\n');
    }
}

static void keep_order(uint64_t *last_us, struct sample *sample)
{
    *last_us = sample->t_us = MAX(*last_us, sample->t_us);
}

/* Makes the sample what a trace holds of it. False: nothing. */
static bool reduce(struct trace_writer *writer, struct sample *sample)
{
    bool is_described;

    switch (sample->kind) {
    case SAMPLE_METER: /* the sources of these have clocks of their own */
        writer->has_meter = true;
        return true;
    case SAMPLE_NODE_POWER:
    case SAMPLE_NAMES:
        return true;
    case SAMPLE_USAGE:
        if (!writer->has_meter) /* no energy to divide among workloads */
            sample->usage.count = 0;
        keep_order(&writer->last_usage_us, sample);
        return true;
    case SAMPLE_DEVICE:
        is_described = writer->described[sample->gpu];
        writer->described[sample->gpu] = true;
        return !is_described;
    default:
        if (!find_record(sample->kind) || !writer->described[sample->gpu] ||
            (sample->kind == SAMPLE_GAUGE && !trace_is_instance_memory(sample)))
            return false;
        keep_order(&writer->last_us[sample->gpu], sample);
        return true;
    }
}

bool trace_write_sample(struct trace_writer *writer, const struct sample *sample,
                        struct buffer *out, struct sample *ret_written)
{
    struct sample written = *sample;

    if (!reduce(writer, &written))
        return false;
    if (written.kind == SAMPLE_DEVICE)
        put_device(out, written.gpu, &written.device);
    else
        put_record(out, &written);
    if (ret_written)
        *ret_written = written;
    return true;
}
