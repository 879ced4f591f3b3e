/* The pids that a GPU's driver names: each is identified when it is first seen, and again from time
 * to time. One set for each GPU, of its thread alone. */
#pragma once

#include "host/proc.h"
#include "sources/source.h"

struct gpu_pid {
    uint32_t pid;
    uint32_t gpu_instance; /* in the last list, or SAMPLE_NO_INSTANCE */
    uint32_t checks;
    uint64_t round;
    uint64_t check_us;            /* when to identify it again */
    uint64_t identity;            /* a hash of the last sample of it; 0: none yet */
    uint64_t start_us;            /* in that sample */
    struct program_read *program; /* being read; NULL: not, or no longer */
    bool is_key_due;              /* too many reads hung */
};

struct gpu_pids {
    const struct source_context *context;
    const struct proc_reader *proc;
    uint32_t gpu; /* of the samples */
    struct gpu_pid *items;
    size_t count, capacity;
    uint64_t round;
};

/* Marks a pid as seen in this round, and adds a sample of its process, once for as long as it stays
 * the same. 0, or -errno as batch_add. */
int gpu_pids_see(struct gpu_pids *pids, uint32_t pid, uint32_t gpu_instance, uint64_t now_us,
                 struct batch *batch);

bool gpu_pids_have(const struct gpu_pids *pids, uint32_t pid);

/* Ends a round: forgets those that were not seen in it, whose pids may be reused. */
void gpu_pids_end_round(struct gpu_pids *pids);

/* A process that has ended already. -ESRCH: unknown. */
int gpu_pids_recall(const struct gpu_pids *pids, uint32_t pid, struct arena *arena,
                    struct sample_process *ret_process);

void gpu_pids_done(struct gpu_pids *pids);
