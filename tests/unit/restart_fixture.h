/* A pipeline that ends, and the one of the next run, which goes on with its state. */
#pragma once

#include "pipeline_fixture.h"

static struct buffer pack(struct pipeline *pipeline)
{
    struct buffer state;

    buffer_init(&state, 64 << 20);
    pipeline_pack_state(pipeline, &state);
    assert_false(buffer_failed(&state));
    return state;
}

static int unpack(struct pipeline *pipeline, const struct buffer *state, size_t len,
                  const struct pipeline_resumption *resumption)
{
    return pipeline_unpack_state(pipeline, &(struct unpack){.rest = {state->data, len}},
                                 resumption);
}

/* The pipeline of the next run; the one before was killed. */
static struct pipeline *restart_with(struct pipeline *before, struct pipeline_options options,
                                     struct pipeline_resumption resumption)
{
    struct buffer state = pack(before), again;
    struct pipeline *after;

    pipeline_free(before);
    assert_int_equal(pipeline_new(&options, &after), 0);
    assert_int_equal(unpack(after, &state, state.len, &resumption), 0);
    again = pack(after);
    buffer_done(&again);
    buffer_done(&state);
    return after;
}

static struct pipeline *restart(struct pipeline *before, uint64_t now_us)
{
    return restart_with(before, default_options(),
                        (struct pipeline_resumption){.is_same_boot = true, .now_us = now_us});
}
