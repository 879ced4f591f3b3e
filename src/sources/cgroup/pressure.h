/* Pressure stall information, cgroup v2: how long tasks waited for CPU, memory and IO. Pure. */
#pragma once

#include "core/span.h"
#include "model/usage.h"

/* Lines of "some|full avg10=... avg60=... avg300=... total=MICROSECONDS"; only totals are taken. */
void pressure_parse_cpu(struct span text, struct usage *usage);
void pressure_parse_memory(struct span text, struct usage *usage);
void pressure_parse_io(struct span text, struct usage *usage);
