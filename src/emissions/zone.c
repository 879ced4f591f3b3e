#include "emissions/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "emissions/providers/owid.h"

static int fail_missing(const char *name, struct error *err)
{
    return error_set(err, -EINVAL,
                     "--emissions.providers: %s needs a zone; give --emissions.zone, or write "
                     "%s:ZONE",
                     name, name);
}

/* --emissions.zone is for all; a provider that knows one country only must not take the code of
 * another for a zone of its own. */
static int adopt(const struct provider *provider, const char *common, char zone[FACTOR_ZONE_BYTES],
                 struct error *err)
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

static int choose(const struct provider *provider, const char *own, const char *common,
                  char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    if (!own[0] && common[0])
        return adopt(provider, common, zone, err);
    if (!own[0])
        own = provider->country;
    if (!own)
        return fail_missing(provider->name, err);
    snprintf(zone, FACTOR_ZONE_BYTES, "%s", own);
    return 0;
}

/* By writing a question that is not sent. */
static int check(const struct provider *provider, const char *zone, struct error *err)
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

int zone_choose(const struct provider *provider, const char *own, const char *common,
                char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    int r = choose(provider, own, common, zone, err);

    return r < 0 ? r : check(provider, zone, err);
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

int zone_yearly(const char *own, const char *common, struct emission_factor *ret_factor,
                struct error *err)
{
    const char *zone = own[0] ? own : common;

    if (!zone[0])
        return fail_missing("owid", err);
    if (find_country(zone, ret_factor) < 0)
        return error_set(err, -EINVAL,
                         "--emissions.%s: no yearly factor is known for '%.80s'; give a country as "
                         "FR or FRA, or the factor itself with --emissions.factor",
                         own[0] ? "providers" : "zone", zone);
    return 0;
}

const char *zone_country(const struct provider *provider, const char *zone)
{
    struct emission_factor ignored;

    if (provider->country)
        return provider->country;
    return find_country(zone, &ignored) == 0 ? zone : "";
}

const char *zone_stand_in(const char *common, const char *asked)
{
    struct emission_factor ignored;
    struct error why;

    /* What only begins like a country may be a postcode of another: CH1 is in Chester. */
    if (asked[0] && owid_of_country(common, &ignored, &why) < 0)
        return asked;
    return find_country(common, &ignored) == 0 ? common : "";
}
