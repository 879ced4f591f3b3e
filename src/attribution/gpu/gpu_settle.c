/* Settles the windows of a GPU: gathers the claimants and divides the energy among them. */
#include "attribution/gpu/gpu.h"

#include <stdlib.h>

#include "attribution/grow.h"
#include "core/macros.h"

/* A sample's pid is valid if it was on a list within this time. */
static const uint64_t VALIDITY_US = 2 * USEC_PER_SEC;

/* In a busy window without samples, the last shares hold for this long. */
static const uint64_t HOLD_US = 5 * USEC_PER_SEC;

/* Weights are percents; scaled, they can be divided among the clients of an MPS server. */
static const uint64_t WEIGHT_SCALE = 1 << 20;

static struct claimant *add_claimant(struct gpu *gpu, uint32_t process)
{
    struct claimant *claimant = &gpu->claimants.items[gpu->claimants.count++];

    *claimant = (struct claimant){
        .process = process,
        .workload = ledger_process(gpu->ledger, process)->workload,
    };
    return claimant;
}

/* The claimant of a process, or a new one. */
static struct claimant *find_claimant(struct gpu *gpu, uint32_t process)
{
    for (size_t i = 0; i < gpu->claimants.count; i++)
        if (gpu->claimants.items[i].process == process)
            return &gpu->claimants.items[i];
    return add_claimant(gpu, process);
}

/* Was the process in this part of the board? NULL: the board as a whole. */
static bool is_of_part(const struct gpu *gpu, const struct gpu_part *part,
                       const struct presence *presence)
{
    return !part || gpu_mig_find(gpu->mig, presence->gpu_instance) == part->instance;
}

/* Adds the processes on a list. Returns whether there are MPS clients. */
static bool gather_contexts(struct gpu *gpu, const struct window *window,
                            const struct gpu_part *part)
{
    bool has_mps = false;

    for (size_t i = 0; i < window->presence_count; i++) {
        uint8_t lists = window_lists_of(window, &window->presences[i]);
        struct claimant *claimant;

        if (lists == 0 || !is_of_part(gpu, part, &window->presences[i]))
            continue;
        claimant = add_claimant(gpu, window->presences[i].process);
        claimant->has_context = true;
        claimant->is_mps_client = lists & (1 << SAMPLE_LIST_MPS);
        has_mps |= claimant->is_mps_client;
    }
    return has_mps;
}

/* A busy window without processes: only those listed when it began, and gone at once, can have been
 * busy. They hold no context for it. */
static void gather_leavers(struct gpu *gpu, const struct window *window)
{
    for (size_t i = 0; i < window->presence_count; i++)
        if (window->presences[i].inherited &&
            !gpu_sighting(gpu, window->presences[i].process)->is_mps_server)
            (void)add_claimant(gpu, window->presences[i].process);
}

/* Is a process of this workload among the first `count` claimants? Those that pay are reserved. */
static bool is_seen(struct gpu *gpu, size_t count, const struct attached *attached)
{
    bool seen = false;
    uint32_t workload;

    if (!ledger_find_workload(gpu->ledger, &attached->owner, &workload))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct claimant *claimant = &gpu->claimants.items[i];

        seen |= claimant->workload == workload;
        claimant->reserved |= claimant->workload == workload && attached->pays_idle;
    }
    return seen;
}

/* Can it use this part of the board? */
static bool is_attached_to(const struct attached *attached, const struct gpu_part *part)
{
    return !part || !attached->is_of_instance ||
           (part->instance && part->instance->id == attached->gpu_instance);
}

/* Adds the workloads without a visible process: those that can be behind what is `inferred`, or
 * else those that pay for an idle board, or for a part of it. */
static void gather_unseen(struct gpu *gpu, const struct window *window, const struct gpu_part *part,
                          bool inferred)
{
    size_t seen_count = gpu->claimants.count;

    for (size_t i = 0; i < gpu->attached_count; i++) {
        struct claimant *claimant;
        uint32_t process;

        if (!is_attached_to(&gpu->attached[i], part) ||
            is_seen(gpu, seen_count, &gpu->attached[i]) ||
            !(inferred ? gpu->attached[i].is_candidate : gpu->attached[i].pays_idle) ||
            gpu_open_unseen(gpu, &gpu->attached[i].owner, &process) < 0)
            continue;
        ledger_see_process(gpu->ledger, process, window->end_us);
        claimant = add_claimant(gpu, process);
        claimant->inferred = claimant->has_context = inferred;
        claimant->reserved = !inferred;
        if (inferred)
            claimant->weight = gpu_attached_weight(gpu, &gpu->attached[i]);
    }
}

/* Work of no visible process was done by the candidates without one: by the only one, or by all of
 * them in proportion to their weights. False if there are none. */
static bool infer_claimants(struct gpu *gpu, const struct window *window,
                            const struct gpu_part *part, uint64_t *unknown_weight)
{
    uint64_t weight = *unknown_weight ? *unknown_weight : WEIGHT_SCALE, total = 0;
    struct claimants *claimants = &gpu->claimants;
    size_t first = claimants->count;

    gather_unseen(gpu, window, part, true);
    for (size_t i = first; i < claimants->count; i++)
        total += claimants->items[i].weight;
    if (total == 0)
        return false;
    for (size_t i = first; i < claimants->count; i++)
        claimants->items[i].weight =
            (uint64_t)((unsigned __int128)weight * claimants->items[i].weight / total) + 1;
    *unknown_weight = 0;
    return true;
}

/* Finds the process of a sample that preceded it. False if its pid is not valid. */
static bool bind_sample(struct gpu *gpu, struct gpu_sample *sample)
{
    const struct sighting *seen;

    if (sample->process == LEDGER_NONE &&
        !ledger_find_process(gpu->ledger, gpu->meter, sample->pid, &sample->process)) {
        if (sample->in_proc)
            (void)gpu_open_process(gpu, sample->pid, &sample->process);
        else /* those cut by --max-processes, if there are any: it is one of them if listed */
            sample->process = ledger_meter(gpu->ledger, gpu->meter)->overflow;
    }
    if (sample->in_proc || sample->process == LEDGER_NONE)
        return sample->process != LEDGER_NONE;
    seen = gpu_sighting(gpu, sample->process);
    if (seen->last_listed_us == 0) /* never listed, but identified */
        return ledger_process(gpu->ledger, sample->process)->identified;
    return sample->at_us + VALIDITY_US >= seen->first_listed_us &&
           seen->last_listed_us + VALIDITY_US >= sample->at_us;
}

/* Adds each sample to the weight of its process, or to the unknown weight. False without any. */
static bool gather_samples(struct gpu *gpu, const struct window *window, uint64_t *unknown_weight)
{
    bool sampled = false;

    for (size_t i = 0; i < gpu->samples.count; i++) {
        struct gpu_sample *sample = gpu_samples_at(&gpu->samples, i);
        uint64_t weight = sample->weight * WEIGHT_SCALE;

        if (sample->counted || sample->at_us > window->end_us)
            continue;
        sample->counted = true;
        if (sample->at_us <= window->start_us || weight == 0)
            continue;
        sampled = true;
        if (!bind_sample(gpu, sample)) {
            *unknown_weight += weight;
            continue;
        }
        find_claimant(gpu, sample->process)->weight += weight;
    }
    return sampled;
}

/* Adds the time that the driver has counted to the weights. False without any. */
static bool gather_busy(struct gpu *gpu, const struct window *window, const struct gpu_part *part)
{
    bool counted = false;

    for (size_t i = 0; i < window->presence_count; i++) {
        const struct presence *presence = &window->presences[i];

        if (presence->busy_us == 0 || !is_of_part(gpu, part, presence))
            continue;
        counted = true;
        find_claimant(gpu, presence->process)->weight += presence->busy_us;
    }
    return counted;
}

/* The claimant that is the MPS server of a client: of several, the one that was there first.
 * Returns their number if there is none. */
static size_t find_server(const struct gpu *gpu, uint32_t client)
{
    const struct claimants *claimants = &gpu->claimants;
    size_t found = claimants->count;

    for (size_t i = 0; i < claimants->count; i++) {
        uint32_t process = claimants->items[i].process;

        if (gpu_serves_mps(gpu, process, client) &&
            (found == claimants->count ||
             gpu_sighting(gpu, process)->first_listed_us <
                 gpu_sighting(gpu, claimants->items[found].process)->first_listed_us))
            found = i;
    }
    return found;
}

/* Under MPS every sample has the server's pid (measured, H200). Its samples belong to its clients,
 * equally as long as nothing more is known of them, and the server is not charged. One without
 * clients is charged as anybody is for its samples; in a part, which has none, it is charged unless
 * it cannot have worked. */
static void split_mps_samples(struct gpu *gpu, const struct window *window,
                              const struct gpu_part *part)
{
    struct claimants *claimants = &gpu->claimants;

    for (size_t i = 0; i < claimants->count; i++)
        if (claimants->items[i].is_mps_client) {
            size_t server = find_server(gpu, claimants->items[i].process);

            if (server < claimants->count)
                claimants->items[server].served++;
        }
    for (size_t i = 0; i < claimants->count; i++)
        if (claimants->items[i].is_mps_client) {
            size_t server = find_server(gpu, claimants->items[i].process);

            if (server < claimants->count)
                claimants->items[i].weight +=
                    claimants->items[server].weight / claimants->items[server].served;
        }
    for (size_t i = claimants->count; i-- > 0;) {
        const struct claimant *claimant = &claimants->items[i];
        bool is_idle =
            part ? gpu_is_idle_server(gpu, window, claimant->process) : claimant->weight == 0;

        if (gpu_sighting(gpu, claimant->process)->is_mps_server &&
            (claimant->served > 0 || is_idle))
            claimants->items[i] = claimants->items[--claimants->count];
    }
}

/* Applies the last shares to the claimants that had one. False if there are none. */
static bool apply_held_shares(struct gpu *gpu, const struct window *window)
{
    bool any = false;

    for (size_t i = 0; i < gpu->claimants.count && window->end_us <= gpu->held_until_us; i++) {
        struct claimant *claimant = &gpu->claimants.items[i];

        for (size_t h = 0; h < gpu->held.count; h++)
            if (gpu->held.items[h].process == claimant->process &&
                gpu->held.items[h].workload == claimant->workload) {
                claimant->weight = gpu->held.items[h].weight;
                any |= claimant->weight > 0;
            }
    }
    return any;
}

/* The driver has no utilisation of processes (some boards and virtual machines): nothing tells
 * those that hold a context apart. */
static void weigh_equally(struct claimants *claimants)
{
    for (size_t i = 0; i < claimants->count; i++)
        claimants->items[i].weight = claimants->items[i].has_context ? WEIGHT_SCALE : 0;
}

static int by_workload(const void *a, const void *b)
{
    const struct claimant *x = a, *y = b;

    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

/* Writes the bookings of the claimants after those that are there. */
static void settle_claimants(struct gpu *gpu, struct timeshare_window *settled)
{
    struct claimants *claimants = &gpu->claimants;

    qsort(claimants->items, claimants->count, sizeof(*claimants->items), by_workload);
    settled->policy = gpu->options.idle_policy;
    settled->claimants = claimants->items;
    settled->claimant_count = claimants->count;
    timeshare_settle(settled, &gpu->bookings);
}

static void settle_board(struct gpu *gpu, const struct window *window)
{
    struct claimants *claimants = &gpu->claimants, settled_claimants;
    struct timeshare_window settled = {.energy_uj = window->energy_uj};
    bool sampled, busy, has_mps, has_inferred = false;

    has_mps = gather_contexts(gpu, window, NULL);
    sampled = gather_samples(gpu, window, &settled.unknown_weight);
    sampled |= gather_busy(gpu, window, NULL);
    split_mps_samples(gpu, window, NULL);
    busy = sampled || window->busiest_percent > 0 ||
           (!window->saw_utilisation && claimants->count > 0); /* unknown: not idle */
    if (busy && !sampled && claimants->count == 0)
        gather_leavers(gpu, window);
    if (settled.unknown_weight > 0 || (busy && claimants->count == 0))
        has_inferred = infer_claimants(gpu, window, NULL, &settled.unknown_weight);

    settled.is_inactive = !busy;
    settled.is_alone = claimants->count == 1 && settled.unknown_weight == 0 && !has_mps &&
                       !has_inferred && !gpu->counter_is_integral;
    settled.idle = idle_split(&gpu->idle, claimants->count > 0, window->energy_uj,
                              window->end_us - window->start_us);
    /* A driver that counts its clients does not tell of those that could not be seen yet. */
    if (!busy && claimants->count == 0 &&
        !(gpu->samples.are_counted &&
          idle_is_exceeded(&gpu->idle, window->energy_uj, window->end_us - window->start_us)))
        settled.idle = (struct idle_part){.floor_uj = window->energy_uj};

    if (!sampled && !has_inferred && !(busy && apply_held_shares(gpu, window))) {
        if (claimants->count == 1)
            claimants->items[0].weight = 1; /* no other process can have used it */
        else if (busy && !gpu->samples.are_made)
            weigh_equally(claimants);
    }
    gpu_weigh_claimants(gpu, window, sampled, settled.unknown_weight);
    if (gpu->options.idle_policy == IDLE_POLICY_RESERVED)
        gather_unseen(gpu, window, NULL, false);
    settle_claimants(gpu, &settled);
    if (sampled) {
        settled_claimants = gpu->claimants;
        gpu->claimants = gpu->held;
        gpu->held = settled_claimants;
        gpu->held_until_us = window->end_us + HOLD_US;
    }
}

/* Weighs the processes of a part: the compute instances by their slices, the processes of one
 * equally. Nothing tells more before their programs are known. */
static void weigh_by_slices(struct gpu *gpu, const struct gpu_part *part)
{
    struct claimants *claimants = &gpu->claimants;

    for (size_t i = 0; i < claimants->count; i++) {
        const struct sighting *seen = gpu_sighting(gpu, claimants->items[i].process);
        const struct gpu_compute *compute =
            part->instance ? gpu_mig_find_compute(part->instance, seen->compute_instance) : NULL;
        uint64_t beside = 0;

        for (size_t k = 0; k < claimants->count; k++)
            beside += gpu_sighting(gpu, claimants->items[k].process)->compute_instance ==
                      seen->compute_instance;
        claimants->items[i].weight =
            WEIGHT_SCALE * (compute ? compute->slices : 1) / MAX(beside, 1U); /* itself, at least */
    }
}

/* Weighs vGPUs by their samples, as on a board that is not in MIG mode. The driver does not say in
 * which instance one is, so they are in the part of no known instance. Weights stay as they are
 * without a sample, and beside processes: those have no samples in MIG mode. */
static void weigh_by_vgpu_samples(struct gpu *gpu, const struct window *window)
{
    struct claimants *claimants = &gpu->claimants;
    bool sampled = false;

    for (size_t c = 0; c < claimants->count; c++)
        if (!ledger_process(gpu->ledger, claimants->items[c].process)->unseen)
            return;
    for (size_t i = 0; i < gpu->samples.count; i++) {
        const struct gpu_sample *sample = gpu_samples_at(&gpu->samples, i);

        if (sample->counted || sample->weight == 0 || sample->at_us <= window->start_us ||
            sample->at_us > window->end_us)
            continue;
        for (size_t c = 0; c < claimants->count; c++) {
            if (claimants->items[c].process != sample->process)
                continue;
            for (size_t k = 0; k < claimants->count && !sampled; k++)
                claimants->items[k].weight = 0;
            sampled = true;
            claimants->items[c].weight += sample->weight * WEIGHT_SCALE;
        }
    }
}

/* A part of a board in MIG mode, as if it were a board of its own. */
static void settle_part(struct gpu *gpu, const struct window *window, const struct gpu_part *part)
{
    struct timeshare_window settled = {
        .energy_uj = part->idle.floor_uj + part->idle.step_uj + part->active_uj,
        .idle = part->idle,
        .is_inactive = !part->is_active,
    };
    struct claimants *claimants = &gpu->claimants;

    claimants->count = 0;
    (void)gather_contexts(gpu, window, part);
    split_mps_samples(gpu, window, part);
    if (gpu->samples.are_counted)
        (void)gather_busy(gpu, window, part);
    else
        weigh_by_slices(gpu, part);
    if (!part->instance)
        weigh_by_vgpu_samples(gpu, window);
    if (part->is_active && claimants->count == 0)
        (void)infer_claimants(gpu, window, part, &settled.unknown_weight);
    gpu_weigh_part(gpu, window, part);
    if (gpu->options.idle_policy == IDLE_POLICY_RESERVED)
        gather_unseen(gpu, window, part, false);
    settle_claimants(gpu, &settled);
}

static void settle_parts(struct gpu *gpu, const struct window *window)
{
    struct gpu_parts parts;

    gpu_mig_divide(gpu, window, &parts);
    for (size_t i = 0; i < parts.count; i++)
        settle_part(gpu, window, &parts.items[i]);
    for (size_t i = 0; i < gpu->samples.count; i++)
        gpu_samples_at(&gpu->samples, i)->counted |=
            gpu_samples_at(&gpu->samples, i)->at_us <= window->end_us;
    bookings_add_unowned(&gpu->bookings, UNOWNED_IDLE, parts.free_uj, 0);
}

void gpu_settle_window(struct gpu *gpu, const struct window *window)
{
    /* Attached workloads can be claimants twice: beyond --max-processes they are not found. */
    size_t claimants = window->presence_count + gpu->samples.count + 2 * gpu->attached_count + 1;
    size_t parts = gpu->mig ? GPU_INSTANCES_MAX + 1 : 1;

    if (grow_zeroed(&gpu->claimants.items, &gpu->claimants.slots, claimants,
                    sizeof(*gpu->claimants.items)) < 0 ||
        bookings_begin(&gpu->bookings,
                       parts * (TIMESHARE_BOOKINGS_PER_CLAIMANT * gpu->claimants.slots +
                                TIMESHARE_BOOKINGS_MORE) +
                           1) < 0) {
        ledger_book_unattributed(gpu->ledger, gpu->meter, window->energy_uj, window->start_us,
                                 window->end_us);
        gpu->out_of_memory = true;
        return;
    }
    gpu->claimants.count = 0;
    if (gpu->mig)
        settle_parts(gpu, window);
    else
        settle_board(gpu, window);
    if (ledger_book(gpu->ledger, gpu->meter, window->energy_uj, window->start_us, window->end_us,
                    gpu->bookings.items, gpu->bookings.count) < 0)
        gpu->out_of_memory = true;
}
