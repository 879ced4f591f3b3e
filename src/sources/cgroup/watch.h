/*
 * Watch: the kernel's word on which directories got or lost a directory (inotify). cgroup file
 * systems give it, v1 and v2 alike; it is neither recursive nor certain, so whoever asks must be
 * able to look for himself.
 */
#pragma once

#include <stdbool.h>

struct watch {
    int fd; /* -1: there is no inotify */
};

void watch_init(struct watch *watch);
void watch_done(struct watch *watch);

/* What happens in the directory from now on. Returns a number >= 0 for it, or -errno, among them
 * -ENOSPC: the user has too many. */
int watch_add(struct watch *watch, int dir_fd);
void watch_remove(struct watch *watch, int number);

struct watch_event {
    int number;
    bool is_over;     /* the directory is gone, and with it the number */
    const char *name; /* what came or went in it */
};

/*
 * Calls `take` for all that has happened. Does not block. False: something got lost, or more
 * happens than one can follow; then everything must be looked at.
 */
bool watch_read(struct watch *watch, void (*take)(void *context, const struct watch_event *event),
                void *context);
