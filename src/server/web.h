/*
 * The server's web config: TLS, users and headers, as its job has them. It reads no file of them.
 */
#pragma once

#include <stddef.h>

#include "config/web_config.h"
#include "core/error.h"
#include "core/span.h"

struct server_web {
    struct web_config config;
    struct tls *tls;            /* NULL: plain HTTP */
    struct auth *auth;          /* NULL until it is started */
    struct http_server *server; /* NULL until it is started */
};

/* The config of the job, as web_config_pack writes it. */
int server_web_open(struct server_web *web, struct span packed, struct error *err);

/* Starts the thread that checks passwords, in its own sandbox, and sets up the server. Call when
 * privileges are dropped and before system calls are filtered. */
int server_web_start(struct server_web *web, struct http_server *server, struct error *err);

/* A newer one. After a failure the server must end: the next one begins with it. */
int server_web_renew(struct server_web *web, struct span packed, struct error *err);

/* After the server was closed. Accepts a zeroed struct. */
void server_web_close(struct server_web *web);
