#include "app/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

enum { NOBODY = 65534 };

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86_64 and aarch64"
#endif

/* What serving needs, found with strace under load. mmap and mprotect are allowed without
 * PROT_EXEC. */
static const uint32_t allowed_calls[] = {
    /* the event loop */
    SYS_epoll_pwait,
    SYS_epoll_ctl,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    /* connections, and the channel to the collector */
    SYS_accept4,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_close,
    /* log lines, and the checks on a body's descriptor */
    SYS_write,
    SYS_fcntl,
    SYS_lseek,
    /* memory */
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    /* time, where the vDSO cannot tell it */
    SYS_clock_gettime,
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    SYS_exit_group,
};

#ifdef SANITIZED
/* What a report and the check for leaks at exit need on top. This is no sandbox any more, and no
 * package is built like this; but a system call missing above is still found. */
static const uint32_t sanitizer_calls[] = {
    SYS_read,
    SYS_futex,
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_readlinkat,
#ifdef __x86_64__
    SYS_open,
    SYS_stat,
    SYS_getdents,
    SYS_readlink,
#endif
    SYS_getdents64,
    SYS_ioctl,
    SYS_pread64,
    SYS_prctl,
    SYS_ptrace,
    SYS_clone,
    SYS_wait4,
    SYS_getpid,
    SYS_getppid,
    SYS_gettid,
    SYS_tgkill,
    SYS_kill,
    SYS_exit,
    SYS_sched_yield,
    SYS_sigaltstack,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_process_vm_readv,
    SYS_pipe2,
    SYS_getrlimit,
    SYS_prlimit64,
    SYS_sysinfo,
    SYS_sched_getaffinity,
    SYS_getrandom,
};
#endif

enum { FILTER_MAX = 512 };

/* A filter under construction; `len` past FILTER_MAX means that it did not fit. */
struct program {
    struct sock_filter code[FILTER_MAX];
    size_t len;
};

static void emit(struct program *program, struct sock_filter instruction)
{
    if (program->len < FILTER_MAX)
        program->code[program->len] = instruction;
    program->len++;
}

static void load(struct program *program, size_t offset)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void give(struct program *program, uint32_t action)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void allow_if(struct program *program, uint32_t call)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    give(program, SECCOMP_RET_ALLOW);
}

/* For calls whose third argument is a protection. The bit is in its lower half, which is loaded
 * (both architectures are little-endian). */
static void allow_unless_executable(struct program *program, uint32_t call)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    load(program, offsetof(struct seccomp_data, args[2]));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
    give(program, SECCOMP_RET_KILL_PROCESS);
    give(program, SECCOMP_RET_ALLOW);
}

static int install_filter(void)
{
    struct program program = {.len = 0};
    struct sock_fprog bpf;

    load(&program, offsetof(struct seccomp_data, arch));
    emit(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    give(&program, SECCOMP_RET_KILL_PROCESS);
    load(&program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    /* x32 calls come as the same architecture, with this bit in the number. */
    emit(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x40000000, 0, 1));
    give(&program, SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t i = 0; i < ARRAY_SIZE(allowed_calls); i++)
        allow_if(&program, allowed_calls[i]);
#ifdef SANITIZED
    for (size_t i = 0; i < ARRAY_SIZE(sanitizer_calls); i++)
        allow_if(&program, sanitizer_calls[i]);
#endif
    /* Last: they replace the number in the accumulator. */
    allow_unless_executable(&program, SYS_mmap);
    allow_unless_executable(&program, SYS_mprotect);
    give(&program, SECCOMP_RET_KILL_PROCESS);
    if (program.len > FILTER_MAX)
        return -ENOSPC;
    bpf = (struct sock_fprog){(unsigned short)program.len, program.code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &bpf) < 0 ? -errno : 0;
}

/* Needs CAP_SETPCAP, so it comes before anything is given up; without it the set matters little, as
 * nothing can be gained from it once PR_SET_NO_NEW_PRIVS is set. */
static void drop_bounding_set(void)
{
    for (unsigned long cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return;
}

/* EPERM: no CAP_SETUID or CAP_SETGID. EINVAL: a user namespace in which nobody is not mapped. */
static bool is_tolerable(int error)
{
    return error == EPERM || error == EINVAL;
}

static int become_nobody(void)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && !is_tolerable(errno))
        return -errno;
    return 0;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int fail(struct error *err, int code, const char *what)
{
    return error_set(err, code, "cannot sandbox the HTTP front: %s: %s; it does not serve without",
                     what, strerror(-code));
}

int sandbox_enter_front(struct error *err)
{
    int r;

    /* gmtime_r, in log lines and Date headers, reads /etc/localtime at its first call. */
    tzset();
    drop_bounding_set();
    r = become_nobody();
    if (r < 0)
        return fail(err, r, "changing to user 65534 failed");
    r = drop_capabilities();
    if (r < 0)
        return fail(err, r, "dropping capabilities failed");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(err, -errno, "setting no_new_privs failed");
    /* After the change of user, which clears it. A parent that died before this has closed the
     * channel, so the front ends all the same. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return fail(err, -errno, "asking to die with the collector failed");
    r = install_filter();
    if (r < 0)
        return fail(err, r, "installing the system call filter failed");
    return 0;
}
