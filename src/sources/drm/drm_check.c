/* `wattribute check`: what can be read of AMD's and Intel's GPUs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/drm/drm.h"

/* Less than that of all sources (sources/check.c), which would lose what the others told. */
enum { PATIENCE_S = 10 };

/* Of one card, on a thread of its own. */
struct card_check {
    struct drm_shared *shared;
    struct drm_found found;
    uint32_t index;
    pthread_t thread;
    bool is_started;
    struct report report; /* what hangs must not write into that of the others */
    bool is_partial, is_untimed;
};

/* The descriptors of others show who uses a card for graphics, video, and on Intel for anything. */
static void look_at_clients(struct card_check *check, struct drm_card *card)
{
    drm_clients_init(&card->clients, &check->shared->files);
    for (size_t i = 0; i < check->found.die_count; i++)
        drm_clients_add_card(&card->clients, check->found.dies[i].pci);
    drm_clients_look(&card->clients, 0, 1);
    check->is_partial = drm_clients_are_partial(&card->clients, 1);
    check->is_untimed = drm_clients_are_untimed(&card->clients);
    drm_clients_done(&card->clients);
}

static void *check_card(void *argument)
{
    struct card_check *check = argument;
    struct drm_card card = {.shared = check->shared,
                            .found = check->found,
                            .index = check->index,
                            .device_fds = {-1, -1},
                            .hwmon_fd = -1};
    struct report *report = &check->report;
    struct error err = {""};
    char what[64];

    snprintf(what, sizeof(what), "gpu %u", check->index);
    if (drm_card_open(&card, &err) < 0) {
        report_add(report, what, VERDICT_FAILED, "mount the host's /sys", "%s", err.text);
    } else {
        report->gpus++;
        report_add(report, what, VERDICT_OK, NULL, "%s, %s, %s, %zu die%s", card.name, card.uuid,
                   card.driver, card.found.die_count, PLURAL_S(card.found.die_count));
        if (drm_card_is_suspended(&card))
            report_add(report, what, VERDICT_OK, NULL,
                       "suspended: nothing is read, to let it sleep");
        else
            card.found.vendor->check(report, &card);
    }
    drm_card_close(&card);
    look_at_clients(check, &card);
    return NULL;
}

static void report_clients(struct report *report, bool is_partial, bool is_untimed)
{
    if (is_partial)
        report_add(report, "gpu clients", VERDICT_LIMITED,
                   "run as root, or give CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
                   "the descriptors of other users' processes cannot be listed, or too many of "
                   "them are of GPUs: their work on AMD's and Intel's GPUs is not seen, but for "
                   "ROCm's");
    else
        report_add(report, "gpu clients", VERDICT_OK, NULL, "of all processes, by fdinfo");
    if (is_untimed)
        report_add(report, "gpu clients", VERDICT_LIMITED, "use Linux 5.19 or newer",
                   "this amdgpu does not tell how long they worked: graphics and video are "
                   "divided equally among those that hold memory of the GPU");
}

static struct card_check *start_check(struct drm_shared *shared, uint32_t index,
                                      const struct drm_found *found)
{
    struct card_check *check = calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->shared = shared;
    check->found = *found;
    check->index = index;
    check->is_started = pthread_create(&check->thread, NULL, check_card, check) == 0;
    return check;
}

/* Takes over what it found. False: it hangs, and goes on to use what it has. */
static bool finish_check(struct report *report, struct card_check *check,
                         const struct timespec *until, bool *is_partial, bool *is_untimed)
{
    char what[64];

    if (!check || !check->is_started) {
        report_add(report, "gpu", VERDICT_FAILED, "free some memory, and allow more threads",
                   "one is left out: cannot start a thread for it");
        free(check);
        return true;
    }
    if (pthread_clockjoin_np(check->thread, NULL, CLOCK_MONOTONIC, until) == 0) {
        report_take(report, &check->report);
        *is_partial |= check->is_partial;
        *is_untimed |= check->is_untimed;
        free(check);
        return true;
    }
    snprintf(what, sizeof(what), "gpu %u", check->index);
    report_add(report, what, VERDICT_FAILED,
               "look into the kernel's log; the exporter goes on without this GPU",
               "%s at %s: its driver has hung for %d s", check->found.driver,
               check->found.dies[0].pci, PATIENCE_S);
    return false;
}

static void check_cards(struct report *report, struct drm_shared *shared,
                        const struct drm_found *cards, size_t count, uint32_t first)
{
    struct card_check *checks[SAMPLE_GPU_MAX];
    bool is_partial = false, is_untimed = false;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    for (size_t i = 0; i < count; i++)
        checks[i] = start_check(shared, first + (uint32_t)i, &cards[i]);
    for (size_t i = 0; i < count; i++)
        report->is_hung |= !finish_check(report, checks[i], &until, &is_partial, &is_untimed);
    report_clients(report, is_partial, is_untimed);
}

void drm_check(const struct source_context *context, struct report *report)
{
    struct drm_found cards[DRM_CARDS_MAX];
    _cleanup_free_ struct drm_shared *shared = calloc(1, sizeof(*shared));
    size_t count, shown;
    uint32_t first;

    if (!shared) {
        report_add(report, "drm", VERDICT_FAILED, "free some memory", "out of memory");
        return;
    }
    shared->context = context;
    count = drm_find_cards(shared, cards);
    if (count == 0)
        return; /* a node without them has nothing to mend */
    drm_files_init(&shared->files, context->host);
    drm_files_search(&shared->files, 1); /* once for all: it asks no driver */
    first = drm_first_index(context->host);
    shown = MIN(count, (size_t)(SAMPLE_GPU_MAX - MIN(first, (uint32_t)SAMPLE_GPU_MAX)));
    check_cards(report, shared, cards, shown, first);
    if (shown < count)
        report_add(report, "gpus", VERDICT_LIMITED, "none: this is a limit of the exporter",
                   "%zu GPUs are left out: only %d can be numbered", count - shown, SAMPLE_GPU_MAX);
    if (report->is_hung) /* with what it uses */
        (void)TAKE_PTR(shared);
    else
        drm_files_done(&shared->files);
}
