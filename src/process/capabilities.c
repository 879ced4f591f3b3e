#include "process/capabilities.h"

#include <linux/capability.h>

#include "config/node_config.h"
#include "core/macros.h"
#include "core/parse.h"

/* False if it has no such number. */
static bool is_older(const char *release, uint64_t major, uint64_t minor)
{
    struct span rest = span_of(release);
    uint64_t found[2];

    for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
        struct span part = span_cut(&rest, '.'), digits = {part.data, 0};

        while (digits.len < part.len && parse_is_digit(part.data[digits.len]))
            digits.len++;
        if (parse_u64(digits, &found[i]) < 0)
            return false;
    }
    return found[0] < major || (found[0] == major && found[1] < minor);
}

static bool reads_node(const struct capability_context *context)
{
    return !context->options->replay_path && !context->reads_traces;
}

static bool reads_rapl(const struct capability_context *context)
{
    return reads_node(context) && node_config_is_on(context->options, "rapl");
}

static bool reads_drm(const struct capability_context *context)
{
    return reads_node(context) && node_config_is_on(context->options, "drm");
}

static bool reads_cgroups(const struct capability_context *context)
{
    return reads_node(context) && node_config_is_on(context->options, "cgroups");
}

/* Before, they were for administrators. */
static bool hears_old_process_events(const struct capability_context *context)
{
    return reads_node(context) && !context->writes_file && context->options->process_events &&
           is_older(context->kernel_release, 6, 6);
}

static bool reads_files(const struct capability_context *context)
{
    const struct options *options = context->options;

    return context->reads_traces || options->replay_path || options->web_config_path ||
           options->cost_tariff_path || options->emissions_keys_path ||
           options->emissions_ca_path || options->redfish_url || options->kubernetes_api;
}

static bool is_named(const char *socket)
{
    return socket && socket[0]; /* an empty one is disabled */
}

static bool names_sockets(const struct capability_context *context)
{
    bool any = is_named(context->options->pod_resources_socket);

    for (size_t i = 0; i < RUNTIME_TABLE_MAX; i++)
        any = any || is_named(context->options->runtime_sockets[i]);
    return reads_node(context) && any;
}

static bool has_children(const struct capability_context *context)
{
    return context->has_children;
}

static bool runs_command(const struct capability_context *context)
{
    return context->runs_command;
}

static bool writes_file(const struct capability_context *context)
{
    return context->writes_file;
}

#define CAP(name_) .capability = CAP_##name_, .name = #name_

/* clang-format off */
const struct capability_use capability_uses[] = {
    {"names of processes", CAP(SYS_PTRACE), "`/proc/PID/exe` of other users",
     "15 characters of the command instead of the executable's name", reads_node},
    {"GPUs of containers", CAP(SYS_PTRACE), "`/proc/PID/root/dev`",
     "GPUs that a container can use without an allocation", reads_node},
    {"jobs", CAP(SYS_PTRACE), "`/proc/PID/environ` of other users",
     "names and accounts of Slurm, LSF and PBS jobs", reads_node},
    {"jobs", CAP(DAC_READ_SEARCH), "`/proc/PID/environ`, which only its user may open", "the same",
     reads_node},
    {"drm", CAP(SYS_PTRACE), "`/proc/PID/fdinfo` of other users", "energy of processes on Intel GPUs, and of graphics on AMD's", reads_drm},
    {"drm", CAP(DAC_READ_SEARCH), "`/proc/PID/fd`, which only its user may open", "the same", reads_drm},
    {"cgroups", CAP(DAC_READ_SEARCH), "cgroups that a user was given and has closed to others",
     "their usage, and their share of the node's energy", reads_cgroups},
    {"rapl", CAP(DAC_READ_SEARCH), "`/sys/class/powercap/*/energy_uj`, if not root",
     "energy of processors", reads_rapl},
    {"rapl", CAP(PERFMON), "`perf_event_open`, if powercap cannot be read (Linux 5.8 or newer)",
     "energy of processors", reads_rapl},
    {"files that flags name, traces", CAP(DAC_READ_SEARCH), "those of another user",
     "they must belong to root, or be readable by all", reads_files},
    {"sockets that flags name", CAP(DAC_OVERRIDE), "those of another user, such as a rootless Podman's",
     "ids instead of names", names_sockets},
    {"process events", CAP(NET_ADMIN), "the process connector before Linux 6.6",
     "names of processes shorter than 0.2 s", hears_old_process_events},
    {"server, fetchers", CAP(SETUID), "`setresuid`", "they stay root, without capabilities",
     has_children},
    {"server, fetchers", CAP(SETGID), "`setresgid`, `setgroups`", "they keep the groups",
     has_children},
    {"server, fetchers", CAP(SETPCAP), "their bounding set", "it is not empty, but of no use to them",
     has_children},
    {"server, fetchers", CAP(KILL), "`kill`", "one that hangs cannot be ended", has_children},
    {"run", CAP(KILL), "`kill`", "signals do not reach a command that changes its user",
     runs_command},
    {"record, run", CAP(DAC_OVERRIDE), "`--output` in a directory of another user",
     "it cannot be created there", writes_file},
};
/* clang-format on */
const size_t capability_uses_count = ARRAY_SIZE(capability_uses);

uint64_t capabilities_needed(const struct capability_context *context)
{
    uint64_t set = 0;

    for (size_t i = 0; i < capability_uses_count; i++)
        if (capability_uses[i].is_needed(context))
            set |= UINT64_C(1) << capability_uses[i].capability;
    return set;
}
