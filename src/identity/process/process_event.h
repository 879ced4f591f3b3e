/* One message of the kernel's process events connector (linux/cn_proc.h). Pure: bytes in, struct
 * out. */
#pragma once

#include <stdint.h>

#include "core/span.h"

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
