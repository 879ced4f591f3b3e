/*
 * What the environment of a batch job's process says of the job. The user can write whatever they
 * like there, so it never decides who pays: it is shown as unverified. Pure.
 */
#pragma once

#include "core/span.h"
#include "model/workload.h"

struct job {
    char id[32]; /* a number; only where the scheduler's cgroups may have another */
    char name[256];
    char account[256];
};

/* From /proc/PID/environ: texts separated by NUL. What is not there, or too long, is "". `kind` is
 * that of a job (workload_is_job). */
void job_parse_environ(enum workload_kind kind, struct span environment, struct job *ret_job);
