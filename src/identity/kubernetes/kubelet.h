/*
 * The GPUs that the kubelet allocated, polled on a thread of its own as long as its socket exists.
 * A kubelet that hangs or lies costs its allocations and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "identity/pod_resources.h"
#include "identity/status.h"

struct kubelet;

int kubelet_new(const char *socket_path, const struct clock *clock, struct kubelet **ret_kubelet);

/* Starts a poll, if there is a socket, without waiting for the answer. */
void kubelet_poll(struct kubelet *kubelet);

/* Visits the last answer; nothing once the socket is gone or the answer is stale. */
void kubelet_each(struct kubelet *kubelet,
                  void (*visit)(void *context, const struct allocation *allocation), void *context);

/* False if there is no kubelet here. */
bool kubelet_get_status(struct kubelet *kubelet, struct identity_status *ret_status);
void kubelet_free(struct kubelet *kubelet);
