#include "attribution/node/workload_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

static const struct workload_owner system_owner = {.kind = WORKLOAD_SYSTEM, .id = "system"};

void workload_usages_init(struct workload_usages *members, struct ledger *ledger)
{
    *members = (struct workload_usages){.ledger = ledger};
}

void workload_usages_done(struct workload_usages *members)
{
    for (size_t i = 0; i < members->slots; i++)
        usage_done(&members->items[i].usage);
    free(members->items);
    *members = (struct workload_usages){0};
}

static int reserve(struct workload_usages *members)
{
    size_t slots = ledger_workload_slots(members->ledger);
    struct workload_usage *items;

    if (slots <= members->slots)
        return 0;
    items = realloc(members->items, slots * sizeof(*items));
    if (!items)
        return -ENOMEM;
    memset(items + members->slots, 0, (slots - members->slots) * sizeof(*items));
    members->items = items;
    members->slots = slots;
    return 0;
}

void workload_usages_begin(struct workload_usages *members)
{
    members->round++;
}

static void begin_round(struct workload_usage *member, uint64_t round)
{
    member->is_present = true;
    member->round = round;
    member->cpu_us = member->memory_bytes = 0;
    member->traffic_bytes = member->uncounted_bytes = 0;
    usage_forget_gauges(&member->usage);
}

static int open_member(struct workload_usages *members, const struct workload_owner *owner,
                       uint64_t now_us, struct workload_usage **ret_member)
{
    struct workload_usage *member;
    uint32_t workload;
    int r = ledger_open_workload(members->ledger, owner, &workload);

    if (r == 0)
        r = reserve(members);
    if (r < 0)
        return r;
    member = &members->items[workload];
    if (!member->is_joined)
        ledger_join_workload(members->ledger, workload);
    member->is_joined = true;
    if (!member->is_present || member->round != members->round)
        begin_round(member, members->round);
    member->seen_us = now_us;
    *ret_member = member;
    return 0;
}

/* False: no owner has texts so long. */
static bool put(char *text, size_t size_bytes, const char *from)
{
    size_t len = strlen(from);

    if (len >= size_bytes)
        return false;
    memcpy(text, from, len + 1);
    return true;
}

int workload_usages_note(struct workload_usages *members, uint64_t now_us,
                         const struct sample_workload *workload)
{
    struct workload_owner owner = {.kind = workload->kind};
    struct workload_usage *member;
    int r;

    if (!put(owner.id, sizeof(owner.id), workload->id) ||
        !put(owner.container_id, sizeof(owner.container_id), workload->container_id) ||
        !put(owner.pod_uid, sizeof(owner.pod_uid), workload->pod_uid))
        return 0;
    r = open_member(members, &owner, now_us, &member);
    if (r < 0)
        return r;
    member->cpu_us += workload->cpu_us;
    member->memory_bytes += workload->memory_bytes;
    if (workload->has_traffic)
        member->traffic_bytes += workload->traffic_bytes;
    else
        member->uncounted_bytes += workload->memory_bytes;
    return workload->did ? usage_add(&member->usage, workload->did) : 0;
}

int workload_usages_note_system(struct workload_usages *members, uint64_t now_us,
                                const struct sample_usage *usage)
{
    uint64_t cpu_us = 0, memory_bytes = 0, rest_bytes;
    struct workload_usage *member;
    int r;

    for (size_t w = 0; w < members->slots; w++)
        if (members->items[w].is_present && members->items[w].round == members->round) {
            cpu_us += members->items[w].cpu_us;
            memory_bytes += members->items[w].memory_bytes;
        }
    r = open_member(members, &system_owner, now_us, &member);
    if (r < 0)
        return r;
    member->cpu_us += usage->busy_us - MIN(usage->busy_us, cpu_us);
    rest_bytes = usage->memory_used_bytes - MIN(usage->memory_used_bytes, memory_bytes);
    member->memory_bytes += rest_bytes;
    member->uncounted_bytes += rest_bytes;
    return 0;
}

static void leave(struct workload_usages *members, uint32_t workload)
{
    usage_done(&members->items[workload].usage);
    members->items[workload] = (struct workload_usage){0};
    ledger_leave_workload(members->ledger, workload);
}

static bool is_forgotten(const struct workload_usages *members, const struct workload_usage *member,
                         uint64_t now_us)
{
    uint64_t retention_us = ledger_retention_us(members->ledger);

    return now_us > member->seen_us && now_us - member->seen_us > retention_us;
}

void workload_usages_end(struct workload_usages *members, uint64_t now_us)
{
    for (uint32_t w = 0; w < members->slots; w++) {
        struct workload_usage *member = &members->items[w];

        if (!member->is_joined || member->round == members->round)
            continue;
        if (member->is_present)
            usage_forget_gauges(&member->usage);
        member->is_present = false;
        if (is_forgotten(members, member, now_us))
            leave(members, w);
    }
}

const struct workload_usage *workload_usages_find(const struct workload_usages *members,
                                                  uint32_t workload)
{
    return workload < members->slots && members->items[workload].is_joined
               ? &members->items[workload]
               : NULL;
}
