/* The credentials of a provider: whether they can be sent, how they are, and how they are kept out
 * of error texts. */
#pragma once

#include "core/buffer.h"
#include "core/error.h"
#include "emissions/provider.h"

enum { CREDENTIAL_BYTES_MAX = 4096 }; /* of the header */

/* 0, -EINVAL (missing or too long) or -EILSEQ (characters that a header cannot have), with a text
 * that does not contain them. */
int credential_check(const struct provider *provider, const char *user, const char *key,
                     struct error *err);

/* Appends the header with the key, NUL-terminated; nothing where the key is not sent in one. */
void credential_write(const struct provider *provider, const char *user, const char *key,
                      struct buffer *header);

/*
 * Replaces the secret by "***" in a text in which a service may have repeated it: as it is, with
 * '?' for what is not printable, or escaped as in a URL; at the end of the text also cut, down to
 * four characters. An empty secret is none. `err` may be NULL.
 */
void credential_redact(struct error *err, const char *secret);
