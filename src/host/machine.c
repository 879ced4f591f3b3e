#include "host/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/parse.h"

/* Enough for the first line of one and the first lines of the other; the rest may be long. */
enum { READ_BYTES = 4096 };

static const uint64_t TICKS_MAX = UINT64_MAX / USEC_PER_SEC / 16;
static const uint64_t KILOBYTES_MAX = UINT64_MAX / 1024;

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; old kernels have fewer.
 */
int machine_parse_stat(struct span text, uint64_t tick_us, struct machine *machine)
{
    struct span line = span_cut(&text, '\n');
    uint64_t ticks[COLUMNS] = {0};
    size_t count = 0;

    if (!span_strip_prefix(&line, "cpu "))
        return -EBADMSG;
    while (line.len > 0 && count < COLUMNS) {
        struct span word = span_cut(&line, ' ');

        if (word.len > 0 && parse_u64_max(word, TICKS_MAX, &ticks[count++]) < 0)
            return -EBADMSG;
    }
    if (count <= IDLE)
        return -EBADMSG;
    /* Guests are part of user and nice. Stolen time was used by others, on our CPUs. */
    machine->busy_us =
        (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ]) * tick_us;
    machine->capacity_us =
        machine->busy_us + (ticks[IDLE] + ticks[IOWAIT] + ticks[STEAL]) * tick_us;
    return 0;
}

/* "MemTotal:       16384 kB" */
static bool take_line(struct span line, const char *name, uint64_t *bytes)
{
    uint64_t kilobytes;

    if (!span_strip_prefix(&line, name) || !span_strip_suffix(&line, " kB"))
        return false;
    while (span_strip_prefix(&line, " "))
        ;
    if (parse_u64_max(line, KILOBYTES_MAX, &kilobytes) < 0)
        return false;
    *bytes = kilobytes * 1024;
    return true;
}

int machine_parse_meminfo(struct span text, struct machine *machine)
{
    uint64_t total = 0, available = 0;
    bool has_total = false, has_available = false;

    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');

        has_total |= take_line(line, "MemTotal:", &total);
        has_available |= take_line(line, "MemAvailable:", &available);
    }
    if (!has_total || !has_available || available > total)
        return -EBADMSG;
    machine->memory_bytes = total;
    machine->memory_used_bytes = total - available;
    return 0;
}

/* The beginning of a file that may be of any length. */
static int read_head(int dir_fd, const char *name, char buffer[static READ_BYTES],
                     struct span *ret_text)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, buffer, READ_BYTES);

    if (n < 0)
        return -errno;
    *ret_text = (struct span){buffer, (size_t)n};
    return 0;
}

int machine_read(const struct host *host, struct machine *ret_machine)
{
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    struct machine machine = {0};
    char buffer[READ_BYTES];
    struct span text = {0};
    int r = read_head(host->procfs_fd, "stat", buffer, &text);

    if (r == 0)
        r = machine_parse_stat(text, USEC_PER_SEC / (uint64_t)MAX(ticks_per_second, 1L), &machine);
    if (r == 0)
        r = read_head(host->procfs_fd, "meminfo", buffer, &text);
    if (r == 0)
        r = machine_parse_meminfo(text, &machine);
    if (r == 0)
        *ret_machine = machine;
    return r;
}
