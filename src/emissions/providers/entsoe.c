/*
 * ENTSO-E's transparency platform: what each kind of plant in a European zone generates. The
 * intensity is the mean of the table of factors over that; imports are not in it. Published an hour
 * or more after the fact.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/timestamp.h"
#include "emissions/provider.h"
#include "emissions/providers/entsoe_document.h"
#include "emissions/providers/reply.h"

#define NAME "entsoe"

enum { EIC_LEN = 16 };

static const uint64_t WINDOW_US = USEC_PER_SEC * 3600 * 12;

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

/* Other zones by their code itself. NULL: neither. */
static const char *find_eic(const char *zone)
{
    for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
        if (strcmp(zone, zones[i].zone) == 0)
            return zones[i].eic;
    return strlen(zone) == EIC_LEN && factor_is_zone(zone) ? zone : NULL;
}

static void ask_time(struct buffer *path, const char *name, uint64_t t_us)
{
    struct civil_minute at = timestamp_minute(t_us);
    char text[64];

    snprintf(text, sizeof(text), "%04u%02u%02u%02u00", at.year, at.month, at.day, at.hour);
    reply_ask(path, name, text);
}

/* The service takes its token nowhere but in the query: PROVIDER_KEY_IN_PATH. */
static int write_path(const struct provider_question *question, struct buffer *path,
                      struct error *err)
{
    const char *eic = find_eic(question->zone);

    if (!eic)
        return error_set(err, -EINVAL,
                         NAME ": '%.40s' is no zone; one is as FR or DE-LU, or an EIC code",
                         question->zone);
    if (!question->token || !question->token[0])
        return error_set(err, -EINVAL, NAME ": no security token");
    buffer_str(path, "/api");
    reply_ask(path, "documentType", "A75");
    reply_ask(path, "processType", "A16");
    reply_ask(path, "in_Domain", eic);
    ask_time(path, "periodStart", question->now_us - MIN(question->now_us, WINDOW_US));
    ask_time(path, "periodEnd", question->now_us);
    reply_ask(path, "securityToken", question->token);
    return 0;
}

static int parse(struct span body, const struct provider_question *question,
                 struct emission_factor *factor, struct error *err)
{
    _cleanup_free_ struct entsoe_mix *mix = malloc(sizeof(*mix));
    const char *eic = find_eic(question->zone);
    struct entsoe_factors factors;
    int r;

    if (!mix)
        return error_set(err, -ENOMEM, NAME ": no memory for the answer");
    if (!eic)
        return error_set(err, -EINVAL, NAME ": '%.40s' is no zone", question->zone);
    entsoe_factors_load(&factors);
    entsoe_mix_init(mix, question->now_us);
    r = entsoe_document_read(body, eic, &factors, mix, err);
    if (r < 0)
        return r;
    r = entsoe_mix_newest(mix, &factors, &factor->time_us, &factor->mg_per_kwh);
    if (r < 0)
        return error_set(err, r, NAME ": zone %s has no whole hour of generation yet",
                         question->zone);
    return 0;
}

const struct provider entsoe_provider = {
    .name = NAME,
    .host = "web-api.tp.entsoe.eu",
    .key = PROVIDER_KEY_IN_PATH,
    .secrets = {{"entsoe", "ENTSOE_TOKEN"}},
    .refresh_s = 30 * 60,
    .timeout_s = 30,
    .lag_s = 6 * 3600,
    .body_bytes_max = 4 << 20, /* half a day of a zone is less than 1 MB */
    .signal = PRICE_AVERAGE,
    .basis = PRICE_LIFECYCLE,
    .write_path = write_path,
    .parse = parse,
};
