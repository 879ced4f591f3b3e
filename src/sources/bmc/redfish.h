/*
 * The power of the node as its BMC tells it over Redfish. The BMC is asked by another process
 * (redfish_client), which has the network; what that hears is posted here, checked, and integrated.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "sources/source.h"

enum { REDFISH_QUEUE_MAX = 8, REDFISH_WHY_BYTES = 232 };

struct redfish_reading {
    int result; /* 0, or -errno: there is none */
    uint64_t power_mw;
    uint64_t taken_us; /* by the monotonic clock */
    char why[REDFISH_WHY_BYTES];
};

/* Readings on their way from the collector's loop to the source's thread. */
struct redfish_mailbox {
    pthread_mutex_t lock;
    struct redfish_reading readings[REDFISH_QUEUE_MAX]; /* oldest first */
    size_t count;
};

void redfish_mailbox_init(struct redfish_mailbox *mailbox);

/* If it is full, the oldest is dropped. From any thread. */
void redfish_mailbox_post(struct redfish_mailbox *mailbox, const struct redfish_reading *reading);

extern const struct source_ops redfish_source;
