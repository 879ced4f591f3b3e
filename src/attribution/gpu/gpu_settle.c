/* Who pays for a window of a GPU: gathers the claimants and settles by time share. */
#include "attribution/gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/memory.h"
#include "core/macros.h"

/* A sample's pid is believed if a list named it within this time. */
static const uint64_t BELIEF_US = 2 * USEC_PER_SEC;

/* In a busy window without samples, the last shares hold for this long. */
static const uint64_t HOLD_US = 5 * USEC_PER_SEC;

/* Weights are percents; this makes them divisible among the clients of an MPS server. */
static const uint64_t WEIGHT_SCALE = 1 << 20;

/* What the samples and lists of a window say. */
struct evidence {
    size_t claimant_count; /* in gpu->claimants */
    uint64_t known_weight;
    uint64_t unknown_weight;
    bool has_mps;
    bool has_inferred;
};

static int reserve_scratch(struct gpu *gpu, size_t claimants)
{
    size_t capacity = MAX(claimants, MAX(gpu->scratch_capacity * 2, (size_t)16));
    void *grown;

    if (claimants <= gpu->scratch_capacity)
        return 0;
    if (!(grown = realloc(gpu->claimants, capacity * sizeof(*gpu->claimants))))
        return -ENOMEM;
    gpu->claimants = grown;
    if (!(grown = realloc(gpu->shares, (capacity + 1) * sizeof(*gpu->shares))))
        return -ENOMEM;
    gpu->shares = grown;
    if (!(grown = realloc(gpu->bookings,
                          (TIMESHARE_BOOKINGS_PER_CLAIMANT * capacity + TIMESHARE_BOOKINGS_MORE) *
                              sizeof(*gpu->bookings))))
        return -ENOMEM;
    gpu->bookings = grown;
    gpu->scratch_capacity = capacity;
    return 0;
}

static struct claimant *add_claimant(struct gpu *gpu, struct evidence *evidence, uint32_t process)
{
    struct claimant *claimant = &gpu->claimants[evidence->claimant_count++];

    *claimant = (struct claimant){
        .process = process,
        .workload = ledger_process(gpu->ledger, process)->workload,
    };
    return claimant;
}

/* The first claimants: those whom a list named, each once. */
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

static bool is_mps_server(const struct gpu *gpu, uint32_t process)
{
    return gpu_sighting(gpu, process)->is_mps_server;
}

/*
 * A busy window with nobody in it: those who were listed when it began and left at once are the
 * only ones who can have been busy. They hold no context for it.
 */
static void gather_leavers(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    for (size_t i = 0; i < window->presence_count; i++)
        if (window->presences[i].inherited && !is_mps_server(gpu, window->presences[i].process))
            add_claimant(gpu, evidence, window->presences[i].process);
}

/* Is a process of this owner among the first `count` claimants? Marks those, if so, as reserved. */
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
 * Work that nobody was seen to do was done by those who can use the board and were not seen: by
 * the only one, or by all of them in proportion to what they asked for.
 */
static void infer_claimants(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    uint64_t weight = evidence->unknown_weight ? evidence->unknown_weight : WEIGHT_SCALE;
    bool is_asked = memory_is_asked(gpu->attached, gpu->attached_count);
    size_t first = evidence->claimant_count;
    uint64_t total = 0;

    for (size_t i = 0; i < gpu->attached_count; i++) {
        struct claimant *claimant;

        if (is_seen(gpu, first, &gpu->attached[i].owner) ||
            !(claimant = add_unseen(gpu, window, evidence, &gpu->attached[i])))
            continue;
        claimant->inferred = claimant->has_context = true;
        claimant->weight = memory_weight(&gpu->attached[i], is_asked);
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

/* For --idle-policy=reserved: who was given the board pays its floor, at work or not. */
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

static bool is_believed(const struct gpu *gpu, const struct util_sample *label)
{
    const struct sighting *seen;

    if (label->in_proc)
        return true;
    if (label->process == LEDGER_NONE)
        return false;
    seen = gpu_sighting(gpu, label->process);
    if (seen->last_listed_us == 0) /* never listed, but somebody knew who it is */
        return ledger_process(gpu->ledger, label->process)->identified;
    return label->at_us + BELIEF_US >= seen->first_listed_us &&
           seen->last_listed_us + BELIEF_US >= label->at_us;
}

/* Finds the process of a sample that came before it was known. */
static void bind_label(struct gpu *gpu, struct util_sample *label)
{
    if (label->process != LEDGER_NONE ||
        ledger_find_process(gpu->ledger, gpu->meter, label->pid, &label->process))
        return;
    if (label->in_proc)
        (void)gpu_open_process(gpu, label->pid, &label->process);
    else /* LEDGER_NONE, or those cut by --max-processes: it is one of them if they are listed */
        label->process = ledger_meter(gpu->ledger, gpu->meter)->overflow;
}

/* Gives each sample of the window to the process that won it, once. */
static void gather_labels(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    for (size_t i = 0; i < gpu->labels.count; i++) {
        struct util_sample *label = util_samples_at(&gpu->labels, i);
        uint64_t weight = label->weight * WEIGHT_SCALE;

        if (label->counted || label->at_us > window->end_us)
            continue;
        label->counted = true;
        if (label->at_us <= window->start_us || weight == 0)
            continue;
        bind_label(gpu, label);
        if (label->process != LEDGER_NONE && is_believed(gpu, label)) {
            struct claimant *claimant = find_claimant(gpu, evidence, label->process);

            if (!claimant)
                claimant = add_claimant(gpu, evidence, label->process);
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
 * Under MPS every sample carries the server's pid (measured, H200). Its samples belong to its
 * clients, equally as long as nothing more is known of them; while there are none, to nobody. It
 * pays nothing itself.
 */
static void share_out_mps(struct gpu *gpu, const struct window *window, struct evidence *evidence)
{
    uint64_t weight = 0, clients = 0;

    for (size_t i = evidence->claimant_count; i-- > 0;) {
        if (!is_mps_server(gpu, gpu->claimants[i].process))
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
    if (gpu->held_capacity < evidence->claimant_count) {
        struct claimant *held = realloc(gpu->held, gpu->scratch_capacity * sizeof(*held));

        if (!held)
            return;
        gpu->held = held;
        gpu->held_capacity = gpu->scratch_capacity;
    }
    if (evidence->claimant_count > 0)
        memcpy(gpu->held, gpu->claimants, evidence->claimant_count * sizeof(*gpu->held));
    gpu->held_count = evidence->claimant_count;
    gpu->held_until_us = window->end_us + HOLD_US;
}

/* Takes the last shares, of those who are still there. True if anybody was. */
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

/* Did anybody win a sample in the window? */
static bool has_samples(struct gpu *gpu, const struct window *window)
{
    for (size_t i = 0; i < gpu->labels.count; i++) {
        const struct util_sample *label = util_samples_at(&gpu->labels, i);

        if (!label->counted && label->weight > 0 && label->at_us > window->start_us &&
            label->at_us <= window->end_us)
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
    busy |= context && !window->saw_utilisation; /* nobody can say: not idle */
    idle = idle_split(&gpu->idle, context, window->energy_uj, duration_us);
    /* A window in which a context came or went tells of neither level; a busy one at most that the
     * level is too high. */
    if (!(window->saw_context && window->saw_no_context) &&
        (!busy || idle.floor_uj + idle.step_uj == window->energy_uj))
        idle_learn(&gpu->idle, context, window->energy_uj, duration_us);
}

int gpu_settle_window(struct gpu *gpu, const struct window *window)
{
    uint64_t duration_us = window->end_us - window->start_us;
    struct evidence evidence = {0};
    struct timeshare_window settled;
    bool sampled, busy, context;
    size_t count;
    /* Those who are attached can be claimants twice: beyond --max-processes nobody finds them. */
    int r = reserve_scratch(gpu, window->presence_count + gpu->labels.count +
                                     2 * gpu->attached_count + 1);

    if (r < 0) {
        ledger_book(gpu->ledger, gpu->meter, window->energy_uj, window->start_us, window->end_us,
                    &(struct booking){.process = LEDGER_NONE,
                                      .unowned = UNOWNED_UNATTRIBUTED,
                                      .energy_uj = window->energy_uj},
                    1);
        return r;
    }
    gather_contexts(gpu, window, &evidence);
    gather_labels(gpu, window, &evidence);
    share_out_mps(gpu, window, &evidence);

    sampled = evidence.known_weight + evidence.unknown_weight > 0;
    busy = sampled || window->busiest_percent > 0 ||
           (!window->saw_utilisation && evidence.claimant_count > 0); /* nobody can say: not idle */
    if (busy && !sampled && evidence.claimant_count == 0)
        gather_leavers(gpu, window, &evidence);
    if (evidence.unknown_weight > 0 || (busy && evidence.claimant_count == 0))
        infer_claimants(gpu, window, &evidence);
    context = evidence.claimant_count > 0;
    settled = (struct timeshare_window){
        .energy_uj = window->energy_uj,
        .claimants = gpu->claimants,
        .claimant_count = evidence.claimant_count,
        .unknown_weight = evidence.unknown_weight,
        .nobody_active = !busy,
        .alone = evidence.claimant_count == 1 && evidence.unknown_weight == 0 &&
                 !evidence.has_mps && !evidence.has_inferred && !gpu->counter_is_integral,
        .policy = gpu->options.idle_policy,
    };
    settled.idle = idle_split(&gpu->idle, context, window->energy_uj, duration_us);
    if (!busy && !context)
        settled.idle = (struct idle_part){.floor_uj = window->energy_uj};

    if (sampled)
        hold_shares(gpu, window, &evidence);
    else if (!evidence.has_inferred && !(busy && apply_held_shares(gpu, window, &evidence)) &&
             evidence.claimant_count == 1)
        gpu->claimants[0].weight = 1; /* nobody else can have used it */
    gpu_weigh_claimants(gpu, window, evidence.claimant_count, sampled);
    if (gpu->options.idle_policy == IDLE_POLICY_RESERVED) {
        gather_reserved(gpu, window, &evidence);
        settled.claimant_count = evidence.claimant_count;
    }

    qsort(gpu->claimants, evidence.claimant_count, sizeof(*gpu->claimants), by_workload);
    count = timeshare_settle(&settled, gpu->shares, gpu->bookings);
    return ledger_book(gpu->ledger, gpu->meter, window->energy_uj, window->start_us, window->end_us,
                       gpu->bookings, count);
}
