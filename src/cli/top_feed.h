/*
 * Documents of a node, fetched again and again on a thread of its own, so that whoever shows them
 * never waits for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"
#include "top/node_document.h"

/* Where documents come from. */
struct top_source {
    /* The newest as JSON, valid until the next call; may block, up to a deadline of its own. 0 or
     * -errno with a text. */
    int (*get)(void *context, struct span *ret_json, struct error *err);
    /* From another thread: get() returns at once from now on. */
    void (*cancel)(void *context);
    /* If not NULL, called when `wake_fd` is readable, and every second. */
    void (*attend)(void *context);
    int wake_fd; /* -1: none */
    void *context;
};

struct top_feed;

/* Starts the thread. The source must outlive it. 0, -ENOMEM or what there is no thread for. */
int top_feed_start(const struct top_source *source, uint64_t interval_us,
                   struct top_feed **ret_feed);

/* Readable when there is something to take. */
int top_feed_fd(const struct top_feed *feed);

/* The newest document, or NULL with the reason in `trouble`: the last attempt failed. False:
 * nothing new. The caller owns the document. */
bool top_feed_take(struct top_feed *feed, struct node_document **ret_document,
                   struct error *ret_trouble);

/* While paused it asks for nothing. */
void top_feed_pause(struct top_feed *feed, bool is_paused);

/* Ends the thread. Accepts NULL. */
void top_feed_stop(struct top_feed *feed);
