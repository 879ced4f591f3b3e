#include "attribution/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* Below this part of its capacity a machine teaches what it draws when it does nothing. */
enum { QUIET_DIVISOR = 50 };

void node_init(struct node *node, struct ledger *ledger)
{
    *node = (struct node){.ledger = ledger};
    workload_usages_init(&node->members, ledger);
}

void node_done(struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++)
        free(node->meters[i].id);
    free(node->meters);
    workload_usages_done(&node->members);
    free(node->shares);
    free(node->bookings);
    *node = (struct node){0};
}

static bool is_booked(enum meter_kind kind)
{
    return kind == METER_PACKAGE || kind == METER_DRAM;
}

static struct node_meter *find_meter(struct node *node, const struct sample_meter *reading)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].kind == reading->kind && strcmp(node->meters[i].id, reading->id) == 0 &&
            strcmp(node->meters[i].source, reading->source) == 0)
            return &node->meters[i];
    return NULL;
}

/* Two may know of the same package: who counts in finer steps, and less besides, comes first. */
static size_t rank_of(const char *source)
{
    static const char *const ranks[] = {"rapl", "cray", "hwmon"};
    size_t rank = 0;

    while (rank < ARRAY_SIZE(ranks) && strcmp(source, ranks[rank]) != 0)
        rank++;
    return rank;
}

static bool is_real(const struct node_meter *meter, enum meter_kind kind)
{
    return meter->kind == kind && !meter->modelled;
}

/* A model gives way to whatever measures the same, for good: it would be booked twice. */
static bool gives_way(const struct node *node, const struct node_meter *model)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (is_real(&node->meters[i], model->kind))
            return true;
    return false;
}

/* Is this meter of the source whose meters of this kind are booked? The first one stays. */
static bool is_chosen(const struct node *node, const struct node_meter *meter)
{
    if (meter->modelled)
        return !gives_way(node, meter);
    for (size_t i = 0; i < node->meter_count; i++)
        if (is_real(&node->meters[i], meter->kind) && node->meters[i].meter != LEDGER_NONE)
            return strcmp(node->meters[i].source, meter->source) == 0;
    for (size_t i = 0; i < node->meter_count; i++)
        if (is_real(&node->meters[i], meter->kind) &&
            rank_of(node->meters[i].source) < rank_of(meter->source))
            return false;
    return true;
}

/* As long as nobody says what workloads do, no meter can be divided: then all are only observed. */
static int open_books(struct node *node)
{
    int result = 0;

    for (size_t i = 0; i < node->meter_count; i++) {
        struct node_meter *meter = &node->meters[i];
        int r;

        if (!is_booked(meter->kind) || meter->meter != LEDGER_NONE || !is_chosen(node, meter))
            continue;
        r = ledger_add_meter(node->ledger, meter->kind, meter->id, 0, &meter->meter);
        result = r < 0 ? r : result;
    }
    return result;
}

static int add_meter(struct node *node, uint64_t t_us, const struct sample_meter *reading)
{
    struct node_meter meter = {
        .source = reading->source,
        .kind = reading->kind,
        .integrated = reading->integrated,
        .modelled = reading->modelled,
        .idle_uj = reading->idle_uj,
        .meter = LEDGER_NONE,
        .counter_uj = reading->counter_uj,
        .breaks = reading->breaks,
        .read_us = t_us,
    };
    struct node_meter *meters;

    if (node->meter_count == NODE_METERS_MAX)
        return 0; /* no machine has so many; a fault in a source must not fill the memory */
    meters = realloc(node->meters, (node->meter_count + 1) * sizeof(*meters));
    if (!meters)
        return -ENOMEM;
    node->meters = meters;
    meter.id = strdup(reading->id);
    if (!meter.id)
        return -ENOMEM;
    node->meters[node->meter_count++] = meter;
    return 0;
}

static int take_meter(struct node *node, uint64_t t_us, const struct sample_meter *reading)
{
    struct node_meter *meter = find_meter(node, reading);

    if (!meter)
        return add_meter(node, t_us, reading);
    if (meter->modelled && gives_way(node, meter))
        return 0; /* from here on the other one counts; what is pending is still booked */
    if (reading->breaks == meter->breaks && reading->counter_uj >= meter->counter_uj) {
        meter->pending_uj += reading->counter_uj - meter->counter_uj;
        meter->pending_idle_uj += reading->idle_uj - MIN(reading->idle_uj, meter->idle_uj);
    } else {
        meter->lapses++;
    }
    meter->idle_uj = reading->idle_uj;
    meter->counter_uj = reading->counter_uj;
    meter->breaks = reading->breaks;
    meter->read_us = t_us;
    return 0;
}

static int reserve_scratch(struct node *node)
{
    size_t capacity = node->members.slots + 2; /* idle, unattributed */
    void *grown;

    if (capacity <= node->scratch_capacity)
        return 0;
    if (!(grown = realloc(node->shares, capacity * sizeof(*node->shares))))
        return -ENOMEM;
    node->shares = grown;
    if (!(grown = realloc(node->bookings, capacity * sizeof(*node->bookings))))
        return -ENOMEM;
    node->bookings = grown;
    node->scratch_capacity = capacity;
    return 0;
}

/* By what energy is divided. */
typedef uint64_t member_weight(const struct workload_usage *member);

static uint64_t by_cpu_time(const struct workload_usage *member)
{
    return member->cpu_us;
}

static uint64_t by_memory(const struct workload_usage *member)
{
    return member->memory_bytes;
}

static uint64_t by_traffic(const struct workload_usage *member)
{
    return member->traffic_bytes;
}

static uint64_t by_uncounted_memory(const struct workload_usage *member)
{
    return member->uncounted_bytes;
}

/* The part of a window's energy that the machine draws when it does nothing. */
static uint64_t idle_energy(struct node_meter *meter, const struct sample_usage *usage,
                            uint64_t duration_us)
{
    struct idle_part idle;

    if (meter->kind == METER_DRAM && !usage->has_traffic)
        return 0; /* free memory tells it */
    if (meter->modelled)
        return MIN(meter->pending_idle_uj, meter->pending_uj);
    if (usage->busy_us <= usage->capacity_us / QUIET_DIVISOR)
        idle_learn(&meter->idle, false, meter->pending_uj, duration_us);
    idle = idle_split(&meter->idle, false, meter->pending_uj, duration_us);
    return idle.floor_uj;
}

static size_t list_members(struct node *node, enum method method)
{
    size_t count = 0;

    for (uint32_t w = 0; w < node->members.slots; w++)
        if (node->members.items[w].is_present)
            node->bookings[count++] = (struct booking){.process = LEDGER_NONE,
                                                       .to_workload = true,
                                                       .workload = w,
                                                       .tier = TIER_ACTIVE,
                                                       .method = method};
    return count;
}

/* Divides energy among the members listed, and what weighs `rest` beside them. Returns what nobody
 * of them got: the part of the rest, or all if nothing weighs anything. */
static uint64_t divide(struct node *node, size_t count, uint64_t energy_uj, member_weight *weight,
                       uint64_t rest)
{
    for (size_t i = 0; i < count; i++)
        node->shares[i].weight = weight(&node->members.items[node->bookings[i].workload]);
    node->shares[count].weight = rest;
    if (share_split(energy_uj, node->shares, count + 1) == 0)
        return energy_uj;
    for (size_t i = 0; i < count; i++)
        node->bookings[i].energy_uj += node->shares[i].amount;
    return node->shares[count].amount;
}

/* The same by what this kind of meter goes by. What is left is of the owner written. */
static uint64_t divide_as(struct node *node, size_t count, const struct node_meter *meter,
                          const struct sample_usage *usage, uint64_t energy_uj,
                          enum unowned *ret_owner)
{
    uint64_t free_bytes = usage->memory_bytes - MIN(usage->memory_bytes, usage->memory_used_bytes);

    *ret_owner = usage->is_blind ? UNOWNED_UNATTRIBUTED : UNOWNED_IDLE;
    if (usage->is_blind)
        return energy_uj;
    if (meter->kind != METER_DRAM)
        return divide(node, count, energy_uj, by_cpu_time, 0);
    if (!usage->has_traffic && free_bytes > 0)
        return divide(node, count, energy_uj, by_memory, free_bytes);
    *ret_owner = UNOWNED_UNATTRIBUTED;
    if (!usage->has_traffic)
        return divide(node, count, energy_uj, by_memory, 0);
    /* Those whose traffic nobody counts share what all of them moved by the memory they hold. */
    energy_uj = divide(node, count, energy_uj, by_traffic, usage->other_traffic_bytes);
    return divide(node, count, energy_uj, by_uncounted_memory, 0);
}

/* A meter that is read about as often as windows end has none of its joules in one of them, and
 * twice as many in the next. One that is gone has none, either, but no time. */
static void pass_window(struct node *node, const struct node_meter *meter, uint64_t now_us)
{
    uint64_t start_us = node->settled_until_us ? MIN(node->settled_until_us, now_us) : now_us;

    if (now_us - MIN(meter->read_us, now_us) <= 2 * (now_us - start_us))
        ledger_book_time(node->ledger, meter->meter, start_us, now_us, NULL, 0);
}

static int settle(struct node *node, struct node_meter *meter, uint64_t now_us,
                  const struct sample_usage *usage)
{
    uint64_t start_us = node->settled_until_us ? MIN(node->settled_until_us, now_us) : now_us;
    uint64_t idle_uj = idle_energy(meter, usage, now_us - start_us), left_uj;
    size_t count = list_members(node, meter->modelled ? METHOD_MODELLED : METHOD_SHARED);
    size_t booked = 0;
    enum unowned owner;

    left_uj = divide_as(node, count, meter, usage, meter->pending_uj - idle_uj, &owner);
    node->bookings[count] =
        (struct booking){.process = LEDGER_NONE, .unowned = UNOWNED_IDLE, .energy_uj = idle_uj};
    node->bookings[count + 1] =
        (struct booking){.process = LEDGER_NONE, .unowned = owner, .energy_uj = left_uj};
    for (size_t i = 0; i < count + 2; i++)
        if (node->bookings[i].energy_uj > 0)
            node->bookings[booked++] = node->bookings[i];
    return ledger_book(node->ledger, meter->meter, meter->pending_uj, start_us, now_us,
                       node->bookings, booked);
}

/* Nobody will say who used it, and there are no books to say so. */
static void forget_pending(struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].meter == LEDGER_NONE)
            node->meters[i].pending_uj = node->meters[i].pending_idle_uj = 0;
}

static int note_members(struct node *node, uint64_t t_us, const struct sample_usage *usage)
{
    int result = 0, r;

    workload_usages_begin(&node->members);
    for (size_t i = 0; i < usage->count; i++)
        if ((r = workload_usages_note(&node->members, t_us, &usage->workloads[i])) < 0)
            result = r;
    if (!usage->is_blind && (r = workload_usages_note_system(&node->members, t_us, usage)) < 0)
        result = r;
    workload_usages_end(&node->members, t_us);
    return result;
}

static int take_usage(struct node *node, uint64_t t_us, const struct sample_usage *usage)
{
    int result = 0, reserved, r;

    ledger_advance(node->ledger, t_us);
    if (!usage->is_first)
        result = open_books(node);
    if ((r = note_members(node, t_us, usage)) < 0)
        result = r;
    reserved = reserve_scratch(node);
    result = reserved < 0 ? reserved : result;
    for (size_t i = 0; i < node->meter_count && reserved == 0; i++) {
        struct node_meter *meter = &node->meters[i];

        if (meter->meter != LEDGER_NONE) {
            if (usage->is_first) /* nobody can say who used it */
                ledger_book_gap(node->ledger, meter->meter, meter->pending_uj);
            else if (meter->pending_uj == 0)
                pass_window(node, meter, t_us);
            else if ((r = settle(node, meter, t_us, usage)) < 0)
                result = r; /* it is booked all the same, without an owner */
        }
        meter->pending_uj = meter->pending_idle_uj = 0;
    }
    forget_pending(node);
    node->settled_until_us = t_us;
    return result;
}

static void take_power(struct node *node, uint64_t t_us, const struct sample_node_power *reading)
{
    size_t i = 0;

    while (i < node->power_count && strcmp(node->powers[i].source, reading->source) != 0)
        i++;
    if (i == NODE_POWERS_MAX)
        return;
    node->power_count = MAX(node->power_count, i + 1);
    node->powers[i] = (struct node_power){reading->source, reading->power_mw, t_us};
}

int node_ingest(struct node *node, const struct sample *sample)
{
    switch (sample->kind) {
    case SAMPLE_METER:
        return take_meter(node, sample->t_us, &sample->meter);
    case SAMPLE_USAGE:
        return take_usage(node, sample->t_us, &sample->usage);
    case SAMPLE_NODE_POWER:
        take_power(node, sample->t_us, &sample->node_power);
        return 0;
    default: /* of a GPU, or names */
        return 0;
    }
}

void node_finish(struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++) {
        if (node->meters[i].meter != LEDGER_NONE)
            ledger_book_gap(node->ledger, node->meters[i].meter, node->meters[i].pending_uj);
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
