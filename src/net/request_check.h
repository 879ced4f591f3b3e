/*
 * Request check: whether a request's head is well-formed (RFC 9112), beyond what libmicrohttpd
 * refuses. A proxy in front of us and we must not read two different requests in the same bytes.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"

struct request_check {
    bool is_malformed;
    unsigned hosts, lengths, transfer_encodings; /* fields of this name */
    size_t bytes; /* of all that was added, as clients send it: "NAME: VALUE" and CRLF */
};

/* The target as it was sent, not decoded: a path or an absolute URI, or "*". */
void request_check_add_target(struct request_check *check, struct span target);
void request_check_add_field(struct request_check *check, struct span name, struct span value);

/* `version` is "HTTP/1.1" or another: only HTTP/1.0 may do without Host. */
bool request_check_is_malformed(const struct request_check *check, struct span version);

/*
 * libmicrohttpd before 1.0 ends a text at a NUL, a line at a bare LF, and the headers at a line
 * that begins with a colon; it appends a folded line to the field's name. It reports none of this,
 * but it does report the length of the head: this tells whether that is more or less than what was
 * added. It needs exactly one space after each colon, which is what clients send (RFC 9110, 5.6.3).
 */
bool request_check_has_hidden_bytes(const struct request_check *check, struct span method,
                                    struct span version, size_t head_bytes);

/* The path of a decoded target: an absolute URI without its scheme and authority. */
const char *request_check_path(const char *target);
