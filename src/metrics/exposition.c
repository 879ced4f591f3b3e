#include "metrics/exposition.h"

#include "metrics/exposition_parts.h"

void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       struct buffer *out)
{
    struct text text;

    text_begin(&text, out, options->format, options->process_prefix);
    exposition_processes(&text, snapshot, options);
    exposition_meters(&text, snapshot);
    exposition_workloads(&text, snapshot, options->expose);
    exposition_usage(&text, snapshot, options->expose);
    exposition_gpus(&text, snapshot);
    exposition_self(&text, snapshot, options);
    text_end(&text);
}
