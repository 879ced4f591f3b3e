/*
 * A Prometheus-compatible server: Prometheus, Thanos, Mimir, VictoriaMetrics. Answers may be kept
 * in a directory, so that a report that was interrupted goes on where it stopped.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"
#include "report/answer.h"

struct server_options {
    const char *url;
    const char *ca_path;         /* NULL: the system's */
    const char *token_path;      /* a file with a bearer token; NULL: none */
    const char *user, *password; /* NULL: none */
    const char *tenant;          /* X-Scope-OrgID; NULL: none */
    bool is_insecure;
    const char *keep_path; /* directory of answers; NULL: none are kept */
    int64_t now_s;         /* answers about the last hour are not kept */
};

struct server;

/* Reads files, and asks nobody. 0, or -errno with a text. */
int server_open(const struct server_options *options, struct server **ret_server,
                struct error *err);

/* Accepts NULL. */
void server_close(struct server *server);

/* Without what is secret in it. */
const char *server_address(const struct server *server);

/* What one thread asks through. */
struct server_connection;
int server_connect(const struct server *server, struct server_connection **ret, struct error *err);
void server_disconnect(struct server_connection *connection); /* accepts NULL */
/* How many answers it could not keep. Accepts NULL. */
size_t server_unkept(const struct server_connection *connection);
/* From any thread: what is asked ends, and so does every later request. */
void server_cancel(struct server_connection *connection);

struct server_query {
    const char *text; /* PromQL */
    int64_t from_s, to_s, step_s;
};

/*
 * One request, without retries. 0, or
 *
 * -E2BIG   too much was asked at once: ask for less
 * -EAGAIN  it may work later
 * -ECONNREFUSED  nobody is there: it may work later if it did before
 *
 * or another errno; with a text. *ret_was_kept: it was not asked again. May block for minutes.
 */
int server_ask(struct server_connection *connection, const struct server_query *query,
               struct answer **ret_answer, bool *ret_was_kept, struct error *err);

/* Pure: what a status means, as above; 0 for 200. */
int server_status_result(int status);
