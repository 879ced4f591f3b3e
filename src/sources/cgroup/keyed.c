#include "sources/cgroup/keyed.h"

#include <errno.h>

#include "core/parse.h"

bool keyed_next_line(struct span *text, struct span *ret_line)
{
    const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;

    if (!end)
        return false;
    *ret_line = (struct span){text->data, (size_t)(end - text->data)};
    *text = (struct span){end + 1, text->len - ret_line->len - 1};
    return true;
}

static const struct keyed_field *find_field(const struct keyed_field *fields, size_t count,
                                            struct span key)
{
    for (size_t i = 0; i < count; i++)
        if (key.len > 0 && fields[i].key[0] == key.data[0] && span_equals(key, fields[i].key))
            return &fields[i];
    return NULL;
}

void keyed_parse(struct span text, const struct keyed_field *fields, size_t count,
                 struct usage *usage)
{
    size_t left = count; /* memory.stat is long, and what we want is not at its end */
    struct span line;

    while (left > 0 && keyed_next_line(&text, &line)) {
        struct span key = span_cut(&line, ' ');
        const struct keyed_field *field = find_field(fields, count, key);
        uint64_t value;

        if (!field)
            continue;
        left--;
        if (parse_u64_max(line, USAGE_VALUE_MAX, &value) == 0)
            usage_set(usage, field->field, value / field->divisor);
    }
}

int keyed_parse_number(struct span text, uint64_t *ret_value)
{
    struct span line;

    if (!keyed_next_line(&text, &line) || text.len > 0)
        return -EINVAL;
    return span_equals(line, "max") ? -ERANGE : parse_u64_max(line, USAGE_VALUE_MAX, ret_value);
}
