/* What the history needs of the pipeline: names, and how far the books are settled. */
#include <stdio.h>
#include <string.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "core/utf8.h"

/* A meter that is not settled for so long is gone: the rest of the node takes up to five minutes.
 */
static const uint64_t SETTLED_STALE_US = 300 * USEC_PER_SEC;

/* Cut between characters. */
static void copy_name(char to[HISTORY_NAME_BYTES], const char *name)
{
    size_t len = 0, size;

    while (name && name[len] && (size = MAX(utf8_char_len(span_of(name + len)), (size_t)1)) &&
           len + size < HISTORY_NAME_BYTES)
        len += size;
    memcpy(to, name ? name : "", len);
    to[len] = '\0';
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

/* One that is silent has no energy to wait for: what it counts until it is read again is placed
 * then. */
static bool is_awaited(const struct pipeline *pipeline, uint32_t meter, uint64_t latest_us)
{
    const struct ledger_meter *books = ledger_meter(pipeline->ledger, meter);

    if (books->settled_until_us + SETTLED_STALE_US < latest_us)
        return false;
    return meter >= pipeline->measured_slots ||
           !measured_is_silent(&pipeline->measured[meter], books->kind, latest_us);
}

uint64_t pipeline_settled_until_us(const struct pipeline *pipeline)
{
    uint64_t latest_us = pipeline->history ? pipeline->history->latest_us : 0, until_us = latest_us;

    for (uint32_t i = 0; i < ledger_meter_count(pipeline->ledger); i++)
        if (is_awaited(pipeline, i, latest_us))
            until_us = MIN(until_us, ledger_meter(pipeline->ledger, i)->settled_until_us);
    return until_us;
}

uint64_t pipeline_measured_until_us(const struct pipeline *pipeline)
{
    uint64_t latest_us = pipeline->history ? pipeline->history->latest_us : 0, until_us = latest_us;

    for (uint32_t i = 0;
         i < MIN((size_t)ledger_meter_count(pipeline->ledger), pipeline->measured_slots); i++)
        if (!measured_is_silent(&pipeline->measured[i], ledger_meter(pipeline->ledger, i)->kind,
                                latest_us))
            until_us = MIN(until_us, pipeline->measured[i].read_us);
    return until_us;
}
