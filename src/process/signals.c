#include "process/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "core/macros.h"

static const int strays[] = {SIGUSR2, SIGALRM,   SIGVTALRM, SIGPROF, SIGIO,
                             SIGPWR,  SIGSTKFLT, SIGPIPE,   SIGXFSZ};

void signals_ignore_stray(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(strays); i++)
        signal(strays[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

static sigset_t set_of(const int *numbers, size_t count)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, numbers[i]);
    return set;
}

void signals_block(const int *numbers, size_t count)
{
    const sigset_t set = set_of(numbers, count);

    sigprocmask(SIG_BLOCK, &set, NULL);
}

int signals_open(const int *numbers, size_t count)
{
    const sigset_t set = set_of(numbers, count);
    int fd;

    signals_block(numbers, count);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
