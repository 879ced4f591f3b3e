#include "identity/process/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* In one piece with its texts. */
struct recent_process {
    struct sample_process process;
    uint64_t at_us;
    size_t bytes; /* of all of it */
    char texts[];
};

int recent_processes_init(struct recent_processes *recent, uint64_t keep_us)
{
    struct recent_process **ring = calloc(RECENT_PROCESSES_MAX, sizeof(struct recent_process *));

    if (!ring)
        return -ENOMEM;
    *recent = (struct recent_processes){.keep_us = keep_us, .ring = ring};
    return 0;
}

static bool is_pid(const void *context, uint32_t value, const void *key)
{
    const struct recent_processes *recent = context;

    return recent->ring[value]->process.pid == *(const uint32_t *)key;
}

static void forget_oldest(struct recent_processes *recent)
{
    size_t place = recent->oldest;
    struct recent_process *process = recent->ring[place];

    /* Removes nothing if the pid was seen again since. */
    map_remove(&recent->map, map_hash_u64(process->process.pid), (uint32_t)place);
    recent->used_bytes -= process->bytes;
    free(process);
    recent->ring[place] = NULL;
    recent->oldest = (place + 1) % RECENT_PROCESSES_MAX;
    recent->count--;
}

void recent_processes_done(struct recent_processes *recent)
{
    while (recent->count > 0)
        forget_oldest(recent);
    free(recent->ring);
    map_done(&recent->map);
    *recent = (struct recent_processes){0};
}

static bool is_fresh(const struct recent_processes *recent, const struct recent_process *process,
                     uint64_t now_us)
{
    return now_us < process->at_us || now_us - process->at_us <= recent->keep_us;
}

static void make_room(struct recent_processes *recent, uint64_t now_us, size_t bytes)
{
    while (recent->count > 0 && (!is_fresh(recent, recent->ring[recent->oldest], now_us) ||
                                 recent->count == RECENT_PROCESSES_MAX ||
                                 recent->used_bytes + bytes > RECENT_PROCESSES_BYTES_MAX))
        forget_oldest(recent);
}

static struct recent_process *copy(const struct sample_process *process, size_t name_bytes,
                                   size_t cgroup_bytes)
{
    size_t bytes = sizeof(struct recent_process) + name_bytes + cgroup_bytes;
    struct recent_process *made = malloc(bytes);

    if (!made)
        return NULL;
    made->process = *process;
    made->process.name = memcpy(made->texts, process->name, name_bytes);
    made->process.cgroup = memcpy(made->texts + name_bytes, process->cgroup, cgroup_bytes);
    made->bytes = bytes;
    return made;
}

int recent_processes_add(struct recent_processes *recent, uint64_t now_us,
                         const struct sample_process *process)
{
    size_t name_bytes = strlen(process->name) + 1, cgroup_bytes = strlen(process->cgroup) + 1;
    size_t bytes = sizeof(struct recent_process) + name_bytes + cgroup_bytes;
    uint64_t hash = map_hash_u64(process->pid);
    struct recent_process *made;
    uint32_t place, before;
    int r;

    if (bytes > RECENT_PROCESSES_BYTES_MAX)
        return -E2BIG;
    make_room(recent, now_us, bytes);
    made = copy(process, name_bytes, cgroup_bytes);
    if (!made)
        return -ENOMEM;
    made->at_us = now_us;
    place = (uint32_t)((recent->oldest + recent->count) % RECENT_PROCESSES_MAX);
    if (map_find(&recent->map, hash, is_pid, recent, &process->pid, &before))
        map_remove(&recent->map, hash, before);
    r = map_insert(&recent->map, hash, place);
    if (r < 0) {
        free(made);
        return r;
    }
    recent->ring[place] = made;
    recent->count++;
    recent->used_bytes += bytes;
    return 0;
}

int recent_processes_find(const struct recent_processes *recent, uint64_t now_us, uint32_t pid,
                          struct arena *arena, struct sample_process *ret_process)
{
    struct sample_process process;
    uint32_t place;

    if (!map_find(&recent->map, map_hash_u64(pid), is_pid, recent, &pid, &place) ||
        !is_fresh(recent, recent->ring[place], now_us))
        return -ESRCH;
    process = recent->ring[place]->process;
    process.name = arena_copy(arena, process.name, strlen(process.name));
    process.cgroup = arena_copy(arena, process.cgroup, strlen(process.cgroup));
    if (!process.name || !process.cgroup)
        return -ENOMEM;
    *ret_process = process;
    return 0;
}
