/*
 * What energy costs: grams of CO2 equivalent per kWh, money per kWh, and what the site uses for
 * each joule of its machines (PUE).
 *
 * A bill is a sum of uJ x (millionths per kWh) x (millionths of the PUE), never divided: whoever
 * adds up bills gets the bill of the sum, to the last digit. Within the limits below a bill holds
 * more than the 64 bits of the energy can reach. metrics/ divides, once, to print.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PRICE_PUE_ONE = 1000000, PRICE_FACTOR_MAX_G = 5000, PRICE_COST_MAX = 100000 };

/* Of which power plants: all that run, or those that one more kWh would call for. */
enum price_signal { PRICE_SIGNAL_UNSTATED, PRICE_AVERAGE, PRICE_MARGINAL, PRICE_SIGNALS };
/* Of all that it took to make the kWh, or of the burnt fuel alone. */
enum price_basis { PRICE_BASIS_UNSTATED, PRICE_LIFECYCLE, PRICE_DIRECT, PRICE_BASES };

/* The values of labels: "average", "lifecycle". */
extern const char *const price_signal_words[PRICE_SIGNALS];
extern const char *const price_basis_words[PRICE_BASES];

struct price_factor {
    bool known;
    uint64_t ug_per_kwh; /* at most PRICE_FACTOR_MAX_G */
    char provider[24];   /* who says so */
    char zone[64];
    enum price_signal signal;
    enum price_basis basis;
};

struct price_cost {
    bool known;
    uint64_t micro_per_kwh; /* millionths of the currency; at most PRICE_COST_MAX of it */
    char currency[4];       /* ISO 4217 */
};

static inline bool price_is_currency(const char *code)
{
    return strlen(code) == 3 && strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

struct price {
    struct price_factor factor;
    struct price_cost cost;
    uint64_t pue_millionths; /* PRICE_PUE_ONE to ten times that */
};

/* A price as it is multiplied with: per uJ, in the unit of bills. */
struct price_rate {
    uint64_t emission, cost; /* 0: not known */
};

struct bill {
    unsigned __int128 emission, cost;
};

/* A bill of 1 g, and of 1 unit of the currency: 3.6e12 uJ/kWh x 1e6 x 1e6. */
#define BILL_ONE ((unsigned __int128)3600000000000 * 1000000 * 1000000)

static inline struct price_rate price_rate_of(const struct price *price)
{
    return (struct price_rate){
        .emission = price->factor.known ? price->factor.ug_per_kwh * price->pue_millionths : 0,
        .cost = price->cost.known ? price->cost.micro_per_kwh * price->pue_millionths : 0,
    };
}

static inline void bill_add(struct bill *bill, const struct bill *other)
{
    bill->emission += other->emission;
    bill->cost += other->cost;
}

static inline void bill_subtract(struct bill *bill, const struct bill *other)
{
    bill->emission -= other->emission;
    bill->cost -= other->cost;
}

static inline void bill_add_energy(struct bill *bill, uint64_t energy_uj, struct price_rate rate)
{
    bill->emission += (unsigned __int128)energy_uj * rate.emission;
    bill->cost += (unsigned __int128)energy_uj * rate.cost;
}
