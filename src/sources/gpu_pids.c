#include "sources/gpu_pids.h"

#include <errno.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/macros.h"
#include "core/map.h"
#include "host/program_read.h"

/*
 * Known processes are identified again: they move (a container's first one begins in the runtime's
 * cgroup, Slurm moves its tasks), and a pid can be reused between two lists.
 */
static const uint64_t RECHECK_US[] = {USEC_PER_SEC, 3 * USEC_PER_SEC, 10 * USEC_PER_SEC};

static struct gpu_pid *find(const struct gpu_pids *pids, uint32_t pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i].pid == pid)
            return &pids->items[i];
    return NULL;
}

bool gpu_pids_have(const struct gpu_pids *pids, uint32_t pid)
{
    return find(pids, pid);
}

int gpu_pids_recall(const struct gpu_pids *pids, uint32_t pid, struct arena *arena,
                    struct sample_process *ret_process)
{
    const struct source_context *context = pids->context;

    if (!context->recall)
        return -ESRCH;
    return context->recall(context->recall_context, pid, arena, ret_process);
}

/* Reads its arguments once, before it has time to overwrite them. */
static int read_process(const struct gpu_pids *pids, struct gpu_pid *known, struct arena *arena,
                        struct sample_process *ret_process)
{
    int r = proc_identify(pids->proc, known->pid, arena, ret_process);
    bool is_new = !known->identity || ret_process->start_us != known->start_us;

    if (r < 0)
        return r;
    if (is_new || known->is_key_due) {
        program_read_free(known->program);
        known->program = program_read_start(pids->proc, ret_process);
        known->is_key_due = !known->program;
    }
    if (known->program &&
        program_read_wait(known->program, is_new ? pids->context->program_wait_ms : 0,
                          &ret_process->program)) {
        program_read_free(known->program);
        known->program = NULL;
    }
    return 0;
}

/* Is it time to identify it? */
static bool is_due(struct gpu_pid *known, uint64_t now_us)
{
    const uint64_t longest_us = RECHECK_US[ARRAY_SIZE(RECHECK_US) - 1];

    /* The second: the wall clock was set back. */
    if (now_us < known->check_us && known->check_us - now_us <= longest_us)
        return false;
    known->check_us = now_us + RECHECK_US[MIN(known->checks, (uint32_t)ARRAY_SIZE(RECHECK_US) - 1)];
    known->checks++;
    return true;
}

int gpu_pids_see(struct gpu_pids *pids, uint32_t pid, uint32_t gpu_instance, uint64_t now_us,
                 struct batch *batch)
{
    struct gpu_pid *known = find(pids, pid);
    struct sample_process process;
    uint64_t identity;
    int r;

    if (!known) {
        if (!array_reserve(&pids->items, &pids->capacity, pids->count, sizeof(*known)))
            return 0; /* the next round tries again */
        known = &pids->items[pids->count++];
        *known = (struct gpu_pid){.pid = pid};
    }
    known->round = pids->round;
    known->gpu_instance = gpu_instance;
    if (!is_due(known, now_us))
        return 0;
    r = read_process(pids, known, &batch->arena, &process);
    if (r == -ESRCH)
        r = gpu_pids_recall(pids, pid, &batch->arena, &process); /* it has ended already */
    if (r < 0)
        return 0;
    identity = map_hash_u64(map_hash_bytes(span_of(process.cgroup)) + process.start_us) | 1;
    if (identity == known->identity && process.program.exact == 0)
        return 0;
    known->identity = identity;
    known->start_us = process.start_us;
    return batch_add(
        batch, &(struct sample){
                   .kind = SAMPLE_PROCESS, .gpu = pids->gpu, .t_us = now_us, .process = process});
}

void gpu_pids_end_round(struct gpu_pids *pids)
{
    size_t kept = 0;

    for (size_t i = 0; i < pids->count; i++) {
        if (pids->items[i].round == pids->round)
            pids->items[kept++] = pids->items[i];
        else
            program_read_free(pids->items[i].program);
    }
    pids->count = kept;
    pids->round++;
}

void gpu_pids_done(struct gpu_pids *pids)
{
    for (size_t i = 0; i < pids->count; i++)
        program_read_free(pids->items[i].program);
    free(pids->items);
}
