/* Block IO by device: io.stat of v2, and v1's blkio files. Pure. */
#pragma once

#include "core/span.h"
#include "model/usage.h"

/*
 * Lines of "MAJOR:MINOR KEY=VALUE ...". A device may stand there without values, and some kernels
 * forget the end of such a line: "253:0 8:0 rbytes=...".
 */
void io_stat_parse(struct span text, struct usage *usage);

/* Lines of "MAJOR:MINOR Read|Write|... VALUE". */
void io_stat_parse_blkio_bytes(struct span text, struct usage *usage);
void io_stat_parse_blkio_counts(struct span text, struct usage *usage);

/* Takes over from `last` the values of these kinds (bits of enum usage_io_field). */
void io_stat_keep(const struct usage *last, uint32_t fields, struct usage *usage);
