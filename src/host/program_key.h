/*
 * Program keys: keyed hashes of a command line, by which a program is recognised when it runs
 * again. Pure. Arguments may hold secrets, so nothing but these hashes is kept of them.
 */
#pragma once

#include "core/span.h"
#include "model/sample.h"

struct program_secret {
    uint64_t words[2];
};

/*
 * `executable` is the target of /proc/PID/exe without " (deleted)": an upgrade makes no other
 * program; empty if it cannot be read. `arguments` is the text of /proc/PID/cmdline, for which no
 * permission is needed. Both keys are 0 if there are none, or the process has overwritten them: a
 * title says what it does now, not what it is.
 *
 * The coarse key leaves out what differs from run to run: numbers, addresses, UUIDs, ids, digits at
 * the end of a name, and the directories of paths. Words stay. Names that differ only in such
 * digits (Llama-2 and Llama-3, resnet50 and resnet101) are one: it is a hint, and validated.
 */
struct program_key program_key_of(const struct program_secret *secret, struct span executable,
                                  struct span arguments);
