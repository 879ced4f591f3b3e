/* The part of `wattribute check` that is about --cost.tariff-file. */
#pragma once

#include "config/options.h"
#include "model/report.h"

/* If the file is given, which price it tells for now; the time zone of the process is its own then.
 */
void check_tariff(struct report *report, const struct options *options);
