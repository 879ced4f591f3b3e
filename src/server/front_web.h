/*
 * The front's web config: TLS, users and headers, as the collector hands them over. The front reads
 * no file of them, and the first one has to be there before it serves.
 */
#pragma once

#include <stddef.h>

#include "config/web_config.h"
#include "core/error.h"

struct front_web {
    struct web_config config;
    struct tls *tls;            /* NULL: plain HTTP */
    struct auth *auth;          /* NULL until it is started */
    struct http_server *server; /* NULL until it is started */
};

/* Waits for the first config, which the collector sends with the channel. */
int front_web_open(struct front_web *web, int channel_fd, struct error *err);

/* Starts the thread that checks passwords, in its own sandbox, and sets up the server. Call when
 * privileges are dropped and before system calls are filtered. */
int front_web_start(struct front_web *web, struct http_server *server, struct error *err);

/* A newer config. After a failure the front must end: the next one begins with it. */
int front_web_renew(struct front_web *web, int config_fd, size_t config_bytes, struct error *err);

/* After the server was closed. Accepts a zeroed struct. */
void front_web_close(struct front_web *web);
