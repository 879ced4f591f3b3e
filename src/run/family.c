#include "run/family.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/span.h"
#include "host/proc.h"

enum { STAT_BYTES = 4096, CHILDREN_BYTES = 1 << 20, DEPTH_MAX = 512 };

/* Fields of /proc/PID/stat after the command, from 0 (proc_pid_stat(5) counts from 1, and that is
 * its third). */
enum {
    STAT_STATE = 0,
    STAT_PARENT = 1,
    STAT_UTIME = 11,
    STAT_STIME,
    STAT_CUTIME,
    STAT_CSTIME,
    STAT_FIELDS
};

int family_init(struct family *family)
{
    *family = (struct family){.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (family->proc_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

void family_done(struct family *family)
{
    cleanup_close(&family->proc_fd);
    free(family->items);
    *family = (struct family){.proc_fd = -1};
}

int family_parse_stat(const char *text, size_t len, uint64_t tick_us, struct relative *ret_relative)
{
    struct span whole = {text, len}, command, rest;
    struct relative relative = {.is_alive = true};
    uint64_t ticks[STAT_FIELDS] = {0};
    const char *close;

    if (proc_parse_stat(whole, &command, &relative.start_ticks) < 0)
        return -EBADMSG;
    close = memrchr(text, ')', len);
    rest = (struct span){close + 1, len - (size_t)(close + 1 - text)};
    (void)span_strip_prefix(&rest, " ");
    for (int field = 0; field < STAT_FIELDS; field++) {
        struct span value = span_cut(&rest, ' ');

        if (field == STAT_STATE)
            relative.is_alive = !span_equals(value, "Z") && !span_equals(value, "X");
        if (field == STAT_PARENT && parse_u64_max(value, INT_MAX, &ticks[field]) < 0)
            return -EBADMSG;
        if (field >= STAT_UTIME && parse_u64_max(value, UINT64_MAX / tick_us, &ticks[field]) < 0)
            return -EBADMSG;
    }
    snprintf(relative.name, sizeof(relative.name), "%.*s", (int)command.len, command.data);
    relative.parent = (pid_t)ticks[STAT_PARENT];
    relative.cpu_us = (ticks[STAT_UTIME] + ticks[STAT_STIME]) * tick_us;
    relative.waited_cpu_us = (ticks[STAT_CUTIME] + ticks[STAT_CSTIME]) * tick_us;
    *ret_relative = relative;
    return 0;
}

/* Resident, less what it shares with others (statm, in pages). */
static uint64_t read_memory(const struct family *family, pid_t pid)
{
    char path[32], text[256];
    struct span rest = {text, 0};
    uint64_t resident, shared;

    snprintf(path, sizeof(path), "%d/statm", (int)pid);
    if (fs_read_at(family->proc_fd, path, text, sizeof(text), &rest.len) < 0)
        return 0;
    span_cut(&rest, ' ');
    if (parse_u64_max(span_cut(&rest, ' '), UINT32_MAX, &resident) < 0 ||
        parse_u64_max(span_cut(&rest, ' '), resident, &shared) < 0)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The same process under another name (exec) is one; another process with the same pid is not. */
static struct relative *find(const struct family *family, pid_t pid, uint64_t start_ticks)
{
    for (size_t i = family->count; i-- > 0;)
        if (family->items[i].pid == pid && family->items[i].start_ticks == start_ticks)
            return &family->items[i];
    return NULL;
}

/* With its children. What it has waited for includes what was seen of them, if it waits at all. */
static uint64_t whole_cpu_us(const struct relative *relative)
{
    return MAX(relative->cpu_us + MAX(relative->waited_cpu_us, relative->gone_cpu_us),
               relative->reaped_cpu_us);
}

static uint64_t missed_us(const struct relative *relative)
{
    return relative->waited_cpu_us == 0 || relative->waited_cpu_us < relative->gone_cpu_us
               ? relative->gone_after_us
               : 0;
}

/* Nobody may ever wait for it. */
static void note_gone(struct family *family, struct relative *relative, uint64_t after_us)
{
    struct relative *parent = (struct relative *)family_find(family, relative->parent);

    relative->is_alive = false;
    if (!parent || parent == relative)
        return; /* a child of ours: it will be reaped */
    parent->gone_cpu_us += whole_cpu_us(relative);
    parent->gone_after_us += after_us + missed_us(relative);
}

/* NULL: it is gone, or there are too many. */
static struct relative *look_at(struct family *family, pid_t pid)
{
    uint64_t tick_us = USEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
    struct relative now, *relative;
    bool was_alive;
    char path[32], text[STAT_BYTES];
    size_t len;

    snprintf(path, sizeof(path), "%d/stat", (int)pid);
    if (fs_read_at(family->proc_fd, path, text, sizeof(text), &len) < 0 ||
        family_parse_stat(text, len, tick_us, &now) < 0)
        return NULL;
    now.pid = pid;
    now.scan = family->scans;
    relative = find(family, pid, now.start_ticks);
    if (!relative) {
        if (family->count == FAMILY_MAX || !array_reserve(&family->items, &family->capacity,
                                                          family->count, sizeof(*family->items))) {
            family->is_cut = true;
            return NULL;
        }
        relative = &family->items[family->count++];
        *relative = (struct relative){.is_alive = true};
    }
    now.memory_bytes = now.is_alive ? read_memory(family, pid) : 0;
    now.gone_cpu_us = relative->gone_cpu_us;
    now.gone_after_us = relative->gone_after_us;
    now.is_reaped = relative->is_reaped;
    now.reaped_cpu_us = relative->reaped_cpu_us;
    was_alive = relative->is_alive;
    *relative = now;
    if (was_alive && !now.is_alive) /* a zombie: this is all that it used */
        note_gone(family, relative, 0);
    return relative;
}

void family_note(struct family *family, pid_t pid)
{
    (void)look_at(family, pid);
}

void family_reap(struct family *family, pid_t pid, uint64_t cpu_us)
{
    for (size_t i = family->count; i-- > 0;)
        if (family->items[i].pid == pid) {
            family->items[i].is_alive = false;
            family->items[i].is_reaped = true;
            family->items[i].reaped_cpu_us = cpu_us;
            return;
        }
    family->reaped_cpu_us += cpu_us;
}

static bool is_waiting(const struct family *family, pid_t pid)
{
    for (size_t i = 0; i < family->waiting_count; i++)
        if (family->waiting[i].pid == pid && family->waiting[i].fd >= 0)
            return true;
    return false;
}

static void scan_children(struct family *family, pid_t pid, unsigned depth);

/* "12 13 14 " */
static void scan_list(struct family *family, int tasks_fd, const char *task, unsigned depth)
{
    _cleanup_free_ char *data = NULL;
    struct span rest = {NULL, 0};
    char path[NAME_MAX + 16];
    uint64_t child;

    snprintf(path, sizeof(path), "%s/children", task);
    if (fs_read_all_at(tasks_fd, path, CHILDREN_BYTES, &data, &rest.len) < 0)
        return;
    rest.data = data;
    while (rest.len > 0)
        if (parse_u64_max(span_cut(&rest, ' '), INT_MAX, &child) == 0 &&
            !is_waiting(family, (pid_t)child)) {
            const struct relative *relative = look_at(family, (pid_t)child);

            if (relative && relative->is_alive && depth < DEPTH_MAX)
                scan_children(family, (pid_t)child, depth + 1);
        }
}

/* Those that any of its threads has started. */
static void scan_children(struct family *family, pid_t pid, unsigned depth)
{
    const struct dirent *entry;
    char path[32];
    DIR *dir;

    snprintf(path, sizeof(path), "%d/task", (int)pid);
    dir = fs_open_dir(family->proc_fd, path);
    while (dir && (entry = readdir(dir)))
        if (parse_is_digit(entry->d_name[0]))
            scan_list(family, dirfd(dir), entry->d_name, depth);
    if (dir)
        closedir(dir);
}

void family_scan(struct family *family)
{
    uint64_t now_us = clock_system.monotonic_us(&clock_system);
    uint64_t since_us = family->scanned_us > 0 ? now_us - family->scanned_us : 0;

    family->scans++;
    family->scanned_us = now_us;
    scan_children(family, getpid(), 0);
    /* Children come after their parents. */
    for (size_t i = family->count; i-- > 0;)
        if (family->items[i].is_alive && family->items[i].scan != family->scans)
            note_gone(family, &family->items[i], since_us);
}

uint64_t family_missed_us(const struct family *family)
{
    uint64_t total_us = 0;

    for (size_t i = 0; i < family->count; i++)
        if (family->items[i].is_alive || family->items[i].is_reaped)
            total_us += missed_us(&family->items[i]);
    return total_us;
}

uint64_t family_cpu_us(const struct family *family)
{
    uint64_t total_us = family->reaped_cpu_us;

    for (size_t i = 0; i < family->count; i++)
        if (family->items[i].is_alive || family->items[i].is_reaped)
            total_us += whole_cpu_us(&family->items[i]);
    return total_us;
}

uint64_t family_memory_bytes(const struct family *family)
{
    uint64_t total_bytes = 0;

    for (size_t i = 0; i < family->count; i++)
        if (family->items[i].is_alive)
            total_bytes += family->items[i].memory_bytes;
    return total_bytes;
}

const struct relative *family_find(const struct family *family, pid_t pid)
{
    for (size_t i = family->count; i-- > 0;)
        if (family->items[i].pid == pid)
            return &family->items[i];
    return NULL;
}

size_t family_count_alive(const struct family *family)
{
    size_t count = 0;

    for (size_t i = 0; i < family->count; i++)
        count += family->items[i].is_alive;
    return count;
}
