/* This node as a source of documents for `wattribute top`, where no daemon runs: its meters are
 * read and booked in this process. */
#pragma once

#include "cli/top_feed.h"
#include "config/options.h"

struct top_measure;

/* Opens what can be read. 0, or -errno with a text. */
int top_measure_open(const struct options *options, struct top_measure **ret_measure,
                     struct error *err);

struct top_source top_measure_source(struct top_measure *measure);

/* Waits until the first energy is booked, for some seconds at most. -ENODEV: this node has no meter
 * that we can read. */
int top_measure_wait(struct top_measure *measure, struct error *err);

/* False: a source hangs, so that the program may only end by _exit(). Accepts NULL. */
bool top_measure_close(struct top_measure *measure);
