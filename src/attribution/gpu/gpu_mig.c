#include "attribution/gpu/gpu_mig.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "attribution/share.h"
#include "core/macros.h"

/* Less of a slot is the noise of idle contexts. */
static const double BUSY_MIN = 0.001;

/* What units can have drawn at most, relative to what they draw on an H200: programs differed by up
 * to a quarter there, and boards differ, too. */
static const double EXPLAINED_MOST = 1.5;

/* Without GPM nothing tells how much each of several instances with a process did: so much that no
 * confidence is left, and more than all of its energy is uncertain. */
static const double SLICES_ERROR = 1000;

/* Of counted time, relative to that of the others: the watts of two programs differ. */
static const double COUNTED_ERROR = 0.35;

/* Weights are integers, but fine enough. */
static const double WEIGHT_SCALE = (double)(1ULL << 40);

struct gpu_instance *gpu_mig_find(const struct gpu_mig *mig, uint32_t instance)
{
    for (size_t i = 0; i < mig->count; i++)
        if (mig->instances[i].id == instance)
            return (struct gpu_instance *)&mig->instances[i];
    return NULL;
}

const struct gpu_compute *gpu_mig_find_compute(const struct gpu_instance *instance,
                                               uint32_t compute)
{
    for (size_t i = 0; i < instance->compute_count; i++)
        if (instance->computes[i].id == compute)
            return &instance->computes[i];
    return NULL;
}

void gpu_mig_free(struct gpu_mig *mig)
{
    for (size_t i = 0; mig && i < mig->count; i++)
        free(mig->instances[i].learning);
    free(mig);
}

/* From here on: layouts. */

static void copy_text(char to[GPU_INSTANCE_TEXT_BYTES], const char *text)
{
    snprintf(to, GPU_INSTANCE_TEXT_BYTES, "%s", text);
}

/* "3g.40gb" of "1c.3g.40gb": a compute instance that has not all of the slices says so. */
static const char *gpu_profile(const char *profile)
{
    const char *dot = strchr(profile, '.');

    return dot && dot > profile && dot[-1] == 'c' ? dot + 1 : profile;
}

static struct gpu_mig *read_layout(const struct sample_layout *layout)
{
    struct gpu_mig *mig = calloc(1, sizeof(*mig));
    uint32_t slices = 0;

    for (size_t i = 0; mig && i < layout->count; i++) {
        const struct sample_instance *item = &layout->items[i];
        struct gpu_instance *instance = gpu_mig_find(mig, item->gpu_instance);
        struct gpu_compute *compute;

        if (!instance) {
            if (mig->count == GPU_INSTANCES_MAX)
                continue; /* its processes are of no known instance */
            instance = &mig->instances[mig->count++];
            instance->id = item->gpu_instance;
            instance->slices = MAX(item->slices, 1U);
            instance->memory_bytes = item->memory_bytes;
            instance->placement = item->placement;
            copy_text(instance->profile, gpu_profile(item->profile));
            slices += instance->slices;
        }
        if (instance->compute_count == GPU_INSTANCES_MAX)
            continue;
        compute = &instance->computes[instance->compute_count++];
        compute->id = item->compute_instance;
        compute->index = item->index;
        compute->slices = MAX(item->compute_slices, 1U);
        instance->sm_count += item->sm_count;
        copy_text(compute->uuid, item->uuid);
        copy_text(compute->profile, item->profile);
    }
    if (mig) {
        mig->kind = layout->kind;
        mig->slices = MAX(MAX(layout->slices, slices), 1U);
        mig->sm_count = layout->sm_count;
    }
    return mig;
}

/* The indices of its MIG devices may be others: they move up when one before them is destroyed. */
static bool is_same_instance(const struct gpu_instance *a, const struct gpu_instance *b)
{
    if (a->id != b->id || a->slices != b->slices || strcmp(a->profile, b->profile) != 0 ||
        a->compute_count != b->compute_count)
        return false;
    for (size_t i = 0; i < a->compute_count; i++) {
        const struct gpu_compute *x = &a->computes[i], *y = &b->computes[i];

        if (x->id != y->id || x->slices != y->slices || strcmp(x->uuid, y->uuid) != 0 ||
            strcmp(x->profile, y->profile) != 0)
            return false;
    }
    return true;
}

static bool has_same_place(const struct gpu_instance *a, const struct gpu_instance *b)
{
    for (size_t i = 0; i < a->compute_count; i++)
        if (a->computes[i].index != b->computes[i].index)
            return false;
    return a->placement.is_known == b->placement.is_known &&
           a->placement.profile == b->placement.profile &&
           a->placement.start == b->placement.start && a->placement.size == b->placement.size;
}

static bool is_same_layout(const struct gpu_mig *a, const struct gpu_mig *b)
{
    if (a->kind != b->kind || a->slices != b->slices || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!is_same_instance(&a->instances[i], &b->instances[i]) ||
            !has_same_place(&a->instances[i], &b->instances[i]))
            return false;
    return true;
}

bool gpu_mig_is_changed(const struct gpu *gpu, const struct sample_layout *layout)
{
    struct gpu_mig *mig = layout->kind != LAYOUT_WHOLE ? read_layout(layout) : NULL;
    bool is_changed = layout->kind != LAYOUT_WHOLE
                          ? mig && (!gpu->mig || !is_same_layout(gpu->mig, mig))
                          : gpu->mig != NULL;

    gpu_mig_free(mig);
    return is_changed;
}

/* Moves what was learned of an instance that stays, else begins anew. */
static int open_learning(struct gpu *gpu, struct gpu_instance *instance)
{
    struct gpu_instance *before = gpu->mig ? gpu_mig_find(gpu->mig, instance->id) : NULL;

    if (before && is_same_instance(before, instance)) {
        instance->learning = TAKE_PTR(before->learning);
        instance->left_us = before->left_us;
        instance->is_occupied = before->is_occupied;
        memcpy(instance->gauges, before->gauges, sizeof(instance->gauges));
    } else if (gpu->learning) {
        instance->learning = calloc(1, sizeof(*instance->learning));
        if (!instance->learning)
            return -ENOMEM;
        instance->learning->intensity.memory = gpu->programs;
        if (gpu->counter_seen)
            slots_restart(&instance->learning->slots, gpu->tick_us);
        gpu_forget_places(gpu, instance->id);
    }
    return 0;
}

int gpu_mig_take_layout(struct gpu *gpu, const struct sample_layout *layout)
{
    struct gpu_mig *mig = layout->kind != LAYOUT_WHOLE ? read_layout(layout) : NULL;
    int r = layout->kind != LAYOUT_WHOLE && !mig ? -ENOMEM : 0;

    if (mig && gpu->mig) {
        mig->units = gpu->mig->units;
        mig->has_gpm = gpu->mig->has_gpm;
    }
    for (size_t i = 0; mig && i < mig->count && r == 0; i++)
        r = open_learning(gpu, &mig->instances[i]);
    if (r < 0) {
        gpu_mig_free(mig);
        mig = NULL;
    }
    gpu_mig_free(gpu->mig);
    gpu->mig = mig;
    return r;
}

/* From here on: the activity of instances, in watts. */

/* What an instance did, relative to the whole board, times the microseconds that it is known. */
struct activity_sum {
    double known_us, busy_us;
    double units_us[UNIT_COUNT];
};

static double part_of(double part, double whole)
{
    return whole > 0 ? MIN(part / whole, 1.0) : 0;
}

/* Its SMs are known as those of its compute instances, which need not fill it. */
static double compute_part(const struct gpu_mig *mig, const struct gpu_instance *instance)
{
    uint32_t filled = 0;

    for (size_t i = 0; i < instance->compute_count; i++)
        filled += instance->computes[i].slices;
    return filled >= instance->slices && instance->sm_count > 0 && mig->sm_count > 0
               ? part_of(instance->sm_count, mig->sm_count)
               : part_of(instance->slices, mig->slices);
}

/* GPM's percentages are of the instance. Memory has slices of its own. */
static void add_slot(const struct gpu *gpu, const struct gpu_instance *instance,
                     const struct slot *slot, struct activity_sum *sum)
{
    double compute = compute_part(gpu->mig, instance);
    double memory = part_of((double)instance->memory_bytes, (double)gpu->memory_bytes);

    sum->known_us += slot->gpm.known_us;
    sum->busy_us += slot->gpm.busy_us;
    for (size_t u = 0; u < UNIT_COUNT; u++)
        sum->units_us[u] +=
            slot->gpm.units_us[u] * (u == UNIT_DRAM && memory > 0 ? memory : compute);
}

/* Is the activity known for at least half of the time? */
static bool is_known(const struct activity_sum *sum, uint64_t start_us, uint64_t end_us)
{
    return sum->known_us * 2 >= (double)(end_us - start_us) && end_us > start_us;
}

static bool is_busy(const struct activity_sum *sum)
{
    return sum->busy_us > BUSY_MIN * sum->known_us;
}

static double limit_watts(const struct gpu *gpu)
{
    return (double)gpu->power_limit_mw / 1e3;
}

/* Writes the mean activity too. */
static double watts_of(const struct gpu *gpu, const struct activity_sum *sum,
                       double units[UNIT_COUNT])
{
    for (size_t u = 0; u < UNIT_COUNT; u++)
        units[u] = sum->units_us[u] / sum->known_us;
    return unit_watts_of(&gpu->mig->units, units, limit_watts(gpu));
}

_Static_assert((int)GAINS_MAX == (int)GPU_INSTANCES_MAX, "a gain for each instance");

/* From here on: slots. */

struct slot_part {
    struct slot *slot; /* NULL: the instance is too new */
    double watts;
    double usual_watts;
    bool is_known;
};

/* The watts of this activity, as other boards have them. */
static double usual_watts(const struct gpu *gpu, const double units[UNIT_COUNT])
{
    return unit_watts_of(&(struct unit_watts){0}, units, limit_watts(gpu));
}

static double idle_watts(const struct gpu *gpu, bool context)
{
    return (double)idle_level_mw(&gpu->idle, context) / 1e3;
}

/* The watts of all instances in a slot. True if all are known. */
static bool read_slot_parts(const struct gpu *gpu, const struct slot *slot, struct slot_part *parts,
                            double units[UNIT_COUNT], bool *ret_context)
{
    bool all_known = true;

    *ret_context = false;
    for (size_t i = 0; i < gpu->mig->count; i++) {
        const struct gpu_instance *instance = &gpu->mig->instances[i];
        struct activity_sum sum = {0};
        struct slot *part = slots_next_until(&instance->learning->slots, slot->end_us);

        parts[i] = (struct slot_part){.slot = part};
        if (!part) {
            all_known = false;
            continue;
        }
        *ret_context |= slot_workers(part) != 0;
        add_slot(gpu, instance, part, &sum);
        parts[i].is_known = is_known(&sum, slot->start_us, slot->end_us);
        if (parts[i].is_known) {
            double of_part[UNIT_COUNT];

            parts[i].watts = watts_of(gpu, &sum, of_part);
            parts[i].usual_watts = usual_watts(gpu, of_part);
            for (size_t u = 0; u < UNIT_COUNT; u++)
                units[u] += of_part[u];
        }
        all_known &= parts[i].is_known || slot_workers(part) == 0; /* nobody: it is not read */
    }
    return all_known;
}

/* Learns how much the programs of each instance draw for what its units do. Those of which none is
 * listed count as one more. */
static void learn_gains(struct gpu *gpu, const struct slot_part *parts, double watts)
{
    double usual[GAINS_MAX] = {0};

    for (size_t i = 0; i < gpu->mig->count; i++) {
        uint32_t programs = parts[i].slot ? slot_workers(parts[i].slot) : 0;

        usual[i] = parts[i].usual_watts;
        gains_follow(&gpu->mig->gains, i,
                     programs == 0 && usual[i] > 0 ? 1U << TENANT_OTHERS : programs);
    }
    gains_learn(&gpu->mig->gains, usual, watts);
}

static void learn_instance(const struct gpu_instance *instance, const struct slot *slot)
{
    struct gpu_learning *learning = instance->learning;

    intensity_remember_alone(&learning->intensity, slot);
    if (slot->clients)
        clients_learn(&learning->clients, &learning->intensity, slot);
}

void gpu_mig_learn_slot(struct gpu *gpu, const struct slot *slot)
{
    double seconds = (double)(slot->end_us - slot->start_us) / 1e6, units[UNIT_COUNT] = {0};
    struct slot_part parts[GPU_INSTANCES_MAX] = {0};
    double idle, active, total = 0;
    bool context, all_known;

    if (slot->end_us <= slot->start_us)
        return;
    all_known = read_slot_parts(gpu, slot, parts, units, &context);
    idle = idle_watts(gpu, context);
    active = MAX((double)slot->energy_uj / 1e6 / seconds - idle, 0.0);
    if (all_known) {
        unit_watts_learn(&gpu->mig->units, units, active, limit_watts(gpu));
        learn_gains(gpu, parts, active);
    }
    for (size_t i = 0; i < gpu->mig->count; i++)
        total += parts[i].watts;
    for (size_t i = 0; i < gpu->mig->count && all_known; i++) {
        struct gpu_instance *instance = &gpu->mig->instances[i];
        double watts = total > 0 ? active * parts[i].watts / total : 0;

        /* Before the idle level is known, the power of an instance at rest is not 0, but absent. */
        instance->gauges[GPU_GAUGE_POWER_MW] = (struct gpu_reading){0};
        if (idle > 0 || watts > 0)
            instance->gauges[GPU_GAUGE_POWER_MW] = (struct gpu_reading){
                slot->end_us,
                (uint64_t)((watts + idle * part_of(instance->slices, gpu->mig->slices)) * 1e3)};
        if (!parts[i].slot)
            continue;
        parts[i].slot->energy_uj = (uint64_t)(watts * seconds * 1e6);
        learn_instance(instance, parts[i].slot);
    }
}

/* From here on: windows. */

static bool has_contexts(const struct gpu *gpu, const struct window *window,
                         const struct gpu_instance *instance)
{
    for (size_t i = 0; i < window->presence_count; i++)
        if (window_lists_of(window, &window->presences[i]) != 0 &&
            gpu_mig_find(gpu->mig, window->presences[i].gpu_instance) == instance &&
            !gpu_is_idle_server(gpu, window, window->presences[i].process))
            return true;
    return false;
}

/* What a part did in a window. */
struct part_activity {
    double watts; /* or its slices: what it is weighed by */
    double units[UNIT_COUNT];
};

/* The activity of an instance in a window. False if it is not known. */
static bool read_window(const struct gpu *gpu, const struct window *window, struct gpu_part *part,
                        struct part_activity *activity)
{
    const struct gpu_instance *instance = part->instance;
    struct activity_sum sum = {0};
    const struct slot *slot;
    size_t cursor = 0;

    while (instance && instance->learning &&
           (slot = slots_of_window(&instance->learning->slots, window->start_us, window->end_us,
                                   &cursor)))
        add_slot(gpu, instance, slot, &sum);
    if (!is_known(&sum, window->start_us, window->end_us))
        return !part->has_context && !part->is_occupied; /* nobody is there: it is not read */
    part->is_active = is_busy(&sum);
    if (part->is_active)
        activity->watts = watts_of(gpu, &sum, activity->units);
    return true;
}

/* By the time that the driver has counted for the processes of each part. */
static void weigh_parts_by_busy(const struct gpu *gpu, const struct window *window,
                                struct gpu_parts *parts, struct part_activity *activities)
{
    for (size_t i = 0; i < parts->count; i++) {
        activities[i].watts = (double)gpu_busy_in(gpu, window, parts->items[i].instance);
        parts->items[i].is_active = activities[i].watts > 0;
    }
}

/* Writes what each part did: by GPM, or by its slices if it has a process, visible or not. True if
 * it is by GPM. */
static bool weigh_parts(const struct gpu *gpu, const struct window *window, struct gpu_parts *parts,
                        struct part_activity *activities)
{
    bool all_known = true;

    for (size_t i = 0; i < parts->count; i++)
        all_known &= read_window(gpu, window, &parts->items[i], &activities[i]);
    for (size_t i = 0; i < parts->count && !all_known; i++) {
        struct gpu_part *part = &parts->items[i];

        part->is_active = part->has_context || part->is_occupied;
        activities[i].watts = !part->is_active ? 0 : part->instance ? part->instance->slices : 1;
    }
    return all_known;
}

/* The part of the active energy that no activity explains, if another part holds a context: its
 * video engines or copies, which GPM does not show, may have used it. Relative to all of it. */
static double unseen_error(const struct gpu *gpu, const struct window *window, uint64_t active_uj,
                           const double units[UNIT_COUNT], const struct gpu_parts *parts,
                           size_t part)
{
    double seconds = (double)(window->end_us - window->start_us) / 1e6;
    double explained_j = EXPLAINED_MOST * seconds * usual_watts(gpu, units);
    double unseen_j = (double)active_uj / 1e6 - explained_j;

    for (size_t i = 0; i < parts->count && unseen_j > 0; i++)
        if (i != part && (parts->items[i].has_context || parts->items[i].is_occupied))
            return unseen_j / ((double)active_uj / 1e6);
    return 0;
}

static void divide_active(const struct gpu *gpu, const struct window *window, uint64_t active_uj,
                          struct gpu_parts *parts)
{
    struct part_activity activities[GPU_INSTANCES_MAX + 1] = {0};
    struct share shares[GPU_INSTANCES_MAX + 1] = {0};
    double total = 0, units[UNIT_COUNT] = {0}, usual[GAINS_MAX] = {0};
    bool is_counted = gpu->samples.are_counted, is_known = false;

    if (is_counted)
        weigh_parts_by_busy(gpu, window, parts, activities);
    else
        is_known = weigh_parts(gpu, window, parts, activities);
    for (size_t i = 0; i < parts->count; i++) {
        total += activities[i].watts;
        if (parts->items[i].instance)
            usual[i] = usual_watts(gpu, activities[i].units);
        for (size_t u = 0; u < UNIT_COUNT; u++)
            units[u] += activities[i].units[u];
    }
    for (size_t i = 0; i < parts->count; i++) {
        const struct gpu_part *part = &parts->items[i];

        /* Nobody did anything: what is above the idle level is of those that hold a context. */
        shares[i].weight = total > 0 ? (uint64_t)(activities[i].watts / total * WEIGHT_SCALE)
                           : part->has_context && part->instance ? part->instance->slices
                                                                 : part->has_context;
    }
    if (share_split(active_uj, shares, parts->count) == 0 && parts->count > 0)
        shares[0].amount = active_uj; /* nobody was there; it is unattributed */
    for (size_t i = 0; i < parts->count; i++) {
        struct gpu_part *part = &parts->items[i];

        part->active_uj = shares[i].amount;
        if (total <= 0)
            part->error = shares[i].amount < active_uj ? 1 : 0;
        else if (is_counted)
            part->error = window->is_by_presence
                              ? SLICES_ERROR
                              : COUNTED_ERROR * (1 - activities[i].watts / total);
        else if (is_known)
            part->error =
                hypot(MAX(unit_watts_error(&gpu->mig->units, activities[i].units, units,
                                           limit_watts(gpu)),
                          gains_error(&gpu->mig->gains, usual, i, activities[i].watts / total)),
                      unseen_error(gpu, window, active_uj, units, parts, i));
        else
            part->error = activities[i].watts < total ? SLICES_ERROR : 0;
    }
}

/* By slices: the floor of all instances and of free slices, the context step of those that hold
 * one. */
static void divide_idle(const struct gpu *gpu, struct idle_part idle, struct gpu_parts *parts)
{
    struct share shares[GPU_INSTANCES_MAX + 2] = {0};
    uint64_t used = 0;

    for (size_t i = 0; i < parts->count; i++) {
        shares[i].weight = parts->items[i].instance ? parts->items[i].instance->slices : 0;
        used += shares[i].weight;
    }
    shares[parts->count].weight = gpu->mig->slices - used;
    (void)share_split(idle.floor_uj, shares, parts->count + 1);
    for (size_t i = 0; i < parts->count; i++)
        parts->items[i].idle.floor_uj = shares[i].amount;
    parts->free_uj = shares[parts->count].amount;

    for (size_t i = 0; i < parts->count; i++) {
        const struct gpu_part *part = &parts->items[i];

        shares[i].weight = !part->has_context ? 0 : part->instance ? part->instance->slices : 1;
    }
    if (share_split(idle.step_uj, shares, parts->count) == 0) {
        parts->free_uj += idle.step_uj;
        return;
    }
    for (size_t i = 0; i < parts->count; i++)
        parts->items[i].idle.step_uj = shares[i].amount;
}

void gpu_mig_divide(const struct gpu *gpu, const struct window *window, struct gpu_parts *ret_parts)
{
    uint64_t duration_us = window->end_us - window->start_us;
    bool context = false, is_active = false, has_strays = has_contexts(gpu, window, NULL);
    struct idle_part idle;

    *ret_parts = (struct gpu_parts){.count = gpu->mig->count};
    for (size_t i = 0; i < gpu->mig->count; i++)
        ret_parts->items[i].instance = &gpu->mig->instances[i];
    if (has_strays || gpu->mig->count == 0)
        ret_parts->count++;
    for (size_t i = 0; i < ret_parts->count; i++) {
        struct gpu_part *part = &ret_parts->items[i];

        part->has_context = has_contexts(gpu, window, part->instance);
        /* A process of no known instance may be the one that uses the memory. */
        part->is_occupied = part->instance && !part->has_context && !has_strays &&
                            (window->occupied & 1U << i) != 0;
        context |= part->has_context;
    }
    idle = idle_split(&gpu->idle, context, window->energy_uj, duration_us);
    divide_active(gpu, window, window->energy_uj - idle.floor_uj - idle.step_uj, ret_parts);
    for (size_t i = 0; i < ret_parts->count; i++)
        is_active |= ret_parts->items[i].is_active;
    if (!context && !is_active) { /* as on any board: what nobody can have used is idle */
        idle = (struct idle_part){.floor_uj = window->energy_uj};
        for (size_t i = 0; i < ret_parts->count; i++)
            ret_parts->items[i].active_uj = 0;
    }
    divide_idle(gpu, idle, ret_parts);
}
