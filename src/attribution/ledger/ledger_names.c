/* The ledger's names: held back until they are known, then fixed. */
#include "attribution/ledger/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* Whoever has no name by then is shown without it. A runtime that is slow but answers, as when it
 * starts many containers at once, is waited for longer than one that hangs. */
static const uint64_t HOLD_US = 15 * USEC_PER_SEC, HOLD_AWAITED_US = 60 * USEC_PER_SEC;

void ledger_names_done(struct ledger_names *names)
{
    free(names->name);
    free(names->namespace);
    free(names->pod);
    free(names->container);
    free(names->image);
    *names = (struct ledger_names){0};
}

static int copy(const char *from, char **to)
{
    if (!from || from[0] == '\0')
        return 0;
    *to = strdup(from);
    return *to ? 0 : -ENOMEM;
}

static int fix(struct ledger_names *names, const struct workload_names *found)
{
    struct ledger_names fixed = {.fixed = true};
    int r = copy(found->name, &fixed.name);

    if (r == 0)
        r = copy(found->namespace, &fixed.namespace);
    if (r == 0)
        r = copy(found->pod, &fixed.pod);
    if (r == 0)
        r = copy(found->container, &fixed.container);
    if (r == 0)
        r = copy(found->image, &fixed.image);
    if (r < 0) {
        ledger_names_done(&fixed);
        return r;
    }
    *names = fixed;
    return 0;
}

static void put(char *text, size_t size_bytes, const char *from)
{
    size_t len = from ? strlen(from) : 0;

    if (len < size_bytes && len > 0)
        memcpy(text, from, len + 1);
}

/* The owner as it was found once, of a process or of the workload itself. */
static struct workload_owner owner_of(const struct ledger_workload *workload,
                                      const char *container_id, const char *pod_uid)
{
    struct workload_owner owner = {.kind = workload->kind};

    put(owner.id, sizeof(owner.id), workload->id);
    put(owner.container_id, sizeof(owner.container_id), container_id);
    put(owner.pod_uid, sizeof(owner.pod_uid), pod_uid);
    return owner;
}

static uint64_t hold_us(const struct ledger_namer *namer, const struct workload_owner *owner)
{
    return namer->is_awaited && namer->is_awaited(namer->context, owner) ? HOLD_AWAITED_US
                                                                         : HOLD_US;
}

/* `opened_us` is 0 for what came before the first sample: its time counts from now. */
static int fix_when_due(struct ledger_names *names, uint64_t *opened_us, uint64_t now_us,
                        const struct workload_owner *owner, const struct ledger_namer *namer)
{
    struct workload_names found = {0};

    if (names->fixed)
        return 0;
    if (*opened_us == 0)
        *opened_us = now_us;
    if (!namer->find(namer->context, owner, &found) && now_us < *opened_us + hold_us(namer, owner))
        return 0;
    return fix(names, &found);
}

int ledger_fix_names(struct ledger *ledger, uint64_t now_us, const struct ledger_namer *namer)
{
    int result = 0;

    for (size_t i = 0; i < ledger->workload_slots; i++) {
        struct ledger_workload *workload = &ledger->workloads[i];
        struct workload_owner owner;
        int r;

        if (!workload->used || workload->names.fixed)
            continue;
        owner = owner_of(workload, workload->container_id, workload->pod_uid);
        r = fix_when_due(&workload->names, &workload->opened_us, now_us, &owner, namer);
        ledger->names_fixed += workload->names.fixed;
        if (r < 0)
            result = r;
    }
    for (size_t i = 0; i < ledger->process_slots; i++) {
        struct ledger_process *process = &ledger->processes[i];
        struct workload_owner owner;
        int r;

        if (!process->used || process->names.fixed)
            continue;
        owner = owner_of(&ledger->workloads[process->workload], process->container_id,
                         process->pod_uid);
        owner.container_is_claim = process->container_is_claim;
        r = fix_when_due(&process->names, &process->opened_us, now_us, &owner, namer);
        if (r < 0)
            result = r;
    }
    return result;
}
