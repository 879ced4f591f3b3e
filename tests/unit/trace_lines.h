/* Lines of a trace, one by one: those that are read, and those that are refused. */
#pragma once

#include "unit.h"

#include <errno.h>
#include <string.h>

#include "sources/trace.h"

/* Parses one good line; the sample lives until the batch is done with. */
static const struct sample *parse_line(struct batch *batch, const char *line)
{
    struct error err = {""};
    int r;

    batch_init(batch);
    r = trace_parse_line(span_of(line), batch, &err);
    if (r != 1)
        fail_msg("'%s' gave %d: %s", line, r, err.text);
    assert_int_equal(batch->count, 1);
    return &batch->samples[0];
}

struct bad_line {
    const char *line, *why;
};

/* Each of them adds nothing, and its error says why. */
static void assert_bad_lines(const struct bad_line *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct error err = {""};
        struct batch batch;
        int r;

        batch_init(&batch);
        r = trace_parse_line(span_of(cases[i].line), &batch, &err);
        if (r != -EBADMSG || !strstr(err.text, cases[i].why))
            fail_msg("'%s' gave %d: %s", cases[i].line, r, err.text);
        assert_int_equal(batch.count, 0);
        batch_done(&batch);
    }
}
