/* A socket on which the kernel reports processes that start and that execute another program: the
 * process events connector of netlink (Documentation/driver-api/connector.rst). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"

enum { PROCESS_CONNECTOR_BYTES = 256 }; /* for one message; the kernel's have 76 */

/* Non-blocking, receiving at once. Its messages are for process_event_parse. Errors as of
 * process_events_start. */
int process_connector_open(int *ret_fd);

/* Accepts -1. */
void process_connector_close(int fd);

/* While paused, no event is queued. 0 or -errno. */
int process_connector_pause(int fd, bool paused);

enum process_event_kind {
    PROCESS_EVENT_ACK,  /* the answer to a request to listen */
    PROCESS_EVENT_FORK, /* a process started; threads are OTHER */
    PROCESS_EVENT_EXEC, /* a process executed another program */
    PROCESS_EVENT_OTHER,
};

struct process_event {
    enum process_event_kind kind;
    uint32_t pid; /* of FORK and EXEC */
    int error;    /* of an ACK: 0 or a negative errno */
    uint32_t ack; /* of an ACK: one more than that of the request */
};

/* Pure. One message (linux/cn_proc.h). 0 or -EBADMSG: truncated, or not of the connector. */
int process_event_parse(struct span message, struct process_event *ret_event);
