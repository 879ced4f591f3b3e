/*
 * Silence of a host, by the results of http_client_do. Its name may have another address by now,
 * which a sealed process cannot look up: after a minute a new one should. A reply ends the silence,
 * whatever its status; a refused login must not lead to more logins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* No reply came, or one from another host. */
bool silence_is_unanswered(int r);

/* Takes the result of each request. True: there was no reply for a minute. `since_us` is zero
 * before the first, and kept in between. */
bool silence_is_long(uint64_t *since_us, int r, uint64_t now_us);
