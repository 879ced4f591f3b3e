#include "identity/process_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/table.h"
#include "host/proc.h"
#include "identity/owner.h"

/*
 * A process can change its cgroup and its user without a trace in the directory. Most do so at
 * their start (a container's first process starts in its runtime's cgroup), so the next scans read
 * them again; after that every process is read about once in TURN_SCANS scans.
 */
enum {
    REREADS = 2,
    TURN_SCANS = 60,
    TURN_MAX = 256, /* processes in one scan */

    /* The kernel could not make the inode (fs/proc/base.c, proc_fill_cache). */
    INO_UNKNOWN = 1,
};

struct process_owner {
    struct table_entry entry;
    struct process_table_owner view; /* what callers see */
    uint32_t first_pid;              /* in this scan */
    bool is_pid_live;                /* view.pid was seen in this scan, and still belongs to it */
    bool appeared;                   /* reported to the caller */
};

struct process {
    uint64_t ino;                /* of /proc/PID */
    struct process_owner *owner; /* NULL: unreadable, or beyond the cap */
    uint32_t pid;
    uint8_t rereads;
    bool outside;
    bool left_out; /* there was no room for its owner */
};

/* Sorted by pid, each once. */
struct processes {
    struct process *items;
    size_t count, capacity;
};

struct process_table {
    const struct host *host;
    struct processes now;
    struct processes next; /* of the scan in progress */
    struct table owners;   /* of struct process_owner */
    struct process_table_stats stats;
    size_t processes_max, owners_max;
    uint32_t turn_pid; /* the first process whose turn it is */
    size_t turns_left; /* in this scan */

    /* Entries of the directory, later the text of one file. */
    alignas(max_align_t) char buffer[PROC_CGROUP_BYTES];
};

int process_table_new(const struct host *host, struct process_table **ret_table)
{
    struct process_table *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    table->host = host;
    process_table_set_caps(table, PROCESS_TABLE_MAX, PROCESS_TABLE_OWNERS_MAX);
    *ret_table = table;
    return 0;
}

void process_table_free(struct process_table *table)
{
    if (!table)
        return;
    free(table->now.items);
    free(table->next.items);
    table_done(&table->owners);
    free(table);
}

void process_table_set_caps(struct process_table *table, size_t processes, size_t owners)
{
    table->processes_max = MIN(processes, (size_t)PROCESS_TABLE_MAX);
    table->owners_max = MIN(owners, (size_t)PROCESS_TABLE_OWNERS_MAX);
}

/* From here on: the directory. */

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The kernel lists pids in order; a tree on another filesystem may not. */
static void sort_processes(struct processes *list)
{
    size_t kept = 0;

    for (size_t i = 1; i < list->count; i++)
        if (list->items[i - 1].pid >= list->items[i].pid) {
            qsort(list->items, list->count, sizeof(*list->items), by_pid);
            break;
        }
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->items[kept - 1].pid != list->items[i].pid)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static int add_entry(struct process_table *table, const struct dirent64 *entry, uint64_t *left_out)
{
    struct processes *list = &table->next;
    uint64_t pid;

    /* One byte is all that most of the other names cost. */
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
        parse_u64_max(span_of(entry->d_name), INT32_MAX, &pid) < 0)
        return 0;
    if (list->count == table->processes_max) {
        ++*left_out;
        return 0;
    }
    if (!array_reserve(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = (struct process){.ino = entry->d_ino, .pid = (uint32_t)pid};
    return 0;
}

/* Fills `next` with the numeric names. */
static int list_processes(struct process_table *table, uint64_t *left_out)
{
    _cleanup_close_ int fd =
        openat(table->host->procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return -errno;
    table->next.count = 0;
    /* Not readdir: it would allocate its 32 KiB buffer for each scan. */
    while ((len = getdents64(fd, table->buffer, sizeof(table->buffer))) > 0)
        for (char *at = table->buffer; at < table->buffer + len;) {
            const struct dirent64 *entry = (const void *)at;
            int r = add_entry(table, entry, left_out);

            if (r < 0)
                return r;
            at += entry->d_reclen;
        }
    if (len < 0)
        return -errno;
    sort_processes(&table->next);
    return 0;
}

/* From here on: one process. */

static bool has_owner(const void *entry, const void *key)
{
    const struct workload_owner *held = &((const struct process_owner *)entry)->view.owner;
    const struct workload_owner *wanted = key;

    return held->kind == wanted->kind && strcmp(held->id, wanted->id) == 0;
}

/* The entry of this kind and id, added if there is none. NULL: no room for it. */
static struct process_owner *intern_owner(struct process_table *table,
                                          const struct workload_owner *owner)
{
    uint64_t hash = map_hash_u64(map_hash_bytes(span_of(owner->id)) + owner->kind);
    struct process_owner *found = table_find(&table->owners, hash, has_owner, owner);

    if (found || table->owners.count >= table->owners_max)
        return found;
    found = table_add(&table->owners, hash, sizeof(*found));
    if (found)
        found->view = (struct process_table_owner){.owner = *owner, .uid = OWNER_UID_UNKNOWN};
    return found;
}

static uint32_t read_uid(struct process_table *table, int process_fd)
{
    table->stats.files_read++;
    return proc_read_uid(process_fd);
}

/* Nothing else names a job's user. Root is read again: it may be the scheduler's own process. */
static void find_job_user(struct process_table *table, int process_fd, uint32_t pid,
                          struct process_table_owner *job)
{
    uint32_t uid;

    if (!workload_is_job(job->owner.kind) || (job->uid != OWNER_UID_UNKNOWN && job->uid != 0))
        return;
    uid = read_uid(table, process_fd);
    if (uid == OWNER_UID_UNKNOWN)
        return;
    job->uid = uid;
    job->pid = pid;
}

/* 0 or -ESRCH: it is gone. */
static int read_process(struct process_table *table, struct process *process)
{
    _cleanup_close_ int fd = proc_open(table->host, process->pid);
    struct span text = {table->buffer, 0};
    const struct cgroup_place *known;
    struct workload_owner owner;
    struct cgroup_place place;
    int r;

    if (fd < 0)
        return -ESRCH;
    table->stats.files_read++;
    r = proc_read_cgroup(table->host, fd, table->buffer, sizeof(table->buffer), &text.len);
    if (r < 0)
        return r == -ENOENT || r == -ESRCH ? -ESRCH : 0;
    known = cgroup_file_parse(text, &place) == 0 ? &place : NULL;
    owner_find(known, OWNER_UID_UNKNOWN, &owner);
    /* The path alone names nobody: it may be a user's. */
    if (owner.kind == WORKLOAD_SYSTEM || owner.kind == WORKLOAD_PROCESS)
        owner_find(known, read_uid(table, fd), &owner);
    process->owner = intern_owner(table, &owner);
    process->left_out = !process->owner;
    process->outside = known && place.kind == CGROUP_OUTSIDE;
    if (process->owner)
        find_job_user(table, fd, process->pid, &process->owner->view);
    return 0;
}

static bool is_due(struct process_table *table, const struct process *process)
{
    if (process->rereads > 0)
        return true;
    if (table->turns_left == 0 || process->pid < table->turn_pid)
        return false;
    table->turns_left--;
    table->turn_pid = process->pid + 1;
    return true;
}

/* `old` is what had the pid at the last scan. False: the process is gone. */
static bool visit_process(struct process_table *table, struct process *process,
                          const struct process *old, bool all)
{
    bool is_known = old->ino == process->ino && process->ino != INO_UNKNOWN;

    if (!all && is_known && !is_due(table, old)) {
        *process = *old;
    } else {
        process->rereads = is_known ? (uint8_t)(old->rereads - (old->rereads > 0)) : REREADS;
        if (read_process(table, process) < 0)
            return false;
    }
    table->stats.outside += process->outside;
    table->stats.left_out += process->left_out;
    table->stats.unread += !process->owner && !process->left_out;
    if (process->owner) {
        struct process_owner *owner = process->owner;

        owner->first_pid = owner->first_pid ? owner->first_pid : process->pid;
        owner->is_pid_live |= owner->view.pid == process->pid;
        owner->view.count++;
    }
    return true;
}

/* From here on: a scan. */

/* Both lists are sorted by pid: one pass finds which processes are new, known or gone. */
static void visit_processes(struct process_table *table, bool all)
{
    static const struct process none = {.ino = INO_UNKNOWN};
    const struct processes *now = &table->now;
    struct processes *next = &table->next;
    size_t kept = 0, at = 0;

    /* A scan takes turns from where the last one stopped, up to the last pid. */
    table->turns_left = all ? 0 : MIN(next->count / TURN_SCANS + 1, (size_t)TURN_MAX);
    for (size_t i = 0; i < next->count; i++) {
        struct process *process = &next->items[i];
        const struct process *old = &none;

        while (at < now->count && now->items[at].pid < process->pid)
            at++;
        if (at < now->count && now->items[at].pid == process->pid)
            old = &now->items[at];
        if (visit_process(table, process, old, all))
            next->items[kept++] = *process;
    }
    next->count = kept;
    if (table->turns_left > 0)
        table->turn_pid = 0;
}

static void begin_owners(struct process_table *table)
{
    for (size_t i = 0; i < table->owners.count; i++) {
        struct process_owner *owner = table->owners.items[i];

        owner->view.count = owner->first_pid = 0;
        owner->is_pid_live = false;
    }
}

static void end_owners(struct process_table *table, process_table_appeared *appeared, void *context)
{
    for (size_t i = table->owners.count; i-- > 0;) {
        struct process_owner *owner = table->owners.items[i];

        if (!owner->is_pid_live)
            owner->view.pid = owner->first_pid;
        if (owner->view.count == 0)
            table_remove(&table->owners, owner);
    }
    for (size_t i = 0; i < table->owners.count; i++) {
        struct process_owner *owner = table->owners.items[i];

        if (!owner->appeared && appeared)
            appeared(context, &owner->view);
        owner->appeared = true;
    }
}

int process_table_scan(struct process_table *table, bool all, process_table_appeared *appeared,
                       void *context)
{
    struct processes last = table->now;
    uint64_t left_out = 0;
    int r = list_processes(table, &left_out);

    if (r < 0)
        return r;
    table->stats = (struct process_table_stats){.left_out = left_out};
    begin_owners(table);
    visit_processes(table, all);
    table->now = table->next;
    table->next = last;
    end_owners(table, appeared, context);
    return 0;
}

const struct process_table_owner *process_table_owner_at(const struct process_table *table,
                                                         size_t index)
{
    const struct process_owner *owner =
        index < table->owners.count ? table->owners.items[index] : NULL;

    return owner ? &owner->view : NULL;
}

uint32_t process_table_next_pid(const struct process_table *table,
                                const struct process_table_owner *owner, uint32_t after_pid)
{
    for (size_t i = 0; i < table->now.count; i++) {
        const struct process *process = &table->now.items[i];

        if (process->pid > after_pid && process->owner && &process->owner->view == owner)
            return process->pid;
    }
    return 0;
}

void process_table_get_stats(const struct process_table *table,
                             struct process_table_stats *ret_stats)
{
    *ret_stats = table->stats;
    ret_stats->processes = table->now.count;
    ret_stats->owners = table->owners.count;
}

const char *process_table_error(const struct process_table_stats *stats)
{
    if (stats->processes == 0)
        return "procfs has no processes";
    if (stats->unread == stats->processes)
        return "procfs has processes, but the cgroups of none can be read";
    return NULL;
}
