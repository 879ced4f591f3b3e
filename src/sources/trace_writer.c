#include "sources/trace_writer.h"

#include "core/macros.h"
#include "sources/trace.h"

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
static void put_text(struct buffer *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    bool is_dash = text[0] == '-' && text[1] == '\0';

    buffer_char(out, ' ');
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
    case SAMPLE_DEVICE:
    case SAMPLE_GAUGE:
    case SAMPLE_XID:
    case SAMPLE_METER:
    case SAMPLE_NODE_POWER:
    case SAMPLE_USAGE:
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
    case SAMPLE_LOST:
    case SAMPLE_DEVICE:
    case SAMPLE_GAUGE:
    case SAMPLE_XID:
    case SAMPLE_METER:
    case SAMPLE_NODE_POWER:
    case SAMPLE_USAGE:
    case SAMPLE_KINDS:
        break;
    }
}

void trace_write_sample(struct trace_writer *writer, const struct sample *sample,
                        struct buffer *out)
{
    char letter = letter_of(sample->kind);
    uint64_t *last_us = &writer->last_us[sample->gpu];

    if (sample->kind == SAMPLE_DEVICE && !writer->described[sample->gpu]) {
        put_device(out, sample->gpu, &sample->device);
        writer->described[sample->gpu] = true;
    }
    if (!letter || !writer->described[sample->gpu])
        return;
    *last_us = MAX(*last_us, sample->t_us);
    buffer_u64(out, *last_us);
    buffer_char(out, ' ');
    buffer_char(out, letter);
    put_number(out, sample->gpu);
    put_fields(out, sample);
    buffer_char(out, '\n');
}
