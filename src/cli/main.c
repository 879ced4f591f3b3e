#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "attribution/pipeline.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "core/fs.h"
#include "core/utf8.h"
#include "fetcher/fetcher.h"
#include "identity/recorded_names.h"
#include "metrics/ledger_json.h"
#include "server/server.h"

enum { TEXT_CAP_BYTES = 1 << 20, JSON_CAP_BYTES = 1 << 30 };

int verb_print(const struct buffer *text)
{
    int r = buffer_failed(text) ? -ENOMEM : fs_write_all(STDOUT_FILENO, text->data, text->len);
    struct error err;

    if (r == 0)
        return EXIT_OK;
    error_format(&err, "cannot write to standard output: %s", strerror(-r));
    print_error(&err);
    return EXIT_FAILED;
}

void print_error(const struct error *err)
{
    struct span rest = span_of(err->text);
    struct buffer line;

    buffer_init(&line, TEXT_CAP_BYTES);
    buffer_str(&line, "wattribute: ");
    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);
        unsigned char c = (unsigned char)rest.data[0];

        /* Below U+00A0 there are two blocks of control characters. */
        if (len == 0 || c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)rest.data[1] < 0xa0)) {
            buffer_char(&line, '?');
            len = len ? len : 1;
        } else {
            buffer_bytes(&line, rest.data, len);
        }
        rest.data += len;
        rest.len -= len;
    }
    buffer_char(&line, '\n');
    if (!buffer_failed(&line))
        (void)fs_write_all(STDERR_FILENO, line.data, line.len);
    buffer_done(&line);
}

void verb_leave(int status)
{
    _exit(status);
}

int verb_failure(int error)
{
    switch (-error) {
    case EBADMSG: /* corrupt or cut short */
    case EFBIG:   /* a bomb */
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
        return EXIT_FAILED;
    default:
        return EXIT_USAGE;
    }
}

void verb_name_workloads(struct pipeline *pipeline, struct recorded_names *names)
{
    pipeline_set_names(pipeline, recorded_names_find, names);
    pipeline_fix_names(pipeline, 0);
}

int verb_print_ledger(const struct pipeline *pipeline)
{
    struct snapshot snapshot;
    struct buffer json;
    int status = EXIT_FAILED;

    snapshot_init(&snapshot);
    buffer_init(&json, JSON_CAP_BYTES);
    if (pipeline_snapshot(pipeline, 0, 0, &snapshot) == 0) {
        ledger_json(&snapshot, &json);
        status = verb_print(&json);
    }
    buffer_done(&json);
    snapshot_done(&snapshot);
    return status;
}

static int print_text(const struct cli *cli)
{
    struct buffer text;
    int status;

    buffer_init(&text, TEXT_CAP_BYTES);
    if (cli->verb == CLI_VERSION)
        cli_version(&text);
    else
        cli_help(cli->help_verb, &text);
    status = verb_print(&text);
    buffer_done(&text);
    return status;
}

static int run(const struct cli *cli)
{
    switch (cli->verb) {
    case CLI_SERVE:
        return verb_serve(cli);
    case CLI_REPLAY:
        return verb_replay(cli);
    case CLI_RECORD:
        return verb_record(cli);
    case CLI_CHECK:
        return verb_check(cli);
    case CLI_SERVER:
        return server_main();
    case CLI_FETCHER:
        return fetcher_main();
    case CLI_HELP:
    case CLI_VERSION:
    case CLI_ANY:
        break;
    }
    return print_text(cli);
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    struct error err;
    int status;

    if (cli_parse(argc, argv, environ, &cli, &err) < 0) {
        print_error(&err);
        return EXIT_USAGE;
    }
    status = run(&cli);
    cli_done(&cli);
    return status;
}
