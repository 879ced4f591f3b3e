#include "process/self.h"

#include <sys/resource.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

static uint64_t in_us(struct timeval time)
{
    return (uint64_t)time.tv_sec * USEC_PER_SEC + (uint64_t)time.tv_usec;
}

uint64_t self_cpu_us(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return in_us(usage.ru_utime) + in_us(usage.ru_stime);
}

uint64_t self_rss_bytes(const struct host *host)
{
    char text[256];
    struct span rest = {text, 0};
    uint64_t pages;

    /* statm: size resident shared ..., in pages (proc_pid_statm(5)) */
    if (fs_read_at(host->procfs_fd, "self/statm", text, sizeof(text), &rest.len) < 0)
        return 0;
    span_cut(&rest, ' ');
    if (parse_u64_max(span_cut(&rest, ' '), 1ULL << 40, &pages) < 0)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
