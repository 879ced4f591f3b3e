/*
 * Keeps an eye on --web.config.file and the files that it names, and has them ready for the
 * server's job: keys are never written anywhere but to memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/file_stamp.h"
#include "core/error.h"

enum { WEB_WATCH_FILES = 4 }; /* the config, the certificate, the key, the clients' authority */

struct web_watch {
    const char *path;
    char *files[WEB_WATCH_FILES]; /* of the newest config, also if it is bad; NULL: none */
    struct file_stamp marks[WEB_WATCH_FILES];
    bool has_tls;
    char *packed; /* the newest that is good; NULL: none yet */
    size_t packed_bytes;
};

/* Reads them. Errors are for people. To be closed after failures, too. */
int web_watch_open(struct web_watch *watch, const char *path, struct error *err);

/* Accepts a zeroed struct. */
void web_watch_close(struct web_watch *watch);

/*
 * Looks whether they have changed. 1: there is a new config; 0: nothing new; negative errno: they
 * have changed and are bad, `err` says why; the old config stays. That is said once for each
 * change.
 */
int web_watch_look(struct web_watch *watch, struct error *err);
