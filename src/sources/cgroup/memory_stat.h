/* Memory: what is held, how often the limit was hit, and who was killed for it. Pure. */
#pragma once

#include "core/span.h"
#include "model/usage.h"

void memory_stat_parse(struct span text, struct usage *usage);
void memory_stat_parse_events(struct span text, struct usage *usage);

/* v1: the keys that include what is below, and the tightest limit. */
void memory_stat_parse_v1(struct span text, struct usage *usage);
void memory_stat_parse_oom_control(struct span text, struct usage *usage);
