/* Listen: from --listen-address, or from systemd, to listening sockets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { LISTEN_MAX = 16 };

/* Parsed, and not resolved yet. */
struct listen_address {
    char host[256]; /* "": every address of this machine */
    char port[6];   /* "0" to "65535" */
    char path[108]; /* of a unix socket; "": TCP */
};

/* Pure. ":9400", "127.0.0.1:9400", "[::1]:9400", "host:9400" or "unix:/run/x.sock"; 0 or -EINVAL.
 */
int listen_parse(const char *text, struct listen_address *ret_address, struct error *err);

/*
 * Opens one socket per address, or takes over those of systemd (LISTEN_FDS) instead of all of them;
 * the variables of that protocol are unset. The caller owns the descriptors: non-blocking and
 * close-on-exec; fds has room for LISTEN_MAX. May block on name resolution. 0 or -errno, and then
 * nothing is left open.
 */
int listen_open(const char *const addresses[], size_t count, int fds[], size_t *ret_fd_count,
                struct error *err);

/* Closes them, and removes the files of unix sockets without another listener. */
void listen_close(int fds[], size_t count);

/* "127.0.0.1:9400", "[::]:9400" or "unix:/path", for the log. 0 or -errno. */
int listen_describe(int fd, char *buf, size_t size);
