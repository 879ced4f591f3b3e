/* Families under the names of other exporters: --compat. Text 0.0.4 only, so that no name is taken
 * by OpenMetrics' rules. What has no meter, but a model of one, has no such names. */
#pragma once

#include "metrics/exposition_private.h"

/* Those made of the books and devices, and those of what workloads use: two parts of the page. */
void compat_books(struct text *text, const struct snapshot *snapshot,
                  const struct exposition_options *options);
void compat_usage(struct text *text, const struct snapshot *snapshot,
                  const struct exposition_options *options);

/* The counter of a board as the driver has it, which these exporters show, too; NULL: it has none.
 */
const struct snapshot_meter *compat_gpu_counter(const struct snapshot *snapshot,
                                                const struct snapshot_gpu *gpu);

/* From here on: of each exporter. */

void compat_dcgm_books(struct text *text, const struct snapshot *snapshot, enum expose expose);
void compat_kepler_books(struct text *text, const struct snapshot *snapshot, enum expose expose);
void compat_kepler_usage(struct text *text, const struct snapshot *snapshot, enum expose expose);
void compat_ceems_books(struct text *text, const struct snapshot *snapshot, enum expose expose);
void compat_ceems_usage(struct text *text, const struct snapshot *snapshot, enum expose expose);
