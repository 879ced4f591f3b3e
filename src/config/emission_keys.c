#include "config/emission_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/secret_file.h"
#include "emissions/provider.h"

size_t emission_keys_list(struct emission_key ret_keys[EMISSION_KEYS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; provider_table[i]; i++) {
        const struct provider *provider = provider_table[i];

        for (size_t j = 0; j < PROVIDER_SECRETS_MAX && provider->secrets[j].name; j++)
            if (count < EMISSION_KEYS_MAX)
                ret_keys[count++] = (struct emission_key){
                    provider->name, provider->secrets[j].name, provider->secrets[j].variable,
                    provider->key == PROVIDER_KEY_LOGIN && j == 0};
    }
    return count;
}

static int read_file(const char *path, const struct emission_key *table, size_t count,
                     struct emission_keys *keys, struct error *err)
{
    struct secret_file_entry entries[EMISSION_KEYS_MAX];
    char names[512] = "";
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        entries[i] =
            (struct secret_file_entry){table[i].name, keys->values[i], sizeof(keys->values[i])};
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                    i == 0          ? ""
                                    : i + 1 < count ? ", "
                                                    : " and ",
                                    table[i].name);
    }
    return secret_file_read(
        &(struct secret_file_form){
            .flag = "--emissions.keys-file",
            .contents = "keys",
            .keys = names,
            .example = "a line for each key, as entsoe: '...'",
        },
        path, entries, count, err);
}

int emission_keys_read(const char *path, struct emission_keys *ret_keys, struct error *err)
{
    struct emission_key table[EMISSION_KEYS_MAX];
    size_t count = emission_keys_list(table);
    int r;

    *ret_keys = (struct emission_keys){0};
    r = path[0] ? read_file(path, table, count, ret_keys, err) : 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        /* Not secure_getenv: a program with capabilities may get keys, too. */
        const char *value = getenv(table[i].variable);
        size_t len = value ? strlen(value) : 0;

        if (ret_keys->values[i][0] == '\0' && len > 0 && len < sizeof(ret_keys->values[i]))
            memcpy(ret_keys->values[i], value, len + 1);
    }
    if (r < 0)
        explicit_bzero(ret_keys, sizeof(*ret_keys));
    return r;
}

int emission_keys_find(const struct emission_keys *keys, const char *provider,
                       const char **ret_user, const char **ret_key, struct error *err)
{
    const char *user = NULL, *key = NULL;
    struct emission_key table[EMISSION_KEYS_MAX];
    size_t count = emission_keys_list(table);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(provider, table[i].provider) != 0)
            continue;
        if (keys->values[i][0] == '\0')
            return error_set(err, -ENOKEY,
                             "%s needs a key: set %s in the environment, or %s in a file for "
                             "--emissions.keys-file (1 to %d bytes)",
                             provider, table[i].variable, table[i].name, EMISSION_KEY_BYTES - 1);
        if (table[i].is_user)
            user = keys->values[i];
        else
            key = keys->values[i];
    }
    *ret_user = user;
    *ret_key = key;
    return 0;
}
