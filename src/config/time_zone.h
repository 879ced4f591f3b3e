/* The time zone of the process: what localtime_r() tells. Everything else here is in UTC. */
#pragma once

#include <stdbool.h>

#include "core/error.h"

/* Whether it looks like one: "Europe/Paris", "UTC" or "+01:00". No file is asked for. */
bool time_zone_is_name(const char *text);

/*
 * Makes this the zone; "": the machine's own, which may also be said by TZ. To be called before any
 * thread starts, because the environment changes. -ENOENT: nobody here knows that zone, for which
 * glibc would silently take UTC.
 */
int time_zone_use(const char *name, struct error *err);
