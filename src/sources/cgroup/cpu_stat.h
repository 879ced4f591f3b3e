/* CPU time and throttling: cpu.stat of v2 and v1, and v1's cpuacct. Pure. */
#pragma once

#include "core/span.h"
#include "model/usage.h"

void cpu_stat_parse(struct span text, struct usage *usage);
void cpu_stat_parse_v1(struct span text, struct usage *usage);      /* throttling only */
void cpu_stat_parse_cpuacct(struct span text, struct usage *usage); /* cpuacct.stat */
void cpu_stat_parse_cpuacct_usage(struct span text, struct usage *usage);

/*
 * cpuacct.usage is exact; cpuacct.stat comes in ticks, and before 5.18 it was sampled, too, so that
 * it did not add up. So the one is divided as the other says. Neither half may go back, which it
 * would where what is sampled changes its mind: `last` is what was there before.
 */
void cpu_stat_divide(struct usage *usage, const struct usage *last);
