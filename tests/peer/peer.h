/*
 * A server that says what it is told, well-behaved or not, on a unix socket or on loopback. One
 * thread, one connection at a time; it goes on until peer_stop.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/buffer.h"
#include "core/span.h"

enum peer_end {
    PEER_CLOSES,    /* the connection */
    PEER_HOLDS,     /* it, and is silent until the client is gone */
    PEER_RESETS,    /* it */
    PEER_SERVES_ON, /* waits for the next request on it */
};

struct peer_script {
    struct span reply;  /* said once the whole request is there */
    struct span repeat; /* then this, again and again, while the client listens */
    int pause_ms;       /* before each time */
    enum peer_end end;
    bool ignores_request; /* says it all without having read anything */
};

struct peer {
    struct peer_script script;
    char directory[32];
    char path[64]; /* of the socket; empty for TCP */
    char url[64];  /* "http://localhost" or "http://127.0.0.1:PORT" */
    int listener_fd, stop_fd;
    pthread_t thread;
    bool stopped;

    /* Only for reading, after peer_stop. */
    struct buffer request; /* the last one */
    unsigned connections, requests;
};

/* Every failure to set up is an abort: a test cannot go on without its peer. */
struct peer *peer_start(const struct peer_script *script);
struct peer *peer_start_tcp(const struct peer_script *script);

void peer_stop(struct peer *peer);
void peer_free(struct peer *peer); /* stops it too */
