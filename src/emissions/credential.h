/* What a service wants to see before it answers: whether that can be sent, and how it is. */
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
