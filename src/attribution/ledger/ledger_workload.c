/* The ledger's workload accounts: opened, named, left, retired. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

/* Minimum time between two retirements: each of them starts new series (see retire_ended). */
static const uint64_t RETIRE_INTERVAL_US = 60 * USEC_PER_SEC;

static uint64_t workload_hash(enum workload_kind kind, const char *id)
{
    return map_hash_u64(map_hash_bytes(span_of(id)) + kind);
}

static bool has_owner(const void *context, uint32_t value, const void *key)
{
    const struct ledger_workload *workload = &((const struct ledger *)context)->workloads[value];
    const struct workload_owner *wanted = key;

    return workload->kind == wanted->kind && strcmp(workload->id, wanted->id) == 0;
}

int ledger_text_set(char **text, const char *value)
{
    char *copy = value[0] != '\0' ? strdup(value) : NULL;

    if (value[0] != '\0' && !copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

void ledger_identity_done(struct ledger_identity *identity)
{
    free(identity->container_id);
    free(identity->pod_uid);
    free(identity->names_text);
}

void ledger_workload_done(struct ledger_workload *workload)
{
    free(workload->id);
    ledger_identity_done(&workload->identity);
    *workload = (struct ledger_workload){0};
}

static void copy_text(char *text, const char *from)
{
    if (from)
        memcpy(text, from, strlen(from) + 1); /* it came from a field of the same size */
}

/* Shared by everything and never retired: their counters must not go back. */
static bool is_permanent(enum workload_kind kind)
{
    return kind == WORKLOAD_OTHER || kind == WORKLOAD_SYSTEM;
}

static int add_workload(struct ledger *ledger, const struct workload_owner *owner,
                        uint32_t *ret_workload)
{
    /* A job or VM is one row, whatever containers run in it. */
    bool is_container = owner->kind == WORKLOAD_POD || owner->kind == WORKLOAD_CONTAINER;
    struct ledger_workload workload = {
        .used = true,
        .serial = ++ledger->last_serial,
        .kind = owner->kind,
        .identity.opened_us = ledger->latest_us,
        .first_account = LEDGER_NONE,
    };
    uint32_t index;

    while (ledger->lowest_free < ledger->counts.workload_slots &&
           ledger->workloads[ledger->lowest_free].used)
        ledger->lowest_free++;
    index = ledger->lowest_free;
    if (!(workload.id = strdup(owner->id)) ||
        (is_container &&
         ledger_text_set(&workload.identity.container_id, owner->container_id) < 0) ||
        ledger_text_set(&workload.identity.pod_uid, owner->pod_uid) < 0 ||
        grow_zeroed(&ledger->workloads, &ledger->counts.workload_slots, index + 1,
                    sizeof(*ledger->workloads)) < 0 ||
        scopes_add(&ledger->scopes, owner->id) < 0) {
        ledger_workload_done(&workload);
        return -ENOMEM;
    }
    if (map_insert(&ledger->workload_map, workload_hash(owner->kind, owner->id), index) < 0) {
        scopes_remove(&ledger->scopes, owner->id);
        ledger_workload_done(&workload);
        return -ENOMEM;
    }
    ledger->workloads[index] = workload;
    ledger->none_ended = false;
    ledger->permanent_workloads += is_permanent(owner->kind);
    ledger->counts.workloads++;
    *ret_workload = index;
    return 0;
}

/* Closes a workload and adds its accounts to the meters' `retired`. */
static void retire_workload(struct ledger *ledger, uint32_t index)
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
    map_remove(&ledger->workload_map, workload_hash(workload->kind, workload->id), index);
    scopes_remove(&ledger->scopes, workload->id);
    ledger_workload_done(workload);
    ledger->lowest_free = MIN(ledger->lowest_free, index);
    ledger->counts.workloads--;
}

/* A process that ended is kept for the retention, and its workload with it. One that moved may come
 * back, and must not find its counters at 0. */
static bool is_retained(const struct ledger *ledger, const struct ledger_workload *workload,
                        uint64_t now_us)
{
    return workload->left_us > 0 && now_us - workload->left_us < ledger->options.retention_us;
}

/* Retired energy is shown under the time of the last retirement as its id. So each retirement ends
 * the old series and starts new ones at the new total: sums of the values still balance, and sums
 * of increase() do not count that energy twice. No id may repeat. With `scope`, only those in it;
 * it is gone then, if they were all. */
static void retire_ended(struct ledger *ledger, uint64_t now_us, bool need_room,
                         const struct scope *scope)
{
    size_t left = scope ? scope->count : SIZE_MAX;
    bool any = false;

    for (uint32_t i = 0; i < ledger->counts.workload_slots && left > 0; i++) {
        const struct ledger_workload *workload = &ledger->workloads[i];

        if (!workload->used || (scope && !scope_has(scope, workload->id)))
            continue;
        left--;
        if (workload->member_count > 0 || is_permanent(workload->kind) ||
            (!need_room && (workload->kept || is_retained(ledger, workload, now_us))))
            continue;
        retire_workload(ledger, i);
        any = true;
    }
    if (!any)
        return;
    ledger->tidied_us = now_us;
    ledger->counts.retired_at_us = MAX(now_us, ledger->counts.retired_at_us + 1);
}

bool ledger_find_workload(const struct ledger *ledger, const struct workload_owner *owner,
                          uint32_t *ret_workload)
{
    return map_find(&ledger->workload_map, workload_hash(owner->kind, owner->id), has_owner, ledger,
                    owner, ret_workload);
}

int ledger_index_workload(struct ledger *ledger, uint32_t workload)
{
    const struct ledger_workload *row = &ledger->workloads[workload];
    struct workload_owner owner = {.kind = row->kind};
    uint32_t other;

    copy_text(owner.id, row->id);
    if (ledger_find_workload(ledger, &owner, &other))
        return -EEXIST;
    if (scopes_add(&ledger->scopes, row->id) < 0)
        return -ENOMEM;
    ledger->permanent_workloads += is_permanent(row->kind);
    return map_insert(&ledger->workload_map, workload_hash(row->kind, row->id), workload);
}

/* A tenant who names more and more workloads has the ended ones retired, once a minute: each time
 * takes a look at all. */
static bool scope_has_room(struct ledger *ledger, const struct workload_owner *owner)
{
    struct scope *scope = scopes_find(&ledger->scopes, owner->id);

    if (scopes_have_room(&ledger->scopes, owner->id))
        return true;
    if (!scope || ledger->latest_us - scope->tidied_us < RETIRE_INTERVAL_US)
        return false;
    scope->tidied_us = ledger->latest_us;
    retire_ended(ledger, ledger->latest_us, true, scope);
    return scopes_have_room(&ledger->scopes, owner->id);
}

/* What a scope has too much of goes to whoever named it. */
static int open_around(struct ledger *ledger, const struct workload_owner *owner,
                       uint32_t *ret_workload)
{
    struct workload_owner around;

    if (!scope_find_owner(owner->id, &around))
        return -EINVAL;
    ledger->counts.workloads_dropped++;
    if (around.kind == WORKLOAD_CONTAINER) {
        around.kind = WORKLOAD_POD; /* which has the container's id */
        if (ledger_find_workload(ledger, &around, ret_workload))
            return 0;
        around.kind = WORKLOAD_CONTAINER;
    }
    return ledger_open_workload(ledger, &around, ret_workload);
}

static bool has_room(const struct ledger *ledger)
{
    return ledger->counts.workloads - ledger->permanent_workloads < ledger->options.max_workloads;
}

int ledger_open_workload(struct ledger *ledger, const struct workload_owner *owner,
                         uint32_t *ret_workload)
{
    static const struct workload_owner other = {.kind = WORKLOAD_OTHER, .id = "other"};

    if (ledger_find_workload(ledger, owner, ret_workload))
        return 0;
    if (is_permanent(owner->kind))
        return add_workload(ledger, owner, ret_workload);
    if (!scope_has_room(ledger, owner))
        return open_around(ledger, owner, ret_workload);
    /* Each time takes a look at all, and thousands may ask in vain. */
    if (!has_room(ledger) && !ledger->none_ended) {
        retire_ended(ledger, ledger->latest_us, true, NULL);
        ledger->none_ended = true;
    }
    if (has_room(ledger))
        return add_workload(ledger, owner, ret_workload);
    ledger->counts.workloads_dropped++;
    return ledger_open_workload(ledger, &other, ret_workload);
}

void ledger_note_dropped(struct ledger *ledger)
{
    ledger->counts.workloads_dropped++;
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
    index = ledger->free_account;
    if (index != LEDGER_NONE) {
        ledger->free_account = ledger->accounts[index].next;
    } else {
        if (grow_zeroed(&ledger->accounts, &ledger->account_slots, ledger->counts.accounts + 1,
                        sizeof(*ledger->accounts)) < 0)
            return -ENOMEM;
        index = (uint32_t)ledger->counts.accounts++;
    }
    ledger->accounts[index] = (struct ledger_account){
        .meter = meter,
        .next = ledger->workloads[workload].first_account,
    };
    ledger->workloads[workload].first_account = index;
    *ret_account = index;
    return 0;
}

void ledger_join_workload(struct ledger *ledger, uint32_t workload)
{
    ledger->workloads[workload].member_count++;
}

void ledger_leave_workload(struct ledger *ledger, uint32_t workload)
{
    struct ledger_workload *w = &ledger->workloads[workload];
    const struct ledger_account *at = NULL;

    if (--w->member_count > 0 || is_permanent(w->kind))
        return;
    ledger->none_ended = false;
    if (w->kept)
        return;
    while ((at = ledger_next_account(ledger, w, at)))
        if (account_total_uj(&at->account) > 0)
            return;
    retire_workload(ledger, workload);
}

void ledger_retire_workloads(struct ledger *ledger, uint64_t now_us)
{
    /* Of a clock that was set back, the difference is huge. */
    if (now_us - ledger->tidied_us >= RETIRE_INTERVAL_US)
        retire_ended(ledger, now_us, false, NULL);
}

void ledger_keep_booked(struct ledger *ledger, unsigned kinds)
{
    for (size_t i = 0; i < ledger->counts.workload_slots; i++)
        ledger->workloads[i].kept = false;
    ledger->kept_kinds = kinds;
}

void ledger_keep_workload(struct ledger *ledger, uint32_t workload)
{
    ledger->workloads[workload].kept = true;
}

static void describe_owner(const struct ledger_workload *workload,
                           const struct ledger_identity *identity, struct workload_owner *ret_owner)
{
    *ret_owner = (struct workload_owner){.kind = workload->kind,
                                         .container_is_claim = identity->container_is_claim};
    copy_text(ret_owner->id, workload->id);
    copy_text(ret_owner->container_id, identity->container_id);
    copy_text(ret_owner->pod_uid, identity->pod_uid);
}

void ledger_describe_owner(const struct ledger *ledger, const struct ledger_process *process,
                           struct workload_owner *ret_owner)
{
    describe_owner(&ledger->workloads[process->workload], &process->identity, ret_owner);
}

bool ledger_next_unnamed(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed)
{
    while (unnamed->cursor < ledger->counts.workload_slots + ledger->counts.process_slots) {
        size_t at = unnamed->cursor++, slots = ledger->counts.workload_slots;
        struct ledger_process *process = at < slots ? NULL : &ledger->processes[at - slots];
        struct ledger_workload *workload = &ledger->workloads[process ? process->workload : at];
        struct ledger_identity *identity = process ? &process->identity : &workload->identity;

        if (identity->is_named || (process ? !process->used : !workload->used))
            continue;
        unnamed->identity = identity;
        if (identity->opened_us == 0)
            identity->opened_us = now_us;
        unnamed->opened_us = identity->opened_us;
        describe_owner(workload, identity, &unnamed->owner);
        return true;
    }
    return false;
}

int ledger_names_set(struct ledger_identity *identity, const struct workload_names *names)
{
    struct workload_names *to = &identity->names;
    const struct {
        const char *from, **to;
    } texts[] = {{names->name, &to->name},
                 {names->namespace, &to->namespace},
                 {names->pod, &to->pod},
                 {names->container, &to->container},
                 {names->image, &to->image}};
    size_t size_bytes = 1;
    char *end;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        size_bytes += texts[i].from ? strlen(texts[i].from) + 1 : 0;
    identity->names_text = end = malloc(size_bytes);
    if (!end)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (!texts[i].from || !texts[i].from[0])
            continue;
        *texts[i].to = end;
        end = stpcpy(end, texts[i].from) + 1;
    }
    identity->is_named = true;
    return 0;
}

int ledger_fix_names(struct ledger *ledger, const struct ledger_unnamed *unnamed,
                     const struct workload_names *names)
{
    int r = ledger_names_set(unnamed->identity, names);

    ledger->counts.names_fixed += r == 0 && unnamed->cursor <= ledger->counts.workload_slots;
    return r;
}
