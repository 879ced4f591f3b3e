/* The hidden verb `front`: how the collector starts the front process (front_process.c). */
#include "app/verbs.h"

#include <string.h>
#include <sys/prctl.h>

#include "app/front.h"
#include "core/parse.h"

/* front LISTENERS METRICS-PATH LOG-LEVEL LOG-FORMAT plain|web-config
 *       [API-HOST API-PORT NODE SERVICE-ACCOUNT-DIR] */
enum { ARGUMENTS = 5, ARGUMENTS_WITH_API = 9 };

int verb_front(const struct cli *cli)
{
    uint64_t listeners, level, format;
    bool with_api = cli->raw_argc == ARGUMENTS_WITH_API;
    struct api_config api;

    if ((cli->raw_argc != ARGUMENTS && !with_api) ||
        parse_u64_max(span_of(cli->raw_argv[0]), OPTIONS_LISTEN_MAX, &listeners) < 0 ||
        parse_u64_max(span_of(cli->raw_argv[2]), LOG_LEVEL_ERROR, &level) < 0 ||
        parse_u64_max(span_of(cli->raw_argv[3]), LOG_FORMAT_JSON, &format) < 0)
        return EXIT_USAGE;
    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    log_configure((enum log_level)level, (enum log_format)format);
    if (with_api)
        api = (struct api_config){cli->raw_argv[5], cli->raw_argv[6], cli->raw_argv[7],
                                  cli->raw_argv[8]};
    return front_run(&(struct front_options){
        .channel_fd = VERB_FRONT_CHANNEL_FD,
        .first_listener_fd = VERB_FRONT_CHANNEL_FD + 1,
        .listener_count = listeners,
        .metrics_path = cli->raw_argv[1],
        .version = WATTRIBUTE_VERSION,
        .has_web_config = strcmp(cli->raw_argv[4], "web-config") == 0,
        .api = with_api ? &api : NULL,
        .names_fd = VERB_FRONT_CHANNEL_FD + 1 + (int)listeners,
    });
}
