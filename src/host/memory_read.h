/*
 * Memory read: a file of /proc/PID that the kernel copies from the memory of the process (cmdline,
 * environ), read in a thread of its own.
 *
 * Whoever reads it waits for a lock of the process (mmap_lock), which that holds for as long as it
 * likes: stuck in a driver, or on purpose. A read that hangs keeps its thread, so each process can
 * hang one of each file, and a user only some: others are still read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

enum { MEMORY_READS_MAX = 64, MEMORY_READS_PER_USER_MAX = 8 };

struct memory_read;

/*
 * Starts to read up to `max_bytes` of a file ("environ", a literal) below /proc/PID, for a process
 * of this user. NULL: this file of this process is being read already, too many reads hang, or out
 * of memory.
 */
struct memory_read *memory_read_start(int process_fd, uint32_t uid, const char *file,
                                      size_t max_bytes);

/* Waits for at most this long. False if it is still reading. The text is empty where the file
 * cannot be read. It is wiped with the read: it may hold passwords. */
bool memory_read_wait(struct memory_read *read, uint32_t timeout_ms, struct span *ret_text);

/* May hang still. Accepts NULL. */
void memory_read_free(struct memory_read *read);
