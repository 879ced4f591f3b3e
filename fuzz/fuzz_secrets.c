/* Files of secrets: any bytes give secrets without control characters, or an error whose text does
 * not depend on them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/program_key_file.h"
#include "config/secret_file.h"
#include "core/macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_secret(const char *secret, size_t size_bytes)
{
    check(memchr(secret, '\0', size_bytes));
    for (; *secret; secret++)
        check((unsigned char)*secret >= ' ' && *secret != 127);
}

/* What an error may quote of a file is a position. */
static void check_error(const char *text)
{
    static const char *const known[] = {"each once; write an example",
                                        "must have 1 to 15 bytes, and no control characters",
                                        "must have 1 to 7 bytes, and no control characters"};
    bool is_known = false;

    check(strncmp(text, "secrets.yaml:", strlen("secrets.yaml:")) == 0);
    text += strlen("secrets.yaml:");
    text += strspn(text, "0123456789: ");
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        is_known |= strstr(text, known[i]) != NULL;
    check(is_known && (strncmp(text, "is not YAML", 11) == 0 || strncmp(text, "user ", 5) == 0 ||
                       strncmp(text, "password ", 9) == 0));
}

static void check_secret_file(struct span text)
{
    static const struct secret_file_form form = {"--flag", "a password", "user and password",
                                                 "an example"};
    char user[16] = "old", password[8] = "old";
    const struct secret_file_entry entries[] = {{"user", user, sizeof(user)},
                                                {"password", password, sizeof(password)}};
    struct error err = {""};
    int r = secret_file_parse(&form, text, "secrets.yaml", entries, ARRAY_SIZE(entries), &err);

    check_secret(user, sizeof(user));
    check_secret(password, sizeof(password));
    check(strcmp(user, "old") != 0 || memmem(text.data, text.len, "old", 3));
    if (r < 0)
        check_error(err.text);
}

static void check_program_key(struct span text)
{
    struct program_secret secret = {{0, 0}};
    bool is_good = program_key_file_parse(text, &secret);

    check(is_good == ((secret.words[0] | secret.words[1]) != 0));
    if (is_good)
        check(text.len == 33 && text.data[32] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};

    if (size == 0)
        return 0;
    check_secret_file(text);
    check_program_key(text);
    return 0;
}
