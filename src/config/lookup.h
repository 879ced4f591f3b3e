/* Names of hosts, which a fetcher resolves before its sandbox forbids opening files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { LOOKUP_HOST_MAX = 253, LOOKUP_TEXT_BYTES = 640 };

bool lookup_is_dns_name(const char *text);

/* A DNS name, or an address (IPv6 without brackets). */
bool lookup_is_host(const char *text);

/* Resolves the host to the form of curl: "HOST:PORT:ADDRESS,[ADDRESS]..."; "" if it is an address.
 * May block. `what` names the host in messages. 0, or -ENOENT with a text. */
int lookup_host(const char *what, const char *host, const char *port, char text[LOOKUP_TEXT_BYTES],
                struct error *err);
