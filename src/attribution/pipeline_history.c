/* What the history needs of the pipeline: names, and how far the books are settled. */
#include <stdio.h>

#include "attribution/pipeline.h"
#include "core/macros.h"

/* A meter that is not settled for so long is gone: the rest of the node takes up to five minutes.
 */
static const uint64_t SETTLED_STALE_US = 300 * USEC_PER_SEC;

/* A BMC is polled every 10 s, and may be late. */
static const uint64_t READ_STALE_US = 60 * USEC_PER_SEC;

static void copy_name(char to[HISTORY_NAME_BYTES], const char *name)
{
    snprintf(to, HISTORY_NAME_BYTES, "%s", name ? name : "");
}

static void set_names(struct history_row *row, const struct workload_names *names)
{
    copy_name(row->name, names->name);
    copy_name(row->namespace, names->namespace);
    row->is_named = true;
}

/* Nobody may have asked for a page until the workload is gone: then its names are not fixed. */
static void look_up_names(const struct pipeline *pipeline, const struct workload_owner *owner,
                          struct history_row *row)
{
    struct workload_names names = {0};

    if (pipeline->options.find_names &&
        pipeline->options.find_names(pipeline->options.names_context, owner, &names)) {
        set_names(row, &names);
        row->is_named = false; /* those that are shown elsewhere count, once they are fixed */
    }
}

static void name_row(const struct pipeline *pipeline, struct history_row *row)
{
    struct workload_owner owner = {.kind = row->kind};
    const struct ledger_identity *identity;
    uint32_t workload;

    snprintf(owner.id, sizeof(owner.id), "%s", row->id);
    row->is_hidden = false;
    if (row->is_named || !ledger_find_workload(pipeline->ledger, &owner, &workload))
        return;
    identity = &ledger_workload(pipeline->ledger, workload)->identity;
    row->is_hidden = pipeline->options.find_names && !identity->is_named;
    if (identity->is_named)
        set_names(row, &identity->names);
    else
        look_up_names(pipeline, &owner, row);
}

void pipeline_name_history(struct pipeline *pipeline)
{
    for (size_t i = 0; pipeline->history && i < pipeline->history->row_count; i++)
        name_row(pipeline, pipeline->history->ranks[i].row);
}

uint64_t pipeline_settled_until_us(const struct pipeline *pipeline)
{
    uint64_t latest_us = pipeline->history ? pipeline->history->latest_us : 0, until_us = latest_us;

    for (uint32_t i = 0; i < ledger_meter_count(pipeline->ledger); i++) {
        uint64_t settled_us = ledger_meter(pipeline->ledger, i)->settled_until_us;

        if (settled_us + SETTLED_STALE_US >= latest_us)
            until_us = MIN(until_us, settled_us);
    }
    return until_us;
}

uint64_t pipeline_measured_until_us(const struct pipeline *pipeline)
{
    uint64_t latest_us = pipeline->history ? pipeline->history->latest_us : 0, until_us = latest_us;

    for (size_t i = 0; i < pipeline->measured_slots; i++) {
        uint64_t read_us = pipeline->measured[i].read_us;

        if (read_us + READ_STALE_US >= latest_us)
            until_us = MIN(until_us, read_us);
    }
    return until_us;
}
