/*
 * ENTSO-E transparency platform: generation per plant type (psrType) in a European bidding zone,
 * published an hour or more after the fact (document A75). The emission factor is the mean of
 * data/entsoe-factors.tsv weighted by generation; imports are not included.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_client.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/timestamp.h"
#include "emissions/provider.h"
#include "emissions/providers/xml.h"

#define QUARTER_US (UINT64_C(900000000))
#define HOUR_US    (4 * QUARTER_US)

enum {
    EIC_LEN = 16,
    TYPES_MAX = 32,
    QUARTERS_PER_HOUR = 4,
    HOURS = 25, /* the last one is in progress */
    QUARTERS = HOURS * QUARTERS_PER_HOUR,
    QUERY_HOURS = 12,
    PERIOD_DAYS_MAX = 366,
    KW_MAX = 1000000000,   /* per plant type: half of the continent's capacity */
    SIGNIFICANT_PART = 50, /* a type counts as significant above 1/50 of the sum of all peaks */
};

/* data/entsoe-factors.tsv, embedded by tools/embed. */
extern const char entsoe_factors_tsv[];
extern const size_t entsoe_factors_tsv_len;

static const struct {
    const char *zone, *eic;
} zones[] = {
    {"AT", "10YAT-APG------L"},  {"BE", "10YBE----------2"},    {"CH", "10YCH-SWISSGRIDZ"},
    {"CZ", "10YCZ-CEPS-----N"},  {"DE-LU", "10Y1001A1001A82H"}, {"DK1", "10YDK-1--------W"},
    {"DK2", "10YDK-2--------M"}, {"ES", "10YES-REE------0"},    {"FI", "10YFI-1--------U"},
    {"FR", "10YFR-RTE------C"},  {"GB", "10YGB----------A"},    {"IT", "10YIT-GRTN-----B"},
    {"NL", "10YNL----------L"},  {"NO1", "10YNO-1--------2"},   {"NO2", "10YNO-2--------T"},
    {"PL", "10YPL-AREA-----S"},  {"PT", "10YPT-REN------W"},    {"SE1", "10Y1001A1001A44P"},
    {"SE2", "10Y1001A1001A45N"}, {"SE3", "10Y1001A1001A46L"},   {"SE4", "10Y1001A1001A47J"},
};

/* Zones that are not in the table are given by their EIC code. NULL: neither. */
static const char *find_eic(const char *zone)
{
    for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
        if (strcmp(zone, zones[i].zone) == 0)
            return zones[i].eic;
    return strlen(zone) == EIC_LEN && factor_is_zone(zone) ? zone : NULL;
}

static void put_time(struct buffer *path, const char *name, uint64_t t_us)
{
    struct civil_minute at = timestamp_minute(t_us);
    char text[64];

    snprintf(text, sizeof(text), "%04u%02u%02u%02u00", at.year, at.month, at.day, at.hour);
    http_put_parameter(path, name, text);
}

/* The service accepts its token in the query only: PROVIDER_KEY_IN_PATH. */
static int write_path(const struct provider_query *query, struct buffer *path)
{
    const char *eic = find_eic(query->zone);

    if (!eic || !query->token || !query->token[0])
        return -EINVAL;
    buffer_str(path, "/api");
    http_put_parameter(path, "documentType", "A75");
    http_put_parameter(path, "processType", "A16");
    http_put_parameter(path, "in_Domain", eic);
    put_time(path, "periodStart", query->now_us - MIN(query->now_us, QUERY_HOURS * HOUR_US));
    put_time(path, "periodEnd", query->now_us);
    http_put_parameter(path, "securityToken", query->token);
    return 0;
}

/* Generation of one plant type over the last day. */
struct generation {
    bool is_storage; /* left out of the mean */
    uint64_t mg_per_kwh;
    bool is_known[QUARTERS];
    uint32_t kw[QUARTERS];
};

enum level { IN_DOCUMENT, IN_SERIES, IN_PERIOD, IN_POINT, LEVELS };

static const char *const level_elements[LEVELS] = {
    [IN_SERIES] = "TimeSeries", [IN_PERIOD] = "Period", [IN_POINT] = "Point"};

enum field {
    IN_DOMAIN,
    OUT_DOMAIN,
    UNIT,
    CURVE_TYPE,
    PSR_TYPE,
    START,
    END,
    RESOLUTION,
    POSITION,
    QUANTITY,
    FIELDS,
};

static const struct {
    const char *name;
    enum level level; /* ignored further out */
} fields[FIELDS] = {
    [IN_DOMAIN] = {"inBiddingZone_Domain.mRID", IN_SERIES},
    [OUT_DOMAIN] = {"outBiddingZone_Domain.mRID", IN_SERIES},
    [UNIT] = {"quantity_Measure_Unit.name", IN_SERIES},
    [CURVE_TYPE] = {"curveType", IN_SERIES},
    [PSR_TYPE] = {"psrType", IN_SERIES},
    [START] = {"start", IN_PERIOD},
    [END] = {"end", IN_PERIOD},
    [RESOLUTION] = {"resolution", IN_PERIOD},
    [POSITION] = {"position", IN_POINT},
    [QUANTITY] = {"quantity", IN_POINT},
};

struct document {
    const char *eic;
    uint64_t from_us; /* of types[].kw[0], on the hour */
    struct generation types[TYPES_MAX];

    enum level level;
    struct span texts[FIELDS];
    bool is_read[LEVELS]; /* the fields of that level are parsed: no more may follow */

    /* of the series */
    struct generation *type; /* NULL: consumption, as pumping is */
    bool repeats;            /* curve type A03: omitted positions repeat the point before them */

    /* of the period */
    uint64_t start_us, end_us, resolution_us;
    uint64_t last_position; /* 0: no point yet */
    uint32_t last_kw;
};

/* A plant type without a row is an error: to leave it out would change the mean. */
static struct generation *find_type(struct document *document, struct span psr_type)
{
    struct span table = {entsoe_factors_tsv, entsoe_factors_tsv_len};
    size_t row = 0;

    while (table.len > 0 && row < TYPES_MAX) {
        struct span line = span_cut(&table, '\n'), name = span_cut(&line, '\t');
        struct span grams = span_cut(&line, '\t');
        struct generation *type = &document->types[row];

        if (name.len == 0 || name.data[0] == '#')
            continue;
        row++;
        if (name.len != psr_type.len || memcmp(name.data, psr_type.data, name.len) != 0)
            continue;
        type->is_storage = span_equals(grams, "-");
        return type->is_storage || factor_parse_grams(grams, &type->mg_per_kwh) == 0 ? type : NULL;
    }
    return NULL;
}

static int read_series(struct document *document)
{
    const struct span *texts = document->texts;
    bool is_consumption = texts[OUT_DOMAIN].len > 0;

    document->repeats = span_equals(texts[CURVE_TYPE], "A03");
    document->type = find_type(document, texts[PSR_TYPE]);
    if (!document->type || (texts[UNIT].len > 0 && !span_equals(texts[UNIT], "MAW")) ||
        (texts[CURVE_TYPE].len > 0 && !document->repeats && !span_equals(texts[CURVE_TYPE], "A01")))
        return -EBADMSG;
    if ((texts[IN_DOMAIN].len > 0 || !is_consumption) &&
        !span_equals(texts[IN_DOMAIN], document->eic))
        return -EBADMSG;
    if (is_consumption)
        document->type = NULL;
    return 0;
}

static int read_period(struct document *document)
{
    static const struct {
        const char *text;
        unsigned quarters;
    } resolutions[] = {{"PT15M", 1}, {"PT30M", 2}, {"PT60M", 4}};
    const struct span *texts = document->texts;

    document->resolution_us = 0;
    for (size_t i = 0; i < ARRAY_SIZE(resolutions); i++)
        if (span_equals(texts[RESOLUTION], resolutions[i].text))
            document->resolution_us = resolutions[i].quarters * QUARTER_US;
    if (document->resolution_us == 0 || timestamp_parse(texts[START], &document->start_us) < 0 ||
        timestamp_parse(texts[END], &document->end_us) < 0 ||
        document->start_us % QUARTER_US != 0 || document->end_us % QUARTER_US != 0 ||
        document->end_us <= document->start_us ||
        document->end_us - document->start_us > PERIOD_DAYS_MAX * (24 * HOUR_US))
        return -EBADMSG;
    document->last_position = 0;
    return 0;
}

static size_t quarter_of(const struct document *document, uint64_t t_us)
{
    uint64_t since_us = t_us - MIN(t_us, document->from_us);

    return MIN(since_us / QUARTER_US, (uint64_t)QUARTERS);
}

/* Stores the last point, which holds until `end_us` at most. */
static void put_last_point(const struct document *document, uint64_t end_us)
{
    uint64_t start_us =
        document->start_us + (document->last_position - 1) * document->resolution_us;
    size_t end;

    if (document->last_position == 0 || !document->type)
        return;
    if (!document->repeats)
        end_us = MIN(end_us, start_us + document->resolution_us);
    end = quarter_of(document, end_us);
    for (size_t i = quarter_of(document, start_us); i < end; i++) {
        document->type->kw[i] = document->last_kw;
        document->type->is_known[i] = true;
    }
}

/* Megawatts. A plant that draws power from the grid has a negative value and generates nothing. */
static int read_point(struct document *document)
{
    struct span quantity = document->texts[QUANTITY];
    bool is_negative = span_strip_prefix(&quantity, "-");
    uint64_t position, watts;

    if (parse_u64(document->texts[POSITION], &position) < 0 ||
        parse_millionths(quantity, &watts) < 0 || watts / 1000 > KW_MAX ||
        position <= document->last_position ||
        position > (document->end_us - document->start_us) / document->resolution_us)
        return -EBADMSG;
    put_last_point(document, document->start_us + (position - 1) * document->resolution_us);
    document->last_position = position;
    document->last_kw = is_negative ? 0 : (uint32_t)(watts / 1000);
    return 0;
}

static int open_element(struct document *document, struct span name)
{
    enum level outer = document->level;
    int r = 0;

    for (enum level level = IN_SERIES; level < LEVELS; level++) {
        if (!span_equals(name, level_elements[level]))
            continue;
        if (level != outer + 1)
            return -EBADMSG;
        if (level == IN_PERIOD && !document->is_read[IN_SERIES])
            r = read_series(document);
        else if (level == IN_POINT && !document->is_read[IN_PERIOD])
            r = read_period(document);
        document->is_read[outer] = true;
        document->is_read[level] = false;
        document->level = level;
        for (size_t i = 0; i < FIELDS; i++)
            if (fields[i].level == level)
                document->texts[i] = (struct span){NULL, 0};
    }
    return r;
}

static int close_element(struct document *document, struct span name)
{
    int r = 0;

    if (document->level == IN_DOCUMENT || !span_equals(name, level_elements[document->level]))
        return 0;
    if (document->level == IN_POINT)
        r = read_point(document);
    else if (document->level == IN_PERIOD && document->is_read[IN_PERIOD])
        put_last_point(document, document->end_us);
    document->level--;
    return r;
}

static int keep_text(struct document *document, const struct xml_event *event)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (!span_equals(event->name, fields[i].name) || document->level < fields[i].level)
            continue;
        if (document->is_read[fields[i].level])
            return -EBADMSG;
        document->texts[i] = event->text;
    }
    return 0;
}

static int read_acknowledgement(struct xml_scanner *xml, struct error *err)
{
    char why[160] = "no reason given";
    struct xml_event event;

    while (xml_next(xml, &event) == 0 && event.kind != XML_END)
        if (event.kind == XML_TEXT && span_equals(event.name, "text"))
            provider_copy_printable(event.text, why, sizeof(why));
    return error_set(err, -ENODATA, "the service has no data: %s", why);
}

static int read_document(struct document *document, struct span body, struct error *err)
{
    struct xml_scanner xml;
    struct xml_event event;
    int r;

    xml_init(&xml, body);
    if (xml_next(&xml, &event) < 0 || event.kind != XML_OPEN)
        return error_set(err, -EBADMSG, "the reply is not XML; is a proxy in between?");
    if (span_equals(event.name, "Acknowledgement_MarketDocument"))
        return read_acknowledgement(&xml, err);
    r = span_equals(event.name, "GL_MarketDocument") ? 0 : -EBADMSG;
    while (r == 0 && (r = xml_next(&xml, &event)) == 0 && event.kind != XML_END)
        r = event.kind == XML_OPEN    ? open_element(document, event.name)
            : event.kind == XML_CLOSE ? close_element(document, event.name)
                                      : keep_text(document, &event);
    return r < 0 ? error_set(err, -EBADMSG, "the reply is not a generation document for %s",
                             document->eic)
                 : 0;
}

/*
 * The mean over the newest whole hour that every significant plant type has data for: some are
 * published hours after others, and without them the grid would look cleaner or dirtier than it
 * is. Sums stay below 32 types * 4 quarters * 1e9 kW * 5e6 mg, 6.4e17: twice that fits 64 bits.
 */
static int average_newest_hour(const struct document *document, struct emission_factor *factor)
{
    uint64_t peaks_kw[TYPES_MAX] = {0}, sum_of_peaks_kw = 0;

    for (size_t t = 0; t < TYPES_MAX; t++) {
        const struct generation *type = &document->types[t];

        for (size_t i = 0; i < QUARTERS && !type->is_storage; i++)
            peaks_kw[t] = MAX(peaks_kw[t], type->kw[i]);
        sum_of_peaks_kw += peaks_kw[t];
    }
    for (size_t hour = HOURS; hour-- > 0;) {
        uint64_t weighted = 0, total_kw = 0;
        bool is_whole = true;

        for (size_t n = 0; n < (size_t)TYPES_MAX * QUARTERS_PER_HOUR; n++) {
            const struct generation *type = &document->types[n / QUARTERS_PER_HOUR];
            size_t quarter = hour * QUARTERS_PER_HOUR + n % QUARTERS_PER_HOUR;
            uint64_t kw = type->is_storage ? 0 : type->kw[quarter];

            if (peaks_kw[n / QUARTERS_PER_HOUR] * SIGNIFICANT_PART > sum_of_peaks_kw)
                is_whole = is_whole && type->is_known[quarter];
            weighted += kw * type->mg_per_kwh;
            total_kw += kw;
        }
        if (!is_whole || total_kw == 0)
            continue;
        factor->time_us = document->from_us + hour * HOUR_US;
        factor->mg_per_kwh = (2 * weighted + total_kw) / (2 * total_kw);
        return 0;
    }
    return -ENODATA;
}

static int parse(struct span body, const struct provider_query *query,
                 struct emission_factor *factor, struct error *err)
{
    _cleanup_free_ struct document *document = calloc(1, sizeof(*document));
    uint64_t hour = query->now_us / HOUR_US;
    int r;

    if (!document)
        return -ENOMEM;
    document->eic = find_eic(query->zone);
    if (!document->eic)
        return -EBADMSG;
    document->from_us = (hour - MIN(hour, (uint64_t)HOURS - 1)) * HOUR_US;
    r = read_document(document, body, err);
    return r < 0 ? r : average_newest_hour(document, factor);
}

const struct provider entsoe_provider = {
    .name = "entsoe",
    .host = "web-api.tp.entsoe.eu",
    .key = PROVIDER_KEY_IN_PATH,
    .secrets = {{"entsoe", "ENTSOE_TOKEN"}},
    .refresh_s = 30 * 60,
    .timeout_s = 30,
    .lag_s = 6 * 3600,
    .body_bytes_max = 4 << 20, /* half a day of a zone is less than 1 MB */
    .signal = PRICE_AVERAGE,
    .basis = PRICE_LIFECYCLE,
    .zones = "one like FR or DE-LU, or an EIC code",
    .write_path = write_path,
    .parse = parse,
};
