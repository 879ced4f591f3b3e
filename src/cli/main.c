#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    struct cli cli;
    struct error err;
    int r = cli_parse(argc, argv, environ, &cli, &err), status;

    if (r < 0) {
        cli_print_error(&err);
        return r == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
    }
    status = cli_run(&cli);
    cli_done(&cli);
    return status;
}
