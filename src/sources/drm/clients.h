/*
 * The clients of DRM cards, from /proc/PID/fdinfo: which process has a card open, and for how long
 * the card's engines have worked for it.
 *
 * One for all cards: the descriptors of every process are listed to find them, which is dear, and
 * done seldom; those that are known are read again at every look. Thread-safe.
 */
#pragma once

#include <pthread.h>

#include "core/table.h"
#include "host/host.h"
#include "sources/drm/fdinfo.h"

/* A process whose descriptors were listed, and how many it had. */
struct drm_searched {
    uint32_t pid;
    uint64_t fd_count; /* 0: Linux before 6.2 does not tell */
    bool has_changed;  /* it has closed a card since */
};

struct drm_clients {
    pthread_mutex_t looking; /* held by the thread that looks: all below but the clients is its */
    pthread_mutex_t lock;    /* of the clients, never held while something is read */
    const struct host *host;
    struct table clients;          /* by card and id */
    struct drm_searched *searched; /* at the last search, in the order of their pids */
    size_t searched_count;
    uint64_t look_us;                  /* when it last looked; all by the monotonic clock */
    uint64_t search_us, search_all_us; /* when due next */
    uint64_t round;                    /* of the look in progress */
    size_t hand;                       /* the clients before it have worked */
    uint64_t shown;    /* the last one that was finished; with the next two below `lock` */
    uint64_t shown_us; /* when that began */
    bool shown_partial;
    bool is_partial;
    bool is_blind;        /* there may be clients that are not known, and have worked */
    uint64_t complete_us; /* when all were searched last; 0: not all can be seen */
};

void drm_clients_init(struct drm_clients *clients, const struct host *host);
void drm_clients_done(struct drm_clients *clients);

/* Looks again, unless that was done less than `interval_us` ago: cards share a look. If the thread
 * of another card hangs in it, nothing is looked at. */
void drm_clients_look(struct drm_clients *clients, uint64_t interval_us, uint64_t mono_us);

/* Could the descriptors of some processes not be listed, or not for a while, or are there too many
 * clients? Then cards may work for unseen ones. */
bool drm_clients_are_partial(struct drm_clients *clients, uint64_t mono_us);

/* A client of a card. */
struct drm_use {
    uint32_t pid;
    bool is_present;  /* else it has closed the card, and only its last work is told */
    bool is_untimed;  /* nobody knows how long it worked */
    uint64_t busy_us; /* of its busiest engine, since it was last visited */
    bool has_memory;
    uint64_t memory_bytes;
};

typedef void drm_visit(void *context, const struct drm_use *use);

/* Visits the clients of a card, by its PCI address. A process may have several. `visit` must not
 * call back. */
void drm_clients_visit(struct drm_clients *clients, const char *pci, drm_visit *visit,
                       void *context);
