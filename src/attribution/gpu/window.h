/*
 * Window: the energy between two ticks of a GPU's counter, and who was there meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/gpu/sightings.h"

/* A process that a list named. Bits are 1 << enum sample_list_kind. */
struct presence {
    uint32_t process;
    uint8_t listed;    /* by lists read in this window */
    uint8_t inherited; /* by the lists in force when it began */
};

struct window {
    uint64_t number; /* counts up; 0 is no window */
    uint64_t start_us, end_us;
    uint64_t energy_uj;
    uint8_t lists_renewed;   /* bits: kinds of list that were read soon after its begin */
    uint8_t busiest_percent; /* the highest device utilisation read */
    bool saw_utilisation;    /* it was read at all: with MIG it cannot be */
    bool saw_context;        /* the lists in force named somebody at some time */
    bool saw_no_context;     /* they named nobody at some time */
    struct presence *presences;
    size_t presence_count, presence_capacity;
};

/* Begins it anew, with nobody present; keeps its memory. */
void window_begin(struct window *window, uint64_t number, uint64_t start_us);
void window_done(struct window *window);

/* The entry of a process, added where there is none. NULL when out of memory. */
struct presence *window_presence(struct window *window, struct sightings *sightings,
                                 uint32_t process);

/*
 * The lists that named the process: those read in the window, and those in force when it began,
 * unless the list was read again so soon that the process can hardly have been there any more.
 */
uint8_t window_lists_of(const struct window *window, const struct presence *presence);
