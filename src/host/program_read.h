/* Program read: the keys of a process's program. A process that blocks the read of its arguments
 * (memory_read.h) loses its keys, and nobody loses energy. */
#pragma once

#include "host/proc.h"

struct program_read;

/* Starts reading the keys of this process: of its pid, start and uid. NULL: without a secret there
 * are no keys, or its arguments cannot be read now. The reader must outlive it. */
struct program_read *program_read_start(const struct proc_reader *reader,
                                        const struct sample_process *process);

/* Waits for at most this long. False if it is still reading. The keys are 0 if there are none. */
bool program_read_wait(struct program_read *read, uint32_t timeout_ms, struct program_key *ret_key);

/* May hang still. Accepts NULL. */
void program_read_free(struct program_read *read);
