/* Pods of the Kubernetes API, as far as names need them: pages of a PodList, events of a watch, and
 * errors. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"
#include "identity/runtime.h"

enum {
    KUBERNETES_VERSION_BYTES = 64,
    KUBERNETES_CONTINUE_BYTES = 4096,
};

/* Opaque strings of the server, to be sent back to it. */
struct kubernetes_page {
    char version[KUBERNETES_VERSION_BYTES]; /* where a watch resumes */
    char next[KUBERNETES_CONTINUE_BYTES];   /* of the next page; "": this was the last */
};

/* Adds every pod, and its containers that have an id. 0, -ENOMEM, or -EBADMSG: not a PodList. */
int kubernetes_parse_list(struct span text, struct container_list *list,
                          struct kubernetes_page *ret_page);

/*
 * One line of a watch. Adds the containers of its pod, also of a deleted one, whose usage still
 * needs a name. `version` becomes the event's, if it has one.
 *
 * 0, -ENOMEM, -EBADMSG (not an event), or an error of the server, with a text, as below.
 */
int kubernetes_parse_event(struct span line, struct container_list *list,
                           char version[KUBERNETES_VERSION_BYTES], struct error *err);

/* Of a status other than 200: -ESTALE (the version is too old: list again), -EACCES or
 * -EREMOTEIO. */
int kubernetes_classify_status(int64_t status);

/* The message of an error reply; "" if it has none. */
void kubernetes_parse_error(struct span text, char *message, size_t size_bytes);
