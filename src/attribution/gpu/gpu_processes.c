/* The processes of a GPU: identity, the driver's lists, presence in windows, memory. */
#include <errno.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "attribution/grow.h"
#include "core/macros.h"

/* A process gone from a list so soon after a window began has no part in it. */
static const uint64_t RENEWAL_US = 350000;

/* Lists older than this, and than three windows, say nothing about the memory. */
static const uint64_t LISTS_STALE_US = 5 * USEC_PER_SEC;

/* More than engines can work in one window, and little enough to be added up. */
static const uint64_t BUSY_MAX_US = 1ULL << 40;

bool gpu_has_process(const struct gpu *gpu, uint32_t process)
{
    const struct ledger_process *account = ledger_process(gpu->ledger, process);

    return account && account->meter == gpu->meter;
}

int gpu_reserve_sightings(struct gpu *gpu)
{
    return grow_zeroed(&gpu->sightings->items, &gpu->sightings->slots,
                       ledger_counts(gpu->ledger)->process_slots + 1,
                       sizeof(*gpu->sightings->items));
}

void gpu_reset_sightings(struct gpu *gpu, bool was_away, uint64_t now_us)
{
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots; i++) {
        struct sighting *seen = gpu_sighting(gpu, i);

        if (!gpu_has_process(gpu, i))
            continue;
        seen->last_listed_us = MIN(seen->last_listed_us, now_us);
        seen->first_listed_us = MIN(seen->first_listed_us, now_us);
        if (was_away) {
            seen->window = seen->tenant = 0;
            memset(seen->list_round, 0, sizeof(seen->list_round));
        }
    }
}

void gpu_forget_places(struct gpu *gpu, uint32_t instance)
{
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots; i++)
        if (gpu_has_process(gpu, i) && gpu_sighting(gpu, i)->gpu_instance == instance)
            gpu_sighting(gpu, i)->tenant = 0;
}

static void open_sighting(struct gpu *gpu, uint32_t process)
{
    uint64_t serial = ledger_process(gpu->ledger, process)->serial;

    if (gpu_sighting(gpu, process)->serial != serial)
        *gpu_sighting(gpu, process) = (struct sighting){.serial = serial,
                                                        .gpu_instance = SAMPLE_NO_INSTANCE,
                                                        .compute_instance = SAMPLE_NO_INSTANCE};
}

int gpu_open_process(struct gpu *gpu, uint32_t pid, uint32_t *ret_process)
{
    if (gpu_reserve_sightings(gpu) < 0 ||
        ledger_open_process(gpu->ledger, gpu->meter, pid, ret_process) < 0)
        return -ENOMEM;
    open_sighting(gpu, *ret_process);
    return 0;
}

int gpu_open_unseen(struct gpu *gpu, const struct workload_owner *owner, uint32_t *ret_process)
{
    if (gpu_reserve_sightings(gpu) < 0 ||
        ledger_open_unseen(gpu->ledger, gpu->meter, owner, ret_process) < 0)
        return -ENOMEM;
    open_sighting(gpu, *ret_process);
    return 0;
}

void gpu_take_process(struct gpu *gpu, uint64_t t_us, const struct sample_process *who)
{
    struct workload_owner owner;
    uint32_t process;

    if (who->pid == 0)
        return; /* the driver's own */
    gpu->options.find_owner(who, &owner);
    if (gpu_reserve_sightings(gpu) < 0 ||
        ledger_identify(gpu->ledger, gpu->meter, who, &owner, &process) < 0) {
        gpu->out_of_memory = true;
        return;
    }
    open_sighting(gpu, process);
    ledger_see_process(gpu->ledger, process, t_us);
    if (who->name[0] != '\0')
        gpu_sighting(gpu, process)->is_mps_server =
            strcmp(who->name, "nvidia-cuda-mps-server") == 0;
}

bool gpu_serves_mps(const struct gpu *gpu, uint32_t server, uint32_t client)
{
    const struct sighting *seen = gpu_sighting(gpu, server);
    uint32_t uid = ledger_process(gpu->ledger, server)->uid;

    return seen->is_mps_server && server != client &&
           seen->gpu_instance == gpu_sighting(gpu, client)->gpu_instance &&
           (uid == 0 || uid == SAMPLE_UID_UNKNOWN ||
            uid == ledger_process(gpu->ledger, client)->uid);
}

uint8_t gpu_lists_of(const struct gpu *gpu, uint32_t process)
{
    uint8_t lists = 0;

    for (int kind = 0; kind < GPU_LIST_KINDS; kind++)
        if (gpu_is_on_list(gpu, process, kind))
            lists |= (uint8_t)(1 << kind);
    return lists;
}

bool gpu_is_small_server(const struct gpu *gpu, uint32_t process)
{
    const struct sighting *seen = gpu_sighting(gpu, process);

    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++)
        if (seen->memory_bytes[kind] >= SAMPLE_OCCUPIED_BYTES) /* or unknown */
            return false;
    return seen->is_mps_server;
}

bool gpu_is_idle_server(const struct gpu *gpu, const struct window *window, uint32_t process)
{
    if (!gpu_is_small_server(gpu, process))
        return false;
    for (size_t i = 0; i < window->presence_count; i++)
        if ((window_lists_of(window, &window->presences[i]) & (1 << SAMPLE_LIST_MPS)) &&
            gpu_serves_mps(gpu, process, window->presences[i].process))
            return false;
    return true;
}

void gpu_record_context(struct gpu *gpu, struct window *window)
{
    bool named = false, read = false;

    for (int kind = 0; kind < GPU_LIST_KINDS; kind++) {
        named |= gpu->list_named[kind];
        read |= gpu->list_round[kind] > 0;
    }
    window->saw_context |= named;
    window->saw_no_context |= read && !named;
}

/* Finds or adds the presence of a process. False when out of memory. */
static bool open_presence(struct gpu *gpu, struct window *window, uint32_t process,
                          struct presence **ret_presence)
{
    struct sighting *seen = gpu_sighting(gpu, process);

    if (seen->window != window->number) {
        if (grow_zeroed(&window->presences, &window->presence_slots, window->presence_count + 1,
                        sizeof(*window->presences)) < 0) {
            gpu->out_of_memory = true;
            return false;
        }
        seen->window = window->number;
        seen->window_index = window->presence_count++;
        window->presences[seen->window_index] =
            (struct presence){.process = process, .gpu_instance = seen->gpu_instance};
    }
    *ret_presence = &window->presences[seen->window_index];
    return true;
}

void gpu_begin_window(struct gpu *gpu, struct window *window, const struct window *before,
                      uint64_t start_us)
{
    const struct presence *presences = before->presences;
    size_t count = before->presence_count;

    *window = (struct window){
        .number = before->number + 1,
        .start_us = start_us,
        .end_us = start_us,
        .presences = window->presences,
        .presence_slots = window->presence_slots,
    };
    gpu_record_context(gpu, window);
    for (size_t i = 0; i < count; i++) {
        uint32_t process = presences[i].process;
        uint8_t lists = gpu_lists_of(gpu, process);
        struct presence *presence;

        if (!lists || !open_presence(gpu, window, process, &presence))
            continue;
        presence->inherited = lists;
        ledger_see_process(gpu->ledger, process, start_us);
    }
}

/* Is a client of MPS in the same GPU instance, and no other process but clients? */
static bool is_alone_with_clients(const struct gpu *gpu, const struct window *window,
                                  uint32_t process)
{
    uint32_t instance = gpu_sighting(gpu, process)->gpu_instance;
    bool has_client = false;

    for (size_t i = 0; i < window->presence_count; i++) {
        uint32_t other = window->presences[i].process;
        uint8_t lists = gpu_lists_of(gpu, other);

        if (other == process || lists == 0 || gpu_sighting(gpu, other)->gpu_instance != instance)
            continue;
        if (!(lists & 1 << SAMPLE_LIST_MPS))
            return false;
        has_client = true;
    }
    return has_client;
}

/* The MPS server is on the compute list, its clients are on the MPS list too. It is identified by
 * its name or, while it has none, as the only process that is on the compute list alone. */
static void find_mps_server(struct gpu *gpu, const struct window *window)
{
    if (!gpu->list_named[SAMPLE_LIST_MPS])
        return;
    for (size_t i = 0; i < window->presence_count; i++) {
        uint32_t process = window->presences[i].process;
        const char *name = ledger_process(gpu->ledger, process)->name;

        if ((!name || name[0] == '\0') && gpu_lists_of(gpu, process) == 1 << SAMPLE_LIST_COMPUTE &&
            is_alone_with_clients(gpu, window, process))
            gpu_sighting(gpu, process)->is_mps_server = true;
    }
}

void gpu_take_listed(struct gpu *gpu, struct window *window, uint64_t t_us, uint32_t process,
                     unsigned kind, uint64_t memory_bytes)
{
    struct presence *presence;
    struct sighting *seen;

    /* The window holds its index from now on, however late the list came. */
    ledger_see_process(gpu->ledger, process, MAX(t_us, window->start_us));
    seen = gpu_sighting(gpu, process);
    if (seen->first_listed_us == 0)
        seen->first_listed_us = t_us;
    seen->last_listed_us = t_us;
    seen->list_round[kind] = gpu->list_round[kind];
    seen->memory_bytes[kind] = memory_bytes;
    if (!open_presence(gpu, window, process, &presence))
        return;
    presence->listed |= (uint8_t)(1 << kind);
    presence->gpu_instance = seen->gpu_instance;
}

static void take_entry(struct gpu *gpu, struct window *window, uint64_t t_us,
                       enum sample_list_kind kind, const struct sample_listed *entry)
{
    struct sighting *seen;
    uint32_t process;

    if (gpu_open_process(gpu, entry->pid, &process) < 0) {
        gpu->out_of_memory = true;
        return;
    }
    seen = gpu_sighting(gpu, process);
    if (entry->gpu_instance != SAMPLE_NO_INSTANCE) {
        seen->gpu_instance = entry->gpu_instance;
        seen->compute_instance = entry->compute_instance;
    }
    gpu_take_listed(gpu, window, t_us, process, kind, entry->memory_bytes);
}

/* An MPS server without clients does not keep the board awake: it draws as little as without any
 * context (measured, H200). */
static bool names_a_context(const struct gpu *gpu, const struct sample_list *list)
{
    uint32_t process;

    for (size_t i = 0; i < list->count; i++)
        if (!ledger_find_process(gpu->ledger, gpu->meter, list->entries[i].pid, &process) ||
            !gpu_sighting(gpu, process)->is_mps_server)
            return true;
    return false;
}

void gpu_take_list(struct gpu *gpu, struct window *window, uint64_t t_us,
                   const struct sample_list *list)
{
    gpu->list_round[list->kind]++;
    if (t_us <= window->start_us + RENEWAL_US)
        window->lists_renewed |= (uint8_t)(1 << list->kind);
    gpu->list_us[list->kind] = t_us;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].pid > 0) /* or the driver's own */
            take_entry(gpu, window, t_us, list->kind, &list->entries[i]);
    gpu->list_named[list->kind] = list->count > 0;
    find_mps_server(gpu, window);
    gpu->list_named[list->kind] = names_a_context(gpu, list);
    gpu_record_context(gpu, window);
    if (gpu->learning)
        gpu_learn_list(gpu, list);
}

/* Who worked was there, whatever the lists say. */
static void take_busy_process(struct gpu *gpu, struct window *window, uint64_t t_us,
                              uint64_t interval_us, const struct sample_busy_process *from)
{
    struct presence *presence;
    struct sighting *seen;
    uint32_t process;

    if (gpu_open_process(gpu, from->pid, &process) < 0) {
        gpu->out_of_memory = true;
        return;
    }
    ledger_see_process(gpu->ledger, process, MAX(t_us, window->start_us));
    seen = gpu_sighting(gpu, process);
    seen->busy_at_us = t_us;
    seen->busy_permille = (uint32_t)(MIN(from->busy_us, interval_us) * 1000 / MAX(interval_us, 1U));
    if (open_presence(gpu, window, process, &presence))
        presence->busy_us += MIN(from->busy_us, BUSY_MAX_US);
}

void gpu_take_busy(struct gpu *gpu, struct window *window, uint64_t t_us,
                   const struct sample_busy *busy)
{
    gpu->samples.are_made = gpu->samples.are_counted = true;
    gpu->samples.are_missing = false;
    window->is_by_presence |= busy->is_by_presence;
    for (size_t i = 0; i < busy->count; i++)
        if (busy->entries[i].pid > 0 && busy->entries[i].busy_us > 0)
            take_busy_process(gpu, window, t_us, MIN(busy->interval_us, BUSY_MAX_US),
                              &busy->entries[i]);
    if (gpu->learning && !busy->is_by_presence)
        gpu_learn_busy(gpu, t_us, busy);
}

uint64_t gpu_busy_in(const struct gpu *gpu, const struct window *window,
                     const struct gpu_instance *instance)
{
    uint64_t sum_us = 0;

    for (size_t i = 0; i < window->presence_count; i++)
        if (gpu_mig_find(gpu->mig, window->presences[i].gpu_instance) == instance)
            sum_us += window->presences[i].busy_us;
    return sum_us;
}

void gpu_take_memory(struct gpu *gpu, uint64_t t_us, uint64_t used_bytes)
{
    uint64_t read_us = gpu->list_us[SAMPLE_LIST_COMPUTE], known_bytes = 0;
    bool is_known =
        read_us > 0 && read_us + MAX(LISTS_STALE_US, 3 * gpu->options.interval_us) >= t_us;

    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots && is_known; i++) {
        uint64_t most = 0; /* on two lists its memory counts once */

        if (!gpu_has_process(gpu, i) || ledger_process(gpu->ledger, i)->superseded)
            continue;
        for (int kind = 0; kind < GPU_LIST_KINDS; kind++)
            if (gpu_is_on_list(gpu, i, kind))
                most = MAX(most, gpu_sighting(gpu, i)->memory_bytes[kind]);
        is_known = most != SAMPLE_MEMORY_UNKNOWN; /* the largest number: the driver hides it */
        known_bytes += most;
    }
    if (is_known)
        gpu->unknown_bytes[gpu->unknown_readings++ % GPU_UNKNOWN_READINGS] =
            used_bytes > known_bytes ? used_bytes - known_bytes : 0;
    else
        gpu->unknown_readings = 0;
}
