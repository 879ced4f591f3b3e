/*
 * Channel: how the collector and its children talk. A SOCK_SEQPACKET socketpair; each message is
 * one fixed-size record, with a page or a job beside it as sealed memory.
 *
 *   server -> collector     channel_request: the newest page of this format and encoding
 *   collector -> server     channel_reply:   the page, or why there is none; or a new job
 *   checker -> collector    channel_reply:   its findings
 *   fetcher -> collector    channel_names:   from the Kubernetes API server
 *                           channel_factor:  from a provider of emission factors
 *   both ways               channel_ping:    from the collector, and the same one back
 *
 * A child ends when its channel is closed. Neither side blocks: both ends are non-blocking and
 * sit in their owner's event loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/page_format.h"
#include "model/workload.h"

enum channel_status {
    CHANNEL_BODY,      /* a descriptor comes with the reply */
    CHANNEL_UNCHANGED, /* `have_generation` is the newest */
    CHANNEL_NOT_READY, /* nothing has been measured yet */
    CHANNEL_FAILED,    /* rendering failed (out of memory) */
    CHANNEL_ABSENT,    /* it is switched off */
    CHANNEL_RUNNING,   /* it is being made */
    CHANNEL_JOB,       /* no reply, but a new job; a descriptor comes with it */
    CHANNEL_STATUS_COUNT,
};

/* A child sends it back from the loop that does its work; child_ping tells what follows if it does
 * not. To the server it is also a sign that the collector is alive. */
struct channel_ping {
    uint64_t number; /* from 1 on, for each process anew */
};

struct channel_request {
    uint32_t format;          /* enum page_format */
    uint32_t encoding;        /* enum page_encoding */
    uint64_t have_generation; /* 0: none */
};

struct channel_reply {
    uint32_t status;
    uint32_t format;
    uint32_t encoding;
    uint32_t pad;
    uint64_t generation;
    uint64_t body_bytes;
};

/*
 * Names of a container, for people. It decides no ownership: a fetcher that was taken over can at
 * worst make up names, and only for containers that no runtime of the node names
 * (container_cache_hint).
 */
struct channel_container {
    char id[65];        /* 64 lower-case hex digits; "": names of the pod alone */
    char namespace[64]; /* texts end with NUL */
    char pod[254];
    char container[64];
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    char image[256];
};

enum { CHANNEL_WHY_BYTES = 488 };

/* The result of each request to the API server. */
struct channel_names_state {
    int32_t result; /* 0, -EACCES (denied), -EHOSTUNREACH (its name has no address) or -EIO */
    uint32_t pad;
    uint64_t duration_us;        /* of the last list */
    char why[CHANNEL_WHY_BYTES]; /* of a failure: printable ASCII, ends with NUL */
};

struct channel_names {
    bool is_state;
    union {
        struct channel_container container;
        struct channel_names_state state;
    };
};

/* A fetcher that was taken over can at worst report wrong but plausible factors: no joule depends
 * on them. */
struct channel_factor {
    uint32_t index; /* of the poll, as in its job */
    int32_t result; /* 0, or -errno as of poll_fetch; -ENOKEY: it has no key and is not polled */
    uint64_t mg_per_kwh;
    uint64_t time_us;            /* that the value is for, since the epoch; 0: none */
    uint64_t taken_us;           /* by the monotonic clock */
    uint32_t is_estimated;       /* 0 or 1 */
    uint32_t basis;              /* enum price_basis */
    char why[CHANNEL_WHY_BYTES]; /* of a failure: printable ASCII, ends with NUL */
};

/* Both ends non-blocking and close-on-exec. */
int channel_open(int *ret_collector_fd, int *ret_child_fd);

/*
 * One message each. 0, 1 (a ping instead, which alone is written), -EAGAIN (nothing there, or the
 * peer's queue is full), -ENOTCONN (the peer is gone), -EPROTO (not a message of this form: the
 * peer is broken or hostile), -errno.
 */
int channel_send(int fd, const void *record, size_t len, int body_fd /* of a reply; or -1 */);
int channel_receive_request(int fd, struct channel_request *ret_request,
                            struct channel_ping *ret_ping);
int channel_receive_names(int fd, struct channel_names *ret_names, struct channel_ping *ret_ping);
int channel_receive_factor(int fd, struct channel_factor *ret_factor,
                           struct channel_ping *ret_ping);
int channel_receive_ping(int fd, struct channel_ping *ret_ping); /* 0: where nothing else comes */

/* With CHANNEL_BODY or CHANNEL_JOB *ret_body_fd is a descriptor that the caller owns: sealed
 * against writing, shrinking and growing, and exactly body_bytes long (all checked), so mapping it
 * is safe. Else -1. */
int channel_receive_reply(int fd, struct channel_reply *ret_reply, int *ret_body_fd,
                          struct channel_ping *ret_ping);
