/*
 * The clients of a DRM card, from /proc/PID/fdinfo: which process has it open, and for how long its
 * engines have worked for it.
 *
 * Each card has its own, for its own thread: the driver answers, and may hang. The files that are
 * of clients are found for all cards at once (files.h); those that are known are read again at
 * every look.
 */
#pragma once

#include "core/table.h"
#include "sources/drm/fdinfo.h"
#include "sources/drm/files.h"

enum { DRM_DIES_MAX = 2 };

struct drm_clients {
    struct drm_files *files;
    const char *cards[DRM_DIES_MAX]; /* PCI addresses */
    size_t card_count;
    struct table clients; /* by card and id */
    struct drm_files_taken taken;
    uint64_t look_us;     /* when it last looked, by the monotonic clock */
    uint64_t round;       /* of the last look */
    size_t hand;          /* the clients before it have worked */
    bool is_crowded;      /* some were left out */
    bool is_blind;        /* those may have worked */
    uint64_t complete_us; /* when all were found last; 0: not all can be */
};

/* `files` must outlive it. */
void drm_clients_init(struct drm_clients *clients, struct drm_files *files);
/* Before the first look. `pci` must outlive it. */
void drm_clients_add_card(struct drm_clients *clients, const char *pci);
void drm_clients_done(struct drm_clients *clients);

/* Looks again, unless that was done less than `interval_us` ago. Blocks as the driver does. */
void drm_clients_look(struct drm_clients *clients, uint64_t interval_us, uint64_t mono_us);

/* Could the descriptors of some processes not be listed, or not for a while, or are there too many
 * clients? Then the card may work for unseen ones. */
bool drm_clients_are_partial(const struct drm_clients *clients, uint64_t mono_us);

/* Are there some of which nobody knows how long they worked? */
bool drm_clients_are_untimed(const struct drm_clients *clients);

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
