/* The names of what is booked: asked for until they are known, and not for ever. */
#include "attribution/pipeline.h"

#include "core/macros.h"

/* Whoever has no name by then is shown without it. A runtime that is slow but answers, as when it
 * starts many containers at once, is waited for longer than one that hangs. */
static const uint64_t HOLD_US = 15 * USEC_PER_SEC, HOLD_AWAITED_US = 60 * USEC_PER_SEC;

void pipeline_set_names(struct pipeline *pipeline, pipeline_find_names *find, void *context)
{
    pipeline->options.find_names = find;
    pipeline->options.names_context = context;
}

static bool is_worth_waiting(const struct pipeline_options *options, uint64_t now_us,
                             const struct ledger_unnamed *unnamed)
{
    bool is_awaited = options->are_names_awaited &&
                      options->are_names_awaited(options->names_context, &unnamed->owner);

    return now_us < unnamed->opened_us + (is_awaited ? HOLD_AWAITED_US : HOLD_US);
}

void pipeline_fix_names(struct pipeline *pipeline, uint64_t now_us)
{
    const struct pipeline_options *options = &pipeline->options;
    struct ledger_unnamed unnamed = {0};

    while (options->find_names && ledger_next_unnamed(pipeline->ledger, now_us, &unnamed)) {
        struct workload_names names = {0};

        if (!options->find_names(options->names_context, &unnamed.owner, &names) &&
            is_worth_waiting(options, now_us, &unnamed))
            continue;
        /* Out of memory: it stays held back, and is tried again at the next snapshot. */
        (void)ledger_fix_names(pipeline->ledger, &unnamed, &names);
    }
}
