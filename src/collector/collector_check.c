/* The check of the sources, made by a process of its own when somebody asks. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector_private.h"
#include "config/node_config.h"
#include "core/log.h"
#include "process/channel.h"
#include "process/job.h"

static const uint64_t KEPT_US = 300 * USEC_PER_SEC;

/* A check that failed is not tried again at once. */
static const uint64_t RETRY_US = 30 * USEC_PER_SEC;

/* Each source that hangs takes 20 s. */
static const uint64_t LIMIT_US = 120 * USEC_PER_SEC;

static int seal_job(const struct collector *collector)
{
    const struct options *options = collector->options;
    struct checker_job job = {
        .log = {options->log_level, options->log_format},
        .procfs_path = options->procfs_path,
        .sysfs_path = options->sysfs_path,
        .rootfs_path = options->rootfs_path,
        .interval_us = options->sample_interval_us,
        .off_count = collector->switches.off_count,
        .has_model = collector->model.is_on,
        .model_by_table = collector->model.by_table,
        .model_idle_uw = collector->model.idle_uw,
        .model_full_uw = collector->model.full_uw,
    };

    memcpy(job.off, collector->switches.off, sizeof(job.off));
    return checker_job_seal(&job);
}

static void start(struct collector *collector, uint64_t now_us)
{
    struct child *child = &collector->check.child;
    _cleanup_close_ int job_fd = seal_job(collector);
    struct error err;
    int r = child_start(child, job_fd, NULL, 0, now_us, &err);

    if (r == 0)
        r = child_watch(child, collector->epoll_fd, WATCH_CHECKER, &err);
    if (r < 0)
        log_error("cannot check the sources", "error", err.text);
    collector->check.started_us = now_us;
}

enum channel_status collector_check_status(struct collector *collector)
{
    uint64_t now_us = collector_now_us(collector);
    bool has_started = collector->check.started_us > 0;

    if (collector->options->replay_path)
        return CHANNEL_ABSENT;
    if (collector->pages.check_generation > 0 && now_us < collector->check.made_us + KEPT_US)
        return CHANNEL_BODY;
    /* Devices are closed for an administrator, who does not want us to open them. */
    if (collector->check.child.pid == 0 && !source_set_is_releasing(&collector->sources, now_us)) {
        if (has_started && now_us < collector->check.started_us + RETRY_US)
            return CHANNEL_FAILED;
        start(collector, now_us);
        if (collector->check.child.pid == 0)
            return CHANNEL_FAILED;
    }
    return CHANNEL_RUNNING;
}

static int read_document(int fd, size_t len, struct buffer *ret_text)
{
    char block[4096];
    ssize_t n = 0;

    buffer_init(ret_text, len);
    while (ret_text->len < len && (n = pread(fd, block, sizeof(block), (off_t)ret_text->len)) > 0)
        buffer_bytes(ret_text, block, (size_t)n);
    if (ret_text->len == len && !buffer_failed(ret_text))
        return 0;
    buffer_done(ret_text);
    return -EIO;
}

void collector_read_check(struct collector *collector)
{
    struct child *child = &collector->check.child;
    _cleanup_close_ int fd = -1;
    struct channel_reply reply;
    struct channel_ping ping;
    struct buffer text;
    int r = channel_receive_reply(child->channel_fd, &reply, &fd, &ping);

    if (r == -EAGAIN)
        return;
    if (r == 0 && (fd < 0 || read_document(fd, reply.body_bytes, &text) < 0))
        r = -EPROTO;
    if (r == 0) {
        buffer_done(&collector->pages.check);
        collector->pages.check = text;
        collector->pages.check_generation++;
        collector->check.made_us = collector_now_us(collector);
    }
    (void)child_kill(child); /* it has nothing else to do, and may hang */
}

void collector_reap_check(struct collector *collector)
{
    struct child *child = &collector->check.child;
    uint64_t now_us = collector_now_us(collector);
    int status;

    if (child_reap(child, now_us, &status))
        child->restart_us = UINT64_MAX; /* only when somebody asks */
    else if (child->pid > 0 && now_us >= collector->check.started_us + LIMIT_US)
        (void)child_kill(child);
}
