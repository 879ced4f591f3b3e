#include "identity/process_table.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "host/proc.h"
#include "identity/owner.h"
#include "identity/process/list.h"
#include "identity/process/owners.h"

/*
 * A process can change its cgroup and its user without any sign in the directory. Most do so in
 * their first moments (a container's first process starts in its runtime's cgroup), so the next
 * scans look again; after that everyone's turn comes about once in TURN_SCANS scans.
 */
enum {
    LOOKS_AGAIN = 2,
    TURN_SCANS = 60,
    TURN_MAX = 256, /* processes in one scan */
};

struct process {
    uint64_t ino;
    uint64_t start_ticks;        /* 0: unknown */
    struct process_owner *owner; /* NULL: could not be told */
    struct cgroup_text *text;    /* NULL: not kept */
    uint32_t pid;
    uint8_t looks_again;
    bool outside;
    bool left_out; /* there was no room for its owner */
};

/* Sorted by pid. */
struct processes {
    struct process *items;
    size_t count, capacity;
};

struct process_table {
    const struct host *host;
    struct processes now;
    struct processes next; /* filled by a scan, from `now` */
    struct process_list list;
    struct table owners; /* of struct process_owner */
    struct cgroup_texts texts;
    struct process_table_stats stats;
    size_t processes_max, owners_max;
    uint32_t turn_pid; /* whose turn it is: the first one from here on */
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
    process_list_done(&table->list);
    table_done(&table->owners);
    table_done(&table->texts.table);
    free(table);
}

void process_table_set_caps(struct process_table *table, size_t processes, size_t owners)
{
    table->processes_max = MIN(processes, (size_t)PROCESS_TABLE_MAX);
    table->owners_max = MIN(owners, (size_t)PROCESS_TABLE_OWNERS_MAX);
}

/* From here on: one process. */

static void hold(struct process *process)
{
    if (process->owner)
        process->owner->view.count++;
    if (process->text)
        process->text->processes++;
}

static void let_go(struct process_table *table, const struct process *process)
{
    struct process_owner *owner = process->owner;

    cgroup_texts_leave(&table->texts, process->text);
    if (!owner)
        return;
    owner->view.count--;
    if (owner->view.pid == process->pid)
        owner->view.pid = 0;
}

static uint64_t read_start(struct process_table *table, int process_fd)
{
    struct span text = {table->buffer, 0}, command;
    uint64_t ticks;

    table->stats.files_read++;
    if (fs_read_at(process_fd, "stat", table->buffer, sizeof(table->buffer), &text.len) < 0 ||
        proc_parse_stat(text, &command, &ticks) < 0)
        return 0;
    return ticks;
}

static uint32_t read_uid(struct process_table *table, int process_fd)
{
    table->stats.files_read++;
    return proc_read_uid(process_fd);
}

/* The path alone names nobody: it may be a user's. */
static bool depends_on_user(const struct workload_owner *owner)
{
    return owner->kind == WORKLOAD_SYSTEM || owner->kind == WORKLOAD_PROCESS;
}

/* `place` is NULL where the cgroups tell nothing. */
static void find_payer(const struct cgroup_place *place, uint32_t uid,
                       struct workload_owner *ret_owner)
{
    if (place)
        owner_find(place, uid, ret_owner);
    else
        owner_of_cgroup_file((struct span){"", 0}, uid, ret_owner);
}

/* Parses what is not in the cache, or depends on the user. */
static void find_owner(struct process_table *table, int process_fd, struct span bytes,
                       struct process *process)
{
    struct cgroup_file_faults faults = {0};
    struct workload_owner owner;
    struct cgroup_place place;
    bool placed = cgroup_file_parse(bytes, &place, &faults) == 0, by_user;

    find_payer(placed ? &place : NULL, OWNER_UID_UNKNOWN, &owner);
    by_user = depends_on_user(&owner);
    if (by_user)
        find_payer(placed ? &place : NULL, read_uid(table, process_fd), &owner);
    process->owner = process_owners_intern(&table->owners, table->owners_max, &owner);
    process->left_out = !process->owner;
    process->outside = placed && place.kind == CGROUP_OUTSIDE;
    if (process->text || process->left_out)
        return;
    table->stats.lines_skipped += faults.lines_skipped;
    process->text = cgroup_texts_add(&table->texts, bytes);
    if (!process->text)
        return;
    process->text->owner = by_user ? NULL : process->owner;
    process->text->outside = process->outside;
}

/* A job's user is nowhere else. Root is not believed at once: it may be the scheduler's own
 * process. */
static void find_user_of_job(struct process_table *table, int process_fd,
                             const struct process *process)
{
    struct process_table_owner *job = &process->owner->view;
    uint32_t uid;

    if (!workload_is_job(job->owner.kind) || (job->uid != OWNER_UID_UNKNOWN && job->uid != 0))
        return;
    uid = read_uid(table, process_fd);
    if (uid == OWNER_UID_UNKNOWN)
        return;
    job->uid = uid;
    job->pid = process->pid;
}

/* Fills in what its cgroups say. 0 or -ESRCH: it is gone. */
static int read_cgroups(struct process_table *table, int process_fd, struct process *process)
{
    struct span bytes = {table->buffer, 0};
    int r;

    table->stats.files_read++;
    r = proc_read_cgroup(table->host, process_fd, table->buffer, sizeof(table->buffer), &bytes.len);
    if (r == -ENOENT || r == -ESRCH)
        return -ESRCH;
    if (r < 0)
        return 0;
    process->text = cgroup_texts_find(&table->texts, bytes);
    if (process->text && process->text->owner) {
        process->owner = process->text->owner;
        process->outside = process->text->outside;
    } else {
        find_owner(table, process_fd, bytes, process);
    }
    if (process->owner)
        find_user_of_job(table, process_fd, process);
    return 0;
}

/* The directory of the pid is still the one that it was. */
static bool is_known(const struct process *old, const struct process_list_item *seen)
{
    return old->ino == seen->ino && seen->ino != PROCESS_LIST_INO_UNKNOWN;
}

/* Reads the process that is seen now; `old` had its pid before. False: it is gone. */
static bool read_process(struct process_table *table, const struct process_list_item *seen,
                         const struct process *old, bool all, struct process *ret_process)
{
    _cleanup_close_ int fd = proc_open(table->host, seen->pid);
    struct process process = {.ino = seen->ino, .pid = seen->pid, .looks_again = LOOKS_AGAIN};
    bool known = is_known(old, seen);

    if (fd < 0)
        return false;
    process.start_ticks = known && !all ? old->start_ticks : read_start(table, fd);
    /* The kernel makes inodes anew when it needed their memory: that makes no process new. */
    if (known || (old->start_ticks == process.start_ticks && old->start_ticks != 0))
        process.looks_again = (uint8_t)(old->looks_again > 0 ? old->looks_again - 1 : 0);
    if (read_cgroups(table, fd, &process) < 0)
        return false;
    *ret_process = process;
    return true;
}

static bool is_due(struct process_table *table, const struct process *process)
{
    if (process->looks_again > 0)
        return true;
    if (table->turns_left == 0 || process->pid < table->turn_pid)
        return false;
    table->turns_left--;
    table->turn_pid = process->pid + 1;
    return true;
}

/* From here on: a scan. */

static void keep(struct process_table *table, struct process process)
{
    table->next.items[table->next.count++] = process;
    table->stats.outside += process.outside;
    table->stats.left_out += process.left_out;
    table->stats.unread += !process.owner && !process.left_out;
}

/* The owner's `pid` is this one if it has none (any more). */
static void name_process(const struct process *process)
{
    if (process->owner && process->owner->view.pid == 0)
        process->owner->view.pid = process->pid;
}

static void visit(struct process_table *table, const struct process_list_item *seen,
                  const struct process *old, bool all)
{
    struct process process;
    bool lives;

    if (!all && is_known(old, seen) && !is_due(table, old)) {
        keep(table, *old);
        return;
    }
    lives = read_process(table, seen, old, all, &process);
    if (lives) {
        hold(&process);
        keep(table, process);
    }
    /* Only now: most keep their text, which would be freed with the last that has it. */
    let_go(table, old);
    if (lives)
        name_process(&process);
}

/* Both are sorted by pid: one walk over the two finds who is new, known or gone. */
static void visit_all(struct process_table *table, bool all)
{
    static const struct process nobody = {.ino = PROCESS_LIST_INO_UNKNOWN};
    const struct process *old = table->now.items, *end = old + table->now.count;

    for (size_t i = 0; i < table->list.count; i++) {
        const struct process_list_item *seen = &table->list.items[i];

        for (; old < end && old->pid < seen->pid; old++)
            let_go(table, old);
        if (old < end && old->pid == seen->pid)
            visit(table, seen, old++, all);
        else
            visit(table, seen, &nobody, all);
    }
    for (; old < end; old++)
        let_go(table, old);
}

static int make_room(struct processes *processes, size_t count)
{
    size_t capacity = MAX(count + count / 8, (size_t)256);
    struct process *items;

    processes->count = 0;
    if (processes->capacity >= count)
        return 0;
    items = realloc(processes->items, capacity * sizeof(*items));
    if (!items)
        return -ENOMEM;
    processes->items = items;
    processes->capacity = capacity;
    return 0;
}

/* A scan takes turns from where the last one stopped, up to the last pid. */
static void visit_by_turns(struct process_table *table)
{
    table->turns_left = MIN(table->list.count / TURN_SCANS + 1, (size_t)TURN_MAX);
    visit_all(table, false);
    if (table->turns_left > 0)
        table->turn_pid = 0;
}

/* The processes that some owners named are gone: they name others. */
static void name_processes(const struct process_table *table)
{
    bool missing = false;

    for (size_t i = 0; i < table->owners.count; i++)
        missing = missing || process_table_owner_at(table, i)->pid == 0;
    for (size_t i = 0; i < table->now.count && missing; i++)
        name_process(&table->now.items[i]);
}

static void tell_new(struct process_table *table,
                     void (*appeared)(void *context, const struct process_table_owner *owner),
                     void *context)
{
    for (size_t i = 0; i < table->owners.count; i++) {
        struct process_owner *owner = table->owners.items[i];

        if (!owner->appeared && appeared)
            appeared(context, &owner->view);
        owner->appeared = true;
    }
}

int process_table_scan(struct process_table *table, bool all,
                       void (*appeared)(void *context, const struct process_table_owner *owner),
                       void *context)
{
    uint64_t lines_skipped = table->stats.lines_skipped;
    struct processes last;
    int r = process_list_read(&table->list, table->host->procfs_fd, table->processes_max,
                              table->buffer, sizeof(table->buffer));

    if (r == 0)
        r = make_room(&table->next, table->list.count);
    if (r < 0)
        return r;
    table->stats = (struct process_table_stats){
        .left_out = table->list.left_out,
        .lines_skipped = lines_skipped,
    };
    if (all)
        visit_all(table, true);
    else
        visit_by_turns(table);
    last = table->now;
    table->now = table->next;
    table->next = last;
    process_owners_sweep(&table->owners);
    name_processes(table);
    tell_new(table, appeared, context);
    return 0;
}

static const struct process *find(const struct process_table *table, uint32_t pid)
{
    size_t low = 0, high = table->now.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->now.items[middle].pid == pid)
            return &table->now.items[middle];
        if (table->now.items[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct process_table_owner *process_table_find(const struct process_table *table,
                                                     uint32_t pid)
{
    const struct process *process = find(table, pid);

    return process && process->owner ? &process->owner->view : NULL;
}

uint64_t process_table_start_ticks(const struct process_table *table, uint32_t pid)
{
    const struct process *process = find(table, pid);

    return process ? process->start_ticks : 0;
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

const char *process_table_trouble(const struct process_table_stats *stats)
{
    if (stats->processes == 0)
        return "procfs has no processes";
    if (stats->unread == stats->processes)
        return "procfs has processes, but the cgroups of none can be read";
    return NULL;
}
