/*
 * Program read: the keys of a process's program, read in a thread of its own.
 *
 * Whoever reads the arguments of a process waits for a lock of it (mmap_lock), which it holds for
 * as long as it likes: stuck in a driver, or on purpose. That may cost its keys, but nobody's
 * energy.
 */
#pragma once

#include "host/proc.h"

struct program_read;

/* Starts reading the keys of the process that started at this time. NULL: without a secret there
 * are no keys, or too many reads hang. */
struct program_read *program_read_start(const struct proc_reader *reader, uint32_t pid,
                                        uint64_t start_us);

/* Waits for at most this long. False if it is still reading. The keys are 0 if there are none. */
bool program_read_wait(struct program_read *read, uint32_t timeout_ms, struct program_key *ret_key);

/* May hang still. */
void program_read_free(struct program_read *read);
