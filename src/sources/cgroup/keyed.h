/*
 * "KEY VALUE" lines, the form of most cgroup files, and files that hold one number. Pure.
 *
 * Keys come in any order and grow with each kernel. A line that is not of this form, or has no end,
 * is not believed: the start of a number is a number, too.
 */
#pragma once

#include "core/span.h"
#include "model/usage.h"

struct keyed_field {
    const char *key;
    enum usage_field field;
    uint32_t divisor; /* of the file's unit into ours */
};

/* False behind the last line; what has no end is no line. */
bool keyed_next_line(struct span *text, struct span *ret_line);

/* Sets what `fields` names. */
void keyed_parse(struct span text, const struct keyed_field *fields, size_t count,
                 struct usage *usage);

/* 0, -EINVAL or -ERANGE: also what is above USAGE_VALUE_MAX, and "max". */
int keyed_parse_number(struct span text, uint64_t *ret_value);
