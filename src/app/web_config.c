#include "app/web_config.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "app/suggest.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/yaml_reader.h"
#include "net/password.h"

/* More than the file can hold with the three that it names. */
enum { STRINGS_CAP_BYTES = 8 << 20, FIELDS_MAX = 32 };

struct reader {
    struct yaml_reader *yaml;
    struct web_config *config;
    struct span directory; /* with its slash; empty: the current one */
    struct error *err;
    bool tls_is_mentioned;
    struct yaml_reader_node tls_place; /* for what is wrong with the section as a whole */
};

struct field;
typedef int setter(struct reader *reader, const struct field *field,
                   const struct yaml_reader_node *value);

struct word {
    const char *text;
    unsigned value;
};

/* A key of a mapping, and what takes its value. */
struct field {
    const char *name;
    setter *set;
    size_t offset;       /* in struct web_config, of what the setter writes */
    const void *details; /* words, fields, or why it is refused */
    size_t detail_count;
};

#define fail(reader, ...) yaml_reader_fail((reader)->yaml, __VA_ARGS__)

static void *target(const struct reader *reader, const struct field *field)
{
    return (char *)reader->config + field->offset;
}

static char *copy(struct reader *reader, const char *text)
{
    char *kept = arena_copy(&reader->config->strings, text, strlen(text));

    if (!kept)
        error_format(reader->err, "out of memory");
    return kept;
}

/* As YAML says "nothing". */
static bool is_null(const struct yaml_reader_node *node)
{
    static const char *const names[] = {"", "~", "null", "Null", "NULL"};

    for (size_t i = 0; node->kind == YAML_READER_TEXT && node->is_plain && i < ARRAY_SIZE(names);
         i++)
        if (strcmp(node->text, names[i]) == 0)
            return true;
    return false;
}

static int check_text(const struct reader *reader, const char *name,
                      const struct yaml_reader_node *node)
{
    return node->kind == YAML_READER_TEXT
               ? 0
               : fail(reader, node, "%.80s is a %s; give one text", name,
                      node->kind == YAML_READER_LIST ? "list" : "mapping");
}

static int set_path(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    char path[PATH_MAX];
    int len, r = check_text(reader, field->name, value);

    if (r < 0 || is_null(value) || value->text[0] == '\0')
        return r;
    len = snprintf(path, sizeof(path), "%.*s%s",
                   value->text[0] == '/' ? 0 : (int)reader->directory.len, reader->directory.data,
                   value->text);
    if (len < 0 || (size_t)len >= sizeof(path))
        return fail(reader, value, "%s is too long for a path", field->name);
    *(const char **)target(reader, field) = copy(reader, path);
    return *(const char **)target(reader, field) ? 0 : -ENOMEM;
}

static int set_pem(struct reader *reader, const struct field *field,
                   const struct yaml_reader_node *value)
{
    struct tls_pem *pem = target(reader, field);
    int r = check_text(reader, field->name, value);

    if (r < 0 || is_null(value) || value->text[0] == '\0')
        return r;
    pem->text.data = copy(reader, value->text);
    if (!pem->text.data)
        return -ENOMEM;
    pem->text.len = strlen(value->text);
    pem->name = field->name;
    return 0;
}

static int find_word(const struct reader *reader, const struct field *field,
                     const struct yaml_reader_node *value, unsigned *ret_value)
{
    const struct word *words = field->details;
    struct suggestion near = {0};
    int r = check_text(reader, field->name, value);

    if (r < 0)
        return r;
    for (size_t i = 0; i < field->detail_count; i++) {
        if (strcmp(value->text, words[i].text) == 0) {
            *ret_value = words[i].value;
            return 0;
        }
        suggest_consider(&near, span_of(value->text), words[i].text);
    }
    return fail(reader, value, "%s: '%.80s' is not known; use %s", field->name, value->text,
                near.name ? near.name : words[0].text);
}

static int set_word(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    return is_null(value) ? 0 : find_word(reader, field, value, target(reader, field));
}

static int set_version(struct reader *reader, const struct field *field,
                       const struct yaml_reader_node *value)
{
    if (value->kind == YAML_READER_TEXT &&
        (strcmp(value->text, "TLS10") == 0 || strcmp(value->text, "TLS11") == 0))
        return fail(reader, value,
                    "%s: %s is not spoken here, as it is not safe (RFC 8996); use TLS12 or TLS13",
                    field->name, value->text);
    return set_word(reader, field, value);
}

static int set_switch(struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r < 0 || is_null(value))
        return r;
    if (parse_bool(span_of(value->text), target(reader, field)) < 0)
        return fail(reader, value, "%s: '%.80s' is neither true nor false", field->name,
                    value->text);
    return 0;
}

/* HTTP/2 is an offer to clients, which we do not make: they all speak HTTP/1.1. */
static int ignore_switch(struct reader *reader, const struct field *field,
                         const struct yaml_reader_node *value)
{
    bool ignored;
    int r = check_text(reader, field->name, value);

    if (r < 0 || is_null(value) || parse_bool(span_of(value->text), &ignored) == 0)
        return r;
    return fail(reader, value, "%s: '%.80s' is neither true nor false", field->name, value->text);
}

static int refuse(struct reader *reader, const struct field *field,
                  const struct yaml_reader_node *value)
{
    return fail(reader, value, "%s is not supported: %s", field->name,
                (const char *)field->details);
}

typedef int taker(struct reader *reader, const struct field *field,
                  const struct yaml_reader_node *item);

static int read_list(struct reader *reader, const struct field *field,
                     const struct yaml_reader_node *start, taker *take)
{
    int r = 0;

    if (is_null(start))
        return 0;
    if (start->kind != YAML_READER_LIST)
        return fail(reader, start, "%s is not a list; write '- ' before each item", field->name);
    while (r >= 0) {
        struct yaml_reader_node item;

        r = yaml_reader_next(reader->yaml, field->name, &item);
        if (r < 0 || item.kind == YAML_READER_END)
            break;
        r = take(reader, field, &item);
    }
    return r;
}

static int take_san(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *item)
{
    struct tls_settings *tls = &reader->config->tls;
    int r = check_text(reader, field->name, item);

    if (r < 0)
        return r;
    if (tls->client_san_count == TLS_SANS_MAX)
        return fail(reader, item, "%s: more than %d; use an authority of their own instead",
                    field->name, TLS_SANS_MAX);
    tls->client_sans[tls->client_san_count] = copy(reader, item->text);
    return tls->client_sans[tls->client_san_count++] ? 0 : -ENOMEM;
}

static int set_sans(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    return read_list(reader, field, value, take_san);
}

static int take_curve(struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *item)
{
    struct tls_settings *tls = &reader->config->tls;
    unsigned curve;
    int r = find_word(reader, field, item, &curve);

    if (r < 0)
        return r;
    for (size_t i = 0; i < tls->curve_count; i++)
        if (tls->curves[i] == curve)
            return fail(reader, item, "%s: '%s' is given twice", field->name, item->text);
    tls->curves[tls->curve_count++] = (enum tls_curve)curve;
    return 0;
}

static int set_curves(struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *value)
{
    return read_list(reader, field, value, take_curve);
}

static int unknown_key(const struct reader *reader, const struct yaml_reader_node *key,
                       const struct field *fields, size_t count)
{
    struct suggestion near = {0};

    for (size_t i = 0; i < count; i++)
        suggest_consider(&near, span_of(key->text), fields[i].name);
    return fail(reader, key, "unknown key '%.80s'%s%s%s; docs/web-config.md lists them", key->text,
                near.name ? " (did you mean '" : "", near.name ? near.name : "",
                near.name ? "'?)" : "");
}

static int find_field(const struct reader *reader, const struct yaml_reader_node *key,
                      const struct field *fields, size_t count, size_t *ret_index)
{
    int r = check_text(reader, "the key", key);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (strcmp(key->text, fields[i].name) == 0) {
            *ret_index = i;
            return 0;
        }
    return unknown_key(reader, key, fields, count);
}

/* Of a mapping that has begun. Gives how many there were. */
static int read_fields(struct reader *reader, const struct field *fields, size_t count)
{
    uint32_t seen = 0;

    for (;;) {
        struct yaml_reader_node node;
        size_t index;
        int r = yaml_reader_next(reader->yaml, "the key", &node);

        if (r < 0)
            return r;
        if (node.kind == YAML_READER_END)
            return __builtin_popcount(seen);
        r = find_field(reader, &node, fields, count, &index);
        if (r < 0)
            return r;
        if (seen & 1U << index)
            return fail(reader, &node, "%s is given twice; keep one", fields[index].name);
        seen |= 1U << index;
        r = yaml_reader_next(reader->yaml, fields[index].name, &node);
        if (r == 0)
            r = fields[index].set(reader, &fields[index], &node);
        if (r < 0)
            return r;
    }
}

static int expect_mapping(const struct reader *reader, const struct field *field,
                          const struct yaml_reader_node *value)
{
    return value->kind == YAML_READER_MAPPING
               ? 0
               : fail(reader, value, "%s is not a mapping; write 'key: value' below it, indented",
                      field->name);
}

static int set_section(struct reader *reader, const struct field *field,
                       const struct yaml_reader_node *value)
{
    int r = is_null(value) ? 0 : expect_mapping(reader, field, value);

    if (r < 0 || is_null(value))
        return r;
    r = read_fields(reader, field->details, field->detail_count);
    return MIN(r, 0);
}

/* A section without a single key asks for nothing, as in the toolkit. */
static int set_tls(struct reader *reader, const struct field *field,
                   const struct yaml_reader_node *value)
{
    struct web_config *config = reader->config;
    int r = is_null(value) ? 0 : expect_mapping(reader, field, value);

    if (r < 0 || is_null(value))
        return r;
    config->tls = (struct tls_settings){
        .min_version = TLS_1_2, .max_version = TLS_1_3, .prefer_server_ciphers = true};
    reader->tls_place = *value;
    r = read_fields(reader, field->details, field->detail_count);
    reader->tls_is_mentioned = r > 0;
    return MIN(r, 0);
}

/* A key of a mapping in which the file chooses the keys. */
static int read_name(struct reader *reader, const struct field *field, bool *ret_end,
                     char **ret_name)
{
    struct yaml_reader_node node;
    int r = yaml_reader_next(reader->yaml, "the key", &node);

    *ret_end = false;
    if (r < 0)
        return r;
    *ret_end = node.kind == YAML_READER_END;
    if (*ret_end)
        return 0;
    r = check_text(reader, "the key", &node);
    if (r < 0)
        return r;
    if (strlen(node.text) > AUTH_USER_MAX_BYTES)
        return fail(reader, &node, "%s: a name of over %d bytes", field->name, AUTH_USER_MAX_BYTES);
    *ret_name = copy(reader, node.text);
    return *ret_name ? 0 : -ENOMEM;
}

static int check_user(const struct reader *reader, const char *name,
                      const struct yaml_reader_node *value)
{
    const struct web_config *config = reader->config;
    unsigned cost = 0;
    int r = check_text(reader, name, value);

    if (r < 0)
        return r;
    for (size_t i = 0; i < config->user_count; i++)
        if (strcmp(config->users[i].name, name) == 0)
            return fail(reader, value, "user '%.80s' is given twice; keep one", name);
    if (strchr(name, ':'))
        return fail(reader, value, "user '%.80s': a name cannot hold ':' (RFC 7617)", name);
    /* The value is not shown: it may be the password itself. */
    if (!password_is_hash(span_of(value->text), &cost))
        return fail(reader, value,
                    "user '%.80s': not a bcrypt hash; make one with: htpasswd -nBC 10 ''", name);
    if (cost < PASSWORD_COST_MIN || cost > PASSWORD_COST_MAX)
        return fail(reader, value,
                    "user '%.80s': cost %u of the hash is out of range; use %d to %d", name, cost,
                    PASSWORD_COST_MIN, PASSWORD_COST_MAX);
    if (config->user_count == WEB_CONFIG_USERS_MAX)
        return fail(reader, value, "more than %d users; use client certificates for so many",
                    WEB_CONFIG_USERS_MAX);
    return 0;
}

static int set_users(struct reader *reader, const struct field *field,
                     const struct yaml_reader_node *value)
{
    struct web_config *config = reader->config;
    int r = is_null(value) ? 0 : expect_mapping(reader, field, value);

    if (r < 0 || is_null(value))
        return r;
    for (;;) {
        struct yaml_reader_node node;
        char *name = NULL, *hash;
        bool end;

        r = read_name(reader, field, &end, &name);
        if (r < 0 || end)
            return r;
        r = yaml_reader_next(reader->yaml, name, &node);
        if (r == 0)
            r = check_user(reader, name, &node);
        if (r < 0)
            return r;
        hash = copy(reader, node.text);
        if (!hash)
            return -ENOMEM;
        config->users[config->user_count++] = (struct auth_user){name, hash};
    }
}

static int set_header(struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *value)
{
    const char *const *allowed = field->details;
    struct web_config *config = reader->config;
    bool ok = field->detail_count == 0;
    char *text;
    int r = check_text(reader, field->name, value);

    if (r < 0)
        return r;
    for (size_t i = 0; i < field->detail_count; i++)
        ok = ok || strcmp(allowed[i], value->text) == 0;
    if (!ok)
        return fail(reader, value, "%s: '%.80s' is not known; use %s%s%s", field->name, value->text,
                    allowed[0], field->detail_count > 1 ? " or " : "",
                    field->detail_count > 1 ? allowed[1] : "");
    for (const char *c = value->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return fail(reader, value, "%s holds a control character; write it on one line",
                        field->name);
    if (is_null(value) || value->text[0] == '\0')
        return 0;
    text = copy(reader, value->text);
    if (!text)
        return -ENOMEM;
    config->headers[config->header_count++] = (struct http_server_header){field->name, text};
    return 0;
}

#define AT(member)    .offset = offsetof(struct web_config, member)
#define DETAILS(list) .details = (list), .detail_count = ARRAY_SIZE(list)

static const struct word client_auth_types[] = {
    {"RequireAndVerifyClientCert", TLS_REQUIRE_AND_VERIFY_CLIENT_CERT},
    {"VerifyClientCertIfGiven", TLS_VERIFY_CLIENT_CERT_IF_GIVEN},
    {"RequireAnyClientCert", TLS_REQUIRE_ANY_CLIENT_CERT},
    {"RequireClientCert", TLS_REQUIRE_ANY_CLIENT_CERT}, /* its name of old */
    {"RequestClientCert", TLS_REQUEST_CLIENT_CERT},
    {"NoClientCert", TLS_NO_CLIENT_CERT},
    {"", TLS_NO_CLIENT_CERT},
};
static const struct word versions[] = {{"TLS12", TLS_1_2}, {"TLS13", TLS_1_3}};
static const struct word curves[] = {{"X25519", TLS_X25519},
                                     {"CurveP256", TLS_P256},
                                     {"CurveP384", TLS_P384},
                                     {"CurveP521", TLS_P521}};

static const struct field tls_fields[] = {
    {.name = "cert_file", .set = set_path, AT(cert_path)},
    {.name = "key_file", .set = set_path, AT(key_path)},
    {.name = "cert", .set = set_pem, AT(tls.cert)},
    {.name = "key", .set = set_pem, AT(tls.key)},
    {.name = "client_auth_type", .set = set_word, AT(tls.client_auth), DETAILS(client_auth_types)},
    {.name = "client_ca_file", .set = set_path, AT(client_ca_path)},
    {.name = "client_ca", .set = set_pem, AT(tls.client_ca)},
    {.name = "client_allowed_sans", .set = set_sans},
    {.name = "min_version", .set = set_version, AT(tls.min_version), DETAILS(versions)},
    {.name = "max_version", .set = set_version, AT(tls.max_version), DETAILS(versions)},
    {.name = "curve_preferences", .set = set_curves, DETAILS(curves)},
    {.name = "prefer_server_cipher_suites", .set = set_switch, AT(tls.prefer_server_ciphers)},
    {.name = "cipher_suites",
     .set = refuse,
     .details = "all that are offered have forward secrecy and authenticated encryption; leave it "
                "out, or use min_version: TLS13"},
};

static const char *const type_options[] = {"nosniff"};
static const char *const frame_options[] = {"deny", "sameorigin"};

static const struct field header_fields[WEB_CONFIG_HEADERS_MAX] = {
    {.name = "Strict-Transport-Security", .set = set_header},
    {.name = "X-Content-Type-Options", .set = set_header, DETAILS(type_options)},
    {.name = "X-Frame-Options", .set = set_header, DETAILS(frame_options)},
    {.name = "X-XSS-Protection", .set = set_header},
    {.name = "Content-Security-Policy", .set = set_header},
};

static const struct field http_fields[] = {
    {.name = "http2", .set = ignore_switch},
    {.name = "headers", .set = set_section, DETAILS(header_fields)},
};

static const struct field root_fields[] = {
    {.name = "tls_server_config", .set = set_tls, DETAILS(tls_fields)},
    {.name = "http_server_config", .set = set_section, DETAILS(http_fields)},
    {.name = "basic_auth_users", .set = set_users},
    {.name = "rate_limit",
     .set = refuse,
     .details = "scrapes are served from memory and connections are limited; leave it out"},
};

_Static_assert(ARRAY_SIZE(tls_fields) <= FIELDS_MAX, "keys that were seen are bits");
_Static_assert(sizeof(enum tls_client_auth) == sizeof(unsigned), "words are stored as unsigned");
_Static_assert(sizeof(enum tls_version) == sizeof(unsigned), "words are stored as unsigned");

/* A PEM comes from a file or stands in the config; `is_needed`: from one of them. */
static int check_pem(const struct reader *reader, const struct tls_pem *pem, const char *path,
                     const char *name, bool is_needed)
{
    if (path && pem->text.len > 0)
        return fail(reader, &reader->tls_place, "both %s and %s_file are given; keep one", name,
                    name);
    if (is_needed && !path && pem->text.len == 0)
        return fail(reader, &reader->tls_place, "tls_server_config has no %s_file; give it", name);
    return 0;
}

static int check_clients(const struct reader *reader)
{
    const struct web_config *config = reader->config;
    enum tls_client_auth auth = config->tls.client_auth;
    bool has_ca = config->client_ca_path || config->tls.client_ca.text.len > 0;
    bool verifies =
        auth == TLS_VERIFY_CLIENT_CERT_IF_GIVEN || auth == TLS_REQUIRE_AND_VERIFY_CLIENT_CERT;

    if (has_ca && auth == TLS_NO_CLIENT_CERT)
        return fail(reader, &reader->tls_place,
                    "client_ca_file without client_auth_type: no certificate would be asked for; "
                    "add client_auth_type: RequireAndVerifyClientCert");
    if (verifies && !has_ca)
        return fail(reader, &reader->tls_place,
                    "client_auth_type wants to verify certificates, by which authority? Add "
                    "client_ca_file");
    if (config->tls.client_san_count > 0 && auth != TLS_REQUIRE_ANY_CLIENT_CERT &&
        auth != TLS_REQUIRE_AND_VERIFY_CLIENT_CERT)
        return fail(reader, &reader->tls_place,
                    "client_allowed_sans needs a certificate from every client; add "
                    "client_auth_type: RequireAndVerifyClientCert");
    return 0;
}

static int check_tls(struct reader *reader)
{
    struct web_config *config = reader->config;
    int r;

    if (!reader->tls_is_mentioned)
        return 0;
    r = check_pem(reader, &config->tls.cert, config->cert_path, "cert", true);
    if (r == 0)
        r = check_pem(reader, &config->tls.key, config->key_path, "key", true);
    if (r == 0)
        r = check_pem(reader, &config->tls.client_ca, config->client_ca_path, "client_ca", false);
    if (r == 0)
        r = check_clients(reader);
    if (r == 0 && config->tls.min_version > config->tls.max_version)
        r = fail(reader, &reader->tls_place, "min_version is above max_version");
    config->has_tls = r == 0;
    return r;
}

static int read_document(struct reader *reader)
{
    struct yaml_reader_node root;
    int r = yaml_reader_root(reader->yaml, &root);

    if (r < 0 || root.kind == YAML_READER_END)
        return r;
    if (root.kind != YAML_READER_MAPPING)
        return fail(reader, &root, "the file is not a mapping; docs/web-config.md shows some");
    r = read_fields(reader, root_fields, ARRAY_SIZE(root_fields));
    return MIN(r, 0);
}

static struct span directory_of(const char *file_name)
{
    const char *slash = strrchr(file_name, '/');

    return (struct span){file_name, slash ? (size_t)(slash - file_name) + 1 : 0};
}

int web_config_parse(struct span text, const char *file_name, struct web_config *ret_config,
                     struct error *err)
{
    struct reader reader = {.config = ret_config, .directory = directory_of(file_name), .err = err};
    int r;

    *ret_config = (struct web_config){0};
    arena_init(&ret_config->strings, STRINGS_CAP_BYTES);
    r = yaml_reader_open(text, file_name, err, &reader.yaml);
    if (r == 0)
        r = read_document(&reader);
    if (r == 0)
        r = yaml_reader_finish(reader.yaml);
    if (r == 0)
        r = check_tls(&reader);
    yaml_reader_close(reader.yaml);
    return r;
}

void web_config_done(struct web_config *config)
{
    arena_done(&config->strings);
    *config = (struct web_config){0};
}
