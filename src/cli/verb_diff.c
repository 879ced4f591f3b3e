/* `wattribute diff A.json B.json`: do two commands differ? */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "core/macros.h"
#include "run/compare.h"

static int read_report(const char *path, struct run_summary *ret_summary)
{
    _cleanup_free_ char *data = NULL;
    struct error err, why;
    size_t len;
    int r = fs_read_regular(path, RUN_REPORT_CAP_BYTES, &data, &len);

    if (r < 0)
        error_format(&why, "%s", fs_strerror(r));
    else
        r = compare_read((struct span){data, len}, ret_summary, &why);
    if (r < 0) {
        error_format(&err, "cannot read '%.300s': %.600s", path, why.text);
        cli_print_error(&err);
    }
    return r;
}

int verb_diff(const struct cli *cli)
{
    struct run_summary a, b;
    struct buffer text;
    int r, status;

    if (cli->argument_count != 2) {
        cli_print_error(&(struct error){"'diff' compares two reports: write wattribute diff A.json "
                                        "B.json"});
        return EXIT_USAGE;
    }
    r = read_report(cli->arguments[0], &a);
    if (r == 0)
        r = read_report(cli->arguments[1], &b);
    if (r < 0)
        return cli_exit_status(r);
    buffer_init(&text, RUN_REPORT_CAP_BYTES);
    if (cli->options.json)
        compare_json(&a, &b, &text);
    else
        compare_text(&a, &b, &text);
    status = cli_print(&text);
    buffer_done(&text);
    return status;
}
