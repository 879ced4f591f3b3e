#include "sources/usage_delta.h"

#include <errno.h>
#include <stdlib.h>

#include "core/macros.h"

void usage_delta_done(struct usage_delta *delta)
{
    free(delta->past);
    *delta = (struct usage_delta){0};
}

static int by_id(const void *a, const void *b)
{
    const struct usage_past *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static uint64_t cpu_of(const struct usage *usage)
{
    if (usage_has(usage, USAGE_CPU_US))
        return usage->values[USAGE_CPU_US];
    return (usage_has(usage, USAGE_CPU_USER_US) ? usage->values[USAGE_CPU_USER_US] : 0) +
           (usage_has(usage, USAGE_CPU_SYSTEM_US) ? usage->values[USAGE_CPU_SYSTEM_US] : 0);
}

static uint64_t memory_of(const struct usage *usage)
{
    if (usage_has(usage, USAGE_MEMORY_RSS_BYTES))
        return usage->values[USAGE_MEMORY_RSS_BYTES];
    return usage_has(usage, USAGE_MEMORY_USED_BYTES) ? usage->values[USAGE_MEMORY_USED_BYTES] : 0;
}

static uint64_t cpu_since(const struct usage_delta *delta, const struct usage_owner *item)
{
    const struct usage_past key = {.id = item->id};
    const struct usage_past *past =
        delta->count > 0 ? bsearch(&key, delta->past, delta->count, sizeof(key), by_id) : NULL;
    uint64_t now = cpu_of(&item->usage);

    if (!delta->is_started)
        return 0;
    if (!past)
        return now;
    return now - MIN(now, past->cpu_us);
}

static void take_out(uint64_t *from, uint64_t amount)
{
    *from -= MIN(*from, amount);
}

int usage_delta_take(struct usage_delta *delta, const struct usage_owner *items, size_t count,
                     struct usage_did *did)
{
    struct usage_past *past = malloc(MAX(count, (size_t)1) * sizeof(*past));
    size_t kept = 0;

    if (!past)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        did[i] =
            (struct usage_did){.cpu_us = cpu_since(delta, &items[i]),
                               .memory_bytes = items[i].ended ? 0 : memory_of(&items[i].usage)};
        if (!items[i].ended)
            past[kept++] = (struct usage_past){items[i].id, cpu_of(&items[i].usage)};
    }
    /* One level at a time, from what was read: what is two levels inside is in the one between. */
    for (size_t i = 0; i < count; i++) {
        if (items[i].around >= count)
            continue;
        take_out(&did[items[i].around].cpu_us, cpu_since(delta, &items[i]));
        take_out(&did[items[i].around].memory_bytes,
                 items[i].ended ? 0 : memory_of(&items[i].usage));
    }
    qsort(past, kept, sizeof(*past), by_id);
    free(delta->past);
    delta->past = past;
    delta->count = kept;
    delta->is_started = true;
    return 0;
}
