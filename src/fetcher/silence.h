/*
 * Silence of a host, by the results of http_client_do. A name may have got another address, which a
 * sealed process cannot look up: after a minute another one should. A reply ends the silence,
 * whatever its status; a refused login must not lead to more logins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nobody answered, or somebody else. */
bool silence_is_result(int r);

/* Takes the result of each request. True: there was no answer for a minute. `since_us` is zero
 * before the first, and kept in between. */
bool silence_is_long(uint64_t *since_us, int r, uint64_t now_us);
