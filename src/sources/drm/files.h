/*
 * The files of DRM cards that processes have open, from /proc/PID/fd: whose, and of which card.
 *
 * One for all cards: to list the descriptors of every process is dear, and done seldom. No driver
 * is asked anything, so that a card that hangs does not keep others from being found: what a file
 * says of its client is read by the thread of its card (clients.h). Thread-safe.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/host.h"
#include "model/sample.h"

enum { DRM_FILES_CARDS_MAX = 256, DRM_FILES_CHANGED_MAX = 64, DRM_FILES_NODES_MAX = 256 };

/* A descriptor. */
struct drm_place {
    uint32_t pid;
    uint32_t thread; /* by which it is found, if it is not by that of the process; else 0 */
    uint32_t fd;
};

/* A process whose descriptors were listed, and how many it had. */
struct drm_searched {
    uint32_t pid;
    uint64_t fd_count; /* 0: Linux before 6.2 does not tell */
};

/* Device nodes, and the card that each was of when sysfs last told. */
struct drm_nodes {
    struct {
        uint32_t minor;
        char pci[SAMPLE_PCI_BYTES];
    } items[DRM_FILES_NODES_MAX];
    size_t count;
};

struct drm_file {
    struct drm_place place;
    uint32_t card; /* in `cards` */
};

struct drm_files {
    pthread_mutex_t searching; /* held by the thread that searches: what has no other lock is its */
    const struct host *host;
    struct drm_searched *searched; /* at the last search, in the order of their pids */
    size_t searched_count;
    uint64_t search_us, all_us; /* when due next, by the monotonic clock */
    struct drm_nodes nodes;

    pthread_mutex_t lock;  /* of all below */
    uint64_t files_before; /* found since the start, and forgotten when all were searched again */
    struct drm_file *files;
    size_t file_count, file_capacity;
    char cards[DRM_FILES_CARDS_MAX][SAMPLE_PCI_BYTES];
    size_t card_count;
    uint32_t changed[DRM_FILES_CHANGED_MAX]; /* processes that have closed a card since */
    size_t changed_count;
    bool is_partial;      /* not all descriptors can be listed */
    uint64_t searched_us; /* when the last search began; 0: never */
    uint64_t complete_us; /* when the last one of all began, if it could see all; else 0 */
};

void drm_files_init(struct drm_files *files, const struct host *host);
void drm_files_done(struct drm_files *files);

/* Searches, if that is due. What another thread does meanwhile is waited for, but not for long. */
void drm_files_search(struct drm_files *files, uint64_t mono_us);

/* Has closed a card: it may have opened another file in its place, and is searched soon. */
void drm_files_suspect(struct drm_files *files, uint32_t pid);

/* What one card has taken of them. Zeroed, it is empty. */
struct drm_files_taken {
    uint64_t next;            /* of all that were found since the start */
    struct drm_place *places; /* the youngest processes first: what opens cards for others, as
                                 logind does for a desktop, is older */
    size_t count, capacity;
    bool is_whole;                     /* these are all, as all processes were searched again */
    bool is_partial;                   /* there may be more */
    uint64_t searched_us, complete_us; /* as above; complete_us: those of then are taken, too */
};

/* Takes those of a card that were found since it last did, and those of which nobody knows the
 * card. `places` is valid until the next call. */
void drm_files_take(struct drm_files *files, const char *const *cards, size_t card_count,
                    struct drm_files_taken *taken);

/* "12/fd", "12/task/13/fdinfo/4". */
enum { DRM_PLACE_BYTES = 64 };
void drm_place_path(const struct drm_place *place, const char *what, char path[DRM_PLACE_BYTES]);
