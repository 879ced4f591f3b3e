#include "config/web_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

static bool update_stamps(struct web_watch *watch)
{
    bool has_changed = false;

    for (size_t i = 0; i < WEB_WATCH_FILES; i++)
        has_changed |= file_stamp_renew(&watch->stamps[i], watch->files[i]);
    return has_changed;
}

/* Watches the files that a config names. Returns whether they are others than before. */
static bool watch_files_of(struct web_watch *watch, const struct web_config *config)
{
    const char *const paths[] = {config->cert_path, config->key_path, config->client_ca_path};
    bool others = false;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        char **file = &watch->files[1 + i];

        if (paths[i] ? *file && strcmp(*file, paths[i]) == 0 : !*file)
            continue;
        free(*file);
        *file = paths[i] ? strdup(paths[i]) : NULL; /* not watched if out of memory */
        others = true;
    }
    return others;
}

static int load(struct web_watch *watch, bool *ret_others, struct error *err)
{
    struct web_config config;
    int r = web_config_load(watch->path, &config, err);

    *ret_others = watch_files_of(watch, &config);
    if (r == 0 && watch->is_loaded && config.has_tls != watch->config.has_tls)
        r = error_set(err, -EINVAL,
                      "%.300s: TLS cannot be switched %s while the exporter runs; restart it",
                      watch->path, config.has_tls ? "on" : "off");
    if (r < 0) {
        web_config_done(&config);
        return r;
    }
    web_config_done(&watch->config);
    watch->config = config;
    watch->is_loaded = true;
    return 0;
}

/* A stamp is taken before its file is read, so a config that names other files is read twice. */
static int load_all(struct web_watch *watch, struct error *err)
{
    bool others;
    int r = load(watch, &others, err);

    if (!others)
        return r;
    update_stamps(watch);
    return load(watch, &others, err);
}

int web_watch_open(struct web_watch *watch, const char *path, struct error *err)
{
    *watch = (struct web_watch){.path = path, .files = {strdup(path)}};
    if (!watch->files[0])
        return error_set(err, -ENOMEM, "out of memory");
    update_stamps(watch);
    return load_all(watch, err);
}

void web_watch_close(struct web_watch *watch)
{
    for (size_t i = 0; i < WEB_WATCH_FILES; i++)
        free(watch->files[i]);
    web_config_done(&watch->config);
}

int web_watch_look(struct web_watch *watch, struct error *err)
{
    int r;

    if (!update_stamps(watch))
        return 0;
    r = load_all(watch, err);
    return r < 0 ? r : 1;
}
