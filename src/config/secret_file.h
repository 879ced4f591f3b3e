/* A file of secrets: a YAML mapping of a few known keys to texts, readable by its owner only. Error
 * texts quote nothing of it. */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

struct secret_file_entry {
    const char *key;
    char *value; /* becomes "" if the file does not have it */
    size_t size_bytes;
};

/* For error texts. */
struct secret_file_form {
    const char *flag;     /* that names the file */
    const char *contents; /* "a password" */
    const char *keys;     /* all of them: "username and password" */
    const char *example;  /* "two lines, username: '...' and password: '...'" */
};

/* 0 or -errno, with what to do. The caller wipes the values, also after a failure. */
int secret_file_read(const struct secret_file_form *form, const char *path,
                     const struct secret_file_entry *entries, size_t count, struct error *err);

/* Pure: the same for the text of the file. */
int secret_file_parse(const struct secret_file_form *form, struct span text, const char *path,
                      const struct secret_file_entry *entries, size_t count, struct error *err);
