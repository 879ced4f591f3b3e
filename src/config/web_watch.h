/* Watches --web.config.file and the files that it names for changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/file_stamp.h"
#include "core/error.h"

enum { WEB_WATCH_FILES = 4 }; /* the config, the certificate, the key, the clients' CA */

struct web_watch {
    const char *path;
    char *files[WEB_WATCH_FILES]; /* of the newest config, even if it is bad; NULL: none */
    struct file_stamp stamps[WEB_WATCH_FILES];
    bool has_tls, has_users, wants_client_certs, has_client_sans; /* the newest good config */
    char *packed; /* the newest good config, for the server's job; NULL: none yet */
    size_t packed_bytes;
};

/* Loads them. Close it after failures, too. */
int web_watch_open(struct web_watch *watch, const char *path, struct error *err);

/* Accepts a zeroed struct. */
void web_watch_close(struct web_watch *watch);

/* 1: there is a new config; 0: no change; -errno: the files changed and are bad, which is reported
 * once per change; the old config stays. */
int web_watch_poll(struct web_watch *watch, struct error *err);
