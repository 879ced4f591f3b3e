/* The history as the JSON document of /api/v1/history: see docs/api.md. Pure. */
#pragma once

#include "attribution/history.h"
#include "core/buffer.h"
#include "model/policy.h"

struct history_json_options {
    enum expose expose;       /* workloads that it leaves out are among the others */
    uint64_t interval_us;     /* of a point at least: --page-interval */
    uint64_t booked_until_us; /* later windows are pending */
    uint64_t measured_until_us;
};

/* Appends the document; check buffer_failed. */
void history_json(const struct history *history, const struct history_json_options *options,
                  struct buffer *out);
