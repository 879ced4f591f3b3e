/* emissions/poll: requests to providers, what their replies mean, and when the next poll is due.
 * All replies are invented. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/poll.h"
#include "random.h"

#define SECOND     USEC_PER_SEC
#define MINUTE     (60 * SECOND)
#define HOUR       (60 * MINUTE)
#define NOW_US     UINT64_C(1768473600000000) /* 2026-01-15T10:40Z */
#define AT_0900_US UINT64_C(1768467600000000)
#define AT_0905_US UINT64_C(1768467900000000)
#define AT_0915_US UINT64_C(1768468500000000)
#define AT_0930_US UINT64_C(1768469400000000)

#define KEY         "k3y-S3CRET/+"
#define KEY_ESCAPED "k3y-S3CRET%2F%2B"
#define BASIC       "amFuZTprM3ktUzNDUkVULys=" /* jane:KEY */

#define JSON       "Content-Type: application/json; charset=utf-8"
#define RTE        "{\"results\":[{\"taux_co2\":23,\"date_heure\":\"2026-01-15T10:15:00+01:00\"}]}"
#define MAPS(zone) MAPS_OF(zone, "41", "2026-01-15T09:00:00.000Z")
#define MAPS_OF(zone, value, time)                                                                 \
    "{\"zone\":\"" zone "\",\"carbonIntensity\":" value ",\"datetime\":\"" time                    \
    "\",\"emissionFactorType\":\"lifecycle\",\"isEstimated\":true}"
#define LOGIN(token) "{\"token\":\"" token "\"}"
#define WATTTIME                                                                                   \
    "{\"data\":[{\"point_time\":\"2026-01-15T09:00:00+00:00\",\"value\":912.4},"                   \
    "{\"point_time\":\"2026-01-15T09:05:00+00:00\",\"value\":905.1}],"                             \
    "\"meta\":{\"region\":\"CAISO_NORTH\",\"signal_type\":\"co2_moer\","                           \
    "\"units\":\"lbs_co2_per_mwh\",\"data_point_period_seconds\":300}}"
#define UK                                                                                         \
    "{\"data\":[{\"from\":\"2026-01-15T09:30Z\",\"to\":\"2026-01-15T10:00Z\","                     \
    "\"intensity\":{\"forecast\":187,\"actual\":181,\"index\":\"moderate\"}}]}"
#define ENTSOE                                                                                     \
    "<GL_MarketDocument xmlns=\"urn:iec62325.351:tc57wg16:451-6:generationloaddocument:3:0\">"     \
    "<TimeSeries><mRID>1</mRID><inBiddingZone_Domain.mRID codingScheme=\"A01\">10YFR-RTE------C"   \
    "</inBiddingZone_Domain.mRID><quantity_Measure_Unit.name>MAW</quantity_Measure_Unit.name>"     \
    "<curveType>A03</curveType><MktPSRType><psrType>B14</psrType></MktPSRType><Period>"            \
    "<timeInterval><start>2026-01-15T06:00Z</start><end>2026-01-15T10:00Z</end></timeInterval>"    \
    "<resolution>PT60M</resolution><Point><position>1</position><quantity>48210</quantity>"        \
    "</Point><Point><position>3</position><quantity>47990</quantity></Point></Period>"             \
    "</TimeSeries></GL_MarketDocument>"
#define NOTHING(text)                                                                              \
    "<Acknowledgement_MarketDocument><Reason><code>999</code><text>" text                          \
    "</text></Reason></Acknowledgement_MarketDocument>"

enum { ANSWERS_MAX = 8 };

struct answer {
    int r; /* of send, with the body as its text */
    int status;
    const char *headers; /* "Name: value", by lines */
    const char *body;
    uint64_t takes_us;
};

struct fixture {
    struct clock_manual clock;
    struct poll_options options;
    struct poll *poll;
    struct answer answers[ANSWERS_MAX];
    size_t answer_count, asked;
    struct asked {
        char url[2048], headers[8192]; /* these by lines */
        uint64_t timeout_us;
        size_t max_bytes;
        const char *ca_path;
    } asked_for[ANSWERS_MAX];
    enum { DRAW_MOST, DRAW_LEAST, DRAW_ANY } how;
    struct random_source source;
    struct emission_factor factor;
    struct error err;
};

static uint64_t draw(void *context, uint64_t below)
{
    struct fixture *f = context;

    assert_true(below > 0);
    if (f->how == DRAW_ANY)
        return random_u64(&f->source) % below;
    return f->how == DRAW_MOST ? below - 1 : 0;
}

static void pass_headers(const struct http_request *request, const char *headers)
{
    struct span rest = span_of(headers ? headers : "");

    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n'), value = line, name = span_cut(&value, ':');
        char name_text[64], value_text[1024];

        assert_true(span_strip_prefix(&value, " "));
        snprintf(name_text, sizeof(name_text), "%.*s", (int)name.len, name.data);
        snprintf(value_text, sizeof(value_text), "%.*s", (int)value.len, value.data);
        request->on_header(request->context, name_text, value_text);
    }
}

static void keep_request(struct asked *asked, const struct http_request *request)
{
    size_t len = 0;

    assert_true(strlen(request->url) < sizeof(asked->url));
    memcpy(asked->url, request->url, strlen(request->url) + 1);
    for (size_t i = 0; request->headers[i]; i++)
        len += (size_t)snprintf(asked->headers + len, sizeof(asked->headers) - len, "%s\n",
                                request->headers[i]);
    assert_true(len < sizeof(asked->headers));
    asked->timeout_us = request->timeout_us;
    asked->max_bytes = request->max_bytes;
    asked->ca_path = request->ca_path;
}

/* In place of the client. */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    struct fixture *f = (struct fixture *)client;
    const struct answer *answer = &f->answers[f->asked];

    assert_true(f->asked < f->answer_count);
    assert_null(request->body.data);
    assert_null(request->method);
    assert_true(request->proxy_by_environment && request->connect_timeout_us == 5 * SECOND);
    assert_true(f->asked > 0 || !ret_reply->body.data); /* nothing is kept of a long answer */
    keep_request(&f->asked_for[f->asked++], request);
    f->clock.now_us += answer->takes_us;
    ret_reply->status = 0;
    if (answer->r < 0)
        return error_set(err, answer->r, "%s", answer->body);
    pass_headers(request, answer->headers);
    ret_reply->status = answer->status;
    ret_reply->body.len = 0;
    ret_reply->body.cap_bytes = request->max_bytes;
    buffer_str(&ret_reply->body, answer->body);
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    clock_manual_init(&f->clock, NOW_US);
    f->options = (struct poll_options){
        .user = "jane", .key = KEY, .clock = &f->clock.clock, .draw = draw, .context = f};
    f->options.client = (struct http_client *)f;
    f->source.state = 1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    poll_free(f->poll);
    free(f);
    return 0;
}

static void open_poll(struct fixture *f, const struct provider *provider, const char *zone)
{
    poll_free(f->poll);
    f->poll = NULL;
    f->options.provider = provider;
    f->options.zone = zone;
    assert_int_equal(poll_new(&f->options, &f->poll, &f->err), 0);
}

static void put_answer(struct fixture *f, int status, const char *headers, const char *body)
{
    assert_true(f->answer_count < ANSWERS_MAX);
    f->answers[f->answer_count++] =
        (struct answer){.status = status, .headers = headers, .body = body};
}

/* All that was laid out is asked for, and nothing else. */
static int ask(struct fixture *f)
{
    int r;

    f->asked = 0;
    memset(f->asked_for, 0, sizeof(f->asked_for));
    f->factor = (struct emission_factor){.mg_per_kwh = 7};
    f->err.text[0] = '\0';
    r = poll_fetch(f->poll, &f->factor, &f->err);
    assert_int_equal(f->asked, f->answer_count);
    assert_int_equal(r < 0, f->err.text[0] != '\0');
    assert_true(r == 0 || f->factor.mg_per_kwh == 7);
    assert_null(strstr(f->err.text, KEY));
    assert_null(strstr(f->err.text, KEY_ESCAPED));
    assert_null(strstr(f->err.text, BASIC));
    f->answer_count = 0;
    return r;
}

static int ask_for(struct fixture *f, int status, const char *headers, const char *body)
{
    put_answer(f, status, headers, body);
    return ask(f);
}

static void assert_due_in(const struct fixture *f, uint64_t us)
{
    assert_int_equal(poll_due_us(f->poll) - f->clock.now_us, us);
}

static void assert_says(const struct fixture *f, const char *text)
{
    if (!strstr(f->err.text, text))
        fail_msg("'%s' does not say '%s'", f->err.text, text);
}

static bool was_sent(const struct fixture *f, size_t index, const char *header)
{
    char line[1024];

    snprintf(line, sizeof(line), "%s\n", header);
    return strstr(f->asked_for[index].headers, line);
}

static void the_first_request_is_due_within_a_minute_or_the_interval(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &rte_provider, "FR");
    assert_due_in(f, MINUTE - 1);
    f->options.interval_us = 5 * SECOND;
    open_poll(f, &rte_provider, "FR");
    assert_due_in(f, 5 * SECOND - 1);
    f->how = DRAW_LEAST;
    open_poll(f, &rte_provider, "FR");
    assert_due_in(f, 0);
}

static void each_provider_has_its_own_request(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *zone, *body, *url, *headers;
        uint64_t timeout_us;
        size_t max_bytes;
        uint64_t mg, time_us, refresh_us;
    } cases[] = {
        {&rte_provider, "FR", RTE,
         "https://odre.opendatasoft.com/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/"
         "records?select=taux_co2%2Cdate_heure&where=taux_co2%20is%20not%20null"
         "&order_by=date_heure%20desc&limit=1&timezone=Europe%2FParis&include_links=false"
         "&include_app_metas=false",
         "Accept: application/json\n", 10 * SECOND, 1 << 20, 23000, AT_0915_US, 15 * MINUTE},
        {&electricity_maps_provider, "FR", MAPS("FR"),
         "https://api.electricitymaps.com/v3/carbon-intensity/latest?zone=FR"
         "&emissionFactorType=lifecycle&shouldUseFallbackCallerLookup=false",
         "Accept: application/json\nauth-token: " KEY "\n", 10 * SECOND, 1 << 20, 41000, AT_0900_US,
         15 * MINUTE},
        {&uk_carbon_intensity_provider, "GB", UK, "https://api.carbonintensity.org.uk/intensity",
         "Accept: application/json\n", 10 * SECOND, 1 << 20, 181000, AT_0930_US, 15 * MINUTE},
        {&entsoe_provider, "FR", ENTSOE,
         "https://web-api.tp.entsoe.eu/api?documentType=A75&processType=A16"
         "&in_Domain=10YFR-RTE------C&periodStart=202601142200&periodEnd=202601151000"
         "&securityToken=" KEY_ESCAPED,
         "Accept: application/xml, text/xml\n", 30 * SECOND, 4 << 20, 12000, AT_0900_US,
         30 * MINUTE},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, cases[i].provider, cases[i].zone);
        assert_int_equal(ask_for(f, 200, NULL, cases[i].body), 0);
        assert_string_equal(f->asked_for[0].url, cases[i].url);
        assert_string_equal(f->asked_for[0].headers, cases[i].headers);
        assert_int_equal(f->asked_for[0].timeout_us, cases[i].timeout_us);
        assert_int_equal(f->asked_for[0].max_bytes, cases[i].max_bytes);
        assert_null(f->asked_for[0].ca_path);
        assert_int_equal(f->factor.basis, cases[i].provider->basis);
        assert_int_equal(f->factor.mg_per_kwh, cases[i].mg);
        assert_int_equal(f->factor.time_us, cases[i].time_us);
        assert_due_in(f, cases[i].refresh_us * 11 / 10);
    }
}

static void watttime_is_logged_into_first(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t0k3n-1"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_string_equal(f->asked_for[0].url, "https://api.watttime.org/login");
    assert_string_equal(f->asked_for[0].headers,
                        "Accept: application/json\nAuthorization: Basic " BASIC "\n");
    assert_string_equal(f->asked_for[1].url,
                        "https://api.watttime.org/v3/historical?region=CAISO_NORTH"
                        "&start=2026-01-15T10%3A20Z&end=2026-01-15T10%3A40Z&signal_type=co2_moer");
    assert_string_equal(f->asked_for[1].headers,
                        "Accept: application/json\nAuthorization: Bearer t0k3n-1\n");
    assert_int_equal(f->asked_for[1].max_bytes, 1 << 20);
    assert_int_equal(f->factor.mg_per_kwh, 410546);
    assert_int_equal(f->factor.time_us, AT_0905_US);
    assert_due_in(f, 330 * SECOND);
}

static void url_cas_and_basis_are_as_configured(void **state)
{
    struct fixture *f = *state;

    f->options.url = "https://127.0.0.1:8443";
    f->options.ca_path = "/etc/ca.pem";
    f->options.basis = PRICE_DIRECT;
    open_poll(f, &electricity_maps_provider, "DE");
    put_answer(f, 200, JSON,
               "{\"zone\":\"DE\",\"carbonIntensity\":300.5,\"datetime\":\"2026-01-15T09:00Z\"}");
    assert_int_equal(ask(f), 0);
    assert_string_equal(f->asked_for[0].url,
                        "https://127.0.0.1:8443/v3/carbon-intensity/latest?zone=DE"
                        "&emissionFactorType=direct&shouldUseFallbackCallerLookup=false");
    assert_string_equal(f->asked_for[0].ca_path, "/etc/ca.pem");
    assert_int_equal(f->factor.mg_per_kwh, 300500);
    assert_int_equal(f->factor.basis, PRICE_DIRECT);
    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_string_equal(f->asked_for[0].url, "https://127.0.0.1:8443/login");
    assert_string_equal(f->asked_for[0].ca_path, "/etc/ca.pem");
    assert_ptr_equal(strstr(f->asked_for[1].url, "https://127.0.0.1:8443/v3/historical?"),
                     f->asked_for[1].url);
}

static void after_a_reply_the_next_poll_is_due_at_the_interval(void **state)
{
    struct fixture *f = *state;

    f->options.interval_us = HOUR;
    open_poll(f, &rte_provider, "FR");
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_due_in(f, 66 * MINUTE);
    f->how = DRAW_LEAST;
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_due_in(f, 54 * MINUTE);
}

static void the_interval_starts_after_the_reply(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &rte_provider, "FR");
    put_answer(f, 200, JSON, RTE);
    f->answers[0].takes_us = 4 * SECOND;
    assert_int_equal(ask(f), 0);
    assert_int_equal(poll_due_us(f->poll), NOW_US + 4 * SECOND + 990 * SECOND);
}

static void failures_in_a_row_back_off(void **state)
{
    static const unsigned minutes[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct fixture *f = *state;

    open_poll(f, &rte_provider, "FR");
    for (size_t i = 0; i < ARRAY_SIZE(minutes); i++) {
        f->how = i % 2 == 0 ? DRAW_MOST : DRAW_LEAST;
        assert_int_equal(ask_for(f, 500, JSON, ""), -EREMOTEIO);
        assert_due_in(f, minutes[i] * MINUTE / (i % 2 == 0 ? 1 : 2));
    }
    f->how = DRAW_MOST;
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_int_equal(ask_for(f, 500, JSON, ""), -EREMOTEIO);
    assert_due_in(f, MINUTE);
}

static void any_random_number_keeps_the_bounds(void **state)
{
    struct fixture *f = *state;
    uint64_t least_us = UINT64_MAX, most_us = 0;

    f->how = DRAW_ANY;
    for (int i = 0; i < 2000; i++) {
        uint64_t due_us;

        open_poll(f, &rte_provider, "FR");
        assert_true(poll_due_us(f->poll) - NOW_US < MINUTE);
        assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
        due_us = poll_due_us(f->poll) - NOW_US;
        assert_true(due_us >= 810 * SECOND && due_us <= 990 * SECOND);
        least_us = MIN(least_us, due_us);
        most_us = MAX(most_us, due_us);
        assert_int_equal(ask_for(f, 500, JSON, ""), -EREMOTEIO);
        due_us = poll_due_us(f->poll) - NOW_US;
        assert_true(due_us >= 30 * SECOND && due_us <= MINUTE);
    }
    assert_true(least_us < 812 * SECOND && most_us > 988 * SECOND);
}

static void an_error_has_the_status_and_the_services_message(void **state)
{
    static const struct {
        int status, r;
        const char *headers, *body, *text;
    } cases[] = {
        {400, -ENXIO, JSON, "{\"error_code\":\"ODSQLError\",\"message\":\"bad query\"}",
         "rte: the service replies with status 400: bad query"},
        {404, -ENXIO, "Content-Type: text/html", "<html>no</html>",
         "rte: the service replies with status 404"},
        {500, -EREMOTEIO, JSON, "{\"error\":\"a\\nb\"}",
         "rte: the service replies with status 500: a?b"},
        {503, -EREMOTEIO, NULL, "", "rte: the service replies with status 503"},
        {204, -EREMOTEIO, NULL, "", "rte: the service replies with status 204"},
        {206, -EREMOTEIO, JSON, RTE, "rte: the service replies with status 206"},
        {301, -EREMOTEIO, NULL, "",
         "rte: the service replies with status 301, redirects are not followed"},
        {302, -EREMOTEIO, "Location: https://sso.example/login?back=x#y", "",
         "rte: the service replies with status 302, redirects are not followed: "
         "https://sso.example/login"},
        {403, -EACCES, NULL, "",
         "rte: the service replies with status 403, although it needs no key; is a proxy in "
         "between?"},
        {407, -EREMOTEIO, NULL, "", "rte: the service replies with status 407"},
        {429, -EBUSY, JSON, "{\"error\":\"Too many requests on the domain\"}",
         "rte: the service replies with status 429, too many requests: Too many requests on "
         "the domain"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, &rte_provider, "FR");
        assert_int_equal(ask_for(f, cases[i].status, cases[i].headers, cases[i].body), cases[i].r);
        assert_string_equal(f->err.text, cases[i].text);
        assert_due_in(f, cases[i].r == -EACCES ? HOUR : MINUTE);
    }
}

static void the_text_is_optional(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    put_answer(f, 500, JSON, "{\"error\":\"" KEY "\"}");
    assert_int_equal(poll_fetch(f->poll, &f->factor, NULL), -EREMOTEIO);
    f->asked = 0;
    f->answers[0].r = -ETIMEDOUT;
    assert_int_equal(poll_fetch(f->poll, &f->factor, NULL), -ETIMEDOUT);
}

static void the_clients_error_is_passed_on_with_the_provider(void **state)
{
    static const int errors[] = {-ETIMEDOUT, -EKEYREJECTED, -EFBIG, -ENOENT, -ECANCELED, -EACCES};
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        put_answer(f, 0, NULL, "request to https://api.electricitymaps.com/v3 failed: this");
        f->answers[0].r = errors[i];
        assert_int_equal(ask(f), errors[i]);
        assert_says(f,
                    "electricity_maps: request to https://api.electricitymaps.com/v3 failed: this");
        assert_int_equal(strstr(f->err.text, "--emissions.ca-file") != NULL,
                         errors[i] == -EKEYREJECTED);
        assert_due_in(f, (UINT64_C(1) << i) * MINUTE);
    }
}

static void a_reply_must_have_the_right_type(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *headers, *body;
        int r;
    } cases[] = {
        {&rte_provider, NULL, RTE, 0},
        {&rte_provider, "Content-Type: application/json", RTE, 0},
        {&rte_provider, "content-type: text/json;charset=utf-8", RTE, 0},
        {&rte_provider, "Content-Type: application/hal+json", RTE, 0},
        {&rte_provider, "Content-Type: text/html", RTE, -EBADMSG},
        {&rte_provider, "Content-Type: application/xml", RTE, -EBADMSG},
        {&rte_provider, NULL, "<html></html>", -EBADMSG},
        {&entsoe_provider, NULL, ENTSOE, 0},
        {&entsoe_provider, "Content-Type: application/xml", ENTSOE, 0},
        {&entsoe_provider, "Content-Type: text/xml; charset=UTF-8", ENTSOE, 0},
        {&entsoe_provider, "Content-Type: application/json", ENTSOE, -EBADMSG},
        {&entsoe_provider, "Content-Type: application/zip", ENTSOE, -EBADMSG},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, cases[i].provider, "FR");
        assert_int_equal(ask_for(f, 200, cases[i].headers, cases[i].body), cases[i].r);
        if (cases[i].r < 0)
            assert_says(f, "is a proxy in between?");
    }
    open_poll(f, &rte_provider, "FR");
    assert_int_equal(ask_for(f, 200, "Content-Type: text/html", ""), -EBADMSG);
    assert_string_equal(f->err.text,
                        "rte: the reply is not JSON but text/html; is a proxy in between?");
}

static void a_reply_without_a_plausible_value_is_a_failure(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    assert_int_equal(ask_for(f, 200, JSON, MAPS("DE")), -EBADMSG);
    assert_due_in(f, MINUTE);
    put_answer(f, 200, JSON, MAPS_OF("FR", "null", "2026-01-15T09:00:00Z"));
    assert_int_equal(ask(f), -ENODATA);
    assert_due_in(f, 2 * MINUTE);
    put_answer(f, 200, JSON, MAPS_OF("FR", "5001", "2026-01-15T09:00:00Z"));
    assert_int_equal(ask(f), -ERANGE);
    assert_due_in(f, 4 * MINUTE);
    put_answer(f, 200, JSON, MAPS_OF("FR", "41", "2026-01-15T11:41:00Z"));
    assert_int_equal(ask(f), -ESTALE);
    assert_says(f, "future");
}

/* Who holds it judges that. */
static void old_and_unusual_values_are_accepted(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    assert_int_equal(ask_for(f, 200, JSON, MAPS("FR")), 0);
    put_answer(f, 200, JSON, MAPS_OF("FR", "40", "2026-01-15T04:00:00Z"));
    assert_int_equal(ask(f), 0);
    assert_int_equal(f->factor.mg_per_kwh, 40000);
    assert_int_equal(f->factor.time_us, AT_0900_US - 5 * HOUR);
    put_answer(f, 200, JSON, MAPS_OF("FR", "4999.5", "2026-01-15T09:00:00Z"));
    assert_int_equal(ask(f), 0);
    assert_int_equal(f->factor.mg_per_kwh, 4999500);
}

static void a_rejected_key_is_not_sent_again_soon(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    assert_int_equal(ask_for(f, 403, JSON, "{\"error\":\"zone not in plan\"}"), -EACCES);
    assert_string_equal(f->err.text, "electricity_maps: the service replies with status 403, the "
                                     "key is not accepted, or not for this zone: zone not in plan");
    assert_due_in(f, HOUR);
    f->how = DRAW_LEAST;
    open_poll(f, &entsoe_provider, "FR");
    assert_int_equal(ask_for(f, 401, "Content-Type: text/html", "<html>"), -EACCES);
    assert_due_in(f, HOUR / 2);
}

/* electricitymaps-contrib issue 8047. */
static void a_single_401_of_electricity_maps_may_mean_too_many_requests(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    assert_int_equal(ask_for(f, 401, JSON, "{\"error\":\"Invalid auth-token\"}"), -EACCES);
    assert_string_equal(f->err.text,
                        "electricity_maps: the service replies with status 401, the key is not "
                        "accepted, or too many use it at once: Invalid auth-token");
    assert_due_in(f, MINUTE);
    assert_int_equal(ask_for(f, 200, JSON, MAPS("FR")), 0);
    assert_int_equal(ask_for(f, 401, JSON, ""), -EACCES);
    assert_due_in(f, MINUTE);
    assert_int_equal(ask_for(f, 401, JSON, ""), -EACCES);
    assert_due_in(f, HOUR);
    assert_int_equal(ask_for(f, 401, JSON, ""), -EACCES);
    assert_due_in(f, HOUR);
    assert_int_equal(ask_for(f, 500, JSON, ""), -EREMOTEIO); /* the fourth in a row */
    assert_due_in(f, 8 * MINUTE);
    assert_int_equal(ask_for(f, 401, JSON, ""), -EACCES);
    assert_due_in(f, 16 * MINUTE);
}

static void retry_after_is_obeyed(void **state)
{
    static const struct {
        int status;
        const char *headers;
        uint64_t least_us, most_us;
    } cases[] = {
        {429, NULL, 30 * SECOND, MINUTE},
        {429, "Retry-After: 600", 10 * MINUTE, 11 * MINUTE},
        {503, "Retry-After: 600", 10 * MINUTE, 11 * MINUTE},
        {500, "Retry-After: 600", 30 * SECOND, MINUTE},
        {429, "Retry-After: 5", 30 * SECOND, 65 * SECOND},
        {429, "Retry-After: Thu, 15 Jan 2026 11:40:00 GMT", HOUR, 61 * MINUTE},
        {429, "X-RateLimit-Reset: 1768477200", HOUR, 61 * MINUTE},
        {429, "X-RateLimit-Reset: 2026-01-15T11:40:00Z", HOUR, 61 * MINUTE},
        {429, "X-RateLimit-Reset: 2026-01-15 11:40:00+00:00", HOUR, 61 * MINUTE},
        {429, "X-RateLimit-Reset: 300", 5 * MINUTE, 6 * MINUTE},
        {429, "Retry-After: 300\nX-RateLimit-Reset: 1768477200", HOUR, 61 * MINUTE},
        {429, "X-RateLimit-Reset: 2026-01-16 00:00:00+00:00", 6 * HOUR - MINUTE, 6 * HOUR},
        {429, "Retry-After: 99999999999999999999", 6 * HOUR - MINUTE, 6 * HOUR},
        {429, "X-RateLimit-Reset: 1768470000", 30 * SECOND, MINUTE}, /* it is over */
        {429, "Retry-After: later", 30 * SECOND, MINUTE},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int r = cases[i].status == 429 ? -EBUSY : -EREMOTEIO;

        f->how = DRAW_LEAST;
        open_poll(f, &rte_provider, "FR");
        assert_int_equal(ask_for(f, cases[i].status, cases[i].headers, ""), r);
        assert_due_in(f, cases[i].least_us);
        f->how = DRAW_MOST;
        open_poll(f, &rte_provider, "FR");
        assert_int_equal(ask_for(f, cases[i].status, cases[i].headers, ""), r);
        assert_due_in(f, cases[i].most_us);
    }
}

static void an_unchanged_value_is_not_sent_again(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &rte_provider, "FR");
    assert_int_equal(ask_for(f, 200, JSON "\nETag: W/\"a b\"\nLast-Modified: x", RTE), 0);
    assert_string_equal(f->asked_for[0].headers, "Accept: application/json\n");
    f->clock.now_us += HOUR;
    assert_int_equal(ask_for(f, 304, NULL, ""), 0);
    assert_string_equal(f->asked_for[0].headers,
                        "Accept: application/json\nIf-None-Match: W/\"a b\"\n");
    assert_int_equal(f->factor.mg_per_kwh, 23000);
    assert_int_equal(f->factor.time_us, AT_0915_US);
    assert_due_in(f, 990 * SECOND);
    /* It holds over failures, and goes with the next answer. */
    assert_int_equal(ask_for(f, 500, "ETag: \"c\"", ""), -EREMOTEIO);
    assert_int_equal(ask_for(f, 200, JSON "\nETag: \"c\"", "{}"), -ENODATA);
    assert_int_equal(ask_for(f, 304, "ETag: \"c\"", ""), 0);
    assert_true(was_sent(f, 0, "If-None-Match: W/\"a b\""));
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_true(was_sent(f, 0, "If-None-Match: W/\"a b\""));
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_string_equal(f->asked_for[0].headers, "Accept: application/json\n");
}

static void without_an_etag_last_modified_serves(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    put_answer(f, 200, JSON "\nLast-Modified: Thu, 15 Jan 2026 09:30:00 GMT\nETag: \"\xc3\xa9\"",
               MAPS("FR"));
    assert_int_equal(ask(f), 0);
    assert_int_equal(ask_for(f, 304, NULL, ""), 0);
    assert_string_equal(f->asked_for[0].headers,
                        "Accept: application/json\nauth-token: " KEY
                        "\nIf-Modified-Since: Thu, 15 Jan 2026 09:30:00 GMT\n");
    assert_int_equal(f->factor.mg_per_kwh, 41000);
    assert_true(f->factor.is_estimated);
}

static void a_304_to_an_unconditional_request_is_an_error(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &rte_provider, "FR");
    assert_int_equal(ask_for(f, 304, "ETag: \"a\"", ""), -EREMOTEIO);
    assert_says(f, "rte: the service replies 'not modified'");
    assert_due_in(f, MINUTE);
    assert_int_equal(ask_for(f, 200, JSON, RTE), 0);
    assert_string_equal(f->asked_for[0].headers, "Accept: application/json\n");
}

/* WattTime's URL has the minute in it, ENTSO-E's the hour. */
static void an_etag_holds_for_one_url(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON "\nETag: \"login\"", LOGIN("t"));
    assert_int_equal(ask_for(f, 200, JSON "\nETag: \"a\"", WATTTIME), 0);
    f->clock.now_us += 30 * SECOND;
    assert_int_equal(ask_for(f, 304, NULL, ""), 0);
    assert_true(was_sent(f, 0, "If-None-Match: \"a\""));
    f->clock.now_us += 30 * SECOND;
    assert_int_equal(ask_for(f, 304, NULL, ""), -EREMOTEIO);
    assert_false(was_sent(f, 0, "If-None-Match: \"a\""));

    open_poll(f, &entsoe_provider, "FR");
    assert_int_equal(ask_for(f, 200, "ETag: \"b\"", ENTSOE), 0);
    f->clock.now_us += 10 * MINUTE;
    assert_int_equal(ask_for(f, 304, NULL, ""), 0);
    assert_true(was_sent(f, 0, "If-None-Match: \"b\""));
    assert_int_equal(f->factor.mg_per_kwh, 12000);
    f->clock.now_us += 10 * MINUTE;
    assert_int_equal(ask_for(f, 200, NULL, ENTSOE), 0);
    assert_false(was_sent(f, 0, "If-None-Match: \"b\""));
}

static void the_headers_of_a_login_are_not_those_of_the_reply(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON "\nETag: \"login\"", LOGIN("t"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_string_equal(f->asked_for[0].headers,
                        "Accept: application/json\nAuthorization: Bearer t\n");
}

static void a_token_is_used_for_25_minutes(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    f->answers[0].takes_us = SECOND; /* the service may count from before its answer */
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    f->clock.now_us = NOW_US + 25 * MINUTE - 1;
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_true(was_sent(f, 0, "Authorization: Bearer t1"));
    f->clock.now_us = NOW_US + 25 * MINUTE;
    put_answer(f, 200, JSON, LOGIN("t2"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_true(was_sent(f, 1, "Authorization: Bearer t2"));
}

static void an_expired_token_is_renewed_once(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    put_answer(f, 401, JSON, "{\"error\":\"expired\"}");
    put_answer(f, 200, JSON, LOGIN("t2"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_true(was_sent(f, 1, "Authorization: Bearer t1"));
    assert_string_equal(f->asked_for[2].url, "https://api.watttime.org/login");
    assert_true(was_sent(f, 3, "Authorization: Bearer t2"));
    assert_string_equal(f->asked_for[3].url, f->asked_for[1].url);
    assert_due_in(f, 330 * SECOND);
    /* also a token of an earlier question */
    put_answer(f, 401, JSON, "");
    put_answer(f, 200, JSON, LOGIN("t3"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_true(was_sent(f, 0, "Authorization: Bearer t2"));
    assert_true(was_sent(f, 2, "Authorization: Bearer t3"));
}

static void a_new_token_that_is_rejected_is_a_failure(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    put_answer(f, 401, JSON, "");
    put_answer(f, 200, JSON, LOGIN("t2"));
    assert_int_equal(ask_for(f, 401, JSON, "{\"error\":\"no\",\"message\":\"why\"}"), -EACCES);
    assert_string_equal(f->err.text, "watttime: the service replies with status 401, the key is "
                                     "not accepted, or not for this zone: why");
    assert_due_in(f, HOUR);
    put_answer(f, 200, JSON, LOGIN("t3"));
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
}

static void a_region_outside_the_plan_costs_no_login(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    assert_int_equal(ask_for(f, 403, JSON, "{\"error\":\"no\",\"message\":\"region\"}"), -EACCES);
    assert_says(f, "or not for this zone: region");
    assert_due_in(f, HOUR);
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_true(was_sent(f, 0, "Authorization: Bearer t1"));
}

static void a_login_can_fail_like_any_request(void **state)
{
    static const struct {
        int status;
        const char *headers, *body;
        int r;
        const char *text;
        uint64_t due_us;
    } cases[] = {
        {401, JSON, "{\"error\":\"bad\"}", -EACCES,
         "watttime: the service replies with status 401, user or password not "
         "accepted: bad",
         HOUR},
        {403, "Content-Type: text/html", "<html>", -EACCES,
         "watttime: the service replies with status 403, user or password not accepted", HOUR},
        {429, "Retry-After: 300", "", -EBUSY,
         "watttime: the service replies with status 429, too many requests", 6 * MINUTE},
        {500, JSON, "", -EREMOTEIO, "watttime: the service replies with status 500", MINUTE},
        {302, "Location: /v3/login", "", -EREMOTEIO,
         "watttime: the service replies with status 302, redirects are not followed: "
         "/v3/login",
         MINUTE},
        {304, NULL, "", -EREMOTEIO,
         "watttime: the service replies with status 304, redirects are not followed", MINUTE},
        {200, JSON, "{}", -EBADMSG, "watttime: the reply to the login has no token", MINUTE},
        {200, JSON, LOGIN("a b"), -EBADMSG, "watttime: the reply to the login has no token",
         MINUTE},
        {200, "Content-Type: text/html", LOGIN("t"), -EBADMSG,
         "watttime: the reply is not JSON but text/html; is a proxy in between?", MINUTE},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, &watttime_provider, "CAISO_NORTH");
        assert_int_equal(ask_for(f, cases[i].status, cases[i].headers, cases[i].body), cases[i].r);
        assert_string_equal(f->err.text, cases[i].text);
        assert_due_in(f, cases[i].due_us);
    }
}

static void a_login_that_fails_after_an_expired_token_is_a_failure(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    put_answer(f, 401, JSON, "");
    put_answer(f, 0, NULL, "request to it failed");
    f->answers[2].r = -ETIMEDOUT;
    assert_int_equal(ask(f), -ETIMEDOUT);
    assert_string_equal(f->err.text, "watttime: request to it failed");
    assert_due_in(f, MINUTE);
}

static void login_and_query_share_one_deadline(void **state)
{
    struct fixture *f = *state;

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    f->answers[0].takes_us = 6 * SECOND;
    put_answer(f, 401, JSON, "");
    f->answers[1].takes_us = 3 * SECOND;
    put_answer(f, 200, JSON, LOGIN("t2"));
    f->answers[2].takes_us = SECOND - 1;
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0);
    assert_int_equal(f->asked_for[0].timeout_us, 10 * SECOND);
    assert_int_equal(f->asked_for[1].timeout_us, 4 * SECOND);
    assert_int_equal(f->asked_for[2].timeout_us, SECOND);
    assert_int_equal(f->asked_for[3].timeout_us, 1);

    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t1"));
    f->answers[0].takes_us = 10 * SECOND;
    assert_int_equal(ask(f), -ETIMEDOUT);
    assert_string_equal(f->err.text, "watttime: no complete reply within 10 s");
    assert_due_in(f, MINUTE);
    assert_int_equal(ask_for(f, 200, JSON, WATTTIME), 0); /* the token came all the same */
}

static void entsoe_reports_no_data_with_a_document(void **state)
{
    static const struct {
        int status, r;
        const char *body, *text;
    } cases[] = {
        {200, -ENODATA, NOTHING("No matching data found"),
         "entsoe: the service has no data: No matching data found"},
        {400, -ENODATA, NOTHING("No matching data found"),
         "entsoe: the service has no data: No matching data found"},
        {400, -ENXIO, ENTSOE, "entsoe: the service replies with status 400"},
        {400, -ENXIO, "<html><body>Bad Request</body></html>",
         "entsoe: the service replies with status 400"},
        {400, -ENXIO, "", "entsoe: the service replies with status 400"},
        {500, -EREMOTEIO, NOTHING("broken"), "entsoe: the service replies with status 500"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, &entsoe_provider, "FR");
        assert_int_equal(ask_for(f, cases[i].status, "Content-Type: text/xml", cases[i].body),
                         cases[i].r);
        assert_string_equal(f->err.text, cases[i].text);
        assert_due_in(f, MINUTE);
    }
    open_poll(f, &rte_provider, "FR");
    assert_int_equal(ask_for(f, 400, JSON, "{\"results\":[]}"), -ENXIO);
}

static void a_repeated_key_is_redacted(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *zone;
        struct answer answer;
        const char *text;
    } cases[] = {
        {&electricity_maps_provider,
         "FR",
         {.status = 401, .headers = JSON, .body = "{\"error\":\"token " KEY " is not valid\"}"},
         "electricity_maps: the service replies with status 401, the key is not accepted, or too "
         "many use it at once: token *** is not valid"},
        {&electricity_maps_provider,
         "FR",
         {.status = 200, .headers = JSON, .body = "{\"error\":\"" KEY "\"}"},
         "electricity_maps: the service replied: ***"},
        {&electricity_maps_provider,
         "FR",
         {.status = 500, .headers = JSON, .body = "{\"error\":\"k3y\\u002dS3CRET\\/+\"}"},
         "electricity_maps: the service replies with status 500: ***"},
        {&electricity_maps_provider,
         "FR",
         {.status = 200, .headers = "Content-Type: text/" KEY, .body = ""},
         "electricity_maps: the reply is not JSON but text/***; is a proxy in between?"},
        {&entsoe_provider,
         "FR",
         {.status = 302, .headers = "Location: https://x/" KEY_ESCAPED "/?a=" KEY, .body = ""},
         "entsoe: the service replies with status 302, redirects are not followed: "
         "https://x/***/"},
        {&entsoe_provider,
         "FR",
         {.status = 400, .body = NOTHING("No data for securityToken=" KEY_ESCAPED)},
         "entsoe: the service has no data: No data for securityToken=***"},
        {&entsoe_provider,
         "FR",
         {.r = -EPROTO,
          .body = "request to https://x/api?securityToken=" KEY_ESCAPED " failed: no"},
         "entsoe: request to https://x/api?securityToken=*** failed: no"},
        {&watttime_provider,
         "CAISO_NORTH",
         {.status = 401, .headers = JSON, .body = "{\"error\":\"Basic " BASIC " or " KEY "\"}"},
         "watttime: the service replies with status 401, user or password not "
         "accepted: Basic *** or ***"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_poll(f, cases[i].provider, cases[i].zone);
        f->answers[f->answer_count++] = cases[i].answer;
        assert_true(ask(f) < 0);
        assert_string_equal(f->err.text, cases[i].text);
    }
    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 200, JSON, LOGIN("t0k3n-1"));
    assert_int_equal(ask_for(f, 403, JSON, "{\"error\":\"not with t0k3n-1\"}"), -EACCES);
    assert_says(f, ": not with ***");
}

static void a_key_cut_at_the_end_of_the_text_is_redacted(void **state)
{
    char body[512];
    struct fixture *f = *state;

    open_poll(f, &electricity_maps_provider, "FR");
    for (int dots = 130; dots < 165; dots++) {
        int len = snprintf(body, sizeof(body), "{\"error\":\"%.*s" KEY "\"}", dots,
                           "........................................................."
                           "........................................................."
                           ".........................................................");

        assert_true(len > 0 && (size_t)len < sizeof(body));
        assert_int_equal(ask_for(f, 500, JSON, body), -EREMOTEIO);
        assert_null(strstr(f->err.text, "k3y-"));
    }
}

static void missing_options_are_reported_at_the_start(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *zone, *user, *key, *text;
    } cases[] = {
        {&rte_provider, "DE", NULL, NULL, "rte: 'DE' is not a zone; expected FR"},
        {&rte_provider, NULL, NULL, NULL, "rte: it needs a zone, and none is given"},
        {&electricity_maps_provider, "FR", NULL, NULL, "electricity_maps: it needs a token"},
        {&electricity_maps_provider, "FR", NULL, "", "electricity_maps: it needs a token"},
        {&electricity_maps_provider, "F R", NULL, KEY,
         "electricity_maps: 'F R' is not a zone; expected one like FR or US-CAL-CISO"},
        {&electricity_maps_provider, "FR", NULL, KEY "\n",
         "electricity_maps: the token contains a line break or a control character"},
        {&electricity_maps_provider, "FR", NULL, KEY "\x7f",
         "electricity_maps: the token contains a line break or a control character"},
        {&entsoe_provider, "FR", NULL, NULL, "entsoe: it needs a token"},
        {&entsoe_provider, "FR", NULL, "\t" KEY,
         "entsoe: the token contains a line break or a control character"},
        {&entsoe_provider, "XX", NULL, KEY,
         "entsoe: 'XX' is not a zone; expected one like FR or DE-LU, or an EIC code"},
        {&watttime_provider, "CAISO_NORTH", NULL, KEY, "watttime: it needs a user"},
        {&watttime_provider, "CAISO_NORTH", "", KEY, "watttime: it needs a user"},
        {&watttime_provider, "CAISO_NORTH", "ja\rne", KEY,
         "watttime: the user contains a line break or a control character"},
        {&watttime_provider, "CAISO_NORTH", "ja:ne", KEY,
         "watttime: the user contains a ':', where the password would begin"},
        {&watttime_provider, "CAISO_NORTH", "jane", NULL, "watttime: it needs a password"},
        {&watttime_provider, NULL, "jane", KEY, "watttime: it needs a zone, and none is given"},
    };
    struct fixture *f = *state;
    struct poll_options options = f->options;
    struct poll *poll = NULL;
    char longest[1026];
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        options.provider = cases[i].provider;
        options.zone = cases[i].zone;
        options.user = cases[i].user;
        options.key = cases[i].key;
        r = strstr(cases[i].text, "control character") ? -EILSEQ : -EINVAL;
        assert_int_equal(poll_new(&options, &poll, &f->err), r);
        assert_string_equal(f->err.text, cases[i].text);
        assert_int_equal(poll_new(&options, &poll, NULL), r);
        assert_null(poll);
    }
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    f->options.key = longest;
    f->options.provider = &entsoe_provider;
    f->options.zone = "FR";
    assert_int_equal(poll_new(&f->options, &poll, &f->err), -EINVAL);
    assert_string_equal(f->err.text, "entsoe: the token is longer than 1024 bytes");
    longest[1024] = '\0';
    memset(longest, '%', 1024);
    open_poll(f, &entsoe_provider, "FR"); /* it fits the URL, escaped */
    poll_free(NULL);
}

/* A password is not sent as it is, so it may have any letters. */
static void a_password_may_have_blanks_and_non_ascii_letters(void **state)
{
    struct fixture *f = *state;

    f->options.key = "p\xc3\xa4 ss";
    open_poll(f, &watttime_provider, "CAISO_NORTH");
    put_answer(f, 401, JSON, "{\"error\":\"p\xc3\xa4 ss, p%C3%A4+ss\"}");
    assert_int_equal(ask(f), -EACCES);
    assert_true(was_sent(f, 0, "Authorization: Basic amFuZTpww6Qgc3M="));
    assert_says(f, ": ***, ***");
}

static void where_no_key_is_needed_none_is_sent(void **state)
{
    struct fixture *f = *state;

    f->options.key = NULL;
    f->options.user = NULL;
    open_poll(f, &uk_carbon_intensity_provider, "GB");
    assert_int_equal(ask_for(f, 200, JSON, UK), 0);
    assert_int_equal(ask_for(f, 500, JSON, ""), -EREMOTEIO);
    f->options.key = "\n" KEY; /* whatever it is */
    open_poll(f, &uk_carbon_intensity_provider, "GB");
    assert_int_equal(ask_for(f, 200, JSON, UK), 0);
    assert_string_equal(f->asked_for[0].headers, "Accept: application/json\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_request_is_due_within_a_minute_or_the_interval),
        TEST(each_provider_has_its_own_request),
        TEST(watttime_is_logged_into_first),
        TEST(url_cas_and_basis_are_as_configured),
        TEST(after_a_reply_the_next_poll_is_due_at_the_interval),
        TEST(the_interval_starts_after_the_reply),
        TEST(failures_in_a_row_back_off),
        TEST(any_random_number_keeps_the_bounds),
        TEST(an_error_has_the_status_and_the_services_message),
        TEST(the_text_is_optional),
        TEST(the_clients_error_is_passed_on_with_the_provider),
        TEST(a_reply_must_have_the_right_type),
        TEST(a_reply_without_a_plausible_value_is_a_failure),
        TEST(old_and_unusual_values_are_accepted),
        TEST(a_rejected_key_is_not_sent_again_soon),
        TEST(a_single_401_of_electricity_maps_may_mean_too_many_requests),
        TEST(retry_after_is_obeyed),
        TEST(an_unchanged_value_is_not_sent_again),
        TEST(without_an_etag_last_modified_serves),
        TEST(a_304_to_an_unconditional_request_is_an_error),
        TEST(an_etag_holds_for_one_url),
        TEST(the_headers_of_a_login_are_not_those_of_the_reply),
        TEST(a_token_is_used_for_25_minutes),
        TEST(an_expired_token_is_renewed_once),
        TEST(a_new_token_that_is_rejected_is_a_failure),
        TEST(a_region_outside_the_plan_costs_no_login),
        TEST(a_login_can_fail_like_any_request),
        TEST(a_login_that_fails_after_an_expired_token_is_a_failure),
        TEST(login_and_query_share_one_deadline),
        TEST(entsoe_reports_no_data_with_a_document),
        TEST(a_repeated_key_is_redacted),
        TEST(a_key_cut_at_the_end_of_the_text_is_redacted),
        TEST(missing_options_are_reported_at_the_start),
        TEST(a_password_may_have_blanks_and_non_ascii_letters),
        TEST(where_no_key_is_needed_none_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
