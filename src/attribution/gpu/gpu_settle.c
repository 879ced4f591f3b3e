/* Settles the windows of a GPU: gathers the claimants and divides the energy among them. */
#include "attribution/gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

/* A sample's pid is valid if it was on a list within this time. */
static const uint64_t VALIDITY_US = 2 * USEC_PER_SEC;

/* In a busy window without samples, the last shares hold for this long. */
static const uint64_t HOLD_US = 5 * USEC_PER_SEC;

/* Weights are percents; scaled, they can be divided among the clients of an MPS server. */
static const uint64_t WEIGHT_SCALE = 1 << 20;

/* The samples and lists of a window. */
struct evidence {
    size_t claimant_count; /* in gpu->claimants */
    uint64_t known_weight;
    uint64_t unknown_weight;
    bool has_mps;
    bool has_inferred;
};

static struct claimant *add_claimant(struct gpu *gpu, struct evidence *evidence, uint32_t process)
{
    struct claimant *claimant = &gpu->claimants[evidence->claimant_count++];

    *claimant = (struct claimant){
        .process = process,
        .workload = ledger_process(gpu->ledger, process)->workload,
    };
    return claimant;
}

/* The first claimants: the processes on a list. */
static void gather_contexts(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    for (size_t i = 0; i < window->presence_count; i++) {
        uint8_t lists = window_lists_of(window, &window->presences[i]);

        if (lists == 0)
            continue;
        add_claimant(gpu, evidence, window->presences[i].process)->has_context = true;
        evidence->has_mps |= lists & (1 << SAMPLE_LIST_MPS);
    }
}

/* A busy window without processes: only those listed when it began, and gone at once, can have been
 * busy. They hold no context for it. */
static void gather_leavers(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    for (size_t i = 0; i < window->presence_count; i++)
        if (window->presences[i].inherited &&
            !gpu_sighting(gpu, window->presences[i].process)->is_mps_server)
            add_claimant(gpu, evidence, window->presences[i].process);
}

/* Is a process of this owner among the first `count` claimants? Marks them as reserved. */
static bool is_seen(struct gpu *gpu, size_t count, const struct workload_owner *owner)
{
    bool seen = false;
    uint32_t workload;

    if (!ledger_find_workload(gpu->ledger, owner, &workload))
        return false;
    for (size_t i = 0; i < count; i++)
        if (gpu->claimants[i].workload == workload)
            seen = gpu->claimants[i].reserved = true;
    return seen;
}

static struct claimant *add_unseen(struct gpu *gpu, const struct window *window,
                                   struct evidence *evidence, const struct attached *attached)
{
    uint32_t process;

    if (gpu_open_unseen(gpu, &attached->owner, &process) < 0)
        return NULL;
    ledger_see_process(gpu->ledger, process, window->end_us);
    return add_claimant(gpu, evidence, process);
}

/*
 * Work of no visible process was done by the containers that have access to the board and no
 * visible process: by the only one, or by all of them in proportion to their weights.
 */
static void infer_claimants(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    uint64_t weight = evidence->unknown_weight ? evidence->unknown_weight : WEIGHT_SCALE;
    bool is_requested = gpu_is_memory_requested(gpu->attached, gpu->attached_count);
    size_t first = evidence->claimant_count;
    uint64_t total = 0;

    for (size_t i = 0; i < gpu->attached_count; i++) {
        struct claimant *claimant;

        if (is_seen(gpu, first, &gpu->attached[i].owner) ||
            !(claimant = add_unseen(gpu, window, evidence, &gpu->attached[i])))
            continue;
        claimant->inferred = claimant->has_context = true;
        claimant->weight = gpu_attached_weight(&gpu->attached[i], is_requested);
        total += claimant->weight;
    }
    if (total == 0)
        return;
    for (size_t i = first; i < evidence->claimant_count; i++)
        gpu->claimants[i].weight =
            (uint64_t)((unsigned __int128)weight * gpu->claimants[i].weight / total) + 1;
    evidence->known_weight += evidence->unknown_weight;
    evidence->unknown_weight = 0;
    evidence->has_inferred = true;
}

/* For --idle-policy=reserved: the floor is charged to all that were granted the board. */
static void gather_reserved(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    size_t first = evidence->claimant_count;

    for (size_t i = 0; i < gpu->attached_count; i++) {
        struct claimant *claimant;

        if (!is_seen(gpu, first, &gpu->attached[i].owner) &&
            (claimant = add_unseen(gpu, window, evidence, &gpu->attached[i])))
            claimant->reserved = true;
    }
}

static struct claimant *find_claimant(struct gpu *gpu, const struct evidence *evidence,
                                      uint32_t process)
{
    for (size_t i = 0; i < evidence->claimant_count; i++)
        if (gpu->claimants[i].process == process)
            return &gpu->claimants[i];
    return NULL;
}

static bool is_valid(const struct gpu *gpu, const struct util_sample *sample)
{
    const struct sighting *seen;

    if (sample->in_proc)
        return true;
    if (sample->process == LEDGER_NONE)
        return false;
    seen = gpu_sighting(gpu, sample->process);
    if (seen->last_listed_us == 0) /* never listed, but identified */
        return ledger_process(gpu->ledger, sample->process)->identified;
    return sample->at_us + VALIDITY_US >= seen->first_listed_us &&
           seen->last_listed_us + VALIDITY_US >= sample->at_us;
}

/* Finds the process of a sample that came before the process was known. */
static void bind_sample(struct gpu *gpu, struct util_sample *sample)
{
    if (sample->process != LEDGER_NONE ||
        ledger_find_process(gpu->ledger, gpu->meter, sample->pid, &sample->process))
        return;
    if (sample->in_proc)
        (void)gpu_open_process(gpu, sample->pid, &sample->process);
    else /* LEDGER_NONE, or those cut by --max-processes: it is one of them if they are listed */
        sample->process = ledger_meter(gpu->ledger, gpu->meter)->overflow;
}

/* Adds each sample of the window to the weight of the process that won it, once. */
static void gather_samples(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    for (size_t i = 0; i < gpu->samples.count; i++) {
        struct util_sample *sample = util_samples_at(&gpu->samples, i);
        uint64_t weight = sample->weight * WEIGHT_SCALE;

        if (sample->counted || sample->at_us > window->end_us)
            continue;
        sample->counted = true;
        if (sample->at_us <= window->start_us || weight == 0)
            continue;
        bind_sample(gpu, sample);
        if (sample->process != LEDGER_NONE && is_valid(gpu, sample)) {
            struct claimant *claimant = find_claimant(gpu, evidence, sample->process);

            if (!claimant)
                claimant = add_claimant(gpu, evidence, sample->process);
            claimant->weight += weight;
            evidence->known_weight += weight;
        } else {
            evidence->unknown_weight += weight;
        }
    }
}

static bool is_mps_client(const struct window *window, uint32_t process)
{
    for (size_t i = 0; i < window->presence_count; i++)
        if (window->presences[i].process == process)
            return window_lists_of(window, &window->presences[i]) & (1 << SAMPLE_LIST_MPS);
    return false;
}

/*
 * Under MPS every sample has the server's pid (measured, H200). Its samples belong to its clients,
 * equally as long as nothing more is known of them; without clients they are unknown. The server is
 * not charged.
 */
static void split_mps_samples(struct gpu *gpu, const struct window *window,
                              struct evidence *evidence)
{
    uint64_t weight = 0, clients = 0;

    for (size_t i = evidence->claimant_count; i-- > 0;) {
        if (!gpu_sighting(gpu, gpu->claimants[i].process)->is_mps_server)
            continue;
        weight += gpu->claimants[i].weight;
        gpu->claimants[i] = gpu->claimants[--evidence->claimant_count];
    }
    for (size_t i = 0; i < evidence->claimant_count; i++)
        clients += is_mps_client(window, gpu->claimants[i].process);
    for (size_t i = 0; i < evidence->claimant_count && clients > 0; i++)
        if (is_mps_client(window, gpu->claimants[i].process))
            gpu->claimants[i].weight += weight / clients;
    if (clients == 0) {
        evidence->unknown_weight += weight;
        evidence->known_weight -= weight;
    }
}

/* Keeps the window's shares for busy windows without samples. */
static void hold_shares(struct gpu *gpu, const struct window *window,
                        const struct evidence *evidence)
{
    if (grow_zeroed(&gpu->held, &gpu->held_slots, evidence->claimant_count, sizeof(*gpu->held)) < 0)
        return;
    if (evidence->claimant_count > 0)
        memcpy(gpu->held, gpu->claimants, evidence->claimant_count * sizeof(*gpu->held));
    gpu->held_count = evidence->claimant_count;
    gpu->held_until_us = window->end_us + HOLD_US;
}

/* Applies the last shares to the claimants that had one. False if there are none. */
static bool apply_held_shares(struct gpu *gpu, const struct window *window,
                              const struct evidence *evidence)
{
    bool any = false;

    if (window->end_us > gpu->held_until_us)
        return false;
    for (size_t i = 0; i < evidence->claimant_count; i++)
        for (size_t h = 0; h < gpu->held_count; h++)
            if (gpu->held[h].process == gpu->claimants[i].process &&
                gpu->held[h].workload == gpu->claimants[i].workload) {
                gpu->claimants[i].weight = gpu->held[h].weight;
                any |= gpu->held[h].weight > 0;
            }
    return any;
}

static int by_workload(const void *a, const void *b)
{
    const struct claimant *x = a, *y = b;

    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

/* Does the window have samples? */
static bool has_samples(struct gpu *gpu, const struct window *window)
{
    for (size_t i = 0; i < gpu->samples.count; i++) {
        const struct util_sample *sample = util_samples_at(&gpu->samples, i);

        if (!sample->counted && sample->weight > 0 && sample->at_us > window->start_us &&
            sample->at_us <= window->end_us)
            return true;
    }
    return false;
}

void gpu_observe_window(struct gpu *gpu, const struct window *window)
{
    uint64_t duration_us = window->end_us - window->start_us;
    bool busy = window->busiest_percent > 0 || has_samples(gpu, window), context = busy;
    struct idle_part idle;

    for (size_t i = 0; i < window->presence_count; i++)
        context |= window_lists_of(window, &window->presences[i]) != 0;
    busy |= context && !window->saw_utilisation; /* unknown: not idle */
    idle = idle_split(&gpu->idle, context, window->energy_uj, duration_us);
    /* A window in which a context came or went shows neither level; a busy one at most that the
     * level is too high. */
    if (!(window->saw_context && window->saw_no_context) &&
        (!busy || idle.floor_uj + idle.step_uj == window->energy_uj))
        idle_learn(&gpu->idle, context, window->energy_uj, duration_us);
}

int gpu_settle_window(struct gpu *gpu, const struct window *window)
{
    const struct booking unattributed = {
        .process = LEDGER_NONE, .unowned = UNOWNED_UNATTRIBUTED, .energy_uj = window->energy_uj};
    uint64_t duration_us = window->end_us - window->start_us;
    struct evidence evidence = {0};
    struct timeshare_window settled;
    bool sampled, busy;
    /* Attached containers can be claimants twice: beyond --max-processes they are not found. */
    int r = grow_zeroed(&gpu->claimants, &gpu->claimant_slots,
                        window->presence_count + gpu->samples.count + 2 * gpu->attached_count + 1,
                        sizeof(*gpu->claimants));

    if (r == 0)
        r = bookings_begin(&gpu->bookings, TIMESHARE_BOOKINGS_PER_CLAIMANT * gpu->claimant_slots +
                                               TIMESHARE_BOOKINGS_MORE);
    if (r < 0) {
        ledger_book(gpu->ledger, gpu->meter, window->energy_uj, window->start_us, window->end_us,
                    &unattributed, 1);
        return r;
    }
    gather_contexts(gpu, window, &evidence);
    gather_samples(gpu, window, &evidence);
    split_mps_samples(gpu, window, &evidence);

    sampled = evidence.known_weight + evidence.unknown_weight > 0;
    busy = sampled || window->busiest_percent > 0 ||
           (!window->saw_utilisation && evidence.claimant_count > 0); /* unknown: not idle */
    if (busy && !sampled && evidence.claimant_count == 0)
        gather_leavers(gpu, window, &evidence);
    if (evidence.unknown_weight > 0 || (busy && evidence.claimant_count == 0))
        infer_claimants(gpu, window, &evidence);
    settled = (struct timeshare_window){
        .energy_uj = window->energy_uj,
        .idle = idle_split(&gpu->idle, evidence.claimant_count > 0, window->energy_uj, duration_us),
        .claimants = gpu->claimants,
        .unknown_weight = evidence.unknown_weight,
        .is_inactive = !busy,
        .is_alone = evidence.claimant_count == 1 && evidence.unknown_weight == 0 &&
                    !evidence.has_mps && !evidence.has_inferred && !gpu->counter_is_integral,
        .policy = gpu->options.idle_policy,
    };
    if (!busy && evidence.claimant_count == 0)
        settled.idle = (struct idle_part){.floor_uj = window->energy_uj};

    if (sampled)
        hold_shares(gpu, window, &evidence);
    else if (!evidence.has_inferred && !(busy && apply_held_shares(gpu, window, &evidence)) &&
             evidence.claimant_count == 1)
        gpu->claimants[0].weight = 1; /* no other process can have used it */
    gpu_weigh_claimants(gpu, window, evidence.claimant_count, sampled);
    if (gpu->options.idle_policy == IDLE_POLICY_RESERVED)
        gather_reserved(gpu, window, &evidence);

    qsort(gpu->claimants, evidence.claimant_count, sizeof(*gpu->claimants), by_workload);
    settled.claimant_count = evidence.claimant_count;
    timeshare_settle(&settled, &gpu->bookings);
    return ledger_book(gpu->ledger, gpu->meter, window->energy_uj, window->start_us, window->end_us,
                       gpu->bookings.items, gpu->bookings.count);
}
