/* The ledger's process accounts: opened, identified, superseded, forgotten. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attribution/grow.h"
#include "core/macros.h"
#include "core/siphash.h"

/* Not a pid: the kernel's end at 2^22. The lower bits are the index of a workload. */
static const uint32_t UNSEEN_PID = 1U << 31;

static uint64_t process_key(uint32_t meter, uint32_t pid)
{
    return (uint64_t)meter << 32 | pid;
}

static bool has_process_key(const void *context, uint32_t value, const void *key)
{
    const struct ledger_process *process = &((const struct ledger *)context)->processes[value];

    return process_key(process->meter, process->pid) == *(const uint64_t *)key;
}

bool ledger_find_process(const struct ledger *ledger, uint32_t meter, uint32_t pid,
                         uint32_t *ret_process)
{
    uint64_t key = process_key(meter, pid);

    return map_find(&ledger->process_map, map_hash_u64(key), has_process_key, ledger, &key,
                    ret_process);
}

int ledger_index_process(struct ledger *ledger, uint32_t process)
{
    const struct ledger_process *row = &ledger->processes[process];
    uint32_t other;

    if (ledger_find_process(ledger, row->meter, row->pid, &other))
        return -EEXIST;
    return map_insert(&ledger->process_map, map_hash_u64(process_key(row->meter, row->pid)),
                      process);
}

static void supersede(struct ledger *ledger, uint32_t index)
{
    struct ledger_process *process = &ledger->processes[index];

    map_remove(&ledger->process_map, map_hash_u64(process_key(process->meter, process->pid)),
               index);
    process->superseded = true;
}

void ledger_process_done(struct ledger_process *process)
{
    free(process->name);
    ledger_identity_done(&process->identity);
    *process = (struct ledger_process){0};
}

/* Its energy stays with its workload, and with its meter as swept. */
static void forget_process(struct ledger *ledger, uint32_t index)
{
    struct ledger_process *process = &ledger->processes[index];

    if (!process->superseded)
        supersede(ledger, index);
    ledger->meters[process->meter].swept_uj += process->active_uj + process->idle_uj;
    ledger_leave_workload(ledger, process->workload);
    ledger_process_done(process);
    ledger->counts.processes--;
}

static uint64_t last_active_us(const struct ledger_process *process)
{
    return MAX(process->last_booked_us, process->seen_us);
}

static bool is_forgettable(const struct ledger *ledger, uint32_t index)
{
    const struct ledger_process *process = &ledger->processes[index];

    return process->used && ledger->options.retention_us != UINT64_MAX &&
           index != ledger->meters[process->meter].overflow && !ledger_is_live(ledger, index);
}

/* Forgets the process that ended first. */
static bool make_room(struct ledger *ledger)
{
    uint32_t oldest = LEDGER_NONE;

    for (uint32_t i = 0; i < ledger->counts.process_slots; i++)
        if (is_forgettable(ledger, i) &&
            (oldest == LEDGER_NONE ||
             last_active_us(&ledger->processes[i]) < last_active_us(&ledger->processes[oldest])))
            oldest = i;
    if (oldest == LEDGER_NONE)
        return false;
    forget_process(ledger, oldest);
    return true;
}

/* Adds a row for a pid (0: the overflow) of a workload. */
static int add_process(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t workload,
                       uint32_t *ret_process)
{
    uint64_t hash = map_hash_u64(process_key(meter, pid));
    uint32_t index = 0, account;

    while (index < ledger->counts.process_slots && ledger->processes[index].used)
        index++;
    if (ledger_open_account(ledger, workload, meter, &account) < 0 ||
        grow_zeroed(&ledger->processes, &ledger->counts.process_slots, index + 1,
                    sizeof(*ledger->processes)) < 0 ||
        (pid > 0 && map_insert(&ledger->process_map, hash, index) < 0))
        return -ENOMEM;
    ledger->processes[index] = (struct ledger_process){
        .used = true,
        .serial = ++ledger->last_serial,
        .pid = pid,
        .meter = meter,
        .workload = workload,
        .identity.opened_us = ledger->latest_us,
    };
    ledger->counts.processes++;
    ledger_join_workload(ledger, workload);
    *ret_process = index;
    return 0;
}

static int open_overflow(struct ledger *ledger, uint32_t meter, uint32_t *ret_process)
{
    const struct workload_owner other = {.kind = WORKLOAD_OTHER, .id = "other"};
    struct ledger_meter *m = &ledger->meters[meter];
    uint32_t workload;

    ledger->counts.processes_dropped++;
    if (m->overflow == LEDGER_NONE && (ledger_open_workload(ledger, &other, &workload) < 0 ||
                                       add_process(ledger, meter, 0, workload, &m->overflow) < 0))
        return -ENOMEM;
    *ret_process = m->overflow;
    return 0;
}

/* Opens an account for a pid of this owner, or, for pid 0, for the owner's unseen processes. */
static int open_process(struct ledger *ledger, uint32_t meter, uint32_t pid,
                        const struct workload_owner *owner, uint32_t *ret_process)
{
    bool is_unseen = pid == 0;
    uint32_t workload;
    int r;

    if (ledger->counts.processes >= ledger->options.max_processes && !make_room(ledger))
        return open_overflow(ledger, meter, ret_process);
    r = ledger_open_workload(ledger, owner, &workload);
    if (r < 0)
        return r;
    if (is_unseen) {
        pid = UNSEEN_PID | workload;
        if (ledger_find_process(ledger, meter, pid, ret_process))
            return 0; /* of `other`, which had its account already */
    }
    r = add_process(ledger, meter, pid, workload, ret_process);
    if (r == 0) {
        ledger->processes[*ret_process].unseen = is_unseen;
    } else if (ledger->workloads[workload].member_count == 0) {
        /* A workload that never had a member would never be retired. */
        ledger_join_workload(ledger, workload);
        ledger_leave_workload(ledger, workload);
    }
    return r;
}

/* A process of unknown origin is its own workload. */
static struct workload_owner own_workload(uint32_t pid, uint64_t start_us)
{
    struct workload_owner owner = {.kind = WORKLOAD_PROCESS};

    if (start_us > 0)
        snprintf(owner.id, sizeof(owner.id), "%u@%llu", pid,
                 (unsigned long long)(start_us / USEC_PER_SEC));
    else
        snprintf(owner.id, sizeof(owner.id), "%u", pid);
    return owner;
}

int ledger_open_process(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t *ret_process)
{
    struct workload_owner owner;

    if (ledger_find_process(ledger, meter, pid, ret_process))
        return 0;
    owner = own_workload(pid, 0);
    return open_process(ledger, meter, pid, &owner, ret_process);
}

int ledger_open_unseen(struct ledger *ledger, uint32_t meter, const struct workload_owner *owner,
                       uint32_t *ret_process)
{
    uint32_t workload;

    if (ledger_find_workload(ledger, owner, &workload) &&
        ledger_find_process(ledger, meter, UNSEEN_PID | workload, ret_process))
        return 0;
    return open_process(ledger, meter, 0, owner, ret_process);
}

/* Charges this owner for the process from now on. What was charged before stays. */
static int set_owner(struct ledger *ledger, uint32_t index, const struct workload_owner *owner)
{
    struct ledger_process *process = &ledger->processes[index];
    uint32_t workload, account;
    int r;

    process->identity.container_is_claim = owner->container_is_claim;
    if (ledger_open_workload(ledger, owner, &workload) < 0 ||
        ledger_text_set(&process->identity.container_id, owner->container_id) < 0 ||
        ledger_text_set(&process->identity.pod_uid, owner->pod_uid) < 0)
        return -ENOMEM;
    if (workload == process->workload)
        return 0;
    r = ledger_open_account(ledger, workload, process->meter, &account);
    ledger_join_workload(ledger, workload);
    ledger->workloads[process->workload].left_us = ledger->latest_us;
    ledger_leave_workload(ledger, r < 0 ? workload : process->workload);
    if (r == 0)
        process->workload = workload;
    return r;
}

int ledger_identify(struct ledger *ledger, uint32_t meter, const struct sample_process *who,
                    const struct workload_owner *owner, uint32_t *ret_process)
{
    struct workload_owner itself = own_workload(who->pid, who->start_us);
    struct ledger_process *process;
    uint32_t index;
    int r;

    if (ledger_find_process(ledger, meter, who->pid, &index)) {
        uint64_t start_us = ledger->processes[index].start_us;

        if (start_us > 0 && who->start_us > 0 && start_us != who->start_us)
            supersede(ledger, index);
    }
    r = ledger_open_process(ledger, meter, who->pid, &index);
    if (r < 0)
        return r;
    process = &ledger->processes[index];
    if (process->pid > 0 && !process->name)
        r = ledger_text_set(&process->name, who->name);
    /* A later identification is news only with a cgroup: the process may have moved. */
    if (r == 0 && process->pid > 0 && (!process->identified || who->cgroup[0] != '\0')) {
        process->identified = true;
        process->start_us = who->start_us;
        process->uid = who->uid;
        process->cgroup_hash = siphash_public(span_of(who->cgroup));
        if (who->program.exact)
            process->program = who->program;
        r = set_owner(ledger, index, owner->kind == WORKLOAD_PROCESS ? &itself : owner);
    }
    if (r == 0)
        *ret_process = index;
    return r;
}

void ledger_sweep(struct ledger *ledger, uint64_t now_us)
{
    for (uint32_t i = 0; i < ledger->counts.process_slots; i++) {
        const struct ledger_process *process = &ledger->processes[i];

        if (is_forgettable(ledger, i) &&
            (process->superseded ||
             now_us > last_active_us(process) + ledger->options.retention_us))
            forget_process(ledger, i);
    }
    ledger_retire_workloads(ledger, now_us);
}

void ledger_allow_forgetting(struct ledger *ledger, uint32_t meter, uint64_t before_us)
{
    ledger->meters[meter].forget_before_us = before_us;
}

void ledger_see_process(struct ledger *ledger, uint32_t process, uint64_t t_us)
{
    ledger->processes[process].seen_us = MAX(ledger->processes[process].seen_us, t_us);
}

bool ledger_is_live(const struct ledger *ledger, uint32_t process)
{
    const struct ledger_process *p = &ledger->processes[process];

    return p->seen_us >= ledger->meters[p->meter].forget_before_us;
}

void ledger_set_clock_back(struct ledger *ledger, uint32_t meter, uint64_t now_us)
{
    ledger->latest_us = now_us;
    for (size_t i = 0; i < ledger->counts.process_slots; i++) {
        struct ledger_process *process = &ledger->processes[i];

        if (!process->used || process->meter != meter)
            continue;
        process->last_booked_us = MIN(process->last_booked_us, now_us);
        process->seen_us = MIN(process->seen_us, now_us);
    }
}
