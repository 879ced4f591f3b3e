#include "config/web_config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"
#include "config/yaml_fields.h"
#include "core/macros.h"
#include "net/auth.h"

enum { STRINGS_CAP_BYTES = 8 << 20 }; /* more than the file can hold with those that it names */

/* A config that is being read. */
struct draft {
    struct web_config config;
    struct span directory; /* with its slash; empty: the current one */
    struct error *err;
    bool wants_http2; /* ignored: it is an offer to clients, and they all speak HTTP/1.1 */
    bool tls_is_mentioned;
    struct yaml_reader_node tls_place; /* for errors about the section as a whole */
};

#define DETAILS(list) .details = (list), .detail_count = ARRAY_SIZE(list)
#define AT(member)    .offset = offsetof(struct draft, config.member)

/* Lives as long as the config. NULL: out of memory, with an error. */
static char *draft_copy(struct draft *draft, const char *text)
{
    char *kept = arena_copy(&draft->config.strings, text, strlen(text));

    if (!kept)
        error_format(draft->err, "out of memory");
    return kept;
}

static bool is_unset(const struct yaml_reader_node *value)
{
    return yaml_reader_is_null(value) || value->text[0] == '\0';
}

struct word {
    const char *text;
    unsigned value;
};

static int set_path(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    struct draft *draft = yaml->target;
    const char **kept = yaml_fields_member(yaml, field);
    char path[PATH_MAX];
    int len;

    if (is_unset(value))
        return 0;
    len = snprintf(path, sizeof(path), "%.*s%s",
                   value->text[0] == '/' ? 0 : (int)draft->directory.len, draft->directory.data,
                   value->text);
    if (len < 0 || (size_t)len >= sizeof(path))
        return yaml_fields_fail(yaml, value, "%s is too long for a path", field->name);
    *kept = draft_copy(draft, path);
    return *kept ? 0 : -ENOMEM;
}

static int set_pem(const struct yaml_fields *yaml, const struct yaml_field *field,
                   const struct yaml_reader_node *value)
{
    struct tls_pem *pem = yaml_fields_member(yaml, field);

    if (is_unset(value))
        return 0;
    pem->text.data = draft_copy(yaml->target, value->text);
    if (!pem->text.data)
        return -ENOMEM;
    pem->text.len = strlen(value->text);
    pem->name = field->name;
    return 0;
}

static int find_word(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *value, unsigned *ret_value)
{
    const struct word *words = field->details;
    struct suggestion near = {0};

    for (size_t i = 0; i < field->detail_count; i++) {
        if (strcmp(value->text, words[i].text) == 0) {
            *ret_value = words[i].value;
            return 0;
        }
        suggest_consider(&near, span_of(value->text), words[i].text);
    }
    return yaml_fields_wrong(yaml, field, value, "is not known; use %s",
                             near.name ? near.name : words[0].text);
}

static int set_word(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    return yaml_reader_is_null(value)
               ? 0
               : find_word(yaml, field, value, yaml_fields_member(yaml, field));
}

static int set_client_auth(const struct yaml_fields *yaml, const struct yaml_field *field,
                           const struct yaml_reader_node *value)
{
    struct draft *draft = yaml->target;

    draft->config.names_client_auth = !yaml_reader_is_null(value);
    return set_word(yaml, field, value);
}

static int set_version(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    if (strcmp(value->text, "TLS10") == 0 || strcmp(value->text, "TLS11") == 0)
        return yaml_fields_wrong(yaml, field, value, "is insecure (RFC 8996); use TLS12 or TLS13");
    return set_word(yaml, field, value);
}

static int take_san(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *item)
{
    struct draft *draft = yaml->target;
    struct tls_settings *tls = &draft->config.tls;
    int r = yaml_fields_check_text(yaml, field->name, item);

    if (r < 0)
        return r;
    if (tls->client_san_count == TLS_SANS_MAX)
        return yaml_fields_fail(yaml, item, "%s: more than %d; use a CA of their own instead",
                                field->name, TLS_SANS_MAX);
    tls->client_sans[tls->client_san_count] = draft_copy(draft, item->text);
    return tls->client_sans[tls->client_san_count++] ? 0 : -ENOMEM;
}

static int take_curve(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *item)
{
    struct draft *draft = yaml->target;
    struct tls_settings *tls = &draft->config.tls;
    unsigned curve = 0;
    int r = yaml_fields_check_text(yaml, field->name, item);

    if (r == 0)
        r = find_word(yaml, field, item, &curve);
    if (r < 0)
        return r;
    for (size_t i = 0; i < tls->curve_count; i++)
        if (tls->curves[i] == curve)
            return yaml_fields_wrong(yaml, field, item, "is given twice");
    tls->curves[tls->curve_count++] = (enum tls_curve)curve;
    return 0;
}

/* A list of curves, which are words, or of names. */
static int set_list(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    if (yaml_reader_is_null(value))
        return 0;
    if (value->kind != YAML_READER_LIST)
        return yaml_fields_fail(yaml, value, "%s is not a list; write '- ' before each item",
                                field->name);
    return yaml_fields_each(yaml, field, field->name, field->details ? take_curve : take_san);
}

static const struct word client_auth_types[] = {
    {"RequireAndVerifyClientCert", TLS_REQUIRE_AND_VERIFY_CLIENT_CERT},
    {"VerifyClientCertIfGiven", TLS_VERIFY_CLIENT_CERT_IF_GIVEN},
    {"RequireAnyClientCert", TLS_REQUIRE_ANY_CLIENT_CERT},
    {"RequireClientCert", TLS_REQUIRE_ANY_CLIENT_CERT}, /* its old name */
    {"RequestClientCert", TLS_REQUEST_CLIENT_CERT},
    {"NoClientCert", TLS_NO_CLIENT_CERT},
    {"", TLS_NO_CLIENT_CERT},
};
static const struct word versions[] = {{"TLS12", TLS_1_2}, {"TLS13", TLS_1_3}};
static const struct word curves[] = {{"X25519", TLS_X25519},
                                     {"CurveP256", TLS_P256},
                                     {"CurveP384", TLS_P384},
                                     {"CurveP521", TLS_P521}};

static int set_client_sans(const struct yaml_fields *yaml, const struct yaml_field *field,
                           const struct yaml_reader_node *value)
{
    struct draft *draft = yaml->target;
    int r = set_list(yaml, field, value);

    draft->config.has_no_client_sans =
        r == 0 && !yaml_reader_is_null(value) && draft->config.tls.client_san_count == 0;
    return r;
}

static const struct yaml_field tls_fields[] = {
    {.name = "cert_file", .set = set_path, AT(cert_path)},
    {.name = "key_file", .set = set_path, AT(key_path)},
    {.name = "cert", .set = set_pem, AT(tls.cert)},
    {.name = "key", .set = set_pem, AT(tls.key)},
    {.name = "client_auth_type",
     .set = set_client_auth,
     AT(tls.client_auth),
     DETAILS(client_auth_types)},
    {.name = "client_ca_file", .set = set_path, AT(client_ca_path)},
    {.name = "client_ca", .set = set_pem, AT(tls.client_ca)},
    {.name = "client_allowed_sans", .set = set_client_sans, .takes_any = true},
    {.name = "min_version", .set = set_version, AT(tls.min_version), DETAILS(versions)},
    {.name = "max_version", .set = set_version, AT(tls.max_version), DETAILS(versions)},
    {.name = "curve_preferences", .set = set_list, .takes_any = true, DETAILS(curves)},
    {.name = "prefer_server_cipher_suites",
     .set = yaml_fields_set_switch,
     AT(tls.prefer_server_ciphers)},
    {.name = "cipher_suites",
     .set = yaml_fields_refuse,
     .takes_any = true,
     .details = "all that are offered have forward secrecy and authenticated encryption; leave it "
                "out, or use min_version: TLS13"},
};

_Static_assert(ARRAY_SIZE(tls_fields) <= YAML_FIELDS_MAX, "keys that were seen are bits");
_Static_assert(sizeof(enum tls_client_auth) == sizeof(unsigned), "words are stored as unsigned");
_Static_assert(sizeof(enum tls_version) == sizeof(unsigned), "words are stored as unsigned");

/* A section without any key does not enable TLS, as in the toolkit. */
static int set_tls(const struct yaml_fields *yaml, const struct yaml_field *field,
                   const struct yaml_reader_node *value)
{
    struct draft *draft = yaml->target;
    int r = yaml_fields_begin(yaml, field, value);

    if (r <= 0)
        return r;
    draft->config.tls = (struct tls_settings){
        .min_version = TLS_1_2, .max_version = TLS_1_3, .prefer_server_ciphers = true};
    draft->tls_place = *value;
    r = yaml_fields_read(yaml, value, tls_fields, ARRAY_SIZE(tls_fields));
    draft->tls_is_mentioned = r > 0;
    return r;
}

/* A PEM is in a file or inline, not both. */
static int check_pem(const struct yaml_fields *yaml, const struct draft *draft,
                     const struct tls_pem *pem, const char *path, const char *name, bool is_needed)
{
    if (path && pem->text.len > 0)
        return yaml_fields_fail(yaml, &draft->tls_place, "both %s and %s_file are given; keep one",
                                name, name);
    if (is_needed && !path && pem->text.len == 0)
        return yaml_fields_fail(yaml, &draft->tls_place, "tls_server_config has no %s_file; add it",
                                name);
    return 0;
}

static int check_clients(const struct yaml_fields *yaml, const struct draft *draft)
{
    const struct web_config *config = &draft->config;
    enum tls_client_auth auth = config->tls.client_auth;
    bool has_ca = config->client_ca_path || config->tls.client_ca.text.len > 0;
    bool verifies =
        auth == TLS_VERIFY_CLIENT_CERT_IF_GIVEN || auth == TLS_REQUIRE_AND_VERIFY_CLIENT_CERT;

    if (has_ca && auth == TLS_NO_CLIENT_CERT)
        return yaml_fields_fail(
            yaml, &draft->tls_place,
            "client_ca_file without client_auth_type: no client certificate would be requested; add "
            "client_auth_type: RequireAndVerifyClientCert");
    if (verifies && !has_ca)
        return yaml_fields_fail(
            yaml, &draft->tls_place,
            "client_auth_type verifies certificates, but without a CA; add client_ca_file");
    if (config->tls.client_san_count > 0 && auth != TLS_REQUIRE_ANY_CLIENT_CERT &&
        auth != TLS_REQUIRE_AND_VERIFY_CLIENT_CERT)
        return yaml_fields_fail(yaml, &draft->tls_place,
                                "client_allowed_sans needs a certificate from every client; add "
                                "client_auth_type: RequireAndVerifyClientCert");
    return 0;
}

static int check_tls(const struct yaml_fields *yaml)
{
    struct draft *draft = yaml->target;
    struct web_config *config = &draft->config;
    int r;

    if (!draft->tls_is_mentioned)
        return 0;
    r = check_pem(yaml, draft, &config->tls.cert, config->cert_path, "cert", true);
    if (r == 0)
        r = check_pem(yaml, draft, &config->tls.key, config->key_path, "key", true);
    if (r == 0)
        r = check_pem(yaml, draft, &config->tls.client_ca, config->client_ca_path, "client_ca",
                      false);
    if (r == 0)
        r = check_clients(yaml, draft);
    if (r == 0 && config->tls.min_version > config->tls.max_version)
        r = yaml_fields_fail(yaml, &draft->tls_place, "min_version is above max_version");
    config->has_tls = r == 0;
    return r;
}

static int check_user(const struct yaml_fields *yaml, const char *name,
                      const struct yaml_reader_node *value)
{
    const struct draft *draft = yaml->target;
    const struct web_config *config = &draft->config;
    unsigned cost = 0;
    int r = yaml_fields_check_text(yaml, name, value);

    if (r < 0)
        return r;
    for (size_t i = 0; i < config->user_count; i++)
        if (strcmp(config->users[i].name, name) == 0)
            return yaml_fields_fail(yaml, value, "user '%.80s' is given twice; keep one", name);
    if (strchr(name, ':'))
        return yaml_fields_fail(yaml, value, "user '%.80s': a name cannot contain ':' (RFC 7617)",
                                name);
    /* The value is not shown: it may be the password itself. */
    if (!auth_is_hash(span_of(value->text), &cost))
        return yaml_fields_fail(
            yaml, value, "user '%.80s': not a bcrypt hash; make one with: htpasswd -nBC 10 ''",
            name);
    if (cost < AUTH_COST_MIN || cost > AUTH_COST_MAX)
        return yaml_fields_fail(yaml, value,
                                "user '%.80s': cost %u of the hash is out of range; use %d to %d",
                                name, cost, AUTH_COST_MIN, AUTH_COST_MAX);
    if (config->user_count == WEB_CONFIG_USERS_MAX)
        return yaml_fields_fail(yaml, value,
                                "more than %d users; use client certificates for so many",
                                WEB_CONFIG_USERS_MAX);
    return 0;
}

static int take_user(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *key)
{
    struct draft *draft = yaml->target;
    struct web_config *config = &draft->config;
    struct yaml_reader_node value;
    const char *name, *hash;
    int r = yaml_fields_check_text(yaml, "the key", key);

    if (r < 0)
        return r;
    if (strlen(key->text) > AUTH_USER_MAX_BYTES)
        return yaml_fields_fail(yaml, key, "%s: a name of over %d bytes", field->name,
                                AUTH_USER_MAX_BYTES);
    name = draft_copy(draft, key->text);
    r = name ? yaml_reader_next(yaml->reader, name, &value) : -ENOMEM;
    if (r == 0)
        r = check_user(yaml, name, &value);
    if (r < 0)
        return r;
    hash = draft_copy(draft, value.text);
    config->users[config->user_count++] = (struct auth_user){name, hash};
    return hash ? 0 : -ENOMEM;
}

static int set_users(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *value)
{
    struct draft *draft = yaml->target;
    int r = yaml_fields_begin(yaml, field, value);

    if (r <= 0)
        return r;
    r = yaml_fields_each(yaml, field, "the key", take_user);
    draft->config.has_no_users = r == 0 && draft->config.user_count == 0;
    return r;
}

static int set_header(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    const char *const *allowed = field->details;
    struct draft *draft = yaml->target;
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
                yaml, value, "%s contains a control character; write it on one line", field->name);
    if (is_unset(value))
        return 0;
    text = draft_copy(draft, value->text);
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
    {.name = "http2", .set = yaml_fields_set_switch, .offset = offsetof(struct draft, wants_http2)},
    {.name = "headers", .set = yaml_fields_set_section, .takes_any = true, DETAILS(header_fields)},
};

static const struct yaml_field root_fields[] = {
    {.name = "tls_server_config", .set = set_tls, .takes_any = true},
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

int web_config_parse(struct span text, const char *file_name, struct web_config *ret_config,
                     struct error *err)
{
    const char *slash = strrchr(file_name, '/');
    struct draft draft = {
        .directory = {file_name, slash ? (size_t)(slash - file_name) + 1 : 0},
        .err = err,
    };
    struct yaml_fields yaml = {
        .manual = "docs/web-config.md",
        .target = &draft,
        .fields = root_fields,
        .field_count = ARRAY_SIZE(root_fields),
        .no_mapping = "the file is empty or not a mapping; docs/web-config.md shows some. To serve "
                      "without TLS and passwords, leave out --web.config.file",
        .check = check_tls,
    };
    int r;

    arena_init(&draft.config.strings, STRINGS_CAP_BYTES);
    r = yaml_fields_parse(&yaml, text, file_name, err);
    *ret_config = draft.config;
    return r;
}
