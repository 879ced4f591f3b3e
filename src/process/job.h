/*
 * Job: all that a child is told, its secrets included, in one sealed block. It finds the block at
 * CHILD_JOB_FD; nothing is in its arguments, its environment or on a disk.
 */
#pragma once

#include "core/buffer.h"
#include "core/log.h"
#include "core/pack.h"

enum { JOB_MAX_BYTES = 16 << 20 };

/* What every child is told. */
struct job_log {
    enum log_level level;
    enum log_format format;
};

void job_begin(struct buffer *block, const struct job_log *log);

/* Seals what was packed, and wipes it. 0 or -errno. */
int job_seal(struct buffer *block, int *ret_fd);

/* A block as it was read, in memory of its own. */
struct job {
    char *bytes;
    size_t len;
    struct job_log log;
    struct unpack rest; /* behind the beginning that all have in common */
};

/* 0, -EPROTO (no block, or not sealed) or -errno. */
int job_read(int fd, struct job *ret_job);

/* Wipes it. Accepts a zeroed struct. */
void job_done(struct job *job);
