#include "sources/cgroup/recent.h"

#include "core/macros.h"

/* Times are multiples of this, so that all are read by the same wake-up. */
#define STEP_US (USEC_PER_SEC / 20)
/* A cycle comes as soon. */
#define STEP_MAX_US (5 * USEC_PER_SEC)

/* Where the kernel says when it ends, only a race with whoever removes it can be lost: these reads
 * keep that cheap. */
enum { PARTS = 8, PARTS_WHERE_TOLD = 2 };

void recents_add(struct recents *youngs, uint64_t id)
{
    if (youngs->count < RECENT_MAX)
        youngs->items[youngs->count++] = (struct recent){.id = id};
}

void recents_remove(struct recents *youngs, uint64_t id)
{
    for (size_t i = 0; i < youngs->count; i++)
        if (youngs->items[i].id == id) {
            youngs->items[i] = youngs->items[--youngs->count];
            return;
        }
}

/* False: it is old. */
static bool set_due(struct recent *young, uint64_t now_us, bool is_told)
{
    uint64_t age_us, step_us;

    if (young->born_us == 0)
        young->born_us = now_us;
    age_us = now_us - MIN(young->born_us, now_us);
    step_us = age_us / (is_told ? PARTS_WHERE_TOLD : PARTS);
    young->due_us = (now_us + MAX(step_us, STEP_US)) / STEP_US * STEP_US;
    return step_us < STEP_MAX_US;
}

uint64_t recents_read(struct recents *youngs, uint64_t now_us,
                      bool (*read)(void *context, uint64_t id), void *context)
{
    uint64_t next_us = RECENT_NEVER;

    for (size_t i = youngs->count; i-- > 0;) {
        struct recent *young = &youngs->items[i];

        if (young->due_us <= now_us) {
            if (!set_due(young, now_us, read(context, young->id))) {
                *young = youngs->items[--youngs->count];
                continue;
            }
        }
        next_us = MIN(next_us, young->due_us);
    }
    return next_us;
}
