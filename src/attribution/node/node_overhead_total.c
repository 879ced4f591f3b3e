/* Which meter is that of the whole node. */
#include "attribution/node/node_overhead.h"

#include <string.h>

#include "core/macros.h"

/* The best meter need not be the first that answers, and whichever is taken stays. */
static const uint64_t CHOICE_US = 30 * USEC_PER_SEC;

/* One that was not read for so long is not taken. */
static const uint64_t STALE_US = 60 * USEC_PER_SEC;

/* The best first: a counter of the node before means of a BMC, and these before what the maker of a
 * board wired. */
static const struct node_overhead_total totals[] = {
    {"cray", METER_NODE, INCLUDES_GPUS_YES, false},
    {"redfish", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"ipmi", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"hwmon", METER_NODE, INCLUDES_GPUS_AUTO, false},
    /* Whether those of two sockets are two halves or twice the same differs between boards. */
    {"rapl", METER_PSYS, INCLUDES_GPUS_NO, false},
    {"hwmon", METER_MODULE, INCLUDES_GPUS_YES, true},
};

static bool is_of(const struct node_overhead_total *total, enum meter_kind kind, const char *source)
{
    return kind == total->kind && strcmp(source, total->source) == 0;
}

bool node_overhead_is_whole(const struct node_overhead *overhead, const struct node_meter *meter)
{
    return is_of(overhead->total, meter->kind, meter->source) &&
           (overhead->total->is_sum || strcmp(meter->id, overhead->total_id) == 0);
}

bool node_overhead_completes_whole(const struct node_overhead *overhead,
                                   const struct sample_meter *reading)
{
    return overhead->total && is_of(overhead->total, reading->kind, reading->source) &&
           strcmp(reading->id, overhead->total_id) == 0;
}

/* The meter of this kind that can be taken, or NULL; where they are added up, the last of them. */
static const struct node_meter *find(const struct node *node,
                                     const struct node_overhead_total *total, uint64_t now_us)
{
    const struct node_meter *found = NULL;

    for (size_t i = 0; i < node->meter_count; i++) {
        if (!is_of(total, node->meters[i].kind, node->meters[i].source))
            continue;
        if (found && !total->is_sum)
            return NULL;
        found = &node->meters[i];
    }
    return found && found->read_us + STALE_US >= now_us ? found : NULL;
}

void node_overhead_choose_total(struct node_overhead *overhead, uint64_t now_us)
{
    enum includes_gpus includes = overhead->options.includes_gpus;

    if (overhead->first_report_us == 0 ||
        now_us < overhead->first_report_us) /* the clock was set */
        overhead->first_report_us = now_us;
    if (now_us < overhead->first_report_us + CHOICE_US)
        return;
    for (size_t i = 0; !overhead->total && i < ARRAY_SIZE(totals); i++) {
        const struct node_meter *meter = find(overhead->node, &totals[i], now_us);

        if (meter) {
            overhead->total = &totals[i];
            overhead->total_id = meter->id;
        }
    }
    if (!overhead->total)
        return;
    if (includes == INCLUDES_GPUS_AUTO)
        includes = overhead->total->includes_gpus;
    overhead->learns_coverage = includes == INCLUDES_GPUS_AUTO;
    overhead->includes_gpus = includes != INCLUDES_GPUS_NO;
    /* The others' ids are those of sockets. */
    overhead->meter_id = overhead->total->kind == METER_NODE ? overhead->total_id
                                                             : meter_words[overhead->total->kind];
}
