/* Who uses a card, and for how long. */
#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "core/macros.h"
#include "core/map.h"
#include "sources/drm/drm.h"

/* Clients are read at the end of each window, unless that was just done, and while processes share
 * a card also in between: one that closes it takes along what it did since. */
static const uint64_t END_US = 50000, SHARED_US = 200000;

static struct drm_process *find(const struct drm_card *card, uint32_t pid)
{
    for (size_t i = 0; i < card->process_count; i++)
        if (card->processes[i].pid == pid)
            return &card->processes[i];
    return NULL;
}

/* Of a process that is not known yet, work is taken, too: it has ended already. */
static struct drm_process *find_or_add(struct drm_poll *poll, uint32_t pid)
{
    struct drm_card *card = poll->card;
    struct drm_process *process = find(card, pid);

    if (process)
        return process;
    if (!array_reserve(&card->processes, &card->process_capacity, card->process_count,
                       sizeof(*process))) {
        drm_poll_out_of_memory(poll);
        return NULL;
    }
    process = &card->processes[card->process_count++];
    *process = (struct drm_process){.pid = pid, .memory_bytes = SAMPLE_MEMORY_UNKNOWN};
    return process;
}

struct drm_process *drm_poll_process(struct drm_poll *poll, uint32_t pid)
{
    struct drm_process *process = find_or_add(poll, pid);

    if (process && !process->is_present) {
        process->is_present = true;
        process->is_untimed = process->is_uncounted = false;
        process->memory_bytes = SAMPLE_MEMORY_UNKNOWN;
        process->parts = 0;
    }
    return process;
}

struct client_visit {
    struct drm_poll *poll;
    uint32_t part; /* a bit; 0: unknown */
};

static void take_client(void *context, const struct drm_use *use)
{
    const struct client_visit *visit = context;
    struct drm_process *process = use->is_present ? drm_poll_process(visit->poll, use->pid)
                                                  : find_or_add(visit->poll, use->pid);

    if (!process)
        return;
    process->engine_us += use->busy_us;
    process->has_worked |= use->busy_us > 0 || use->memory_bytes > 0;
    if (!use->is_present)
        return;
    process->parts |= visit->part;
    process->is_untimed |= use->is_untimed && use->memory_bytes > 0;
    process->is_uncounted |= process->is_untimed;
    if (use->has_memory)
        process->memory_bytes =
            process->memory_bytes == SAMPLE_MEMORY_UNKNOWN
                ? use->memory_bytes
                : MIN(process->memory_bytes, SAMPLE_MEMORY_UNKNOWN - 1 - use->memory_bytes) +
                      use->memory_bytes;
}

static void read_clients(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    struct drm_clients *clients = &card->clients;

    if (poll->window_ends || card->process_count > 1)
        drm_clients_look(clients, poll->window_ends ? END_US : SHARED_US, poll->mono_us);
    for (size_t d = 0; d < card->found.die_count; d++) {
        struct client_visit visit = {poll, card->found.die_count > 1 ? 1U << d : 0};

        drm_clients_visit(clients, card->found.dies[d].pci, take_client, &visit);
    }
}

/* The part that a process is in. */
static uint32_t instance_of(const struct drm_card *card, const struct drm_process *process)
{
    return card->part_count > 1 && __builtin_popcount(process->parts) == 1
               ? (uint32_t)__builtin_ctz(process->parts)
               : SAMPLE_NO_INSTANCE;
}

static bool is_listed(const struct drm_process *process, bool is_compute)
{
    return process->is_present && process->has_worked && process->is_compute == is_compute;
}

static void pass_list(struct drm_poll *poll, enum sample_list_kind kind)
{
    const struct drm_card *card = poll->card;
    struct sample_listed *entries =
        arena_array(&poll->batch->arena, MAX(card->process_count, (size_t)1), sizeof(*entries));
    size_t count = 0;

    if (!entries) {
        drm_poll_out_of_memory(poll);
        return;
    }
    for (size_t i = 0; i < card->process_count; i++) {
        const struct drm_process *process = &card->processes[i];
        uint32_t instance = instance_of(card, process);

        if (is_listed(process, kind == SAMPLE_LIST_COMPUTE))
            entries[count++] =
                (struct sample_listed){process->pid, process->memory_bytes, instance,
                                       instance == SAMPLE_NO_INSTANCE ? SAMPLE_NO_INSTANCE : 0};
    }
    drm_poll_add(poll, (struct sample){.kind = SAMPLE_LIST, .list = {kind, count, entries}});
}

static void pass_lists(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    uint64_t hash = map_hash_u64(card->part_count);

    for (size_t i = 0; i < card->process_count && !drm_poll_is_over(poll); i++) {
        const struct drm_process *process = &card->processes[i];
        uint32_t instance = instance_of(card, process);

        if (!process->is_present || !process->has_worked)
            continue;
        hash = map_hash_u64(hash ^ process->pid ^ (uint64_t)instance << 32 ^
                            (uint64_t)process->is_compute << 31);
        if (gpu_pids_see(&card->pids, process->pid, instance, poll->now_us, poll->batch) < 0)
            drm_poll_out_of_memory(poll);
    }
    gpu_pids_end_round(&card->pids);
    if (drm_poll_is_over(poll) || (hash == card->list_hash && !poll->window_ends))
        return;
    card->list_hash = hash;
    pass_list(poll, SAMPLE_LIST_COMPUTE);
    pass_list(poll, SAMPLE_LIST_GRAPHICS);
}

void drm_poll_read_processes(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;

    for (size_t i = 0; i < card->process_count; i++)
        card->processes[i].is_present = false;
    read_clients(poll);
    if (card->found.vendor->read_processes)
        card->found.vendor->read_processes(poll);
    if (!drm_poll_is_over(poll))
        pass_lists(poll);
}

/* What a process did that was counted: as much as the busiest of what it used. */
static uint64_t counted_us(const struct drm_process *process)
{
    return MAX(process->engine_us, MAX((uint64_t)process->occupied_us, process->copy_us));
}

uint8_t drm_poll_busy_percent(const struct drm_poll *poll)
{
    const struct drm_card *card = poll->card;
    uint64_t interval_us = poll->mono_us - MIN(card->busy_us, poll->mono_us), sum_us = 0;

    for (size_t i = 0; i < card->process_count; i++)
        sum_us += MIN(counted_us(&card->processes[i]), interval_us);
    /* Little work is not none. */
    return interval_us > 0
               ? (uint8_t)MIN((sum_us * 100 + interval_us - 1) / interval_us, (uint64_t)100)
               : 0;
}

/* Of a chip that does not tell the occupancy of each process, or a driver that does not tell the
 * time of its clients: what it did beyond all that was counted is of those that have queues on it,
 * as long as these were not evicted, or memory. */
struct uncounted {
    uint64_t rest_us;
    double present_us; /* summed over them */
    size_t count;
};

static double present_us(const struct drm_process *process, uint64_t interval_us)
{
    return (double)(interval_us - MIN(interval_us, process->evicted_us));
}

bool drm_card_has_uncounted(const struct drm_card *card)
{
    for (size_t i = 0; i < card->process_count; i++)
        if (card->processes[i].is_uncounted && card->process_count > 1)
            return true;
    return false;
}

static struct uncounted find_uncounted(const struct drm_card *card, uint64_t interval_us)
{
    struct uncounted uncounted = {.rest_us = MIN(card->active_us, interval_us)};

    for (size_t i = 0; i < card->process_count; i++) {
        const struct drm_process *process = &card->processes[i];

        if (process->is_uncounted) {
            uncounted.present_us += present_us(process, interval_us);
            uncounted.count++;
        } else {
            uncounted.rest_us -= MIN(uncounted.rest_us, counted_us(process));
        }
    }
    return uncounted;
}

static uint64_t busy_us(const struct drm_process *process, const struct uncounted *uncounted,
                        uint64_t interval_us)
{
    if (!process->is_uncounted)
        return MIN(counted_us(process), interval_us);
    return uncounted->present_us > 0
               ? (uint64_t)((double)uncounted->rest_us * present_us(process, interval_us) /
                            uncounted->present_us)
               : 0;
}

/* Begins anew, without those that are gone. */
static void restart(struct drm_card *card)
{
    size_t kept = 0;

    card->active_us = 0;
    for (size_t i = 0; i < card->process_count; i++) {
        struct drm_process *process = &card->processes[i];

        process->engine_us = process->copy_us = process->evicted_us = 0;
        process->occupied_us = 0;
        if (process->is_present)
            card->processes[kept++] = *process;
    }
    card->process_count = kept;
}

void drm_poll_pass_busy(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    uint64_t interval_us = poll->mono_us - MIN(card->busy_us, poll->mono_us);
    struct sample_busy_process *entries =
        arena_array(&poll->batch->arena, MAX(card->process_count, (size_t)1), sizeof(*entries));
    struct uncounted uncounted = find_uncounted(card, interval_us);
    bool is_first = card->busy_us == 0;
    size_t count = 0;

    card->busy_us = MAX(poll->mono_us, (uint64_t)1);
    if (!entries) {
        drm_poll_out_of_memory(poll);
        return;
    }
    for (size_t i = 0; i < card->process_count; i++) {
        const struct drm_process *process = &card->processes[i];
        uint64_t used_us = busy_us(process, &uncounted, interval_us);

        if (used_us > 0)
            entries[count++] = (struct sample_busy_process){process->pid, used_us};
    }
    restart(card);
    if (!is_first)
        drm_poll_add(poll, (struct sample){.kind = SAMPLE_BUSY,
                                           .busy = {.interval_us = interval_us,
                                                    .is_by_presence = uncounted.count > 1,
                                                    .count = count,
                                                    .entries = entries}});
}
