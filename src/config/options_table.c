/* The table of flags. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "config/emission_keys.h"
#include "config/option_type.h"
#include "core/macros.h"
#include "emissions/provider.h"
#include "identity/runtime.h"
#include "model/meter.h"
#include "sources/source.h"

#define MSEC ((uint64_t)1000)
#define SEC  USEC_PER_SEC
#define HOUR (3600 * SEC)

#define MILLION ((uint64_t)1000000)

/* Each in the order of its enum. */
static const char *const idle_policies[] = {"proportional", "equal", "reserved", "none"};
static const char *const overhead_policies[] = {"proportional", "equal", "none"};
static const char *const includes_gpus[] = {"auto", "yes", "no"};
static const char *const methods[] = {"timeshare", "intensity"};
static const char *const exposures[] = {"all", "containers", "pods"};
static const char *const models[] = {"off", "auto"};
static const char *const signals[] = {NULL, "average", "marginal"};
static const char *const bases[] = {NULL, "lifecycle", "direct"};
static const char *const log_levels[] = {"debug", "info", "warn", "error"};
static const char *const log_formats[] = {"logfmt", "json"};
static const char *const compats[] = {"my-gpu-exporter", "dcgm-exporter", "kepler",
                                      "ceems"}; /* bits */

/* As enum names_by. */
static const char *const report_by[] = {"namespace", "user",  "account", "job",
                                        "pod",       "image", "node"};

static_assert(sizeof(enum idle_policy) == sizeof(unsigned), "words are stored as unsigned");

static const char *list_services(size_t index)
{
    size_t count = 0;

    while (count < index && provider_table[count])
        count++;
    return provider_table[count] ? provider_table[count]->name : NULL;
}

static const char *list_periods(size_t index)
{
    static const char *const words[] = {"today", "yesterday", "this-month", "last-month"};

    return index < ARRAY_SIZE(words) ? words[index] : NULL;
}

static const char *list_providers(size_t index)
{
    static const char *const tables[] = {"owid", "global", "constant"};
    size_t count = 0;

    while (provider_table[count])
        count++;
    if (index < count)
        return provider_table[index]->name;
    return index - count < ARRAY_SIZE(tables) ? tables[index - count] : NULL;
}

static void describe_providers(const struct options_flag *flag, char *text, size_t size_bytes)
{
    char names[256];

    (void)flag;
    provider_list_names(names, sizeof(names));
    snprintf(text, size_bytes, "%s (queried over the network), owid, global, constant", names);
}

static void describe_keys(const struct options_flag *flag, char *text, size_t size_bytes)
{
    struct emission_key keys[EMISSION_KEYS_MAX];
    size_t len = 0, count = emission_keys_list(keys);

    (void)flag;
    for (size_t i = 0; i < count && len < size_bytes; i++)
        len += (size_t)snprintf(text + len, size_bytes - len, "%s'%s: ...'", i > 0 ? ", " : "",
                                keys[i].name);
}

#define AT(member) .offset = offsetof(struct options, member)
#define NUMBER(kind, word, member, least, most)                                                    \
    .placeholder = (word), .set = option_type_number, .describe = option_type_describe_range,      \
    .number = &(kind), AT(member), .min = (least), .max = (most)
#define DURATION(...) NUMBER(option_type_duration, "DURATION", __VA_ARGS__)
#define COUNT(...)    NUMBER(option_type_count, "COUNT", __VA_ARGS__)
#define DECIMAL(word, member, least, most)                                                         \
    NUMBER(option_type_decimal, word, member, (least)*MILLION, (most)*MILLION)
#define WORDS(list, count)                                                                         \
    .describe = option_type_describe_words, .words = (list), .word_count = (count)
#define WORD(placeholder_, member, list)                                                           \
    .placeholder = (placeholder_), .set = option_type_word, AT(member),                            \
    WORDS(list, ARRAY_SIZE(list))
#define TEXT(placeholder_, setter, member, longest)                                                \
    .placeholder = (placeholder_), .set = (setter), AT(member), .max = (longest)
#define PATH(placeholder_, member) TEXT(placeholder_, option_type_text, member, PATH_MAX - 1)
#define SOCKET(member)             TEXT("PATH", option_type_absolute_path, member, OPTION_TYPE_SOCKET_PATH_MAX)
#define LIST(placeholder_, member)                                                                 \
    TEXT(placeholder_, option_type_list, member, 300), .repeatable = true, .splits = true
#define SWITCH(member)  .set = option_type_switch, AT(member)
#define ALIAS(name_)    .alias = (name_)
#define DESCRIBE(with_) .describe = (with_)
#define NAMES(with_)    .list = (with_)
#define REPEATABLE      .repeatable = true

static const struct options_flag flags[] = {
    {"sample-interval", "length of the window in which energy is booked", OPTIONS_BOOKS, "1s",
     DURATION(sample_interval_us, 100 * MSEC, 60 * SEC), ALIAS("dcgm-update-frequency")},
    {"idle-policy", "how the energy of an idle GPU is shared", OPTIONS_BOOKS, "proportional",
     WORD("POLICY", idle_policy, idle_policies)},
    {"gpu.idle-watts",
     "idle power of GPUs, instead of learning it; GPU is a UUID or an index, without it all others",
     OPTIONS_BOOKS, NULL,
     TEXT("[GPU=]WATTS", option_type_gpu_idle, gpu_idle_powers,
          (uint64_t)GPU_IDLE_MW_MAX *(MILLION / 1000)),
     REPEATABLE},
    {"rest-policy", "how the node's energy beyond CPUs, memory and GPUs is shared", OPTIONS_BOOKS,
     "proportional", WORD("POLICY", node_overhead_policy, overhead_policies)},
    {"node-meter.includes-gpus", "whether the node's meter includes the GPUs", OPTIONS_BOOKS,
     "auto", WORD("ANSWER", node_meter_includes_gpus, includes_gpus)},
    {"attribution", "how processes share the active energy of a GPU", OPTIONS_BOOKS, "intensity",
     WORD("METHOD", attribution, methods)},
    {"attribution-delay", "how long shared energy may wait for more samples", OPTIONS_BOOKS, "60s",
     DURATION(attribution_delay_us, 0, 60 * SEC)},
    {"max-processes", "maximum number of processes; others are booked as 'other'", OPTIONS_BOOKS,
     "4096", COUNT(max_processes, 1, 1 << 20)},
    {"max-workloads", "maximum number of workloads; others are booked as 'other'", OPTIONS_BOOKS,
     "16384", COUNT(max_workloads, 1, 1 << 20)},

    {"state-file",
     "keep counters and what was learned over restarts; '' disables it. Default: `state` in "
     "$STATE_DIRECTORY, which systemd sets",
     OPTIONS_BOOKS, NULL, TEXT("FILE", option_type_absolute_path, state_path, PATH_MAX - 1)},

    {"process-scan-interval", "time between full scans of processes and cgroups", OPTIONS_NODE,
     "10s", DURATION(process_scan_interval_us, SEC, HOUR)},
    {"process-events", "get process events from the kernel, if permitted", OPTIONS_NODE, "true",
     SWITCH(process_events)},
    {"redfish.url", "read the node's power from the BMC at https://HOST[:PORT]/", OPTIONS_NODE,
     NULL, TEXT("URL", option_type_text, redfish_url, 300)},
    {"redfish.credentials-file",
     "YAML file with the BMC's 'username: ...' and 'password: ...'; mode 0600", OPTIONS_NODE, NULL,
     PATH("FILE", redfish_credentials_path)},
    {"redfish.ca-file",
     "PEM file with the CA of the BMC's certificate, or that certificate; default: the system's "
     "CAs",
     OPTIONS_NODE, NULL, PATH("FILE", redfish_ca_path)},
    {"redfish.certificate-sha256", "trust only the BMC certificate with this SHA-256 fingerprint",
     OPTIONS_NODE, NULL, TEXT("HEX", option_type_text, redfish_certificate_sha256, 200)},
    {"redfish.insecure", "skip certificate verification and allow plain HTTP (insecure)",
     OPTIONS_NODE, "false", SWITCH(redfish_insecure)},
    {"redfish.interval", "time between readings of the BMC", OPTIONS_NODE, "10s",
     DURATION(redfish_interval_us, SEC, 20 * SEC)},
    {"path.procfs", "mount point of the host's /proc", OPTIONS_NODE, "/proc",
     PATH("DIR", procfs_path)},
    {"path.sysfs", "mount point of the host's /sys", OPTIONS_NODE, "/sys", PATH("DIR", sysfs_path)},
    {"path.rootfs", "mount point of the host's root", OPTIONS_NODE, "/", PATH("DIR", rootfs_path)},
    {"kubernetes-enabled", "get names from the kubelet and the CRI runtime, if present",
     OPTIONS_NODE, "true", SWITCH(kubernetes_enabled)},
    {"pod-resources-socket", "socket of the kubelet's pod-resources API; '' disables it",
     OPTIONS_NODE, NULL, SOCKET(pod_resources_socket)},

    {"model.cpu", "estimate the machine's power from its CPU model if no meter measures it",
     OPTIONS_MODEL, "off", WORD("HOW", model_cpu, models)},
    {"model.idle-watts", "estimate the machine's power from its watts when idle", OPTIONS_MODEL,
     NULL, DECIMAL("WATTS", model_idle_uw, 0, 100000)},
    {"model.full-watts", "and with all CPUs busy; set both or neither", OPTIONS_MODEL, NULL,
     DECIMAL("WATTS", model_full_uw, 1, 100000)},

    {"metric-prefix", "prefix of the per-process metrics", OPTIONS_METRICS, "my_gpu_process",
     TEXT("PREFIX", option_type_metric_prefix, metric_prefix, 64)},
    {"expose", "workloads to show; energy is booked for all of them", OPTIONS_METRICS, "all",
     WORD("WHAT", expose, exposures)},
    {"metric-retention", "how long to keep the series of an ended process", OPTIONS_METRICS, "5m",
     DURATION(metric_retention_us, 0, 8760 * HOUR)},
    {"compat", "also use another exporter's metric names, and serve text 0.0.4 only",
     OPTIONS_METRICS, NULL, TEXT("NAME", option_type_compat, compat, 0),
     WORDS(compats, ARRAY_SIZE(compats)), REPEATABLE},

    {"pue", "power usage effectiveness of the site; included in emissions and cost", OPTIONS_PRICES,
     "1", DECIMAL("RATIO", pue_millionths, 1, 10)},
    {"emissions-enabled", "show the CO2 emissions of workloads", OPTIONS_PRICES, "true",
     SWITCH(emissions_enabled)},
    {"emissions.factor",
     "grams of CO2 equivalent per kWh if no provider answers; default: the average of the country "
     "or of the world",
     OPTIONS_PRICES, NULL, DECIMAL("GRAMS", emissions_factor_ug, 0, PRICE_FACTOR_MAX_G)},
    {"emissions.zone", "country or grid zone: FR, FRA, US-CAL-CISO", OPTIONS_PRICES, NULL,
     TEXT("ZONE", option_type_text, emissions_zone, 63)},
    {"emissions.providers",
     "providers of the emission factor, in order of preference, as NAME or NAME:ZONE",
     OPTIONS_PRICES, NULL, LIST("LIST", emissions_providers), DESCRIBE(describe_providers),
     NAMES(list_providers)},
    {"emissions.primary", "provider to prefer over the first; the others are its fallbacks",
     OPTIONS_PRICES, NULL, TEXT("NAME", option_type_text, emissions_primary, 32),
     NAMES(list_providers)},
    {"emissions.signal", "signal of --emissions.factor", OPTIONS_PRICES, NULL,
     WORD("KIND", emissions_signal, signals)},
    {"emissions.basis", "basis of --emissions.factor, and of the electricity_maps query",
     OPTIONS_PRICES, NULL, WORD("KIND", emissions_basis, bases)},
    {"emissions.keys-file", "YAML file with the providers' keys; mode 0600", OPTIONS_PRICES, NULL,
     PATH("FILE", emissions_keys_path), DESCRIBE(describe_keys)},
    {"emissions.ca-file", "PEM file with the CAs of the providers; default: the system's CAs",
     OPTIONS_PRICES, NULL, PATH("FILE", emissions_ca_path)},
    {"emissions.url", "query a mirror of this provider at https://HOST[:PORT]", OPTIONS_PRICES,
     NULL, LIST("NAME=URL", emissions_urls), NAMES(list_services)},
    {"emissions.interval", "time between queries of a provider; 0s: as often as it publishes",
     OPTIONS_PRICES, "0s", DURATION(emissions_interval_us, 0, 6 * HOUR)},
    {"emissions.embodied",
     "embodied carbon of a device in grams of CO2 equivalent per hour of its life, for example "
     "gpu=28.5; METER is one of",
     OPTIONS_PRICES, NULL,
     TEXT("METER=GRAMS", option_type_embodied, emissions_embodied, EMBODIED_MAX_G *MILLION),
     WORDS(meter_words, METER_NODE_OVERHEAD + 1), REPEATABLE},
    {"cost.price", "price per kWh; default: no cost is shown", OPTIONS_PRICES, NULL,
     DECIMAL("PRICE", cost_price_micro, 0, PRICE_COST_MAX)},
    {"cost.currency", "currency of --cost.price, for example EUR", OPTIONS_PRICES, NULL,
     TEXT("CODE", option_type_currency, cost_currency, 3)},
    {"cost.tariff-file", "YAML file with the price per kWh by hour, day and month", OPTIONS_PRICES,
     NULL, PATH("FILE", cost_tariff_path)},

    {"kubernetes.api", "also get the names of this node's pods from the API server",
     OPTIONS_SERVING, "false", SWITCH(kubernetes_api)},
    {"kubernetes.service-account-dir", "directory with the token and ca.crt for --kubernetes.api",
     OPTIONS_SERVING, "/var/run/secrets/kubernetes.io/serviceaccount",
     PATH("DIR", kubernetes_service_account_dir)},
    {"replay", "serve a recorded trace in real time, in a loop, instead of this node",
     OPTIONS_SERVING, NULL, PATH("FILE", replay_path)},
    {"listen-address", "HOST:PORT, :PORT, [IPV6]:PORT or unix:PATH", OPTIONS_SERVING, ":9400",
     TEXT("ADDRESS", option_type_list, listen_addresses, PATH_MAX - 1), REPEATABLE},
    {"metrics-path", "HTTP path of the metrics", OPTIONS_SERVING, "/metrics",
     TEXT("/PATH", option_type_metrics_path, metrics_path, 255)},
    {"page-interval", "shortest time between two states of the page; 0s: each is the newest",
     OPTIONS_SERVING, "0s", DURATION(page_interval_us, 0, HOUR)},
    {"history", "keep the last hour in memory (at most 1 MiB) for /api/v1/history", OPTIONS_SERVING,
     "true", SWITCH(history)},
    {"web.config.file", "TLS, users and headers, in the format of Prometheus's exporter-toolkit",
     OPTIONS_SERVING, NULL, PATH("FILE", web_config_path)},

    {"log-level", "lowest severity to log", OPTIONS_LOGGING, "info",
     WORD("LEVEL", log_level, log_levels)},
    {"log-format", "format of log lines", OPTIONS_LOGGING, "logfmt",
     WORD("FORMAT", log_format, log_formats)},

    {"duration", "how long to record; 0s: until stopped", OPTIONS_RECORDING, "0s",
     DURATION(duration_us, 0, 8760 * HOUR)},
    {"record.names", "record the names of pods, containers, images, users and jobs",
     OPTIONS_RECORDING, "true", SWITCH(record_names)},
    {"program-key-file",
     "file with the secret of program keys, created if missing; programs are recognised across "
     "recordings with the same secret; default: a new one in each run",
     OPTIONS_RECORDING, NULL, PATH("FILE", program_key_path)},
    {"repeat", "run the command so often, one after the other; stops when it fails",
     OPTIONS_RUNNING, "1", COUNT(repeat, 1, 100)},
    {"remember", "keep the report, and compare it with the next one of the same command",
     OPTIONS_RUNNING, "true", SWITCH(remember)},
    {"live", "show what is used so far on a terminal that the command's output does not go to",
     OPTIONS_RUNNING, "true", SWITCH(live)},
    {"output", "file to write: a trace (gzip; must not exist), or the report of 'run' as JSON",
     OPTIONS_FILE, NULL, PATH("FILE", output_path), ALIAS("o")},
    {"json", "print JSON", OPTIONS_OUTPUT, NULL, SWITCH(json)},

    {"daemon", "ask the wattribute at http://HOST:PORT, https://HOST:PORT or unix:PATH",
     OPTIONS_DAEMON, "http://localhost:9400", TEXT("ADDRESS", option_type_text, daemon_url, 300)},
    {"daemon.ca-file",
     "PEM file with the CA of the daemon's certificate, or that certificate; default: the system's "
     "CAs",
     OPTIONS_DAEMON, NULL, PATH("FILE", daemon_ca_path)},
    {"daemon.credentials-file",
     "YAML file with 'username: ...' and 'password: ...' for the daemon; mode 0600", OPTIONS_DAEMON,
     NULL, PATH("FILE", daemon_credentials_path)},

    {"interval", "time between two states of the screen", OPTIONS_SCREEN, "2s",
     DURATION(screen_interval_us, 500 * MSEC, HOUR)},
    {"once", "print one table and end", OPTIONS_SCREEN, NULL, SWITCH(once)},

    {"period",
     "today, yesterday, this-month, last-month, a date or FROM..TO: days of the local time zone, "
     "both included",
     OPTIONS_REPORTING, "today", TEXT("PERIOD", option_type_text, report.period, 64),
     NAMES(list_periods)},
    {"by", "what to add up by", OPTIONS_REPORTING, "namespace", WORD("WHAT", report.by, report_by)},
    {"job", "the whole life of a batch job, with its nodes and GPUs; looks back 31 days",
     OPTIONS_REPORTING, NULL, TEXT("ID", option_type_text, report.job, 300)},
    {"pod", "the same of a pod", OPTIONS_REPORTING, NULL,
     TEXT("[NAMESPACE/]NAME", option_type_text, report.pod, 600)},
    {"csv", "print CSV", OPTIONS_REPORTING, NULL, SWITCH(report.csv)},
    {"html", "write a page with charts to this file, which needs nothing else", OPTIONS_REPORTING,
     NULL, PATH("FILE", report.html_path)},
    {"server", "a Prometheus, Thanos, Mimir or VictoriaMetrics", OPTIONS_REPORTING,
     "http://localhost:9090", TEXT("URL", option_type_text, report.server_url, 300)},
    {"server.ca-file",
     "PEM file with the CA of the server's certificate, or that certificate; default: the system's "
     "CAs",
     OPTIONS_REPORTING, NULL, PATH("FILE", report.ca_path)},
    {"server.token-file", "file with a bearer token for the server", OPTIONS_REPORTING, NULL,
     PATH("FILE", report.token_path)},
    {"server.credentials-file",
     "YAML file with 'username: ...' and 'password: ...' for the server; mode 0600",
     OPTIONS_REPORTING, NULL, PATH("FILE", report.credentials_path)},
    {"server.tenant", "tenant of a Mimir or Cortex (X-Scope-OrgID)", OPTIONS_REPORTING, NULL,
     TEXT("NAME", option_type_text, report.tenant, 300)},
    {"server.insecure", "skip certificate verification (insecure)", OPTIONS_REPORTING, NULL,
     SWITCH(report.is_insecure)},
    {"select", "only targets with these labels, as in PromQL: 'cluster=\"a\"'", OPTIONS_REPORTING,
     NULL, TEXT("MATCHERS", option_type_text, report.select, 2000)},
    {"resolution",
     "time between two looks at the counters; default: 1m, and up to 1h for many rows",
     OPTIONS_REPORTING, NULL, DURATION(report.step_us, SEC, 24 * HOUR)},
    {"recorded", "read the series of the recording rules in docs/report.md, which are fewer",
     OPTIONS_REPORTING, NULL, SWITCH(report.is_recorded)},
    {"parallel", "requests at the same time", OPTIONS_REPORTING, "4",
     COUNT(report.parallel, 1, 32)},
    {"resume", "directory that keeps answers, so that a report that was interrupted goes on",
     OPTIONS_REPORTING, NULL, PATH("DIR", report.keep_path)},

    {"config.file", "YAML file with flags; the command line overrides it", OPTIONS_GENERAL, NULL,
     PATH("FILE", config_path)},
    {"help", "show this help and exit", OPTIONS_GENERAL, NULL, SWITCH(help), ALIAS("h")},
    {"version", "show the version and exit", OPTIONS_GENERAL, NULL, SWITCH(version)},
};

static_assert(ARRAY_SIZE(flags) + SOURCE_SWITCHES_MAX + RUNTIME_TABLE_MAX <= OPTIONS_FLAG_MAX,
              "raise OPTIONS_FLAG_MAX");

bool options_flag_at(size_t index, struct options_flag *ret_flag)
{
    size_t at = 0;

    if (index < ARRAY_SIZE(flags)) {
        *ret_flag = flags[index];
        ret_flag->index = index;
        return true;
    }
    for (size_t i = 0; runtime_table[i]; i++)
        if (ARRAY_SIZE(flags) + at++ == index) {
            *ret_flag = (struct options_flag){
                runtime_table[i]->flag,     runtime_table[i]->help, OPTIONS_NODE, NULL,
                SOCKET(runtime_sockets[i]), .index = index};
            return true;
        }
    for (size_t i = 0; source_table[i]; i++)
        if (source_table[i]->flag && ARRAY_SIZE(flags) + at++ == index) {
            *ret_flag = (struct options_flag){source_table[i]->flag,   source_table[i]->help,
                                              OPTIONS_SOURCES,         "true",
                                              SWITCH(source_is_on[i]), .index = index};
            return true;
        }
    return false;
}
