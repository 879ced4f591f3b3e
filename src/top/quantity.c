#include "top/quantity.h"

#include <math.h>
#include <stdio.h>

#include "core/macros.h"

/* Three digits; the value is below 999.5. */
static void put_digits(double value, const char *prefix, const char *unit,
                       char text[QUANTITY_BYTES])
{
    double size = fabs(value);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;

    snprintf(text, QUANTITY_BYTES, "%.*f%s%s%s", value == 0 ? 0 : decimals, value,
             prefix[0] || unit[0] ? " " : "", prefix, unit);
}

/* Scales it by `step` until it has three digits before the point. */
static void put_scaled(double value, double step, const char *const *prefixes, size_t count,
                       const char *unit, char text[QUANTITY_BYTES])
{
    size_t i = 0;

    for (; i < count && fabs(value) >= 999.5; i++)
        value /= step;
    if (i < count)
        put_digits(value, prefixes[i], unit, text);
    else
        snprintf(text, QUANTITY_BYTES, "%s999 %s%s", value > 0 ? ">" : "<-", prefixes[count - 1],
                 unit);
}

void quantity_si(double value, const char *unit, char text[QUANTITY_BYTES])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};

    text[0] = '\0';
    if (isnan(value))
        return;
    if (value == 0 || fabs(value) >= 0.9995)
        put_scaled(value, 1000, prefixes, ARRAY_SIZE(prefixes), unit, text);
    else if (fabs(value) >= 0.0009995)
        put_digits(value * 1000, "m", unit, text);
    else
        snprintf(text, QUANTITY_BYTES, "%s1 m%s", value > 0 ? "<" : ">-", unit);
}

void quantity_bytes(double bytes, char text[QUANTITY_BYTES])
{
    static const char *const prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    text[0] = '\0';
    if (!isnan(bytes))
        put_scaled(bytes, 1024, prefixes, ARRAY_SIZE(prefixes), "", text);
}

void quantity_watts(double watts, char text[QUANTITY_BYTES])
{
    text[0] = '\0';
    if (fabs(watts) >= 99999.95)
        quantity_si(watts, "", text);
    else if (!isnan(watts))
        snprintf(text, QUANTITY_BYTES, "%.1f", watts);
}

void quantity_percent(double part, double whole, char text[QUANTITY_BYTES])
{
    double percent = whole > 0 ? 100 * part / whole : NAN;

    text[0] = '\0';
    if (fabs(percent) >= 999.5)
        snprintf(text, QUANTITY_BYTES, "%s999%%", percent > 0 ? ">" : "<-");
    else if (!isnan(percent))
        snprintf(text, QUANTITY_BYTES, "%.*f%%", fabs(percent) < 99.95 ? 1 : 0, percent);
}

void quantity_cores(double cores, char text[QUANTITY_BYTES])
{
    text[0] = '\0';
    if (fabs(cores) >= 999.5)
        quantity_si(cores, "", text);
    else if (!isnan(cores))
        snprintf(text, QUANTITY_BYTES, "%.*f",
                 fabs(cores) < 9.995   ? 2
                 : fabs(cores) < 99.95 ? 1
                                       : 0,
                 cores);
}

void quantity_cost(double cost, char text[QUANTITY_BYTES])
{
    text[0] = '\0';
    if (isnan(cost))
        return;
    if (fabs(cost) >= 99999.995)
        quantity_si(cost, "", text);
    else if (cost > 0 && cost < 0.00005)
        snprintf(text, QUANTITY_BYTES, "<0.0001");
    else
        snprintf(text, QUANTITY_BYTES, "%.*f", fabs(cost) < 9.99995 && cost != 0 ? 4 : 2, cost);
}
