#include "process/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/log.h"
#include "core/macros.h"

#if defined(__x86_64__)
#define NATIVE_ARCH           AUDIT_ARCH_X86_64
#define RETURN_VALUE(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define NATIVE_ARCH           AUDIT_ARCH_AARCH64
#define RETURN_VALUE(context) ((context)->uc_mcontext.regs[0])
#else
#error "the system-call filter knows x86_64 and aarch64"
#endif

/* Since Linux 5.17; names memory in /proc/PID/maps. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* The si_code of a refusal; glibc's headers do not have it. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

enum { FILTER_MAX = 1024, SOCKET_TYPES = 15 };

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* A refusal reaches on_refusal as a signal with this number as its si_errno: what the call fails
 * with, or REFUSE_FATAL. */
enum { REFUSE_FATAL = 0 };
#define REFUSE(code) (SECCOMP_RET_TRAP | (code))

#ifdef SANITIZED
/* What a report and the check for leaks at exit need on top. This is no sandbox any more, and no
 * package is built like this; but a system call missing from the groups is still found. */
static const uint32_t sanitizer_calls[] = {
    SYS_openat,     SYS_newfstatat,
    SYS_readlinkat, SYS_getdents64,
    SYS_ioctl,      SYS_prctl,
    SYS_ptrace,     SYS_clone,
    SYS_wait4,      SYS_tgkill,
    SYS_kill,       SYS_prlimit64,
    SYS_sysinfo,    SYS_process_vm_readv,
#ifdef __x86_64__
    SYS_open,       SYS_stat,
    SYS_getdents,   SYS_readlink,
#endif
};
#endif

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

static void emit_load(struct program *program, size_t offset)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_return(struct program *program, uint32_t action)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void decide(struct program *program, uint32_t call, uint32_t action)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    emit_return(program, action);
}

static void decide_groups(struct program *program, enum syscall_use use, uint32_t action)
{
    for (size_t i = 0; i < syscall_groups_count; i++)
        for (size_t j = 0; j < syscall_groups[i].count && syscall_groups[i].use == use; j++)
            decide(program, syscall_groups[i].calls[j], action);
}

/* Arguments are compared by their lower half: both architectures are little-endian, and the kernel
 * takes no more of an int. */
static void load_argument(struct program *program, unsigned index)
{
    emit_load(program, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

/* Tests of an argument. */
#define HAS(bits)   BPF_JSET, (bits), true
#define LACKS(bits) BPF_JSET, (bits), false
#define IS(value)   BPF_JEQ, (value), true

/* Allows the call if the test ends as is `wanted`; otherwise goes on to what follows. */
static void allow_if(struct program *program, uint32_t call, unsigned index, uint16_t test,
                     uint32_t value, bool wanted)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    load_argument(program, index);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, !wanted, wanted));
    emit_return(program, SECCOMP_RET_ALLOW);
    emit_load(program, offsetof(struct seccomp_data, nr));
}

static void allow_null(struct program *program, uint32_t call, unsigned index)
{
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 6));
    load_argument(program, index);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3));
    emit_load(program,
              offsetof(struct seccomp_data, args) + index * sizeof(uint64_t) + sizeof(uint32_t));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
    emit_return(program, SECCOMP_RET_ALLOW);
    emit_load(program, offsetof(struct seccomp_data, nr));
}

/* Calls that are harmless for some arguments only. */
static void allow_limited(struct program *program)
{
    allow_if(program, SYS_mmap, 2, LACKS(PROT_EXEC));
    allow_if(program, SYS_mprotect, 2, LACKS(PROT_EXEC));
    /* MSG_FASTOPEN connects. */
    allow_if(program, SYS_sendto, 3, LACKS(MSG_FASTOPEN));
    allow_if(program, SYS_sendmsg, 2, LACKS(MSG_FASTOPEN));
    allow_if(program, SYS_sendmmsg, 3, LACKS(MSG_FASTOPEN));
    /* Of an open file: glibc's fstat. */
    allow_if(program, SYS_newfstatat, 3, HAS(AT_EMPTY_PATH));
    allow_if(program, SYS_statx, 2, HAS(AT_EMPTY_PATH));
    /* Threads, and no processes. The flags of clone3 cannot be seen; glibc takes clone instead. */
    allow_if(program, SYS_clone, 0, HAS(CLONE_THREAD));
    decide(program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    allow_if(program, SYS_tgkill, 0, IS((uint32_t)getpid()));
    /* Two of SOCK_DGRAM, which is 2, could be connected to any other local socket. */
    allow_if(program, SYS_socketpair, 1, LACKS(SOCKET_TYPES & ~SOCK_STREAM));
    allow_if(program, SYS_ioctl, 1, IS(FIONREAD));
    allow_if(program, SYS_ioctl, 1, IS(FIONBIO));
    allow_if(program, SYS_ioctl, 1, IS(TCGETS)); /* isatty */
    allow_if(program, SYS_prctl, 0, IS(PR_SET_NAME));
    allow_if(program, SYS_prctl, 0, IS(PR_SET_VMA));
    allow_null(program, SYS_prlimit64, 2); /* reading limits: no new ones */
}

/* To the internet. glibc also asks its cache daemon and, by netlink, for our addresses, and does
 * without: so these fail quietly. */
static void allow_internet_sockets(struct program *program)
{
    allow_if(program, SYS_socket, 0, IS(AF_INET));
    allow_if(program, SYS_socket, 0, IS(AF_INET6));
    decide(program, SYS_socket, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    decide_groups(program, SYSCALL_CONNECTING, SECCOMP_RET_ALLOW);
}

static void allow_reading_files(struct program *program)
{
    allow_if(program, SYS_openat, 2, LACKS(O_ACCMODE | O_CREAT | O_TRUNC));
#ifdef SYS_open
    allow_if(program, SYS_open, 1, LACKS(O_ACCMODE | O_CREAT | O_TRUNC));
#endif
    decide_groups(program, SYSCALL_READING_FILES, SECCOMP_RET_ALLOW);
    /* So that it can become a fileless client: another filter only takes more away. */
    allow_if(program, SYS_prctl, 0, IS(PR_SET_SECCOMP));
}

/* Calls of another architecture have other numbers. */
static void write_front(struct program *program)
{
    emit_load(program, offsetof(struct seccomp_data, arch));
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    emit_return(program, SECCOMP_RET_KILL_PROCESS);
    emit_load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    /* x32 calls come as the same architecture, with this bit in the number. */
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x40000000, 0, 1));
    emit_return(program, SECCOMP_RET_KILL_PROCESS);
#endif
#ifdef SANITIZED
    for (size_t i = 0; i < ARRAY_SIZE(sanitizer_calls); i++)
        decide(program, sanitizer_calls[i], SECCOMP_RET_ALLOW);
#endif
}

/* Its children are made by clone, without namespaces of their own; glibc does without clone3, whose
 * flags cannot be seen. */
static void write_for_collector(struct program *program)
{
    static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

    for (size_t i = 0; i < syscall_groups_count; i++)
        for (size_t j = 0; j < syscall_groups[i].count; j++)
            if (syscall_groups[i].is_denied_to_collector)
                decide(program, syscall_groups[i].calls[j], SECCOMP_RET_ERRNO | EPERM);
    allow_if(program, SYS_clone, 0, LACKS(NAMESPACES));
    decide(program, SYS_clone, SECCOMP_RET_ERRNO | EPERM);
    decide(program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < ARRAY_SIZE(families); i++)
        allow_if(program, SYS_socket, 0, IS(families[i]));
    decide(program, SYS_socket, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    emit_return(program, SECCOMP_RET_ALLOW);
}

static void write_for_network(struct program *program, enum syscall_role role)
{
    decide_groups(program, SYSCALL_COMMON, SECCOMP_RET_ALLOW);
    allow_limited(program);
    if (role != SYSCALL_SERVER)
        allow_internet_sockets(program);
    if (role == SYSCALL_CLIENT)
        allow_reading_files(program);
    decide_groups(program, SYSCALL_DENIED, REFUSE(EPERM));
    decide_groups(program, SYSCALL_FATAL, REFUSE(REFUSE_FATAL));
    emit_return(program, REFUSE(ENOSYS));
}

/* Of a call that was refused. A call that is denied for some arguments may be in two. */
static const char *group_of(uint32_t call)
{
    for (size_t i = syscall_groups_count; i-- > 0 && syscall_groups[i].use >= SYSCALL_DENIED;)
        for (size_t j = 0; j < syscall_groups[i].count; j++)
            if (syscall_groups[i].calls[j] == call)
                return syscall_groups[i].name;
    return NULL;
}

/* Static, as a signal handler has no other place for it. */
static bool is_first_refusal(uint32_t call)
{
    static atomic_bool seen[1024];

    return !atomic_exchange(&seen[call % ARRAY_SIZE(seen)], true);
}

/* Logging allocates nothing: the call may have come from within malloc. */
static void log_refusal(uint32_t call, int code)
{
    char number[16];
    const char *name = call < syscall_names_count ? syscall_names[call] : NULL;

    snprintf(number, sizeof(number), "%u", call);
    if (code == REFUSE_FATAL)
        log_error("the process made a system call that it never needs, and is ended: it may have "
                  "been taken over; please report this",
                  "call", name ? name : number, "group", group_of(call));
    else
        log_warn("the sandbox refused a system call; if something is missing from now on, please "
                 "report this line with the versions of libmicrohttpd, GnuTLS and libcurl",
                 "call", name ? name : number, "group", group_of(call), "error",
                 strerrorname_np(code));
}

static void on_refusal(int number, siginfo_t *info, void *context)
{
    uint32_t call = (uint32_t)info->si_syscall;

    if (info->si_code != SYS_SECCOMP)
        return;
    if (is_first_refusal(call))
        log_refusal(call, info->si_errno);
    if (info->si_errno == REFUSE_FATAL) {
        signal(number, SIG_DFL);
        raise(number); /* once this handler has returned */
        return;
    }
    RETURN_VALUE((ucontext_t *)context) = -info->si_errno;
}

static int handle_refusals(void)
{
    struct sigaction action = {.sa_sigaction = on_refusal, .sa_flags = SA_SIGINFO};
    sigset_t own;

    sigemptyset(&own);
    sigaddset(&own, SIGSYS);
    if (sigaction(SIGSYS, &action, NULL) < 0)
        return -errno;
    return -pthread_sigmask(SIG_UNBLOCK, &own, NULL);
}

/*
 * The collector runs no code of strangers, so its filter need not cost it the speculation of
 * stores, as it did before Linux 5.16 (SPEC_ALLOW). A call that it is refused is in the kernel's
 * log (LOG). A filter from outside may allow prctl alone.
 */
static int install(const struct sock_fprog *bpf, enum syscall_role role)
{
    if (role == SYSCALL_COLLECTOR &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW, bpf) == 0)
        return 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, bpf) < 0 ? -errno : 0;
}

int syscall_filter_install(enum syscall_role role)
{
    struct program program = {0};
    struct sock_fprog bpf;
    int r = role == SYSCALL_COLLECTOR ? 0 : handle_refusals();

    if (r < 0)
        return r;
    write_front(&program);
    if (role == SYSCALL_COLLECTOR)
        write_for_collector(&program);
    else
        write_for_network(&program, role);
    if (program.len > FILTER_MAX)
        return -ENOSPC;
    bpf = (struct sock_fprog){(unsigned short)program.len, program.code};
    return install(&bpf, role);
}
