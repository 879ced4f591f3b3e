/*
 * Channel: how the collector and its children talk. A SOCK_SEQPACKET socketpair; each message is
 * one fixed-size record, pages and jobs travel as sealed memory beside it.
 *
 *   server -> collector     channel_request: the newest page of this variant, unless I have it
 *   collector -> server     channel_reply:   it (one descriptor), or "you have it", or "not yet"
 *                           channel_reply:   unasked, another job (one descriptor; server_job.h)
 *   fetcher -> collector    channel_container, channel_names_state: of the Kubernetes API server
 *                           channel_factor: of a provider of emission factors
 *
 * The end of the channel asks a child to end. Neither side blocks: both ends are non-blocking and
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
    CHANNEL_UNCHANGED, /* the generation that was asked with is the newest */
    CHANNEL_NOT_READY, /* nothing has been measured yet */
    CHANNEL_FAILED,    /* rendering failed (out of memory) */
    CHANNEL_JOB,       /* no reply, but another job; a descriptor comes with it */
    CHANNEL_STATUS_COUNT,
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
 * Names of a container, for people. There is no way in it to say who owns what or pays for it: a
 * fetcher that was taken over can at worst make up names, and only for containers that no runtime
 * of the node names (container_cache_hint).
 */
struct channel_container {
    char id[65];        /* 64 lower-case hex digits; "": this is of the pod alone */
    char namespace[64]; /* texts end with NUL */
    char pod[254];
    char container[64];
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    char image[256];
};

/* Whether the API server answers: told each time that it does or fails. */
struct channel_names_state {
    int32_t result; /* 0 or -errno */
    uint32_t pad;
    uint64_t duration_us; /* of the last list */
};

/* A fetcher that was taken over can at worst lie about factors, as far as a grid can have them: no
 * joule depends on it. */
struct channel_factor {
    uint32_t index; /* of the poll, as in its job */
    int32_t result; /* 0, or -errno as of poll_ask; -ENOKEY: it has no key and will not ask */
    uint64_t mg_per_kwh;
    uint64_t time_us;      /* what the value is for, since the epoch; 0: none */
    uint64_t taken_us;     /* by the monotonic clock */
    uint32_t is_estimated; /* 0 or 1 */
    uint32_t basis;        /* enum price_basis */
    char why[232];         /* of a failure only: printable ASCII, ends with NUL */
};

/* Both ends non-blocking and close-on-exec. */
int channel_open(int *ret_collector_fd, int *ret_child_fd);

/*
 * One message each. 0, -EAGAIN (nothing there, or the peer's queue is full), -ENOTCONN (the peer is
 * gone), -EPROTO (not a message of this form: the peer is broken or hostile), -errno.
 */
int channel_send_request(int fd, const struct channel_request *request);
int channel_receive_request(int fd, struct channel_request *ret_request);
int channel_send_reply(int fd, const struct channel_reply *reply, int body_fd /* or -1 */);

int channel_send_container(int fd, const struct channel_container *container);
int channel_receive_container(int fd, struct channel_container *ret_container);

/* Which of the two comes next on the channel for names. 0, or -errno as above: if nothing is there
 * yet, nothing can be said of what comes. */
int channel_peek_names_state(int fd, bool *ret_is_state);
int channel_send_names_state(int fd, const struct channel_names_state *state);
int channel_receive_names_state(int fd, struct channel_names_state *ret_state);

int channel_send_factor(int fd, const struct channel_factor *factor);
int channel_receive_factor(int fd, struct channel_factor *ret_factor);

/* With CHANNEL_BODY or CHANNEL_JOB *ret_body_fd is a descriptor that the caller owns: sealed
 * against writing, shrinking and growing, and exactly body_bytes long (all checked), so mapping it
 * is safe. Else -1.
 */
int channel_receive_reply(int fd, struct channel_reply *ret_reply, int *ret_body_fd);
