#include <sys/utsname.h>

#include "cli/cli.h"
#include "process/capabilities.h"
#include "process/sandbox.h"

int cli_confine(const struct cli *cli, struct error *err)
{
    struct utsname kernel;
    struct capability_context context = {
        .options = &cli->options,
        .kernel_release = uname(&kernel) == 0 ? kernel.release : "",
        .has_children = cli->command->run == verb_serve,
        .runs_command = cli->command->run == verb_run,
        .writes_file = cli->command->run == verb_record || cli->command->run == verb_run,
        .reads_traces = cli->command->run == verb_replay,
    };

    return sandbox_confine_collector(capabilities_needed(&context), err);
}
