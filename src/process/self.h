/* What the collector itself costs. */
#pragma once

#include <stdint.h>

#include "host/host.h"

uint64_t self_cpu_us(void);

/* Resident memory, or 0 if the injected procfs does not tell. */
uint64_t self_rss_bytes(const struct host *host);
