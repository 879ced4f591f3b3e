#include "attribution/gpu/intensity/slot.h"

#include "core/macros.h"

static const uint64_t SLOT_US = 200000;
static const uint64_t TICK_US = 100000;
static const uint64_t COUNTER_LAG_US = 50000;
static const uint64_t GPM_LAG_US = 50000;
static const uint64_t SAMPLE_US = 200000; /* the time that a utilisation sample covers */

/* Samples and GPM arrive within this time. */
static const uint64_t COMPLETE_US = 500000;

/* Of a quiet slot: the part that is known, and the activity of idle contexts. */
static const double QUIET_KNOWN = 0.99, QUIET_BUSY = 0.001;

/* The utilisation sample of a device that is always busy. */
static const double SAMPLE_FULL = 99;

static struct slot *slot_at(struct slots *slots, size_t index)
{
    return &slots->ring[(slots->first + index) % SLOTS_MAX];
}

static void drop_first(struct slots *slots)
{
    slots->first = (slots->first + 1) % SLOTS_MAX;
    slots->count--;
    slots->unread = MIN(slots->unread, slots->count > 0 ? slots->count - 1 : 0);
}

static void open_slot(struct slots *slots, uint64_t start_us)
{
    if (slots->count == SLOTS_MAX)
        drop_first(slots);
    *slot_at(slots, slots->count++) = (struct slot){.start_us = start_us,
                                                    .end_us = start_us,
                                                    .listed = slots->listed,
                                                    .resting = slots->resting,
                                                    .clients = slots->clients,
                                                    .servers = slots->servers,
                                                    .others = slots->others};
}

void slots_restart(struct slots *slots, uint64_t tick_us)
{
    if (slots->count > 0)
        slots->count--;
    open_slot(slots, tick_us - COUNTER_LAG_US);
    slots->latest_us = tick_us; /* also if the clock was set back */
}

void slots_take_energy(struct slots *slots, uint64_t tick_us, uint64_t energy_uj)
{
    struct slot *open;

    if (slots->count == 0)
        return; /* the first tick is a restart */
    open = slot_at(slots, slots->count - 1);
    open->energy_uj += energy_uj;
    open->end_us = tick_us - COUNTER_LAG_US;
    slots->latest_us = MAX(slots->latest_us, tick_us);
    if (open->end_us - open->start_us + TICK_US / 2 < SLOT_US)
        return;
    if (open->clock_readings == 0 && slots->clock_mhz > 0) {
        open->clock_sum_mhz = slots->clock_mhz;
        open->clock_readings = 1;
    }
    open_slot(slots, open->end_us);
    slots->unread++;
}

/* Adds the activity from `from_us` to `until_us` to the slots of that time. */
static void add_activity(struct slots *slots, uint64_t from_us, uint64_t until_us, bool is_gpm,
                         double busy, const double units[UNIT_COUNT])
{
    for (size_t i = slots->count; i-- > 0;) {
        struct slot *slot = slot_at(slots, i);
        struct slot_activity *activity = is_gpm ? &slot->gpm : &slot->sampled;
        uint64_t end_us = i + 1 == slots->count ? UINT64_MAX : slot->end_us;
        uint64_t from = MAX(from_us, slot->start_us), until = MIN(until_us, end_us);

        if (end_us <= from_us)
            break;
        if (until <= from)
            continue;
        activity->known_us += (double)(until - from);
        activity->busy_us += (double)(until - from) * busy;
        for (size_t u = 0; u < UNIT_COUNT; u++)
            activity->units_us[u] += (double)(until - from) * units[u];
    }
}

void slots_take_gpm(struct slots *slots, uint64_t t_us, const struct sample_gpm *gpm)
{
    /* Of sample_gpm_ids: graphics, SM, occupancy, integer, tensor, HMMA, DRAM, fp64, fp32, fp16. */
    static const uint8_t places[UNIT_COUNT] = {1, 2, 3, 4, 6, 7, 8, 9};
    uint64_t from_us = slots->gpm_us;

    slots->gpm_us = t_us;
    slots->latest_us = MAX(slots->latest_us, t_us);
    for (size_t u = 0; u < UNIT_COUNT; u++) /* what was not read stays as it was */
        if (gpm->valid & (1 << places[u]))
            slots->units[u] = gpm->millipercent[places[u]] / 1e5;
    if (from_us > 0 && from_us < t_us && (gpm->valid & 1))
        add_activity(slots, from_us - GPM_LAG_US, t_us - GPM_LAG_US, true,
                     gpm->millipercent[0] / 1e5, slots->units);
}

void slots_begin_gpm(struct slots *slots, uint64_t t_us, bool was_idle)
{
    const double no_units[UNIT_COUNT] = {0};
    uint64_t from_us = MAX(slots->gpm_us, GPM_LAG_US);

    if (was_idle && from_us < t_us)
        add_activity(slots, from_us - GPM_LAG_US, t_us - GPM_LAG_US, true, 0, no_units);
    for (size_t u = 0; u < UNIT_COUNT; u++)
        slots->units[u] = 0;
    slots->gpm_us = t_us;
}

void slots_take_sample(struct slots *slots, const struct sample_label *sample)
{
    double busy = MIN(sample->sm_percent / SAMPLE_FULL, 1.0);
    double units[UNIT_COUNT] = {[UNIT_MEMORY_BUSY] = sample->memory_percent / 100.0};
    uint64_t from_us = MAX(sample->at_us - SAMPLE_US, slots->sample_us);

    if (sample->at_us <= slots->sample_us)
        return;
    slots->sample_us = sample->at_us;
    add_activity(slots, from_us, sample->at_us, false, busy, units);
}

void slots_take_busy(struct slots *slots, uint64_t t_us, uint64_t interval_us, uint64_t busy_us)
{
    static const double no_units[UNIT_COUNT];
    uint64_t from_us = MAX(t_us - MIN(t_us, interval_us), slots->sample_us);

    if (t_us <= slots->sample_us || interval_us == 0)
        return;
    slots->sample_us = t_us;
    if (slots->count > 0)
        slot_at(slots, slots->count - 1)->is_counted = true;
    add_activity(slots, from_us, t_us, false, (double)busy_us / (double)interval_us, no_units);
}

void slots_take_wins(struct slots *slots, uint64_t at_us, uint32_t tenant, uint32_t count)
{
    slots->resting &= ~(1U << tenant);
    for (size_t i = slots->count; i-- > 0;) {
        struct slot *slot = slot_at(slots, i);

        if (at_us <= slot->start_us)
            continue;
        if (i + 1 == slots->count || at_us <= slot->end_us) { /* or it fell between two slots */
            slot->won[tenant] = (uint8_t)MIN(slot->won[tenant] + count, (uint32_t)UINT8_MAX);
            slot->resting &= ~(1U << tenant);
        }
        return;
    }
}

void slots_take_clock(struct slots *slots, uint32_t clock_mhz)
{
    slots->clock_mhz = clock_mhz;
    if (slots->count > 0) {
        slot_at(slots, slots->count - 1)->clock_sum_mhz += clock_mhz;
        slot_at(slots, slots->count - 1)->clock_readings++;
    }
}

uint32_t slots_tenants(const struct slots *slots)
{
    uint32_t tenants = slots->listed;

    for (size_t i = 0; i < slots->count; i++) {
        const struct slot *slot = &slots->ring[(slots->first + i) % SLOTS_MAX];

        tenants |= slot->listed;
        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            tenants |= slot->won[t] > 0 ? 1U << t : 0;
    }
    return tenants;
}

void slots_take_listed(struct slots *slots, uint32_t listed, uint32_t clients, uint32_t servers)
{
    slots->listed = listed;
    slots->clients = clients;
    slots->servers = servers;
    if (slots->count > 0) {
        struct slot *open = slot_at(slots, slots->count - 1);

        open->has_changed |= open->listed != listed || open->clients != clients;
        open->listed |= listed;
        open->clients |= clients;
        open->servers |= servers;
    }
}

void slots_take_others(struct slots *slots, size_t others)
{
    slots->others = (uint16_t)MIN(others, (size_t)UINT16_MAX);
    if (slots->count > 0) {
        struct slot *open = slot_at(slots, slots->count - 1);

        open->has_changed |= open->others != slots->others;
        open->others = MAX(open->others, slots->others);
    }
}

void slots_take_resting(struct slots *slots, uint32_t resting)
{
    slots->resting = resting;
    if (slots->count > 0)
        slot_at(slots, slots->count - 1)->resting &= resting;
}

const struct slot *slots_next(struct slots *slots, bool is_last_call)
{
    const struct slot *next;

    if (slots->unread == 0)
        return NULL;
    next = slot_at(slots, slots->count - 1 - slots->unread);
    if (!is_last_call && next->end_us + COMPLETE_US > slots->latest_us)
        return NULL;
    slots->unread--;
    return next;
}

struct slot *slots_next_until(struct slots *slots, uint64_t end_us)
{
    while (slots->unread > 0) {
        struct slot *next = slot_at(slots, slots->count - 1 - slots->unread);

        if (next->end_us > end_us)
            return NULL;
        slots->unread--;
        if (next->end_us == end_us)
            return next;
    }
    return NULL;
}

/* In the time of the counter. */
static uint64_t middle_of(const struct slot *slot)
{
    return slot->start_us + (slot->end_us - slot->start_us) / 2 + COUNTER_LAG_US;
}

const struct slot *slots_of_window(const struct slots *slots, uint64_t start_us, uint64_t end_us,
                                   size_t *cursor)
{
    while (*cursor + 1 < slots->count) { /* not the open one */
        const struct slot *slot = &slots->ring[(slots->first + (*cursor)++) % SLOTS_MAX];

        if (middle_of(slot) > end_us)
            return NULL;
        if (middle_of(slot) > start_us)
            return slot;
    }
    return NULL;
}

void slots_drop_until(struct slots *slots, uint64_t tick_us)
{
    while (slots->count > 1 + slots->unread && middle_of(slot_at(slots, 0)) <= tick_us)
        drop_first(slots);
}

bool slot_read(const struct slot *slot, struct slot_reading *ret_reading)
{
    double duration_us = (double)(slot->end_us - slot->start_us);
    bool has_gpm = slot->gpm.known_us * 2 >= duration_us;
    const struct slot_activity *activity = has_gpm ? &slot->gpm : &slot->sampled;

    if (duration_us <= 0 || activity->known_us * 2 < duration_us || activity->busy_us <= 0)
        return false;
    ret_reading->has_gpm = has_gpm;
    ret_reading->clock_mhz =
        slot->clock_readings > 0 ? (double)slot->clock_sum_mhz / slot->clock_readings : 0;
    ret_reading->busy_s = activity->busy_us / activity->known_us * duration_us / 1e6;
    for (size_t u = 0; u < UNIT_COUNT; u++)
        ret_reading->units[u] = MIN(activity->units_us[u] / activity->busy_us, 1.0);
    return true;
}

bool slot_is_quiet(const struct slot *slot)
{
    double duration_us = (double)(slot->end_us - slot->start_us);

    for (size_t t = 0; t < TENANTS_MAX; t++)
        if (slot->won[t] > 0)
            return false;
    return slot->gpm.busy_us <= QUIET_BUSY * duration_us &&
           slot->gpm.known_us >= QUIET_KNOWN * duration_us;
}

static uint32_t move_bit(uint32_t bits, uint32_t from, uint32_t to)
{
    bool was_set = bits & (1U << from);

    bits &= ~(1U << from);
    return was_set && to != TENANT_NONE ? bits | 1U << to : bits;
}

void slots_move(struct slots *slots, uint32_t tenant, uint32_t to)
{
    for (size_t i = 0; i < slots->count; i++) {
        struct slot *slot = slot_at(slots, i);

        slot->listed = move_bit(slot->listed, tenant, to);
        slot->clients = move_bit(slot->clients, tenant, to);
        slot->servers = move_bit(slot->servers, tenant, to);
        if (to != TENANT_NONE)
            slot->won[to] = slot->won[tenant];
        slot->won[tenant] = 0;
    }
    slots->listed = move_bit(slots->listed, tenant, to);
    slots->clients = move_bit(slots->clients, tenant, to);
    slots->servers = move_bit(slots->servers, tenant, to);
}
