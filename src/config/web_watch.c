#include "config/web_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/web_config.h"
#include "core/macros.h"

static bool update_marks(struct web_watch *watch)
{
    bool moved = false;

    for (size_t i = 0; i < WEB_WATCH_FILES; i++)
        moved |= file_stamp_renew(&watch->marks[i], watch->files[i]);
    return moved;
}

/* Which files a config names. Returns whether they are others than before. */
static bool watch_files_of(struct web_watch *watch, const struct web_config *config)
{
    const char *const paths[] = {config->cert_path, config->key_path, config->client_ca_path};
    bool others = false;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        char **file = &watch->files[1 + i];

        if (paths[i] ? *file && strcmp(*file, paths[i]) == 0 : !*file)
            continue;
        free(*file);
        *file = paths[i] ? strdup(paths[i]) : NULL; /* without memory it is not watched */
        others = true;
    }
    return others;
}

static void wipe(struct web_watch *watch)
{
    if (watch->packed)
        explicit_bzero(watch->packed, watch->packed_bytes);
    free(watch->packed);
    watch->packed = NULL;
}

static int pack(struct web_watch *watch, const struct web_config *config, struct error *err)
{
    char *bytes;
    size_t len;
    int r = web_config_pack(config, &bytes, &len);

    if (r < 0)
        return error_set(err, r, "cannot pack the web config: %s", strerror(-r));
    wipe(watch);
    watch->packed = bytes;
    watch->packed_bytes = len;
    return 0;
}

static int read_once(struct web_watch *watch, bool *ret_others, struct error *err)
{
    struct web_config config;
    int r = web_config_load(watch->path, &config, err);
    bool first = !watch->packed;

    *ret_others = watch_files_of(watch, &config);
    if (r == 0 && !first && config.has_tls != watch->has_tls)
        r = error_set(err, -EINVAL,
                      "%.300s: TLS cannot be switched %s while the exporter runs; restart it",
                      watch->path, config.has_tls ? "on" : "off");
    if (r == 0)
        r = pack(watch, &config, err);
    if (r == 0)
        watch->has_tls = config.has_tls;
    web_config_done(&config);
    return r;
}

/* A mark is taken before its file is read, so a config that names other files is read twice. */
static int read_all(struct web_watch *watch, struct error *err)
{
    bool others;
    int r = read_once(watch, &others, err);

    if (!others)
        return r;
    update_marks(watch);
    return read_once(watch, &others, err);
}

int web_watch_open(struct web_watch *watch, const char *path, struct error *err)
{
    *watch = (struct web_watch){.path = path};
    watch->files[0] = strdup(path);
    if (!watch->files[0])
        return error_set(err, -ENOMEM, "out of memory");
    update_marks(watch);
    return read_all(watch, err);
}

void web_watch_close(struct web_watch *watch)
{
    for (size_t i = 0; i < WEB_WATCH_FILES; i++)
        free(watch->files[i]);
    wipe(watch);
}

int web_watch_look(struct web_watch *watch, struct error *err)
{
    int r;

    if (!update_marks(watch))
        return 0;
    r = read_all(watch, err);
    return r < 0 ? r : 1;
}
