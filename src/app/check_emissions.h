#pragma once

#include "app/options.h"
#include "app/report.h"

/* Which emission factor counts; those who are asked are asked once. */
void check_emissions(struct report *report, const struct options *options);
