#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "config/web_config.h"
#include "core/fs.h"
#include "core/macros.h"

enum { FILE_CAP_BYTES = 1 << 20 };

/* `what` says what the file is for. */
static int read_file(const char *path, const char *what, char **ret_data, size_t *ret_len,
                     struct error *err)
{
    int r = fs_read_regular(path, FILE_CAP_BYTES, ret_data, ret_len);

    if (r == -EFBIG)
        return error_set(err, r, "%s %.300s: larger than 1 MiB; is it the right file?", what, path);
    if (r < 0)
        return error_set(err, r,
                         "%s %.300s: cannot be read: %s; check the path and the file's permissions",
                         what, path, fs_strerror(r));
    return 0;
}

/* It may have held a key. */
static void wipe(char *data, size_t len)
{
    if (data)
        explicit_bzero(data, len);
}

static int read_pem(struct web_config *config, const char *path, const char *what,
                    struct tls_pem *pem, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    size_t len = 0;
    int r;

    if (!path)
        return 0;
    r = read_file(path, what, &data, &len, err);
    if (r < 0)
        return r;
    if (len == 0)
        return error_set(err, -EINVAL, "%s %.300s: is empty", what, path);
    pem->name = path;
    pem->text = (struct span){arena_copy(&config->strings, data, len), len};
    wipe(data, len);
    return pem->text.data ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int check_tls(const struct web_config *config, struct error *err)
{
    struct tls *tls;
    int r = config->has_tls ? tls_new(&config->tls, &tls, err) : 0;

    if (r == 0 && config->has_tls)
        tls_unref(tls);
    return r;
}

int web_config_load(const char *path, struct web_config *ret_config, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct web_config *config = ret_config;
    size_t len = 0;
    int r;

    *config = (struct web_config){0};
    r = read_file(path, "--web.config.file", &data, &len, err);
    if (r == 0)
        r = web_config_parse((struct span){data, len}, path, config, err);
    if (r == 0)
        r = read_pem(config, config->cert_path, "cert_file", &config->tls.cert, err);
    if (r == 0)
        r = read_pem(config, config->key_path, "key_file", &config->tls.key, err);
    if (r == 0)
        r = read_pem(config, config->client_ca_path, "client_ca_file", &config->tls.client_ca, err);
    if (r == 0)
        r = check_tls(config, err);
    wipe(data, len);
    return r;
}
