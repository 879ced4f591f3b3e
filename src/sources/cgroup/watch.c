#include "sources/cgroup/watch.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/macros.h"

/* The kernel's queue holds 16384 events by default (max_queued_events); these are more. */
enum { BUFFER_BYTES = 32 << 10, READS_MAX = 256 };

void watch_init(struct watch *watch)
{
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void watch_done(struct watch *watch)
{
    cleanup_close(&watch->fd);
    watch->fd = -1;
}

int watch_add(struct watch *watch, int dir_fd)
{
    char path[32];
    int number;

    if (watch->fd < 0)
        return -ENOSYS;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
    number = inotify_add_watch(watch->fd, path,
                               IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
    return number >= 0 ? number : -errno;
}

void watch_remove(struct watch *watch, int number)
{
    (void)inotify_rm_watch(watch->fd, number); /* it may be over already */
}

/* False: the queue has overflown. */
static bool take_event(const struct inotify_event *event,
                       void (*take)(void *context, const struct watch_event *event), void *context)
{
    if (event->mask & IN_Q_OVERFLOW)
        return false;
    if (event->mask & IN_IGNORED)
        take(context, &(struct watch_event){.number = event->wd, .is_over = true});
    else if ((event->mask & IN_ISDIR) && event->len > 0)
        take(context, &(struct watch_event){.number = event->wd, .name = event->name});
    return true;
}

bool watch_read(struct watch *watch, void (*take)(void *context, const struct watch_event *event),
                void *context)
{
    alignas(struct inotify_event) char buffer[BUFFER_BYTES];
    bool is_whole = true;

    for (int i = 0; watch->fd >= 0 && i < READS_MAX; i++) {
        ssize_t len = read(watch->fd, buffer, sizeof(buffer));

        if (len <= 0)
            return is_whole && (len == 0 || errno == EAGAIN);
        for (const char *at = buffer; at < buffer + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;

            is_whole &= take_event(event, take, context);
            at += sizeof(*event) + event->len;
        }
    }
    return watch->fd < 0 && is_whole;
}
