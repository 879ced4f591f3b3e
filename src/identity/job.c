#include "identity/job.h"

#include <stdint.h>

#include "core/parse.h"

struct variables {
    const char *id, *name, *account;
};

/* From Slurm 26.05 on the cgroup has another id than the number that people know. */
static const struct variables slurm = {"SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_ACCOUNT"};
static const struct variables lsf = {NULL, "LSB_JOBNAME", "LSB_PROJECT_NAME"};
static const struct variables pbs = {NULL, "PBS_JOBNAME", "PBS_ACCOUNT"};

static void take(struct span value, char *text, size_t size_bytes)
{
    if (text[0] != '\0' || value.len >= size_bytes) /* the first one counts, as for getenv */
        return;
    memcpy(text, value.data, value.len);
    text[value.len] = '\0';
}

void job_parse_environ(enum workload_kind kind, struct span environment, struct job *ret_job)
{
    const struct variables *names = kind == WORKLOAD_LSF   ? &lsf
                                    : kind == WORKLOAD_PBS ? &pbs
                                                           : &slurm;
    struct job job = {0};
    uint64_t number;

    while (environment.len > 0) {
        struct span value = span_cut(&environment, '\0');
        struct span name = span_cut(&value, '=');

        if (names->id && span_equals(name, names->id) && parse_u64(value, &number) == 0)
            take(value, job.id, sizeof(job.id));
        else if (span_equals(name, names->name))
            take(value, job.name, sizeof(job.name));
        else if (span_equals(name, names->account))
            take(value, job.account, sizeof(job.account));
    }
    *ret_job = job;
}
