#include "sources/trace/trace_node.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/source.h"
#include "sources/trace/trace_fields.h"

enum { METER_ID_BYTES = 256, NAME_BYTES = 513 };

/* The next word as the literal by which samples name their source; NULL: no source of meters. */
static const char *take_source(struct span *rest)
{
    struct span word = span_cut(rest, ' ');

    for (size_t i = 0; source_table[i]; i++)
        if (!source_table[i]->is_no_meter && span_equals(word, source_table[i]->name))
            return source_table[i]->name;
    return NULL;
}

/* The index of the next word among `count`; `count` if it is none of them. */
static size_t take_word(struct span *rest, const char *const *words, size_t count)
{
    struct span word = span_cut(rest, ' ');
    size_t i = 0;

    while (i < count && !span_equals(word, words[i]))
        i++;
    return i;
}

static int take_short_text(struct span *rest, struct batch *batch, size_t size_bytes,
                           const char *what, const char **ret_text, struct error *err)
{
    const char *text;
    int r = trace_take_text(rest, batch, what, &text, err);

    if (r < 0)
        return r;
    if (strlen(text) >= size_bytes)
        return error_set(err, -EBADMSG, "%s: longer than %zu bytes", what, size_bytes - 1);
    *ret_text = text;
    return 0;
}

int trace_parse_meter(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    const char *source = take_source(rest);
    size_t kind = take_word(rest, meter_words, METER_KINDS);
    struct sample_meter meter = {0};
    int r;

    if (!source || kind == METER_KINDS || kind == METER_GPU)
        return -ENOTSUP;
    meter.source = source;
    meter.kind = (enum meter_kind)kind;
    if ((r = take_short_text(rest, batch, METER_ID_BYTES, "meter", &meter.id, err)) < 0 ||
        (r = trace_take_u64(rest, TRACE_COUNTER_MAX_MJ * 1000, "energy", &meter.counter_uj, err)) <
            0 ||
        (r = trace_take_u32(rest, UINT32_MAX, "breaks", &meter.breaks, err)) < 0 ||
        (r = trace_take_named(rest, "m=", "idle part of the model", &meter.modelled, &meter.idle_uj,
                              err)) < 0)
        return r;
    meter.integrated = trace_take_flag(rest, "i");
    sample->kind = SAMPLE_METER;
    sample->meter = meter;
    return 0;
}

int trace_parse_power(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    const char *source = take_source(rest);

    (void)batch;
    if (!source)
        return -ENOTSUP;
    sample->kind = SAMPLE_NODE_POWER;
    sample->node_power.source = source;
    return trace_take_u64(rest, TRACE_POWER_MAX_MW, "power", &sample->node_power.power_mw, err);
}

int trace_parse_usage(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    struct sample_usage usage = {0};
    uint32_t count = 0;
    int r;

    (void)batch;
    if ((r = trace_take_u64(rest, UINT64_MAX, "busy time", &usage.busy_us, err)) < 0 ||
        (r = trace_take_u64(rest, UINT64_MAX, "capacity", &usage.capacity_us, err)) < 0 ||
        (r = trace_take_u64(rest, UINT64_MAX, "memory used", &usage.memory_used_bytes, err)) < 0 ||
        (r = trace_take_u64(rest, UINT64_MAX, "memory", &usage.memory_bytes, err)) < 0 ||
        (r = trace_take_u32(rest, TRACE_LISTED_MAX, "number of workloads", &count, err)) < 0 ||
        (r = trace_take_named(rest, "t=", "memory traffic", &usage.has_traffic,
                              &usage.other_traffic_bytes, err)) < 0)
        return r;
    usage.count = count;
    usage.is_first = trace_take_flag(rest, "f");
    usage.is_blind = trace_take_flag(rest, "b");
    sample->kind = SAMPLE_USAGE;
    sample->usage = usage;
    return 0;
}

/* KEY=TEXT; a key that is not known is passed over. */
static int take_name(struct span *rest, struct batch *batch, struct sample_names *names,
                     struct error *err)
{
    struct span value = span_cut(rest, ' '), key = span_cut(&value, '=');

    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (span_equals(key, workload_text_words[i]))
            return take_short_text(&value, batch, NAME_BYTES, workload_text_words[i],
                                   &names->texts[i], err);
    return 0;
}

int trace_parse_names(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    struct sample_names *names = arena_alloc(&batch->arena, sizeof(*names));
    size_t kind = take_word(rest, workload_words, WORKLOAD_KINDS);
    int r;

    if (!names)
        return -ENOMEM;
    /* The others are nobody's, or made by the books themselves. */
    if (kind <= WORKLOAD_PROCESS || kind >= WORKLOAD_SYSTEM)
        return -ENOTSUP;
    names->kind = (enum workload_kind)kind;
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        names->texts[i] = "";
    r = take_short_text(rest, batch, WORKLOAD_ID_BYTES, "id", &names->id, err);
    while (r == 0 && rest->len > 0)
        r = take_name(rest, batch, names, err);
    sample->kind = SAMPLE_NAMES;
    sample->names = names;
    return r;
}

static int take_kind(struct span *rest, enum workload_kind *ret_kind, struct error *err)
{
    size_t kind = take_word(rest, workload_words, WORKLOAD_KINDS);

    /* The others are made by the books themselves. */
    if (kind <= WORKLOAD_PROCESS || kind >= WORKLOAD_OTHER)
        return error_set(err, -EBADMSG, "expected a kind of workload");
    *ret_kind = (enum workload_kind)kind;
    return 0;
}

int trace_parse_workload(struct span line, uint64_t t_us, struct batch *batch,
                         struct sample_workload *ret_workload, struct error *err)
{
    struct sample_workload workload = {0};
    struct span rest = line, time = span_cut(&rest, ' ');
    uint64_t at_us;
    int r;

    if (memchr(line.data, '\0', line.len))
        return error_set(err, -EBADMSG, "a NUL byte (not a text file?)");
    if (parse_u64(time, &at_us) < 0 || at_us != t_us || !span_strip_prefix(&rest, "D "))
        return error_set(err, -EBADMSG,
                         "expected the next workload (kind D) of the report (kind C) before it");
    if ((r = take_kind(&rest, &workload.kind, err)) < 0 ||
        (r = take_short_text(&rest, batch, WORKLOAD_ID_BYTES, "id", &workload.id, err)) < 0 ||
        (r = take_short_text(&rest, batch, WORKLOAD_CONTAINER_BYTES, "container",
                             &workload.container_id, err)) < 0 ||
        (r = take_short_text(&rest, batch, WORKLOAD_POD_UID_BYTES, "pod", &workload.pod_uid, err)) <
            0 ||
        (r = trace_take_u64(&rest, UINT64_MAX, "CPU time", &workload.cpu_us, err)) < 0 ||
        (r = trace_take_u64(&rest, UINT64_MAX, "memory", &workload.memory_bytes, err)) < 0 ||
        (r = trace_take_named(&rest, "t=", "memory traffic", &workload.has_traffic,
                              &workload.traffic_bytes, err)) < 0)
        return r;
    if (rest.len > 0 || line.data[line.len - 1] == ' ')
        return error_set(err, -EBADMSG, "more fields than a record of kind D has");
    *ret_workload = workload;
    return 0;
}
