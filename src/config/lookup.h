/* Hosts that a fetcher asks, looked up before it gives up opening files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { LOOKUP_HOST_MAX = 253, LOOKUP_TEXT_BYTES = 640 };

bool lookup_is_dns_name(const char *text);

/* A DNS name, or an address (of IPv6 without brackets). */
bool lookup_is_host(const char *text);

/* Looks the host up, in the form that curl wants: "HOST:PORT:ADDRESS,[ADDRESS]..."; "" if it is an
 * address. May block. `what` is how a message calls the host. 0, or -ENOENT with a text. */
int lookup_host(const char *what, const char *host, const char *port, char text[LOOKUP_TEXT_BYTES],
                struct error *err);
