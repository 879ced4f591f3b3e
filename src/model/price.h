/*
 * The books: accounts of energy, what it emits and costs, embodied carbon, tariffs.
 *
 * A bill is a sum of uJ x (millionths per kWh) x (millionths of the PUE), never divided: the sum of
 * bills is the bill of the sum, to the last digit. Within the limits below a bill holds more than
 * the 64 bits of the energy can reach. metrics/ divides, once, to print. Embodied carbon is a sum
 * of time x rate in the same unit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/meter.h"

enum {
    PRICE_PUE_ONE = 1000000,
    PRICE_FACTOR_MAX_G = 5000,
    PRICE_COST_MAX = 100000,
    EMBODIED_MAX_G = 100000,
};

/* Averaged over all power plants that run, or of those that one more kWh would start. */
enum price_signal { PRICE_SIGNAL_UNSTATED, PRICE_AVERAGE, PRICE_MARGINAL, PRICE_SIGNALS };
/* Of the plant's whole life cycle, or of the fuel alone. */
enum price_basis { PRICE_BASIS_UNSTATED, PRICE_LIFECYCLE, PRICE_DIRECT, PRICE_BASES };

/* Label values: "average", "lifecycle". */
extern const char *const price_signal_words[PRICE_SIGNALS];
extern const char *const price_basis_words[PRICE_BASES];

struct price_factor {
    bool known;
    uint64_t ug_per_kwh; /* at most PRICE_FACTOR_MAX_G */
    char provider[24];
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

/* What a uJ adds to a bill. */
struct price_rate {
    uint64_t emission, cost; /* 0: not known */
};

struct bill {
    unsigned __int128 emission, cost;
    unsigned __int128 embodied; /* of the time of the device, each at the rate of its time */
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
    bill->embodied += other->embodied;
}

static inline void bill_subtract(struct bill *bill, const struct bill *other)
{
    bill->emission -= other->emission;
    bill->cost -= other->cost;
    bill->embodied -= other->embodied;
}

static inline void bill_add_energy(struct bill *bill, uint64_t energy_uj, struct price_rate rate)
{
    bill->emission += (unsigned __int128)energy_uj * rate.emission;
    bill->cost += (unsigned __int128)energy_uj * rate.cost;
}

/* Accounts of energy that belongs to no workload. */
enum unowned { UNOWNED_IDLE, UNOWNED_SYSTEM, UNOWNED_UNATTRIBUTED, UNOWNED_GAP, UNOWNED_COUNT };

/* Values of the label `owner`. */
extern const char *const unowned_words[UNOWNED_COUNT];

/* Active: above the idle level in force. Idle: a share of that level. */
enum tier { TIER_ACTIVE, TIER_IDLE, TIER_COUNT };

enum method {
    METHOD_MEASURED, /* the whole delta of a hardware counter, with no other process present */
    METHOD_SHARED,   /* a share of a hardware counter's delta */
    METHOD_INFERRED, /* by exclusion: no process was visible */
    METHOD_MODELLED, /* no meter: a model of one */
    METHOD_COUNT,
};

/* A confidence of 1: determined by data. 0 is the time share and nothing more. */
enum { CONFIDENCE_ONE = 1000000 };

/* Energy of one workload at one meter, its emissions and its cost. */
struct account {
    uint64_t energy_uj[TIER_COUNT][METHOD_COUNT];
    uint64_t known_uj;     /* each joule times the confidence that it was booked with */
    uint64_t uncertain_uj; /* the absolute error expected of each booking, summed */
    struct bill bill;
};

static inline void account_add(struct account *account, const struct account *other)
{
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++)
            account->energy_uj[tier][method] += other->energy_uj[tier][method];
    account->known_uj += other->known_uj;
    account->uncertain_uj += other->uncertain_uj;
    bill_add(&account->bill, &other->bill);
}

static inline uint64_t account_total_uj(const struct account *account)
{
    uint64_t total = 0;

    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++)
            total += account->energy_uj[tier][method];
    return total;
}

/* How much of the energy is determined by data, in millionths; 0 where nothing was booked. */
static inline int64_t confidence_millionths(uint64_t known_uj, uint64_t energy_uj)
{
    return energy_uj ? (int64_t)((unsigned __int128)known_uj * CONFIDENCE_ONE / energy_uj) : 0;
}

/* Embodied carbon: the emissions of making a device, spread over its life. Neither its energy nor
 * the PUE changes it. The device's time is divided as its energy is. */
struct embodied_rate {
    bool known;
    uint64_t ug_per_hour; /* at most EMBODIED_MAX_G */
};

/* By kind of device. */
struct embodied_rates {
    struct embodied_rate of[METER_KINDS];
};

/* In the unit of bills: 1 g is 3.6e15 us x ug per hour. */
static inline unsigned __int128 embodied_bill(struct embodied_rate rate, uint64_t device_us)
{
    return (unsigned __int128)device_us * rate.ug_per_hour * (BILL_ONE / 3600000000000000);
}

/* A tariff: the price of a kWh by month, day of the week and local time. A period over midnight
 * belongs to the day on which it begins. */

enum { TARIFF_PERIODS_MAX = 64, TARIFF_DAY_MINUTES = 24 * 60 };

struct tariff_period {
    uint64_t micro_per_kwh;
    unsigned months;                 /* bits, as struct tm counts them: January is the lowest */
    unsigned days;                   /* likewise: Sunday is the lowest */
    unsigned from_minute, to_minute; /* of the day; to before from: over midnight. Never the same */
};

struct tariff {
    char currency[4];       /* ISO 4217 */
    char zone[64];          /* as tariff_config_use_zone() takes it; "": the machine's own */
    uint64_t micro_per_kwh; /* outside of the periods; like theirs at most PRICE_COST_MAX */
    struct tariff_period periods[TARIFF_PERIODS_MAX]; /* the first match counts */
    size_t period_count;
};

struct tm;

/* Ignores the year and the seconds. */
uint64_t tariff_price_at(const struct tariff *tariff, const struct tm *local);
