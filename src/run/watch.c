#include "run/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "process/signals.h"

int watch_open_signals(void)
{
    static const int numbers[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

    signals_ignore_stray();
    /* Inherited as ignored, they would not be reported. */
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        signal(numbers[i], SIG_DFL);
    /* A line on a terminal that this process was moved away from must not stop it. */
    signal(SIGTTOU, SIG_IGN);
    return signals_open(numbers, ARRAY_SIZE(numbers));
}

/* It may have been sent to the whole group, which the sender is in: nothing tells whether it was.
 */
static bool is_of_command(const struct watch *watch, const struct signalfd_siginfo *info)
{
    const struct relative *sender = info->ssi_code == SI_USER || info->ssi_code == SI_TKILL
                                        ? family_find(watch->family, (pid_t)info->ssi_pid)
                                        : NULL;

    return sender && sender->is_alive;
}

/* The terminal's, or one that the command sent to its whole group: it has them. */
static bool has_it(const struct watch *watch, const struct signalfd_siginfo *info)
{
    return info->ssi_code == SI_KERNEL || is_of_command(watch, info);
}

static bool is_to_end(uint32_t number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void note_interruption(struct watch *watch, const struct signalfd_siginfo *info)
{
    if (is_to_end(info->ssi_signo) && !is_of_command(watch, info))
        watch->interrupted_by = (int)info->ssi_signo;
}

/* What continues this process is passed on in stop_too(). */
static void pass_on(struct watch *watch, const struct signalfd_siginfo *info)
{
    note_interruption(watch, info);
    if (info->ssi_signo != SIGCONT && !has_it(watch, info))
        (void)kill(watch->command->pid, (int)info->ssi_signo);
}

static bool is_waiting(const struct watch *watch, pid_t pid)
{
    for (size_t i = 0; i < watch->family->waiting_count; i++)
        if (watch->family->waiting[i].pid == pid && watch->family->waiting[i].fd >= 0)
            return true;
    return false;
}

static uint64_t cpu_us_of(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * USEC_PER_SEC +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* So that the shell notices, and has its terminal back. The command that only somebody's SIGSTOP
 * stopped is theirs to continue, and this process goes on. */
static void stop_too(struct watch *watch, int number)
{
    siginfo_t info = {.si_pid = 0};

    if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU)
        return;
    watch->pause(watch->context);
    (void)kill(getpid(), SIGSTOP);
    /* A shell continues the whole group, somebody else perhaps this process alone. */
    if (waitid(P_PID, (id_t)watch->command->pid, &info, WCONTINUED | WNOHANG) < 0 ||
        info.si_pid == 0)
        (void)kill(watch->command->pid, SIGCONT);
}

/* True: the command has ended. */
static bool reap(struct watch *watch, int *ret_status)
{
    bool has_ended = false;

    for (;;) {
        siginfo_t info = {.si_pid = 0};
        struct rusage usage;
        int status;

        if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return has_ended;
        /* The last look at what it was: its entry in /proc goes with the wait. */
        if (info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED &&
            !is_waiting(watch, info.si_pid))
            family_note(watch->family, info.si_pid);
        if (wait4(info.si_pid, &status, WUNTRACED | WNOHANG, &usage) != info.si_pid)
            return has_ended;
        if (WIFSTOPPED(status)) {
            if (info.si_pid == watch->command->pid)
                stop_too(watch, WSTOPSIG(status));
            continue;
        }
        if (is_waiting(watch, info.si_pid)) /* it never ran */
            continue;
        family_reap(watch->family, info.si_pid, cpu_us_of(&usage));
        if (info.si_pid == watch->command->pid) {
            *ret_status = status;
            has_ended = true;
        }
    }
}

static bool handle_signals(struct watch *watch, int *ret_status)
{
    struct signalfd_siginfo info;
    bool has_ended = false;

    while (read(watch->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            pass_on(watch, &info);
        else if (!has_ended)
            has_ended = reap(watch, ret_status);
    return has_ended;
}

/* Of a command that may have ended by the very signal that is yet to be read here. */
static void note_last_signals(struct watch *watch)
{
    struct signalfd_siginfo info;

    while (read(watch->signal_fd, &info, sizeof(info)) == sizeof(info))
        note_interruption(watch, &info);
}

int watch_command(struct watch *watch)
{
    int status = 0;

    /* It may have ended before anybody looked. */
    while (!reap(watch, &status)) {
        struct pollfd fds[] = {{.fd = watch->signal_fd, .events = POLLIN},
                               {.fd = watch->wake_fd, .events = POLLIN}};
        uint64_t due_us = watch->tick(watch->context);
        uint64_t now_us = clock_system.monotonic_us(&clock_system);

        if (poll(fds, ARRAY_SIZE(fds),
                 due_us > now_us ? (int)((due_us - now_us + 999) / 1000) : 0) < 0)
            continue; /* EINTR */
        if (fds[0].revents && handle_signals(watch, &status))
            break;
    }
    note_last_signals(watch);
    return status;
}
