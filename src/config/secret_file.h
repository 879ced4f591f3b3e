/*
 * A file of secrets: a YAML mapping of a few known keys to texts, for nobody but its owner. No
 * message quotes anything of it but the place.
 */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

struct secret_file_entry {
    const char *key;
    char *value; /* becomes "" if the file does not have it */
    size_t size_bytes;
};

struct secret_file_form {
    const char *flag;     /* that names the file */
    const char *contents; /* what is at stake: "a password" */
    const char *keys;     /* all of them: "username and password" */
    const char *example;  /* how it is written: "two lines: username: ... and password: ..." */
    const char *quoted;   /* with quotes: "two lines, username: '...' and password: '...'" */
};

/* 0 or -errno, with what to do. The values are the caller's to wipe, also after a failure. */
int secret_file_read(const struct secret_file_form *form, const char *path,
                     const struct secret_file_entry *entries, size_t count, struct error *err);

/* The part of it that reads no file. */
int secret_file_parse(const struct secret_file_form *form, struct span text, const char *path,
                      const struct secret_file_entry *entries, size_t count, struct error *err);
