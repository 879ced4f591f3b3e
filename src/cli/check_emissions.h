#pragma once

#include "config/options.h"
#include "model/report.h"

/* Which emission factor counts; those who are asked are asked once. */
void check_emissions(struct report *report, const struct options *options);
