/* Statistics of repeated runs. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct summary {
    size_t count;
    double mean, sd; /* of the sample: 0 if there is one value alone */
    double min, max;
};

struct summary statistics_summarise(const double *values, size_t count);

/* Welch's t-test: do two means differ, whatever their variances? */
struct welch {
    bool is_known;     /* both sides have two runs at least, and one of them varies */
    double difference; /* of the second mean less the first */
    double degrees;    /* of freedom */
    double p;          /* two-sided */
    double half_width; /* of the 95 % confidence interval of the difference */
};

struct welch statistics_welch(const struct summary *a, const struct summary *b);

/* Of Student's distribution: the probability of |T| >= t, and the t of such a probability. */
double statistics_t_tail(double t, double degrees);
double statistics_t_quantile(double tail, double degrees);
