/* /proc/stat and /proc/meminfo: any bytes give a machine that is not busier than its CPUs and does
 * not use more memory than it has, and a boot time whose microseconds fit, or nothing. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/macros.h"
#include "host/machine.h"
#include "host/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_stat(struct span text, uint64_t tick_us)
{
    struct machine machine = {.memory_bytes = 7, .memory_used_bytes = 8}, untouched = machine;
    int r = machine_parse_stat(text, tick_us, &machine);

    check(r == 0 || r == -EBADMSG);
    check(machine.memory_bytes == 7 && machine.memory_used_bytes == 8);
    check(machine.busy_us <= machine.capacity_us);
    check(machine.busy_us % tick_us == 0 && machine.capacity_us % tick_us == 0);
    if (r < 0)
        check(memcmp(&machine, &untouched, sizeof(machine)) == 0);
}

static void check_meminfo(struct span text)
{
    struct machine machine = {.busy_us = 7, .capacity_us = 8}, untouched = machine;
    int r = machine_parse_meminfo(text, &machine);

    check(r == 0 || r == -EBADMSG);
    check(machine.busy_us == 7 && machine.capacity_us == 8);
    check(machine.memory_used_bytes <= machine.memory_bytes);
    check(machine.memory_bytes % 1024 == 0 && machine.memory_used_bytes % 1024 == 0);
    if (r < 0)
        check(memcmp(&machine, &untouched, sizeof(machine)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    uint64_t boot_us;

    if (size == 0)
        return 0;
    check_stat(text, 10000); /* 100 Hz, as everywhere */
    check_stat(text, USEC_PER_SEC);
    check_meminfo(text);
    if (proc_parse_boot(text, &boot_us) == 0)
        check(boot_us % USEC_PER_SEC == 0 && boot_us <= (USEC_PER_SEC << 40));
    return 0;
}
