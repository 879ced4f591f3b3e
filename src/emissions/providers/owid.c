#include "emissions/providers/owid.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

/* data/emission_factors_owid.csv and data/country-codes.tsv, by tools/embed. */
extern const char emission_factors_owid_csv[];
extern const size_t emission_factors_owid_csv_len;
extern const char country_codes_tsv[];
extern const size_t country_codes_tsv_len;

#define WORLD "OWID_WRL"

enum { CODE, COUNTRY, YEAR, GRAMS, COLUMNS };

/* One field of RFC 4180 off the front of a line. Of a quoted one the inside; doubled quotes stay as
 * they are, as no field that is used has any. */
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

/* No grid emits nothing over the lives of its plants: a 0 is a hole in the table. */
static bool read_row(struct span line, const char *code, uint64_t *ret_year, uint64_t *ret_mg)
{
    struct span fields[COLUMNS];

    span_strip_suffix(&line, "\r");
    for (size_t i = 0; i < COLUMNS; i++)
        fields[i] = cut_field(&line);
    return span_equals(fields[CODE], code) && parse_u64_max(fields[YEAR], 9999, ret_year) == 0 &&
           factor_parse_grams(fields[GRAMS], ret_mg) == 0 && *ret_mg > 0;
}

int owid_find(struct span csv, const char *code, uint64_t *ret_mg)
{
    uint64_t newest = 0, year, mg;
    int r = -ENOENT;

    while (csv.len > 0) {
        if (!read_row(span_cut(&csv, '\n'), code, &year, &mg) || (r == 0 && year <= newest))
            continue;
        newest = year;
        *ret_mg = mg;
        r = 0;
    }
    return r;
}

/* The code of the table: of two letters by the other table, else as it is. */
static struct span find_code(const char *country)
{
    struct span codes = {country_codes_tsv, country_codes_tsv_len};

    if (strcmp(country, "world") == 0)
        return span_of(WORLD);
    while (codes.len > 0) {
        struct span line = span_cut(&codes, '\n');

        if (span_equals(span_cut(&line, '\t'), country))
            return line;
    }
    return span_of(country);
}

bool owid_alpha2(const char *alpha3, char code[3])
{
    struct span codes = {country_codes_tsv, country_codes_tsv_len};

    while (codes.len > 0) {
        struct span line = span_cut(&codes, '\n'), alpha2 = span_cut(&line, '\t');

        if (!span_equals(line, alpha3) || alpha2.len != 2)
            continue;
        memcpy(code, alpha2.data, alpha2.len);
        code[2] = '\0';
        return true;
    }
    return false;
}

int owid_of_country(const char *country, struct emission_factor *ret_factor, struct error *err)
{
    struct span csv = {emission_factors_owid_csv, emission_factors_owid_csv_len};
    struct span code = find_code(country);
    struct emission_factor factor = {
        .provider = "owid", .signal = PRICE_AVERAGE, .basis = PRICE_LIFECYCLE};

    if (code.len > 0 && code.len < sizeof(factor.zone))
        memcpy(factor.zone, code.data, code.len);
    if (!factor.zone[0] || owid_find(csv, factor.zone, &factor.mg_per_kwh) < 0)
        return error_set(
            err, -ENOENT,
            "owid: no figure of country '%.40s'; expected a code of ISO 3166-1 as FR or "
            "FRA, or world",
            country);
    if (strcmp(factor.zone, WORLD) == 0)
        memcpy(factor.zone, "world", sizeof("world"));
    *ret_factor = factor;
    return 0;
}
