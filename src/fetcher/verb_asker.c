/* The hidden verb `asker`: how the collector starts the asker process (asker_process.c). */
#include "cli/verbs.h"

#include <string.h>
#include <sys/prctl.h>

#include "core/parse.h"
#include "fetcher/asker.h"
#include "process/child.h"

/* asker LOG-LEVEL LOG-FORMAT first|again INTERVAL-US BASIS CA-FILE [PROVIDER ZONE URL ...] */
enum { ARGUMENTS = 6, INQUIRY_ARGUMENTS = 3 };

int verb_asker(const struct cli *cli)
{
    char **argv = cli->raw_argv;
    int more = cli->raw_argc - ARGUMENTS;
    struct asker_flags flags = {0};
    uint64_t level, format, basis;

    if (more < 0 || more % INQUIRY_ARGUMENTS != 0 ||
        more / INQUIRY_ARGUMENTS > ASKER_INQUIRIES_MAX ||
        parse_u64_max(span_of(argv[0]), LOG_LEVEL_ERROR, &level) < 0 ||
        parse_u64_max(span_of(argv[1]), LOG_FORMAT_JSON, &format) < 0 ||
        parse_u64(span_of(argv[3]), &flags.interval_us) < 0 ||
        parse_u64_max(span_of(argv[4]), PRICE_BASES - 1, &basis) < 0)
        return EXIT_USAGE;
    flags.is_again = strcmp(argv[2], "again") == 0;
    flags.basis = (enum price_basis)basis;
    flags.ca_path = argv[5];
    for (argv += ARGUMENTS; *argv; argv += INQUIRY_ARGUMENTS) {
        flags.inquiries[flags.count].provider = argv[0];
        flags.inquiries[flags.count].zone = argv[1];
        flags.inquiries[flags.count++].url = argv[2];
    }
    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    log_configure((enum log_level)level, (enum log_format)format);
    return asker_run(&flags, CHILD_CHANNEL_FD, ASKER_KEYS_FD);
}
