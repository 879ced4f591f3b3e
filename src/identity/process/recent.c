#include "identity/process/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Allocated together with its texts. */
struct recent_process {
    struct sample_process process;
    uint64_t at_us;
    size_t bytes; /* all of it */
    char texts[];
};

int recent_processes_init(struct recent_processes *recent, uint64_t keep_us)
{
    struct recent_slot *ring = calloc(RECENT_PROCESSES_MAX, sizeof(*ring));

    if (!ring)
        return -ENOMEM;
    *recent = (struct recent_processes){.keep_us = keep_us, .ring = ring};
    return 0;
}

static void forget_oldest(struct recent_processes *recent)
{
    struct recent_process *process = recent->ring[recent->oldest].process;

    recent->used_bytes -= process->bytes;
    free(process);
    recent->oldest = (recent->oldest + 1) % RECENT_PROCESSES_MAX;
    recent->count--;
}

void recent_processes_done(struct recent_processes *recent)
{
    while (recent->count > 0)
        forget_oldest(recent);
    free(recent->ring);
    *recent = (struct recent_processes){0};
}

static bool is_fresh(const struct recent_processes *recent, const struct recent_process *process,
                     uint64_t now_us)
{
    return now_us < process->at_us || now_us - process->at_us <= recent->keep_us;
}

int recent_processes_add(struct recent_processes *recent, uint64_t now_us,
                         const struct sample_process *process)
{
    size_t name_bytes = strlen(process->name) + 1, cgroup_bytes = strlen(process->cgroup) + 1;
    size_t bytes = sizeof(struct recent_process) + name_bytes + cgroup_bytes, place;
    struct recent_process *made;

    if (bytes > RECENT_PROCESSES_BYTES_MAX)
        return -E2BIG;
    while (recent->count > 0 && (!is_fresh(recent, recent->ring[recent->oldest].process, now_us) ||
                                 recent->count == RECENT_PROCESSES_MAX ||
                                 recent->used_bytes + bytes > RECENT_PROCESSES_BYTES_MAX))
        forget_oldest(recent);
    made = malloc(bytes);
    if (!made)
        return -ENOMEM;
    *made = (struct recent_process){.process = *process, .at_us = now_us, .bytes = bytes};
    made->process.name = memcpy(made->texts, process->name, name_bytes);
    made->process.cgroup = memcpy(made->texts + name_bytes, process->cgroup, cgroup_bytes);
    place = (recent->oldest + recent->count++) % RECENT_PROCESSES_MAX;
    recent->ring[place] = (struct recent_slot){process->pid, made};
    recent->used_bytes += bytes;
    return 0;
}

int recent_processes_find(const struct recent_processes *recent, uint64_t now_us, uint32_t pid,
                          struct arena *arena, struct sample_process *ret_process)
{
    for (size_t i = recent->count; i-- > 0;) { /* the newest first */
        const struct recent_slot *slot = &recent->ring[(recent->oldest + i) % RECENT_PROCESSES_MAX];
        struct sample_process process;

        if (slot->pid != pid)
            continue;
        if (!is_fresh(recent, slot->process, now_us))
            break;
        process = slot->process->process;
        process.name = arena_copy(arena, process.name, strlen(process.name));
        process.cgroup = arena_copy(arena, process.cgroup, strlen(process.cgroup));
        if (!process.name || !process.cgroup)
            return -ENOMEM;
        *ret_process = process;
        return 0;
    }
    return -ESRCH;
}
