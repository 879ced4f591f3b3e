/*
 * Zones: which one to query a provider for, and which country's yearly average stands in. A
 * provider may have its own (NAME:ZONE in --emissions.providers), else --emissions.zone holds for
 * all; "" is none. Pure.
 *
 * Yearly averages (data/emission_factors_owid.csv) are of generation, lifecycle, without imports,
 * and embedded in the program. Carbon intensity of electricity: Ember; Energy Institute; processed
 * by Our World in Data, CC BY 4.0.
 */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "emissions/factor.h"
#include "emissions/provider.h"

/* The zone to query this provider for; `own` fits. 0, or -EINVAL with what to write instead. */
int zone_choose(const struct provider *provider, const char *own, const char *common,
                char zone[FACTOR_ZONE_BYTES], struct error *err);

/* The yearly average of the zone's country. 0, or -EINVAL with what to write instead. */
int zone_yearly(const char *own, const char *common, struct price_factor *ret_factor,
                struct error *err);

/* The country of a provider's zone, as zone_yearly takes it; "" if unknown. */
const char *zone_country(const struct provider *provider, const char *zone);

/* The country whose average stands in: that of the common zone, else `queried`, the country of the
 * provider. */
const char *zone_stand_in(const char *common, const char *queried);

/* By ISO 3166-1 code, "FR" or "FRA", or "world". The zone of the factor is the table's code. 0 or
 * -ENOENT. */
int zone_of_country(const char *country, struct price_factor *ret_factor);

/* The newest year of a code in such a table. Malformed rows, and rows without a code (continents),
 * are skipped. 0 or -ENOENT. */
int zone_find_row(struct span csv, const char *code, uint64_t *ret_mg);
