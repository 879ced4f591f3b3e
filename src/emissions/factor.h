/*
 * Emission factor of a live provider, in milligrams of CO2 equivalent per kWh: an integer, rounded
 * once, half up, when it is parsed, and exact from there on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "model/price.h"

enum {
    FACTOR_ZONE_BYTES = 32,
    FACTOR_MAX_MG = 5000000,     /* per kWh: no grid emits more */
    FACTOR_UNUSUAL_MG = 1500000, /* worth a warning; a few islands come close */
    FACTOR_LEAST_MG = 1000,      /* likewise: hardly any grid emits less */
};

struct emission_factor {
    enum price_basis basis;
    uint64_t mg_per_kwh;
    uint64_t time_us;  /* of the value, since the epoch */
    bool is_estimated; /* or forecast: the provider may correct it */
};

/* True for 1 to 31 characters of A-Z a-z 0-9 and -_. */
bool factor_is_zone(const char *text);

/* From grams per kWh and from pounds per MWh, exact for decimals of up to nine digits after the
 * point. 0 or -ERANGE: negative, or more than FACTOR_MAX_MG. */
int factor_from_grams(double grams_per_kwh, uint64_t *ret_mg);
int factor_from_pounds(double pounds_per_mwh, uint64_t *ret_mg);

/* "473.007", grams per kWh, at most six digits after the point. 0, -EINVAL or -ERANGE. */
int factor_parse_grams(struct span text, uint64_t *ret_mg);

/* A yearly average, lifecycle, and that of the world (Ember, Energy Institute; OWID, 2024). */
struct price_factor factor_yearly(const char *provider, struct span zone, uint64_t mg_per_kwh);
struct price_factor factor_world(void);
