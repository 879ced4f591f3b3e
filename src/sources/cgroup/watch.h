/*
 * Watch: the kernel's word on which directories got or lost a directory (inotify), and on files
 * that changed. cgroup file systems give the first, v1 and v2 alike; it is neither recursive nor
 * certain, so whoever asks must be able to look for himself. The second they give for the few files
 * that announce it, cgroup.events of v2 among them.
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

/* The same for a file, by its path below a directory. */
int watch_add_file(struct watch *watch, int dir_fd, const char *path);
void watch_remove(struct watch *watch, int number);

struct watch_event {
    int number;
    bool is_over;     /* the directory is gone, and with it the number */
    bool is_move;     /* what came had another name before */
    const char *name; /* what came or went in it; NULL: it is a file, and changed */
};

enum watch_result {
    WATCH_DONE,
    WATCH_MORE, /* there may be more than the caller wanted to be told at once */
    WATCH_LOST, /* something was not told: everything must be looked at */
};

/* The most that make sense at once: the kernel's queue holds 16384 events by default
 * (max_queued_events), and these are more. */
enum { WATCH_READS_MAX = 256 };

/* Calls `take` for what has happened, some hundred events a read at most. Does not block. */
enum watch_result watch_read(struct watch *watch, unsigned reads_max,
                             void (*take)(void *context, const struct watch_event *event),
                             void *context);
