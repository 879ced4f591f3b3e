#include "process/syscall_filter.h"

#include <sys/syscall.h>

#include "core/macros.h"

/* Some calls are not on every architecture (epoll_wait: not on aarch64), others are newer than some
 * headers: hence the #ifdefs. */

static const uint32_t event_loops[] = {
    SYS_epoll_pwait,    SYS_epoll_ctl,       SYS_epoll_create1,
    SYS_ppoll,          SYS_pselect6,        SYS_eventfd2,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,     SYS_epoll_create,    SYS_poll,
    SYS_select,         SYS_eventfd,
#endif
};

/* The open ones, and those that they accept. */
static const uint32_t sockets[] = {
    SYS_accept4,     SYS_accept,     SYS_recvfrom,   SYS_recvmsg,  SYS_recvmmsg, SYS_getsockname,
    SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_shutdown, SYS_listen,
};

static const uint32_t open_files[] = {
    SYS_read,        SYS_readv,   SYS_pread64,   SYS_preadv,    SYS_preadv2, SYS_write,
    SYS_writev,      SYS_pwritev, SYS_pwrite64,  SYS_sendfile,  SYS_splice,  SYS_tee,
    SYS_close,       SYS_lseek,   SYS_fcntl,     SYS_dup,       SYS_dup3,    SYS_pipe2,
    SYS_fstat,       SYS_fsync,   SYS_fdatasync, SYS_fadvise64,
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_dup2
    SYS_dup2,        SYS_pipe,
#endif
};

static const uint32_t memory[] = {
    SYS_brk,     SYS_munmap, SYS_mremap,  SYS_madvise,    SYS_mlock,
    SYS_munlock, SYS_mlock2, SYS_mincore, SYS_membarrier,
};

/* clone is limited to threads. A wait with a limit is restarted after the process was stopped or
 * frozen. */
static const uint32_t threads[] = {
    SYS_futex,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_futex_waitv
    SYS_futex_waitv,
#endif
#ifdef SYS_futex_wait
    SYS_futex_wait,
    SYS_futex_wake,
    SYS_futex_requeue,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
};

/* Its own; tgkill, with which a thread of ours aborts, is limited to this process. */
static const uint32_t signals[] = {
    SYS_rt_sigaction,  SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend, SYS_rt_sigpending,  SYS_sigaltstack,
};

/* Without the vDSO. */
static const uint32_t time[] = {
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,
    SYS_gettimeofday,  SYS_times,        SYS_getrusage,
#ifdef SYS_time
    SYS_time,
#endif
};

static const uint32_t random_numbers[] = {SYS_getrandom};

static const uint32_t itself[] = {
    SYS_getpid,    SYS_getppid, SYS_gettid,    SYS_getuid, SYS_geteuid,
    SYS_getgid,    SYS_getegid, SYS_getgroups, SYS_uname,  SYS_sysinfo,
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
};

static const uint32_t connecting[] = {SYS_connect};

static const uint32_t reading_files[] = {
    SYS_newfstatat, SYS_statx,   SYS_readlinkat, SYS_faccessat, SYS_faccessat2,
    SYS_getdents64, SYS_fstatfs, SYS_statfs,     SYS_getcwd,
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,   SYS_readlink,   SYS_access,
#endif
};

static const uint32_t outward_sockets[] = {SYS_socket, SYS_connect, SYS_bind,    SYS_socketpair,
                                           SYS_sendto, SYS_sendmsg, SYS_sendmmsg};

static const uint32_t other_files[] = {
    SYS_openat,    SYS_openat2,    SYS_newfstatat, SYS_statx,     SYS_readlinkat,
    SYS_faccessat, SYS_faccessat2, SYS_unlinkat,   SYS_renameat2, SYS_mkdirat,
    SYS_linkat,    SYS_symlinkat,  SYS_fchmodat,   SYS_fchownat,  SYS_truncate,
    SYS_ftruncate, SYS_fallocate,  SYS_mknodat,    SYS_utimensat, SYS_memfd_create,
#ifdef SYS_open
    SYS_open,      SYS_creat,      SYS_stat,       SYS_lstat,     SYS_readlink,
    SYS_access,    SYS_unlink,     SYS_rename,     SYS_mkdir,     SYS_rmdir,
    SYS_link,      SYS_symlink,    SYS_chmod,      SYS_chown,     SYS_mknod,
#endif
};

static const uint32_t executable_memory[] = {SYS_mmap, SYS_mprotect, SYS_pkey_mprotect};

static const uint32_t settings[] = {SYS_prctl, SYS_ioctl, SYS_prlimit64, SYS_setrlimit};

/* It does in the kernel what the filter refuses here. */
static const uint32_t io_uring[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

static const uint32_t programs[] = {
    SYS_execve, SYS_execveat, SYS_clone,
#ifdef SYS_fork
    SYS_fork,   SYS_vfork,
#endif
};

/* Into the memory and the descriptors of another process. */
static const uint32_t tracing[] = {
    SYS_ptrace,          SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_process_madvise
    SYS_process_madvise,
#endif
};

static const uint32_t other_processes[] = {
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_send_signal,
    SYS_setpriority,
#ifdef SYS_pidfd_open
    SYS_pidfd_open,
#endif
};

static const uint32_t mounts[] = {
    SYS_mount,         SYS_umount2, SYS_pivot_root, SYS_chroot,  SYS_move_mount,
    SYS_open_tree,     SYS_fsopen,  SYS_fsconfig,   SYS_fsmount, SYS_fspick,
    SYS_unshare,       SYS_setns,   SYS_swapon,     SYS_swapoff, SYS_quotactl,
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
};

static const uint32_t users[] = {
    SYS_setuid,    SYS_setgid,    SYS_setreuid, SYS_setregid, SYS_setresuid,
    SYS_setresgid, SYS_setgroups, SYS_capset,   SYS_setfsuid, SYS_setfsgid,
};

static const uint32_t keys[] = {SYS_add_key, SYS_request_key, SYS_keyctl};

static const uint32_t kernel[] = {
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_syslog,
    SYS_acct,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
};

/* userfaultfd stops the kernel in the middle of a call: a tool for exploits. */
static const uint32_t kernel_programs[] = {SYS_bpf, SYS_userfaultfd};

/* Also the energy counters of processors, where sysfs does not show them. */
static const uint32_t perf[] = {SYS_perf_event_open};

/* With CAP_DAC_READ_SEARCH it opens files outside of all that is mounted here. */
static const uint32_t file_handles[] = {SYS_open_by_handle_at};

#define GROUP(title, use_, list)                                                                   \
    {                                                                                              \
        .name = (title), .use = (use_), .calls = (list), .count = ARRAY_SIZE(list)                 \
    }
#define GROUP_FOR_NOBODY(title, use_, list)                                                        \
    {                                                                                              \
        .name = (title), .use = (use_), .is_denied_to_collector = true, .calls = (list),           \
        .count = ARRAY_SIZE(list)                                                                  \
    }

/* The busiest first: an old kernel compares one by one. */
const struct syscall_group syscall_groups[] = {
    GROUP("event loops", SYSCALL_COMMON, event_loops),
    GROUP("sockets", SYSCALL_COMMON, sockets),
    GROUP("open files", SYSCALL_COMMON, open_files),
    GROUP("memory", SYSCALL_COMMON, memory),
    GROUP("threads", SYSCALL_COMMON, threads),
    GROUP("signals", SYSCALL_COMMON, signals),
    GROUP("time", SYSCALL_COMMON, time),
    GROUP("random numbers", SYSCALL_COMMON, random_numbers),
    GROUP("itself", SYSCALL_COMMON, itself),
    GROUP("sockets outwards", SYSCALL_CONNECTING, connecting),
    GROUP("reading files", SYSCALL_READING_FILES, reading_files),
    GROUP("sockets outwards", SYSCALL_DENIED, outward_sockets),
    GROUP("files", SYSCALL_DENIED, other_files),
    GROUP("executable memory", SYSCALL_DENIED, executable_memory),
    GROUP("settings of the process", SYSCALL_DENIED, settings),
    GROUP_FOR_NOBODY("io_uring", SYSCALL_DENIED, io_uring),
    GROUP_FOR_NOBODY("files by their handles", SYSCALL_DENIED, file_handles),
    GROUP("other programs", SYSCALL_FATAL, programs),
    GROUP("other processes", SYSCALL_FATAL, other_processes),
    GROUP_FOR_NOBODY("tracing", SYSCALL_FATAL, tracing),
    GROUP_FOR_NOBODY("mounts and namespaces", SYSCALL_FATAL, mounts),
    GROUP("users and capabilities", SYSCALL_FATAL, users),
    GROUP_FOR_NOBODY("keys", SYSCALL_FATAL, keys),
    GROUP_FOR_NOBODY("modules and settings of the kernel", SYSCALL_FATAL, kernel),
    GROUP_FOR_NOBODY("bpf and userfaultfd", SYSCALL_FATAL, kernel_programs),
    GROUP("perf", SYSCALL_FATAL, perf),
};
const size_t syscall_groups_count = ARRAY_SIZE(syscall_groups);
