#include "report/answer.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/macros.h"

enum { NUMBER_BYTES = 40, MESSAGE_BYTES = 256 };

/* The text is read once, from front to back; the first failure ends it. */
struct reader {
    const char *at, *end;
    int failure; /* 0: none yet */
    struct answer *answer;
    bool is_success, is_matrix, has_result;
    char message[MESSAGE_BYTES];
};

static bool fail(struct reader *in, int failure)
{
    if (in->failure == 0)
        in->failure = failure;
    return false;
}

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at)
        in->at++;
}

/* The next character that is no blank, or 0. */
static char peek(struct reader *in)
{
    skip_blanks(in);
    if (in->at < in->end)
        return *in->at;
    return '\0';
}

static bool take(struct reader *in, char c)
{
    if (in->failure != 0 || peek(in) != c)
        return false;
    in->at++;
    return true;
}

static bool expect(struct reader *in, char c)
{
    return take(in, c) || fail(in, -EBADMSG);
}

/* The bytes between the quotes, still escaped. */
static bool read_raw(struct reader *in, struct span *ret)
{
    const char *begin;

    if (!expect(in, '"'))
        return false;
    begin = in->at;
    while (in->at < in->end && *in->at != '"') {
        if ((unsigned char)*in->at < ' ')
            return fail(in, -EBADMSG);
        in->at += *in->at == '\\' && in->at + 1 < in->end ? 2 : 1;
    }
    if (in->at >= in->end)
        return fail(in, -EBADMSG);
    *ret = (struct span){begin, (size_t)(in->at - begin)};
    in->at++;
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_unit(struct span *rest, unsigned *ret)
{
    unsigned unit = 0;

    if (rest->len < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_value(rest->data[i]);

        if (digit < 0)
            return false;
        unit = unit << 4 | (unsigned)digit;
    }
    *rest = (struct span){rest->data + 4, rest->len - 4};
    *ret = unit;
    return true;
}

static char *put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* What follows "\u". Half a pair becomes U+FFFD. */
static bool unescape_unicode(struct span *rest, char **out)
{
    unsigned c, low;

    if (!read_unit(rest, &c) || c == 0)
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        struct span after = *rest;

        if (span_strip_prefix(&after, "\\u") && read_unit(&after, &low) && low >= 0xdc00 &&
            low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            *rest = after;
        } else {
            c = 0xfffd;
        }
    } else if (c >= 0xdc00 && c < 0xe000) {
        c = 0xfffd;
    }
    *out = put_utf8(*out, c);
    return true;
}

/* Into `out`, which has room for as many bytes and the NUL: no escape is longer than its text. */
static bool unescape(struct span raw, char *out)
{
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";

    while (raw.len > 0) {
        const char *found;
        char c = *raw.data;

        raw = (struct span){raw.data + 1, raw.len - 1};
        if (c != '\\') {
            *out++ = c;
            continue;
        }
        if (raw.len == 0)
            return false;
        c = *raw.data;
        raw = (struct span){raw.data + 1, raw.len - 1};
        found = memchr(FROM, c, sizeof(FROM) - 1);
        if (found)
            *out++ = TO[found - FROM];
        else if (c != 'u' || !unescape_unicode(&raw, &out))
            return false;
    }
    *out = '\0';
    return true;
}

static bool read_text(struct reader *in, const char **ret)
{
    struct span raw;
    char *text;

    if (!read_raw(in, &raw))
        return false;
    if (memchr(raw.data, '\0', raw.len))
        return fail(in, -EBADMSG);
    text = arena_alloc(&in->answer->strings, raw.len + 1);
    if (!text)
        return fail(in, -EFBIG);
    if (!unescape(raw, text))
        return fail(in, -EBADMSG);
    *ret = text;
    return true;
}

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || (c && strchr("+-.eE", c));
}

static bool read_double(struct span text, double *ret)
{
    char copy[NUMBER_BYTES], *end;

    if (text.len == 0 || text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *ret = strtod(copy, &end);
    return end == copy + text.len;
}

static bool read_number(struct reader *in, double *ret)
{
    const char *begin;

    skip_blanks(in);
    begin = in->at;
    while (in->at < in->end && is_of_number(*in->at))
        in->at++;
    return read_double((struct span){begin, (size_t)(in->at - begin)}, ret) || fail(in, -EBADMSG);
}

static void skip_value(struct reader *in, unsigned depth);

/* Members or elements up to `close`. */
static void skip_all(struct reader *in, char close, unsigned depth)
{
    struct span ignored;

    if (take(in, close))
        return;
    do {
        if (close == '}' && (!read_raw(in, &ignored) || !expect(in, ':')))
            return;
        skip_value(in, depth + 1);
    } while (take(in, ','));
    (void)expect(in, close);
}

static void skip_value(struct reader *in, unsigned depth)
{
    struct span ignored;
    char c = peek(in);

    if (depth > ANSWER_DEPTH_MAX) {
        (void)fail(in, -EBADMSG);
    } else if (c == '"') {
        (void)read_raw(in, &ignored);
    } else if (c == '{' || c == '[') {
        in->at++;
        skip_all(in, c == '{' ? '}' : ']', depth);
    } else {
        const char *begin = in->at;

        while (in->at < in->end && (is_of_number(*in->at) || (*in->at >= 'a' && *in->at <= 'z')))
            in->at++;
        if (in->at == begin)
            (void)fail(in, -EBADMSG);
    }
}

typedef void read_member(struct reader *in, struct span key, void *context);

static void read_object(struct reader *in, read_member *read, void *context)
{
    struct span key;

    if (!expect(in, '{') || take(in, '}'))
        return;
    do {
        if (!read_raw(in, &key) || !expect(in, ':'))
            return;
        read(in, key, context);
    } while (take(in, ','));
    (void)expect(in, '}');
}

struct label_list {
    struct answer_label items[ANSWER_LABELS_MAX];
    size_t count;
};

static void read_label(struct reader *in, struct span key, void *context)
{
    struct label_list *list = context;
    struct answer_label *label = &list->items[list->count];
    char *name;

    if (list->count == ANSWER_LABELS_MAX) {
        (void)fail(in, -EFBIG);
        return;
    }
    name = arena_alloc(&in->answer->strings, key.len + 1);
    if (!name || !unescape(key, name)) {
        (void)fail(in, name ? -EBADMSG : -EFBIG);
        return;
    }
    label->name = name;
    if (read_text(in, &label->value))
        list->count++;
}

/* [1700000000.5, "12.25"]; what is no number is left out. */
static void read_sample(struct reader *in)
{
    struct answer *answer = in->answer;
    struct answer_sample sample;
    struct span raw;

    if (!expect(in, '[') || !read_number(in, &sample.t_s) || !expect(in, ',') ||
        !read_raw(in, &raw) || !expect(in, ']'))
        return;
    if (!read_double(raw, &sample.value)) {
        (void)fail(in, -EBADMSG);
        return;
    }
    if (!isfinite(sample.value) || !isfinite(sample.t_s))
        return;
    if (answer->sample_count == ANSWER_SAMPLES_MAX)
        (void)fail(in, -EFBIG);
    else if (!array_reserve(&answer->samples, &answer->sample_capacity, answer->sample_count,
                            sizeof(sample)))
        (void)fail(in, -ENOMEM);
    else
        answer->samples[answer->sample_count++] = sample;
}

static void read_series_member(struct reader *in, struct span key, void *context)
{
    struct answer_series *series = context;

    if (span_equals(key, "metric")) {
        struct label_list list;

        list.count = 0;
        read_object(in, read_label, &list);
        series->labels =
            arena_array(&in->answer->strings, MAX(list.count, (size_t)1), sizeof(*series->labels));
        if (!series->labels) {
            (void)fail(in, -EFBIG);
            return;
        }
        memcpy(series->labels, list.items, list.count * sizeof(*list.items));
        series->label_count = list.count;
    } else if (span_equals(key, "values")) {
        series->first_sample = in->answer->sample_count;
        if (!expect(in, '[') || take(in, ']'))
            return;
        do
            read_sample(in);
        while (take(in, ','));
        (void)expect(in, ']');
        series->sample_count = in->answer->sample_count - series->first_sample;
    } else {
        skip_value(in, 0);
    }
}

static void read_result(struct reader *in)
{
    struct answer *answer = in->answer;

    in->has_result = true;
    if (!expect(in, '[') || take(in, ']'))
        return;
    do {
        struct answer_series series = {0};

        if (answer->series_count == ANSWER_SERIES_MAX) {
            (void)fail(in, -EFBIG);
            return;
        }
        read_object(in, read_series_member, &series);
        if (in->failure != 0)
            return;
        if (!array_reserve(&answer->series, &answer->series_capacity, answer->series_count,
                           sizeof(series))) {
            (void)fail(in, -ENOMEM);
            return;
        }
        answer->series[answer->series_count++] = series;
    } while (take(in, ','));
    (void)expect(in, ']');
}

static void read_data_member(struct reader *in, struct span key, void *context)
{
    const char *type;

    (void)context;
    if (span_equals(key, "resultType")) {
        if (read_text(in, &type))
            in->is_matrix = strcmp(type, "matrix") == 0;
    } else if (span_equals(key, "result") && peek(in) == '[') {
        read_result(in);
    } else {
        skip_value(in, 0);
    }
}

static void keep_text(struct reader *in, char *out, size_t size_bytes)
{
    const char *text;

    if (!read_text(in, &text))
        return;
    strncpy(out, text, size_bytes - 1);
    out[size_bytes - 1] = '\0';
}

static void read_warnings(struct reader *in)
{
    struct answer *answer = in->answer;

    if (!expect(in, '[') || take(in, ']'))
        return;
    do {
        if (answer->warning_count++ == 0 && peek(in) == '"')
            keep_text(in, answer->warning, sizeof(answer->warning));
        else
            skip_value(in, 0);
    } while (take(in, ','));
    (void)expect(in, ']');
}

static void read_top_member(struct reader *in, struct span key, void *context)
{
    const char *status;

    (void)context;
    if (span_equals(key, "status")) {
        if (read_text(in, &status))
            in->is_success = strcmp(status, "success") == 0;
    } else if (span_equals(key, "error") && peek(in) == '"') {
        keep_text(in, in->message, sizeof(in->message));
    } else if (span_equals(key, "warnings") && peek(in) == '[') {
        read_warnings(in);
    } else if (span_equals(key, "data") && peek(in) == '{') {
        read_object(in, read_data_member, NULL);
    } else {
        skip_value(in, 0);
    }
}

static int explain(const struct reader *in, struct error *err)
{
    if (in->failure == -EFBIG)
        return error_set(err, -EFBIG, "the answer has too many series or samples");
    if (in->failure == -ENOMEM)
        return error_set(err, -ENOMEM, "out of memory");
    if (in->message[0] && !in->is_success)
        return error_set(err, -EBADMSG, "%s", in->message);
    return error_set(err, -EBADMSG, "not the answer of a Prometheus");
}

int answer_parse(struct span text, struct answer **ret_answer, struct error *err)
{
    struct reader in = {.at = text.data, .end = text.data + text.len};
    int r;

    in.answer = calloc(1, sizeof(*in.answer));
    if (!in.answer)
        return error_set(err, -ENOMEM, "out of memory");
    arena_init(&in.answer->strings, ANSWER_STRINGS_BYTES);
    if (text.len > 0)
        read_object(&in, read_top_member, NULL);
    if (in.failure == 0 && peek(&in) == '\0' && in.at == in.end && in.is_success && in.is_matrix &&
        in.has_result) {
        *ret_answer = in.answer;
        return 0;
    }
    r = explain(&in, err);
    answer_free(in.answer);
    return r;
}

void answer_free(struct answer *answer)
{
    if (!answer)
        return;
    free(answer->series);
    free(answer->samples);
    arena_done(&answer->strings);
    free(answer);
}

const char *answer_label(const struct answer_series *series, const char *name)
{
    for (size_t i = 0; i < series->label_count; i++)
        if (strcmp(series->labels[i].name, name) == 0)
            return series->labels[i].value;
    return "";
}
