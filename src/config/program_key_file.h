/* The secret of program keys, in a file: keys of several recordings can be compared. */
#pragma once

#include <stdbool.h>

#include "core/error.h"
#include "core/span.h"
#include "host/program_key.h"

/*
 * Reads the secret, or makes one and the file if there is none. The file has 32 hexadecimal digits
 * and a newline, belongs to this user or root, and gives access to its owner only. 0 or -errno,
 * with what to do; error texts quote nothing of it.
 */
int program_key_file_load(const char *path, struct program_secret *ret_secret, struct error *err);

/* Pure: the text of the file. False: it is not a secret, or all 0, which means none. */
bool program_key_file_parse(struct span text, struct program_secret *ret_secret);
