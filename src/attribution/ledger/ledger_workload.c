/* The ledger's workload accounts: opened, left, retired. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* The shortest time between two retirements: each of them starts new series (see below). */
static const uint64_t RETIRE_INTERVAL_US = 60 * USEC_PER_SEC;

static const struct workload_owner other = {.kind = WORKLOAD_OTHER, .id = "other"};

static uint64_t hash_of(enum workload_kind kind, const char *id)
{
    return map_hash_u64(map_hash_bytes(span_of(id)) + kind);
}

static bool is_workload(const void *context, uint32_t value, const void *key)
{
    const struct ledger_workload *workload = &((const struct ledger *)context)->workloads[value];
    const struct workload_owner *wanted = key;

    return workload->kind == wanted->kind && strcmp(workload->id, wanted->id) == 0;
}

static int take_slot(struct ledger *ledger, uint32_t *ret_index)
{
    size_t slots = MAX(ledger->workload_slots * 2, (size_t)16);
    struct ledger_workload *workloads;

    if (ledger->counts.workloads < ledger->workload_slots) {
        for (*ret_index = 0; ledger->workloads[*ret_index].used; ++*ret_index)
            ;
        return 0;
    }
    workloads = realloc(ledger->workloads, slots * sizeof(*workloads));
    if (!workloads)
        return -ENOMEM;
    memset(workloads + ledger->workload_slots, 0,
           (slots - ledger->workload_slots) * sizeof(*workloads));
    ledger->workloads = workloads;
    *ret_index = (uint32_t)ledger->workload_slots;
    ledger->workload_slots = slots;
    return 0;
}

void ledger_workload_done(struct ledger_workload *workload)
{
    free(workload->id);
    free(workload->container_id);
    free(workload->pod_uid);
    ledger_names_done(&workload->names);
    *workload = (struct ledger_workload){0};
}

static bool is_container(enum workload_kind kind)
{
    return kind == WORKLOAD_POD || kind == WORKLOAD_CONTAINER;
}

static int open_new(struct ledger *ledger, const struct workload_owner *owner,
                    uint32_t *ret_workload)
{
    struct ledger_workload workload = {
        .used = true,
        .serial = ++ledger->last_serial,
        .kind = owner->kind,
        .id = strdup(owner->id),
        /* A job or VM is one row, whatever containers run in it. */
        .container_id = owner->container_id[0] && is_container(owner->kind)
                            ? strdup(owner->container_id)
                            : NULL,
        .pod_uid = owner->pod_uid[0] ? strdup(owner->pod_uid) : NULL,
        .opened_us = ledger->latest_us,
        .first_account = LEDGER_NONE,
    };
    uint32_t index;
    int r = workload.id ? take_slot(ledger, &index) : -ENOMEM;

    if (r == 0)
        r = map_insert(&ledger->workload_map, hash_of(owner->kind, owner->id), index);
    if (r < 0) {
        ledger_workload_done(&workload);
        return r;
    }
    ledger->workloads[index] = workload;
    ledger->counts.workloads++;
    *ret_workload = index;
    return 0;
}

/* Those that are everybody's are there for ever: their counters must never go back. */
static bool is_common(enum workload_kind kind)
{
    return kind == WORKLOAD_OTHER || kind == WORKLOAD_SYSTEM;
}

/* Closes a workload; what its accounts hold goes to the meters' `retired`. */
static void retire(struct ledger *ledger, uint32_t index)
{
    struct ledger_workload *workload = &ledger->workloads[index];

    while (workload->first_account != LEDGER_NONE) {
        uint32_t at = workload->first_account;
        struct ledger_account *account = &ledger->accounts[at];

        account_add(&ledger->meters[account->meter].retired, &account->account);
        workload->first_account = account->next;
        account->next = ledger->free_account;
        ledger->free_account = at;
    }
    map_remove(&ledger->workload_map, hash_of(workload->kind, workload->id), index);
    ledger_workload_done(workload);
    ledger->counts.workloads--;
}

/*
 * Retired joules are shown under an id that tells when workloads were last retired. So each
 * retirement ends the old series and starts new ones at the new total: sums of the values still
 * balance, and sums of increase() do not count those joules a second time. No id may come twice.
 */
static void retire_ended(struct ledger *ledger, uint64_t now_us, bool need_room)
{
    bool any = false;

    for (uint32_t i = 0; i < ledger->workload_slots; i++) {
        if (!ledger->workloads[i].used || ledger->workloads[i].member_count > 0 ||
            is_common(ledger->workloads[i].kind) || (!need_room && ledger->workloads[i].kept))
            continue;
        retire(ledger, i);
        any = true;
    }
    if (any)
        ledger->counts.retired_at_us = MAX(now_us, ledger->counts.retired_at_us + 1);
}

bool ledger_find_workload(const struct ledger *ledger, const struct workload_owner *owner,
                          uint32_t *ret_workload)
{
    return map_find(&ledger->workload_map, hash_of(owner->kind, owner->id), is_workload, ledger,
                    owner, ret_workload);
}

int ledger_open_workload(struct ledger *ledger, const struct workload_owner *owner,
                         uint32_t *ret_workload)
{
    if (ledger_find_workload(ledger, owner, ret_workload))
        return 0;
    if (is_common(owner->kind))
        return open_new(ledger, owner, ret_workload);
    if (ledger->counts.workloads >= ledger->options.max_workloads)
        retire_ended(ledger, ledger->latest_us, true);
    if (ledger->counts.workloads < ledger->options.max_workloads)
        return open_new(ledger, owner, ret_workload);
    ledger->counts.workloads_dropped++;
    return ledger_open_workload(ledger, &other, ret_workload);
}

int ledger_open_account(struct ledger *ledger, uint32_t workload, uint32_t meter,
                        uint32_t *ret_account)
{
    uint32_t *link = &ledger->workloads[workload].first_account, index;

    for (; *link != LEDGER_NONE; link = &ledger->accounts[*link].next) {
        if (ledger->accounts[*link].meter != meter)
            continue;
        *ret_account = *link;
        return 0;
    }
    if (ledger->free_account == LEDGER_NONE) {
        size_t slots = MAX(ledger->account_slots * 2, (size_t)16);
        struct ledger_account *accounts = realloc(ledger->accounts, slots * sizeof(*accounts));

        if (!accounts)
            return -ENOMEM;
        ledger->accounts = accounts;
        for (size_t i = slots; i-- > ledger->account_slots;) {
            accounts[i].next = ledger->free_account;
            ledger->free_account = (uint32_t)i;
        }
        ledger->account_slots = slots;
    }
    index = ledger->free_account;
    ledger->free_account = ledger->accounts[index].next;
    ledger->accounts[index] = (struct ledger_account){
        .meter = meter,
        .next = ledger->workloads[workload].first_account,
    };
    ledger->workloads[workload].first_account = index;
    *ret_account = index;
    return 0;
}

static uint64_t workload_total_uj(const struct ledger *ledger, uint32_t workload)
{
    uint64_t total = 0;

    for (uint32_t a = ledger->workloads[workload].first_account; a != LEDGER_NONE;
         a = ledger->accounts[a].next)
        total += account_total_uj(&ledger->accounts[a].account);
    return total;
}

void ledger_join_workload(struct ledger *ledger, uint32_t workload)
{
    ledger->workloads[workload].member_count++;
}

void ledger_leave_workload(struct ledger *ledger, uint32_t workload)
{
    if (--ledger->workloads[workload].member_count == 0 &&
        !is_common(ledger->workloads[workload].kind) && workload_total_uj(ledger, workload) == 0 &&
        !ledger->workloads[workload].kept)
        retire(ledger, workload);
}

void ledger_retire_workloads(struct ledger *ledger, uint64_t now_us)
{
    if (now_us >= ledger->counts.retired_at_us + RETIRE_INTERVAL_US)
        retire_ended(ledger, now_us, false);
}

void ledger_keep_booked(struct ledger *ledger, unsigned kinds)
{
    for (size_t i = 0; i < ledger->workload_slots; i++)
        ledger->workloads[i].kept = false;
    ledger->kept_kinds = kinds;
}

void ledger_keep_workload(struct ledger *ledger, uint32_t workload)
{
    ledger->workloads[workload].kept = true;
}
