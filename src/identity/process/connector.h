/* A socket on which the kernel tells which processes begin and which become other programs: the
 * process events connector of netlink (Documentation/driver-api/connector.rst). */
#pragma once

#include <stdint.h>

#include "core/span.h"

enum { PROCESS_CONNECTOR_BYTES = 256 }; /* for one message; the kernel's have 76 */

/* Non-blocking; hears of processes at once. Its messages are for process_event_parse. Errors as of
 * process_events_start. */
int process_connector_open(int *ret_fd);

/* Accepts -1. */
void process_connector_close(int fd);

/* No more processes are queued, or they are again. */
int process_connector_pause(int fd);
int process_connector_resume(int fd);

/* From here on: one message (linux/cn_proc.h). Pure. */

enum process_event_kind {
    PROCESS_EVENT_ACK,  /* the answer to a request to listen */
    PROCESS_EVENT_FORK, /* a process began; threads are OTHER */
    PROCESS_EVENT_EXEC, /* a process became another program */
    PROCESS_EVENT_OTHER,
};

struct process_event {
    enum process_event_kind kind;
    uint32_t pid; /* of FORK and EXEC: the new one's, or the one that changed */
    int error;    /* of an ACK: 0 or a negative errno */
    uint32_t ack; /* of an ACK: one more than that of the request */
};

/* 0 or -EBADMSG: cut, or none of the connector's. */
int process_event_parse(struct span message, struct process_event *ret_event);
