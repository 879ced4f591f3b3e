/* Which meter is that of the whole node. */
#include "attribution/node/rest.h"

#include <string.h>

#include "core/macros.h"

/* The best meter need not be the first that answers, and whichever is taken stays. */
static const uint64_t CHOICE_US = 30 * USEC_PER_SEC;

/* One that was not read for so long is not taken. */
static const uint64_t STALE_US = 60 * USEC_PER_SEC;

/* The best first: a counter of the node before means of a BMC, and these before what the maker of a
 * board wired. */
static const struct rest_total totals[] = {
    {"cray", METER_NODE, INCLUDES_GPUS_YES, false},
    {"redfish", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"ipmi", METER_NODE, INCLUDES_GPUS_AUTO, false},
    {"hwmon", METER_NODE, INCLUDES_GPUS_AUTO, false},
    /* Whether those of two sockets are two halves or twice the same differs between boards. */
    {"rapl", METER_PSYS, INCLUDES_GPUS_NO, false},
    {"hwmon", METER_MODULE, INCLUDES_GPUS_YES, true},
};

static bool is_of(const struct rest_total *total, enum meter_kind kind, const char *source)
{
    return kind == total->kind && strcmp(source, total->source) == 0;
}

bool rest_is_whole(const struct rest *rest, const struct node_meter *meter)
{
    return is_of(rest->total, meter->kind, meter->source) &&
           (rest->total->is_sum || strcmp(meter->id, rest->total_id) == 0);
}

bool rest_completes_whole(const struct rest *rest, const struct sample_meter *reading)
{
    return rest->total && is_of(rest->total, reading->kind, reading->source) &&
           strcmp(reading->id, rest->total_id) == 0;
}

/* The meter of this kind that can be taken, or NULL; where they are added up, the last of them. */
static const struct node_meter *find(const struct node *node, const struct rest_total *total,
                                     uint64_t now_us)
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

void rest_choose_total(struct rest *rest, uint64_t now_us)
{
    enum includes_gpus includes = rest->options.includes_gpus;

    if (rest->first_report_us == 0 || now_us < rest->first_report_us) /* the clock was set */
        rest->first_report_us = now_us;
    if (now_us < rest->first_report_us + CHOICE_US)
        return;
    for (size_t i = 0; !rest->total && i < ARRAY_SIZE(totals); i++) {
        const struct node_meter *meter = find(rest->node, &totals[i], now_us);

        if (meter) {
            rest->total = &totals[i];
            rest->total_id = meter->id;
        }
    }
    if (!rest->total)
        return;
    if (includes == INCLUDES_GPUS_AUTO)
        includes = rest->total->includes_gpus;
    rest->learns_coverage = includes == INCLUDES_GPUS_AUTO;
    rest->includes_gpus = includes != INCLUDES_GPUS_NO;
    /* The others' ids are those of sockets. */
    rest->meter_id =
        rest->total->kind == METER_NODE ? rest->total_id : meter_words[rest->total->kind];
}
