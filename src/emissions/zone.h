/*
 * Zones: for which one a provider is asked, and whose yearly figure stands in. A provider may have
 * one of its own (NAME:ZONE in --emissions.providers), and there may be one for all
 * (--emissions.zone); "" is none. Pure.
 */
#pragma once

#include "core/error.h"
#include "emissions/factor.h"
#include "emissions/provider.h"

/* The zone to ask this provider for, which takes it; `own` fits. 0, or -EINVAL with what to write
 * instead. */
int zone_choose(const struct provider *provider, const char *own, const char *common,
                char zone[FACTOR_ZONE_BYTES], struct error *err);

/* The figure of the zone's country in the table by year. 0, or -EINVAL with what to write
 * instead. */
int zone_yearly(const char *own, const char *common, struct emission_factor *ret_factor,
                struct error *err);

/* The country in which a provider's zone is, as zone_yearly takes it; "" if nobody says. */
const char *zone_country(const struct provider *provider, const char *zone);

/* Likewise the one that stands in for what is asked: of the zone for all, or else `asked`, the
 * country of who is asked. */
const char *zone_stand_in(const char *common, const char *asked);
