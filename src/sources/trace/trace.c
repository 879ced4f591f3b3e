#include "sources/trace/trace.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/trace/trace_fields.h"
#include "sources/trace/trace_node.h"

enum { PERCENT_FIELD_MAX = 65535 };

static int parse_energy(struct span *rest, struct batch *batch, struct sample *sample,
                        struct error *err)
{
    uint64_t counter_mj;
    int r = trace_take_u64(rest, TRACE_COUNTER_MAX_MJ, "energy counter", &counter_mj, err);

    (void)batch;
    if (r < 0)
        return r;
    sample->kind = SAMPLE_ENERGY;
    sample->counter_uj = counter_mj * 1000;
    return 0;
}

static int parse_integral(struct span *rest, struct batch *batch, struct sample *sample,
                          struct error *err)
{
    (void)batch;
    sample->kind = SAMPLE_INTEGRAL;
    return trace_take_u64(rest, TRACE_COUNTER_MAX_MJ * 1000, "integrated energy",
                          &sample->counter_uj, err);
}

static int parse_loss(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    (void)rest;
    (void)batch;
    (void)err;
    sample->kind = SAMPLE_LOST;
    return 0;
}

static int parse_power(struct span *rest, struct batch *batch, struct sample *sample,
                       struct error *err)
{
    uint64_t average_mw, instant_mw;
    int r;

    (void)batch;
    if ((r = trace_take_u64(rest, TRACE_POWER_MAX_MW, "power", &sample->power_mw, err)) < 0 ||
        (r = trace_take_u64(rest, TRACE_POWER_MAX_MW, "average power", &average_mw, err)) < 0 ||
        (r = trace_take_u64(rest, TRACE_POWER_MAX_MW, "instant power", &instant_mw, err)) < 0)
        return r;
    sample->kind = SAMPLE_POWER;
    return 0;
}

static int parse_utilisation(struct span *rest, struct batch *batch, struct sample *sample,
                             struct error *err)
{
    uint16_t gpu_percent = 0, memory_percent = 0;
    uint32_t clock_mhz = 0, temperature_c = 0;
    int r;

    (void)batch;
    if ((r = trace_take_u16(rest, 100, "utilisation", &gpu_percent, err)) < 0 ||
        (r = trace_take_u16(rest, 100, "memory utilisation", &memory_percent, err)) < 0 ||
        (r = trace_take_u32(rest, 1000000, "SM clock", &clock_mhz, err)) < 0 ||
        (r = trace_take_u32(rest, 1000, "temperature", &temperature_c, err)) < 0)
        return r;
    sample->kind = SAMPLE_UTILISATION;
    sample->utilisation = (struct sample_utilisation){(uint8_t)gpu_percent, (uint8_t)memory_percent,
                                                      clock_mhz, temperature_c};
    return 0;
}

static int parse_label(struct span *rest, struct batch *batch, struct sample *sample,
                       struct error *err)
{
    struct sample_label label = {0};
    int r;

    (void)batch;
    /* Drivers are known to answer garbage above 100 %: it is passed on, and attribution drops it.
     */
    if ((r = trace_take_u32(rest, INT32_MAX, "pid", &label.pid, err)) < 0 ||
        (r = trace_take_u64(rest, TRACE_TIME_MAX_US, "sample time", &label.at_us, err)) < 0 ||
        (r = trace_take_u16(rest, PERCENT_FIELD_MAX, "sm", &label.sm_percent, err)) < 0 ||
        (r = trace_take_u16(rest, PERCENT_FIELD_MAX, "mem", &label.memory_percent, err)) < 0 ||
        (r = trace_take_u16(rest, PERCENT_FIELD_MAX, "enc", &label.encoder_percent, err)) < 0 ||
        (r = trace_take_u16(rest, PERCENT_FIELD_MAX, "dec", &label.decoder_percent, err)) < 0)
        return r;
    label.in_proc = trace_take_flag(rest, "p"); /* /proc had the pid */
    sample->kind = SAMPLE_LABEL;
    sample->label = label;
    return 0;
}

static int parse_list(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    static const char kinds[] = {'c', 'm', 'g'}; /* in the order of enum sample_list_kind */
    struct span word = span_cut(rest, ' ');
    const char *kind = word.len == 1 ? memchr(kinds, word.data[0], sizeof(kinds)) : NULL;
    struct sample_listed *entries;
    uint64_t count;
    int r;

    if (!kind)
        return error_set(err, -EBADMSG, "list: expected c, m or g, got '%.*s'",
                         (int)MIN(word.len, (size_t)40), word.data);
    r = trace_take_u64(rest, TRACE_LISTED_MAX, "list length", &count, err);
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
    sample->kind = SAMPLE_LIST;
    sample->list = (struct sample_list){(enum sample_list_kind)(kind - kinds), count, entries};
    return 0;
}

/* A decimal fraction of percent, in thousandths; what is finer is cut off. */
static int parse_millipercent(struct span text, uint64_t *ret_value)
{
    struct span whole = span_cut(&text, '.');
    uint64_t value, digits = 0, unit = 100;

    if (parse_u64_max(whole, PERCENT_FIELD_MAX, &value) < 0)
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
    sample->kind = SAMPLE_GPM;
    sample->gpm = gpm;
    return 0;
}

static int parse_process(struct span *rest, struct batch *batch, struct sample *sample,
                         struct error *err)
{
    struct sample_process process = {.uid = SAMPLE_UID_UNKNOWN};
    int r;

    if ((r = trace_take_u32(rest, INT32_MAX, "pid", &process.pid, err)) < 0 ||
        (r = trace_take_u64(rest, TRACE_TIME_MAX_US, "start time", &process.start_us, err)) < 0 ||
        (r = trace_take_text(rest, batch, "cgroup", &process.cgroup, err)) < 0 ||
        (r = trace_take_text(rest, batch, "process name", &process.name, err)) < 0 ||
        (rest->len > 0 &&
         (r = trace_take_u32(rest, SAMPLE_UID_UNKNOWN - 1, "user id", &process.uid, err)) < 0))
        return r;
    sample->kind = SAMPLE_PROCESS;
    sample->process = process;
    return 0;
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
    int r = trace_take_u32(rest, SAMPLE_GPU_MAX - 1, "gpu index", &sample->gpu, err);

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

/* As the parsers of trace_node.h, which have no GPU before their fields. */
static const struct {
    char letter;
    bool is_of_node;
    int (*parse)(struct span *rest, struct batch *batch, struct sample *sample, struct error *err);
} kinds[] = {
    {'E', false, parse_energy},      {'I', false, parse_integral},   {'P', false, parse_power},
    {'U', false, parse_utilisation}, {'S', false, parse_label},      {'R', false, parse_list},
    {'N', false, parse_process},     {'L', false, parse_loss},       {'G', false, parse_gpm},
    {'J', true, trace_parse_meter},  {'W', true, trace_parse_power}, {'C', true, trace_parse_usage},
    {'O', true, trace_parse_names},
};

static int parse_record(size_t kind, struct span line, struct span rest, struct batch *batch,
                        struct sample *sample, struct error *err)
{
    int r = 0;

    if (!kinds[kind].is_of_node)
        r = trace_take_u32(&rest, SAMPLE_GPU_MAX - 1, "gpu index", &sample->gpu, err);
    if (r == 0)
        r = kinds[kind].parse(&rest, batch, sample, err);
    if (r != 0)
        return r == -ENOTSUP ? 0 : r;
    if (rest.len > 0 || line.data[line.len - 1] == ' ')
        return error_set(err, -EBADMSG, "more fields than a record of kind %c has",
                         kinds[kind].letter);
    r = batch_add(batch, sample);
    return r < 0 ? r : 1;
}

int trace_parse_line(struct span line, struct batch *batch, struct error *err)
{
    struct sample sample = {0};
    struct span rest = line, first = span_cut(&rest, ' '), word;
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
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (word.len == 1 && word.data[0] == kinds[i].letter)
            return parse_record(i, line, rest, batch, &sample, err);
    return 0;
}
