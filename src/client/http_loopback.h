/* Hosts of this machine: what is sent to them crosses no network, so that plain http exposes no
 * secret. */
#pragma once

#include <stdbool.h>

#include "core/span.h"

/* Of a URL: "localhost:9400", "127.0.0.1", "[::1]:80". Names other than localhost are not looked
 * up, and are not of this machine. */
bool http_is_loopback(struct span authority);
