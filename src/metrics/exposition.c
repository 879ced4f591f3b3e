#include "metrics/exposition.h"

#include "metrics/exposition_parts.h"

static struct text begin(const struct exposition_options *options, struct buffer *out)
{
    struct text text;

    text_begin(&text, out, options->format, options->process_prefix);
    return text;
}

void exposition_render_books(const struct snapshot *snapshot,
                             const struct exposition_options *options, struct buffer *out)
{
    struct text text = begin(options, out);

    exposition_processes(&text, snapshot, options);
    exposition_meters(&text, snapshot);
    exposition_factors(&text, snapshot);
    exposition_bills(&text, snapshot);
    exposition_workloads(&text, snapshot, options->expose);
    exposition_gpus(&text, snapshot);
    exposition_self(&text, snapshot, options);
}

void exposition_render_usage(const struct snapshot *snapshot,
                             const struct exposition_options *options, struct buffer *out)
{
    struct text text = begin(options, out);

    exposition_usage(&text, snapshot, options->expose);
}

void exposition_render_end(const struct exposition_options *options, struct buffer *out)
{
    struct text text = begin(options, out);

    text_end(&text);
}

void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       struct buffer *out)
{
    exposition_render_books(snapshot, options, out);
    exposition_render_usage(snapshot, options, out);
    exposition_render_end(options, out);
}
