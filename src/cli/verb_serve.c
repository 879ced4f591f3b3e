/* `wattribute serve`: the exporter. Opens sockets, as ports below 1024 need a privilege, gives up
 * privileges, then reads files, all but --config.file, and runs the collector. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "collector/collector.h"
#include "config/node_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "net/listen.h"
#include "process/descriptors.h"
#include "process/signals.h"

enum { LARGE_BYTES = 128 << 10 }; /* the default of glibc; set explicitly, it stays there */

static void announce(const struct options *options, bool has_tls, const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char address[256];
        bool is_known = listen_describe(fds[i], address, sizeof(address)) == 0;

        log_info("listening", "address", is_known ? address : "unknown", "metrics_path",
                 options->metrics_path, "tls", has_tls ? "true" : NULL, "version",
                 WATTRIBUTE_VERSION);
    }
    if (options->replay_path)
        log_warn("REPLAY: a recorded trace is played in a loop; nothing of this node is measured",
                 "trace", options->replay_path);
}

/* One heap per thread, and glibc's reuse of freed large blocks, cost 4 MB with 1,000 workloads. */
static void keep_memory_low(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

int verb_serve(const struct cli *cli)
{
    const struct options *options = &cli->options;
    bool with_api = options->kubernetes_api && !options->replay_path;
    bool with_redfish =
        options->redfish_url && node_config_is_on(options, "redfish") && !options->replay_path;
    struct collector *collector = NULL;
    struct api_config api;
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    struct web_watch web = {0};
    int fds[LISTEN_MAX];
    size_t fd_count = 0;
    struct error err, privileges;
    bool is_idle;
    int r, confined, status;

    keep_memory_low();
    signals_ignore_stray();
    signals_block((const int[]){SIGHUP, SIGUSR1}, 2); /* until the collector can act on them */
    log_configure(options->log_level, options->log_format);
    r = descriptors_prepare(&err);
    if (r == 0)
        r = listen_open(options->listen_addresses.items, options->listen_addresses.count, fds,
                        &fd_count, &err);
    confined = cli_confine(cli, &privileges);
    if (r == 0 && options->web_config_path)
        r = web_watch_open(&web, options->web_config_path, &err);
    if (r == 0)
        r = host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &host, &err);
    if (r == 0 && with_api)
        r = api_config_read(options, &api, &err);
    if (r == 0)
        r = collector_open(
            &(struct collector_options){
                .options = options,
                .host = &host,
                .listener_fds = fds,
                .listener_count = fd_count,
                .web = options->web_config_path ? &web : NULL,
                .api = with_api ? &api : NULL,
                .with_bmc = with_redfish,
            },
            &collector, &err);
    if (r == 0) {
        announce(options, web.has_tls, fds, fd_count);
        if (confined < 0)
            log_warn("the collector keeps privileges that it does not need", "error",
                     privileges.text);
        collector_run(collector);
    } else {
        cli_print_error(&err);
    }
    /* At the start a flag or a file is wrong, unless a trace is bad. */
    status = r == 0 ? EXIT_OK : r == -EBADMSG || r == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
    is_idle = collector_close(collector);
    listen_close(fds, fd_count);
    if (!is_idle)
        _exit(status); /* a thread hangs in the kernel or a driver: free nothing under it */
    web_watch_close(&web);
    host_close(&host);
    return status;
}
