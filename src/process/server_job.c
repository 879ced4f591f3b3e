#include "process/server_job.h"

#include "process/child.h"

int server_job_seal(const struct server_job *job, int *ret_fd)
{
    struct buffer block;

    job_begin(&block, &job->log);
    pack_u64(&block, job->listener_count);
    pack_text(&block, job->metrics_path);
    pack_u64(&block, job->text_only);
    pack_u64(&block, job->is_failing);
    pack_u64(&block, job->has_web_config);
    pack_bytes(&block, job->has_web_config ? job->web_config : span_of(""));
    return job_seal(&block, ret_fd);
}

int server_job_read(int fd, struct job *block, struct server_job *ret_job)
{
    struct unpack *rest = &block->rest;
    int r = job_read(fd, block);

    if (r < 0)
        return r;
    *ret_job = (struct server_job){
        .log = block->log,
        .listener_count = (size_t)unpack_u64(rest, CHILD_MORE_MAX),
        .metrics_path = unpack_text(rest),
        .text_only = unpack_u64(rest, 1) > 0,
        .is_failing = unpack_u64(rest, 1) > 0,
        .has_web_config = unpack_u64(rest, 1) > 0,
        .web_config = unpack_bytes(rest),
    };
    r = unpack_end(rest);
    if (r < 0)
        job_done(block);
    return r;
}
