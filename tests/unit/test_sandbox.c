#include "file_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/sandbox.h"
#include "app/sanitized.h"
#include "core/log.h"
#include "core/macros.h"

/* What the sandboxed child does; `fd` is its end of a socketpair. Its result is the exit status. */
typedef int child_body(int fd);

static int enter(enum sandbox_role role)
{
    int r;

    if (role == SANDBOX_SERVER)
        return sandbox_enter_front(NULL);
    r = sandbox_drop_privileges(SANDBOX_NOBODY, NULL);
    return r < 0 ? r : sandbox_filter_calls(role, NULL);
}

static pid_t start_child(enum sandbox_role role, child_body *body, int *ret_fd)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        if (enter(role) < 0)
            _exit(99);
        _exit(body(fds[1]));
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int run_child(enum sandbox_role role, child_body *body)
{
    int fd;
    pid_t pid = start_child(role, body, &fd);
    int status = wait_for(pid);

    close(fd);
    return status;
}

static int make_socket(int fd)
{
    (void)fd;
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int run_program(int fd)
{
    (void)fd;
    return execl("/bin/true", "true", NULL);
}

static int map_code(int fd)
{
    (void)fd;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
}

static int make_code(int fd)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)fd;
    return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static int remove_file(int fd)
{
    (void)fd;
    return unlink("/nonexistent");
}

static int connect_out(int fd)
{
    struct sockaddr address = {.sa_family = AF_UNSPEC};

    return connect(fd, &address, sizeof(address));
}

#ifdef __x86_64__
static int call_x32(int fd)
{
    (void)fd;
    return (int)syscall(0x40000000 | SYS_close, -1);
}
#endif

#ifndef SANITIZED
static int open_file(int fd)
{
    (void)fd;
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int look_at_file(int fd)
{
    (void)fd;
    return access("/etc/passwd", R_OK);
}

static int make_process(int fd)
{
    (void)fd;
    return fork() < 0;
}

static int signal_parent(int fd)
{
    (void)fd;
    return kill(1, 0);
}
#endif

static int make_local_socket(int fd)
{
    (void)fd;
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int make_netlink_socket(int fd)
{
    (void)fd;
    return socket(AF_NETLINK, SOCK_RAW, 0);
}

static int take_address(int fd)
{
    struct sockaddr address = {.sa_family = AF_UNSPEC};

    return bind(fd, &address, sizeof(address));
}

static int take_connection(int fd)
{
    return accept4(fd, NULL, NULL, 0);
}

/* Nobody listens on port 0: what counts is that the kernel is asked. */
static int make_socket_and_connect(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int v4 = socket(AF_INET, SOCK_STREAM, 0), v6 = socket(AF_INET6, SOCK_DGRAM, 0);

    (void)fd;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return v4 >= 0 && connect(v4, (struct sockaddr *)&address, sizeof(address)) < 0 &&
                   (v6 >= 0 || errno == EAFNOSUPPORT)
               ? 0
               : 1;
}

static int read_file(int fd)
{
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char byte;

    (void)fd;
    return file >= 0 && read(file, &byte, 1) == 1 ? 0 : 1;
}

static int wait_for_lock(int fd)
{
    uint32_t word = 1;

    (void)fd;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL) < 0 && errno == EAGAIN ? 0 : 1;
}

/* What the next child tries, and its exit status: 0 if that failed with EPERM. */
static child_body *refused_body;

static int is_refused(int fd)
{
    errno = 0;
    (void)refused_body(fd);
    return errno == EPERM ? 0 : 1;
}

#ifndef SANITIZED
static int signal_self(int fd)
{
    (void)fd;
    return kill(getpid(), 0);
}

static int write_file(int fd)
{
    (void)fd;
    return open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static int make_file(int fd)
{
    (void)fd;
    return open("/nonexistent/file", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int cut_file(int fd)
{
    (void)fd;
    return open("/dev/null", O_RDONLY | O_TRUNC | O_CLOEXEC);
}
#endif

static int use_memory(int fd)
{
    char *memory = malloc(8 << 20), *grown = realloc(memory, 64 << 20);

    (void)fd;
    if (!grown) {
        free(memory);
        return 1;
    }
    grown[(64 << 20) - 1] = 1;
    free(grown);
    return 0;
}

static void assert_killed(enum sandbox_role role, child_body *const *bodies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int status = run_child(role, bodies[i]);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
            fail_msg("case %zu of role %d survived with status %#x", i, (int)role,
                     (unsigned)status);
    }
}

static void a_call_that_serving_does_not_need_kills_the_process(void **state)
{
    static child_body *const bodies[] = {
        make_socket, run_program,  map_code,     make_code,     remove_file,   connect_out,
#ifdef __x86_64__
        call_x32,
#endif
#ifndef SANITIZED /* the sanitizer's runtime itself needs these */
        open_file,   look_at_file, make_process, signal_parent, wait_for_lock,
#endif
    };

    (void)state;
    assert_killed(SANDBOX_SERVER, bodies, ARRAY_SIZE(bodies));
}

static void a_server_beside_a_client_may_wait_for_it_and_no_more(void **state)
{
    static child_body *const bodies[] = {
        make_socket, run_program,  map_code,     make_code,     remove_file, connect_out,
#ifdef __x86_64__
        call_x32,
#endif
#ifndef SANITIZED
        open_file,   look_at_file, make_process, signal_parent,
#endif
    };

    (void)state;
    assert_killed(SANDBOX_THREADED_SERVER, bodies, ARRAY_SIZE(bodies));
    assert_int_equal(run_child(SANDBOX_THREADED_SERVER, wait_for_lock), 0);
}

static int draw_numbers(int fd)
{
    char bytes[8];

    (void)fd;
    return getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes) ? 0 : 1;
}

static int read_file_or_socket(int fd)
{
    char byte;

    return (int)read(fd, &byte, 1);
}

static int send_result(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 1;
}

static void a_server_with_tls_may_draw_random_numbers_and_no_more(void **state)
{
    static child_body *const bodies[] = {
        make_socket, run_program,  map_code,     make_code,     remove_file, connect_out,
#ifndef SANITIZED
        open_file,   look_at_file, make_process, signal_parent,
#endif
    };
#ifndef SANITIZED
    static child_body *const drawing[] = {draw_numbers};
#endif

    (void)state;
    assert_killed(SANDBOX_TLS_SERVER, bodies, ARRAY_SIZE(bodies));
    assert_int_equal(run_child(SANDBOX_TLS_SERVER, draw_numbers), 0);
    assert_int_equal(run_child(SANDBOX_TLS_SERVER, wait_for_lock), 0);
#ifndef SANITIZED
    assert_killed(SANDBOX_SERVER, drawing, ARRAY_SIZE(drawing));
    assert_killed(SANDBOX_THREADED_SERVER, drawing, ARRAY_SIZE(drawing));
#endif
}

static void a_worker_may_compute_and_tell_its_result_and_no_more(void **state)
{
    static child_body *const bodies[] = {
        make_socket,  run_program,         map_code,        make_code,
        remove_file,  connect_out,         take_connection,
#ifndef SANITIZED
        open_file,    look_at_file,        make_process,    signal_parent,
        draw_numbers, read_file_or_socket,
#endif
    };

    (void)state;
    assert_killed(SANDBOX_WORKER, bodies, ARRAY_SIZE(bodies));
    assert_int_equal(run_child(SANDBOX_WORKER, send_result), 0);
    assert_int_equal(run_child(SANDBOX_WORKER, use_memory), 0);
    assert_int_equal(run_child(SANDBOX_WORKER, wait_for_lock), 0);
}

static void a_client_may_not_write_files_listen_or_use_local_sockets(void **state)
{
    static child_body *const bodies[] = {
        make_local_socket, make_netlink_socket, take_address, take_connection, run_program,
        map_code,          make_code,           remove_file,
#ifndef SANITIZED
        write_file,        make_file,           cut_file,     make_process,    signal_self,
#endif
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        refused_body = bodies[i];
        if (run_child(SANDBOX_CLIENT, is_refused) != 0)
            fail_msg("case %zu is permitted", i);
    }
#ifdef __x86_64__
    assert_int_equal(WTERMSIG(run_child(SANDBOX_CLIENT, call_x32)), SIGSYS);
#endif
}

static void a_client_may_connect_and_read_files(void **state)
{
    (void)state;
    assert_int_equal(run_child(SANDBOX_CLIENT, make_socket_and_connect), 0);
    assert_int_equal(run_child(SANDBOX_CLIENT, read_file), 0);
    assert_int_equal(run_child(SANDBOX_CLIENT, wait_for_lock), 0);
    assert_int_equal(run_child(SANDBOX_CLIENT, use_memory), 0);
}

static void a_client_without_files_may_connect_and_open_none(void **state)
{
    static child_body *const bodies[] = {
        make_local_socket, make_netlink_socket, take_address, take_connection, run_program,
        map_code,          remove_file,
#ifndef SANITIZED
        open_file,         write_file,
#endif
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        refused_body = bodies[i];
        if (run_child(SANDBOX_FILELESS_CLIENT, is_refused) != 0)
            fail_msg("case %zu is permitted", i);
    }
    assert_int_equal(run_child(SANDBOX_FILELESS_CLIENT, make_socket_and_connect), 0);
    assert_int_equal(run_child(SANDBOX_FILELESS_CLIENT, wait_for_lock), 0);
    assert_int_equal(run_child(SANDBOX_FILELESS_CLIENT, use_memory), 0);
}

static int make_datagram_pair(int fd)
{
    int fds[2];

    (void)fd;
    return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds);
}

#ifndef SANITIZED
static int control_terminal(int fd)
{
    char byte = '\n';

    return ioctl(fd, TIOCSTI, &byte);
}
#endif

static void an_asker_may_not_do_what_a_client_may_not(void **state)
{
    static child_body *const bodies[] = {
        make_local_socket, make_netlink_socket, take_address, take_connection,    run_program,
        map_code,          make_code,           remove_file,  make_datagram_pair,
#ifndef SANITIZED
        write_file,        make_file,           cut_file,     make_process,       signal_self,
        control_terminal,
#endif
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        refused_body = bodies[i];
        if (run_child(SANDBOX_ASKER, is_refused) != 0)
            fail_msg("case %zu is permitted", i);
    }
#ifdef __x86_64__
    assert_int_equal(WTERMSIG(run_child(SANDBOX_ASKER, call_x32)), SIGSYS);
#endif
}

static void *add_one(void *number)
{
    ++*(int *)number;
    return NULL;
}

static int use_thread(int fd)
{
    pthread_t thread;
    int number = 41;

    (void)fd;
    return pthread_create(&thread, NULL, add_one, &number) == 0 &&
                   pthread_join(thread, NULL) == 0 && number == 42
               ? 0
               : 1;
}

/* How libcurl hears of the end of a look-up. */
static int make_ways_to_wake(int fd)
{
    int fds[2];

    (void)fd;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0 &&
                   pipe2(fds, O_CLOEXEC) == 0 && eventfd(0, EFD_CLOEXEC) >= 0
               ? 0
               : 1;
}

static int list_directory(int fd)
{
    DIR *directory = opendir("/");

    (void)fd;
    return directory && readdir(directory) ? 0 : 1;
}

static void an_asker_may_connect_read_files_and_start_threads(void **state)
{
    static child_body *const bodies[] = {
        make_socket_and_connect, read_file,   wait_for_lock, use_memory, use_thread,
        make_ways_to_wake,       draw_numbers};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        if (run_child(SANDBOX_ASKER, bodies[i]) != 0)
            fail_msg("case %zu failed", i);
}

static void memory_can_be_had_inside(void **state)
{
    (void)state;
    assert_int_equal(run_child(SANDBOX_SERVER, use_memory), 0);
}

static int log_a_line(int fd)
{
    /* dup2 is not allowed inside; a descriptor with the number of stderr was made by the caller. */
    (void)fd;
    log_info("still here");
    return 0;
}

static void a_log_line_with_its_time_can_be_written_inside(void **state)
{
    char line[256] = "";
    int fds[2], saved = dup(STDERR_FILENO), status;
    ssize_t n;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    status = run_child(SANDBOX_SERVER, log_a_line);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fds[1]);
    n = read(fds[0], line, sizeof(line) - 1);
    close(fds[0]);
    assert_int_equal(status, 0);
    assert_true(n > 0);
    assert_non_null(strstr(line, "msg=\"still here\""));
}

/* Says that it is inside, then waits to be let go. */
static int stand_by(int fd)
{
    char byte = 1;

    if (send(fd, &byte, 1, 0) != 1)
        return 1;
    return recv(fd, &byte, 1, 0) == 0 ? 0 : 2;
}

static void read_status(pid_t pid, char *text, size_t size)
{
    char path[64];
    FILE *file;
    size_t len;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    len = fread(text, 1, size - 1, file);
    text[len] = '\0';
    fclose(file);
}

static void assert_powerless(const char *status)
{
    assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
    assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(status, "\nCapEff:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapInh:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapAmb:\t0000000000000000\n"));
}

static bool may(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return data[capability / 32].effective >> (capability % 32) & 1;
}

static void inside_it_is_nobody_without_any_capability(void **state)
{
    char status[8192], byte;
    int fd;
    pid_t pid = start_child(SANDBOX_SERVER, stand_by, &fd);

    (void)state;
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    read_status(pid, status, sizeof(status));
    close(fd);
    assert_int_equal(wait_for(pid), 0);
    assert_powerless(status);
    if (geteuid() == 0 && may(CAP_SETUID) && may(CAP_SETGID)) {
        assert_non_null(strstr(status, "\nUid:\t65534\t65534\t65534\t65534\n"));
        assert_non_null(strstr(status, "\nGid:\t65534\t65534\t65534\t65534\n"));
        assert_non_null(strstr(status, "\nGroups:\t \n"));
    }
    if (may(CAP_SETPCAP))
        assert_non_null(strstr(status, "\nCapBnd:\t0000000000000000\n"));
}

static void root_that_may_not_change_its_user_gives_up_all_else(void **state)
{
    char status[8192], byte;
    int fds[2];
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

        close(fds[0]);
        if (syscall(SYS_capset, &header, none) < 0 || sandbox_enter_front(NULL) < 0)
            _exit(99);
        _exit(stand_by(fds[1]));
    }
    close(fds[1]);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 1);
    read_status(pid, status, sizeof(status));
    close(fds[0]);
    assert_int_equal(wait_for(pid), 0);
    assert_powerless(status);
}

static void it_dies_with_its_parent(void **state)
{
    int fds[2];
    char byte;
    pid_t parent;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        int inner[2];

        close(fds[0]);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner) < 0)
            _exit(1);
        if (fork() == 0) {
            if (sandbox_enter_front(NULL) < 0)
                _exit(99);
            /* It holds both ends of `inner`, so only the signal can end it. */
            _exit(stand_by(inner[1]));
        }
        _exit(recv(inner[0], &byte, 1, 0) == 1 ? 0 : 2);
    }
    close(fds[1]);
    assert_int_equal(wait_for(parent), 0);
    /* The end that the grandchild inherited closes when it is killed. */
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
    close(fds[0]);
}

/* Exit status 0: inside, the directory is all that there is. */
static int look_around(void)
{
    char text[8] = "";
    int file = open("/token", O_RDONLY | O_CLOEXEC);

    if (file < 0 || read(file, text, sizeof(text) - 1) != 5 || strcmp(text, "token") != 0)
        return 1;
    if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
        return 2;
    if (open("../../../../etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
        return 3;
    return 0;
}

static int enter_directory(const char *directory)
{
    if (sandbox_change_root(directory, NULL) < 0)
        return 97;
    if (sandbox_drop_privileges(SANDBOX_NOBODY, NULL) < 0)
        return 98;
    return sandbox_filter_calls(SANDBOX_CLIENT, NULL) < 0 ? 99 : look_around();
}

static void with_another_root_only_what_is_below_it_can_be_opened(void **state)
{
    char directory[] = "/tmp/wattribute-sandbox-XXXXXX", path[64];
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chmod(directory, 0755), 0);
    snprintf(path, sizeof(path), "%s/token", directory);
    file_write_at(AT_FDCWD, path, "token", 5);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(enter_directory(directory));
    assert_int_equal(wait_for(pid), W_EXITCODE(may(CAP_SYS_CHROOT) ? 0 : 97, 0));
    unlink(path);
    rmdir(directory);
}

static void a_root_that_is_not_there_is_an_error_that_names_it(void **state)
{
    struct error err = {""};

    (void)state;
    assert_true(sandbox_change_root("/nonexistent/serviceaccount", &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/serviceaccount"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_serving_does_not_need_kills_the_process),
        cmocka_unit_test(a_server_beside_a_client_may_wait_for_it_and_no_more),
        cmocka_unit_test(a_server_with_tls_may_draw_random_numbers_and_no_more),
        cmocka_unit_test(a_worker_may_compute_and_tell_its_result_and_no_more),
        cmocka_unit_test(a_client_may_not_write_files_listen_or_use_local_sockets),
        cmocka_unit_test(a_client_may_connect_and_read_files),
        cmocka_unit_test(a_client_without_files_may_connect_and_open_none),
        cmocka_unit_test(an_asker_may_not_do_what_a_client_may_not),
        cmocka_unit_test(an_asker_may_connect_read_files_and_start_threads),
        cmocka_unit_test(with_another_root_only_what_is_below_it_can_be_opened),
        cmocka_unit_test(a_root_that_is_not_there_is_an_error_that_names_it),
        cmocka_unit_test(memory_can_be_had_inside),
        cmocka_unit_test(a_log_line_with_its_time_can_be_written_inside),
        cmocka_unit_test(inside_it_is_nobody_without_any_capability),
        cmocka_unit_test(root_that_may_not_change_its_user_gives_up_all_else),
        cmocka_unit_test(it_dies_with_its_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
