/*
 * The kubelet's allocations, asked for now and then on a thread of their own, as long as its
 * socket is there. A kubelet that hangs or lies costs its allocations and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "identity/pod_resources.h"

struct kubelet;

struct kubelet_status {
    bool present;
    bool up;
    uint64_t age_us, duration_us, errors;
    char error[256]; /* why it is down; "" if it is up */
};

int kubelet_new(const char *socket_path, const struct clock *clock, struct kubelet **ret_kubelet);

/* Asks, if there is a socket. Does not wait for the answer. */
void kubelet_ask(struct kubelet *kubelet);

/* Hands out what was last answered; nothing once the socket is gone or the answer is old. */
void kubelet_each(struct kubelet *kubelet,
                  void (*take)(void *context, const struct allocation *allocation), void *context);
void kubelet_get_status(struct kubelet *kubelet, struct kubelet_status *ret_status);
void kubelet_free(struct kubelet *kubelet);
