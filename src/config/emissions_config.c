#include "config/emissions_config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "emissions/zone.h"

static const uint64_t INTERVAL_MIN_US = 60 * USEC_PER_SEC; /* of a public service */

/* A config that is being read. */
struct draft {
    const struct options *options;
    const char *zone; /* --emissions.zone, or "" */
    struct emissions_config *config;
    struct error *err;
};

#define FAIL(draft, ...) error_set((draft)->err, -EINVAL, __VA_ARGS__)

static bool is_in_choice(const struct draft *draft, const char *name)
{
    return choice_find(&draft->config->choice, span_of(name)) >= 0;
}

static int add_live(const struct draft *draft, const struct provider *provider, const char *own)
{
    struct emissions_config *config = draft->config;
    struct emissions_poll *poll = &config->polls[config->poll_count];
    bool is_direct = provider->offers_direct && draft->options->emissions_basis == PRICE_DIRECT;
    uint64_t interval_us = draft->options->emissions_interval_us;
    int r;

    *poll = (struct emissions_poll){.provider = provider};
    r = zone_choose(provider, own, draft->zone, poll->zone, draft->err);
    if (r < 0)
        return r;
    config->poll_count++;
    choice_add_live(&config->choice, provider, poll->zone,
                    is_direct ? PRICE_DIRECT : provider->basis,
                    interval_us > 0 ? interval_us : provider->refresh_s * USEC_PER_SEC);
    return 0;
}

static int add_constant(const struct draft *draft, const char *own)
{
    const struct options *options = draft->options;
    struct price_factor factor = {
        .known = true,
        .ug_per_kwh = options->emissions_factor_ug,
        .provider = "constant",
        .signal = options->emissions_signal,
        .basis = options->emissions_basis,
    };

    if (!options_is_given(options, "emissions.factor"))
        return FAIL(draft, "--emissions.providers: constant needs --emissions.factor, the grams "
                           "per kWh");
    snprintf(factor.zone, sizeof(factor.zone), "%s", own[0] ? own : draft->zone);
    choice_add_constant(&draft->config->choice, &factor);
    return 0;
}

static int add_owid(const struct draft *draft, const char *own)
{
    struct price_factor factor;
    int r = zone_yearly(own, draft->zone, &factor, draft->err);

    if (r == 0)
        choice_add_table(&draft->config->choice, &factor);
    return r;
}

static int add_global(const struct draft *draft, const char *own)
{
    const struct price_factor world = factor_world();

    if (own[0])
        return FAIL(draft,
                    "--emissions.providers: global has no zone; write it alone, or owid:%.40s for "
                    "a country",
                    own);
    choice_add_table(&draft->config->choice, &world);
    return 0;
}

/* "NAME" or "NAME:ZONE". */
static int add_named(const struct draft *draft, const char *text)
{
    struct span zone = span_of(text), name = span_cut(&zone, ':');
    const struct provider *provider = provider_find(name);
    const char *own = zone.data ? zone.data : ""; /* ends where the text ends */
    char names[256];

    if (zone.len >= FACTOR_ZONE_BYTES)
        return FAIL(draft, "--emissions.providers: the zone of '%.80s' is too long", text);
    if (choice_find(&draft->config->choice, name) >= 0)
        return FAIL(draft,
                    "--emissions.providers: '%.*s' is given twice; each provider has one zone, so "
                    "remove one",
                    (int)name.len, name.data);
    if (provider)
        return add_live(draft, provider, own);
    if (span_equals(name, "constant"))
        return add_constant(draft, own);
    if (span_equals(name, "owid"))
        return add_owid(draft, own);
    if (span_equals(name, "global"))
        return add_global(draft, own);
    provider_list_names(names, sizeof(names));
    return FAIL(
        draft,
        "--emissions.providers: '%.*s' is not known; use %s, owid, global or constant, each "
        "with :ZONE if it needs a zone of its own",
        (int)MIN(name.len, (size_t)40), name.data, names);
}

/* The country of the live providers: of the primary, or else of the first that has one. */
static const char *live_country(const struct draft *draft)
{
    const char *primary = draft->options->emissions_primary, *first = "";

    for (size_t i = 0; i < draft->config->poll_count; i++) {
        const struct emissions_poll *poll = &draft->config->polls[i];
        const char *country = zone_country(poll->provider, poll->zone);

        if (country[0] && primary && strcmp(poll->provider->name, primary) == 0)
            return country;
        if (!first[0])
            first = country;
    }
    return first;
}

/* After what the user listed, these are always the fallbacks. */
static int add_fallbacks(const struct draft *draft)
{
    const char *country;
    int r = 0;

    if (!is_in_choice(draft, "constant") && options_is_given(draft->options, "emissions.factor"))
        r = add_constant(draft, "");
    if (r == 0 && !is_in_choice(draft, "owid")) {
        country = zone_stand_in(draft->zone, live_country(draft));
        /* A zone of no known country is an error only if no other factor is configured. */
        if (country[0] || (draft->zone[0] && draft->config->choice.count == 0))
            r = add_owid(draft, country);
    }
    if (r == 0 && !is_in_choice(draft, "global"))
        r = add_global(draft, "");
    return r;
}

static int prefer_primary(const struct draft *draft)
{
    struct emissions_config *config = draft->config;
    const char *text = draft->options->emissions_primary;
    int index = text ? choice_find(&config->choice, span_of(text)) : 0;

    if (index < 0) {
        struct span zone = span_of(text), name = span_cut(&zone, ':');

        if (choice_find(&config->choice, name) >= 0)
            return FAIL(draft, "--emissions.primary: '%.80s': write the name without a zone: %.*s",
                        text, (int)name.len, name.data);
        return FAIL(draft, "--emissions.primary: '%.80s' is not in --emissions.providers; add it",
                    text);
    }
    choice_prefer(&config->choice, (size_t)index);
    for (size_t i = 0; i < config->poll_count; i++)
        config->polls[i].line =
            (size_t)choice_find(&config->choice, span_of(config->polls[i].provider->name));
    return 0;
}

/* "NAME=https://HOST[:PORT][/PATH]". Only TLS: whoever can change a factor can change a bill. */
static int read_url(const struct draft *draft, const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._~:[]/";
    struct span url = span_of(text), name = span_cut(&url, '='), rest = url;

    if (!span_strip_prefix(&rest, "https://") || rest.len == 0 || rest.data[0] == '/' ||
        strspn(rest.data, allowed) != rest.len || rest.data[rest.len - 1] == '/')
        return FAIL(draft,
                    "--emissions.url: '%.80s' is not the URL of a mirror; write "
                    "NAME=https://HOST:PORT, without a slash at the end",
                    text);
    for (size_t i = 0; i < draft->config->poll_count; i++)
        if (span_equals(name, draft->config->polls[i].provider->name)) {
            draft->config->polls[i].url = url.data;
            return 0;
        }
    return FAIL(draft, "--emissions.url: '%.*s' is not queried; add it to --emissions.providers",
                (int)MIN(name.len, (size_t)40), name.data);
}

/* Rejects flags that would have no effect, and queries that are too frequent. */
static int check_effect(const struct draft *draft)
{
    static const char *const of_queries[] = {"emissions.keys-file", "emissions.ca-file",
                                             "emissions.interval"};
    const struct options *options = draft->options;
    const struct emissions_config *config = draft->config;
    bool is_too_often =
        options->emissions_interval_us > 0 && options->emissions_interval_us < INTERVAL_MIN_US;
    bool is_direct_offered = false;

    for (size_t i = 0; i < config->poll_count; i++) {
        is_direct_offered |= config->polls[i].provider->offers_direct;
        if (is_too_often && !config->polls[i].url)
            return FAIL(draft,
                        "--emissions.interval: less than 1m is too often for a public service; set "
                        "more, or your own mirror with --emissions.url=%s=https://...",
                        config->polls[i].provider->name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_queries) && config->poll_count == 0; i++)
        if (options_is_given(options, of_queries[i]))
            return FAIL(draft,
                        "--%s: no provider is queried; add one to --emissions.providers, or remove "
                        "the flag",
                        of_queries[i]);
    if (options_is_given(options, "emissions.factor"))
        return 0;
    if (options_is_given(options, "emissions.signal"))
        return FAIL(draft, "--emissions.signal: describes --emissions.factor; set both");
    if (options_is_given(options, "emissions.basis") && !is_direct_offered)
        return FAIL(draft, "--emissions.basis: describes --emissions.factor or selects what "
                           "electricity_maps returns; set one of them, or remove the flag");
    return 0;
}

int emissions_config_read(const struct options *options, struct emissions_config *ret_config,
                          struct error *err)
{
    struct emissions_config config = {0};
    const struct draft draft = {options, options->emissions_zone ? options->emissions_zone : "",
                                &config, err};
    int r = 0;

    if (options->emissions_enabled) {
        for (size_t i = 0; i < options->emissions_providers.count && r == 0; i++)
            r = add_named(&draft, options->emissions_providers.items[i]);
        if (r == 0)
            r = add_fallbacks(&draft);
        if (r == 0)
            r = prefer_primary(&draft);
        for (size_t i = 0; i < options->emissions_urls.count && r == 0; i++)
            r = read_url(&draft, options->emissions_urls.items[i]);
        if (r == 0)
            r = check_effect(&draft);
    }
    if (r == 0)
        *ret_config = config;
    return r;
}

/* Whether everyone may enter all directories on the path. */
static int check_directories(const char *path, struct error *err)
{
    struct stat st;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char directory[PATH_MAX];

        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
        if (stat(directory, &st) == 0 && !(st.st_mode & S_IXOTH))
            return error_set(err, -EACCES,
                             "--emissions.ca-file: the fetcher, which has no privileges, cannot "
                             "enter %.300s; chmod a+x it, or move the file",
                             directory);
    }
    return 0;
}

int emissions_config_check_ca(const char *path, struct error *err)
{
    _cleanup_free_ char *real = NULL;
    struct stat st;
    int r;

    if (path[0] == '\0')
        return 0;
    if (stat(path, &st) < 0)
        return error_set(err, -errno, "--emissions.ca-file %.300s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, -ENXIO, "--emissions.ca-file %.300s: Not a regular file", path);
    if (!(st.st_mode & S_IROTH))
        return error_set(err, -EACCES,
                         "--emissions.ca-file %.300s: the fetcher, which has no privileges, cannot "
                         "read it; chmod a+r it",
                         path);
    if (geteuid() != 0)
        return 0; /* the fetcher runs as the same user */
    r = check_directories(path, err);
    real = r == 0 ? realpath(path, NULL) : NULL;
    return real ? check_directories(real, err) : r;
}
