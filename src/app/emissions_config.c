#include "app/emissions_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/owid.h"

#define NAMES                                                                                      \
    "rte, electricity_maps, watttime, uk_carbon_intensity, entsoe, owid, global or constant"

static const uint64_t INTERVAL_MIN_US = 60 * USEC_PER_SEC; /* of a public service */

static const char *zone_option(const struct options *options)
{
    return options->emissions_zone ? options->emissions_zone : "";
}

/* The table's figure of a zone that is a country, or begins with the code of one: US-CAL-CISO, SE3.
 */
static int find_country(const char *zone, struct emission_factor *ret_factor)
{
    char code[3] = "";
    struct error ignored;

    if (zone[0] == '\0')
        return -ENOENT;
    if (owid_of_country(zone, ret_factor, &ignored) == 0)
        return 0;
    if (strlen(zone) < 3 || (zone[2] != '-' && !isdigit((unsigned char)zone[2])))
        return -ENOENT;
    memcpy(code, zone, 2);
    return owid_of_country(code, ret_factor, &ignored);
}

static int fail_zone(const char *name, struct error *err)
{
    return error_set(err, -EINVAL,
                     "--emissions.providers: %s needs a zone; give --emissions.zone, or write "
                     "%s:ZONE",
                     name, name);
}

/* --emissions.zone is for all; a provider that knows one country only must not take the code of
 * another for a zone of its own. */
static int adopt_zone(const struct provider *provider, const char *common,
                      char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    struct emission_factor theirs, asked;
    struct error ignored;
    char code[3];

    if (strlen(common) >= FACTOR_ZONE_BYTES)
        return error_set(err, -EINVAL, "--emissions.zone: '%.40s...' is no zone of %s", common,
                         provider->name);
    snprintf(zone, FACTOR_ZONE_BYTES, "%s", owid_alpha2(common, code) ? code : common);
    if (!provider->country || owid_of_country(common, &asked, &ignored) < 0 ||
        owid_of_country(provider->country, &theirs, &ignored) < 0 ||
        strcmp(asked.zone, theirs.zone) == 0)
        return 0;
    return error_set(err, -EINVAL,
                     "--emissions.providers: %s is about %s, and --emissions.zone is '%.40s'; "
                     "write %s:%s if it is wanted all the same",
                     provider->name, provider->country, common, provider->name, provider->country);
}

static int choose_zone(const struct provider *provider, const char *own, const char *common,
                       char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    if (!own[0] && common[0])
        return adopt_zone(provider, common, zone, err);
    if (!own[0])
        own = provider->country;
    if (!own)
        return fail_zone(provider->name, err);
    snprintf(zone, FACTOR_ZONE_BYTES, "%s", own);
    return 0;
}

/* By writing a question that is not sent. */
static int check_zone(const struct provider *provider, const char *zone, struct error *err)
{
    const struct provider_question question = {.zone = zone, .token = "x"};
    struct error why = {""};
    struct buffer path;
    int r;

    buffer_init(&path, 4096);
    r = provider->write_path(&question, &path, &why);
    buffer_done(&path);
    if (r == 0 && !factor_is_zone(zone))
        r = error_set(&why, -EINVAL, "%s: '%.40s' is no zone", provider->name, zone);
    return r < 0 ? error_set(err, r, "--emissions.providers: %s", why.text) : 0;
}

static int add_live(const struct options *options, const struct provider *provider, const char *own,
                    struct emissions_config *config, struct error *err)
{
    struct emissions_inquiry *inquiry = &config->inquiries[config->inquiry_count];
    enum price_basis basis = provider->basis;
    uint64_t interval_us = options->emissions_interval_us;
    int r;

    *inquiry = (struct emissions_inquiry){.provider = provider, .line = config->choice.count};
    r = choose_zone(provider, own, zone_option(options), inquiry->zone, err);

    if (r == 0)
        r = check_zone(provider, inquiry->zone, err);
    if (r < 0)
        return r;
    if (provider == &electricity_maps_provider && options->emissions_basis == PRICE_DIRECT)
        basis = PRICE_DIRECT;
    if (interval_us == 0)
        interval_us = provider->refresh_s * USEC_PER_SEC;
    config->inquiry_count++;
    choice_add_live(&config->choice, provider, inquiry->zone, basis, interval_us);
    return 0;
}

static int add_constant(const struct options *options, const char *own,
                        struct emissions_config *config, struct error *err)
{
    struct price_factor factor = {
        .known = true,
        .ug_per_kwh = options->emissions_factor_ug,
        .provider = "constant",
        .signal = options->emissions_signal,
        .basis = options->emissions_basis,
    };

    if (!options_is_given(options, "emissions.factor"))
        return error_set(err, -EINVAL,
                         "--emissions.providers: constant needs --emissions.factor, the grams per "
                         "kWh");
    snprintf(factor.zone, sizeof(factor.zone), "%s", own[0] ? own : zone_option(options));
    choice_add_fixed(&config->choice, &factor);
    return 0;
}

static int add_owid(const struct options *options, const char *own, struct emissions_config *config,
                    struct error *err)
{
    const char *zone = own[0] ? own : zone_option(options);
    struct emission_factor factor;
    struct price_factor price;

    if (!zone[0])
        return fail_zone("owid", err);
    if (find_country(zone, &factor) < 0)
        return error_set(err, -EINVAL,
                         "--emissions.%s: no yearly factor is known for '%.80s'; give a country as "
                         "FR or FRA, or the factor itself with --emissions.factor",
                         own[0] ? "providers" : "zone", zone);
    price = factor_price(&factor);
    choice_add_fixed(&config->choice, &price);
    return 0;
}

static void add_global(struct emissions_config *config)
{
    const struct emission_factor world = factor_world();
    const struct price_factor price = factor_price(&world);

    choice_add_fixed(&config->choice, &price);
}

static int add(const struct options *options, struct span name, const char *own,
               struct emissions_config *config, struct error *err)
{
    const struct provider *provider = provider_find(name);

    if (choice_find(&config->choice, name) >= 0)
        return error_set(err, -EINVAL, "--emissions.providers: '%.*s' is given twice",
                         (int)name.len, name.data);
    if (provider)
        return add_live(options, provider, own, config, err);
    if (span_equals(name, "constant"))
        return add_constant(options, own, config, err);
    if (span_equals(name, "owid"))
        return add_owid(options, own, config, err);
    if (!span_equals(name, "global"))
        return error_set(err, -EINVAL,
                         "--emissions.providers: '%.*s' is not known; use " NAMES
                         ", each with :ZONE if it needs one of its own",
                         (int)MIN(name.len, (size_t)40), name.data);
    add_global(config);
    return 0;
}

/* The country of what is asked, where --emissions.zone tells none. */
static const char *country_asked(const struct emissions_config *config)
{
    for (size_t i = 0; i < config->inquiry_count; i++) {
        const struct emissions_inquiry *inquiry = &config->inquiries[i];
        struct emission_factor ignored;

        if (inquiry->provider->country)
            return inquiry->provider->country;
        if (find_country(inquiry->zone, &ignored) == 0)
            return inquiry->zone;
    }
    return "";
}

static bool is_there(const struct emissions_config *config, const char *name)
{
    return choice_find(&config->choice, span_of(name)) >= 0;
}

/* A zone that is of no country is wrong only where nobody else says what is emitted there. */
static int add_country(const struct options *options, struct emissions_config *config,
                       struct error *err)
{
    const char *zone = zone_option(options), *asked = country_asked(config);
    struct emission_factor ignored;
    struct error why;

    /* What only begins like a country may be a postcode of another: CH1 is in Chester. */
    if (asked[0] && owid_of_country(zone, &ignored, &why) < 0)
        return add_owid(options, asked, config, err);
    if (find_country(zone, &ignored) == 0 || (zone[0] && config->choice.count == 0))
        return add_owid(options, "", config, err);
    return 0;
}

/* Behind what the user wrote, these always stand in. */
static int add_last_resorts(const struct options *options, struct emissions_config *config,
                            struct error *err)
{
    int r = 0;

    if (!is_there(config, "constant") && options_is_given(options, "emissions.factor"))
        r = add_constant(options, "", config, err);
    if (r == 0 && !is_there(config, "owid"))
        r = add_country(options, config, err);
    if (r == 0 && !is_there(config, "global"))
        add_global(config);
    return r;
}

static int add_named(const struct options *options, struct emissions_config *config,
                     struct error *err)
{
    for (size_t i = 0; i < options->emissions_providers.count; i++) {
        const char *text = options->emissions_providers.items[i];
        struct span own = span_of(text), name = span_cut(&own, ':');
        int r;

        if (own.len >= FACTOR_ZONE_BYTES)
            return error_set(err, -EINVAL, "--emissions.providers: '%.80s' has too long a zone",
                             text);
        r = add(options, name, own.data ? own.data : "", config, err); /* it ends as the text */
        if (r < 0)
            return r;
    }
    return 0;
}

static int prefer_primary(const struct options *options, struct emissions_config *config,
                          struct error *err)
{
    const char *name = options->emissions_primary;
    int index = name ? choice_find(&config->choice, span_of(name)) : 0;

    if (index < 0)
        return error_set(err, -EINVAL,
                         "--emissions.primary: '%.80s' is none of --emissions.providers; add it "
                         "there",
                         name);
    choice_prefer(&config->choice, (size_t)index);
    for (size_t i = 0; i < config->inquiry_count; i++)
        config->inquiries[i].line =
            (size_t)choice_find(&config->choice, span_of(config->inquiries[i].provider->name));
    return 0;
}

/* "NAME=https://HOST[:PORT][/PATH]". Only TLS: whoever can change a factor can change a bill. */
static int read_url(const char *text, struct emissions_config *config, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._~:[]/";
    struct span url = span_of(text), name = span_cut(&url, '='), rest = url;

    if (!span_strip_prefix(&rest, "https://") || rest.len == 0 || rest.data[0] == '/' ||
        strspn(rest.data, allowed) != rest.len || rest.data[rest.len - 1] == '/')
        return error_set(err, -EINVAL,
                         "--emissions.url: '%.80s' is not the place of a provider; write "
                         "NAME=https://HOST:PORT, without a slash at the end",
                         text);
    for (size_t i = 0; i < config->inquiry_count; i++) {
        if (!span_equals(name, config->inquiries[i].provider->name))
            continue;
        config->inquiries[i].url = url.data;
        return 0;
    }
    return error_set(err, -EINVAL,
                     "--emissions.url: '%.*s' is not asked; name it in --emissions.providers",
                     (int)MIN(name.len, (size_t)40), name.data);
}

/* Else they would be believed to do something. */
static int check_effect(const struct options *options, const struct emissions_config *config,
                        struct error *err)
{
    static const char *const of_asking[] = {"emissions.keys-file", "emissions.ca-file",
                                            "emissions.interval"};

    for (size_t i = 0; i < ARRAY_SIZE(of_asking) && config->inquiry_count == 0; i++)
        if (options_is_given(options, of_asking[i]))
            return error_set(err, -EINVAL,
                             "--%s: nobody is asked; name who should be in --emissions.providers, "
                             "or leave it out",
                             of_asking[i]);
    if (options_is_given(options, "emissions.signal") &&
        !options_is_given(options, "emissions.factor"))
        return error_set(err, -EINVAL,
                         "--emissions.signal: says what --emissions.factor is; give both");
    return 0;
}

static int check_interval(const struct options *options, const struct emissions_config *config,
                          struct error *err)
{
    if (options->emissions_interval_us == 0 || options->emissions_interval_us >= INTERVAL_MIN_US)
        return 0;
    for (size_t i = 0; i < config->inquiry_count; i++)
        if (!config->inquiries[i].url)
            return error_set(err, -EINVAL,
                             "--emissions.interval: less than 1m is too often for a public "
                             "service; give more, or a mirror of your own with --emissions.url=%s="
                             "https://...",
                             config->inquiries[i].provider->name);
    return 0;
}

int emissions_config_read(const struct options *options, struct emissions_config *ret_config,
                          struct error *err)
{
    struct emissions_config config = {0};
    int r = 0;

    if (options->emissions_enabled) {
        r = add_named(options, &config, err);
        if (r == 0)
            r = add_last_resorts(options, &config, err);
        if (r == 0)
            r = prefer_primary(options, &config, err);
        for (size_t i = 0; i < options->emissions_urls.count && r == 0; i++)
            r = read_url(options->emissions_urls.items[i], &config, err);
        if (r == 0)
            r = check_interval(options, &config, err);
        if (r == 0)
            r = check_effect(options, &config, err);
    }
    if (r == 0)
        *ret_config = config;
    return r;
}
