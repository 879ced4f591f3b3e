/* Between node_json.c, which puts the document together, and node_json_workloads.c. */
#pragma once

#include "core/json.h"
#include "metrics/exposition_private.h"
#include "metrics/node_json.h"

static inline void member_watts(struct buffer *out, const char *key, double power_mw)
{
    if (power_mw >= 0)
        json_member_fixed(out, key, (int64_t)(power_mw + 0.5), MILLI);
}

static inline void member_joules(struct buffer *out, const char *key, uint64_t energy_uj)
{
    json_member_fixed(out, key, (int64_t)energy_uj, MICRO);
}

static inline void member_seconds(struct buffer *out, const char *key, uint64_t t_us)
{
    json_member_fixed(out, key, (int64_t)t_us, MICRO);
}

/* Absent where it is "". */
static inline void member_text(struct buffer *out, const char *key, const char *text)
{
    if (text && text[0])
        json_member(out, key, text);
}

static inline void open_array(struct buffer *out, const char *key)
{
    json_key(out, key);
    buffer_char(out, '[');
}

static inline void open_element(struct buffer *out)
{
    json_element(out);
    buffer_char(out, '{');
}

void node_json_workloads(struct buffer *out, const struct snapshot *snapshot, enum expose expose);
