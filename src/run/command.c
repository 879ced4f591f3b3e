#include "run/command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"

/* In the child, as the one who started us would see it: nothing has changed since. */
static _Noreturn void wait_and_run(int fd, char *const *argv)
{
    int error = 0;
    char go;

    if (recv(fd, &go, sizeof(go), MSG_NOSIGNAL) == sizeof(go)) {
        execvp(argv[0], argv);
        error = errno;
        (void)!send(fd, &error, sizeof(error), MSG_NOSIGNAL);
    }
    _exit(command_exec_status(-error));
}

int command_prepare(char *const *argv, struct command *ret_command, struct error *err)
{
    int fds[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set(err, -errno, "cannot start '%.200s': %s", argv[0], strerror(errno));
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        wait_and_run(fds[1], argv);
    }
    close(fds[1]);
    if (pid < 0) {
        int error = errno;

        close(fds[0]);
        return error_set(err, -error, "cannot start '%.200s': %s", argv[0], strerror(error));
    }
    *ret_command = (struct command){.pid = pid, .fd = fds[0]};
    return 0;
}

/* Ctrl-Z stops it with the command before it, and who continues that may not know of it. */
static void go_on(pid_t pid)
{
    siginfo_t info;

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        (void)kill(pid, SIGCONT);
}

int command_start(struct command *command)
{
    enum { STOPPED_MS = 200 };
    _cleanup_close_ int fd = TAKE_FD(command->fd);
    ssize_t len = -1;
    int error = 0;

    if (send(fd, "", 1, MSG_NOSIGNAL) == 1)
        do {
            go_on(command->pid);
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, STOPPED_MS);
            len = recv(fd, &error, sizeof(error), MSG_DONTWAIT);
        } while (len < 0 && (errno == EINTR || errno == EAGAIN));
    if (len == 0)
        return 0;                                  /* closed by its exec */
    return len == sizeof(error) ? -error : -ESRCH; /* it was killed while it waited */
}

void command_cancel(struct command *command)
{
    if (command->fd >= 0)
        go_on(command->pid);
    cleanup_close(&command->fd);
    command->fd = -1;
}

int command_exec_status(int error)
{
    return error == -ENOENT ? 127 : 126;
}

int command_exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
