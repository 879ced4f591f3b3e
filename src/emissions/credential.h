/* What a service wants to see before it answers: whether that can be sent, how it is, and how it is
 * kept out of messages. */
#pragma once

#include "core/buffer.h"
#include "core/error.h"
#include "emissions/provider.h"

enum { CREDENTIAL_BYTES_MAX = 4096 }; /* of the header */

/* 0, -EINVAL (it is missing or too long) or -EILSEQ (it has characters in it that no header can
 * have), with a text that does not show it. */
int credential_check(const struct provider *provider, const char *user, const char *key,
                     struct error *err);

/* Appends the header that has the key in it, ended by NUL; nothing if it belongs elsewhere. */
void credential_write(const struct provider *provider, const char *user, const char *key,
                      struct buffer *header);

/*
 * For texts into which a service may have written what it was sent. Puts "***" for the secret
 * wherever it stands in the text: as it is, with '?' for what is not printable, or escaped as in a
 * URL; at the text's end also if it is cut, down to four characters. An empty secret is none. `err`
 * may be NULL.
 */
void redact_secret(struct error *err, const char *secret);
