#include "attribution/gpu/intensity/states.h"

#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

static const double FULL_SLOT_S = 0.2;
static const double BUSY_MIN = 0.05; /* of a slot; with less, activity is unclear */

/* Power is compared at a reference clock: near the power cap it rises with about this power of the
 * clock (measured, H200). */
static const double CLOCK_EXPONENT = 1.4, CLOCK_REFERENCE_MHZ = 2000;
/* Energy for the same work rises with about this power of the clock (measured, H200). */
static const double CLOCK_GAIN_EXPONENT = 1.2;

/* States are merged if their difference explains less than this, in squares of NOISE x slots. */
static const double SAME_STATE = 3, MERGE_NOISE = 0.06;
/* Nine features of one device are not independent: less would outvote the samples. */
static const double FEATURE_NOISE = 0.11;
/* Power weighs less than the units, being not quite additive. Without GPM there is little else. */
static const double POWER_NOISE_GPM = 0.3, POWER_NOISE = 0.06;
/* The counter is read some milliseconds after its tick: what one slot lacks, the next has. */
static const double TICK_NOISE = 0.3;
/* States with other tenants are kept apart while there is room. */
static const double OTHER_TENANTS = 20;

static const double FEATURE_MOST = 1.5;   /* one odd reading must not outweigh all others */
static const double SCALE_MIN = 0.01;     /* less active units are ignored */
static const double SCALE_MIN_WEIGHT = 2; /* in slots: one odd reading sets no scale */
static const uint64_t GPM_LOST_US = 60 * USEC_PER_SEC;
static const double FADED = 0.1; /* in slots; smaller states are dropped */

bool states_describe(const struct slot *slot, struct state *ret_state)
{
    double duration_s = (double)(slot->end_us - slot->start_us) / 1e6, clock, normal, log_clock;
    struct slot_reading reading;

    if (!slot_read(slot, &reading) || reading.busy_s < BUSY_MIN * duration_s)
        return false;
    clock = reading.clock_mhz > 0 ? reading.clock_mhz : CLOCK_REFERENCE_MHZ;
    normal = linear_steady(pow(CLOCK_REFERENCE_MHZ / clock, CLOCK_EXPONENT));
    log_clock = linear_steady(log(clock));
    *ret_state = (struct state){
        .has_gpm = reading.has_gpm,
        .weight = reading.busy_s / FULL_SLOT_S,
        .mean = {.power_w = normal * (double)slot->energy_uj / 1e6 / reading.busy_s,
                 .idle_w = normal * duration_s / reading.busy_s,
                 .log_clock = log_clock,
                 .log_clock_squared = log_clock * log_clock},
        .listed = slot->listed & ~slot->resting,
    };
    memcpy(ret_state->mean.units, reading.units, sizeof(reading.units));
    for (size_t t = 0; t < TENANTS_MAX; t++) {
        ret_state->won[t] = slot->won[t];
        if (slot->won[t] > 0)
            ret_state->listed |= 1U << t;
    }
    return true;
}

double states_watts(const struct states *states, const struct activity *activity)
{
    return MAX(activity->power_w - states->idle_watts * activity->idle_w, 0.0);
}

double states_clock_gain(const struct states *states, double watts, double log_clock)
{
    double limit = states->limit_watts - states->idle_watts, alone;

    if (limit <= 0 || watts <= 0)
        return 0;
    alone = log(CLOCK_REFERENCE_MHZ) + log(limit / watts) / CLOCK_EXPONENT;
    return CLOCK_GAIN_EXPONENT * linear_steady(MAX(log_clock - alone, 0.0));
}

static double raw_feature(const struct states *states, const struct activity *activity,
                          size_t feature)
{
    return feature == FEATURE_POWER ? states_watts(states, activity) : activity->units[feature];
}

double states_feature(const struct states *states, const struct activity *activity, size_t feature)
{
    if (states->scale[feature] <= 0)
        return 0;
    return MIN(raw_feature(states, activity, feature) / states->scale[feature], FEATURE_MOST);
}

double states_variance(const struct states *states, const struct state *state, size_t feature)
{
    double noise = states->has_gpm ? POWER_NOISE_GPM : POWER_NOISE, ticks;

    if (feature != FEATURE_POWER)
        return FEATURE_NOISE * FEATURE_NOISE;
    ticks = TICK_NOISE / MAX(state->weight, 0.2);
    return noise * noise + ticks * ticks;
}

static double distance(const struct states *states, const struct state *a, const struct state *b)
{
    double power_noise = states->has_gpm ? POWER_NOISE_GPM : POWER_NOISE, sum = 0, count = 0;

    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double noise = f == FEATURE_POWER ? power_noise : MERGE_NOISE, difference;

        if (states->scale[f] <= 0)
            continue;
        difference =
            (states_feature(states, &a->mean, f) - states_feature(states, &b->mean, f)) / noise;
        sum += difference * difference;
        count++;
    }
    return count > 0 ? sum / count : 0;
}

/* The loss of merging two states (Ward). */
static double merge_cost(const struct states *states, const struct state *a, const struct state *b)
{
    double both = a->weight * b->weight / (a->weight + b->weight);

    return distance(states, a, b) * both + (a->listed == b->listed ? 0 : OTHER_TENANTS);
}

void activity_average(struct activity *mean, const struct activity *value, double part)
{
    for (size_t u = 0; u < UNIT_COUNT; u++)
        mean->units[u] += part * (value->units[u] - mean->units[u]);
    mean->power_w += part * (value->power_w - mean->power_w);
    mean->idle_w += part * (value->idle_w - mean->idle_w);
    mean->log_clock += part * (value->log_clock - mean->log_clock);
    mean->log_clock_squared += part * (value->log_clock_squared - mean->log_clock_squared);
}

static void merge(struct state *into, const struct state *from)
{
    double part = from->weight / (into->weight + from->weight);

    into->weight += from->weight;
    activity_average(&into->mean, &from->mean, part);
    for (size_t t = 0; t < TENANTS_MAX; t++)
        into->won[t] += from->won[t];
    into->listed |= from->listed;
    for (size_t t = 0; t <= TENANTS_MAX; t++)
        into->share[t] += part * (from->share[t] - into->share[t]);
}

static void merge_closest(struct states *states)
{
    size_t into = 0, from = 1;
    double least = INFINITY;

    for (size_t a = 0; a < states->count; a++) {
        for (size_t b = a + 1; b < states->count; b++) {
            double cost = merge_cost(states, &states->all[a], &states->all[b]);

            if (cost < least) {
                least = cost;
                into = a;
                from = b;
            }
        }
    }
    merge(&states->all[into], &states->all[from]);
    states->all[from] = states->all[--states->count];
}

static void update_scale(struct states *states)
{
    double most = 0;

    for (size_t s = 0; s < states->count; s++)
        most = MAX(most, states->all[s].weight);
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double scale = 0;

        for (size_t s = 0; s < states->count; s++) {
            const struct state *state = &states->all[s];

            if (state->weight >= MIN(most, SCALE_MIN_WEIGHT))
                scale = MAX(scale, raw_feature(states, &state->mean, f));
        }
        states->scale[f] = scale >= SCALE_MIN ? scale : 0;
    }
}

void states_rescale(struct states *states, const struct activity *activity)
{
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double value = raw_feature(states, activity, f);

        if (value >= SCALE_MIN)
            states->scale[f] = MAX(states->scale[f], value);
    }
}

size_t states_nearest(const struct states *states, const struct state *like, uint32_t tenants)
{
    size_t nearest = SIZE_MAX;
    double least = INFINITY;

    for (size_t s = 0; s < states->count; s++) {
        const struct state *state = &states->all[s];
        uint32_t other = state->listed ^ like->listed;
        /* Of two that look alike, one may be of a time when somebody else was at work. */
        double far =
            distance(states, state, like) + (other ? SAME_STATE : 0) + (other & tenants ? 1e6 : 0);

        if (far < least) {
            least = far;
            nearest = s;
        }
    }
    return nearest;
}

void states_learn(struct states *states, const struct slot *slot)
{
    struct state *best = NULL, described;
    double least = SAME_STATE;

    if (!states_describe(slot, &described) || described.listed == 0)
        return;
    if (described.has_gpm)
        states->gpm_us = slot->end_us;
    if (described.has_gpm != states->has_gpm) { /* they are not comparable */
        if (!described.has_gpm && slot->end_us < states->gpm_us + GPM_LOST_US)
            return;
        states->count = 0;
        states->has_gpm = described.has_gpm;
    }
    for (size_t s = 0; s < states->count; s++) {
        double cost = merge_cost(states, &states->all[s], &described);

        if (cost < least) {
            least = cost;
            best = &states->all[s];
        }
    }
    if (best) {
        memcpy(described.share, best->share, sizeof(described.share));
        merge(best, &described);
    } else {
        if (states->count == STATES_MAX)
            merge_closest(states);
        states->all[states->count++] = described;
    }
    update_scale(states);
}

void states_fade(struct states *states, double factor)
{
    for (size_t s = states->count; s-- > 0;) {
        struct state *state = &states->all[s];

        state->weight *= factor;
        for (size_t t = 0; t < TENANTS_MAX; t++)
            state->won[t] *= factor;
        if (state->weight < FADED)
            *state = states->all[--states->count];
    }
}

void states_keep(struct states *states, uint32_t tenants)
{
    for (size_t s = states->count; s-- > 0;)
        if (!(states->all[s].listed & tenants))
            states->all[s] = states->all[--states->count];
}

void states_forget(struct states *states, uint32_t tenant)
{
    for (size_t s = states->count; s-- > 0;) {
        struct state *state = &states->all[s];

        if (!(state->listed & (1U << tenant)))
            continue;
        /* A mixture with an unknown part tells nothing of the others. */
        if (state->share[tenant] > 0.05 || state->won[tenant] > 0)
            *state = states->all[--states->count];
        else
            state->listed &= ~(1U << tenant);
    }
}
