#pragma once

#include "cli/report.h"
#include "config/options.h"

/* Which emission factor counts; those who are asked are asked once. */
void check_emissions(struct report *report, const struct options *options);
