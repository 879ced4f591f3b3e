#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/suggest.h"
#include "config/web_config_parts.h"
#include "core/macros.h"

struct word {
    const char *text;
    unsigned value;
};

static int set_path(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    struct web_config_draft *draft = yaml->target;
    const char **kept = yaml_fields_member(yaml, field);
    char path[PATH_MAX];
    int len;

    if (yaml_reader_is_null(value) || value->text[0] == '\0')
        return 0;
    len = snprintf(path, sizeof(path), "%.*s%s",
                   value->text[0] == '/' ? 0 : (int)draft->directory.len, draft->directory.data,
                   value->text);
    if (len < 0 || (size_t)len >= sizeof(path))
        return yaml_fields_fail(yaml, value, "%s is too long for a path", field->name);
    *kept = web_config_copy(draft, path);
    return *kept ? 0 : -ENOMEM;
}

static int set_pem(const struct yaml_fields *yaml, const struct yaml_field *field,
                   const struct yaml_reader_node *value)
{
    struct tls_pem *pem = yaml_fields_member(yaml, field);

    if (yaml_reader_is_null(value) || value->text[0] == '\0')
        return 0;
    pem->text.data = web_config_copy(yaml->target, value->text);
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

static int set_version(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    if (strcmp(value->text, "TLS10") == 0 || strcmp(value->text, "TLS11") == 0)
        return yaml_fields_fail(
            yaml, value,
            "%s: %s is not spoken here, as it is not safe (RFC 8996); use TLS12 or TLS13",
            field->name, value->text);
    return set_word(yaml, field, value);
}

static int read_list(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *start, yaml_fields_setter *take)
{
    if (yaml_reader_is_null(start))
        return 0;
    if (start->kind != YAML_READER_LIST)
        return yaml_fields_fail(yaml, start, "%s is not a list; write '- ' before each item",
                                field->name);
    return yaml_fields_each(yaml, field, field->name, take);
}

static int take_san(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *item)
{
    struct web_config_draft *draft = yaml->target;
    struct tls_settings *tls = &draft->config.tls;
    int r = yaml_fields_check_text(yaml, field->name, item);

    if (r < 0)
        return r;
    if (tls->client_san_count == TLS_SANS_MAX)
        return yaml_fields_fail(yaml, item,
                                "%s: more than %d; use an authority of their own instead",
                                field->name, TLS_SANS_MAX);
    tls->client_sans[tls->client_san_count] = web_config_copy(draft, item->text);
    return tls->client_sans[tls->client_san_count++] ? 0 : -ENOMEM;
}

static int set_sans(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    return read_list(yaml, field, value, take_san);
}

static int take_curve(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *item)
{
    struct tls_settings *tls = yaml_fields_member(yaml, field);
    unsigned curve;
    int r = yaml_fields_check_text(yaml, field->name, item);

    if (r < 0)
        return r;
    r = find_word(yaml, field, item, &curve);
    if (r < 0)
        return r;
    for (size_t i = 0; i < tls->curve_count; i++)
        if (tls->curves[i] == curve)
            return yaml_fields_wrong(yaml, field, item, "is given twice");
    tls->curves[tls->curve_count++] = (enum tls_curve)curve;
    return 0;
}

static int set_curves(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    return read_list(yaml, field, value, take_curve);
}

#define AT(member) .offset = offsetof(struct web_config_draft, config.member)

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

static const struct yaml_field tls_fields[] = {
    {.name = "cert_file", .set = set_path, AT(cert_path)},
    {.name = "key_file", .set = set_path, AT(key_path)},
    {.name = "cert", .set = set_pem, AT(tls.cert)},
    {.name = "key", .set = set_pem, AT(tls.key)},
    {.name = "client_auth_type", .set = set_word, AT(tls.client_auth), DETAILS(client_auth_types)},
    {.name = "client_ca_file", .set = set_path, AT(client_ca_path)},
    {.name = "client_ca", .set = set_pem, AT(tls.client_ca)},
    {.name = "client_allowed_sans", .set = set_sans, .takes_any = true},
    {.name = "min_version", .set = set_version, AT(tls.min_version), DETAILS(versions)},
    {.name = "max_version", .set = set_version, AT(tls.max_version), DETAILS(versions)},
    {.name = "curve_preferences", .set = set_curves, .takes_any = true, AT(tls), DETAILS(curves)},
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

/* A section without a single key asks for nothing, as in the toolkit. */
int web_config_set_tls(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    struct web_config_draft *draft = yaml->target;
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

/* A PEM comes from a file or stands in the config; `is_needed`: from one of them. */
static int check_pem(const struct yaml_fields *yaml, const struct web_config_draft *draft,
                     const struct tls_pem *pem, const char *path, const char *name, bool is_needed)
{
    if (path && pem->text.len > 0)
        return yaml_fields_fail(yaml, &draft->tls_place, "both %s and %s_file are given; keep one",
                                name, name);
    if (is_needed && !path && pem->text.len == 0)
        return yaml_fields_fail(yaml, &draft->tls_place,
                                "tls_server_config has no %s_file; give it", name);
    return 0;
}

static int check_clients(const struct yaml_fields *yaml, const struct web_config_draft *draft)
{
    const struct web_config *config = &draft->config;
    enum tls_client_auth auth = config->tls.client_auth;
    bool has_ca = config->client_ca_path || config->tls.client_ca.text.len > 0;
    bool verifies =
        auth == TLS_VERIFY_CLIENT_CERT_IF_GIVEN || auth == TLS_REQUIRE_AND_VERIFY_CLIENT_CERT;

    if (has_ca && auth == TLS_NO_CLIENT_CERT)
        return yaml_fields_fail(
            yaml, &draft->tls_place,
            "client_ca_file without client_auth_type: no certificate would be asked for; "
            "add client_auth_type: RequireAndVerifyClientCert");
    if (verifies && !has_ca)
        return yaml_fields_fail(
            yaml, &draft->tls_place,
            "client_auth_type wants to verify certificates, by which authority? Add "
            "client_ca_file");
    if (config->tls.client_san_count > 0 && auth != TLS_REQUIRE_ANY_CLIENT_CERT &&
        auth != TLS_REQUIRE_AND_VERIFY_CLIENT_CERT)
        return yaml_fields_fail(yaml, &draft->tls_place,
                                "client_allowed_sans needs a certificate from every client; add "
                                "client_auth_type: RequireAndVerifyClientCert");
    return 0;
}

int web_config_check_tls(const struct yaml_fields *yaml)
{
    struct web_config_draft *draft = yaml->target;
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
