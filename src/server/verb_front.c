/* The hidden verb `front`: how the collector starts the front process (front_process.c). */
#include "cli/verbs.h"

#include <string.h>
#include <sys/prctl.h>

#include "core/parse.h"
#include "process/child.h"
#include "server/front.h"

/*
 * Its descriptors: the channel, the listeners, the channels for names and readings. Its arguments:
 *
 * front LISTENERS METRICS-PATH negotiate|text LOG-LEVEL LOG-FORMAT plain|web-config well|failing
 *       [api HOST PORT NODE SERVICE-ACCOUNT-DIR]
 *       [redfish URL CREDENTIALS-FILE CA-FILE SHA256 checked|insecure INTERVAL-US DELAY-US]
 */
enum { ARGUMENTS = 7, API_ARGUMENTS = 5, REDFISH_ARGUMENTS = 8 };

struct jobs {
    bool with_api, with_redfish;
    struct api_config api;
    struct redfish_flags redfish;
    uint64_t redfish_delay_us;
};

static bool read_jobs(char *const *argv, int argc, struct jobs *jobs)
{
    jobs->with_api = argc >= API_ARGUMENTS && strcmp(argv[0], "api") == 0;
    if (jobs->with_api) {
        jobs->api = (struct api_config){argv[1], argv[2], argv[3], argv[4]};
        argv += API_ARGUMENTS;
        argc -= API_ARGUMENTS;
    }
    jobs->with_redfish = argc == REDFISH_ARGUMENTS && strcmp(argv[0], "redfish") == 0;
    if (!jobs->with_redfish)
        return argc == 0;
    jobs->redfish = (struct redfish_flags){
        argv[1], argv[2], argv[3], argv[4], strcmp(argv[5], "insecure") == 0, 0};
    return parse_u64(span_of(argv[6]), &jobs->redfish.interval_us) == 0 &&
           parse_u64(span_of(argv[7]), &jobs->redfish_delay_us) == 0;
}

int verb_front(const struct cli *cli)
{
    uint64_t listeners, level, format;
    struct jobs jobs = {0};
    int names_fd;

    if (cli->raw_argc < ARGUMENTS ||
        !read_jobs(cli->raw_argv + ARGUMENTS, cli->raw_argc - ARGUMENTS, &jobs) ||
        parse_u64_max(span_of(cli->raw_argv[0]), OPTIONS_LISTEN_MAX, &listeners) < 0 ||
        parse_u64_max(span_of(cli->raw_argv[3]), LOG_LEVEL_ERROR, &level) < 0 ||
        parse_u64_max(span_of(cli->raw_argv[4]), LOG_FORMAT_JSON, &format) < 0)
        return EXIT_USAGE;
    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    log_configure((enum log_level)level, (enum log_format)format);
    names_fd = CHILD_CHANNEL_FD + 1 + (int)listeners;
    return front_run(&(struct front_options){
        .channel_fd = CHILD_CHANNEL_FD,
        .first_listener_fd = CHILD_CHANNEL_FD + 1,
        .listener_count = listeners,
        .metrics_path = cli->raw_argv[1],
        .text_only = strcmp(cli->raw_argv[2], "text") == 0,
        .version = WATTRIBUTE_VERSION,
        .has_web_config = strcmp(cli->raw_argv[5], "web-config") == 0,
        .is_failing = strcmp(cli->raw_argv[6], "failing") == 0,
        .api = jobs.with_api ? &jobs.api : NULL,
        .names_fd = names_fd,
        .redfish = jobs.with_redfish ? &jobs.redfish : NULL,
        .redfish_delay_us = jobs.redfish_delay_us,
        .power_fd = names_fd + jobs.with_api,
    });
}
