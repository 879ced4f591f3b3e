#include "config/asker_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/secret_file.h"
#include "core/sealed.h"

const struct asker_key asker_keys_table[ASKER_KEYS] = {
    {"electricity_maps", "electricity_maps", "ELECTRICITY_MAPS_TOKEN", false},
    {"entsoe", "entsoe", "ENTSOE_TOKEN", false},
    {"watttime", "watttime_username", "WATTTIME_USERNAME", true},
    {"watttime", "watttime_password", "WATTTIME_PASSWORD", false},
};

static const struct secret_file_form keys_form = {
    .flag = "--emissions.keys-file",
    .contents = "keys",
    .keys = "electricity_maps, entsoe, watttime_username and watttime_password",
    .example = "a line for each key, as entsoe: ...",
    .quoted = "a line for each key, as entsoe: '...'",
};

int asker_keys_read(const char *path, struct asker_keys *ret_keys, struct error *err)
{
    struct secret_file_entry entries[ASKER_KEYS];
    int r;

    *ret_keys = (struct asker_keys){0};
    if (path[0] == '\0')
        return 0;
    for (size_t i = 0; i < ASKER_KEYS; i++)
        entries[i] = (struct secret_file_entry){asker_keys_table[i].name, ret_keys->values[i],
                                                sizeof(ret_keys->values[i])};
    r = secret_file_read(&keys_form, path, entries, ASKER_KEYS, err);
    if (r < 0)
        asker_keys_wipe(ret_keys);
    return r;
}

int asker_keys_seal(const struct asker_keys *keys, int *ret_fd)
{
    return sealed_create((const char *)keys, sizeof(*keys), ret_fd);
}

int asker_keys_unseal(int fd, struct asker_keys *ret_keys)
{
    ssize_t n = pread(fd, ret_keys, sizeof(*ret_keys), 0);

    if (n == (ssize_t)sizeof(*ret_keys))
        return 0;
    asker_keys_wipe(ret_keys);
    return n < 0 ? -errno : -EPROTO;
}

void asker_keys_take_environment(struct asker_keys *keys)
{
    for (size_t i = 0; i < ASKER_KEYS; i++) {
        /* Not secure_getenv: who starts a program with capabilities may have keys, too. */
        char *value = getenv(asker_keys_table[i].variable);
        size_t len = value ? strlen(value) : 0;

        if (!value)
            continue;
        if (keys->values[i][0] == '\0' && len < sizeof(keys->values[i]))
            memcpy(keys->values[i], value, len + 1);
        explicit_bzero(value, len);
        unsetenv(asker_keys_table[i].variable);
    }
}

int asker_keys_find(const struct asker_keys *keys, const char *provider, const char **ret_user,
                    const char **ret_key, struct error *err)
{
    const char *user = NULL, *key = NULL;

    for (size_t i = 0; i < ASKER_KEYS; i++) {
        if (strcmp(provider, asker_keys_table[i].provider) != 0)
            continue;
        if (keys->values[i][0] == '\0')
            return error_set(err, -ENOKEY,
                             "%s wants a key: set %s in the environment, or %s in a file for "
                             "--emissions.keys-file (1 to %d bytes)",
                             provider, asker_keys_table[i].variable, asker_keys_table[i].name,
                             ASKER_KEY_BYTES - 1);
        if (asker_keys_table[i].is_user)
            user = keys->values[i];
        else
            key = keys->values[i];
    }
    *ret_user = user;
    *ret_key = key;
    return 0;
}

void asker_keys_wipe(struct asker_keys *keys)
{
    explicit_bzero(keys, sizeof(*keys));
}
