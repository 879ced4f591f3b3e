#include "sources/trace/trace_writer.h"

#include "core/macros.h"
#include "sources/trace/trace.h"

void trace_write_header(struct buffer *out)
{
    buffer_str(out, TRACE_HEADER "\n");
}

static void put_number(struct buffer *out, uint64_t value)
{
    buffer_char(out, ' ');
    buffer_u64(out, value);
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

/* A word: blanks, '%' and control bytes as %XX, the empty text as "-". */
static void put_word(struct buffer *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    bool is_dash = text[0] == '-' && text[1] == '\0';

    if (text[0] == '\0')
        buffer_char(out, '-');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c > ' ' && c != '%' && c != 0x7f && !is_dash) {
            buffer_char(out, (char)c);
            continue;
        }
        buffer_char(out, '%');
        buffer_char(out, hex[c >> 4]);
        buffer_char(out, hex[c & 15]);
    }
}

static void put_text(struct buffer *out, const char *text)
{
    buffer_char(out, ' ');
    put_word(out, text);
}

static void put_device(struct buffer *out, uint32_t gpu, const struct sample_device *device)
{
    buffer_str(out, "gpu");
    put_number(out, gpu);
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

static void put_label(struct buffer *out, const struct sample_label *label)
{
    put_number(out, label->pid);
    put_number(out, label->at_us);
    put_number(out, label->sm_percent);
    put_number(out, label->memory_percent);
    put_number(out, label->encoder_percent);
    put_number(out, label->decoder_percent);
    if (label->in_proc)
        buffer_str(out, " p");
}

static void put_list(struct buffer *out, const struct sample_list *list)
{
    static const char kinds[SAMPLE_LIST_KINDS] = {'c', 'm', 'g'};

    buffer_char(out, ' ');
    buffer_char(out, kinds[list->kind]);
    put_number(out, list->count);
    for (size_t i = 0; i < list->count; i++) {
        put_number(out, list->entries[i].pid);
        buffer_char(out, ':');
        buffer_u64(out, list->entries[i].memory_bytes);
    }
}

static void put_gpm(struct buffer *out, const struct sample_gpm *gpm)
{
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
        put_number(out, sample_gpm_ids[i]);
        buffer_char(out, '=');
        if (gpm->valid >> i & 1)
            buffer_fixed(out, gpm->millipercent[i], 3);
        else
            buffer_str(out, "nan");
    }
}

static void put_named(struct buffer *out, const char *name, uint64_t value)
{
    buffer_str(out, name);
    buffer_u64(out, value);
}

static void put_meter(struct buffer *out, const struct sample_meter *meter)
{
    put_text(out, meter->source);
    put_text(out, meter_words[meter->kind]);
    put_text(out, meter->id);
    put_number(out, meter->counter_uj);
    put_number(out, meter->breaks);
    if (meter->modelled)
        put_named(out, " m=", meter->idle_uj);
    if (meter->integrated)
        buffer_str(out, " i");
}

static void put_usage(struct buffer *out, const struct sample_usage *usage)
{
    put_number(out, usage->busy_us);
    put_number(out, usage->capacity_us);
    put_number(out, usage->memory_used_bytes);
    put_number(out, usage->memory_bytes);
    put_number(out, usage->count);
    if (usage->has_traffic)
        put_named(out, " t=", usage->other_traffic_bytes);
    if (usage->is_first)
        buffer_str(out, " f");
    if (usage->is_blind)
        buffer_str(out, " b");
}

static void put_names(struct buffer *out, const struct sample_names *names)
{
    put_text(out, workload_words[names->kind]);
    put_text(out, names->id);
    for (int i = 0; i < WORKLOAD_TEXTS; i++) {
        if (!names->texts[i][0])
            continue;
        buffer_char(out, ' ');
        buffer_str(out, workload_text_words[i]);
        buffer_char(out, '=');
        put_word(out, names->texts[i]);
    }
}

static void put_workload(struct buffer *out, uint64_t t_us, const struct sample_workload *workload)
{
    buffer_u64(out, t_us);
    buffer_str(out, " D");
    put_text(out, workload_words[workload->kind]);
    put_text(out, workload->id);
    put_text(out, workload->container_id);
    put_text(out, workload->pod_uid);
    put_number(out, workload->cpu_us);
    put_number(out, workload->memory_bytes);
    if (workload->has_traffic)
        put_named(out, " t=", workload->traffic_bytes);
    buffer_char(out, '\n');
}

/* The letter of a kind, or 0: not in a trace. */
static char letter_of(enum sample_kind kind)
{
    switch (kind) {
    case SAMPLE_ENERGY:
        return 'E';
    case SAMPLE_INTEGRAL:
        return 'I';
    case SAMPLE_POWER:
        return 'P';
    case SAMPLE_UTILISATION:
        return 'U';
    case SAMPLE_LABEL:
        return 'S';
    case SAMPLE_LIST:
        return 'R';
    case SAMPLE_PROCESS:
        return 'N';
    case SAMPLE_GPM:
        return 'G';
    case SAMPLE_LOST:
        return 'L';
    case SAMPLE_METER:
        return 'J';
    case SAMPLE_NODE_POWER:
        return 'W';
    case SAMPLE_USAGE:
        return 'C';
    case SAMPLE_NAMES:
        return 'O';
    case SAMPLE_DEVICE:
    case SAMPLE_GAUGE:
    case SAMPLE_XID:
    case SAMPLE_KINDS:
        break;
    }
    return 0;
}

static void put_fields(struct buffer *out, const struct sample *sample)
{
    switch (sample->kind) {
    case SAMPLE_ENERGY:
        put_number(out, sample->counter_uj / 1000);
        break;
    case SAMPLE_INTEGRAL:
        put_number(out, sample->counter_uj);
        break;
    case SAMPLE_POWER:
        for (int i = 0; i < 3; i++) /* usage, average, instant: we read one of them */
            put_number(out, sample->power_mw);
        break;
    case SAMPLE_UTILISATION:
        put_number(out, sample->utilisation.gpu_percent);
        put_number(out, sample->utilisation.memory_percent);
        put_number(out, sample->utilisation.sm_clock_mhz);
        put_number(out, sample->utilisation.temperature_c);
        break;
    case SAMPLE_LABEL:
        put_label(out, &sample->label);
        break;
    case SAMPLE_LIST:
        put_list(out, &sample->list);
        break;
    case SAMPLE_PROCESS:
        put_number(out, sample->process.pid);
        put_number(out, sample->process.start_us);
        put_text(out, sample->process.cgroup);
        put_text(out, sample->process.name);
        if (sample->process.uid != SAMPLE_UID_UNKNOWN)
            put_number(out, sample->process.uid);
        break;
    case SAMPLE_GPM:
        put_gpm(out, &sample->gpm);
        break;
    case SAMPLE_METER:
        put_meter(out, &sample->meter);
        break;
    case SAMPLE_NODE_POWER:
        put_text(out, sample->node_power.source);
        put_number(out, sample->node_power.power_mw);
        break;
    case SAMPLE_USAGE:
        put_usage(out, &sample->usage);
        break;
    case SAMPLE_NAMES:
        put_names(out, sample->names);
        break;
    case SAMPLE_LOST:
    case SAMPLE_DEVICE:
    case SAMPLE_GAUGE:
    case SAMPLE_XID:
    case SAMPLE_KINDS:
        break;
    }
}

static void put_record(struct buffer *out, uint64_t t_us, const struct sample *sample)
{
    buffer_u64(out, t_us);
    buffer_char(out, ' ');
    buffer_char(out, letter_of(sample->kind));
    if (sample->kind < SAMPLE_METER)
        put_number(out, sample->gpu);
    put_fields(out, sample);
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
    } else if (letter_of(sample->kind) && writer->described[sample->gpu]) {
        put_record(out, keep_order(&writer->last_us[sample->gpu], sample->t_us), sample);
    }
}
