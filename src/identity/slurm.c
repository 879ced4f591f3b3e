#include "identity/slurm.h"

#include <stdint.h>

#include "core/macros.h"
#include "core/parse.h"

static void take(struct span value, char *text, size_t size_bytes)
{
    if (text[0] != '\0' || value.len >= size_bytes) /* the first one counts, as for getenv */
        return;
    memcpy(text, value.data, value.len);
    text[value.len] = '\0';
}

void slurm_parse_environ(struct span environment, struct slurm_job *ret_job)
{
    struct slurm_job job = {0};
    uint64_t number;

    while (environment.len > 0) {
        struct span value = span_cut(&environment, '\0');
        struct span name = span_cut(&value, '=');

        if (span_equals(name, "SLURM_JOB_ID") && parse_u64(value, &number) == 0)
            take(value, job.id, sizeof(job.id));
        else if (span_equals(name, "SLURM_JOB_NAME"))
            take(value, job.name, sizeof(job.name));
        else if (span_equals(name, "SLURM_JOB_ACCOUNT"))
            take(value, job.account, sizeof(job.account));
    }
    *ret_job = job;
}
