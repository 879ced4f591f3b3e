/*
 * Emission factor: what a kilowatt hour emits, and what kind of figure that is. Factors of another
 * provider, zone, signal or basis are not comparable, so these are labels and never lost.
 *
 * Milligrams of CO2 equivalent per kWh, as integers: rounded once, half up, where the figure comes
 * in, and exact from there on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"
#include "model/price.h"

enum {
    FACTOR_ZONE_BYTES = 32,
    FACTOR_MAX_MG = 5000000,     /* per kWh: no grid emits more */
    FACTOR_UNUSUAL_MG = 1500000, /* above it somebody should be told; a few islands are close */
    FACTOR_LEAST_MG = 1000,      /* below it likewise: hardly any grid emits so little */
};

struct emission_factor {
    const char *provider; /* a literal */
    char zone[FACTOR_ZONE_BYTES];
    enum price_signal signal;
    enum price_basis basis;
    uint64_t mg_per_kwh;
    uint64_t time_us; /* what the value is for, since the epoch; 0: a table's, which does not age */
    bool is_estimated; /* or forecast: the provider may correct it */
};

bool factor_is_plausible(const struct emission_factor *factor);

/* A name of a zone as every provider has them: 1 to 31 of A-Z a-z 0-9 and -_. */
bool factor_is_zone(const char *text);

/* From grams per kWh and from pounds per MWh. What was a decimal of up to nine digits behind the
 * point is taken as that decimal. 0 or -ERANGE: negative, or more than FACTOR_MAX_MG. */
int factor_from_grams(double grams_per_kwh, uint64_t *ret_mg);
int factor_from_pounds(double pounds_per_mwh, uint64_t *ret_mg);

/* "473.007", grams per kWh, at most six digits behind the point. 0, -EINVAL or -ERANGE. */
int factor_parse_grams(struct span text, uint64_t *ret_mg);

/* As prices are written. */
uint64_t factor_ug(const struct emission_factor *factor);
struct price_factor factor_price(const struct emission_factor *factor);

/* The world's average (Ember and Energy Institute by OWID, 2024, lifecycle). */
struct emission_factor factor_world(void);
