/* What the parsers of providers share: JSON answers, their numbers and times, and queries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/span.h"
#include "emissions/factor.h"

/* The tree of an answer, to be freed with json_free. An object that reports an error is none, with
 * whatever status it came. 0, -ENOMEM or -EBADMSG. */
int reply_read(struct span body, const char *provider, struct json **ret_root, struct error *err);

/* 0, -ENODATA (null, not there, no number) or -ERANGE. */
int reply_grams(const struct json *value, uint64_t *ret_mg);
bool reply_time(const struct json *value, uint64_t *ret_us);
bool reply_says(const struct json *value, const char *text);

/* The newest of a list's rows with a value. `read_row` gives value and time of one, or -ENODATA;
 * any other error of it ends the search. 0, -ENODATA (no row has one) or what read_row returned. */
int reply_newest(const struct json *rows,
                 int (*read_row)(const struct json *row, struct emission_factor *factor),
                 struct emission_factor *factor);

/* What an error says for people, from any of the shapes that these services use, of printable ASCII
 * and cut to the size; "" if nothing. */
void reply_refusal(struct span body, char *why, size_t size_bytes);
void reply_copy_printable(struct span text, char *copy, size_t size_bytes);

/* Appends "?name=value", after the first "&name=value", with all but letters, digits and -._~
 * escaped. */
void reply_ask(struct buffer *path, const char *name, const char *value);
