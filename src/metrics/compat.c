#include "metrics/compat.h"

#include <string.h>

#include "core/macros.h"

typedef void compat_writer(struct text *text, const struct snapshot *snapshot, enum expose expose);

static const struct {
    enum compat exporter;
    compat_writer *books, *usage; /* NULL: none */
} exporters[] = {
    {COMPAT_DCGM_EXPORTER, compat_dcgm_books, NULL},
    {COMPAT_KEPLER, compat_kepler_books, compat_kepler_usage},
    {COMPAT_CEEMS, compat_ceems_books, compat_ceems_usage},
};

static void write_part(struct text *text, const struct snapshot *snapshot,
                       const struct exposition_options *options, bool is_usage)
{
    for (size_t i = 0; options->format == PAGE_TEXT && i < ARRAY_SIZE(exporters); i++) {
        compat_writer *writer = is_usage ? exporters[i].usage : exporters[i].books;

        if (writer && (options->compat & exporters[i].exporter))
            writer(text, snapshot, options->expose);
    }
}

void compat_books(struct text *text, const struct snapshot *snapshot,
                  const struct exposition_options *options)
{
    write_part(text, snapshot, options, false);
}

void compat_usage(struct text *text, const struct snapshot *snapshot,
                  const struct exposition_options *options)
{
    write_part(text, snapshot, options, true);
}

const struct snapshot_meter *compat_gpu_counter(const struct snapshot *snapshot,
                                                const struct snapshot_gpu *gpu)
{
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];

        if (meter->kind == METER_GPU && meter->has_counter && !meter->is_unread &&
            strcmp(meter->meter_id, gpu->uuid) == 0)
            return meter;
    }
    return NULL;
}
