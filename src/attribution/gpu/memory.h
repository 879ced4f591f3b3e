/*
 * GPU memory inference: what no process is seen to hold is divided among the containers that can
 * use the GPU and have no process to be seen on it. Pure.
 */
#pragma once

#include <stdbool.h>

#include "model/snapshot.h"
#include "model/workload.h"

/* Did all of them ask for a certain amount of memory? Then they are weighed by it. */
bool memory_is_asked(const struct attached *attached, size_t count);

/* The weight of one of them when something is divided: what it asked for if all did, else how often
 * it was given the GPU. */
uint64_t memory_weight(const struct attached *attached, bool is_asked);

/*
 * Adds the containers of one GPU to the snapshot's: those whose processes are seen on it, with
 * their memory, and those to whom its unknown memory is inferred. 0 or -ENOMEM.
 */
int memory_divide(struct snapshot *snapshot, struct snapshot_gpu *gpu,
                  const struct attached *attached, size_t attached_count);

/* Lists the containers of all GPUs, each once. 0 or -ENOMEM. */
int memory_list_containers(struct snapshot *snapshot);
