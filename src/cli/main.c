#include <unistd.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    struct cli cli;
    struct error err;
    int status;

    if (cli_parse(argc, argv, environ, &cli, &err) < 0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    status = cli_run(&cli);
    cli_done(&cli);
    return status;
}
