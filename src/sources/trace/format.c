#include "sources/trace/format.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

enum {
    LISTED_MAX = 65536,  /* processes, workloads */
    PERCENT_MAX = 65535, /* drivers are known to answer garbage above 100 %: attribution drops it */
    METER_ID_BYTES = 256,
    NAME_BYTES = 513,
};

#define IN(type, member) .offset = offsetof(type, member), .size_bytes = sizeof(((type *)0)->member)
#define AT(member)       IN(struct sample, member)

#define NUMBER(label, limit) .type = TRACE_NUMBER, .what = (label), .max = (limit)
#define SPARE(label, limit)  .type = TRACE_SPARE_NUMBER, .what = (label), .max = (limit)
#define TEXT(label, size)    .type = TRACE_TEXT, .what = (label), .max = (size)
#define NAMED(prefix, label) .type = TRACE_NAMED, .name = (prefix), .what = (label)
#define FLAG(letter)         .type = TRACE_FLAG, .name = (letter)

static const struct trace_field energy[] = {
    {NUMBER("energy counter", TRACE_COUNTER_MAX_MJ), AT(counter_uj), .unit = 1000},
};

static const struct trace_field integral[] = {
    {NUMBER("integrated energy", TRACE_COUNTER_MAX_MJ * 1000), AT(counter_uj)},
};

/* Usage, average, instant: we read one of them. */
static const struct trace_field power[] = {
    {NUMBER("power", TRACE_POWER_MAX_MW), AT(power_mw)},
    {SPARE("average power", TRACE_POWER_MAX_MW), AT(power_mw)},
    {SPARE("instant power", TRACE_POWER_MAX_MW), AT(power_mw)},
};

static const struct trace_field utilisation[] = {
    {NUMBER("utilisation", 100), AT(utilisation.gpu_percent)},
    {NUMBER("memory utilisation", 100), AT(utilisation.memory_percent)},
    {NUMBER("SM clock", 1000000), AT(utilisation.sm_clock_mhz)},
    {NUMBER("temperature", 1000), AT(utilisation.temperature_c)},
};

static const struct trace_field label[] = {
    {NUMBER("pid", INT32_MAX), AT(label.pid)},
    {NUMBER("sample time", TRACE_TIME_MAX_US), AT(label.at_us)},
    {NUMBER("sm", PERCENT_MAX), AT(label.sm_percent)},
    {NUMBER("mem", PERCENT_MAX), AT(label.memory_percent)},
    {NUMBER("enc", PERCENT_MAX), AT(label.encoder_percent)},
    {NUMBER("dec", PERCENT_MAX), AT(label.decoder_percent)},
    {FLAG("p"), AT(label.in_proc)},
};

static const struct trace_field process[] = {
    {NUMBER("pid", INT32_MAX), AT(process.pid)},
    {NUMBER("start time", TRACE_TIME_MAX_US), AT(process.start_us)},
    {TEXT("cgroup", 0), AT(process.cgroup)},
    {TEXT("process name", 0), AT(process.name)},
    {.type = TRACE_UID, .what = "user id", .max = SAMPLE_UID_UNKNOWN - 1, AT(process.uid)},
};

static const struct trace_field meter[] = {
    {.type = TRACE_SOURCE, AT(meter.source)},
    {.type = TRACE_METER, AT(meter.kind)},
    {TEXT("meter", METER_ID_BYTES), AT(meter.id)},
    {NUMBER("energy", TRACE_COUNTER_MAX_MJ * 1000), AT(meter.counter_uj)},
    {NUMBER("breaks", UINT32_MAX), AT(meter.breaks)},
    {NAMED("m=", "idle part of the model"), AT(meter.idle_uj),
     .has_offset = offsetof(struct sample, meter.modelled)},
    {FLAG("i"), AT(meter.integrated)},
};

static const struct trace_field node_power[] = {
    {.type = TRACE_SOURCE, AT(node_power.source)},
    {NUMBER("power", TRACE_POWER_MAX_MW), AT(node_power.power_mw)},
};

/* The head of a report: its workloads are on the lines that follow. */
static const struct trace_field usage[] = {
    {NUMBER("busy time", 0), AT(usage.busy_us)},
    {NUMBER("capacity", 0), AT(usage.capacity_us)},
    {NUMBER("memory used", 0), AT(usage.memory_used_bytes)},
    {NUMBER("memory", 0), AT(usage.memory_bytes)},
    {NUMBER("number of workloads", LISTED_MAX), AT(usage.count)},
    {NAMED("t=", "memory traffic"), AT(usage.other_traffic_bytes),
     .has_offset = offsetof(struct sample, usage.has_traffic)},
    {FLAG("f"), AT(usage.is_first)},
    {FLAG("b"), AT(usage.is_blind)},
};

const struct trace_field trace_workload_fields[TRACE_WORKLOAD_FIELDS] = {
    {TEXT("id", WORKLOAD_ID_BYTES), IN(struct sample_workload, id)},
    {TEXT("container", WORKLOAD_CONTAINER_BYTES), IN(struct sample_workload, container_id)},
    {TEXT("pod", WORKLOAD_POD_UID_BYTES), IN(struct sample_workload, pod_uid)},
    {NUMBER("CPU time", 0), IN(struct sample_workload, cpu_us)},
    {NUMBER("memory", 0), IN(struct sample_workload, memory_bytes)},
    {NAMED("t=", "memory traffic"), IN(struct sample_workload, traffic_bytes),
     .has_offset = offsetof(struct sample_workload, has_traffic)},
};

/* From here on: records that are no row of fields. */

static const char list_letters[SAMPLE_LIST_KINDS] = {'c', 'm', 'g'};

static int parse_list(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    struct span word = span_cut(rest, ' ');
    const char *kind = word.len == 1 ? memchr(list_letters, word.data[0], SAMPLE_LIST_KINDS) : NULL;
    struct sample_listed *entries;
    uint64_t count;
    int r;

    if (!kind)
        return error_set(err, -EBADMSG, "list: expected c, m or g, got '%.*s'",
                         (int)MIN(word.len, (size_t)40), word.data);
    r = trace_take_u64(rest, LISTED_MAX, "list length", &count, err);
    if (r < 0)
        return r;
    /* An entry has at least "1:0" and a blank: a count that the line cannot hold allocates nothing.
     */
    if (count > (rest->len + 1) / 4)
        return error_set(err, -EBADMSG, "list length: %llu entries do not fit in the line",
                         (unsigned long long)count);
    entries = arena_array(&batch->arena, count, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        struct span entry = span_cut(rest, ' ');
        struct span pid = span_cut(&entry, ':');
        uint64_t value;

        if (parse_u64_max(pid, INT32_MAX, &value) < 0 ||
            parse_u64(entry, &entries[i].memory_bytes) < 0)
            return error_set(err, -EBADMSG, "list entry %llu: expected pid:bytes",
                             (unsigned long long)i + 1);
        entries[i].pid = (uint32_t)value;
    }
    sample->list =
        (struct sample_list){(enum sample_list_kind)(kind - list_letters), count, entries};
    return 0;
}

static void put_list(struct buffer *out, const struct sample *sample)
{
    const struct sample_list *list = &sample->list;

    buffer_char(out, ' ');
    buffer_char(out, list_letters[list->kind]);
    trace_put_number(out, list->count);
    for (size_t i = 0; i < list->count; i++) {
        trace_put_number(out, list->entries[i].pid);
        buffer_char(out, ':');
        buffer_u64(out, list->entries[i].memory_bytes);
    }
}

/* A decimal fraction of percent, in thousandths; what is finer is cut off. */
static int parse_millipercent(struct span text, uint64_t *ret_value)
{
    struct span whole = span_cut(&text, '.');
    uint64_t value, digits = 0, unit = 100;

    if (parse_u64_max(whole, PERCENT_MAX, &value) < 0)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EINVAL;
        digits += unit * (uint64_t)(text.data[i] - '0');
        unit /= 10;
    }
    *ret_value = value * 1000 + digits;
    return 0;
}

static int parse_gpm(struct span *rest, struct batch *batch, struct sample *sample,
                     struct error *err)
{
    struct sample_gpm gpm = {0};

    (void)batch;
    while (rest->len > 0) {
        struct span value = span_cut(rest, ' ');
        struct span key = span_cut(&value, '=');
        uint64_t id, millipercent = 0;
        bool is_number = !span_equals(value, "nan");

        if (parse_u64_max(key, UINT32_MAX, &id) < 0 ||
            (is_number && parse_millipercent(value, &millipercent) < 0))
            return error_set(err, -EBADMSG, "GPM: expected ID=PERCENT or ID=nan");
        for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
            /* What is above 100 % is garbage of the driver's. */
            if (id != sample_gpm_ids[i] || !is_number || millipercent > 100000)
                continue;
            gpm.valid |= (uint16_t)(1 << i);
            gpm.millipercent[i] = (uint32_t)millipercent;
        }
    }
    sample->gpm = gpm;
    return 0;
}

static void put_gpm(struct buffer *out, const struct sample *sample)
{
    const struct sample_gpm *gpm = &sample->gpm;

    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
        trace_put_number(out, sample_gpm_ids[i]);
        buffer_char(out, '=');
        if (gpm->valid >> i & 1)
            buffer_fixed(out, gpm->millipercent[i], 3);
        else
            buffer_str(out, "nan");
    }
}

/* KEY=TEXT; a key that is not known is passed over. */
static int take_name(struct span *rest, struct batch *batch, struct sample_names *names,
                     struct error *err)
{
    struct span value = span_cut(rest, ' '), key = span_cut(&value, '=');

    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (span_equals(key, workload_text_words[i]))
            return trace_take_text(&value, batch, NAME_BYTES, workload_text_words[i],
                                   &names->texts[i], err);
    return 0;
}

static int parse_names(struct span *rest, struct batch *batch, struct sample *sample,
                       struct error *err)
{
    struct sample_names *names = arena_alloc(&batch->arena, sizeof(*names));
    size_t kind = trace_take_word(rest, workload_words, WORKLOAD_KINDS);
    int r;

    if (!names)
        return -ENOMEM;
    /* The others are nobody's, or made by the books themselves. */
    if (kind <= WORKLOAD_PROCESS || kind >= WORKLOAD_SYSTEM)
        return -ENOTSUP;
    names->kind = (enum workload_kind)kind;
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        names->texts[i] = "";
    r = trace_take_text(rest, batch, WORKLOAD_ID_BYTES, "id", &names->id, err);
    while (r == 0 && rest->len > 0)
        r = take_name(rest, batch, names, err);
    sample->names = names;
    return r;
}

/* " KEY=TEXT" */
static void put_name(struct buffer *out, const char *key, const char *text)
{
    buffer_char(out, ' ');
    buffer_str(out, key);
    buffer_char(out, '=');
    trace_put_text(out, text);
}

static void put_names(struct buffer *out, const struct sample *sample)
{
    const struct sample_names *names = sample->names;

    buffer_char(out, ' ');
    buffer_str(out, workload_words[names->kind]);
    buffer_char(out, ' ');
    trace_put_text(out, names->id);
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (names->texts[i][0])
            put_name(out, workload_text_words[i], names->texts[i]);
}

/* From here on: all of them. */

#define FIELDS(list) .fields = (list), .count = ARRAY_SIZE(list)

static const struct trace_record records[] = {
    {'E', SAMPLE_ENERGY, FIELDS(energy)},
    {'I', SAMPLE_INTEGRAL, FIELDS(integral)},
    {'P', SAMPLE_POWER, FIELDS(power)},
    {'U', SAMPLE_UTILISATION, FIELDS(utilisation)},
    {'S', SAMPLE_LABEL, FIELDS(label)},
    {'R', SAMPLE_LIST, .parse = parse_list, .put = put_list},
    {'N', SAMPLE_PROCESS, FIELDS(process)},
    {'L', SAMPLE_LOST, .count = 0},
    {'G', SAMPLE_GPM, .parse = parse_gpm, .put = put_gpm},
    {'J', SAMPLE_METER, FIELDS(meter)},
    {'W', SAMPLE_NODE_POWER, FIELDS(node_power)},
    {'C', SAMPLE_USAGE, FIELDS(usage)},
    {'O', SAMPLE_NAMES, .parse = parse_names, .put = put_names},
};

const struct trace_record *trace_record_by_letter(struct span word)
{
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        if (word.len == 1 && word.data[0] == records[i].letter)
            return &records[i];
    return NULL;
}

const struct trace_record *trace_record_of(enum sample_kind kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(records); i++)
        if (records[i].kind == kind)
            return &records[i];
    return NULL;
}
