#include "emissions/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

/* data/emission_factors_owid.csv and data/country-codes.tsv, embedded by tools/embed. */
extern const char emission_factors_owid_csv[], country_codes_tsv[];
extern const size_t emission_factors_owid_csv_len, country_codes_tsv_len;

#define WORLD_CODE "OWID_WRL"

enum { CODE, COUNTRY, YEAR, GRAMS, COLUMNS };

/* Cuts one field of RFC 4180 off the front of a line, without its quotes. Doubled quotes stay: no
 * field that is used has any. */
static struct span cut_field(struct span *line)
{
    struct span field;
    size_t end = 1;

    if (line->len == 0 || line->data[0] != '"')
        return span_cut(line, ',');
    while (end < line->len &&
           (line->data[end] != '"' || (end + 1 < line->len && line->data[end + 1] == '"')))
        end += line->data[end] == '"' ? 2 : 1;
    end = MIN(end, line->len);
    field = (struct span){line->data + 1, end - 1};
    *line = (struct span){line->data + end, line->len - end};
    span_cut(line, ',');
    return field;
}

/* No grid emits nothing over the lives of its plants: a 0 is a gap in the table. */
int zone_find_row(struct span csv, const char *code, uint64_t *ret_mg)
{
    uint64_t newest = 0, year, mg;
    int r = -ENOENT;

    while (csv.len > 0) {
        struct span line = span_cut(&csv, '\n'), fields[COLUMNS];

        span_strip_suffix(&line, "\r");
        for (size_t i = 0; i < COLUMNS; i++)
            fields[i] = cut_field(&line);
        if (!span_equals(fields[CODE], code) || parse_u64_max(fields[YEAR], 9999, &year) < 0 ||
            factor_parse_grams(fields[GRAMS], &mg) < 0 || mg == 0 || (r == 0 && year <= newest))
            continue;
        newest = year;
        *ret_mg = mg;
        r = 0;
    }
    return r;
}

/* The row "FR\tFRA" of either code; false if there is none. */
static bool find_codes(const char *code, struct span *ret_alpha2, struct span *ret_alpha3)
{
    struct span codes = {country_codes_tsv, country_codes_tsv_len};

    while (codes.len > 0) {
        *ret_alpha3 = span_cut(&codes, '\n');
        *ret_alpha2 = span_cut(ret_alpha3, '\t');
        if (ret_alpha3->len > 0 && /* not a comment */
            (span_equals(*ret_alpha2, code) || span_equals(*ret_alpha3, code)))
            return true;
    }
    return false;
}

int zone_of_country(const char *country, struct price_factor *ret_factor)
{
    struct span csv = {emission_factors_owid_csv, emission_factors_owid_csv_len};
    struct span alpha2, code;
    char text[FACTOR_ZONE_BYTES] = "";
    bool is_world = strcmp(country, "world") == 0;
    uint64_t mg;

    if (is_world)
        code = span_of(WORLD_CODE);
    else if (!find_codes(country, &alpha2, &code))
        return -ENOENT;
    if (code.len >= sizeof(text))
        return -ENOENT;
    memcpy(text, code.data, code.len);
    if (zone_find_row(csv, text, &mg) < 0)
        return -ENOENT;
    *ret_factor = factor_yearly("owid", is_world ? span_of("world") : code, mg);
    return 0;
}

/* For a zone that is a country, or begins with the code of one: US-CAL-CISO, SE3. */
static int find_country(const char *zone, struct price_factor *ret_factor)
{
    char code[3] = "";

    if (zone_of_country(zone, ret_factor) == 0)
        return 0;
    if (strlen(zone) < 3 || (zone[2] != '-' && !isdigit((unsigned char)zone[2])))
        return -ENOENT;
    memcpy(code, zone, 2);
    return zone_of_country(code, ret_factor);
}

static int fail_missing(const char *name, struct error *err)
{
    return error_set(err, -EINVAL,
                     "--emissions.providers: %s needs a zone; set --emissions.zone, or write "
                     "%s:ZONE",
                     name, name);
}

/* --emissions.zone holds for all: a provider for one country must not take the code of another for
 * a zone of its own. */
static int adopt_common(const struct provider *provider, const char *common,
                        char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    struct price_factor covered, wanted;
    struct span alpha2, alpha3;

    if (strlen(common) >= FACTOR_ZONE_BYTES)
        return error_set(err, -EINVAL, "--emissions.zone: '%.40s...' is not a zone of %s", common,
                         provider->name);
    if (find_codes(common, &alpha2, &alpha3) && alpha2.len == 2)
        snprintf(zone, FACTOR_ZONE_BYTES, "%.2s", alpha2.data);
    else
        snprintf(zone, FACTOR_ZONE_BYTES, "%s", common);
    if (!provider->country || zone_of_country(common, &wanted) < 0 ||
        zone_of_country(provider->country, &covered) < 0 || strcmp(wanted.zone, covered.zone) == 0)
        return 0;
    return error_set(err, -EINVAL,
                     "--emissions.providers: %s covers %s, but --emissions.zone is '%.40s'; write "
                     "%s:%s to use it anyway",
                     provider->name, provider->country, common, provider->name, provider->country);
}

int zone_choose(const struct provider *provider, const char *own, const char *common,
                char zone[FACTOR_ZONE_BYTES], struct error *err)
{
    const struct provider_query query = {.zone = zone, .token = "x"};
    struct error why = {""};
    struct buffer path;
    int r = 0;

    if (own[0])
        snprintf(zone, FACTOR_ZONE_BYTES, "%s", own);
    else if (common[0])
        r = adopt_common(provider, common, zone, err);
    else if (provider->country)
        snprintf(zone, FACTOR_ZONE_BYTES, "%s", provider->country);
    else
        r = fail_missing(provider->name, err);
    if (r < 0)
        return r;
    /* The provider checks it by writing a query, which is not sent. */
    buffer_init(&path, 4096);
    r = provider_write_path(provider, &query, &path, &why);
    buffer_done(&path);
    return r < 0 ? error_set(err, r, "--emissions.providers: %s", why.text) : 0;
}

int zone_yearly(const char *own, const char *common, struct price_factor *ret_factor,
                struct error *err)
{
    const char *zone = own[0] ? own : common;

    if (!zone[0])
        return fail_missing("owid", err);
    if (find_country(zone, ret_factor) < 0)
        return error_set(err, -EINVAL,
                         "--emissions.%s: no yearly factor for '%.80s'; give a country, as FR or "
                         "FRA, or set --emissions.factor",
                         own[0] ? "providers" : "zone", zone);
    return 0;
}

const char *zone_country(const struct provider *provider, const char *zone)
{
    struct price_factor ignored;

    if (provider->country)
        return provider->country;
    return find_country(zone, &ignored) == 0 ? zone : "";
}

const char *zone_stand_in(const char *common, const char *queried)
{
    struct price_factor ignored;

    /* A zone that only begins like a country may be a postcode of another: CH1 is in Chester. */
    if (queried[0] && zone_of_country(common, &ignored) < 0)
        return queried;
    return find_country(common, &ignored) == 0 ? common : "";
}
