#include "sources/estimate/cpu_power.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

/* data/cpu-power.tsv, by tools/embed. */
extern const char cpu_power_tsv[];
extern const size_t cpu_power_tsv_len;

/* A CPU has about 1.5 KiB of it. */
enum { CPUINFO_BYTES_MAX = 16 << 20, CPUS_MAX = 65536 };
static const uint64_t MILLIWATTS_MAX = 1000000, MICRO_PER_MILLI = 1000;

int cpu_power_parse_cpuinfo(struct span text, struct cpu_identity *ret_cpu)
{
    bool has_vendor = false, has_family = false, has_model = false;
    struct cpu_identity cpu = {0};

    while (text.len > 0) {
        /* "model name\t: Intel(R) Xeon(R)" */
        struct span value = span_cut(&text, '\n'), key = span_cut(&value, ':');

        while (span_strip_suffix(&key, "\t") || span_strip_suffix(&key, " "))
            ;
        span_strip_prefix(&value, " ");
        if (span_equals(key, "processor"))
            cpu.cpus++;
        if (cpu.cpus > 1)
            continue;
        if (span_equals(key, "vendor_id") && value.len > 0 && value.len < sizeof(cpu.vendor)) {
            snprintf(cpu.vendor, sizeof(cpu.vendor), "%.*s", (int)value.len, value.data);
            has_vendor = true;
        } else if (span_equals(key, "model name")) {
            snprintf(cpu.name, sizeof(cpu.name), "%.*s", (int)value.len, value.data);
        } else if (span_equals(key, "cpu family")) {
            has_family = parse_u64(value, &cpu.family) == 0;
        } else if (span_equals(key, "model")) {
            has_model = parse_u64(value, &cpu.model) == 0;
        } else if (span_equals(key, "stepping") && parse_u64(value, &cpu.stepping) < 0) {
            cpu.stepping = 0; /* "unknown" */
        }
    }
    if (!has_vendor || !has_family || !has_model || cpu.cpus == 0 || cpu.cpus > CPUS_MAX)
        return -ENODATA;
    *ret_cpu = cpu;
    return 0;
}

enum { FAMILY, MODEL, STEPPING_FROM, STEPPING_TO, IDLE_MW, FULL_MW, NUMBERS };

int cpu_power_find(struct span table, const struct cpu_identity *cpu, struct cpu_power *ret_power)
{
    while (table.len > 0) {
        struct span line = span_cut(&table, '\n'), vendor = span_cut(&line, '\t');
        uint64_t numbers[NUMBERS];
        size_t count = 0;

        while (count < NUMBERS &&
               parse_u64_max(span_cut(&line, '\t'), MILLIWATTS_MAX, &numbers[count]) == 0)
            count++;
        if (count < NUMBERS || !span_equals(vendor, cpu->vendor) ||
            cpu->family != numbers[FAMILY] || cpu->model != numbers[MODEL] ||
            cpu->stepping < numbers[STEPPING_FROM] || cpu->stepping > numbers[STEPPING_TO] ||
            numbers[IDLE_MW] > numbers[FULL_MW])
            continue;
        ret_power->idle_uw = numbers[IDLE_MW] * MICRO_PER_MILLI * cpu->cpus;
        ret_power->full_uw = numbers[FULL_MW] * MICRO_PER_MILLI * cpu->cpus;
        snprintf(ret_power->generation, sizeof(ret_power->generation), "%.*s", (int)line.len,
                 line.data);
        return 0;
    }
    return -ENOENT;
}

int cpu_power_of_host(const struct host *host, struct cpu_identity *ret_cpu,
                      struct cpu_power *ret_power)
{
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    int r = fs_read_all_at(host->procfs_fd, "cpuinfo", CPUINFO_BYTES_MAX, &text, &len);

    if (r == 0)
        r = cpu_power_parse_cpuinfo((struct span){text, len}, ret_cpu);
    if (r == 0)
        r = cpu_power_find((struct span){cpu_power_tsv, cpu_power_tsv_len}, ret_cpu, ret_power);
    return r;
}

/* uW x us = pJ */
static const uint64_t PICOJOULES_PER_UJ = 1000000;

static void add_energy(uint64_t *energy_uj, uint64_t *carry_pj, unsigned __int128 energy_pj)
{
    energy_pj += *carry_pj;
    *energy_uj += (uint64_t)(energy_pj / PICOJOULES_PER_UJ);
    *carry_pj = (uint64_t)(energy_pj % PICOJOULES_PER_UJ);
}

/* energy x part / whole, also where the product would not fit. */
static unsigned __int128 part_of(unsigned __int128 energy_pj, uint64_t part, uint64_t whole)
{
    return energy_pj / whole * part + energy_pj % whole * part / whole;
}

void cpu_energy_add(struct cpu_energy *energy, uint64_t t_us, uint64_t busy_us,
                    uint64_t capacity_us)
{
    uint64_t busy, capacity;
    unsigned __int128 dt_us;

    if (energy->has_last && t_us >= energy->last_us && busy_us >= energy->last_busy_us &&
        capacity_us >= energy->last_capacity_us) {
        capacity = capacity_us - energy->last_capacity_us;
        busy = MIN(busy_us - energy->last_busy_us, capacity);
        dt_us = t_us - energy->last_us;
        if (capacity == 0)
            return;
        add_energy(&energy->idle_uj, &energy->idle_carry_pj, energy->idle_uw * dt_us);
        add_energy(&energy->active_uj, &energy->active_carry_pj,
                   part_of((energy->full_uw - energy->idle_uw) * dt_us, busy, capacity));
    } else if (energy->has_last) {
        energy->breaks++;
    }
    energy->has_last = true;
    energy->last_us = t_us;
    energy->last_busy_us = busy_us;
    energy->last_capacity_us = capacity_us;
}
