/* The web config outside of its parser: read with the files that it names, packed, watched. */
#include "config/web_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/web_config.h"
#include "config/yaml_fields.h"
#include "core/macros.h"
#include "core/pack.h"

enum { FILE_CAP_BYTES = 1 << 20, STRINGS_CAP_BYTES = 8 << 20 };

void web_config_done(struct web_config *config)
{
    if (config->tls.key.text.len > 0)
        explicit_bzero((char *)config->tls.key.text.data, config->tls.key.text.len);
    arena_done(&config->strings);
    *config = (struct web_config){0};
}

static int read_pem(struct web_config *config, const char *path, const char *what,
                    struct tls_pem *pem, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r;

    if (!path)
        return 0;
    r = yaml_fields_load(what, path, FILE_CAP_BYTES, &data, &text, err);
    if (r < 0)
        return r;
    if (text.len == 0)
        return error_set(err, -EINVAL, "%s %.300s: is empty", what, path);
    pem->name = path;
    pem->text = (struct span){arena_copy(&config->strings, data, text.len), text.len};
    explicit_bzero(data, text.len);
    if (pem->text.data)
        return 0;
    pem->text.len = 0;
    return error_set(err, -ENOMEM, "out of memory");
}

int web_config_load(const char *path, struct web_config *ret_config, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct web_config *config = ret_config;
    struct span text = {NULL, 0};
    struct tls *tls;
    int r;

    *config = (struct web_config){0};
    r = yaml_fields_load("--web.config.file", path, FILE_CAP_BYTES, &data, &text, err);
    if (r < 0)
        return r;
    r = web_config_parse(text, path, config, err);
    explicit_bzero(data, text.len); /* it may contain a key */
    if (r == 0)
        r = read_pem(config, config->cert_path, "cert_file", &config->tls.cert, err);
    if (r == 0)
        r = read_pem(config, config->key_path, "key_file", &config->tls.key, err);
    if (r == 0)
        r = read_pem(config, config->client_ca_path, "client_ca_file", &config->tls.client_ca, err);
    if (r < 0 || !config->has_tls)
        return r;
    r = tls_new(&config->tls, &tls, err);
    if (r == 0)
        tls_unref(tls);
    return r;
}

static void pack_tls(struct buffer *out, const struct tls_settings *tls)
{
    pack_bytes(out, tls->cert.text);
    pack_bytes(out, tls->key.text);
    pack_bytes(out, tls->client_ca.text);
    pack_u64(out, tls->client_auth);
    pack_u64(out, tls->min_version);
    pack_u64(out, tls->max_version);
    pack_u64(out, tls->prefer_server_ciphers);
    pack_u64(out, tls->client_san_count);
    for (size_t i = 0; i < tls->client_san_count; i++)
        pack_text(out, tls->client_sans[i]);
    pack_u64(out, tls->curve_count);
    for (size_t i = 0; i < tls->curve_count; i++)
        pack_u64(out, tls->curves[i]);
}

int web_config_pack(const struct web_config *config, char **ret_bytes, size_t *ret_len)
{
    struct buffer out;

    buffer_init(&out, STRINGS_CAP_BYTES);
    pack_u64(&out, config->has_tls);
    pack_tls(&out, &config->tls);
    pack_u64(&out, config->user_count);
    for (size_t i = 0; i < config->user_count; i++) {
        pack_text(&out, config->users[i].name);
        pack_text(&out, config->users[i].hash);
    }
    pack_u64(&out, config->header_count);
    for (size_t i = 0; i < config->header_count; i++) {
        pack_text(&out, config->headers[i].name);
        pack_text(&out, config->headers[i].value);
    }
    if (buffer_failed(&out)) {
        buffer_wipe(&out);
        return -ENOMEM;
    }
    *ret_bytes = out.data;
    *ret_len = out.len;
    return 0;
}

static void unpack_tls(struct unpack *rest, struct tls_settings *tls)
{
    tls->cert = (struct tls_pem){"the certificate", unpack_bytes(rest)};
    tls->key = (struct tls_pem){"the key", unpack_bytes(rest)};
    tls->client_ca = (struct tls_pem){"the clients' CA", unpack_bytes(rest)};
    tls->client_auth = unpack_u64(rest, TLS_CLIENT_AUTH_COUNT - 1);
    tls->min_version = unpack_u64(rest, TLS_VERSION_COUNT - 1);
    tls->max_version = unpack_u64(rest, TLS_VERSION_COUNT - 1);
    tls->prefer_server_ciphers = unpack_u64(rest, 1) > 0;
    tls->client_san_count = unpack_u64(rest, TLS_SANS_MAX);
    for (size_t i = 0; i < tls->client_san_count; i++)
        tls->client_sans[i] = unpack_text(rest);
    tls->curve_count = unpack_u64(rest, TLS_CURVE_COUNT);
    for (size_t i = 0; i < tls->curve_count; i++)
        tls->curves[i] = unpack_u64(rest, TLS_CURVE_COUNT - 1);
}

int web_config_unpack(struct span bytes, struct web_config *ret_config)
{
    struct web_config *config = ret_config;
    struct unpack rest = {.rest = bytes};

    *config = (struct web_config){0};
    arena_init(&config->strings, STRINGS_CAP_BYTES);
    rest.rest.data = arena_copy(&config->strings, bytes.data, bytes.len);
    if (!rest.rest.data)
        return -ENOMEM;
    config->has_tls = unpack_u64(&rest, 1) > 0;
    unpack_tls(&rest, &config->tls);
    config->user_count = unpack_u64(&rest, WEB_CONFIG_USERS_MAX);
    for (size_t i = 0; i < config->user_count; i++) {
        config->users[i].name = unpack_text(&rest);
        config->users[i].hash = unpack_text(&rest);
    }
    config->header_count = unpack_u64(&rest, WEB_CONFIG_HEADERS_MAX);
    for (size_t i = 0; i < config->header_count; i++) {
        config->headers[i].name = unpack_text(&rest);
        config->headers[i].value = unpack_text(&rest);
    }
    return unpack_end(&rest);
}

static bool update_stamps(struct web_watch *watch)
{
    bool has_changed = false;

    for (size_t i = 0; i < WEB_WATCH_FILES; i++)
        has_changed |= file_stamp_update(&watch->stamps[i], watch->files[i]);
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

static void wipe(struct web_watch *watch)
{
    if (watch->packed)
        explicit_bzero(watch->packed, watch->packed_bytes);
    free(watch->packed);
    watch->packed = NULL;
}

static bool wants_client_certs(const struct web_config *config)
{
    return config->has_tls && (config->tls.client_auth == TLS_REQUIRE_ANY_CLIENT_CERT ||
                               config->tls.client_auth == TLS_REQUIRE_AND_VERIFY_CLIENT_CERT);
}

/* A file that was emptied, or is read while it is being written, must not let everybody in: who
 * wants that has to say so. */
static int check_change(const struct web_watch *watch, const struct web_config *config,
                        struct error *err)
{
    if (!watch->packed)
        return 0;
    if (config->has_tls != watch->has_tls)
        return error_set(err, -EINVAL,
                         "%.300s: TLS cannot be switched %s while the exporter runs; restart it",
                         watch->path, config->has_tls ? "on" : "off");
    if (watch->has_users && config->user_count == 0 && !config->has_no_users)
        return error_set(err, -EINVAL,
                         "%.300s: basic_auth_users is missing, and passwords are in use; to serve "
                         "without, write 'basic_auth_users: {}'",
                         watch->path);
    if (watch->wants_client_certs && !wants_client_certs(config) && !config->names_client_auth)
        return error_set(err, -EINVAL,
                         "%.300s: client_auth_type is missing, and client certificates are in use; "
                         "to serve without, write 'client_auth_type: NoClientCert'",
                         watch->path);
    if (watch->has_client_sans && wants_client_certs(config) && config->tls.client_san_count == 0 &&
        !config->has_no_client_sans)
        return error_set(
            err, -EINVAL,
            "%.300s: client_allowed_sans is missing, and in use; to serve every client "
            "with a certificate, write 'client_allowed_sans: []'",
            watch->path);
    return 0;
}

static int load_config(struct web_watch *watch, bool *ret_others, struct error *err)
{
    struct web_config config;
    char *bytes;
    size_t len;
    int r = web_config_load(watch->path, &config, err);

    *ret_others = watch_files_of(watch, &config);
    if (r == 0)
        r = check_change(watch, &config, err);
    if (r == 0) {
        r = web_config_pack(&config, &bytes, &len);
        if (r < 0)
            error_format(err, "cannot pack the web config: %s", strerror(-r));
    }
    if (r == 0) {
        wipe(watch);
        watch->packed = bytes;
        watch->packed_bytes = len;
        watch->has_tls = config.has_tls;
        watch->has_users = config.user_count > 0;
        watch->wants_client_certs = wants_client_certs(&config);
        watch->has_client_sans = config.tls.client_san_count > 0;
    }
    web_config_done(&config);
    return r;
}

/* A stamp is taken before its file is read, so a config that names other files is read twice. */
static int load_all(struct web_watch *watch, struct error *err)
{
    bool others;
    int r = load_config(watch, &others, err);

    if (!others)
        return r;
    update_stamps(watch);
    return load_config(watch, &others, err);
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
    wipe(watch);
}

int web_watch_poll(struct web_watch *watch, struct error *err)
{
    int r;

    if (!update_stamps(watch))
        return 0;
    r = load_all(watch, err);
    return r < 0 ? r : 1;
}
