/* What all workloads of the node do, from their cgroups, as one sample every few seconds. */
#pragma once

#include "sources/source.h"

extern const struct source_ops cgroups_source;
