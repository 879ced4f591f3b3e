#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "process/syscall_filter.h"

/* What becomes of a call: it works, fails with an error, or ends the process. */
enum { WORKS = 0, DIES = -1 };

/* Tries it; `fd` is one end of a connected pair of stream sockets. 0: it worked; or errno. */
typedef int attempt_call(int fd);

static int outcome(long result)
{
    return result >= 0 ? WORKS : errno;
}

/* From here on: what libraries of a server may do. */

static int read_socket(int fd)
{
    char bytes[4];
    struct iovec vector = {bytes, sizeof(bytes)};

    if (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
        return errno;
    /* The other end echoes nothing: what counts is that the kernel is asked. */
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return errno;
    return (read(fd, bytes, sizeof(bytes)) < 0 && errno != EAGAIN) ||
                   (readv(fd, &vector, 1) < 0 && errno != EAGAIN) ||
                   (recv(fd, bytes, sizeof(bytes), 0) < 0 && errno != EAGAIN)
               ? errno
               : WORKS;
}

static int write_socket(int fd)
{
    struct iovec vector = {"x", 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

    return write(fd, "x", 1) == 1 && writev(fd, &vector, 1) == 1 && sendmsg(fd, &message, 0) == 1
               ? WORKS
               : errno;
}

static int describe_socket(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address), int_len = sizeof(int);
    struct stat st;
    int value = 1;

    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
                   getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &int_len) == 0 &&
                   setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof(value)) == 0 &&
                   fstat(fd, &st) == 0 && ioctl(fd, FIONREAD, &value) == 0
               ? WORKS
               : errno;
}

static int accept_connection(int fd)
{
    /* Not a listener: what counts is that the kernel is asked. */
    return accept4(fd, NULL, NULL, 0) < 0 && errno == EINVAL && accept(fd, NULL, NULL) < 0 &&
                   errno == EINVAL
               ? WORKS
               : errno;
}

static int wait_for_events(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    struct timeval none = {0};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fd, &set);
    return poll(&poll_fd, 1, 0) == 1 && select(fd + 1, NULL, &set, NULL, &none) == 1 ? WORKS
                                                                                     : errno;
}

static int wake_itself(int fd)
{
    int fds[2], event_fd = eventfd(0, EFD_CLOEXEC);

    (void)fd;
    return event_fd >= 0 && pipe2(fds, O_CLOEXEC) == 0 &&
                   socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0
               ? WORKS
               : errno;
}

static int use_memory(int fd)
{
    char *memory = malloc(8 << 20), *grown = realloc(memory, 64 << 20);

    (void)fd;
    if (!grown) {
        free(memory);
        return ENOMEM;
    }
    grown[(64 << 20) - 1] = 1;
    free(grown);
    return WORKS;
}

static int wait_for_lock(int fd)
{
    uint32_t word = 1;

    (void)fd;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL) < 0 && errno == EAGAIN ? WORKS
                                                                                         : errno;
}

static void *add_one(void *number)
{
    ++*(int *)number;
    return NULL;
}

static int use_thread(int fd)
{
    pthread_t thread;
    int number = 41, r = pthread_create(&thread, NULL, add_one, &number);

    (void)fd;
    if (r == 0)
        r = pthread_join(thread, NULL);
    return r == 0 && number != 42 ? EINVAL : r;
}

static int draw_numbers(int fd)
{
    char bytes[8];

    (void)fd;
    return getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes) ? WORKS : errno;
}

static int tell_time(int fd)
{
    struct timespec now, moment = {0, 1};

    (void)fd;
    return clock_gettime(CLOCK_REALTIME, &now) == 0 && nanosleep(&moment, NULL) == 0 ? WORKS
                                                                                     : errno;
}

static int know_itself(int fd)
{
    struct rlimit limit;

    (void)fd;
    (void)getuid();
    return getpid() > 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                   prctl(PR_SET_NAME, "renamed") == 0
               ? WORKS
               : errno;
}

static int signal_itself(int fd)
{
    (void)fd;
    return signal(SIGUSR1, SIG_IGN) != SIG_ERR && raise(SIGUSR1) == 0 ? WORKS : errno;
}

/* From here on: what only some may do. */

static int connect_to_internet(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)fd;
    if (socket_fd < 0)
        return errno;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* Nobody listens on port 0: what counts is that the kernel is asked. */
    return connect(socket_fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == EPERM
               ? EPERM
               : WORKS;
}

static int make_udp_socket(int fd)
{
    int socket_fd = socket(AF_INET6, SOCK_DGRAM, 0);

    (void)fd;
    return socket_fd < 0 && errno != EAFNOSUPPORT ? errno : WORKS;
}

static int make_local_socket(int fd)
{
    (void)fd;
    return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_netlink_socket(int fd)
{
    (void)fd;
    return outcome(socket(AF_NETLINK, SOCK_RAW, 0));
}

#ifndef SANITIZED /* the sanitizer's runtime itself needs these */
static int read_file(int fd)
{
    (void)fd;
    return outcome(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
}

static int look_at_file(int fd)
{
    struct stat st;

    (void)fd;
    return outcome(stat("/etc/passwd", &st));
}
#endif

static int list_directory(int fd)
{
    DIR *directory = opendir("/");

    (void)fd;
    return directory && readdir(directory) ? WORKS : errno;
}

/* From here on: what nobody may do. */

static int reconnect(int fd)
{
    struct sockaddr address = {.sa_family = AF_UNSPEC};

    return outcome(connect(fd, &address, sizeof(address)));
}

static int send_fast_open(int fd)
{
    return outcome(send(fd, "x", 1, MSG_FASTOPEN));
}

static int take_address(int fd)
{
    struct sockaddr address = {.sa_family = AF_UNSPEC};

    return outcome(bind(fd, &address, sizeof(address)));
}

static int make_datagram_pair(int fd)
{
    int fds[2];

    (void)fd;
    return outcome(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds));
}

static int map_code(int fd)
{
    (void)fd;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? errno
               : WORKS;
}

static int make_code(int fd)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)fd;
    return outcome(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int remove_file(int fd)
{
    (void)fd;
    return outcome(unlink("/nonexistent"));
}

#ifndef SANITIZED
static int write_file(int fd)
{
    (void)fd;
    return outcome(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int make_file(int fd)
{
    (void)fd;
    return outcome(open("/nonexistent/file", O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int cut_file(int fd)
{
    (void)fd;
    return outcome(open("/dev/null", O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int control_terminal(int fd)
{
    char byte = '\n';

    return outcome(ioctl(fd, TIOCSTI, &byte));
}

static int become_dumpable(int fd)
{
    (void)fd;
    return outcome(prctl(PR_SET_DUMPABLE, 1));
}

static int raise_limit(int fd)
{
    struct rlimit limit = {16, 16};

    (void)fd;
    return outcome(setrlimit(RLIMIT_NOFILE, &limit));
}

static int make_process(int fd)
{
    (void)fd;
    return outcome(fork());
}

static int signal_another(int fd)
{
    (void)fd;
    return outcome(kill(1, 0));
}

static int trace(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_ptrace, 0, 0, 0, 0));
}
#endif

static int set_up_io_uring(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_io_uring_setup, 1, NULL));
}

/* A call that is in no group, and one that no kernel has. */
static int make_inotify(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_inotify_init1, 0));
}

static int call_of_the_future(int fd)
{
    (void)fd;
    return outcome(syscall(5000));
}

static int run_program(int fd)
{
    (void)fd;
    return outcome(execl("/bin/true", "true", NULL));
}

static int mount_something(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
}

static int enter_namespace(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_unshare, CLONE_NEWUSER));
}

static int add_key(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}

static int load_module(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_init_module, NULL, 0, NULL));
}

static int load_bpf(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_bpf, 0, NULL, 0));
}

static int change_user(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_setuid, 0));
}

#ifdef __x86_64__
static int call_x32(int fd)
{
    (void)fd;
    return outcome(syscall(0x40000000 | SYS_close, -1));
}
#endif

/* From here on: what only the collector is asked. */

static int open_by_handle(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_open_by_handle_at, -1, NULL, 0));
}

#ifndef SANITIZED
static int fork_into_namespace(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}
#endif

static int fork_by_clone3(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_clone3, NULL, 0));
}

static int make_crypto_socket(int fd)
{
    (void)fd;
    return outcome(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static int make_packet_socket(int fd)
{
    (void)fd;
    return outcome(socket(AF_PACKET, SOCK_RAW, 0));
}

static int fault_in_user_space(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_userfaultfd, ~0U));
}

static int set_clock(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_clock_settime, -1, NULL));
}

static int count_events(int fd)
{
    (void)fd;
    return outcome(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
}

/* Without a filter, none of those that are refused would end like this, for root. */
static const struct {
    const char *what;
    attempt_call *attempt;
    int outcome;
} cases_of_collector[] = {
    {"mount", mount_something, EPERM},
    {"enter a namespace", enter_namespace, EPERM},
    {"fork by clone3", fork_by_clone3, ENOSYS},
    {"use keys", add_key, EPERM},
    {"load a module", load_module, EPERM},
    {"load a BPF program", load_bpf, EPERM},
    {"handle faults", fault_in_user_space, EPERM},
    {"set up io_uring", set_up_io_uring, EPERM},
    {"open a file by its handle", open_by_handle, EPERM},
    {"set the clock", set_clock, EPERM},
    {"make a socket of the crypto API", make_crypto_socket, EAFNOSUPPORT},
    {"make a packet socket", make_packet_socket, EAFNOSUPPORT},
#ifndef SANITIZED
    {"trace", trace, EPERM},
    {"fork into a namespace", fork_into_namespace, EPERM},
    {"write a file", write_file, WORKS},
    {"make a process", make_process, WORKS},
    {"signal another process", signal_another, WORKS},
    {"set a limit", raise_limit, WORKS},
#endif
    {"start a thread", use_thread, WORKS},
    {"run a program", run_program, WORKS},
    {"map code", map_code, WORKS},
    {"connect to the internet", connect_to_internet, WORKS},
    {"make a local socket", make_local_socket, WORKS},
    {"make a netlink socket", make_netlink_socket, WORKS},
    {"make a call of no group", make_inotify, WORKS},
    {"make a call that no kernel has", call_of_the_future, ENOSYS},
    {"list a directory", list_directory, WORKS},
    {"count events", count_events, EFAULT},
};

static const struct {
    const char *what;
    attempt_call *attempt;
    int outcomes[3]; /* of enum syscall_role */
} cases[] = {
#define ALL(result)                                                                                \
    {                                                                                              \
        (result), (result), (result)                                                               \
    }
    {"read a socket", read_socket, ALL(WORKS)},
    {"write to a socket", write_socket, ALL(WORKS)},
    {"ask about a socket", describe_socket, ALL(WORKS)},
    {"accept a connection", accept_connection, ALL(WORKS)},
    {"wait for events", wait_for_events, ALL(WORKS)},
    {"wake itself", wake_itself, ALL(WORKS)},
    {"use memory", use_memory, ALL(WORKS)},
    {"wait for a lock", wait_for_lock, ALL(WORKS)},
    {"start a thread", use_thread, ALL(WORKS)},
    {"draw random numbers", draw_numbers, ALL(WORKS)},
    {"tell the time", tell_time, ALL(WORKS)},
    {"know itself", know_itself, ALL(WORKS)},
    {"signal itself", signal_itself, ALL(WORKS)},

    {"connect to the internet", connect_to_internet, {EPERM, WORKS, WORKS}},
    {"make a UDP socket", make_udp_socket, {EPERM, WORKS, WORKS}},
    {"make a local socket", make_local_socket, {EPERM, EAFNOSUPPORT, EAFNOSUPPORT}},
    {"make a netlink socket", make_netlink_socket, {EPERM, EAFNOSUPPORT, EAFNOSUPPORT}},
#ifdef SANITIZED
    {"list a directory", list_directory, ALL(WORKS)},
#else
    {"list a directory", list_directory, {EPERM, WORKS, EPERM}},
    {"read a file", read_file, {EPERM, WORKS, EPERM}},
    {"look at a file", look_at_file, {EPERM, WORKS, EPERM}},
#endif

    {"connect a socket that is there", reconnect, {EPERM, EINVAL, EINVAL}},
    {"connect by fast open", send_fast_open, ALL(EPERM)},
    {"bind a socket", take_address, ALL(EPERM)},
    {"make a pair of datagram sockets", make_datagram_pair, ALL(EPERM)},
    {"map code", map_code, ALL(EPERM)},
    {"make code", make_code, ALL(EPERM)},
    {"remove a file", remove_file, ALL(EPERM)},
#ifndef SANITIZED
    {"write a file", write_file, ALL(EPERM)},
    {"make a file", make_file, ALL(EPERM)},
    {"cut a file", cut_file, ALL(EPERM)},
    {"type into a terminal", control_terminal, ALL(EPERM)},
    {"become dumpable", become_dumpable, ALL(EPERM)},
    {"set a limit", raise_limit, ALL(EPERM)},
    {"make a process", make_process, ALL(DIES)},
    {"signal another process", signal_another, ALL(DIES)},
    {"trace", trace, ALL(DIES)},
#endif
    {"set up io_uring", set_up_io_uring, ALL(EPERM)},
    {"make a call of no group", make_inotify, ALL(ENOSYS)},
    {"make a call that no kernel has", call_of_the_future, ALL(ENOSYS)},
    {"run a program", run_program, ALL(DIES)},
    {"mount", mount_something, ALL(DIES)},
    {"enter a namespace", enter_namespace, ALL(DIES)},
    {"use keys", add_key, ALL(DIES)},
    {"load a module", load_module, ALL(DIES)},
    {"load a BPF program", load_bpf, ALL(DIES)},
    {"change the user", change_user, ALL(DIES)},
#ifdef __x86_64__
    {"make an x32 call", call_x32, ALL(DIES)},
#endif
};

/* Runs it in a filtered child, `times` times. Returns its outcome; the child's log goes to `log`.
 */
static int run_filtered(enum syscall_role role, attempt_call *attempt, unsigned times, char *log,
                        size_t log_bytes)
{
    int sockets[2], log_fds[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe2(log_fds, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int result = 0;

        dup2(log_fds[1], STDERR_FILENO);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall_filter_install(role) < 0)
            _exit(255);
        while (times-- > 0)
            result = attempt(sockets[0]);
        _exit(result);
    }
    close(log_fds[1]);
    while ((n = read(log_fds[0], log + len, log_bytes - 1 - len)) > 0)
        len += (size_t)n;
    log[len] = '\0';
    close(log_fds[0]);
    close(sockets[0]);
    close(sockets[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGSYS);
        return DIES;
    }
    assert_int_not_equal(WEXITSTATUS(status), 255);
    return WEXITSTATUS(status);
}

static void each_role_may_do_what_its_groups_allow_and_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (enum syscall_role role = SYSCALL_SERVER; role <= SYSCALL_FILELESS_CLIENT; role++) {
            char log[4096];
            int result = run_filtered(role, cases[i].attempt, 1, log, sizeof(log));

            if (result != cases[i].outcomes[role])
                fail_msg("role %d may %s: %s, not %s\n%s", (int)role, cases[i].what,
                         result == DIES ? "dies" : strerror(result),
                         cases[i].outcomes[role] == DIES ? "dies"
                                                         : strerror(cases[i].outcomes[role]),
                         log);
        }
}

static void the_collector_may_do_all_but_what_it_never_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases_of_collector); i++) {
        char log[4096];
        int result =
            run_filtered(SYSCALL_COLLECTOR, cases_of_collector[i].attempt, 1, log, sizeof(log));

        if (result != cases_of_collector[i].outcome)
            fail_msg("the collector may %s: %s, not %s", cases_of_collector[i].what,
                     result == DIES ? "dies" : strerror(result),
                     strerror(cases_of_collector[i].outcome));
    }
}

/* As a child does, which inherits the collector's. */
static int run_program_under_both(int fd)
{
    return syscall_filter_install(SYSCALL_SERVER) < 0 ? errno : run_program(fd);
}

static int mount_under_both(int fd)
{
    return syscall_filter_install(SYSCALL_SERVER) < 0 ? errno : mount_something(fd);
}

static int read_socket_under_both(int fd)
{
    return syscall_filter_install(SYSCALL_SERVER) < 0 ? errno : read_socket(fd);
}

static void the_filter_of_a_child_holds_on_top_of_the_collectors(void **state)
{
    char log[4096];

    (void)state;
    assert_int_equal(run_filtered(SYSCALL_COLLECTOR, read_socket_under_both, 1, log, sizeof(log)),
                     WORKS);
    assert_int_equal(run_filtered(SYSCALL_COLLECTOR, run_program_under_both, 1, log, sizeof(log)),
                     DIES);
    assert_int_equal(run_filtered(SYSCALL_COLLECTOR, mount_under_both, 1, log, sizeof(log)), DIES);
}

static void assert_line(const char *log, const char *const *parts)
{
    const char *end = strchr(log, '\n');

    assert_non_null(end);
    assert_string_equal(end + 1, ""); /* one line */
    for (; *parts; parts++)
        if (!strstr(log, *parts))
            fail_msg("no %s in: %s", *parts, log);
}

static void a_refused_call_is_logged_once_with_its_name_and_group(void **state)
{
    char log[4096];

    (void)state;
    assert_int_equal(run_filtered(SYSCALL_SERVER, remove_file, 3, log, sizeof(log)), EPERM);
    assert_line(log, (const char *[]){"level=warn", "call=unlink", "group=files", "error=EPERM",
                                      "please report", NULL});
    assert_int_equal(run_filtered(SYSCALL_CLIENT, make_inotify, 3, log, sizeof(log)), ENOSYS);
    assert_line(log, (const char *[]){"level=warn", "call=inotify_init1", "error=ENOSYS", NULL});
    assert_int_equal(run_filtered(SYSCALL_SERVER, call_of_the_future, 2, log, sizeof(log)), ENOSYS);
    assert_line(log, (const char *[]){"call=5000", NULL});
}

static void a_fatal_call_is_logged_before_the_process_ends(void **state)
{
    char log[4096];

    (void)state;
    assert_int_equal(run_filtered(SYSCALL_SERVER, run_program, 1, log, sizeof(log)), DIES);
    assert_line(log, (const char *[]){"level=error", "call=execve", "group=\"other programs\"",
                                      "please report", NULL});
}

static void what_a_resolver_tries_and_does_without_is_refused_quietly(void **state)
{
    char log[4096];

    (void)state;
    assert_int_equal(run_filtered(SYSCALL_CLIENT, make_netlink_socket, 1, log, sizeof(log)),
                     EAFNOSUPPORT);
    assert_string_equal(log, "");
}

static void calls_have_names(void **state)
{
    (void)state;
    assert_true(SYS_read < syscall_names_count);
    assert_string_equal(syscall_names[SYS_read], "read");
    assert_string_equal(syscall_names[SYS_execveat], "execveat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_role_may_do_what_its_groups_allow_and_no_more),
        cmocka_unit_test(the_collector_may_do_all_but_what_it_never_needs),
        cmocka_unit_test(the_filter_of_a_child_holds_on_top_of_the_collectors),
        cmocka_unit_test(a_refused_call_is_logged_once_with_its_name_and_group),
        cmocka_unit_test(a_fatal_call_is_logged_before_the_process_ends),
        cmocka_unit_test(what_a_resolver_tries_and_does_without_is_refused_quietly),
        cmocka_unit_test(calls_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
