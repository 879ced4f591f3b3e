/* The ledger's process accounts: opened, identified, superseded, forgotten. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* No pid: the kernel's end at 2^22. What follows is the index of a workload. */
static const uint32_t UNSEEN_PID = 1U << 31;

struct process_key {
    uint32_t meter, pid;
};

static uint64_t hash_of(struct process_key key)
{
    return map_hash_u64((uint64_t)key.meter << 32 | key.pid);
}

static bool is_process(const void *context, uint32_t value, const void *key)
{
    const struct ledger *ledger = context;
    const struct process_key *wanted = key;

    return ledger->processes[value].pid == wanted->pid &&
           ledger->processes[value].meter == wanted->meter;
}

bool ledger_find_process(const struct ledger *ledger, uint32_t meter, uint32_t pid,
                         uint32_t *ret_process)
{
    struct process_key key = {meter, pid};

    return map_find(&ledger->process_map, hash_of(key), is_process, ledger, &key, ret_process);
}

static void supersede(struct ledger *ledger, uint32_t index)
{
    struct ledger_process *process = &ledger->processes[index];

    map_remove(&ledger->process_map, hash_of((struct process_key){process->meter, process->pid}),
               index);
    process->superseded = true;
}

void ledger_process_done(struct ledger_process *process)
{
    free(process->name);
    free(process->container_id);
    free(process->pod_uid);
    ledger_names_done(&process->names);
    *process = (struct ledger_process){0};
}

/* Its joules stay with its workload, and with its meter as swept. */
static void forget(struct ledger *ledger, uint32_t index)
{
    struct ledger_process *process = &ledger->processes[index];

    if (!process->superseded)
        supersede(ledger, index);
    ledger->meters[process->meter].swept_uj += process->active_uj + process->idle_uj;
    ledger_leave_workload(ledger, process->workload);
    ledger_process_done(process);
    ledger->counts.processes--;
}

static uint64_t last_heard_us(const struct ledger_process *process)
{
    return MAX(process->last_booked_us, process->seen_us);
}

static bool may_go(const struct ledger *ledger, uint32_t index)
{
    const struct ledger_process *process = &ledger->processes[index];

    return process->used && ledger->options.retention_us != UINT64_MAX &&
           index != ledger->meters[process->meter].overflow && !ledger_is_live(ledger, index);
}

/* Forgets the process that ended first. */
static bool make_room(struct ledger *ledger)
{
    uint32_t oldest = LEDGER_NONE;

    for (uint32_t i = 0; i < ledger->process_slots; i++)
        if (may_go(ledger, i) &&
            (oldest == LEDGER_NONE ||
             last_heard_us(&ledger->processes[i]) < last_heard_us(&ledger->processes[oldest])))
            oldest = i;
    if (oldest == LEDGER_NONE)
        return false;
    forget(ledger, oldest);
    return true;
}

static int take_slot(struct ledger *ledger, uint32_t *ret_index)
{
    if (ledger->counts.processes == ledger->process_slots) {
        size_t slots = MAX(ledger->process_slots * 2, (size_t)16);
        struct ledger_process *processes = realloc(ledger->processes, slots * sizeof(*processes));

        if (!processes)
            return -ENOMEM;
        memset(processes + ledger->process_slots, 0,
               (slots - ledger->process_slots) * sizeof(*processes));
        ledger->processes = processes;
        *ret_index = (uint32_t)ledger->process_slots;
        ledger->process_slots = slots;
        return 0;
    }
    for (uint32_t i = 0;; i++) {
        if (ledger->processes[i].used)
            continue;
        *ret_index = i;
        return 0;
    }
}

/* Opens an account for a pid (0: the overflow) that belongs to this workload. */
static int open_with(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t workload,
                     uint32_t *ret_process)
{
    uint32_t index = LEDGER_NONE, account;
    int r = ledger_open_account(ledger, workload, meter, &account);

    if (r == 0)
        r = take_slot(ledger, &index);
    if (r == 0 && pid > 0)
        r = map_insert(&ledger->process_map, hash_of((struct process_key){meter, pid}), index);
    if (r < 0)
        return r;
    ledger->processes[index] = (struct ledger_process){
        .used = true,
        .serial = ++ledger->last_serial,
        .pid = pid,
        .meter = meter,
        .workload = workload,
        .opened_us = ledger->latest_us,
    };
    ledger->counts.processes++;
    ledger_join_workload(ledger, workload);
    *ret_process = index;
    return 0;
}

static int open_overflow(struct ledger *ledger, uint32_t meter, uint32_t *ret_process)
{
    struct ledger_meter *m = &ledger->meters[meter];
    uint32_t workload;
    int r;

    ledger->counts.processes_dropped++;
    if (m->overflow == LEDGER_NONE) {
        r = ledger_open_workload(
            ledger, &(struct workload_owner){.kind = WORKLOAD_OTHER, .id = "other"}, &workload);
        if (r == 0)
            r = open_with(ledger, meter, 0, workload, &m->overflow);
        if (r < 0)
            return r;
    }
    *ret_process = m->overflow;
    return 0;
}

/* A process of which nothing is known pays for itself. */
static struct workload_owner own_itself(const struct sample_process *who)
{
    struct workload_owner owner = {.kind = WORKLOAD_PROCESS};

    if (who->start_us > 0)
        snprintf(owner.id, sizeof(owner.id), "%u@%llu", who->pid,
                 (unsigned long long)(who->start_us / USEC_PER_SEC));
    else
        snprintf(owner.id, sizeof(owner.id), "%u", who->pid);
    return owner;
}

/* A workload that was opened for nobody would never be retired as ended. */
static void close_if_empty(struct ledger *ledger, uint32_t workload)
{
    if (ledger->workloads[workload].member_count > 0)
        return;
    ledger_join_workload(ledger, workload);
    ledger_leave_workload(ledger, workload);
}

int ledger_open_process(struct ledger *ledger, uint32_t meter, uint32_t pid, uint32_t *ret_process)
{
    struct workload_owner owner;
    uint32_t workload;
    int r;

    if (ledger_find_process(ledger, meter, pid, ret_process))
        return 0;
    if (ledger->counts.processes >= ledger->options.max_processes && !make_room(ledger))
        return open_overflow(ledger, meter, ret_process);
    owner = own_itself(&(struct sample_process){.pid = pid});
    r = ledger_open_workload(ledger, &owner, &workload);
    if (r < 0)
        return r;
    r = open_with(ledger, meter, pid, workload, ret_process);
    if (r < 0)
        close_if_empty(ledger, workload);
    return r;
}

int ledger_open_unseen(struct ledger *ledger, uint32_t meter, const struct workload_owner *owner,
                       uint32_t *ret_process)
{
    uint32_t workload;
    int r;

    if (ledger_find_workload(ledger, owner, &workload) &&
        ledger_find_process(ledger, meter, UNSEEN_PID | workload, ret_process))
        return 0;
    if (ledger->counts.processes >= ledger->options.max_processes && !make_room(ledger))
        return open_overflow(ledger, meter, ret_process);
    r = ledger_open_workload(ledger, owner, &workload);
    if (r < 0)
        return r;
    /* It may be `other`, which has its account already. */
    if (ledger_find_process(ledger, meter, UNSEEN_PID | workload, ret_process))
        return 0;
    r = open_with(ledger, meter, UNSEEN_PID | workload, workload, ret_process);
    if (r < 0)
        close_if_empty(ledger, workload);
    else
        ledger->processes[*ret_process].unseen = true;
    return r;
}

static int replace_text(char **text, const char *with)
{
    char *copy = with[0] != '\0' ? strdup(with) : NULL;

    if (with[0] != '\0' && !copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

/* From now on this owner pays for the process. What it has paid for stays paid. */
static int move_to(struct ledger *ledger, uint32_t index, const struct workload_owner *owner)
{
    struct ledger_process *process = &ledger->processes[index];
    uint32_t workload, account;
    int r = ledger_open_workload(ledger, owner, &workload);

    if (r == 0)
        r = replace_text(&process->container_id, owner->container_id);
    if (r == 0)
        r = replace_text(&process->pod_uid, owner->pod_uid);
    process->container_is_claim = owner->container_is_claim;
    if (r < 0 || workload == process->workload)
        return r;
    r = ledger_open_account(ledger, workload, process->meter, &account);
    ledger_join_workload(ledger, workload);
    ledger_leave_workload(ledger, r < 0 ? workload : process->workload);
    if (r == 0)
        process->workload = workload;
    return r;
}

/* Says who the process of an account is: for the first time, or because it moved to another
 * cgroup. */
static int name_account(struct ledger *ledger, uint32_t index, const struct sample_process *who,
                        const struct workload_owner *owner)
{
    struct ledger_process *process = &ledger->processes[index];
    struct workload_owner itself;

    if (who->name[0] != '\0' && !process->name) {
        int r = replace_text(&process->name, who->name);

        if (r < 0)
            return r;
    }
    if (process->identified && who->cgroup[0] == '\0')
        return 0; /* somebody who knows less */
    process->identified = true;
    process->start_us = who->start_us;
    process->uid = who->uid;
    if (owner->kind != WORKLOAD_PROCESS)
        return move_to(ledger, index, owner);
    itself = own_itself(who);
    return move_to(ledger, index, &itself);
}

int ledger_identify(struct ledger *ledger, uint32_t meter, const struct sample_process *who,
                    const struct workload_owner *owner, uint32_t *ret_process)
{
    uint32_t index;
    int r;

    if (ledger_find_process(ledger, meter, who->pid, &index)) {
        const struct ledger_process *known = &ledger->processes[index];

        if (known->start_us > 0 && who->start_us > 0 && known->start_us != who->start_us)
            supersede(ledger, index);
    }
    r = ledger_open_process(ledger, meter, who->pid, &index);
    if (r == 0 && ledger->processes[index].pid > 0)
        r = name_account(ledger, index, who, owner);
    if (r == 0)
        *ret_process = index;
    return r;
}

void ledger_sweep(struct ledger *ledger, uint64_t now_us)
{
    for (uint32_t i = 0; i < ledger->process_slots; i++) {
        const struct ledger_process *process = &ledger->processes[i];

        if (may_go(ledger, i) &&
            (process->superseded || now_us > last_heard_us(process) + ledger->options.retention_us))
            forget(ledger, i);
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
    for (size_t i = 0; i < ledger->process_slots; i++) {
        struct ledger_process *process = &ledger->processes[i];

        if (!process->used || process->meter != meter)
            continue;
        process->last_booked_us = MIN(process->last_booked_us, now_us);
        process->seen_us = MIN(process->seen_us, now_us);
    }
}
