/* The ledger's meters and the bookings at them: energy, bills, and the time of devices. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

static const double POWER_SMOOTHING_US = 10e6;

/* A longer stretch of device time, between two windows or in one, has no owner: the clock was set,
 * or the machine slept. If the clock was set back by more, device time restarts. */
static const uint64_t STRETCH_MAX_US = 3600 * USEC_PER_SEC;

int ledger_new(const struct ledger_options *options, struct ledger **ret_ledger)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (!ledger)
        return -ENOMEM;
    ledger->options = *options;
    ledger->scopes.workloads_max = options->max_workloads;
    ledger->free_account = LEDGER_NONE;
    *ret_ledger = ledger;
    return 0;
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (size_t i = 0; i < ledger->meter_count; i++)
        free(ledger->meters[i].meter_id);
    for (size_t i = 0; i < ledger->counts.process_slots; i++)
        ledger_process_done(&ledger->processes[i]);
    for (size_t i = 0; i < ledger->counts.workload_slots; i++)
        ledger_workload_done(&ledger->workloads[i]);
    free(ledger->meters);
    free(ledger->processes);
    free(ledger->workloads);
    free(ledger->accounts);
    map_done(&ledger->process_map);
    map_done(&ledger->workload_map);
    scopes_done(&ledger->scopes);
    free(ledger);
}

size_t ledger_meter_count(const struct ledger *ledger)
{
    return ledger->meter_count;
}

const struct ledger_meter *ledger_meter(const struct ledger *ledger, uint32_t meter)
{
    return &ledger->meters[meter];
}

const struct ledger_process *ledger_process(const struct ledger *ledger, uint32_t process)
{
    return ledger->processes[process].used ? &ledger->processes[process] : NULL;
}

const struct ledger_workload *ledger_workload(const struct ledger *ledger, uint32_t workload)
{
    return ledger->workloads[workload].used ? &ledger->workloads[workload] : NULL;
}

const struct ledger_account *ledger_next_account(const struct ledger *ledger,
                                                 const struct ledger_workload *workload,
                                                 const struct ledger_account *before)
{
    uint32_t next = before ? before->next : workload->first_account;

    return next != LEDGER_NONE ? &ledger->accounts[next] : NULL;
}

const struct ledger_counts *ledger_counts(const struct ledger *ledger)
{
    return &ledger->counts;
}

uint64_t ledger_retention_us(const struct ledger *ledger)
{
    return ledger->options.retention_us;
}

void ledger_advance(struct ledger *ledger, uint64_t t_us)
{
    ledger->latest_us = MAX(ledger->latest_us, t_us);
}

bool ledger_find_meter(const struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                       uint32_t *ret_meter)
{
    for (size_t i = 0; i < ledger->meter_count; i++) {
        if (ledger->meters[i].kind != kind || strcmp(ledger->meters[i].meter_id, meter_id) != 0)
            continue;
        *ret_meter = (uint32_t)i;
        return true;
    }
    return false;
}

int ledger_add_meter(struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                     uint32_t gpu, uint32_t *ret_meter)
{
    char *id;

    if (ledger_find_meter(ledger, kind, meter_id, ret_meter)) {
        ledger->meters[*ret_meter].gpu = gpu;
        return 0;
    }
    if (grow_zeroed(&ledger->meters, &ledger->meter_slots, ledger->meter_count + 1,
                    sizeof(*ledger->meters)) < 0 ||
        !(id = strdup(meter_id)))
        return -ENOMEM;
    ledger->meters[ledger->meter_count] =
        (struct ledger_meter){.kind = kind, .meter_id = id, .gpu = gpu, .overflow = LEDGER_NONE};
    *ret_meter = (uint32_t)ledger->meter_count++;
    return 0;
}

void ledger_power_add(struct ledger_power *power, uint64_t energy_uj, uint64_t start_us,
                      uint64_t end_us)
{
    double duration_us = end_us > start_us ? (double)(end_us - start_us) : 0;

    if (end_us > power->until_us) {
        power->power_mw *= exp(-(double)(end_us - power->until_us) / POWER_SMOOTHING_US);
        power->until_us = end_us;
    }
    if (duration_us > 0)
        power->power_mw +=
            (double)energy_uj * 1000 / duration_us * (1 - exp(-duration_us / POWER_SMOOTHING_US));
}

double ledger_power_at(const struct ledger_power *power, uint64_t t_us)
{
    if (t_us <= power->until_us)
        return power->power_mw;
    return power->power_mw * exp(-(double)(t_us - power->until_us) / POWER_SMOOTHING_US);
}

double ledger_power_since(double power_mw, uint64_t from_us, uint64_t until_us)
{
    return from_us > 0 && from_us < until_us
               ? power_mw / (1 - exp(-(double)(until_us - from_us) / POWER_SMOOTHING_US))
               : power_mw;
}

double ledger_power_mw(const struct ledger *ledger, const struct ledger_account *account)
{
    const struct ledger_meter *m = &ledger->meters[account->meter];

    /* As long as the meter was seen, so that rows are the sum of the meter: before it began, a
     * workload drew nothing. */
    return ledger_power_since(ledger_power_at(&account->power, m->settled_until_us),
                              m->seen_from_us, m->settled_until_us);
}

double ledger_unowned_power_mw(const struct ledger *ledger, uint32_t meter, enum unowned owner)
{
    const struct ledger_meter *m = &ledger->meters[meter];
    const struct ledger_power *power = &m->unowned_power[owner];

    /* A gap is booked at once, and windows before it may still be pending. */
    return power->until_us > m->settled_until_us
               ? 0
               : ledger_power_since(ledger_power_at(power, m->settled_until_us), m->seen_from_us,
                                    m->settled_until_us);
}

/* The meter is settled up to here, which is earlier than before if the clock was set back: then no
 * power is of a later time, or it would not fade before the clock has caught up. */
static void settle_until(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t t_us)
{
    struct ledger_meter *m = &ledger->meters[meter];
    uint64_t before_us = m->settled_until_us;

    m->settled_until_us = t_us;
    if (m->seen_from_us == 0)
        m->seen_from_us = MIN(start_us, t_us);
    if (t_us >= before_us)
        return;
    if (m->seen_from_us > 1)
        m->seen_from_us = t_us - MIN(before_us - MIN(m->seen_from_us, before_us), t_us - 1);
    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        m->unowned_power[i].until_us = MIN(m->unowned_power[i].until_us, t_us);
    for (size_t i = 0; i < ledger->counts.accounts; i++)
        if (ledger->accounts[i].meter == meter)
            ledger->accounts[i].power.until_us = MIN(ledger->accounts[i].power.until_us, t_us);
}

static void add_rate(struct ledger_rates *rates, uint64_t rate, uint64_t from_us)
{
    /* Only after the clock was set back are there later rates. */
    while (rates->count > 0 && rates->of[rates->count - 1].from_us >= from_us)
        rates->count--;
    if (rates->count == ARRAY_SIZE(rates->of))
        memmove(rates->of, rates->of + 1, --rates->count * sizeof(rates->of[0]));
    rates->of[rates->count].from_us = from_us;
    rates->of[rates->count++].rate = rate;
}

static uint64_t rate_at(const struct ledger_rates *rates, uint64_t t_us)
{
    size_t i = rates->count;

    if (i == 0)
        return 0;
    while (i > 1 && rates->of[i - 1].from_us > t_us)
        i--;
    return rates->of[i - 1].rate;
}

void ledger_set_price(struct ledger *ledger, const struct price *price, uint64_t from_us)
{
    const struct price_rate rate = price_rate_of(price);

    if (price->factor.known)
        add_rate(&ledger->emission_rates, rate.emission, from_us);
    if (price->cost.known)
        add_rate(&ledger->cost_rates, rate.cost, from_us);
}

struct price_rate ledger_rate_at(const struct ledger *ledger, uint64_t t_us)
{
    return (struct price_rate){
        .emission = rate_at(&ledger->emission_rates, t_us),
        .cost = rate_at(&ledger->cost_rates, t_us),
    };
}

static uint64_t stretch_us(uint64_t from_us, uint64_t to_us)
{
    return to_us - from_us <= STRETCH_MAX_US ? to_us - from_us : 0;
}

/* Embodied carbon of this time of the meter's device. */
static unsigned __int128 embodied_of(const struct ledger *ledger, uint32_t meter, uint64_t time_us)
{
    return embodied_bill(ledger->options.embodied.of[ledger->meters[meter].kind], time_us);
}

static void bill_unowned_time(struct ledger *ledger, uint32_t meter, enum unowned owner,
                              uint64_t time_us)
{
    unsigned __int128 embodied = embodied_of(ledger, meter, time_us);

    ledger->meters[meter].bill.embodied += embodied;
    ledger->meters[meter].unowned_bill[owner].embodied += embodied;
}

/* Advances the device time to the end of a window and returns the window's part of it; time before
 * the window was unmonitored. Windows come in order, so until_us suffices to count no time twice:
 * if the clock is set back a little, device time stands still until the clock has caught up. */
static uint64_t advance_device(struct ledger *ledger, uint32_t meter, uint64_t start_us,
                               uint64_t end_us)
{
    struct ledger_device *device = &ledger->meters[meter].device;
    uint64_t until_us = device->until_us;

    start_us = MIN(start_us, end_us); /* the clock was set back in it */
    if (until_us == 0 || until_us - MIN(until_us, end_us) > STRETCH_MAX_US)
        until_us = start_us;
    if (until_us >= end_us) {
        device->until_us = until_us;
        return 0;
    }
    if (start_us > until_us)
        bill_unowned_time(ledger, meter, UNOWNED_GAP, stretch_us(until_us, start_us));
    device->until_us = end_us;
    return stretch_us(MAX(start_us, until_us), end_us);
}

/* Advances the device time over a window, bills it to the meter, and returns the time to divide
 * like its energy. */
static uint64_t device_time(struct ledger *ledger, uint32_t meter, uint64_t energy_uj,
                            uint64_t start_us, uint64_t end_us)
{
    struct ledger_device *device = &ledger->meters[meter].device;
    uint64_t time_us;

    if (!ledger->options.embodied.of[ledger->meters[meter].kind].known) {
        *device = (struct ledger_device){0}; /* a later run with a rate does not bill this time */
        return 0;
    }
    if (energy_uj == 0 && device->until_us == 0)
        return 0; /* it starts with the first energy: how long the device was there is unknown */
    time_us = device->undivided_us + advance_device(ledger, meter, start_us, end_us);
    if (energy_uj == 0 && time_us <= STRETCH_MAX_US) {
        device->undivided_us = time_us;
        return 0;
    }
    device->undivided_us = 0;
    if (energy_uj == 0) { /* too long to charge to the next user */
        bill_unowned_time(ledger, meter, UNOWNED_IDLE, time_us);
        return 0;
    }
    ledger->meters[meter].bill.embodied += embodied_of(ledger, meter, time_us);
    return time_us;
}

void ledger_pass_time(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us)
{
    (void)device_time(ledger, meter, 0, start_us, end_us);
    if (start_us == 0) /* the meter was not read yet */
        return;
    history_book(ledger->options.history, 0, start_us, end_us);
    settle_until(ledger, meter, start_us, MAX(end_us, ledger->meters[meter].settled_until_us));
}

/* What is booked of a meter, and over which time it was used. */
struct part {
    uint64_t energy_uj, start_us, end_us;
    unsigned __int128 embodied;
    struct price_rate rate;
};

static void book_unowned(struct ledger *ledger, uint32_t index, enum unowned owner,
                         const struct part *part)
{
    struct ledger_meter *meter = &ledger->meters[index];

    meter->unowned_uj[owner] += part->energy_uj;
    meter->unowned_bill[owner].embodied += part->embodied;
    bill_add_energy(&meter->unowned_bill[owner], part->energy_uj, part->rate);
    ledger_power_add(&meter->unowned_power[owner], part->energy_uj, part->start_us, part->end_us);
    history_book_unowned(ledger->options.history, owner, part->energy_uj);
}

static void book_history(const struct ledger *ledger, uint32_t workload, uint64_t energy_uj)
{
    const struct ledger_workload *to = &ledger->workloads[workload];

    if (to->kind == WORKLOAD_SYSTEM)
        history_book_unowned(ledger->options.history, UNOWNED_SYSTEM, energy_uj);
    else
        history_book_workload(ledger->options.history, to->kind, to->id, energy_uj);
}

/* Books a part of a window. */
static int book_part(struct ledger *ledger, uint32_t meter, const struct part *part,
                     const struct booking *booking)
{
    struct ledger_process *process =
        booking->process != LEDGER_NONE ? &ledger->processes[booking->process] : NULL;
    uint32_t workload = process ? process->workload : booking->workload;
    struct ledger_account *account;
    uint32_t index;
    int r;

    if (!process && !booking->to_workload) {
        book_unowned(ledger, meter, booking->unowned, part);
        return 0;
    }
    r = ledger_open_account(ledger, workload, meter, &index);
    if (r < 0) { /* the energy is real: it is kept, without an owner */
        book_unowned(ledger, meter, UNOWNED_UNATTRIBUTED, part);
        return r;
    }
    account = &ledger->accounts[index];
    account->account.energy_uj[booking->tier][booking->method] += part->energy_uj;
    account->account.known_uj += booking->known_uj;
    account->account.uncertain_uj += booking->uncertain_uj;
    account->account.bill.embodied += part->embodied;
    bill_add_energy(&account->account.bill, part->energy_uj, part->rate);
    ledger_power_add(&account->power, part->energy_uj, part->start_us, part->end_us);
    book_history(ledger, workload, part->energy_uj);
    if (ledger->kept_kinds & 1U << ledger->meters[meter].kind)
        ledger->workloads[workload].kept = true;
    if (!process)
        return 0;
    *(booking->tier == TIER_ACTIVE ? &process->active_uj : &process->idle_uj) += part->energy_uj;
    process->measured_uj += booking->method == METHOD_MEASURED ? part->energy_uj : 0;
    process->known_uj += booking->known_uj;
    process->uncertain_uj += booking->uncertain_uj;
    process->last_booked_us = ledger->latest_us;
    return 0;
}

static void book_meter(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t at_us)
{
    ledger->meters[meter].energy_uj += energy_uj;
    bill_add_energy(&ledger->meters[meter].bill, energy_uj, ledger_rate_at(ledger, at_us));
}

int ledger_book(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                uint64_t end_us, const struct booking *bookings, size_t count)
{
    uint64_t time_us = device_time(ledger, meter, energy_uj, start_us, end_us);
    struct part part = {
        .start_us = start_us, .end_us = end_us, .rate = ledger_rate_at(ledger, end_us)};
    uint64_t booked_uj = 0, booked_us = 0;
    int result = 0;

    book_meter(ledger, meter, energy_uj, end_us);
    history_book(ledger->options.history, energy_uj, start_us, end_us);
    settle_until(ledger, meter, start_us, end_us);
    for (size_t i = 0; i < count; i++) {
        uint64_t until_us;
        int r;

        if (bookings[i].energy_uj == 0)
            continue;
        part.energy_uj = bookings[i].energy_uj;
        /* Each has the time from where the energy before its own ends: no rounding loses any. */
        booked_uj += bookings[i].energy_uj;
        until_us = (uint64_t)((unsigned __int128)time_us * booked_uj / energy_uj);
        part.embodied = embodied_of(ledger, meter, until_us - booked_us);
        r = book_part(ledger, meter, &part, &bookings[i]);
        result = r < 0 ? r : result;
        booked_us = until_us;
    }
    return result;
}

void ledger_book_unattributed(struct ledger *ledger, uint32_t meter, uint64_t energy_uj,
                              uint64_t start_us, uint64_t end_us)
{
    const struct booking booking = {
        .process = LEDGER_NONE, .unowned = UNOWNED_UNATTRIBUTED, .energy_uj = energy_uj};

    (void)ledger_book(ledger, meter, energy_uj, start_us, end_us, &booking, 1);
}

void ledger_book_gap(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                     uint64_t end_us)
{
    const struct part part = {energy_uj, start_us, end_us,
                              .rate = ledger_rate_at(ledger, ledger->latest_us)};

    book_meter(ledger, meter, energy_uj, ledger->latest_us);
    history_book(ledger->options.history, energy_uj, start_us, end_us);
    book_unowned(ledger, meter, UNOWNED_GAP, &part);
}

void ledger_drop_costs(struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->meter_count; i++) {
        struct ledger_meter *meter = &ledger->meters[i];

        meter->bill.cost = meter->retired.bill.cost = 0;
        for (size_t owner = 0; owner < UNOWNED_COUNT; owner++)
            meter->unowned_bill[owner].cost = 0;
    }
    for (size_t i = 0; i < ledger->counts.accounts; i++)
        ledger->accounts[i].account.bill.cost = 0;
}

void ledger_note_unknown_gap(struct ledger *ledger, uint32_t meter)
{
    ledger->meters[meter].unknown_gaps++;
}

struct account ledger_owned(const struct ledger *ledger, uint32_t meter)
{
    struct account owned = ledger->meters[meter].retired;

    for (size_t w = 0; w < ledger->counts.workload_slots; w++) {
        const struct ledger_account *at = NULL;

        while (ledger->workloads[w].used &&
               (at = ledger_next_account(ledger, &ledger->workloads[w], at)))
            if (at->meter == meter)
                account_add(&owned, &at->account);
    }
    return owned;
}

int64_t ledger_imbalance_uj(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_meter *m = &ledger->meters[meter];
    const struct account owned = ledger_owned(ledger, meter);
    uint64_t unowned = 0, workloads = account_total_uj(&owned), processes = m->swept_uj;
    int64_t books, split;

    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        unowned += m->unowned_uj[i];
    for (size_t p = 0; p < ledger->counts.process_slots; p++)
        if (ledger->processes[p].used && ledger->processes[p].meter == meter)
            processes += ledger->processes[p].active_uj + ledger->processes[p].idle_uj;
    books = (int64_t)(m->energy_uj - unowned - workloads);
    split = m->kind == METER_GPU ? (int64_t)(workloads - processes) : 0;
    return llabs(books) >= llabs(split) ? books : split;
}

bool ledger_is_balanced(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_meter *m = &ledger->meters[meter];
    struct account owned = ledger_owned(ledger, meter);

    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        bill_add(&owned.bill, &m->unowned_bill[i]);
    return ledger_imbalance_uj(ledger, meter) == 0 && owned.bill.emission == m->bill.emission &&
           owned.bill.cost == m->bill.cost && owned.bill.embodied == m->bill.embodied;
}
