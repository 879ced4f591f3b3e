/* Replies of emission providers, and tables: every parser gets the bytes. Any bytes yield an error
 * with a text, or a plausible factor that is not from the future. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/timestamp.h"
#include "emissions/provider.h"
#include "emissions/providers/xml.h"
#include "emissions/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t NOW_US = 1768473600000000, HOUR_US = 3600000000; /* 2026-01-15T10:40Z */

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_provider(struct span text, const struct provider *provider, const char *zone)
{
    struct provider_query query = {.zone = zone, .now_us = NOW_US};
    struct emission_factor factor;
    struct error err = {""};
    int r = provider_parse(provider, text, &query, &factor, &err);

    check(r == 0 || r == -EBADMSG || r == -ENODATA || r == -ERANGE || r == -ESTALE);
    if (r < 0) {
        check(err.text[0] != '\0');
        return;
    }
    check(factor.mg_per_kwh <= FACTOR_MAX_MG && factor.time_us <= NOW_US + HOUR_US);
    check(price_basis_words[factor.basis]);
}

static void check_tables(struct span text)
{
    uint64_t mg;

    if (zone_find_row(text, "FRA", &mg) == 0)
        check(mg <= FACTOR_MAX_MG);
    if (factor_parse_grams(text, &mg) == 0)
        check(mg <= FACTOR_MAX_MG);
}

/* What opens closes; there are no more events than bytes, except for empty elements. */
static void check_xml(struct span text)
{
    size_t events = 0, depth = 0;
    struct xml_scanner xml;
    struct xml_event event;

    xml_init(&xml, text);
    while (xml_next(&xml, &event) == 0) {
        if (event.kind == XML_END) {
            check(depth == 0);
            break;
        }
        check(events++ <= 2 * text.len);
        check(event.kind != XML_TEXT || (event.text.len > 0 && depth > 0));
        depth += event.kind == XML_OPEN;
        depth -= event.kind == XML_CLOSE;
        check(depth <= XML_DEPTH_MAX);
    }
}

static void check_texts(struct span text)
{
    char token[32] = "", why[32];
    struct error err;
    uint64_t t_us;

    if (timestamp_parse(text, &t_us) == 0)
        check(timestamp_minute(t_us).year <= 10000);
    if (watttime_provider.parse_token(text, token, sizeof(token), &err) == 0)
        check(token[0] && strlen(token) < sizeof(token) && !strpbrk(token, "\r\n "));
    provider_error_message(text, why, sizeof(why));
    check(strlen(why) < sizeof(why));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};

    check_provider(text, &rte_provider, "FR");
    check_provider(text, &electricity_maps_provider, "FR");
    check_provider(text, &watttime_provider, "CAISO_NORTH");
    check_provider(text, &uk_carbon_intensity_provider, "GB");
    check_provider(text, &uk_carbon_intensity_provider, "13");
    check_provider(text, &uk_carbon_intensity_provider, "RG10");
    check_provider(text, &entsoe_provider, "FR");
    check_tables(text);
    check_xml(text);
    check_texts(text);
    return 0;
}
