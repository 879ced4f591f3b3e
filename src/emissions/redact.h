/* Texts for people, into which a service may have written what it was sent: without the secrets. */
#pragma once

#include "core/error.h"

/*
 * Puts "***" for the secret wherever it stands in the text: as it is, with '?' for what is not
 * printable, or escaped as in a URL; at the text's end also if it is cut, down to four characters.
 * An empty secret is none. `err` may be NULL.
 */
void redact_secret(struct error *err, const char *secret);
