#include "emissions/providers/entsoe_factors.h"

#include <errno.h>
#include <string.h>

#include "emissions/factor.h"

/* data/entsoe-factors.tsv, by tools/embed; a unit test reads it. */
extern const char entsoe_factors_tsv[];
extern const size_t entsoe_factors_tsv_len;

/* Both are shown: a word as a zone is one. */
static bool copy_word(struct span text, char *copy, size_t size_bytes)
{
    if (text.len == 0 || text.len >= size_bytes || memchr(text.data, '\0', text.len))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return factor_is_zone(copy);
}

static int read_kind(struct span line, struct entsoe_factors *factors)
{
    struct span psr_type = span_cut(&line, '\t'), grams = span_cut(&line, '\t');
    struct entsoe_kind kind = {.is_storage = span_equals(grams, "-")};

    if (factors->count == ENTSOE_KINDS_MAX || entsoe_factors_find(factors, psr_type) >= 0 ||
        !copy_word(psr_type, kind.psr_type, sizeof(kind.psr_type)))
        return -EBADMSG;
    if (!kind.is_storage && factor_parse_grams(grams, &kind.mg_per_kwh) < 0)
        return -EBADMSG;
    factors->kinds[factors->count++] = kind;
    return 0;
}

int entsoe_factors_parse(struct span table, struct entsoe_factors *ret_factors)
{
    struct entsoe_factors factors = {.count = 0};

    while (table.len > 0) {
        struct span line = span_cut(&table, '\n');

        if (line.len == 0 || line.data[0] == '#')
            continue;
        if (!factors.name[0]) {
            if (!copy_word(line, factors.name, sizeof(factors.name)))
                return -EBADMSG;
        } else if (read_kind(line, &factors) < 0) {
            return -EBADMSG;
        }
    }
    if (factors.count == 0)
        return -EBADMSG;
    *ret_factors = factors;
    return 0;
}

void entsoe_factors_load(struct entsoe_factors *ret_factors)
{
    *ret_factors = (struct entsoe_factors){.count = 0};
    (void)entsoe_factors_parse((struct span){entsoe_factors_tsv, entsoe_factors_tsv_len},
                               ret_factors);
}

int entsoe_factors_find(const struct entsoe_factors *factors, struct span psr_type)
{
    for (size_t i = 0; i < factors->count; i++)
        if (span_equals(psr_type, factors->kinds[i].psr_type))
            return (int)i;
    return -ENOENT;
}
