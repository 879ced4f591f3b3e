#include "config/emissions_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/zone.h"

static const uint64_t INTERVAL_MIN_US = 60 * USEC_PER_SEC; /* of a public service */

static const char *zone_option(const struct options *options)
{
    return options->emissions_zone ? options->emissions_zone : "";
}

static int add_live(const struct options *options, const struct provider *provider, const char *own,
                    struct emissions_config *config, struct error *err)
{
    struct emissions_inquiry *inquiry = &config->inquiries[config->inquiry_count];
    enum price_basis basis = provider->basis;
    uint64_t interval_us = options->emissions_interval_us;
    int r;

    *inquiry = (struct emissions_inquiry){.provider = provider, .line = config->choice.count};
    r = zone_choose(provider, own, zone_option(options), inquiry->zone, err);
    if (r < 0)
        return r;
    if (provider->offers_direct && options->emissions_basis == PRICE_DIRECT)
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
    choice_add_constant(&config->choice, &factor);
    return 0;
}

static int add_owid(const struct options *options, const char *own, struct emissions_config *config,
                    struct error *err)
{
    struct price_factor factor;
    int r = zone_yearly(own, zone_option(options), &factor, err);

    if (r == 0)
        choice_add_table(&config->choice, &factor);
    return r;
}

static void add_global(struct emissions_config *config)
{
    const struct price_factor world = factor_world();

    choice_add_table(&config->choice, &world);
}

static int fail_unknown(struct span name, struct error *err)
{
    char names[256];

    provider_list_names(names, sizeof(names));
    return error_set(err, -EINVAL,
                     "--emissions.providers: '%.*s' is not known; use %s, owid, global or "
                     "constant, each with :ZONE if it needs one of its own",
                     (int)MIN(name.len, (size_t)40), name.data, names);
}

static int add(const struct options *options, struct span name, const char *own,
               struct emissions_config *config, struct error *err)
{
    const struct provider *provider = provider_find(name);

    if (choice_find(&config->choice, name) >= 0)
        return error_set(err, -EINVAL,
                         "--emissions.providers: '%.*s' is given twice; each can be asked for one "
                         "zone, so leave one out",
                         (int)name.len, name.data);
    if (provider)
        return add_live(options, provider, own, config, err);
    if (span_equals(name, "constant"))
        return add_constant(options, own, config, err);
    if (span_equals(name, "owid"))
        return add_owid(options, own, config, err);
    if (!span_equals(name, "global"))
        return fail_unknown(name, err);
    if (own[0])
        return error_set(err, -EINVAL,
                         "--emissions.providers: global has no zone; write it alone, or owid:%.40s "
                         "for a country",
                         own);
    add_global(config);
    return 0;
}

/* The country of who is asked, where --emissions.zone tells none: of the primary, or else of the
 * first that has one. */
static const char *country_asked(const struct options *options,
                                 const struct emissions_config *config)
{
    const char *primary = options->emissions_primary, *first = "";

    for (size_t i = 0; i < config->inquiry_count; i++) {
        const struct emissions_inquiry *inquiry = &config->inquiries[i];
        const char *country = zone_country(inquiry->provider, inquiry->zone);

        if (country[0] && primary && strcmp(inquiry->provider->name, primary) == 0)
            return country;
        if (!first[0])
            first = country;
    }
    return first;
}

static bool is_there(const struct emissions_config *config, const char *name)
{
    return choice_find(&config->choice, span_of(name)) >= 0;
}

/* A zone that is of no country is wrong only where nobody else says what is emitted there. */
static int add_country(const struct options *options, struct emissions_config *config,
                       struct error *err)
{
    const char *zone = zone_option(options);
    const char *country = zone_stand_in(zone, country_asked(options, config));

    if (country[0] || (zone[0] && config->choice.count == 0))
        return add_owid(options, country, config, err);
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

static int fail_primary(const char *text, const struct emissions_config *config, struct error *err)
{
    struct span zone = span_of(text), name = span_cut(&zone, ':');

    if (choice_find(&config->choice, name) >= 0)
        return error_set(err, -EINVAL,
                         "--emissions.primary: '%.80s': give its name alone, without a zone: %.*s",
                         text, (int)name.len, name.data);
    return error_set(err, -EINVAL,
                     "--emissions.primary: '%.80s' is none of --emissions.providers; add it there",
                     text);
}

static int prefer_primary(const struct options *options, struct emissions_config *config,
                          struct error *err)
{
    const char *name = options->emissions_primary;
    int index = name ? choice_find(&config->choice, span_of(name)) : 0;

    if (index < 0)
        return fail_primary(name, config, err);
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

static bool is_direct_offered(const struct emissions_config *config)
{
    for (size_t i = 0; i < config->inquiry_count; i++)
        if (config->inquiries[i].provider->offers_direct)
            return true;
    return false;
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
    if (options_is_given(options, "emissions.factor"))
        return 0;
    if (options_is_given(options, "emissions.signal"))
        return error_set(err, -EINVAL,
                         "--emissions.signal: says what --emissions.factor is; give both");
    if (options_is_given(options, "emissions.basis") && !is_direct_offered(config))
        return error_set(err, -EINVAL,
                         "--emissions.basis: says what --emissions.factor is, or what "
                         "electricity_maps is asked for; give one of them, or leave it out");
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
