/* Yearly averages by country (data/emission_factors_owid.csv): what is generated there, lifecycle,
 * without imports. Built into the program, so that there is always one to fall back on. Pure. */
#pragma once

#include <stdbool.h>

#include "core/error.h"
#include "core/span.h"
#include "emissions/factor.h"

/* Wherever the figures are shown. */
#define OWID_CREDIT                                                                                \
    "Carbon intensity of electricity: Ember; Energy Institute; processed by Our World in Data, "   \
    "CC BY 4.0"

/*
 * By ISO 3166-1 code, "FR" or "FRA", or "world". The zone of what is found is the table's code,
 * whichever was asked for. 0, or -ENOENT: unknown country, and nothing stands in for it.
 */
int owid_of_country(const char *country, struct emission_factor *ret_factor, struct error *err);

/* "FR" for "FRA". False: no such country. */
bool owid_alpha2(const char *alpha3, char code[3]);

/* The row of a code in such a CSV; of several the newest year. A row without a code (continents),
 * or that is not as it should be, is passed over. 0 or -ENOENT. */
int owid_find(struct span csv, const char *code, uint64_t *ret_mg);
