/* The processes of a GPU: who they are, and which of them the driver's lists name. */
#include <errno.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "core/macros.h"

/* A process that is gone from a list so soon after a window began has no part in it. */
static const uint64_t RENEWAL_US = 350000;

int gpu_open_process(struct gpu *gpu, uint32_t pid, uint32_t *ret_process)
{
    int r;

    if (ledger_find_process(gpu->ledger, gpu->meter, pid, ret_process))
        return 0;
    r = sightings_reserve(gpu->sightings, gpu->ledger);
    if (r == 0)
        r = ledger_open_process(gpu->ledger, gpu->meter, pid, ret_process);
    if (r == 0)
        sightings_open(gpu->sightings, gpu->ledger, *ret_process);
    return r;
}

int gpu_open_unseen(struct gpu *gpu, const struct workload_owner *owner, uint32_t *ret_process)
{
    int r = sightings_reserve(gpu->sightings, gpu->ledger);

    if (r == 0)
        r = ledger_open_unseen(gpu->ledger, gpu->meter, owner, ret_process);
    if (r == 0)
        sightings_open(gpu->sightings, gpu->ledger, *ret_process);
    return r;
}

int gpu_take_process(struct gpu *gpu, uint64_t t_us, const struct sample_process *who)
{
    struct workload_owner owner;
    uint32_t process;
    int r;

    if (who->pid == 0)
        return 0; /* the driver's own */
    gpu->options.find_owner(who, &owner);
    r = sightings_reserve(gpu->sightings, gpu->ledger);
    if (r < 0)
        return r;
    r = ledger_identify(gpu->ledger, gpu->meter, who, &owner, &process);
    if (r < 0)
        return r;
    sightings_open(gpu->sightings, gpu->ledger, process);
    ledger_see_process(gpu->ledger, process, t_us);
    gpu_sighting(gpu, process)->is_mps_server |= strcmp(who->name, "nvidia-cuda-mps-server") == 0;
    return 0;
}

bool gpu_is_listed(const struct gpu *gpu, uint32_t process)
{
    return gpu_lists_in_force(gpu, process) != 0;
}

bool gpu_is_mps_client(const struct gpu *gpu, uint32_t process)
{
    return gpu_lists_in_force(gpu, process) & (1 << SAMPLE_LIST_MPS);
}

void gpu_note_context(struct gpu *gpu, struct window *window)
{
    bool named = false, read = false;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        named |= gpu->list_named[kind];
        read |= gpu->list_round[kind] > 0;
    }
    window->saw_context |= named;
    window->saw_no_context |= read && !named;
}

/*
 * The MPS server is on the compute list, its clients are on the MPS list too. It is known by its
 * name, or where there are no names, by being the only one of its kind.
 */
static void find_mps_server(struct gpu *gpu, const struct window *window)
{
    uint32_t server = LEDGER_NONE;

    if (!gpu->list_named[SAMPLE_LIST_MPS])
        return;
    for (size_t i = 0; i < window->presence_count; i++) {
        uint32_t process = window->presences[i].process;

        if (gpu_lists_in_force(gpu, process) != 1 << SAMPLE_LIST_COMPUTE)
            continue;
        if (server != LEDGER_NONE)
            return;
        server = process;
    }
    if (server != LEDGER_NONE)
        gpu_sighting(gpu, server)->is_mps_server = true;
}

static int take_listed(struct gpu *gpu, struct window *window, uint64_t t_us,
                       enum sample_list_kind kind, const struct sample_listed *entry)
{
    struct presence *presence;
    struct sighting *seen;
    uint32_t process;
    int r = gpu_open_process(gpu, entry->pid, &process);

    if (r < 0)
        return r;
    /* The window holds its index from now on, however late the list came. */
    ledger_see_process(gpu->ledger, process, MAX(t_us, window->start_us));
    seen = gpu_sighting(gpu, process);
    if (seen->first_listed_us == 0)
        seen->first_listed_us = t_us;
    seen->last_listed_us = t_us;
    seen->list_round[kind] = gpu->list_round[kind];
    seen->memory_bytes[kind] = entry->memory_bytes;
    presence = window_presence(window, gpu->sightings, process);
    if (!presence)
        return -ENOMEM;
    presence->listed |= (uint8_t)(1 << kind);
    return 0;
}

int gpu_take_list(struct gpu *gpu, struct window *window, uint64_t t_us,
                  const struct sample_list *list)
{
    int result = 0;

    gpu->list_round[list->kind]++;
    if (t_us <= window->start_us + RENEWAL_US)
        window->lists_renewed |= (uint8_t)(1 << list->kind);
    gpu->list_named[list->kind] = list->count > 0;
    gpu->list_us[list->kind] = t_us;
    gpu_note_context(gpu, window);
    for (size_t i = 0; i < list->count; i++) {
        int r = 0;

        if (list->entries[i].pid > 0) /* or the driver's own */
            r = take_listed(gpu, window, t_us, list->kind, &list->entries[i]);
        if (r < 0)
            result = r;
    }
    find_mps_server(gpu, window);
    gpu_learn_list(gpu, list);
    return result;
}

void gpu_lose_lists(struct gpu *gpu)
{
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        gpu->list_round[kind]++;
        gpu->list_named[kind] = false;
    }
}
