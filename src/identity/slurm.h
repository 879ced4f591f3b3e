/*
 * What the environment of a job's process says of the job. The user can write whatever they like
 * there, so it never decides who pays: it is shown as unverified. Pure.
 */
#pragma once

#include "core/span.h"

struct slurm_job {
    char id[32]; /* a number */
    char name[256];
    char account[256];
};

/* From /proc/PID/environ: texts separated by NUL. What is not there, or too long, is "". */
void slurm_parse_environ(struct span environment, struct slurm_job *ret_job);
