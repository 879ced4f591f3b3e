/*
 * `wattribute top`: who draws this node's watts, now. It shows what a running daemon books, and
 * only reads: a screen, one table, or the document itself.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/daemon_client.h"
#include "cli/top_screen.h"
#include "core/macros.h"
#include "top/top.h"
#include "top/view.h"

static const char PATH[] = "/api/v1/node";
static const uint64_t TIMEOUT_US = 5 * USEC_PER_SEC;
/* Between the two documents of a table: a daemon has a newer one every second. */
static const struct timespec CPU_INTERVAL = {.tv_sec = 1, .tv_nsec = 100000000};

enum { TABLE_MAX_BYTES = 256 << 20 };

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

static int print_json(const struct top_source *source)
{
    struct error err = {""};
    struct span json;
    struct buffer text;
    int status;

    if (source->get(source->context, &json, &err) < 0)
        return print_error(&err);
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

static int get_document(const struct top_source *source, struct node_document **ret_document,
                        struct error *err)
{
    struct span json;
    int r = source->get(source->context, &json, err);

    return r < 0 ? r : node_document_parse(json, ret_document, err);
}

/* Two documents, for how busy the processors are. */
static int print_table(const struct top_source *source)
{
    struct error err = {""};
    struct buffer text;
    struct top top;
    int status = EXIT_OK;

    top_init(&top, 0);
    for (int i = 0; i < 2 && status == EXIT_OK; i++) {
        struct node_document *document;

        if (i > 0)
            (void)nanosleep(&CPU_INTERVAL, NULL);
        if (get_document(source, &document, &err) < 0 || top_show(&top, document) < 0)
            status = print_error(err.text[0] ? &err : &(struct error){"out of memory"});
    }
    buffer_init(&text, TABLE_MAX_BYTES);
    if (status == EXIT_OK) {
        if (view_print(&top, columns_of_output(), strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                       &text) < 0)
            buffer_fail(&text);
        status = cli_print(&text);
    }
    buffer_done(&text);
    top_done(&top);
    return status;
}

/* As if it had not handled it, so that the shell knows. */
static void die_by(int signal_number)
{
    sigset_t set;

    signal(signal_number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int show_screen(const struct top_source *source, const struct options *options)
{
    struct node_document *first = NULL;
    struct error err = {""};
    int r = get_document(source, &first, &err);

    if (r < 0 && r != -EAGAIN) /* a daemon that starts */
        return print_error(&err);
    r = top_screen_run(source, options, cli_is_in_colour(), first, &err);
    if (r > 0)
        die_by(r);
    return r < 0 ? print_error(&err) : EXIT_OK;
}

int verb_top(const struct cli *cli)
{
    const struct options *options = &cli->options;
    struct top_source source = {.get = get_from_daemon, .cancel = cancel_daemon, .wake_fd = -1};
    struct daemon_client *client;
    struct error err = {""};
    int status;

    (void)setlocale(LC_CTYPE, "");
    if (daemon_client_open(options, &client, &err) < 0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    source.context = client;
    if (options->json)
        status = print_json(&source);
    else if (options->once || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        status = print_table(&source);
    else
        status = show_screen(&source, options);
    daemon_client_close(client);
    return status;
}
