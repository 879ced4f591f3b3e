/*
 * `wattribute top`: who draws this node's watts, now, as a running daemon books them, or this
 * process where none runs: on a screen, in one table, or as the document itself.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/daemon_client.h"
#include "cli/top_measure.h"
#include "cli/top_screen.h"
#include "core/log.h"
#include "core/macros.h"
#include "process/descriptors.h"
#include "top/top.h"
#include "top/view.h"

static const char PATH[] = "/api/v1/node";
static const uint64_t TIMEOUT_US = 5 * USEC_PER_SEC;
/* Between the two documents of a table: a daemon has a newer one every second. */
static const struct timespec CPU_INTERVAL = {.tv_sec = 1, .tv_nsec = 100000000};

enum { TABLE_MAX_BYTES = 256 << 20 };

struct sources {
    struct daemon_client *daemon;
    struct top_measure *own; /* NULL: the daemon is asked */
    struct top_source chosen;
};

static int get_from_daemon(void *context, struct span *ret_json, struct error *err)
{
    return daemon_client_get(context, PATH, TIMEOUT_US, ret_json, err);
}

static void cancel_daemon(void *context)
{
    daemon_client_cancel(context);
}

static int print_error(const struct error *err)
{
    cli_print_error(err);
    return EXIT_FAILED;
}

static int print_json(struct span json)
{
    struct buffer text;
    int status;

    buffer_init(&text, json.len);
    buffer_bytes(&text, json.data, json.len);
    status = cli_print(&text);
    buffer_done(&text);
    return status;
}

/* 0: of whatever reads it, which has no end of a line. */
static size_t columns_of_output(void)
{
    struct winsize size = {0};

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int show_document(struct top *top, struct span json, struct error *err)
{
    struct node_document *document;
    int r = node_document_parse(json, &document, err);

    if (r == 0 && top_show(top, document) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

/* Of two documents, for how busy the processors are. */
static int print_table(const struct top_source *source, struct span json)
{
    struct error err = {""};
    struct buffer text;
    struct top top;
    int r, status;

    top_init(&top, 0);
    r = show_document(&top, json, &err);
    if (r == 0) {
        (void)nanosleep(&CPU_INTERVAL, NULL);
        r = source->get(source->context, &json, &err);
    }
    if (r == 0)
        r = show_document(&top, json, &err);
    buffer_init(&text, TABLE_MAX_BYTES);
    if (r == 0 && view_print(&top, columns_of_output(), top_screen_is_utf8(), &text) < 0)
        buffer_fail(&text);
    status = r < 0 ? print_error(&err) : cli_print(&text);
    buffer_done(&text);
    top_done(&top);
    return status;
}

/* As if it had not been handled, so that the shell knows. */
static void die_by(int signal_number)
{
    sigset_t set;

    signal(signal_number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* `json` is empty where there is nothing to show yet. */
static int show_screen(const struct top_source *source, const struct options *options,
                       struct span json)
{
    struct node_document *first = NULL;
    struct error err = {""};
    int r = json.len > 0 ? node_document_parse(json, &first, &err) : 0;

    if (r == 0)
        r = top_screen_run(source, options, cli_is_in_colour(), first, &err);
    if (r > 0)
        die_by(r);
    return r < 0 ? print_error(&err) : EXIT_OK;
}

/* A daemon, or this process where none was named and none runs. */
static int open_source(struct sources *sources, const struct cli *cli, bool is_screen,
                       struct span *ret_json, struct error *err)
{
    int r;

    sources->chosen = (struct top_source){
        .get = get_from_daemon, .cancel = cancel_daemon, .wake_fd = -1, .context = sources->daemon};
    r = sources->chosen.get(sources->daemon, ret_json, err);
    if (r != -ECONNREFUSED || options_is_given(&cli->options, "daemon"))
        return r;
    if (is_screen)
        top_screen_block_signals(); /* of its threads */
    else
        cli_print_error(&(struct error){"no daemon answers: measuring here, for some seconds"});
    (void)cli_confine(cli, NULL);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    r = top_measure_open(&cli->options, &sources->own, err);
    if (r == 0)
        r = top_measure_wait(sources->own, err);
    if (r < 0)
        return r;
    sources->chosen = top_measure_source(sources->own);
    return sources->chosen.get(sources->own, ret_json, err);
}

int verb_top(const struct cli *cli)
{
    const struct options *options = &cli->options;
    bool is_screen =
        !options->json && !options->once && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    struct sources sources = {0};
    struct error err = {""};
    struct span json = {"", 0};
    int r, status;

    (void)setlocale(LC_CTYPE, "");
    if (descriptors_prepare(&err) < 0 || daemon_client_open(options, &sources.daemon, &err) < 0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    r = open_source(&sources, cli, is_screen, &json, &err);
    if (r < 0 && !(r == -EAGAIN && is_screen)) /* a daemon that starts */
        status = print_error(&err);
    else if (options->json)
        status = print_json(json);
    else if (is_screen)
        status = show_screen(&sources.chosen, options, json);
    else
        status = print_table(&sources.chosen, json);
    daemon_client_close(sources.daemon);
    if (!top_measure_close(sources.own))
        _exit(status);
    return status;
}
