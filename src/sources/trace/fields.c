#include "sources/trace/fields.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/source.h"

enum { NAME_BYTES = 513 };

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "members of any size are copied");

int trace_take_u64(struct span *rest, uint64_t max, const char *what, uint64_t *ret_value,
                   struct error *err)
{
    struct span word = span_cut(rest, ' ');

    if (parse_u64_max(word, max, ret_value) < 0)
        return error_set(err, -EBADMSG, "%s: expected a number of at most %llu, got '%.*s'", what,
                         (unsigned long long)max, (int)MIN(word.len, (size_t)40), word.data);
    return 0;
}

void trace_put_number(struct buffer *out, uint64_t value)
{
    buffer_char(out, ' ');
    buffer_u64(out, value);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)((at - digits) & 15) : -1;
}

int trace_take_text(struct span *rest, struct batch *batch, size_t size_bytes, const char *what,
                    const char **ret_text, struct error *err)
{
    struct span word = span_cut(rest, ' ');
    char *text = arena_copy(&batch->arena, word.data, word.len);
    size_t len = 0;

    if (!text)
        return -ENOMEM;
    if (word.len == 0)
        return error_set(err, -EBADMSG, "%s is missing", what);
    for (size_t i = 0; i < word.len; i++) {
        int high, low;

        if (word.data[i] != '%') {
            text[len++] = word.data[i];
            continue;
        }
        high = i + 2 < word.len ? hex_digit(word.data[i + 1]) : -1;
        low = i + 2 < word.len ? hex_digit(word.data[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return error_set(err, -EBADMSG, "%s: expected %%XX with two hexadecimal digits, not 00",
                             what);
        text[len++] = (char)(high << 4 | low);
        i += 2;
    }
    if (len >= size_bytes)
        return error_set(err, -EBADMSG, "%s: longer than %zu bytes", what, size_bytes - 1);
    text[len] = '\0';
    *ret_text = span_equals(word, "-") ? "" : text; /* a process of that name is %2D */
    return 0;
}

static void put_text_without(struct buffer *out, const char *text, char excluded)
{
    static const char hex[] = "0123456789ABCDEF";
    bool is_dash = text[0] == '-' && text[1] == '\0';

    if (text[0] == '\0')
        buffer_char(out, '-');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c > ' ' && c != '%' && c != 0x7f && *text != excluded && !is_dash) {
            buffer_char(out, (char)c);
            continue;
        }
        buffer_char(out, '%');
        buffer_char(out, hex[c >> 4]);
        buffer_char(out, hex[c & 15]);
    }
}

void trace_put_text(struct buffer *out, const char *text)
{
    put_text_without(out, text, '%');
}

void trace_put_entry_text(struct buffer *out, const char *text)
{
    buffer_char(out, ':');
    put_text_without(out, text, ':');
}

size_t trace_take_word(struct span *rest, const char *const *words, size_t count)
{
    struct span word = span_cut(rest, ' ');
    size_t i = 0;

    while (i < count && !span_equals(word, words[i]))
        i++;
    return i;
}

static int take_field(struct span *rest, const struct trace_field *field, struct batch *batch,
                      char *base, struct error *err)
{
    static const uint64_t unknown_uid = SAMPLE_UID_UNKNOWN;
    void *member = base + field->offset;
    struct span after = *rest, word;
    uint64_t value;
    size_t i = 0;
    int r;

    switch (field->type) {
    case TRACE_TEXT:
        return trace_take_text(rest, batch, field->max ? field->max : SIZE_MAX, field->what, member,
                               err);
    case TRACE_SOURCE:
        word = span_cut(rest, ' ');
        while (source_table[i] &&
               (source_table[i]->is_no_meter || !span_equals(word, source_table[i]->name)))
            i++;
        if (!source_table[i])
            return -ENOTSUP;
        *(const char **)member = source_table[i]->name;
        return 0;
    case TRACE_METER:
        i = trace_take_word(rest, meter_words, METER_KINDS);
        if (i == METER_KINDS || i == METER_GPU)
            return -ENOTSUP;
        *(enum meter_kind *)member = (enum meter_kind)i;
        return 0;
    case TRACE_FLAG:
        word = span_cut(&after, ' ');
        *(bool *)member = span_equals(word, field->name);
        if (*(bool *)member)
            *rest = after;
        return 0;
    case TRACE_UID:
        memcpy(member, &unknown_uid, field->size_bytes);
        if (rest->len == 0 || (rest->len > 1 && rest->data[1] == '=')) /* a named field follows */
            return 0;
        break;
    case TRACE_NAMED:
        if (!span_strip_prefix(rest, field->name))
            return 0;
        *(bool *)(base + field->has_offset) = true;
        break;
    case TRACE_KEY:
        if (!span_strip_prefix(rest, field->name))
            return 0;
        break;
    case TRACE_NUMBER:
    case TRACE_SPARE_NUMBER:
        break;
    }
    r = trace_take_u64(rest, field->max ? field->max : UINT64_MAX, field->what, &value, err);
    if (r < 0 || field->type == TRACE_SPARE_NUMBER)
        return r;
    if (field->type == TRACE_KEY && value == 0)
        return error_set(err, -EBADMSG, "%s: 0 is no key; leave it out", field->what);
    value *= MAX(field->unit, 1U);
    memcpy(member, &value, field->size_bytes);
    return 0;
}

int trace_take_fields(struct span *rest, const struct trace_field *fields, size_t count,
                      struct batch *batch, void *base, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = take_field(rest, &fields[i], batch, base, err);
    return r;
}

static void put_field(struct buffer *out, const struct trace_field *field, const char *base)
{
    const void *member = base + field->offset;
    uint64_t value = 0;

    memcpy(&value, member, field->size_bytes);
    if ((field->type == TRACE_UID && value == SAMPLE_UID_UNKNOWN) ||
        ((field->type == TRACE_FLAG || field->type == TRACE_KEY) && !value) ||
        (field->type == TRACE_NAMED && !*(const bool *)(base + field->has_offset)))
        return;
    buffer_char(out, ' ');
    if (field->name)
        buffer_str(out, field->name);
    if (field->type == TRACE_TEXT || field->type == TRACE_SOURCE)
        trace_put_text(out, *(const char *const *)member);
    else if (field->type == TRACE_METER)
        buffer_str(out, meter_words[value]);
    else if (field->type != TRACE_FLAG)
        buffer_u64(out, value / MAX(field->unit, 1U));
}

void trace_put_fields(struct buffer *out, const struct trace_field *fields, size_t count,
                      const void *base)
{
    for (size_t i = 0; i < count; i++)
        put_field(out, &fields[i], base);
}

static const char list_letters[SAMPLE_LIST_KINDS] = {'c', 'm', 'g'};

/* "PID:BYTES", or "PID:BYTES:GI:CI" of a board in MIG mode. */
static bool parse_listed(struct span entry, struct sample_listed *listed)
{
    struct span pid = span_cut(&entry, ':');
    bool has_instances = entry.len > 0 && memchr(entry.data, ':', entry.len);
    struct span bytes = span_cut(&entry, ':');
    uint64_t value, gpu_instance = SAMPLE_NO_INSTANCE, compute_instance = SAMPLE_NO_INSTANCE;

    if (parse_u64_max(pid, INT32_MAX, &value) < 0 || parse_u64(bytes, &listed->memory_bytes) < 0)
        return false;
    if (has_instances && (parse_u64_max(span_cut(&entry, ':'), UINT32_MAX, &gpu_instance) < 0 ||
                          parse_u64_max(entry, UINT32_MAX, &compute_instance) < 0))
        return false;
    listed->pid = (uint32_t)value;
    listed->gpu_instance = (uint32_t)gpu_instance;
    listed->compute_instance = (uint32_t)compute_instance;
    return true;
}

/* How many entries follow. One has at least "1:0" and a blank: a length that the line cannot hold
 * allocates nothing. */
static int take_length(struct span *rest, uint64_t *ret_count, struct error *err)
{
    int r = trace_take_u64(rest, TRACE_LISTED_MAX, "list length", ret_count, err);

    if (r == 0 && *ret_count > (rest->len + 1) / 4)
        r = error_set(err, -EBADMSG, "list length: %llu entries do not fit in the line",
                      (unsigned long long)*ret_count);
    return r;
}

int trace_parse_list(struct span *rest, struct batch *batch, struct sample *sample,
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
    r = take_length(rest, &count, err);
    if (r < 0)
        return r;
    entries = arena_array(&batch->arena, count, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        if (!parse_listed(span_cut(rest, ' '), &entries[i]))
            return error_set(err, -EBADMSG,
                             "list entry %llu: expected pid:bytes or "
                             "pid:bytes:instance:instance",
                             (unsigned long long)i + 1);
    }
    sample->list =
        (struct sample_list){(enum sample_list_kind)(kind - list_letters), count, entries};
    return 0;
}

void trace_put_list(struct buffer *out, const struct sample *sample)
{
    const struct sample_list *list = &sample->list;

    buffer_char(out, ' ');
    buffer_char(out, list_letters[list->kind]);
    trace_put_number(out, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct sample_listed *listed = &list->entries[i];

        trace_put_number(out, listed->pid);
        buffer_char(out, ':');
        buffer_u64(out, listed->memory_bytes);
        if (listed->gpu_instance == SAMPLE_NO_INSTANCE &&
            listed->compute_instance == SAMPLE_NO_INSTANCE)
            continue;
        buffer_char(out, ':');
        buffer_u64(out, listed->gpu_instance);
        buffer_char(out, ':');
        buffer_u64(out, listed->compute_instance);
    }
}

static const uint64_t BUSY_MAX_US = 1ULL << 50;

int trace_parse_busy(struct span *rest, struct batch *batch, struct sample *sample,
                     struct error *err)
{
    struct sample_busy_process *entries;
    uint64_t interval_us, is_by_presence, count, pid;
    int r = trace_take_u64(rest, BUSY_MAX_US, "interval", &interval_us, err);

    if (r == 0)
        r = trace_take_u64(rest, 1, "division", &is_by_presence, err);
    if (r == 0)
        r = take_length(rest, &count, err);
    if (r < 0)
        return r;
    entries = arena_array(&batch->arena, count, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        struct span busy = span_cut(rest, ' ');

        if (parse_u64_max(span_cut(&busy, ':'), INT32_MAX, &pid) < 0 ||
            parse_u64_max(busy, BUSY_MAX_US, &entries[i].busy_us) < 0)
            return error_set(err, -EBADMSG, "busy time %llu: expected pid:us",
                             (unsigned long long)i + 1);
        entries[i].pid = (uint32_t)pid;
    }
    sample->busy = (struct sample_busy){interval_us, count, entries, is_by_presence};
    return 0;
}

void trace_put_busy(struct buffer *out, const struct sample *sample)
{
    const struct sample_busy *busy = &sample->busy;

    trace_put_number(out, busy->interval_us);
    trace_put_number(out, busy->is_by_presence);
    trace_put_number(out, busy->count);
    for (size_t i = 0; i < busy->count; i++) {
        trace_put_number(out, busy->entries[i].pid);
        buffer_char(out, ':');
        buffer_u64(out, busy->entries[i].busy_us);
    }
}

/* A decimal fraction of percent, in thousandths; what is finer is cut off. */
static int parse_millipercent(struct span text, uint64_t *ret_value)
{
    struct span whole = span_cut(&text, '.');
    uint64_t value, digits = 0, unit = 100;

    if (parse_u64_max(whole, TRACE_PERCENT_MAX, &value) < 0)
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

int trace_parse_gpm(struct span *rest, struct batch *batch, struct sample *sample,
                    struct error *err)
{
    struct sample_gpm gpm = {.instance = SAMPLE_NO_INSTANCE};
    uint64_t instance;
    int r;

    (void)batch;
    if (span_strip_prefix(rest, "i=")) {
        r = trace_take_u64(rest, SAMPLE_NO_INSTANCE - 1, "GPU instance", &instance, err);
        if (r < 0)
            return r;
        gpm.instance = (uint32_t)instance;
    }
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

void trace_put_gpm(struct buffer *out, const struct sample *sample)
{
    const struct sample_gpm *gpm = &sample->gpm;

    if (gpm->instance != SAMPLE_NO_INSTANCE) {
        buffer_str(out, " i=");
        buffer_u64(out, gpm->instance);
    }
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
        trace_put_number(out, sample_gpm_ids[i]);
        buffer_char(out, '=');
        if (gpm->valid >> i & 1)
            buffer_fixed(out, gpm->millipercent[i], 3);
        else
            buffer_str(out, "nan");
    }
}

int trace_parse_names(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    struct sample_names *names = arena_alloc(&batch->arena, sizeof(*names));
    size_t kind = trace_take_word(rest, workload_words, WORKLOAD_KINDS);
    int r;

    if (!names)
        return -ENOMEM;
    /* The others have no owner, or are made by the ledger itself. */
    if (kind <= WORKLOAD_PROCESS || kind >= WORKLOAD_SYSTEM)
        return -ENOTSUP;
    names->kind = (enum workload_kind)kind;
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        names->texts[i] = "";
    r = trace_take_text(rest, batch, WORKLOAD_ID_BYTES, "id", &names->id, err);
    while (r == 0 && rest->len > 0) {
        struct span value = span_cut(rest, ' '), key = span_cut(&value, '=');

        /* An unknown key is ignored. */
        for (int i = 0; i < WORKLOAD_TEXTS && r == 0; i++)
            if (span_equals(key, workload_text_words[i]))
                r = trace_take_text(&value, batch, NAME_BYTES, workload_text_words[i],
                                    &names->texts[i], err);
    }
    sample->names = names;
    return r;
}

void trace_put_names(struct buffer *out, const struct sample *sample)
{
    const struct sample_names *names = sample->names;

    buffer_char(out, ' ');
    buffer_str(out, workload_words[names->kind]);
    buffer_char(out, ' ');
    trace_put_text(out, names->id);
    for (int i = 0; i < WORKLOAD_TEXTS; i++) {
        if (!names->texts[i][0])
            continue;
        buffer_char(out, ' ');
        buffer_str(out, workload_text_words[i]);
        buffer_char(out, '=');
        trace_put_text(out, names->texts[i]);
    }
}
