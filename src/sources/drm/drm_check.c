/* `wattribute check`: what can be read of AMD's and Intel's GPUs. */
#include <stdio.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/drm/drm.h"

static void report_card(struct report *report, struct drm_shared *shared, uint32_t index,
                        const struct drm_found *found)
{
    struct drm_card card = {
        .shared = shared, .found = *found, .index = index, .device_fds = {-1, -1}, .hwmon_fd = -1};
    struct error err = {""};
    char what[64];

    snprintf(what, sizeof(what), "gpu %u", index);
    if (drm_card_open(&card, &err) < 0) {
        report_add(report, what, VERDICT_FAILED, "mount the host's /sys", "%s", err.text);
    } else {
        report->gpus++;
        report_add(report, what, VERDICT_OK, NULL, "%s, %s, %s, %zu die%s", card.name, card.uuid,
                   card.driver, found->die_count, PLURAL_S(found->die_count));
        if (drm_card_is_suspended(&card))
            report_add(report, what, VERDICT_OK, NULL,
                       "suspended: nothing is read, to let it sleep");
        else
            found->vendor->check(report, &card);
    }
    drm_card_close(&card);
}

/* The descriptors of others show who uses a card for graphics, video, and on Intel for anything. */
static void report_clients(struct report *report, struct drm_shared *shared)
{
    drm_clients_look(&shared->clients, 0, 1);
    if (drm_clients_are_partial(&shared->clients, 1))
        report_add(report, "gpu clients", VERDICT_LIMITED,
                   "run as root, or give CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
                   "the descriptors of other users' processes cannot be listed, or too many of "
                   "them are of GPUs: their work on AMD's and Intel's GPUs is not seen, but for "
                   "ROCm's");
    else
        report_add(report, "gpu clients", VERDICT_OK, NULL, "of all processes, by fdinfo");
}

void drm_check(const struct source_context *context, struct report *report)
{
    struct drm_found cards[DRM_CARDS_MAX];
    struct drm_shared shared = {.context = context};
    size_t count = drm_find_cards(&shared, cards), shown;
    uint32_t first;

    if (count == 0)
        return; /* a node without them has nothing to mend */
    drm_clients_init(&shared.clients, context->host);
    first = drm_first_index(context->host);
    shown = MIN(count, (size_t)(SAMPLE_GPU_MAX - MIN(first, (uint32_t)SAMPLE_GPU_MAX)));
    for (size_t i = 0; i < shown; i++)
        report_card(report, &shared, first + (uint32_t)i, &cards[i]);
    if (shown < count)
        report_add(report, "gpus", VERDICT_LIMITED, "none: this is a limit of the exporter",
                   "%zu GPUs are left out: only %d can be numbered", count - shown, SAMPLE_GPU_MAX);
    report_clients(report, &shared);
    drm_clients_done(&shared.clients);
}
