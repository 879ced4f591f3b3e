/* The ledger's meters, and what is booked at them. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

static const double POWER_SMOOTHING_US = 10e6;

int ledger_new(const struct ledger_options *options, struct ledger **ret_ledger)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (!ledger)
        return -ENOMEM;
    ledger->options = *options;
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
    for (size_t i = 0; i < ledger->process_slots; i++)
        ledger_process_done(&ledger->processes[i]);
    for (size_t i = 0; i < ledger->workload_slots; i++)
        ledger_workload_done(&ledger->workloads[i]);
    free(ledger->meters);
    free(ledger->processes);
    free(ledger->workloads);
    free(ledger->accounts);
    map_done(&ledger->process_map);
    map_done(&ledger->workload_map);
    free(ledger);
}

int ledger_add_meter(struct ledger *ledger, enum meter_kind kind, const char *meter_id,
                     uint32_t gpu, uint32_t *ret_meter)
{
    _cleanup_free_ char *id = NULL;
    struct ledger_meter *meters;

    for (size_t i = 0; i < ledger->meter_count; i++) {
        if (ledger->meters[i].kind != kind || strcmp(ledger->meters[i].meter_id, meter_id) != 0)
            continue;
        ledger->meters[i].gpu = gpu;
        *ret_meter = (uint32_t)i;
        return 0;
    }
    id = strdup(meter_id);
    if (!id)
        return -ENOMEM;
    meters = realloc(ledger->meters, (ledger->meter_count + 1) * sizeof(*meters));
    if (!meters)
        return -ENOMEM;
    ledger->meters = meters;
    meters[ledger->meter_count] = (struct ledger_meter){
        .kind = kind,
        .meter_id = TAKE_PTR(id),
        .gpu = gpu,
        .overflow = LEDGER_NONE,
    };
    *ret_meter = (uint32_t)ledger->meter_count++;
    return 0;
}

/* Folds a window's energy into the account's smoothed power. */
static void smooth_power(struct ledger_account *account, uint64_t energy_uj, uint64_t start_us,
                         uint64_t end_us)
{
    double duration_us = (double)(end_us - start_us);

    if (end_us > account->power_us) {
        account->power_mw *= exp(-(double)(end_us - account->power_us) / POWER_SMOOTHING_US);
        account->power_us = end_us;
    }
    if (duration_us > 0)
        account->power_mw +=
            (double)energy_uj * 1000 / duration_us * (1 - exp(-duration_us / POWER_SMOOTHING_US));
}

double ledger_power_mw(const struct ledger *ledger, const struct ledger_account *account)
{
    uint64_t until_us = ledger->meters[account->meter].settled_until_us;

    if (until_us <= account->power_us)
        return account->power_mw;
    return account->power_mw * exp(-(double)(until_us - account->power_us) / POWER_SMOOTHING_US);
}

void ledger_advance(struct ledger *ledger, uint64_t t_us)
{
    ledger->latest_us = MAX(ledger->latest_us, t_us);
}

static void book_unowned(struct ledger_meter *meter, enum unowned owner, uint64_t energy_uj,
                         struct price_rate rate)
{
    meter->unowned_uj[owner] += energy_uj;
    bill_add_energy(&meter->unowned_bill[owner], energy_uj, rate);
}

static int book_one(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us,
                    struct price_rate rate, const struct booking *booking)
{
    struct ledger_process *process = NULL;
    struct ledger_account *account;
    uint32_t workload = booking->workload, index;
    int r;

    if (booking->process != LEDGER_NONE) {
        process = &ledger->processes[booking->process];
        workload = process->workload;
    } else if (!booking->to_workload) {
        book_unowned(&ledger->meters[meter], booking->unowned, booking->energy_uj, rate);
        return 0;
    }
    r = ledger_open_account(ledger, workload, meter, &index);
    if (r < 0)
        return r;
    account = &ledger->accounts[index];
    account->account.energy_uj[booking->tier][booking->method] += booking->energy_uj;
    account->account.known_uj += booking->known_uj;
    bill_add_energy(&account->account.bill, booking->energy_uj, rate);
    if (booking->energy_uj > 0 && ledger->kept_kinds & 1U << ledger->meters[meter].kind)
        ledger->workloads[workload].kept = true;
    smooth_power(account, booking->energy_uj, start_us, end_us);
    if (!process)
        return 0;

    if (booking->tier == TIER_ACTIVE)
        process->active_uj += booking->energy_uj;
    else
        process->idle_uj += booking->energy_uj;
    if (booking->method == METHOD_MEASURED)
        process->measured_uj += booking->energy_uj;
    process->known_uj += booking->known_uj;
    process->last_booked_us = ledger->latest_us;
    return 0;
}

int ledger_book(struct ledger *ledger, uint32_t meter, uint64_t energy_uj, uint64_t start_us,
                uint64_t end_us, const struct booking *bookings, size_t count)
{
    const struct price_rate rate = ledger_rate_at(ledger, end_us);
    int result = 0;

    ledger->meters[meter].energy_uj += energy_uj;
    bill_add_energy(&ledger->meters[meter].bill, energy_uj, rate);
    ledger->meters[meter].settled_until_us = end_us;
    for (size_t i = 0; i < count; i++) {
        int r = book_one(ledger, meter, start_us, end_us, rate, &bookings[i]);

        if (r < 0) {
            /* Out of memory for an account: the joules are real and are kept, without an owner. */
            book_unowned(&ledger->meters[meter], UNOWNED_UNATTRIBUTED, bookings[i].energy_uj, rate);
            result = r;
        }
    }
    ledger_book_time(ledger, meter, start_us, end_us, bookings, count);
    return result;
}

void ledger_book_gap(struct ledger *ledger, uint32_t meter, uint64_t energy_uj)
{
    const struct price_rate rate = ledger_rate_at(ledger, ledger->latest_us);

    ledger->meters[meter].energy_uj += energy_uj;
    bill_add_energy(&ledger->meters[meter].bill, energy_uj, rate);
    book_unowned(&ledger->meters[meter], UNOWNED_GAP, energy_uj, rate);
}

struct account ledger_owned(const struct ledger *ledger, uint32_t meter)
{
    struct account owned = ledger->meters[meter].retired;

    for (size_t w = 0; w < ledger->workload_slots; w++) {
        if (!ledger->workloads[w].used)
            continue;
        for (uint32_t a = ledger->workloads[w].first_account; a != LEDGER_NONE;
             a = ledger->accounts[a].next)
            if (ledger->accounts[a].meter == meter)
                account_add(&owned, &ledger->accounts[a].account);
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
    for (size_t p = 0; p < ledger->process_slots; p++)
        if (ledger->processes[p].used && ledger->processes[p].meter == meter)
            processes += ledger->processes[p].active_uj + ledger->processes[p].idle_uj;
    books = (int64_t)(m->energy_uj - unowned - workloads);
    split = m->kind == METER_GPU ? (int64_t)(workloads - processes) : 0;
    return llabs(books) >= llabs(split) ? books : split;
}
