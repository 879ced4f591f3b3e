/*
 * What a processor draws, by what /proc/cpuinfo says of it and a table of published figures
 * (data/cpu-power.tsv). The parsers are pure.
 */
#pragma once

#include <stdint.h>

#include "core/span.h"
#include "host/host.h"

struct cpu_identity {
    char vendor[16]; /* "GenuineIntel" */
    char name[64];   /* for people; cut if it is longer */
    uint64_t family, model, stepping;
    uint64_t cpus; /* hardware threads that this machine has been given */
};

struct cpu_power {
    uint64_t idle_uw, full_uw; /* of all threads together */
    char generation[32];
};

/* The text of /proc/cpuinfo; all CPUs are taken to be as the first. -ENODATA: no vendor, family and
 * model in it, as on ARM. */
int cpu_power_parse_cpuinfo(struct span text, struct cpu_identity *ret_cpu);

/* -ENOENT: the table does not have it. A line that is not as it should be is passed over. */
int cpu_power_find(struct span table, const struct cpu_identity *cpu, struct cpu_power *ret_power);

/* Both, for this machine and the table in the program. `ret_cpu` is written with -ENOENT, too. */
int cpu_power_of_host(const struct host *host, struct cpu_identity *ret_cpu,
                      struct cpu_power *ret_power);
