#include "config/web_config.h"

#include <errno.h>
#include <string.h>

#include "config/web_config_parts.h"
#include "core/macros.h"
#include "net/auth.h"

enum {
    FILE_CAP_BYTES = 1 << 20,
    STRINGS_CAP_BYTES = 8 << 20, /* more than the file can hold with the three that it names */
};

char *web_config_copy(struct web_config_draft *draft, const char *text)
{
    char *kept = arena_copy(&draft->config.strings, text, strlen(text));

    if (!kept)
        error_format(draft->err, "out of memory");
    return kept;
}

static int check_user(const struct yaml_fields *yaml, const char *name,
                      const struct yaml_reader_node *value)
{
    const struct web_config_draft *draft = yaml->target;
    const struct web_config *config = &draft->config;
    unsigned cost = 0;
    int r = yaml_fields_check_text(yaml, name, value);

    if (r < 0)
        return r;
    for (size_t i = 0; i < config->user_count; i++)
        if (strcmp(config->users[i].name, name) == 0)
            return yaml_fields_fail(yaml, value, "user '%.80s' is given twice; keep one", name);
    if (strchr(name, ':'))
        return yaml_fields_fail(yaml, value, "user '%.80s': a name cannot hold ':' (RFC 7617)",
                                name);
    /* The value is not shown: it may be the password itself. */
    if (!password_is_hash(span_of(value->text), &cost))
        return yaml_fields_fail(
            yaml, value, "user '%.80s': not a bcrypt hash; make one with: htpasswd -nBC 10 ''",
            name);
    if (cost < PASSWORD_COST_MIN || cost > PASSWORD_COST_MAX)
        return yaml_fields_fail(yaml, value,
                                "user '%.80s': cost %u of the hash is out of range; use %d to %d",
                                name, cost, PASSWORD_COST_MIN, PASSWORD_COST_MAX);
    if (config->user_count == WEB_CONFIG_USERS_MAX)
        return yaml_fields_fail(yaml, value,
                                "more than %d users; use client certificates for so many",
                                WEB_CONFIG_USERS_MAX);
    return 0;
}

/* The file chooses the keys. */
static int take_user(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *key)
{
    struct web_config_draft *draft = yaml->target;
    struct web_config *config = &draft->config;
    struct yaml_reader_node value;
    const char *name, *hash;
    int r = yaml_fields_check_text(yaml, "the key", key);

    if (r < 0)
        return r;
    if (strlen(key->text) > AUTH_USER_MAX_BYTES)
        return yaml_fields_fail(yaml, key, "%s: a name of over %d bytes", field->name,
                                AUTH_USER_MAX_BYTES);
    name = web_config_copy(draft, key->text);
    if (!name)
        return -ENOMEM;
    r = yaml_reader_next(yaml->reader, name, &value);
    if (r == 0)
        r = check_user(yaml, name, &value);
    if (r < 0)
        return r;
    hash = web_config_copy(draft, value.text);
    if (!hash)
        return -ENOMEM;
    config->users[config->user_count++] = (struct auth_user){name, hash};
    return 0;
}

static int set_users(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *value)
{
    int r = yaml_fields_begin(yaml, field, value);

    return r > 0 ? yaml_fields_each(yaml, field, "the key", take_user) : r;
}

static int set_header(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    const char *const *allowed = field->details;
    struct web_config_draft *draft = yaml->target;
    struct web_config *config = &draft->config;
    bool ok = field->detail_count == 0;
    char *text;

    for (size_t i = 0; i < field->detail_count; i++)
        ok = ok || strcmp(allowed[i], value->text) == 0;
    if (!ok)
        return yaml_fields_wrong(yaml, field, value, "is not known; use %s%s%s", allowed[0],
                                 field->detail_count > 1 ? " or " : "",
                                 field->detail_count > 1 ? allowed[1] : "");
    for (const char *c = value->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return yaml_fields_fail(
                yaml, value, "%s holds a control character; write it on one line", field->name);
    if (yaml_reader_is_null(value) || value->text[0] == '\0')
        return 0;
    text = web_config_copy(draft, value->text);
    if (!text)
        return -ENOMEM;
    config->headers[config->header_count++] = (struct http_server_header){field->name, text};
    return 0;
}

static const char *const type_options[] = {"nosniff"};
static const char *const frame_options[] = {"deny", "sameorigin"};

static const struct yaml_field header_fields[WEB_CONFIG_HEADERS_MAX] = {
    {.name = "Strict-Transport-Security", .set = set_header},
    {.name = "X-Content-Type-Options", .set = set_header, DETAILS(type_options)},
    {.name = "X-Frame-Options", .set = set_header, DETAILS(frame_options)},
    {.name = "X-XSS-Protection", .set = set_header},
    {.name = "Content-Security-Policy", .set = set_header},
};

static const struct yaml_field http_fields[] = {
    {.name = "http2",
     .set = yaml_fields_set_switch,
     .offset = offsetof(struct web_config_draft, wants_http2)},
    {.name = "headers", .set = yaml_fields_set_section, .takes_any = true, DETAILS(header_fields)},
};

static const struct yaml_field root_fields[] = {
    {.name = "tls_server_config", .set = web_config_set_tls, .takes_any = true},
    {.name = "http_server_config",
     .set = yaml_fields_set_section,
     .takes_any = true,
     DETAILS(http_fields)},
    {.name = "basic_auth_users", .set = set_users, .takes_any = true},
    {.name = "rate_limit",
     .set = yaml_fields_refuse,
     .takes_any = true,
     .details = "scrapes are served from memory and connections are limited; leave it out"},
};

static int read_root(const struct yaml_fields *yaml, const struct yaml_reader_node *root)
{
    if (root->kind == YAML_READER_END)
        return 0;
    if (root->kind != YAML_READER_MAPPING)
        return yaml_fields_fail(yaml, root,
                                "the file is not a mapping; docs/web-config.md shows some");
    return yaml_fields_read(yaml, root, root_fields, ARRAY_SIZE(root_fields));
}

static struct span directory_of(const char *file_name)
{
    const char *slash = strrchr(file_name, '/');

    return (struct span){file_name, slash ? (size_t)(slash - file_name) + 1 : 0};
}

int web_config_parse(struct span text, const char *file_name, struct web_config *ret_config,
                     struct error *err)
{
    struct web_config_draft draft = {.directory = directory_of(file_name), .err = err};
    struct yaml_fields yaml = {
        .manual = "docs/web-config.md", .target = &draft, .check = web_config_check_tls};
    int r;

    arena_init(&draft.config.strings, STRINGS_CAP_BYTES);
    r = yaml_fields_parse(&yaml, text, file_name, read_root, err);
    *ret_config = draft.config;
    return r;
}

void web_config_done(struct web_config *config)
{
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
    r = yaml_fields_load(what, path, FILE_CAP_BYTES, "the path", &data, &text, err);
    if (r < 0)
        return r;
    if (text.len == 0)
        return error_set(err, -EINVAL, "%s %.300s: is empty", what, path);
    pem->name = path;
    pem->text = (struct span){arena_copy(&config->strings, data, text.len), text.len};
    explicit_bzero(data, text.len);
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
    struct span text = {NULL, 0};
    int r;

    *config = (struct web_config){0};
    r = yaml_fields_load("--web.config.file", path, FILE_CAP_BYTES, "the path", &data, &text, err);
    if (r < 0)
        return r;
    r = web_config_parse(text, path, config, err);
    if (r == 0)
        r = read_pem(config, config->cert_path, "cert_file", &config->tls.cert, err);
    if (r == 0)
        r = read_pem(config, config->key_path, "key_file", &config->tls.key, err);
    if (r == 0)
        r = read_pem(config, config->client_ca_path, "client_ca_file", &config->tls.client_ca, err);
    if (r == 0)
        r = check_tls(config, err);
    explicit_bzero(data, text.len); /* it may have held a key */
    return r;
}
