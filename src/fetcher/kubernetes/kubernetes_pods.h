/*
 * What the Kubernetes API says of pods, as far as names need it: pages of a PodList, the events of
 * a watch, and refusals. Pure.
 */
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

/* Opaque texts of the server, to be handed back to it (encoded for a URL). */
struct kubernetes_page {
    char version[KUBERNETES_VERSION_BYTES]; /* a watch goes on from here */
    char next[KUBERNETES_CONTINUE_BYTES];   /* asks for the next page; "": this was the last */
};

/* Adds every pod, and its containers that have an id. 0, -ENOMEM, or -EBADMSG: not a PodList. */
int kubernetes_parse_list(struct span text, struct container_list *list,
                          struct kubernetes_page *ret_page);

/*
 * One line of a watch. Adds the containers of its pod, also of one that was deleted: what it used
 * is still to be named. `version` becomes the event's, if it has one.
 *
 * 0, -ENOMEM, -EBADMSG (not an event), or an error of the server, with a text, as below.
 */
int kubernetes_parse_event(struct span line, struct container_list *list,
                           char version[KUBERNETES_VERSION_BYTES], struct error *err);

/* What a status other than 200 means: -ESTALE (what was asked for is too far in the past: list
 * again), -EACCES (we may not ask) or -EREMOTEIO. */
int kubernetes_classify_status(int64_t status);

/* Why the server refuses, from the body of its answer: "" if it does not say. */
void kubernetes_parse_refusal(struct span text, char *ret_why, size_t size_bytes);
