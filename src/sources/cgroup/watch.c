#include "sources/cgroup/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/macros.h"

enum { BUFFER_BYTES = 32 << 10 };

void watch_init(struct watch *watch)
{
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void watch_done(struct watch *watch)
{
    cleanup_close(&watch->fd);
    watch->fd = -1;
}

static int add(struct watch *watch, const char *path, uint32_t mask)
{
    int number;

    if (watch->fd < 0)
        return -ENOSYS;
    number = inotify_add_watch(watch->fd, path, mask);
    return number >= 0 ? number : -errno;
}

int watch_add(struct watch *watch, int dir_fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
    return add(watch, path, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
}

int watch_add_file(struct watch *watch, int dir_fd, const char *path)
{
    char whole[PATH_MAX];
    int len = snprintf(whole, sizeof(whole), "/proc/self/fd/%d/%s", dir_fd, path);

    if (len < 0 || (size_t)len >= sizeof(whole))
        return -ENAMETOOLONG;
    return add(watch, whole, IN_MODIFY | IN_DONT_FOLLOW);
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
        take(context, &(struct watch_event){.number = event->wd,
                                            .is_move = event->mask & IN_MOVED_TO,
                                            .name = event->name});
    else if (event->mask & IN_MODIFY)
        take(context, &(struct watch_event){.number = event->wd});
    return true;
}

enum watch_result watch_read(struct watch *watch, unsigned reads_max,
                             void (*take)(void *context, const struct watch_event *event),
                             void *context)
{
    alignas(struct inotify_event) char buffer[BUFFER_BYTES];
    bool is_whole = true;

    if (watch->fd < 0)
        return WATCH_DONE;
    for (unsigned i = 0; i < reads_max; i++) {
        ssize_t len = read(watch->fd, buffer, sizeof(buffer));

        if (len <= 0)
            return is_whole && (len == 0 || errno == EAGAIN) ? WATCH_DONE : WATCH_LOST;
        for (const char *at = buffer; at < buffer + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;

            is_whole &= take_event(event, take, context);
            at += sizeof(*event) + event->len;
        }
    }
    return is_whole ? WATCH_MORE : WATCH_LOST;
}
