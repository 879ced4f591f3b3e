/* Documents of a running daemon, for the verbs that show them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"

struct daemon_client;
struct options;

/* Of --daemon, --daemon.ca-file and --daemon.credentials-file; reads those files, and connects to
 * nobody. 0, or -errno with a text. */
int daemon_client_open(const struct options *options, struct daemon_client **ret_client,
                       struct error *err);

/* Accepts NULL. */
void daemon_client_close(struct daemon_client *client);

/* Where the daemon is, for messages: "http://localhost:9400", "unix:/run/wattribute.sock". */
const char *daemon_client_address(const struct daemon_client *client);

/*
 * The document at `path`, which begins with '/'. Blocks for at most `timeout_us`. The body is valid
 * until the next call. 0, or
 *
 * -ECONNREFUSED   no daemon answers there
 * -EACCES         it wants a password, or another one; or the socket is not ours to use
 * -ENOENT         it has no such document
 * -EAGAIN         it has none now: it starts, or has too many clients
 * -ECANCELED      daemon_client_cancel was called
 *
 * or what http_client_do returns, with a text that says what to do.
 */
int daemon_client_get(struct daemon_client *client, const char *path, uint64_t timeout_us,
                      struct span *ret_body, struct error *err);

/* As http_client_watch: a call ends with -ECANCELED if `attend` says so when `fd` is readable. */
void daemon_client_watch(struct daemon_client *client, int fd, bool (*attend)(int fd));

/* From any thread: the call in progress, and every later one, ends with -ECANCELED. */
void daemon_client_cancel(struct daemon_client *client);
