/* What the server is told. When the web config changes, it is sent another whole job. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"
#include "process/job.h"

struct server_job {
    struct job_log log;
    size_t listener_count; /* from CHILD_MORE_FD on */
    const char *metrics_path;
    bool text_only;         /* --compat: never OpenMetrics */
    bool is_failing;        /* those before it ended early: not ready until it is well */
    bool has_web_config;    /* it is there at the first start, or never */
    struct span web_config; /* as web_config_pack writes it */
};

int server_job_seal(const struct server_job *job, int *ret_fd);

/* Its texts point into `block`. 0 or as job_read. */
int server_job_read(int fd, struct job *block, struct server_job *ret_job);
