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
 * `executable` is the target of /proc/PID/exe, `arguments` the text of /proc/PID/cmdline. Both keys
 * are 0 if the process has overwritten its arguments: a title says what it does now, not what it
 * is.
 *
 * The coarse key leaves out what differs from run to run: numbers, addresses, hexadecimal ids,
 * paths as values of long options, and the directories of other paths.
 */
struct program_key program_key_of(const struct program_secret *secret, struct span executable,
                                  struct span arguments);
