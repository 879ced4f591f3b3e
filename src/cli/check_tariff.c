#include "cli/check_tariff.h"

#include "collector/tariff_clock.h"
#include "core/clock.h"

void check_tariff(struct report *report, const struct options *options)
{
    struct tariff_clock tariff;
    struct error err = {""};
    char price[TARIFF_CLOCK_TEXT_BYTES];

    if (!options->cost_tariff_path)
        return;
    if (tariff_clock_open(&tariff, options->cost_tariff_path,
                          clock_system.realtime_us(&clock_system), &err) < 0) {
        report->is_refused = true;
        report_add(report, "tariff", VERDICT_MISSING,
                   "correct the file of --cost.tariff-file: the exporter does not start with it",
                   "%s", err.text);
        return;
    }
    tariff_clock_describe(&tariff, price);
    report_add(report, "tariff", VERDICT_OK, NULL, "%s", price);
}
