/* `wattribute top`: who burns the watts of this node, now. */
#include "cli/cli.h"
#include "cli/daemon_client.h"
#include "core/macros.h"

static const uint64_t TIMEOUT_US = 5 * USEC_PER_SEC;

static int print_document(struct daemon_client *client)
{
    struct error err = {""};
    struct span body;
    struct buffer text;
    int status;

    if (daemon_client_get(client, "/api/v1/node", TIMEOUT_US, &body, &err) < 0) {
        cli_print_error(&err);
        return EXIT_FAILED;
    }
    buffer_init(&text, body.len);
    buffer_bytes(&text, body.data, body.len);
    status = cli_print(&text);
    buffer_done(&text);
    return status;
}

int verb_top(const struct cli *cli)
{
    struct daemon_client *client;
    struct error err = {""};
    int status;

    if (daemon_client_open(&cli->options, &client, &err) < 0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    status = print_document(client);
    daemon_client_close(client);
    return status;
}
