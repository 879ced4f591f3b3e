/* The identity of a pid, from the injected procfs: start time, name, user, cgroups and
 * program. */
#pragma once

#include <stdint.h>

#include "core/arena.h"
#include "core/span.h"
#include "host/host.h"
#include "model/sample.h"

enum { PROC_CGROUP_BYTES = 64 * 1024 }; /* cap for /proc/PID/cgroup */

struct proc_reader {
    const struct host *host;
    uint64_t boot_us; /* since the epoch; 0: unknown */
};

/* When the kernel started, since the epoch; 0: unknown. */
uint64_t proc_read_boot_us(const struct host *host);

void proc_reader_init(struct proc_reader *reader, const struct host *host);

/* Pure. Has it ended, and does its /proc/PID/cgroup no longer show where it was? v1 puts a zombie
 * into the root; v2 leaves it in its cgroup, until that is removed. */
bool proc_has_left_cgroups(char state, struct span cgroup);

/* Everything is read below one open /proc/PID, so that a reused pid cannot mix two processes. The
 * texts are in the arena. -ESRCH: no such process. */
int proc_identify(const struct proc_reader *reader, uint32_t pid, struct arena *arena,
                  struct sample_process *ret_process);

bool proc_exists(const struct proc_reader *reader, uint32_t pid);

/* Pure. From /proc/PID/stat: the command, which may hold blanks and parentheses, and the start time
 * in clock ticks since boot. 0 or -EBADMSG. */
int proc_parse_stat(struct span text, struct span *ret_command, uint64_t *ret_start_ticks);

/* Pure. From /proc/PID/status: the real user. 0 or -EBADMSG. */
int proc_parse_uid(struct span status, uint32_t *ret_uid);

/* Pure. From /proc/stat: when the node booted, since the epoch. 0 or -EBADMSG. */
int proc_parse_boot(struct span kernel_stat, uint64_t *ret_boot_us);

/* Opens /proc/PID (O_PATH). -ESRCH: no such process. */
int proc_open(const struct host *host, uint32_t pid);

/* When it started; 0: unknown. 0 or -ESRCH. */
int proc_read_start(int process_fd, uint64_t boot_us, uint64_t *ret_start_us);

/* The path of the executable without "(deleted)"; empty where the link cannot be read: a kernel
 * thread, a zombie, or no permission. */
struct span proc_read_executable(int process_fd, char *path, size_t size_bytes);

/* SAMPLE_UID_UNKNOWN if it cannot be read. */
uint32_t proc_read_uid(int process_fd);

/* Reads /proc/PID/cgroup, with paths from the node's root and marks of delegation
 * (host/cgroup_delegation.h) where these are known. 0 or -errno as fs_read_at. */
int proc_read_cgroup(const struct host *host, int process_fd, char *buffer, size_t size_bytes,
                     size_t *ret_len);
