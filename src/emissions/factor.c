#include "emissions/factor.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

static const uint64_t BILLION = 1000000000;

static const char *const signal_words[] = {
    [FACTOR_AVERAGE] = "average",
    [FACTOR_MARGINAL] = "marginal",
};
static const char *const basis_words[] = {
    [FACTOR_LIFECYCLE] = "lifecycle",
    [FACTOR_DIRECT] = "direct",
};

const char *factor_signal_word(enum factor_signal signal)
{
    return signal_words[signal];
}

const char *factor_basis_word(enum factor_basis basis)
{
    return basis_words[basis];
}

static int find_word(struct span word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_equals(word, words[i]))
            return (int)i;
    return -EINVAL;
}

int factor_parse_signal(struct span word, enum factor_signal *ret_signal)
{
    int found = find_word(word, signal_words, ARRAY_SIZE(signal_words));

    if (found < 0)
        return found;
    *ret_signal = (enum factor_signal)found;
    return 0;
}

int factor_parse_basis(struct span word, enum factor_basis *ret_basis)
{
    int found = find_word(word, basis_words, ARRAY_SIZE(basis_words));

    if (found < 0)
        return found;
    *ret_basis = (enum factor_basis)found;
    return 0;
}

bool factor_is_plausible(const struct emission_factor *factor)
{
    return factor->mg_per_kwh <= FACTOR_MAX_MG;
}

bool factor_is_zone(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    size_t len = strlen(text);

    return len > 0 && len < FACTOR_ZONE_BYTES && strspn(text, allowed) == len;
}

/* rate * numerator / denominator in mg, by way of the decimal that the double was: a double of this
 * size is nearer to its nine digits than to any others. */
static int convert(double rate, uint64_t numerator, uint64_t denominator, uint64_t *ret_mg)
{
    double rate_max = (double)FACTOR_MAX_MG * (double)denominator / (double)numerator;
    uint64_t billionths, mg;

    if (!(rate >= 0) || !(rate <= rate_max + 1))
        return -ERANGE;
    billionths = (uint64_t)(rate * (double)BILLION + 0.5);
    denominator *= BILLION;
    mg = (uint64_t)(((unsigned __int128)billionths * numerator + denominator / 2) / denominator);
    if (mg > FACTOR_MAX_MG)
        return -ERANGE;
    *ret_mg = mg;
    return 0;
}

int factor_from_grams(double grams_per_kwh, uint64_t *ret_mg)
{
    return convert(grams_per_kwh, 1000, 1, ret_mg);
}

/* A pound is 0.45359237 kg by definition. */
int factor_from_pounds(double pounds_per_mwh, uint64_t *ret_mg)
{
    return convert(pounds_per_mwh, 45359237, 100000, ret_mg);
}

int factor_parse_grams(struct span text, uint64_t *ret_mg)
{
    uint64_t millionths;
    int r = parse_millionths(text, &millionths);

    if (r < 0)
        return r;
    if (millionths > FACTOR_MAX_MG * (uint64_t)1000)
        return -ERANGE;
    *ret_mg = (millionths + 500) / 1000;
    return 0;
}

struct emission_factor factor_world(void)
{
    return (struct emission_factor){
        .provider = "global",
        .zone = "world",
        .signal = FACTOR_AVERAGE,
        .basis = FACTOR_LIFECYCLE,
        .mg_per_kwh = 473007,
    };
}

int factor_of_site(struct span grams, const char *zone, enum factor_signal signal,
                   enum factor_basis basis, struct emission_factor *ret_factor, struct error *err)
{
    struct emission_factor factor = {.provider = "constant", .signal = signal, .basis = basis};
    int r = factor_parse_grams(grams, &factor.mg_per_kwh);

    if (r < 0)
        return error_set(err, r,
                         "emission factor '%.*s': expected grams per kWh from 0 to 5000, as 56.2",
                         (int)MIN(grams.len, (size_t)40), grams.data);
    if (!factor_is_zone(zone))
        return error_set(err, -EINVAL,
                         "zone '%.40s': expected 1 to 31 letters, digits and '-', '_', '.'", zone);
    memcpy(factor.zone, zone, strlen(zone) + 1);
    *ret_factor = factor;
    return 0;
}
