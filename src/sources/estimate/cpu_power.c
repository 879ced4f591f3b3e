#include "sources/estimate/cpu_power.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

/* data/cpu-power.tsv, by tools/embed. */
extern const char cpu_power_tsv[];
extern const size_t cpu_power_tsv_len;

/* A CPU has about 1.5 KiB of it. */
enum { CPUINFO_BYTES_MAX = 16 << 20, CPUS_MAX = 65536 };
static const uint64_t MILLIWATTS_MAX = 1000000, MICRO_PER_MILLI = 1000;

static void copy_front(struct span text, char *buffer, size_t size)
{
    size_t len = MIN(text.len, size - 1);

    memcpy(buffer, text.data, len);
    buffer[len] = '\0';
}

/* "model name\t: Intel(R) Xeon(R)" */
static struct span cut_value(struct span *line)
{
    struct span value = *line, key = span_cut(&value, ':');

    while (key.len > 0 && (key.data[key.len - 1] == '\t' || key.data[key.len - 1] == ' '))
        key.len--;
    span_strip_prefix(&value, " ");
    *line = key;
    return value;
}

int cpu_power_parse_cpuinfo(struct span text, struct cpu_identity *ret_cpu)
{
    bool has_vendor = false, has_family = false, has_model = false;
    struct cpu_identity cpu = {0};

    while (text.len > 0) {
        struct span key = span_cut(&text, '\n'), value = cut_value(&key);

        if (span_equals(key, "processor"))
            cpu.cpus++;
        if (cpu.cpus > 1)
            continue;
        if (span_equals(key, "vendor_id") && value.len > 0 && value.len < sizeof(cpu.vendor)) {
            copy_front(value, cpu.vendor, sizeof(cpu.vendor));
            has_vendor = true;
        } else if (span_equals(key, "model name")) {
            copy_front(value, cpu.name, sizeof(cpu.name));
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

static bool is_of(const struct cpu_identity *cpu, struct span vendor, const uint64_t *numbers)
{
    return span_equals(vendor, cpu->vendor) && cpu->family == numbers[FAMILY] &&
           cpu->model == numbers[MODEL] && cpu->stepping >= numbers[STEPPING_FROM] &&
           cpu->stepping <= numbers[STEPPING_TO];
}

int cpu_power_find(struct span table, const struct cpu_identity *cpu, struct cpu_power *ret_power)
{
    while (table.len > 0) {
        struct span line = span_cut(&table, '\n'), vendor = span_cut(&line, '\t');
        uint64_t numbers[NUMBERS];
        size_t count = 0;

        while (count < NUMBERS &&
               parse_u64_max(span_cut(&line, '\t'), MILLIWATTS_MAX, &numbers[count]) == 0)
            count++;
        if (count < NUMBERS || !is_of(cpu, vendor, numbers) || numbers[IDLE_MW] > numbers[FULL_MW])
            continue;
        ret_power->idle_uw = numbers[IDLE_MW] * MICRO_PER_MILLI * cpu->cpus;
        ret_power->full_uw = numbers[FULL_MW] * MICRO_PER_MILLI * cpu->cpus;
        copy_front(line, ret_power->generation, sizeof(ret_power->generation));
        return 0;
    }
    return -ENOENT;
}

int cpu_power_of_host(const struct host *host, struct cpu_identity *ret_cpu,
                      struct cpu_power *ret_power)
{
    _cleanup_close_ int fd = openat(host->procfs_fd, "cpuinfo", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    int r = fd < 0 ? -errno : fs_read_fd(fd, CPUINFO_BYTES_MAX, &text, &len);

    if (r == 0)
        r = cpu_power_parse_cpuinfo((struct span){text, len}, ret_cpu);
    if (r == 0)
        r = cpu_power_find((struct span){cpu_power_tsv, cpu_power_tsv_len}, ret_cpu, ret_power);
    return r;
}
