#include "run/statistics.h"

#include <math.h>

#include "core/macros.h"

struct summary statistics_summarise(const double *values, size_t count)
{
    struct summary summary = {.count = count};
    double squares = 0;

    for (size_t i = 0; i < count; i++) {
        double step = values[i] - summary.mean;

        /* Welford's: no difference of large sums */
        summary.mean += step / (double)(i + 1);
        squares += step * (values[i] - summary.mean);
        summary.min = i == 0 ? values[i] : MIN(summary.min, values[i]);
        summary.max = i == 0 ? values[i] : MAX(summary.max, values[i]);
    }
    if (count > 1)
        summary.sd = sqrt(squares / (double)(count - 1));
    return summary;
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double x, double a, double b)
{
    static const double TINY = 1e-300, ENOUGH = 1e-15;
    enum { STEPS = 10000 };
    double c = 1, d = 1 - (a + b) * x / (a + 1), result;

    d = 1 / (fabs(d) < TINY ? TINY : d);
    result = d;
    for (int m = 1; m < STEPS; m++) {
        double terms[2] = {
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        };
        double before = result;

        for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = fabs(c) < TINY ? TINY : c;
            result *= c * d;
        }
        if (fabs(result - before) <= ENOUGH * fabs(result))
            break;
    }
    return result;
}

/* Regularised: I_x(a, b). */
static double incomplete_beta(double x, double a, double b)
{
    int sign;
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) +
                b * log1p(-x));
    /* The fraction converges fast on this side of the mean. */
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double statistics_t_tail(double t, double degrees)
{
    return incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

double statistics_t_quantile(double tail, double degrees)
{
    enum { HALVINGS = 200 };
    double low = 0, high = 1;

    while (statistics_t_tail(high, degrees) > tail && high < 1e15)
        high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;

        if (statistics_t_tail(middle, degrees) > tail)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct welch statistics_welch(const struct summary *a, const struct summary *b)
{
    static const double TAIL = 0.05;
    struct welch welch = {.difference = b->mean - a->mean};
    double part_a, part_b, error;

    if (a->count < 2 || b->count < 2)
        return welch;
    part_a = a->sd * a->sd / (double)a->count;
    part_b = b->sd * b->sd / (double)b->count;
    error = sqrt(part_a + part_b);
    if (error <= 0)
        return welch;
    welch.is_known = true;
    /* Welch-Satterthwaite */
    welch.degrees =
        (part_a + part_b) * (part_a + part_b) /
        (part_a * part_a / (double)(a->count - 1) + part_b * part_b / (double)(b->count - 1));
    welch.p = statistics_t_tail(fabs(welch.difference) / error, welch.degrees);
    welch.half_width = statistics_t_quantile(TAIL, welch.degrees) * error;
    return welch;
}
