/*
 * Young: the workloads that have just begun, and when each is to be read again. A short one may
 * end before the next cycle, and v1 does not say when: so it is read again whenever it has grown
 * older by an eighth, until that is as long as a cycle. Whatever it does, at most a ninth of its
 * life goes unseen (or 50 ms), and it costs about 45 reads in all. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More that begin at the same time are read by cycles only. */
enum { RECENT_MAX = 256 };

#define RECENT_NEVER UINT64_MAX

struct recent {
    uint64_t id;
    uint64_t born_us; /* when it was first looked at */
    uint64_t due_us;  /* 0: at once */
};

struct recents {
    struct recent items[RECENT_MAX];
    size_t count;
};

/* Due at once. No two have the same id. */
void recents_add(struct recents *youngs, uint64_t id);
void recents_remove(struct recents *youngs, uint64_t id);

/* Calls `read` for those that are due, and forgets those that are old. Returns when the next is
 * due, or RECENT_NEVER. `read` says whether the kernel will tell when it ends, and must not add or
 * remove any. */
uint64_t recents_read(struct recents *youngs, uint64_t now_us,
                      bool (*read)(void *context, uint64_t id), void *context);
