#include "host/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum {
    STAT_BYTES = 4096,
    STATUS_BYTES = 4096,
    KERNEL_STAT_BYTES = 1 << 20,
};

static const uint64_t BOOT_MAX_S = (uint64_t)1 << 40;

/* Fields of /proc/PID/stat after the command (proc_pid_stat(5)): state is 3, starttime 22. */
enum { FIELDS_BEFORE_START = 22 - 3 };

int proc_parse_stat(struct span text, struct span *ret_command, uint64_t *ret_start_ticks)
{
    const char *open = memchr(text.data, '(', text.len);
    const char *close = memrchr(text.data, ')', text.len); /* a command may hold one, too */
    struct span rest;

    if (!open || !close || close < open || close + 2 > text.data + text.len || close[1] != ' ')
        return -EBADMSG;
    rest = (struct span){close + 2, (size_t)(text.data + text.len - close - 2)};
    for (int i = 0; i < FIELDS_BEFORE_START; i++)
        span_cut(&rest, ' ');
    if (parse_u64(span_cut(&rest, ' '), ret_start_ticks) < 0)
        return -EBADMSG;
    *ret_command = (struct span){open + 1, (size_t)(close - open - 1)};
    return 0;
}

int proc_parse_uid(struct span status, uint32_t *ret_uid)
{
    struct span line = span_find_line(status, "Uid:\t");
    uint64_t uid;

    if (parse_u64_max(span_cut(&line, '\t'), UINT32_MAX - 1, &uid) < 0)
        return -EBADMSG;
    *ret_uid = (uint32_t)uid;
    return 0;
}

int proc_parse_boot(struct span kernel_stat, uint64_t *ret_boot_us)
{
    uint64_t boot_s;

    if (parse_u64_max(span_find_line(kernel_stat, "btime "), BOOT_MAX_S, &boot_s) < 0)
        return -EBADMSG;
    *ret_boot_us = boot_s * USEC_PER_SEC;
    return 0;
}

uint64_t proc_read_boot_us(const struct host *host)
{
    _cleanup_free_ char *data = NULL;
    uint64_t boot_us = 0;
    size_t len;

    if (fs_read_all_at(host->procfs_fd, "stat", KERNEL_STAT_BYTES, &data, &len) == 0)
        (void)proc_parse_boot((struct span){data, len}, &boot_us);
    return boot_us;
}

void proc_reader_init(struct proc_reader *reader, const struct host *host)
{
    *reader = (struct proc_reader){.host = host, .boot_us = host->boot_us};
    if (reader->boot_us == 0)
        reader->boot_us = proc_read_boot_us(host);
}

bool proc_exists(const struct proc_reader *reader, uint32_t pid)
{
    char path[16];

    snprintf(path, sizeof(path), "%u", pid);
    return faccessat(reader->host->procfs_fd, path, F_OK, 0) == 0;
}

struct span proc_read_executable(int process_fd, char *path, size_t size_bytes)
{
    ssize_t len = readlinkat(process_fd, "exe", path, size_bytes);
    struct span executable = {path, len > 0 && (size_t)len < size_bytes ? (size_t)len : 0};

    span_strip_suffix(&executable, " (deleted)");
    return executable;
}

int proc_open(const struct host *host, uint32_t pid)
{
    char path[16];
    int fd;

    snprintf(path, sizeof(path), "%u", pid);
    fd = openat(host->procfs_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    return fd;
}

uint32_t proc_read_uid(int process_fd)
{
    char status[STATUS_BYTES];
    uint32_t uid;
    size_t len;

    if (fs_read_at(process_fd, "status", status, sizeof(status), &len) < 0 ||
        proc_parse_uid((struct span){status, len}, &uid) < 0)
        return SAMPLE_UID_UNKNOWN;
    return uid;
}

int proc_read_cgroup(const struct host *host, int process_fd, char *buffer, size_t size_bytes,
                     size_t *ret_len)
{
    size_t len;
    int r = fs_read_at(process_fd, "cgroup", buffer, size_bytes, &len);

    if (r == 0 && host->cgroup_root)
        r = host_apply_cgroup_root(span_of(host->cgroup_root), buffer, size_bytes, &len);
    if (r < 0)
        return r;
    cgroup_views_mark(host->cgroup_views, buffer, size_bytes, &len);
    *ret_len = len;
    return 0;
}

/* The command is in `stat`. */
static int read_stat(int process_fd, uint64_t boot_us, char *stat, size_t size_bytes,
                     struct span *ret_command, uint64_t *ret_start_us)
{
    long hertz = sysconf(_SC_CLK_TCK);
    uint64_t ticks;
    size_t len;

    if (fs_read_at(process_fd, "stat", stat, size_bytes, &len) < 0 ||
        proc_parse_stat((struct span){stat, len}, ret_command, &ticks) < 0)
        return -ESRCH;
    *ret_start_us = boot_us > 0 && hertz > 0 ? boot_us + ticks * USEC_PER_SEC / (uint64_t)hertz : 0;
    return 0;
}

int proc_read_start(int process_fd, uint64_t boot_us, uint64_t *ret_start_us)
{
    char stat[STAT_BYTES];
    struct span command;

    return read_stat(process_fd, boot_us, stat, sizeof(stat), &command, ret_start_us);
}

bool proc_has_left_cgroups(char state, struct span cgroup)
{
    if (state != 'Z' && state != 'X')
        return false;
    while (cgroup.len > 0) {
        struct span path = span_cut(&cgroup, '\n');

        span_cut(&path, ':');
        span_cut(&path, ':');
        if (!span_equals(path, "/") && !span_strip_suffix(&path, " (deleted)"))
            return false;
    }
    return true;
}

/* As the kernel writes it; proc_read_cgroup cuts what is gone. */
static bool is_without_cgroups(int process_fd, char state)
{
    char text[PROC_CGROUP_BYTES];
    size_t len;

    return (state == 'Z' || state == 'X') &&
           fs_read_at(process_fd, "cgroup", text, sizeof(text), &len) == 0 &&
           proc_has_left_cgroups(state, (struct span){text, len});
}

int proc_identify(const struct proc_reader *reader, uint32_t pid, struct arena *arena,
                  struct sample_process *ret_process)
{
    char stat[STAT_BYTES], cgroup[PROC_CGROUP_BYTES], path[PATH_MAX];
    struct sample_process process = {.pid = pid};
    _cleanup_close_ int fd = proc_open(reader->host, pid);
    struct span command, executable;
    const char *slash;
    size_t len = 0;

    if (fd < 0)
        return fd;
    if (read_stat(fd, reader->boot_us, stat, sizeof(stat), &command, &process.start_us) < 0)
        return -ESRCH;
    /* The state is behind the command: "(command) Z". */
    if (is_without_cgroups(fd, command.data[command.len + 2]) ||
        proc_read_cgroup(reader->host, fd, cgroup, sizeof(cgroup), &len) < 0)
        len = 0;
    process.uid = proc_read_uid(fd);
    process.cgroup = arena_copy(arena, cgroup, len);
    executable = proc_read_executable(fd, path, sizeof(path));
    slash = executable.len > 0 ? memrchr(path, '/', executable.len) : NULL;
    process.name = slash ? arena_copy(arena, slash + 1, executable.len - (size_t)(slash + 1 - path))
                         : arena_copy(arena, command.data, command.len);
    if (!process.cgroup || !process.name)
        return -ENOMEM;
    *ret_process = process;
    return 0;
}
