/* Learns the power of a GPU's processes, for --attribution=intensity. */
#include "attribution/gpu/gpu.h"

#include <math.h>

#include "core/macros.h"

/* A board that is quiet for this long shows its idle level. */
static const uint64_t QUIET_US = 900000;

enum { LAST_ROUNDS = 12 };

static const uint64_t BUSY_WIN_US = 10000;

/* Whoever has a twentieth of the time is sampled in this time, 99 times of 100. */
static const uint64_t RESTING_US = 20 * USEC_PER_SEC;

struct gpu_learning *gpu_learning_at(const struct gpu *gpu, size_t index)
{
    if (index == 0)
        return gpu->learning;
    return gpu->mig && index <= gpu->mig->count ? gpu->mig->instances[index - 1].learning : NULL;
}

/* NULL: there is none for it. */
static struct gpu_learning *learning_of(const struct gpu *gpu, uint32_t process)
{
    const struct gpu_instance *instance = gpu_instance_of(gpu, process);

    return instance ? instance->learning : gpu->mig ? NULL : gpu->learning;
}

static void forget_tenant(struct gpu_learning *learning, uint32_t tenant)
{
    slots_move(&learning->slots, tenant, TENANT_NONE);
    intensity_forget(&learning->intensity, tenant);
    clients_forget(&learning->clients, tenant);
}

/* The place of a process, or TENANT_NONE. */
static uint32_t place_of(const struct gpu *gpu, uint32_t process)
{
    const struct gpu_learning *learning = learning_of(gpu, process);
    uint32_t place = learning ? gpu_sighting(gpu, process)->tenant - 1U : TENANT_NONE;
    const struct tenant *tenant;

    if (place == TENANT_NONE || place == TENANT_OTHERS)
        return place;
    tenant = &learning->tenants.all[place];
    return tenant->used && !tenant->ended && tenant->process == process ? place : TENANT_NONE;
}

/* It may have moved to another instance since. A place that is older than the process is of another
 * one that had its index before. */
uint32_t gpu_place_in(const struct gpu *gpu, const struct gpu_learning *learning, uint32_t process)
{
    if (learning_of(gpu, process) == learning)
        return place_of(gpu, process);
    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &learning->tenants.all[t];

        if (tenant->used && tenant->process == process &&
            tenant->since_us + USEC_PER_SEC >= gpu_sighting(gpu, process)->first_listed_us)
            return t;
    }
    return TENANT_NONE;
}

/* The same, or a new one. A process in TENANT_OTHERS gets its own as soon as possible. */
static uint32_t open_place(struct gpu *gpu, uint32_t process)
{
    struct gpu_learning *learning = learning_of(gpu, process);
    uint32_t place = place_of(gpu, process);

    if (place < TENANT_OTHERS || !learning)
        return place;
    place = tenants_enter(&learning->tenants, process, gpu->latest_us);
    if (place != TENANT_OTHERS) {
        forget_tenant(learning, place);
        intensity_recall(&learning->intensity, place, gpu_program_of(gpu, process), gpu->latest_us);
    }
    learning->has_others |= place == TENANT_OTHERS;
    gpu_sighting(gpu, process)->tenant = (uint8_t)(place + 1);
    return place;
}

/* Names may have come by now, or the process has moved to another owner. */
static void update_program(struct gpu *gpu, struct gpu_learning *learning, uint32_t place)
{
    struct intensity *intensity = &learning->intensity;
    struct program_key key = gpu_program_of(gpu, learning->tenants.all[place].process);

    if (key.exact != intensity->keys[place].exact)
        intensity_recall(intensity, place, key, gpu->latest_us);
}

static void update_tenants(struct gpu *gpu, struct gpu_learning *learning)
{
    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &learning->tenants.all[t];

        if (!tenant->used || tenant->ended)
            continue;
        if (!ledger_process(gpu->ledger, tenant->process) ||
            gpu_sighting(gpu, tenant->process)->tenant != t + 1 ||
            learning_of(gpu, tenant->process) != learning ||
            !ledger_is_live(gpu->ledger, tenant->process))
            tenants_leave(&learning->tenants, t, gpu->latest_us);
        else
            update_program(gpu, learning, t);
    }
    intensity_keep(&learning->intensity, slots_tenants(&learning->slots));
}

/* Tenants (bits) that are there. */
static uint32_t present_tenants(const struct gpu_learning *learning)
{
    uint32_t present = 0;

    for (uint32_t t = 0; t < TENANT_OTHERS; t++)
        if (learning->tenants.all[t].used && !learning->tenants.all[t].ended)
            present |= 1U << t;
    return present;
}

/* Those of clients that the programs which are remembered explain, or do not. */
static void count_clients(const struct gpu_learning *learning, struct intensity_memory *memory)
{
    uint32_t present = slots_clients(&learning->slots);
    const struct client_group *group = clients_find(&learning->clients, present);

    if (!group || group->unmixed_joules <= 0)
        return;
    if (clients_are_unmixed(group))
        memory->recalled += (size_t)__builtin_popcount(present);
    else
        memory->suspended += (size_t)__builtin_popcount(present);
}

struct intensity_memory gpu_program_memory(const struct gpu *gpu)
{
    struct intensity_memory sum = {0};
    const struct gpu_learning *learning;

    for (size_t i = 0; (learning = gpu_learning_at(gpu, i)); i++) {
        struct intensity_memory memory =
            intensity_memory(&learning->intensity, present_tenants(learning));

        sum.programs = memory.programs; /* of the board */
        sum.recalled += memory.recalled;
        sum.suspended += memory.suspended;
        count_clients(learning, &sum);
    }
    return sum;
}

/* The processes of a compute instance share its slices. */
static void size_clients(struct gpu *gpu, const struct gpu_instance *instance, uint32_t clients)
{
    struct gpu_learning *learning = instance->learning;
    uint32_t computes[TENANTS_MAX] = {0};
    double sum = 0;

    for (uint32_t t = 0; t < TENANT_OTHERS; t++)
        if (clients & (1U << t))
            computes[t] = gpu_sighting(gpu, learning->tenants.all[t].process)->compute_instance;
    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct gpu_compute *compute;
        unsigned beside = 0;

        if (!(clients & (1U << t)))
            continue;
        for (uint32_t k = 0; k < TENANT_OTHERS; k++)
            beside += (clients & (1U << k)) && computes[k] == computes[t];
        compute = gpu_mig_find_compute(instance, computes[t]);
        learning->clients.sizes[t] = (double)(compute ? compute->slices : 1) / beside;
        sum += learning->clients.sizes[t];
    }
    if (clients)
        learning->clients.sizes[TENANT_OTHERS] = sum / __builtin_popcount(clients);
}

/*
 * GPM of an instance is read from its first process until the end of the window in which its last
 * one left (nvml_gpm.c), and while its memory is in use. What the next reading tells is of the time
 * since the next process came; before that nobody was there.
 */
static void follow_gpm(const struct gpu *gpu, struct gpu_instance *instance, uint32_t listed,
                       uint64_t t_us)
{
    struct slots *slots = &instance->learning->slots;

    if (!listed && slots->listed)
        instance->left_us = t_us;
    else if (listed && !slots->listed && !instance->is_occupied &&
             (slots->gpm_us >= instance->left_us ||
              t_us >= instance->left_us + gpu->options.interval_us))
        slots_begin_gpm(slots, t_us, gpu->mig->has_gpm);
}

/* Those that had no sample for long, though others may have had: an X server, a model that waits
 * for requests. */
static uint32_t find_resting(const struct gpu_learning *learning, uint32_t tenants, uint64_t t_us)
{
    uint32_t resting = 0;

    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &learning->tenants.all[t];

        if ((tenants & (1U << t)) && t_us >= MAX(tenant->since_us, tenant->worked_us) + RESTING_US)
            resting |= 1U << t;
    }
    return resting;
}

/* Those in TENANT_OTHERS that no sample tells apart, and their servers among the listed. */
static size_t count_others(struct gpu *gpu, size_t index, uint32_t listed, uint32_t *servers)
{
    struct gpu_learning *learning = gpu_learning_at(gpu, index);
    size_t others = 0;
    bool has_any = false;

    for (uint32_t i = 0; learning->has_others && i < ledger_counts(gpu->ledger)->process_slots;
         i++) {
        if (!gpu_has_process(gpu, i) || learning_of(gpu, i) != learning ||
            place_of(gpu, i) != TENANT_OTHERS || !gpu_lists_of(gpu, i))
            continue;
        has_any = true;
        if (gpu_is_on_list(gpu, i, SAMPLE_LIST_MPS))
            for (uint32_t t = 0; t < TENANT_OTHERS; t++)
                if ((listed & (1U << t)) &&
                    gpu_serves_mps(gpu, learning->tenants.all[t].process, i))
                    *servers |= 1U << t;
        others += index > 0 ? !gpu_sighting(gpu, i)->is_mps_server
                            : gpu_is_on_list(gpu, i, SAMPLE_LIST_MPS);
    }
    learning->has_others = has_any;
    return others;
}

/* Which tenants are on a list. No sample tells those of a GPU instance apart, as with MPS. */
static void update_listed(struct gpu *gpu, size_t index, uint64_t t_us)
{
    struct gpu_learning *learning = gpu_learning_at(gpu, index);
    uint32_t listed = 0, clients = 0, servers = 0;
    size_t others;

    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &learning->tenants.all[t];

        if (!tenant->used || tenant->ended || learning_of(gpu, tenant->process) != learning)
            continue;
        if (gpu_lists_of(gpu, tenant->process))
            listed |= 1U << t;
        if (gpu_is_on_list(gpu, tenant->process, SAMPLE_LIST_MPS))
            clients |= 1U << t;
    }
    for (uint32_t t = 0; t < TENANT_OTHERS; t++)
        for (uint32_t c = 0; (listed & (1U << t)) && c < TENANT_OTHERS; c++)
            if ((clients & (1U << c)) && gpu_serves_mps(gpu, learning->tenants.all[t].process,
                                                        learning->tenants.all[c].process))
                servers |= 1U << t;
    others = count_others(gpu, index, listed, &servers);
    for (uint32_t t = 0; t < TENANT_OTHERS; t++)
        if ((listed & ~servers & (1U << t)) &&
            gpu_is_small_server(gpu, learning->tenants.all[t].process))
            listed &= ~(1U << t);
    if (index > 0) {
        clients = listed & ~servers;
        size_clients(gpu, &gpu->mig->instances[index - 1], clients);
        follow_gpm(gpu, &gpu->mig->instances[index - 1], listed, t_us);
    }
    if (others > 0) {
        listed |= 1U << TENANT_OTHERS;
        clients |= 1U << TENANT_OTHERS;
    }
    slots_take_listed(&learning->slots, listed, clients, servers);
    slots_take_others(&learning->slots, others);
    slots_take_resting(&learning->slots,
                       gpu->samples.are_made && !gpu->mig
                           ? find_resting(learning, listed & ~clients & ~servers, t_us)
                           : 0);
}

void gpu_learn_list(struct gpu *gpu, const struct sample_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        uint32_t process;

        if (ledger_find_process(gpu->ledger, gpu->meter, list->entries[i].pid, &process))
            (void)open_place(gpu, process);
    }
    for (size_t i = 0; gpu_learning_at(gpu, i); i++)
        update_listed(gpu, i, gpu->list_us[list->kind]);
}

static void take_wins(struct gpu_learning *learning, uint64_t at_us, uint32_t place, uint32_t count)
{
    struct tenant *tenant = &learning->tenants.all[place];

    tenant->worked_us = MAX(tenant->worked_us, at_us);
    slots_take_wins(&learning->slots, at_us, place, count);
}

void gpu_learn_sample(struct gpu *gpu, const struct sample_label *sample,
                      const struct gpu_sample *taken)
{
    uint32_t place;

    if (gpu->mig)
        return; /* the driver makes none */
    slots_take_sample(&gpu->learning->slots, sample);
    if (taken->process == LEDGER_NONE || taken->weight == 0)
        return;
    place = open_place(gpu, taken->process);
    if (place != TENANT_NONE)
        take_wins(gpu->learning, taken->at_us, place, 1);
}

/* Counted time is as good as a sample every BUSY_WIN_US. */
void gpu_learn_busy(struct gpu *gpu, uint64_t t_us, const struct sample_busy *busy)
{
    uint64_t total_us = 0;

    if (gpu->mig)
        return;
    for (size_t i = 0; i < busy->count; i++) {
        uint64_t busy_us = MIN(busy->entries[i].busy_us, busy->interval_us);
        uint32_t process, place = TENANT_NONE;

        total_us = MIN(total_us + busy_us, busy->interval_us);
        if (busy_us > 0 &&
            ledger_find_process(gpu->ledger, gpu->meter, busy->entries[i].pid, &process))
            place = open_place(gpu, process);
        if (place != TENANT_NONE)
            take_wins(
                gpu->learning, t_us, place,
                (uint32_t)MIN((busy_us + BUSY_WIN_US - 1) / BUSY_WIN_US, (uint64_t)UINT8_MAX));
    }
    slots_take_busy(&gpu->learning->slots, t_us, busy->interval_us, total_us);
}

/* Learns the idle level from a second of quiet: windows are too coarse to show all of them. */
static void learn_idle(struct gpu *gpu, const struct slot *slot)
{
    __typeof__(gpu->learning->quiet) *quiet = &gpu->learning->quiet;
    bool context = slot_contexts(slot) != 0;
    bool is_quiet = slot_is_quiet(slot) && !slot->has_changed; /* else it shows neither level */

    if (!is_quiet || context != quiet->context)
        quiet->energy_uj = quiet->duration_us = 0;
    quiet->context = context;
    if (!is_quiet)
        return;
    quiet->energy_uj += slot->energy_uj;
    quiet->duration_us += slot->end_us - slot->start_us;
    if (quiet->duration_us < QUIET_US)
        return;
    idle_learn(&gpu->idle, context, quiet->energy_uj, quiet->duration_us);
    quiet->energy_uj = quiet->duration_us = 0;
}

static void learn_slots(struct gpu *gpu, bool is_last)
{
    struct gpu_learning *learning = gpu->learning;
    const struct slot *slot;

    learning->intensity.states.idle_watts = (double)idle_level_mw(&gpu->idle, true) / 1e3;
    learning->intensity.states.limit_watts = (double)gpu->power_limit_mw / 1e3;
    while ((slot = slots_next(&learning->slots, is_last))) {
        if (gpu->mig) {
            gpu_mig_learn_slot(gpu, slot);
            continue;
        }
        learn_idle(gpu, slot);
        if (slot->clients) {
            intensity_remember_alone(&learning->intensity, slot);
            clients_learn(&learning->clients, &learning->intensity, slot);
        } else {
            intensity_learn(&learning->intensity, slot);
        }
    }
}

void gpu_learn_energy(struct gpu *gpu, uint64_t tick_us, uint64_t energy_uj)
{
    struct gpu_learning *learning;

    /* What is of each instance is known once its activity is. */
    for (size_t i = 0; (learning = gpu_learning_at(gpu, i)); i++)
        slots_take_energy(&learning->slots, tick_us, i == 0 ? energy_uj : 0);
    learn_slots(gpu, false);
}

void gpu_learn_last(struct gpu *gpu)
{
    learn_slots(gpu, true);
    intensity_fit(&gpu->learning->intensity, LAST_ROUNDS);
}

void gpu_forget_window(struct gpu *gpu, const struct window *window)
{
    struct gpu_learning *learning;

    for (size_t i = 0; (learning = gpu_learning_at(gpu, i)); i++) {
        slots_drop_until(&learning->slots, window->end_us);
        update_tenants(gpu, learning);
    }
}

bool gpu_may_learn_more(const struct gpu *gpu, const struct window *window)
{
    size_t present = 0, known = 0;

    if (!gpu->learning || (window->saw_utilisation && window->busiest_percent == 0))
        return false;
    for (size_t i = 0; i < window->presence_count; i++) {
        uint32_t process = window->presences[i].process;
        const struct gpu_learning *learning = learning_of(gpu, process);
        uint32_t place = gpu_sighting(gpu, process)->tenant - 1U;

        /* Of a vGPU there is nothing to learn: its samples show its own utilisation. */
        if ((window_lists_of(window, &window->presences[i]) & ~(1 << GPU_LIST_VGPU)) == 0)
            continue;
        present++;
        /* Waiting would not change the share of a tenant that is certain. */
        known += learning && place < TENANT_OTHERS &&
                 (learning->intensity.certain & (1U << place)) &&
                 gpu->latest_us >= learning->tenants.all[place].since_us + gpu->options.patience_us;
    }
    return present > 1 && known < present;
}
