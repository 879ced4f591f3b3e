/* How polling a source of names went: a runtime, the kubelet, the API server, or the process scan.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct identity_status {
    char name[128]; /* the `source` label */
    bool polled;    /* polled at least once */
    bool up;
    uint64_t answered_us; /* last; 0: never */
    uint64_t duration_us, errors;
    char error[256];           /* why it is down; "" if it is up */
    bool is_logged_by_fetcher; /* its fetcher logs it */
};

/* `error` is NULL after a good answer. */
static inline void identity_status_note(struct identity_status *status, uint64_t began_us,
                                        uint64_t ended_us, const char *error)
{
    status->polled = true;
    status->up = !error;
    status->duration_us = ended_us - began_us;
    status->errors += error != NULL;
    if (!error)
        status->answered_us = ended_us;
    snprintf(status->error, sizeof(status->error), "%s", error ? error : "");
}
