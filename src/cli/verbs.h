/* The verbs, one file each. They return the exit status of the program. */
#pragma once

#include "cli/cli.h"

/* 0: done; 1: the work failed (bad trace, lost peer); 2: the call was wrong (flag, address, file).
 */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int verb_serve(const struct cli *cli);
int verb_replay(const struct cli *cli);
int verb_record(const struct cli *cli);
int verb_check(const struct cli *cli);

/* Says on standard error what went wrong; bytes that would steer a terminal become '?'. */
void print_error(const struct error *err);

/* What went wrong, as an exit status: what was named cannot be used (2), or it can, and is no good
 * (1). */
int verb_failure(int error);

/* Ends the process at once, with a thread that hangs in the kernel or a driver: nothing is freed or
 * closed under it. */
_Noreturn void verb_leave(int status);

/* Gives the workloads of a finished pipeline the names that they have at the end. The names must
 * outlive it. */
struct pipeline;
struct recorded_names;
void verb_name_workloads(struct pipeline *pipeline, struct recorded_names *names);

/* Prints the ledger as JSON; the exit status. */
int verb_print_ledger(const struct pipeline *pipeline);

/* Writes a text to standard output; the exit status. */
struct buffer;
int verb_print(const struct buffer *text);
