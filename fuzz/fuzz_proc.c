/* What /proc says of a process, of the CPUs and of who listens: any bytes give a command within
 * them, a user, a processor whose full power is not below its idle power, or nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "host/proc.h"
#include "sources/dcgm/dcgm.h"
#include "sources/estimate/cpu_power.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct span part, struct span whole)
{
    if (part.len > 0 && (part.data < whole.data || part.data + part.len > whole.data + whole.len))
        abort();
}

/* The text as /proc/cpuinfo, and as the table, too. */
static void check_cpus(struct span text)
{
    struct cpu_identity cpu;
    struct cpu_power power;

    if (cpu_power_parse_cpuinfo(text, &cpu) < 0)
        cpu = (struct cpu_identity){.vendor = "V", .family = 6, .model = 85, .cpus = 65536};
    if (cpu.cpus == 0 || !memchr(cpu.vendor, '\0', sizeof(cpu.vendor)) ||
        !memchr(cpu.name, '\0', sizeof(cpu.name)))
        abort();
    if (cpu_power_find(text, &cpu, &power) == 0 && power.idle_uw > power.full_uw)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size}, command;
    uint64_t ticks;
    uint32_t uid;

    if (size == 0)
        return 0;
    if (proc_parse_stat(text, &command, &ticks) == 0)
        check_within(command, text);
    (void)proc_parse_uid(text, &uid);
    (void)dcgm_listener_parse(text, &uid);
    check_cpus(text);
    return 0;
}
