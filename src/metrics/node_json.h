/* A snapshot as the JSON document of /api/v1/node, on one line: see docs/api.md. Pure: the same
 * snapshot gives the same bytes. */
#pragma once

#include "core/buffer.h"
#include "model/policy.h"
#include "model/snapshot.h"

struct node_json_options {
    const char *version;
    enum expose expose;
    uint64_t generation; /* of the snapshot */
};

/* Appends the document; check buffer_failed. */
void node_json(const struct snapshot *snapshot, const struct node_json_options *options,
               struct buffer *out);
