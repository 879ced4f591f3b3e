#include "cli/top_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "process/signals.h"
#include "top/terminal.h"
#include "top/view.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

/* How often the screen says how long a daemon has been silent. */
enum { TROUBLE_MS = 1000 };

struct top_screen {
    struct terminal *terminal;
    struct top_feed *feed;
    struct screen screen;
    struct top top;
    struct error trouble; /* "": none */
    uint64_t heard_us;    /* when the last document came */
    int signal_fd;
    int ended_by; /* a signal; 0: none */
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void draw(struct top_screen *of)
{
    uint64_t silent_s = (now_us() - of->heard_us) / USEC_PER_SEC;

    if (of->trouble.text[0] && !of->top.is_frozen)
        snprintf(of->top.trouble, sizeof(of->top.trouble), "NO ANSWER for %llu s: %.900s",
                 (unsigned long long)silent_s, of->trouble.text);
    else
        of->top.trouble[0] = '\0';
    view_draw(&of->top, &of->screen);
    terminal_show(of->terminal, &of->screen);
}

static int take_news(struct top_screen *of)
{
    struct node_document *document;
    int r = 0;

    if (!top_feed_take(of->feed, &document, &of->trouble))
        return 0;
    if (document) {
        r = top_show(&of->top, document);
        of->heard_us = now_us();
    }
    return r;
}

/* Stops as any program does, with the terminal as the shell wants it, and goes on later. */
static void suspend(struct top_screen *of)
{
    sigset_t stop;

    terminal_leave(of->terminal);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    signal(SIGTSTP, SIG_DFL); /* ncurses has a handler */
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    /* Here it stops, until SIGCONT. */
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

static int handle_signals(struct top_screen *of)
{
    struct signalfd_siginfo info;
    int r = 0;

    while (r == 0 && read(of->signal_fd, &info, sizeof(info)) == sizeof(info))
        switch (info.ssi_signo) {
        case SIGINT:
            of->top.is_done = true;
            break;
        case SIGTSTP:
            suspend(of);
            r = terminal_measure(of->terminal, &of->screen);
            break;
        case SIGCONT: /* the shell had the terminal, also after SIGSTOP */
            terminal_leave(of->terminal);
            break;
        case SIGWINCH:
            r = terminal_measure(of->terminal, &of->screen);
            break;
        default:
            of->top.is_done = true;
            of->ended_by = (int)info.ssi_signo;
            break;
        }
    return r;
}

static void handle_keys(struct top_screen *of)
{
    unsigned key;

    while (!of->top.is_done && (key = terminal_read_key(of->terminal)))
        top_press(&of->top, key);
    top_feed_pause(of->feed, of->top.is_frozen);
}

static int loop(struct top_screen *of)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = of->signal_fd, .events = POLLIN},
                           {.fd = top_feed_fd(of->feed), .events = POLLIN}};
    int r = terminal_measure(of->terminal, &of->screen);

    while (r == 0 && !of->top.is_done) {
        draw(of);
        if (poll(fds, ARRAY_SIZE(fds), of->trouble.text[0] ? TROUBLE_MS : -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents)
            r = handle_signals(of);
        if (fds[0].revents & POLLIN)
            handle_keys(of);
        else if (fds[0].revents) /* the terminal is gone */
            of->top.is_done = true;
        if (fds[2].revents && r == 0)
            r = take_news(of);
    }
    return r;
}

/* Warnings of libraries would end up on the screen. Returns what standard error was. */
static int silence_stderr(void)
{
    _cleanup_close_ int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (null_fd >= 0 && saved_fd >= 0)
        (void)dup2(null_fd, STDERR_FILENO);
    return saved_fd;
}

static void restore_stderr(int saved_fd)
{
    if (saved_fd < 0)
        return;
    (void)dup2(saved_fd, STDERR_FILENO);
    close(saved_fd);
}

void top_screen_block_signals(void)
{
    signals_block(signals, ARRAY_SIZE(signals));
}

bool top_screen_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int run(struct top_screen *of, const struct top_source *source,
               const struct options *options)
{
    int r;

    signals_ignore_stray();
    signal(SIGUSR1, SIG_IGN); /* meant for 'serve' */
    of->signal_fd = signals_open(signals, ARRAY_SIZE(signals));
    if (of->signal_fd < 0)
        return of->signal_fd;
    r = top_feed_start(source, options->screen_interval_us, &of->feed);
    if (r == 0)
        r = loop(of);
    top_feed_stop(of->feed);
    close(of->signal_fd);
    return r;
}

int top_screen_run(const struct top_source *source, const struct options *options,
                   bool is_in_colour, struct node_document *first, struct error *err)
{
    struct top_screen of = {
        .heard_us = now_us(),
        .screen.is_utf8 = top_screen_is_utf8(),
    };
    int r = terminal_open(NULL, is_in_colour, &of.terminal, err), stderr_fd;

    if (r < 0) {
        node_document_free(first);
        return r;
    }
    stderr_fd = silence_stderr();
    top_init(&of.top, (double)options->screen_interval_us / USEC_PER_SEC);
    of.top.is_own = source->attend != NULL;
    if (first)
        r = top_show(&of.top, first);
    if (r == 0)
        r = run(&of, source, options);
    terminal_close(of.terminal);
    restore_stderr(stderr_fd);
    top_done(&of.top);
    screen_done(&of.screen);
    return r < 0 ? error_set(err, r, "cannot show the screen: %s", strerror(-r)) : of.ended_by;
}
