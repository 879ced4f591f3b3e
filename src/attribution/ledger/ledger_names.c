/* The ledger's names: held back until they are known, then fixed. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

void ledger_names_done(struct ledger_names *names)
{
    free(names->name);
    free(names->namespace);
    free(names->pod);
    free(names->container);
    free(names->image);
    *names = (struct ledger_names){0};
}

static int copy_name(const char *from, char **to)
{
    if (!from || from[0] == '\0')
        return 0;
    *to = strdup(from);
    return *to ? 0 : -ENOMEM;
}

static int fix(struct ledger_names *to, const struct workload_names *names)
{
    struct ledger_names fixed = {.fixed = true};
    int r = copy_name(names->name, &fixed.name);

    if (r == 0)
        r = copy_name(names->namespace, &fixed.namespace);
    if (r == 0)
        r = copy_name(names->pod, &fixed.pod);
    if (r == 0)
        r = copy_name(names->container, &fixed.container);
    if (r == 0)
        r = copy_name(names->image, &fixed.image);
    if (r < 0) {
        ledger_names_done(&fixed);
        return r;
    }
    *to = fixed;
    return 0;
}

static void copy_text(char *text, size_t size_bytes, const char *from)
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

    copy_text(owner.id, sizeof(owner.id), workload->id);
    copy_text(owner.container_id, sizeof(owner.container_id), container_id);
    copy_text(owner.pod_uid, sizeof(owner.pod_uid), pod_uid);
    return owner;
}

/* `opened_us` is 0 for what came before the first sample: its time counts from now. */
static bool is_unnamed(const struct ledger_names *names, uint64_t *opened_us, uint64_t now_us)
{
    if (names->fixed)
        return false;
    if (*opened_us == 0)
        *opened_us = now_us;
    return true;
}

static bool find_workload(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed,
                          size_t index)
{
    struct ledger_workload *workload = &ledger->workloads[index];

    if (!workload->used || !is_unnamed(&workload->names, &workload->opened_us, now_us))
        return false;
    unnamed->owner = owner_of(workload, workload->container_id, workload->pod_uid);
    unnamed->opened_us = workload->opened_us;
    return true;
}

static bool find_process(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed,
                         size_t index)
{
    struct ledger_process *process = &ledger->processes[index];

    if (!process->used || !is_unnamed(&process->names, &process->opened_us, now_us))
        return false;
    unnamed->owner =
        owner_of(&ledger->workloads[process->workload], process->container_id, process->pod_uid);
    unnamed->owner.container_is_claim = process->container_is_claim;
    unnamed->opened_us = process->opened_us;
    return true;
}

bool ledger_next_unnamed(struct ledger *ledger, uint64_t now_us, struct ledger_unnamed *unnamed)
{
    while (unnamed->cursor < ledger->workload_slots + ledger->process_slots) {
        size_t at = unnamed->cursor++;

        if (at < ledger->workload_slots
                ? find_workload(ledger, now_us, unnamed, at)
                : find_process(ledger, now_us, unnamed, at - ledger->workload_slots))
            return true;
    }
    return false;
}

int ledger_fix_names(struct ledger *ledger, const struct ledger_unnamed *unnamed,
                     const struct workload_names *names)
{
    size_t at = unnamed->cursor - 1;
    int r;

    if (at >= ledger->workload_slots)
        return fix(&ledger->processes[at - ledger->workload_slots].names, names);
    r = fix(&ledger->workloads[at].names, names);
    ledger->counts.names_fixed += r == 0;
    return r;
}
