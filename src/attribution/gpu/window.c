#include "attribution/gpu/window.h"

#include <stdlib.h>

void window_begin(struct window *window, uint64_t number, uint64_t start_us)
{
    *window = (struct window){
        .number = number,
        .start_us = start_us,
        .end_us = start_us,
        .presences = window->presences,
        .presence_capacity = window->presence_capacity,
    };
}

void window_done(struct window *window)
{
    free(window->presences);
    *window = (struct window){0};
}

struct presence *window_presence(struct window *window, struct sightings *sightings,
                                 uint32_t process)
{
    struct sighting *seen = &sightings->items[process];

    if (seen->window == window->number)
        return &window->presences[seen->window_index];
    if (window->presence_count == window->presence_capacity) {
        size_t capacity = window->presence_capacity ? window->presence_capacity * 2 : 8;
        struct presence *presences = realloc(window->presences, capacity * sizeof(*presences));

        if (!presences)
            return NULL;
        window->presences = presences;
        window->presence_capacity = capacity;
    }
    seen->window = window->number;
    seen->window_index = window->presence_count;
    window->presences[window->presence_count] = (struct presence){.process = process};
    return &window->presences[window->presence_count++];
}

uint8_t window_lists_of(const struct window *window, const struct presence *presence)
{
    return presence->listed | (uint8_t)(presence->inherited & ~window->lists_renewed);
}
