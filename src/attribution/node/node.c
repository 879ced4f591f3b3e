#include "attribution/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

void node_init(struct node *node, struct ledger *ledger)
{
    *node = (struct node){.ledger = ledger, .usages.ledger = ledger};
}

void node_done(struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++)
        free(node->meters[i].id);
    free(node->meters);
    workload_usages_done(&node->usages);
    bookings_done(&node->bookings);
    *node = (struct node){0};
}

/* Several sources may measure the same package: the finest and purest counter comes first. */
static size_t rank_of(const char *source)
{
    static const char *const ranks[] = {"rapl", "cray", "hwmon"};
    size_t rank = 0;

    while (rank < ARRAY_SIZE(ranks) && strcmp(source, ranks[rank]) != 0)
        rank++;
    return rank;
}

/* A model is replaced for good by any meter of its kind: both would be booked. */
static bool is_superseded(const struct node *node, const struct node_meter *meter)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (meter->modelled && node->meters[i].kind == meter->kind && !node->meters[i].modelled)
            return true;
    return false;
}

/* Is this meter of the source whose meters of this kind are booked? The first choice stays. */
static bool is_chosen(const struct node *node, const struct node_meter *meter)
{
    bool is_best = true;

    if (meter->modelled)
        return !is_superseded(node, meter);
    for (size_t i = 0; i < node->meter_count; i++) {
        const struct node_meter *other = &node->meters[i];

        if (other->kind != meter->kind || other->modelled)
            continue;
        if (other->meter != LEDGER_NONE)
            return strcmp(other->source, meter->source) == 0;
        is_best &= rank_of(other->source) >= rank_of(meter->source);
    }
    return is_best;
}

static bool can_open(const struct node *node, const struct node_meter *meter)
{
    return (meter->kind == METER_PACKAGE || meter->kind == METER_DRAM) &&
           meter->meter == LEDGER_NONE && is_chosen(node, meter);
}

static int open_meter(struct node *node, struct node_meter *meter, bool *ret_is_new)
{
    *ret_is_new = !ledger_find_meter(node->ledger, meter->kind, meter->id, &meter->meter);
    return *ret_is_new ? ledger_add_meter(node->ledger, meter->kind, meter->id, 0, &meter->meter)
                       : 0;
}

/* Energy of a meter is booked: other sources of the same must not book it again. */
static void claim_energy(struct node *node, const struct node_meter *meter, uint64_t energy_uj)
{
    if (energy_uj > 0 && node->resumed)
        resumed_meters_disown(node->resumed, meter->kind, meter->source);
}

/* What was used since then (0: unknown), until the meter was last read. */
static void book_gap(struct node *node, const struct node_meter *meter, uint64_t energy_uj,
                     uint64_t since_us)
{
    uint64_t start_us = since_us > 0 ? MIN(since_us, meter->read_us) : meter->read_us;

    claim_energy(node, meter, energy_uj);
    ledger_book_gap(node->ledger, meter->meter, energy_uj, start_us, meter->read_us);
}

/* Opens the books of meters. Not before a usage report: without one nothing can be divided. Where a
 * previous run had others, nobody knows what was used until this meter was read. */
static bool open_books(struct node *node)
{
    bool failed = false, is_new;

    for (size_t i = 0; i < node->meter_count; i++) {
        struct node_meter *meter = &node->meters[i];

        if (!can_open(node, meter))
            continue;
        if (open_meter(node, meter, &is_new) < 0) {
            failed = true;
            continue;
        }
        if (is_new)
            book_gap(node, meter, meter->base_uj, 0);
        if (!is_new || meter->base_uj > 0)
            ledger_note_unknown_gap(node->ledger, meter->meter);
    }
    return !failed;
}

static void keep_hardware(struct node_meter *meter, const struct sample_meter *reading)
{
    meter->limits = reading->limits;
    meter->has_hardware = reading->hardware;
    meter->hardware = reading->hardware ? reading->hardware->last : 0;
}

struct resumed_meter node_resumed_meter(const struct node_meter *meter)
{
    return (struct resumed_meter){
        .kind = meter->kind,
        .source = (char *)meter->source,
        .id = meter->id,
        .has_counter = true,
        .is_integral = !meter->has_hardware,
        .counter_uj = meter->counter_uj,
        .read_us = meter->read_us,
        .has_hardware = meter->has_hardware,
        .hardware = meter->hardware,
        .is_booked = meter->meter != LEDGER_NONE,
        .pending_uj = meter->meter != LEDGER_NONE ? meter->pending_uj : 0,
        .idle = meter->idle,
    };
}

/* The count of a meter goes on where it was last shown, by whatever source. */
static void raise_counter(const struct node *node, struct node_meter *meter)
{
    uint64_t highest_uj = resumed_meters_highest_uj(node->resumed, meter->kind, meter->id);

    if (highest_uj <= meter->counter_uj)
        return;
    meter->base_uj += highest_uj - meter->counter_uj;
    meter->counter_uj = highest_uj;
}

/* Goes on with a meter of the previous run. Its books are open at once: what it counts before the
 * first usage report is a gap, too, and so is all that it counted if they were never open. */
static int resume_meter(struct node *node, struct node_meter *meter, uint64_t t_us,
                        const struct resumed_meter *before, const struct sample_meter *reading)
{
    uint64_t gap_uj = 0;
    bool is_known = resumed_meter_find_gap(before, reading->hardware, t_us, &gap_uj), is_new;

    if (!is_known)
        gap_uj = 0;
    /* The gap ends with this reading, which may not be the first of the source. */
    meter->base_uj = before->counter_uj + gap_uj - MIN(gap_uj, reading->counter_uj);
    meter->counter_uj = meter->base_uj + reading->counter_uj;
    raise_counter(node, meter);
    if ((meter->modelled && !before->is_booked) || !can_open(node, meter))
        return 0;
    if (open_meter(node, meter, &is_new) < 0)
        return -ENOMEM;
    /* What another source booked meanwhile is not known of this one. */
    is_known &= is_new || before->is_booked;
    book_gap(node, meter, is_new ? meter->counter_uj : is_known ? gap_uj : 0, before->read_us);
    if (!is_known)
        ledger_note_unknown_gap(node->ledger, meter->meter);
    return 0;
}

static int recall_meter(struct node *node, struct node_meter *meter, uint64_t t_us,
                        const struct sample_meter *reading)
{
    struct resumed_meter before;
    int r = 0;

    if (!resumed_meters_take(node->resumed, meter->kind, meter->source, meter->id, &before)) {
        raise_counter(node, meter);
        return 0;
    }
    meter->idle = before.idle;
    if (before.has_counter)
        r = resume_meter(node, meter, t_us, &before, reading);
    resumed_meter_done(&before);
    return r;
}

static int add_meter(struct node *node, uint64_t t_us, const struct sample_meter *reading)
{
    struct node_meter *meter;
    char *id;

    if (node->meter_count == NODE_METERS_MAX)
        return 0; /* more than any machine has: a faulty source must not fill the memory */
    if (grow_zeroed(&node->meters, &node->meter_slots, node->meter_count + 1,
                    sizeof(*node->meters)) < 0 ||
        !(id = strdup(reading->id)))
        return -ENOMEM;
    meter = &node->meters[node->meter_count++];
    *meter = (struct node_meter){
        .source = reading->source,
        .kind = reading->kind,
        .id = id,
        .modelled = reading->modelled,
        .idle_uj = reading->idle_uj,
        .meter = LEDGER_NONE,
        .counter_uj = reading->counter_uj,
        .breaks = reading->breaks,
        .read_us = t_us,
    };
    keep_hardware(meter, reading);
    return node->resumed ? recall_meter(node, meter, t_us, reading) : 0;
}

/* Where nothing is known of workloads. From the second reading on: by then all sources were read,
 * and the best is chosen. */
static int book_unattributed(struct node *node, struct node_meter *meter, uint64_t start_us)
{
    bool failed;

    ledger_advance(node->ledger, meter->read_us);
    failed = !open_books(node);
    if (meter->meter == LEDGER_NONE)
        return failed ? -ENOMEM : 0;
    claim_energy(node, meter, meter->pending_uj);
    ledger_book_unattributed(node->ledger, meter->meter, meter->pending_uj,
                             MIN(start_us, meter->read_us), meter->read_us);
    meter->pending_uj = meter->pending_idle_uj = 0;
    return failed ? -ENOMEM : 0;
}

struct node_meter *node_find_meter(const struct node *node, const struct sample_meter *reading)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].kind == reading->kind && strcmp(node->meters[i].id, reading->id) == 0 &&
            strcmp(node->meters[i].source, reading->source) == 0)
            return &node->meters[i];
    return NULL;
}

static int take_meter(struct node *node, uint64_t t_us, const struct sample_meter *reading)
{
    struct node_meter *meter = node_find_meter(node, reading);
    uint64_t counter_uj, before_us;

    if (!meter)
        return add_meter(node, t_us, reading);
    if (is_superseded(node, meter))
        return 0; /* what is pending is still booked */
    counter_uj = meter->base_uj + reading->counter_uj;
    if (reading->breaks == meter->breaks && counter_uj >= meter->counter_uj) {
        meter->pending_uj += counter_uj - meter->counter_uj;
        meter->pending_idle_uj += reading->idle_uj - MIN(reading->idle_uj, meter->idle_uj);
    } else {
        meter->lapses++;
    }
    meter->idle_uj = reading->idle_uj;
    meter->counter_uj = counter_uj;
    keep_hardware(meter, reading);
    meter->breaks = reading->breaks;
    before_us = meter->read_us;
    meter->read_us = t_us;
    return node->has_no_usage ? book_unattributed(node, meter, before_us) : 0;
}

/* The part of a window's energy that the machine draws without load. */
static uint64_t idle_energy(struct node_meter *meter, const struct sample_usage *usage,
                            uint64_t duration_us)
{
    if (meter->kind == METER_DRAM && !usage->has_traffic)
        return 0; /* it is that of free memory */
    if (meter->modelled)
        return MIN(meter->pending_idle_uj, meter->pending_uj);
    return idle_floor(&meter->idle, usage->busy_us, usage->capacity_us, meter->pending_uj,
                      duration_us);
}

/* Divides the energy of the last booking among the workloads before it. The part that weighs
 * `left_weight` stays, and all of it if nothing has a weight. */
static void divide_last(struct node *node, enum usage_weight weight, uint64_t left_weight)
{
    struct bookings *bookings = &node->bookings;
    struct booking *last = &bookings->items[bookings->count - 1];
    uint64_t energy_uj = last->energy_uj;

    for (size_t i = 0; i < bookings->count; i++)
        if (bookings->items[i].to_workload)
            bookings->shares[i].weight =
                node->usages.items[bookings->items[i].workload].weights[weight];
    bookings->shares[bookings->count - 1].weight = left_weight;
    last->energy_uj = 0;
    if (!bookings_divide(bookings, energy_uj))
        last->energy_uj = energy_uj;
}

/* Divides the last booking as this kind of meter is, and sets the owner of what is left. */
static void divide_usage(struct node *node, const struct node_meter *meter,
                         const struct sample_usage *usage)
{
    enum unowned *owner = &node->bookings.items[node->bookings.count - 1].unowned;
    uint64_t free_bytes = usage->memory_bytes - MIN(usage->memory_bytes, usage->memory_used_bytes);

    *owner = UNOWNED_UNATTRIBUTED;
    if (usage->is_blind)
        return;
    if (meter->kind != METER_DRAM) {
        *owner = UNOWNED_IDLE;
        divide_last(node, USAGE_WEIGHT_CPU_TIME, 0);
    } else if (!usage->has_traffic) {
        *owner = free_bytes > 0 ? UNOWNED_IDLE : UNOWNED_UNATTRIBUTED;
        divide_last(node, USAGE_WEIGHT_MEMORY, free_bytes);
    } else {
        /* Cgroups without a traffic count share what all of them moved by the memory they hold. */
        divide_last(node, USAGE_WEIGHT_TRAFFIC, usage->other_traffic_bytes);
        divide_last(node, USAGE_WEIGHT_UNCOUNTED_MEMORY, 0);
    }
}

/* Books what is pending. It is booked without an owner on -ENOMEM. */
static int settle_meter(struct node *node, struct node_meter *meter, uint64_t now_us,
                        const struct sample_usage *usage)
{
    uint64_t start_us = node->settled_until_us ? MIN(node->settled_until_us, now_us) : now_us;
    enum method method = meter->modelled ? METHOD_MODELLED : METHOD_SHARED;
    struct bookings *bookings = &node->bookings;
    uint64_t idle_uj;

    if (meter->pending_uj == 0) {
        /* A meter that is read about once a window has no energy in some windows. One that is gone
         * has none, either, but no device time. */
        if (now_us - MIN(meter->read_us, now_us) <= 2 * (now_us - start_us))
            ledger_pass_time(node->ledger, meter->meter, start_us, now_us);
        return 0;
    }
    claim_energy(node, meter, meter->pending_uj);
    idle_uj = idle_energy(meter, usage, now_us - start_us);
    bookings->count = 0;
    for (uint32_t w = 0; w < node->usages.slots; w++)
        if (workload_usages_has(&node->usages, w))
            bookings_add_workload(bookings, w, TIER_ACTIVE, method, 0);
    bookings_add_unowned(bookings, UNOWNED_IDLE, idle_uj, 0);
    bookings_add_unowned(bookings, UNOWNED_UNATTRIBUTED, meter->pending_uj - idle_uj, 0);
    divide_usage(node, meter, usage);
    return ledger_book(node->ledger, meter->meter, meter->pending_uj, start_us, now_us,
                       bookings->items, bookings->count);
}

static int take_usage(struct node *node, uint64_t t_us, const struct sample_usage *usage)
{
    bool failed, can_settle;

    ledger_advance(node->ledger, t_us);
    failed = !usage->is_first && !open_books(node);
    failed |= workload_usages_update(&node->usages, t_us, usage) < 0;
    can_settle = bookings_begin(&node->bookings, node->usages.slots + 2) == 0; /* and unowned */
    for (size_t i = 0; i < node->meter_count; i++) {
        struct node_meter *meter = &node->meters[i];

        if (meter->meter != LEDGER_NONE && !can_settle)
            continue; /* the next report settles it */
        if (meter->meter != LEDGER_NONE && usage->is_first)
            book_gap(node, meter, meter->pending_uj, node->settled_until_us);
        else if (meter->meter != LEDGER_NONE)
            failed |= settle_meter(node, meter, t_us, usage) < 0;
        meter->pending_uj = meter->pending_idle_uj = 0;
    }
    node->settled_until_us = t_us;
    return failed || !can_settle ? -ENOMEM : 0;
}

int node_ingest(struct node *node, const struct sample *sample)
{
    const struct sample_node_power *power = &sample->node_power;
    size_t i = 0;

    if (sample->kind == SAMPLE_METER)
        return take_meter(node, sample->t_us, &sample->meter);
    if (sample->kind == SAMPLE_USAGE)
        return take_usage(node, sample->t_us, &sample->usage);
    if (sample->kind != SAMPLE_NODE_POWER)
        return 0;
    while (i < node->power_count && strcmp(node->powers[i].source, power->source) != 0)
        i++;
    if (i < NODE_POWERS_MAX) {
        node->power_count = MAX(node->power_count, i + 1);
        node->powers[i] = (struct node_power){power->source, power->power_mw, sample->t_us};
    }
    return 0;
}

void node_finish(struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++) {
        if (node->meters[i].meter != LEDGER_NONE)
            book_gap(node, &node->meters[i], node->meters[i].pending_uj, node->settled_until_us);
        node->meters[i].pending_uj = 0;
    }
}

const struct node_meter *node_meter_of(const struct node *node, uint32_t meter)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].meter == meter)
            return &node->meters[i];
    return NULL;
}
