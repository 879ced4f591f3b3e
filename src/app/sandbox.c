#include "app/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "app/sanitized.h"
#include "core/macros.h"

#ifdef SANITIZED
#include <sanitizer/lsan_interface.h>
#endif

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86_64 and aarch64"
#endif

/* What each needs was found with strace, under load. mmap and mprotect are allowed to all, without
 * PROT_EXEC. */
static const uint32_t serving_calls[] = {
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

/* Where other threads are: locks, above all malloc's. A wait with a limit goes on by itself after
 * the process was stopped or frozen. */
static const uint32_t threaded_calls[] = {SYS_futex, SYS_restart_syscall};

/* The keys of sessions. */
static const uint32_t tls_calls[] = {SYS_getrandom};

/* Checking passwords: its results go through a socket that is there already. */
static const uint32_t worker_calls[] = {SYS_sendto, SYS_brk,       SYS_munmap,
                                        SYS_mremap, SYS_madvise,   SYS_rt_sigprocmask,
                                        SYS_exit,   SYS_exit_group};

/* libcurl and GnuTLS, with sockets and files as checked below; and the thread's own end. */
static const uint32_t client_calls[] = {
    /* connections, and the channel to the collector */
    SYS_connect,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_recvfrom,
    SYS_sendto,
    SYS_sendmsg,
#ifdef SYS_poll
    SYS_poll,
#else
    SYS_ppoll,
#endif
    /* the token, the authorities, and the descriptor that wakes it up */
    SYS_read,
    SYS_write,
    SYS_newfstatat,
    SYS_fstat,
    SYS_lseek,
    SYS_fcntl,
    SYS_close,
    /* memory and time */
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_clock_gettime,
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    /* random numbers, which must differ after a fork */
    SYS_getrandom,
    SYS_getpid,
    /* the end of the thread, or of all */
    SYS_rt_sigprocmask,
    SYS_exit,
    SYS_exit_group,
};

/* On top of these, for the asker: a thread of libcurl's in which glibc looks up a name. */
static const uint32_t asker_calls[] = {
    /* the thread, and how it says that it is done, also in other versions of libcurl */
    SYS_set_robust_list,
    SYS_rseq,
    SYS_pipe2,
    SYS_eventfd2,
    /* questions over UDP and, where an answer is long, TCP */
    SYS_sendmmsg,
    SYS_writev,
    /* the domain to look in */
    SYS_uname,
    /* and the system's authorities, which are a directory */
    SYS_getdents64,
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

enum { FILTER_MAX = 512, SOCKET_TYPES = 15 };

/* A filter under construction; `len` past FILTER_MAX means that it did not fit. */
struct program {
    struct sock_filter code[FILTER_MAX];
    size_t len;
    uint32_t refusal; /* what happens at a call that is not allowed */
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

/* Arguments are compared by their lower half: both architectures are little-endian, and the kernel
 * takes no more of an int. */
static void load_argument(struct program *program, unsigned index)
{
    load(program, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

/* Allows the call, if the test of its argument (BPF_JEQ, BPF_JSET) ends as is `wanted`. */
static void allow_tested(struct program *program, uint32_t call, unsigned index, uint16_t test,
                         uint32_t value, bool wanted)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    load_argument(program, index);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, wanted, !wanted));
    give(program, program->refusal);
    give(program, SECCOMP_RET_ALLOW);
}

/* Allows the call, if none of these bits is set in the argument. */
static void allow_without(struct program *program, uint32_t call, unsigned index, uint32_t bits)
{
    allow_tested(program, call, index, BPF_JSET, bits, false);
}

/* To the outside only: a path of a unix socket may end at the root, an abstract name does not. */
static void allow_internet_sockets(struct program *program)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5));
    load_argument(program, 0);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1));
    give(program, SECCOMP_RET_ALLOW);
    give(program, program->refusal);
}

static void allow_all(struct program *program, const uint32_t *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        allow_if(program, calls[i]);
}

/* Threads, and no processes: the flags of clone3 cannot be seen, but glibc takes clone instead. */
static void allow_asker(struct program *program)
{
    allow_all(program, asker_calls, ARRAY_SIZE(asker_calls));
    allow_tested(program, SYS_clone, 0, BPF_JSET, CLONE_THREAD, true);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
    give(program, SECCOMP_RET_ERRNO | ENOSYS);
    allow_tested(program, SYS_ioctl, 1, BPF_JEQ, FIONREAD, true);
    /* Two of SOCK_DGRAM, which is 2, could be connected to any other local socket. */
    allow_without(program, SYS_socketpair, 1, SOCKET_TYPES & ~SOCK_STREAM);
}

static bool is_client(enum sandbox_role role)
{
    return role == SANDBOX_CLIENT || role == SANDBOX_FILELESS_CLIENT || role == SANDBOX_ASKER;
}

static void allow_role(struct program *program, enum sandbox_role role)
{
    if (is_client(role)) {
        allow_all(program, client_calls, ARRAY_SIZE(client_calls));
        allow_internet_sockets(program);
        if (role != SANDBOX_FILELESS_CLIENT)
            allow_without(program, SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC); /* read only */
        if (role == SANDBOX_ASKER)
            allow_asker(program);
    } else if (role == SANDBOX_WORKER) {
        allow_all(program, worker_calls, ARRAY_SIZE(worker_calls));
    } else {
        allow_all(program, serving_calls, ARRAY_SIZE(serving_calls));
    }
    if (role == SANDBOX_TLS_SERVER)
        allow_all(program, tls_calls, ARRAY_SIZE(tls_calls));
    if (role != SANDBOX_SERVER)
        allow_all(program, threaded_calls, ARRAY_SIZE(threaded_calls));
}

static int install_filter(enum sandbox_role role)
{
    /* Another version of the client's libraries may want a call more: that may cost its answers,
     * but not the server beside it. */
    struct program program = {
        .refusal = is_client(role) ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS,
    };
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
#ifdef SANITIZED
    allow_all(&program, sanitizer_calls, ARRAY_SIZE(sanitizer_calls));
#endif
    allow_role(&program, role);
    allow_without(&program, SYS_mmap, 2, PROT_EXEC);
    allow_without(&program, SYS_mprotect, 2, PROT_EXEC);
    give(&program, program.refusal);
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

static int become(uid_t user)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresgid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresuid(user, user, user) < 0 && !is_tolerable(errno))
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
    return error_set(err, code,
                     "cannot put a process that talks to the network into its sandbox: %s: %s; it "
                     "does not go on without",
                     what, strerror(-code));
}

/* gmtime_r, in log lines and Date headers, reads /etc/localtime at its first call. */
static void read_time_zone(void)
{
    tzset();
}

#ifdef SANITIZED
/* The check for leaks at exit reads /proc, which is not below another root. */
static int root_is_changed;

int __lsan_is_turned_off(void)
{
    return root_is_changed;
}
#endif

int sandbox_change_root(const char *directory, struct error *err)
{
    read_time_zone();
    if (chroot(directory) < 0 || chdir("/") < 0) {
        int code = -errno;

        return error_set(err, code, "cannot change the root to %.256s: %s%s", directory,
                         strerror(-code), code == -EPERM ? "; this needs CAP_SYS_CHROOT" : "");
    }
#ifdef SANITIZED
    root_is_changed = 1;
#endif
    return 0;
}

int sandbox_drop_privileges(uid_t user, struct error *err)
{
    int r;

    read_time_zone();
    drop_bounding_set();
    r = become(user);
    if (r < 0)
        return fail(err, r, "changing the user failed");
    r = drop_capabilities();
    if (r < 0)
        return fail(err, r, "dropping capabilities failed");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(err, -errno, "setting no_new_privs failed");
    /* After the change of user, which clears it. A parent that died before this has closed the
     * channel, so the child ends all the same. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return fail(err, -errno, "asking to die with the collector failed");
    return 0;
}

int sandbox_filter_calls(enum sandbox_role role, struct error *err)
{
    int r = install_filter(role);

    return r < 0 ? fail(err, r, "installing the system call filter failed") : 0;
}

int sandbox_enter_front(struct error *err)
{
    int r = sandbox_drop_privileges(SANDBOX_NOBODY, err);

    return r < 0 ? r : sandbox_filter_calls(SANDBOX_SERVER, err);
}
