#include "host/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { FILE_BYTES = 1 << 20 };

static const uint64_t TICKS_MAX = UINT64_MAX / USEC_PER_SEC / 16;
static const uint64_t KILOBYTES_MAX = UINT64_MAX / 1024;

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; old kernels have fewer.
 * Guests are part of user and nice. Stolen time was used by others, on our CPUs. */
int machine_parse_stat(struct span text, uint64_t tick_us, struct machine *machine)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7, COLUMNS = 8 };
    struct span line = span_cut(&text, '\n');
    uint64_t busy = 0, capacity = 0, ticks;
    size_t column = 0;

    if (!span_strip_prefix(&line, "cpu "))
        return -EBADMSG;
    while (line.len > 0 && column < COLUMNS) {
        struct span word = span_cut(&line, ' ');

        if (word.len == 0)
            continue;
        if (parse_u64_max(word, TICKS_MAX, &ticks) < 0)
            return -EBADMSG;
        capacity += ticks;
        busy += column == IDLE || column == IOWAIT || column == STEAL ? 0 : ticks;
        column++;
    }
    if (column <= IDLE)
        return -EBADMSG;
    machine->busy_us = busy * tick_us;
    machine->capacity_us = capacity * tick_us;
    return 0;
}

/* "MemTotal:       16384 kB" */
static int parse_kilobytes(struct span text, const char *name, uint64_t *ret_kilobytes)
{
    struct span value = span_find_line(text, name);

    if (!span_strip_suffix(&value, " kB"))
        return -EINVAL;
    while (span_strip_prefix(&value, " "))
        ;
    return parse_u64_max(value, KILOBYTES_MAX, ret_kilobytes);
}

int machine_parse_meminfo(struct span text, struct machine *machine)
{
    uint64_t total, available;

    if (parse_kilobytes(text, "MemTotal:", &total) < 0 ||
        parse_kilobytes(text, "MemAvailable:", &available) < 0 || available > total)
        return -EBADMSG;
    machine->memory_bytes = total * 1024;
    machine->memory_used_bytes = (total - available) * 1024;
    return 0;
}

int machine_read(const struct host *host, struct machine *ret_machine)
{
    uint64_t tick_us = USEC_PER_SEC / (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1L);
    _cleanup_free_ char *stat = NULL, *meminfo = NULL;
    struct machine machine = {0};
    size_t len = 0;
    int r = fs_read_all_at(host->procfs_fd, "stat", FILE_BYTES, &stat, &len);

    if (r == 0)
        r = machine_parse_stat((struct span){stat, len}, tick_us, &machine);
    if (r == 0)
        r = fs_read_all_at(host->procfs_fd, "meminfo", FILE_BYTES, &meminfo, &len);
    if (r == 0)
        r = machine_parse_meminfo((struct span){meminfo, len}, &machine);
    if (r == 0)
        *ret_machine = machine;
    return r;
}
