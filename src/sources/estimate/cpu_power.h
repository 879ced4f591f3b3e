/*
 * Power of a processor by a table of published figures (data/cpu-power.tsv), and its energy by CPU
 * time. Pure but for cpu_power_of_host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "host/host.h"

struct cpu_identity {
    char vendor[16]; /* "GenuineIntel" */
    char name[64];   /* for people; cut if it is longer */
    uint64_t family, model, stepping;
    uint64_t cpus; /* hardware threads of this machine */
};

struct cpu_power {
    uint64_t idle_uw, full_uw; /* of all threads together */
    char generation[32];
};

/* From the text of /proc/cpuinfo; all CPUs are assumed to be like the first. -ENODATA: no vendor,
 * family and model, as on ARM. */
int cpu_power_parse_cpuinfo(struct span text, struct cpu_identity *ret_cpu);

/* -ENOENT: not in the table. Malformed lines are skipped. */
int cpu_power_find(struct span table, const struct cpu_identity *cpu, struct cpu_power *ret_power);

/* Both, for this machine and the embedded table. `ret_cpu` is written with -ENOENT, too. */
int cpu_power_of_host(const struct host *host, struct cpu_identity *ret_cpu,
                      struct cpu_power *ret_power);

/* The energy of a machine that draws idle_uw when idle, full_uw when all CPUs are busy, and a
 * straight line in between. Exact: less than a microjoule is carried on. */
struct cpu_energy {
    uint64_t idle_uw, full_uw; /* idle <= full */

    uint64_t idle_uj, active_uj; /* so far; the sum is the energy of the machine */
    uint32_t breaks;             /* how often CPU time went back: that interval is not counted */
    uint64_t idle_carry_pj, active_carry_pj;
    bool has_last;
    uint64_t last_us, last_busy_us, last_capacity_us;
};

/* Adds a reading: CPU time since boot, of all CPUs. A reading without a tick since the last one is
 * ignored. */
void cpu_energy_add(struct cpu_energy *energy, uint64_t t_us, uint64_t busy_us,
                    uint64_t capacity_us);
