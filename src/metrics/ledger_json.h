/* The ledger as JSON, for `replay`: exact integers, one line for each meter and process. */
#pragma once

#include "core/buffer.h"
#include "model/snapshot.h"

void ledger_json(const struct snapshot *snapshot, struct buffer *out);
