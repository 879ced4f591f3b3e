/* What `wattribute check` and /api/v1/check report of the sources. */
#pragma once

#include <stdbool.h>

struct report;
struct source_context;

/*
 * Checks every source, each on a thread of its own: a driver, or a daemon behind it, that hangs
 * costs its own lines and not the others. `check_redfish` stands in for that source, as sources do
 * not use the network; NULL: it is left out. May block for 20 s for each source that hangs. False:
 * one does, so that `context` and all that it points to must stay, and the program may only end by
 * _exit().
 */
bool sources_check(struct report *report, const struct source_context *context,
                   void (*check_redfish)(struct report *report, const void *argument),
                   const void *argument);
