#include "process/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"

enum { MAGIC = 0x31627757 };

void job_begin(struct buffer *block, const struct job_log *log)
{
    buffer_init(block, JOB_MAX_BYTES);
    pack_u64(block, MAGIC);
    pack_u64(block, log->level);
    pack_u64(block, log->format);
}

int job_seal(struct buffer *block, int *ret_fd)
{
    int r = buffer_failed(block) ? -ENOMEM : sealed_create(block->data, block->len, ret_fd);

    buffer_wipe(block);
    return r;
}

static int read_block(int fd, struct job *job)
{
    off_t size = lseek(fd, 0, SEEK_END);

    if (size <= 0 || size > JOB_MAX_BYTES || sealed_check(fd, (uint64_t)size) < 0)
        return -EPROTO;
    job->len = (size_t)size;
    job->bytes = malloc(job->len);
    if (!job->bytes)
        return -ENOMEM;
    return pread(fd, job->bytes, job->len, 0) == size ? 0 : -EPROTO;
}

int job_read(int fd, struct job *ret_job)
{
    struct job job = {0};
    int r = read_block(fd, &job);

    job.rest.rest = (struct span){job.bytes, r == 0 ? job.len : 0};
    if (r == 0 && unpack_u64(&job.rest, MAGIC) != MAGIC)
        r = -EPROTO;
    job.log.level = (enum log_level)unpack_u64(&job.rest, LOG_LEVEL_ERROR);
    job.log.format = (enum log_format)unpack_u64(&job.rest, LOG_FORMAT_JSON);
    if (r == 0 && job.rest.is_broken)
        r = -EPROTO;
    if (r < 0)
        job_done(&job);
    else
        *ret_job = job;
    return r;
}

void job_done(struct job *job)
{
    if (job->bytes)
        explicit_bzero(job->bytes, job->len);
    free(job->bytes);
    *job = (struct job){0};
}
