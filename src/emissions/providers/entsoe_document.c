#include "emissions/providers/entsoe_document.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"
#include "core/timestamp.h"
#include "emissions/providers/reply.h"
#include "emissions/providers/xml.h"

enum { WHY_BYTES = 160, PERIOD_DAYS_MAX = 366 };

enum direction { DIRECTION_UNKNOWN, GENERATION, CONSUMPTION };

struct reading {
    const char *eic;
    const struct entsoe_factors *factors;
    struct entsoe_mix *mix;
    bool in_series, in_period, in_point;

    /* of the series */
    enum direction direction;
    bool has_kind;
    unsigned kind;
    bool repeats; /* curve type A03: a position that is left out has the quantity before it */

    /* of the period; 0: not said */
    uint64_t start_us, end_us, resolution_us;
    uint64_t last_position; /* 0: no point yet */
    uint32_t last_kw;

    /* of the point */
    uint64_t position; /* 0: not said */
    bool has_quantity;
    uint32_t kw;
};

static int take_in_domain(struct reading *reading, struct span text)
{
    if (!span_equals(text, reading->eic))
        return -EBADMSG;
    if (reading->direction == DIRECTION_UNKNOWN)
        reading->direction = GENERATION;
    return 0;
}

/* Should a series name the area in both directions, this one wins: it is no generation. */
static int take_out_domain(struct reading *reading, struct span text)
{
    (void)text;
    reading->direction = CONSUMPTION;
    return 0;
}

static int take_unit(struct reading *reading, struct span text)
{
    (void)reading;
    return span_equals(text, "MAW") ? 0 : -EBADMSG;
}

static int take_curve_type(struct reading *reading, struct span text)
{
    reading->repeats = span_equals(text, "A03");
    return reading->repeats || span_equals(text, "A01") ? 0 : -EBADMSG;
}

/* A kind that the table does not have is no zero. */
static int take_psr_type(struct reading *reading, struct span text)
{
    int kind = entsoe_factors_find(reading->factors, text);

    if (kind < 0 || reading->in_period)
        return -EBADMSG;
    reading->kind = (unsigned)kind;
    reading->has_kind = true;
    return 0;
}

static int take_time(struct reading *reading, struct span text, uint64_t *ret_us)
{
    if (timestamp_parse(text, ret_us) < 0 || *ret_us % ENTSOE_QUARTER_US != 0 ||
        reading->last_position > 0)
        return -EBADMSG;
    return 0;
}

static int take_start(struct reading *reading, struct span text)
{
    return take_time(reading, text, &reading->start_us);
}

static int take_end(struct reading *reading, struct span text)
{
    return take_time(reading, text, &reading->end_us);
}

static int take_resolution(struct reading *reading, struct span text)
{
    static const struct {
        const char *text;
        unsigned quarters;
    } resolutions[] = {{"PT15M", 1}, {"PT30M", 2}, {"PT60M", 4}};

    if (reading->last_position > 0)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(resolutions); i++)
        if (span_equals(text, resolutions[i].text)) {
            reading->resolution_us = resolutions[i].quarters * ENTSOE_QUARTER_US;
            return 0;
        }
    return -EBADMSG;
}

static int take_position(struct reading *reading, struct span text)
{
    return parse_u64(text, &reading->position) < 0 ? -EBADMSG : 0;
}

/* Megawatts. What a plant at rest draws from the grid is negative, and generates nothing. */
static int take_quantity(struct reading *reading, struct span text)
{
    bool is_negative = span_strip_prefix(&text, "-");
    uint64_t watts;

    if (parse_millionths(text, &watts) < 0 || watts / 1000 > ENTSOE_KW_MAX)
        return -EBADMSG;
    reading->kw = is_negative ? 0 : (uint32_t)(watts / 1000);
    reading->has_quantity = true;
    return 0;
}

enum place { IN_SERIES, IN_PERIOD, IN_POINT };

static const struct {
    const char *name;
    enum place place; /* elsewhere it means something else */
    int (*take)(struct reading *reading, struct span text);
} elements[] = {
    {"inBiddingZone_Domain.mRID", IN_SERIES, take_in_domain},
    {"outBiddingZone_Domain.mRID", IN_SERIES, take_out_domain},
    {"quantity_Measure_Unit.name", IN_SERIES, take_unit},
    {"curveType", IN_SERIES, take_curve_type},
    {"psrType", IN_SERIES, take_psr_type},
    {"start", IN_PERIOD, take_start},
    {"end", IN_PERIOD, take_end},
    {"resolution", IN_PERIOD, take_resolution},
    {"position", IN_POINT, take_position},
    {"quantity", IN_POINT, take_quantity},
};

static bool is_in(const struct reading *reading, enum place place)
{
    switch (place) {
    case IN_SERIES:
        return reading->in_series;
    case IN_PERIOD:
        return reading->in_period;
    case IN_POINT:
        return reading->in_point;
    }
    return false;
}

static int take_text(struct reading *reading, const struct xml_event *event)
{
    for (size_t i = 0; i < ARRAY_SIZE(elements); i++)
        if (span_equals(event->name, elements[i].name) && is_in(reading, elements[i].place))
            return elements[i].take(reading, event->text);
    return 0;
}

static uint64_t time_of(const struct reading *reading, uint64_t position)
{
    return reading->start_us + (position - 1) * reading->resolution_us;
}

/* What the last point says, as far as `end_us`. */
static void put_last(const struct reading *reading, uint64_t end_us)
{
    uint64_t from_us;

    if (reading->last_position == 0 || reading->direction != GENERATION)
        return;
    from_us = time_of(reading, reading->last_position);
    if (!reading->repeats)
        end_us = MIN(end_us, from_us + reading->resolution_us);
    entsoe_mix_put(reading->mix, reading->kind, from_us, end_us, reading->last_kw);
}

static bool has_sane_interval(const struct reading *reading)
{
    static const uint64_t most_us = ENTSOE_QUARTER_US * 96 * PERIOD_DAYS_MAX;

    return reading->resolution_us > 0 && reading->start_us > 0 &&
           reading->end_us > reading->start_us && reading->end_us - reading->start_us <= most_us;
}

static int finish_point(struct reading *reading)
{
    uint64_t positions;

    reading->in_point = false;
    if (!has_sane_interval(reading) || !reading->has_quantity)
        return -EBADMSG;
    positions = (reading->end_us - reading->start_us) / reading->resolution_us;
    if (reading->position <= reading->last_position || reading->position > positions)
        return -EBADMSG;
    put_last(reading, time_of(reading, reading->position));
    reading->last_position = reading->position;
    reading->last_kw = reading->kw;
    return 0;
}

static int open_element(struct reading *reading, struct span name)
{
    if (span_equals(name, "TimeSeries") && !reading->in_series) {
        reading->in_series = true;
        reading->direction = DIRECTION_UNKNOWN;
        reading->has_kind = false;
        reading->repeats = false;
    } else if (span_equals(name, "Period") && reading->in_series && !reading->in_period) {
        if (!reading->has_kind || reading->direction == DIRECTION_UNKNOWN)
            return -EBADMSG;
        reading->in_period = true;
        reading->start_us = reading->end_us = reading->resolution_us = 0;
        reading->last_position = 0;
    } else if (span_equals(name, "Point") && reading->in_period && !reading->in_point) {
        reading->in_point = true;
        reading->position = 0;
        reading->has_quantity = false;
    } else if (span_equals(name, "TimeSeries") || span_equals(name, "Period") ||
               span_equals(name, "Point")) {
        return -EBADMSG;
    }
    return 0;
}

static int close_element(struct reading *reading, struct span name)
{
    if (span_equals(name, "Point"))
        return finish_point(reading);
    if (span_equals(name, "Period")) {
        put_last(reading, reading->end_us);
        reading->in_period = false;
    } else if (span_equals(name, "TimeSeries")) {
        reading->in_series = false;
    }
    return 0;
}

static int read_series(struct xml_scanner *xml, struct reading *reading)
{
    struct xml_event event;
    int r;

    while ((r = xml_next(xml, &event)) == 0 && event.kind != XML_END) {
        if (event.kind == XML_OPEN)
            r = open_element(reading, event.name);
        else if (event.kind == XML_CLOSE)
            r = close_element(reading, event.name);
        else
            r = take_text(reading, &event);
        if (r < 0)
            return r;
    }
    return r;
}

static int read_acknowledgement(struct xml_scanner *xml, struct error *err)
{
    char why[WHY_BYTES] = "no reason given";
    struct xml_event event;

    while (xml_next(xml, &event) == 0 && event.kind != XML_END)
        if (event.kind == XML_TEXT && span_equals(event.name, "text"))
            reply_copy_printable(event.text, why, sizeof(why));
    return error_set(err, -ENODATA, "entsoe: the service has no data: %s", why);
}

int entsoe_document_read(struct span document, const char *eic,
                         const struct entsoe_factors *factors, struct entsoe_mix *mix,
                         struct error *err)
{
    struct reading reading = {.eic = eic, .factors = factors, .mix = mix};
    struct xml_scanner xml;
    struct xml_event root;

    xml_init(&xml, document);
    if (xml_next(&xml, &root) < 0 || root.kind != XML_OPEN)
        return error_set(err, -EBADMSG, "entsoe: the answer is not XML; is a proxy in between?");
    if (span_equals(root.name, "Acknowledgement_MarketDocument"))
        return read_acknowledgement(&xml, err);
    if (!span_equals(root.name, "GL_MarketDocument") || read_series(&xml, &reading) < 0)
        return error_set(err, -EBADMSG, "entsoe: the answer is no document of generation in %s",
                         eic);
    return 0;
}
