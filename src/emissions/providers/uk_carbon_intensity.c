/*
 * UK Carbon Intensity (NESO): consumption in Great Britain, every half hour; direct emissions,
 * imports at the foreign grid's factor. A zone is GB, the number of a region (1 to 17), or the
 * outward part of a postcode (RG10); regions have forecasts only.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/parse.h"
#include "emissions/provider.h"

enum { REGIONS = 17 };

enum area { AREA_NATION, AREA_REGION, AREA_POSTCODE, AREA_NONE };

static enum area classify_zone(const char *zone)
{
    static const char outward[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t len = strlen(zone);
    uint64_t region;

    if (strcmp(zone, "GB") == 0)
        return AREA_NATION;
    if (parse_u64_max(span_of(zone), REGIONS, &region) == 0)
        return region > 0 && zone[0] != '0' ? AREA_REGION : AREA_NONE;
    if (len >= 2 && len <= 4 && zone[0] >= 'A' && strspn(zone, outward) == len &&
        strpbrk(zone, "0123456789"))
        return AREA_POSTCODE;
    return AREA_NONE;
}

static int write_path(const struct provider_query *query, struct buffer *path)
{
    static const char *const paths[] = {
        [AREA_NATION] = "/intensity",
        [AREA_REGION] = "/regional/regionid/",
        [AREA_POSTCODE] = "/regional/postcode/",
    };
    enum area area = classify_zone(query->zone);

    if (area == AREA_NONE)
        return -EINVAL;
    buffer_str(path, paths[area]);
    if (area != AREA_NATION)
        buffer_str(path, query->zone);
    return 0;
}

/* `actual` is null until the half hour is settled. */
static int read_half(const struct json *half, struct emission_factor *factor)
{
    const struct json *intensity = json_get(half, "intensity");
    int r;

    if (!provider_json_time(json_get(half, "from"), &factor->time_us))
        return -ENODATA;
    r = provider_json_grams(json_get(intensity, "actual"), &factor->mg_per_kwh);
    factor->is_estimated = r == -ENODATA;
    return r == -ENODATA ? provider_json_grams(json_get(intensity, "forecast"), &factor->mg_per_kwh)
                         : r;
}

static bool is_in_zone(const struct json *region, enum area area, const char *zone)
{
    const struct json *postcode = json_get(region, "postcode");
    uint64_t wanted = 0;
    int64_t found;

    if (area == AREA_POSTCODE)
        return region && (!postcode || provider_json_equals(postcode, zone));
    return parse_u64(span_of(zone), &wanted) == 0 &&
           json_int64(json_get(region, "regionid"), &found) && found == (int64_t)wanted;
}

static int read_root(const struct json *root, const struct provider_query *query,
                     struct emission_factor *factor, struct error *err)
{
    enum area area = classify_zone(query->zone);
    const struct json *data = json_get(root, "data");
    int r;

    (void)err;
    if (area != AREA_NATION) {
        if (!is_in_zone(json_at(data, 0), area, query->zone))
            return -EBADMSG;
        data = json_get(json_at(data, 0), "data");
    }
    r = provider_newest_row(data, read_half, factor);
    /* A region with wind or nuclear power only may well have 0, but not all of Great Britain. */
    return r == 0 && area == AREA_NATION && factor->mg_per_kwh == 0 ? -ERANGE : r;
}

const struct provider uk_carbon_intensity_provider = {
    .name = "uk_carbon_intensity",
    .host = "api.carbonintensity.org.uk",
    .country = "GB",
    .refresh_s = 15 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_AVERAGE,
    .basis = PRICE_DIRECT,
    .zones = "GB, a region from 1 to 17, or the outward part of a postcode like RG10",
    .write_path = write_path,
    .read = read_root,
};
