/* What a GPU learns of its processes for --attribution=intensity, and how that weighs claimants. */
#include <errno.h>
#include <stdlib.h>

#include "attribution/gpu/gpu.h"
#include "core/macros.h"
#include "core/map.h"

/* Quiet for so long, a board shows its idle level. */
static const uint64_t QUIET_US = 900000;

/* Rounds that find everything from nothing. */
enum { LAST_ROUNDS = 12 };

/* An expected error of this part of a share halves the confidence in it. */
static const double DOUBTFUL_ERROR = 0.08;

/* Weights of windows without samples; any scale will do. */
static const double WEIGHT_SCALE = (double)(1ULL << 40);

int gpu_learning_init(struct gpu *gpu)
{
    if (gpu->options.attribution != ATTRIBUTION_INTENSITY)
        return 0;
    gpu->learning = calloc(1, sizeof(*gpu->learning));
    return gpu->learning ? 0 : -ENOMEM;
}

static uint64_t hash_with(uint64_t hash, const char *text)
{
    return map_hash_u64(hash + map_hash_bytes(span_of(text)));
}

/*
 * What a process has in common with the next of its kind: the command, and the image of its
 * container, or else its owner. 0 while that is not known.
 */
static uint64_t kind_of(const struct gpu *gpu, uint32_t index)
{
    const struct ledger_process *process = ledger_process(gpu->ledger, index);
    const struct ledger_workload *workload = ledger_workload(gpu->ledger, process->workload);
    uint64_t hash;

    if (!process->name || process->unseen)
        return 0;
    hash = hash_with(0, process->name);
    if (process->container_id)
        return process->names.image ? hash_with(hash, process->names.image) : 0;
    if (process->uid == SAMPLE_UID_UNKNOWN)
        return 0;
    hash = map_hash_u64(hash + process->uid);
    return workload->kind == WORKLOAD_UNIT ? hash_with(hash, workload->id) : hash;
}

static void forget(struct gpu_learning *learning, uint32_t tenant)
{
    slots_move(&learning->slots, tenant, TENANT_NONE);
    intensity_forget(&learning->intensity, tenant);
    clients_forget(&learning->clients, tenant);
}

static bool has_place(const struct gpu *gpu, uint32_t process)
{
    uint32_t place = gpu_sighting(gpu, process)->tenant;
    const struct tenant *tenant;

    if (place == 0 || place - 1 == TENANT_OTHERS)
        return place > 0;
    tenant = &gpu->learning->tenants.all[place - 1];
    return tenant->used && !tenant->ended && tenant->process == process;
}

static uint32_t tenant_of(struct gpu *gpu, uint32_t process)
{
    struct sighting *seen = gpu_sighting(gpu, process);
    struct gpu_learning *learning = gpu->learning;
    uint32_t place;
    bool is_new;

    /* Who shares the last place gets one of its own as soon as there is one. */
    if (has_place(gpu, process) && seen->tenant - 1 != TENANT_OTHERS)
        return seen->tenant - 1;
    place =
        tenants_enter(&learning->tenants, process, kind_of(gpu, process), gpu->latest_us, &is_new);
    if (is_new && place != TENANT_OTHERS)
        forget(learning, place);
    seen->tenant = (uint8_t)(place + 1);
    return place;
}

/* The place of one of its kind that ended, once the kind is known. */
static void adopt(struct gpu *gpu, uint32_t tenant)
{
    struct gpu_learning *learning = gpu->learning;
    struct tenant *own = &learning->tenants.all[tenant];
    uint32_t to;

    own->kind = kind_of(gpu, own->process);
    to = tenants_find_ended(&learning->tenants, own->kind);
    if (to == TENANT_NONE)
        return;
    slots_move(&learning->slots, to, TENANT_NONE);
    slots_move(&learning->slots, tenant, to);
    forget(learning, tenant);
    own->since_us = learning->tenants.all[to].since_us;
    learning->tenants.all[to] = *own;
    gpu_sighting(gpu, own->process)->tenant = (uint8_t)(to + 1);
    *own = (struct tenant){0};
}

/* Who ended leaves; whose kind is known by now may take a place over. */
static void look_after_tenants(struct gpu *gpu)
{
    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &gpu->learning->tenants.all[t];

        if (!tenant->used || tenant->ended)
            continue;
        if (!ledger_process(gpu->ledger, tenant->process) ||
            gpu_sighting(gpu, tenant->process)->tenant != t + 1 ||
            !ledger_is_live(gpu->ledger, tenant->process))
            tenants_leave(&gpu->learning->tenants, t, gpu->latest_us);
        else if (tenant->kind == 0)
            adopt(gpu, t);
    }
}

void gpu_learn_list(struct gpu *gpu, const struct sample_list *list)
{
    uint32_t listed = 0, clients = 0;

    if (!gpu->learning)
        return;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t process;

        if (ledger_find_process(gpu->ledger, gpu->meter, list->entries[i].pid, &process))
            (void)tenant_of(gpu, process);
    }
    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &gpu->learning->tenants.all[t];

        if (!tenant->used || tenant->ended)
            continue;
        if (gpu_is_listed(gpu, tenant->process))
            listed |= 1U << t;
        if (gpu_is_mps_client(gpu, tenant->process))
            clients |= 1U << t;
    }
    slots_take_listed(&gpu->learning->slots, listed, clients);
}

void gpu_learn_label(struct gpu *gpu, const struct sample_label *sample,
                     const struct util_sample *label)
{
    if (!gpu->learning)
        return;
    slots_take_sample(&gpu->learning->slots, sample);
    if (label->process != LEDGER_NONE && label->weight > 0)
        slots_take_win(&gpu->learning->slots, label->at_us, tenant_of(gpu, label->process));
}

void gpu_learn_gpm(struct gpu *gpu, uint64_t t_us, const struct sample_gpm *gpm)
{
    if (gpu->learning)
        slots_take_gpm(&gpu->learning->slots, t_us, gpm);
}

void gpu_learn_clock(struct gpu *gpu, uint32_t clock_mhz)
{
    if (gpu->learning)
        slots_take_clock(&gpu->learning->slots, clock_mhz);
}

/* Windows are coarse: a second of quiet between two of them teaches the idle level as well. */
static void learn_idle(struct gpu *gpu, const struct slot *slot)
{
    struct gpu_learning *learning = gpu->learning;
    bool context = slot->listed != 0;

    if (!slot_is_quiet(slot) || context != learning->quiet.context)
        learning->quiet.energy_uj = learning->quiet.duration_us = 0;
    learning->quiet.context = context;
    if (!slot_is_quiet(slot))
        return;
    learning->quiet.energy_uj += slot->energy_uj;
    learning->quiet.duration_us += slot->end_us - slot->start_us;
    if (learning->quiet.duration_us < QUIET_US)
        return;
    idle_learn(&gpu->idle, context, learning->quiet.energy_uj, learning->quiet.duration_us);
    learning->quiet.energy_uj = learning->quiet.duration_us = 0;
}

static void learn_slots(struct gpu *gpu, bool is_last_call)
{
    struct gpu_learning *learning = gpu->learning;
    const struct slot *slot;

    learning->intensity.states.idle_watts =
        (double)MAX(gpu->idle.with_context.level_mw, gpu->idle.without_context.level_mw) / 1e3;
    while ((slot = slots_next(&learning->slots, is_last_call))) {
        learn_idle(gpu, slot);
        if (slot->clients)
            clients_learn(&learning->clients, slot, learning->intensity.states.idle_watts);
        else
            intensity_learn(&learning->intensity, slot);
    }
}

void gpu_learn_energy(struct gpu *gpu, uint64_t tick_us, uint64_t energy_uj)
{
    if (!gpu->learning)
        return;
    slots_take_energy(&gpu->learning->slots, tick_us, energy_uj);
    learn_slots(gpu, false);
}

void gpu_learn_restart(struct gpu *gpu, uint64_t tick_us)
{
    if (gpu->learning)
        slots_restart(&gpu->learning->slots, tick_us);
}

void gpu_learn_the_rest(struct gpu *gpu)
{
    if (!gpu->learning)
        return;
    learn_slots(gpu, true);
    intensity_refine(&gpu->learning->intensity, LAST_ROUNDS);
}

void gpu_forget_window(struct gpu *gpu, const struct window *window)
{
    if (!gpu->learning)
        return;
    slots_drop_until(&gpu->learning->slots, window->end_us);
    look_after_tenants(gpu);
}

/* Is a process so well known that waiting would not change what it pays? */
static bool is_well_known(const struct gpu *gpu, uint32_t process)
{
    const struct gpu_learning *learning = gpu->learning;
    uint32_t place = gpu_sighting(gpu, process)->tenant;

    return place > 0 && place - 1 != TENANT_OTHERS &&
           (learning->intensity.sure & (1U << (place - 1))) &&
           gpu->latest_us >= learning->tenants.all[place - 1].since_us + gpu->options.patience_us;
}

bool gpu_may_learn_more(const struct gpu *gpu, const struct window *window)
{
    size_t present = 0, known = 0;

    if (!gpu->learning || (window->saw_utilisation && window->busiest_percent == 0))
        return false;
    for (size_t i = 0; i < window->presence_count; i++) {
        if (window_lists_of(window, &window->presences[i]) == 0)
            continue;
        present++;
        known += is_well_known(gpu, window->presences[i].process);
    }
    return present > 1 && known < present;
}

/*
 * The shares of a whole window: those of its slots, by their energy above idle. False if there are
 * none, or if they would leave somebody out who was at work.
 */
static bool divide_window(const struct gpu *gpu, const struct window *window,
                          struct intensity_shares *ret_shares)
{
    const struct gpu_learning *learning = gpu->learning;
    struct intensity_shares sum = {0}, part;
    const struct slot *slot;
    double total = 0;
    size_t cursor = 0;

    while ((slot = slots_of_window(&learning->slots, window->start_us, window->end_us, &cursor))) {
        double seconds = (double)(slot->end_us - slot->start_us) / 1e6;
        double joules =
            (double)slot->energy_uj / 1e6 - seconds * learning->intensity.states.idle_watts;
        bool known;

        if (!slot->clients && intensity_has_stranger(&learning->intensity, slot))
            return false;
        known = slot->clients ? clients_divide(&learning->clients, slot->clients, &part)
                              : intensity_divide(&learning->intensity, slot, &part);

        if (!known || joules <= 0)
            continue;
        total += joules;
        for (size_t t = 0; t < TENANTS_MAX; t++) {
            sum.of[t] += joules * part.of[t];
            sum.error[t] += joules * part.of[t] * part.error[t];
        }
    }
    if (total <= 0)
        return false;
    for (size_t t = 0; t < TENANTS_MAX; t++) {
        ret_shares->error[t] = sum.of[t] > 0 ? sum.error[t] / sum.of[t] : 0;
        ret_shares->of[t] = sum.of[t] / total;
    }
    return true;
}

static uint32_t confidence_of(double error)
{
    double doubt = error / DOUBTFUL_ERROR;

    return (uint32_t)(CONFIDENCE_ONE / (1 + doubt * doubt));
}

void gpu_weigh_claimants(struct gpu *gpu, const struct window *window, size_t count, bool sampled)
{
    struct intensity_shares shares = {0};
    uint64_t weights = 0, others = 0;
    double present = 0;

    for (size_t i = 0; i < count; i++)
        gpu->claimants[i].active_weight = gpu->claimants[i].weight;
    if (!gpu->learning || !divide_window(gpu, window, &shares))
        return;
    for (size_t i = 0; i < count; i++) {
        const struct claimant *claimant = &gpu->claimants[i];
        uint32_t place;

        if (!has_place(gpu, claimant->process))
            continue; /* inferred: nobody saw it, it keeps the samples that nobody owns */
        weights += claimant->weight;
        place = gpu_sighting(gpu, claimant->process)->tenant - 1;
        if (place == TENANT_OTHERS)
            others += claimant->weight;
        else
            present += shares.of[place];
    }
    if (others > 0)
        present += shares.of[TENANT_OTHERS];
    if (present <= 0 || (sampled && weights == 0)) /* nobody, or others alone won samples */
        return;
    for (size_t i = 0; i < count; i++) {
        struct claimant *claimant = &gpu->claimants[i];
        uint32_t place;
        double share;

        if (!has_place(gpu, claimant->process))
            continue;
        place = gpu_sighting(gpu, claimant->process)->tenant - 1;
        share = shares.of[place];
        if (place == TENANT_OTHERS)
            share *= others > 0 ? (double)claimant->weight / (double)others : 0;
        else
            claimant->confidence = confidence_of(shares.error[place]);
        claimant->active_weight =
            (uint64_t)(share / present * (weights > 0 ? (double)weights : WEIGHT_SCALE));
    }
}
