/* The table of flags. */
#include <assert.h>
#include <limits.h>

#include "config/option_type.h"
#include "config/options_private.h"
#include "core/macros.h"
#include "model/price.h"

#define MSEC ((uint64_t)1000)
#define SEC  USEC_PER_SEC
#define HOUR (3600 * SEC)

#define MILLION ((uint64_t)1000000)

static const struct option_type_word idle_policies[] = {
    {"proportional", IDLE_POLICY_PROPORTIONAL},
    {"equal", IDLE_POLICY_EQUAL},
    {"reserved", IDLE_POLICY_RESERVED},
    {"none", IDLE_POLICY_NONE},
    {0},
};

static const struct option_type_word rest_policies[] = {
    {"proportional", NODE_OVERHEAD_POLICY_PROPORTIONAL},
    {"equal", NODE_OVERHEAD_POLICY_EQUAL},
    {"none", NODE_OVERHEAD_POLICY_NONE},
    {0},
};

static const struct option_type_word includes_gpus[] = {
    {"auto", INCLUDES_GPUS_AUTO},
    {"yes", INCLUDES_GPUS_YES},
    {"no", INCLUDES_GPUS_NO},
    {0},
};

static const struct option_type_word attribution_methods[] = {
    {"intensity", ATTRIBUTION_INTENSITY},
    {"timeshare", ATTRIBUTION_TIMESHARE},
    {0},
};

static const struct option_type_word exposures[] = {
    {"all", EXPOSE_ALL},
    {"containers", EXPOSE_CONTAINERS},
    {"pods", EXPOSE_PODS},
    {0},
};

/* Those of meter_words that are booked. */
static const struct option_type_word booked_meters[] = {
    {"gpu", METER_GPU}, {"package", METER_PACKAGE}, {"dram", METER_DRAM}, {"rest", METER_REST}, {0},
};

static const struct option_type_word models[] = {
    {"off", OPTIONS_MODEL_OFF},
    {"auto", OPTIONS_MODEL_AUTO},
    {0},
};

static const struct option_type_word signals[] = {
    {"average", PRICE_AVERAGE},
    {"marginal", PRICE_MARGINAL},
    {0},
};

static const struct option_type_word bases[] = {
    {"lifecycle", PRICE_LIFECYCLE},
    {"direct", PRICE_DIRECT},
    {0},
};

static const struct option_type_word log_levels[] = {
    {"debug", LOG_LEVEL_DEBUG},
    {"info", LOG_LEVEL_INFO},
    {"warn", LOG_LEVEL_WARN},
    {"error", LOG_LEVEL_ERROR},
    {0},
};

static const struct option_type_word log_formats[] = {
    {"logfmt", LOG_FORMAT_LOGFMT},
    {"json", LOG_FORMAT_JSON},
    {0},
};

static const struct option_type_word compats[] = {
    {"my-gpu-exporter", COMPAT_MY_GPU_EXPORTER},
    {0},
};

/* option_type_word stores an unsigned into whichever of these enums the table names. */
static_assert(sizeof(enum idle_policy) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum node_overhead_policy) == sizeof(unsigned),
              "words are stored as unsigned");
static_assert(sizeof(enum includes_gpus) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum attribution_method) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum expose) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum options_model) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum price_signal) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum price_basis) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum log_level) == sizeof(unsigned), "words are stored as unsigned");
static_assert(sizeof(enum log_format) == sizeof(unsigned), "words are stored as unsigned");

#define AT(field) .offset = offsetof(struct options, field)
#define DURATION(field, least, most)                                                               \
    .set = option_type_duration, .describe = option_type_describe_durations, AT(field),            \
    .min = (least), .max = (most)
#define COUNT(field, least, most)                                                                  \
    .set = option_type_count, .describe = option_type_describe_counts, AT(field), .min = (least),  \
    .max = (most)
#define DECIMAL(field, least, most)                                                                \
    .set = option_type_decimal, .describe = option_type_describe_decimals, AT(field),              \
    .min = (least)*MILLION, .max = (most)*MILLION
#define WORD(field, list)                                                                          \
    .set = option_type_word, .describe = option_type_describe_words, AT(field), .words = (list)
#define PATH(field)          .set = option_type_text, AT(field), .max = PATH_MAX - 1
#define TEXT(field, longest) .set = option_type_text, AT(field), .max = (longest)
#define LIST(field)          .set = option_type_list, AT(field), .max = 300, .repeatable = true
#define SWITCH(field)        .set = option_type_switch, AT(field)
#define SOCKET(field)        .set = option_type_socket_path, AT(field), .max = OPTION_TYPE_SOCKET_PATH_MAX

const struct options_flag options_rows[] = {
    {.names = {"sample-interval", "dcgm-update-frequency"},
     .placeholder = "DURATION",
     .fallback = "1s",
     .help = "length of the window in which energy is booked",
     .group = OPTIONS_BOOKS,
     DURATION(sample_interval_us, 100 * MSEC, 60 * SEC)},
    {.names = {"idle-policy"},
     .placeholder = "POLICY",
     .fallback = "proportional",
     .help = "who pays what an idle GPU draws",
     .group = OPTIONS_BOOKS,
     WORD(idle_policy, idle_policies)},
    {.names = {"rest-policy"},
     .placeholder = "POLICY",
     .fallback = "proportional",
     .help = "who pays what the node draws beyond processors, memory and GPUs",
     .group = OPTIONS_BOOKS,
     WORD(node_overhead_policy, rest_policies)},
    {.names = {"node-meter.includes-gpus"},
     .placeholder = "ANSWER",
     .fallback = "auto",
     .help = "whether the meter of the whole node includes the GPUs",
     .group = OPTIONS_BOOKS,
     WORD(node_meter_includes_gpus, includes_gpus)},
    {.names = {"attribution"},
     .placeholder = "METHOD",
     .fallback = "intensity",
     .help = "how processes that share a GPU share its active energy",
     .group = OPTIONS_BOOKS,
     WORD(attribution, attribution_methods)},
    {.names = {"attribution-delay"},
     .placeholder = "DURATION",
     .fallback = "60s",
     .help = "how long shared energy may wait until more is known of who used it",
     .group = OPTIONS_BOOKS,
     DURATION(attribution_delay_us, 0, 60 * SEC)},
    {.names = {"max-processes"},
     .placeholder = "COUNT",
     .fallback = "4096",
     .help = "maximum number of processes shown; the rest is booked in one row, 'other'",
     .group = OPTIONS_BOOKS,
     COUNT(max_processes, 1, 1 << 20)},
    {.names = {"max-workloads"},
     .placeholder = "COUNT",
     .fallback = "16384",
     .help = "maximum number of workloads shown; the rest is booked in one row, 'other'",
     .group = OPTIONS_BOOKS,
     COUNT(max_workloads, 1, 1 << 20)},

    {.names = {"process-scan-interval"},
     .placeholder = "DURATION",
     .fallback = "10s",
     .help = "time between full scans of processes and cgroups",
     .group = OPTIONS_NODE,
     DURATION(process_scan_interval_us, SEC, HOUR)},
    {.names = {"process-events"},
     .fallback = "true",
     .help = "learn of new processes from the kernel, where it permits that",
     .group = OPTIONS_NODE,
     SWITCH(process_events)},
    {.names = {"kubernetes-enabled"},
     .fallback = "true",
     .help = "ask the kubelet and its runtime for names, where there are any",
     .group = OPTIONS_NODE,
     SWITCH(kubernetes_enabled)},
    {.names = {"kubernetes.api"},
     .fallback = "false",
     .help = "also ask the API server for the names of this node's pods",
     .group = OPTIONS_SERVING,
     SWITCH(kubernetes_api)},
    {.names = {"kubernetes.service-account-dir"},
     .placeholder = "DIR",
     .fallback = "/var/run/secrets/kubernetes.io/serviceaccount",
     .help = "directory with the token and ca.crt for --kubernetes.api",
     .group = OPTIONS_SERVING,
     PATH(kubernetes_service_account_dir)},
    {.names = {"pod-resources-socket"},
     .placeholder = "PATH",
     .help = "socket of the kubelet's pod-resources API; '' not to ask it",
     .group = OPTIONS_NODE,
     SOCKET(pod_resources_socket)},
    {.expand = options_expand_runtimes},
    {.names = {"redfish.url"},
     .placeholder = "URL",
     .help = "read the node's power from the BMC at https://HOST[:PORT]/; default: no BMC is asked",
     .group = OPTIONS_NODE,
     TEXT(redfish_url, 300)},
    {.names = {"redfish.credentials-file"},
     .placeholder = "FILE",
     .help = "YAML file with the BMC's 'username: ...' and 'password: ...', readable by its owner "
             "only",
     .group = OPTIONS_NODE,
     PATH(redfish_credentials_path)},
    {.names = {"redfish.ca-file"},
     .placeholder = "FILE",
     .help = "PEM file with the authority that signed the BMC's certificate, or the certificate "
             "itself; default: the system's authorities",
     .group = OPTIONS_NODE,
     PATH(redfish_ca_path)},
    {.names = {"redfish.certificate-sha256"},
     .placeholder = "HEX",
     .help = "accept the BMC certificate with this SHA-256 fingerprint, whoever signed it",
     .group = OPTIONS_NODE,
     TEXT(redfish_certificate_sha256, 200)},
    {.names = {"redfish.insecure"},
     .fallback = "false",
     .help = "skip certificate verification and allow http: the password goes to whoever answers "
             "(insecure)",
     .group = OPTIONS_NODE,
     SWITCH(redfish_insecure)},
    {.names = {"redfish.interval"},
     .placeholder = "DURATION",
     .fallback = "10s",
     .help = "time between two readings of the BMC",
     .group = OPTIONS_NODE,
     DURATION(redfish_interval_us, SEC, 20 * SEC)},
    {.names = {"path.procfs"},
     .placeholder = "DIR",
     .fallback = "/proc",
     .help = "where the host's /proc is mounted",
     .group = OPTIONS_NODE,
     PATH(procfs_path)},
    {.names = {"path.sysfs"},
     .placeholder = "DIR",
     .fallback = "/sys",
     .help = "where the host's /sys is mounted",
     .group = OPTIONS_NODE,
     PATH(sysfs_path)},
    {.names = {"path.rootfs"},
     .placeholder = "DIR",
     .fallback = "/",
     .help = "where the host's root is mounted",
     .group = OPTIONS_NODE,
     PATH(rootfs_path)},
    {.names = {"replay"},
     .placeholder = "FILE",
     .help = "serve a recorded trace in real time, in a loop, instead of this node",
     .group = OPTIONS_SERVING,
     PATH(replay_path)},

    {.expand = options_expand_sources},

    {.names = {"model.cpu"},
     .placeholder = "HOW",
     .fallback = "off",
     .help = "estimate the machine's power from its processor type, if no meter measures it",
     .group = OPTIONS_MODEL,
     WORD(model_cpu, models)},
    {.names = {"model.idle-watts"},
     .placeholder = "WATTS",
     .help = "estimate the machine's power: watts of the whole machine when idle",
     .group = OPTIONS_MODEL,
     DECIMAL(model_idle_uw, 0, 100000)},
    {.names = {"model.full-watts"},
     .placeholder = "WATTS",
     .help = "and with all CPUs busy; set both or neither",
     .group = OPTIONS_MODEL,
     DECIMAL(model_full_uw, 1, 100000)},

    {.names = {"metric-prefix"},
     .placeholder = "PREFIX",
     .fallback = "my_gpu_process",
     .help = "prefix of the per-process metrics",
     .group = OPTIONS_METRICS,
     .set = option_type_metric_prefix,
     AT(metric_prefix),
     .max = 64},
    {.names = {"expose"},
     .placeholder = "WHAT",
     .fallback = "all",
     .help = "which workloads are shown; everything is booked either way",
     .group = OPTIONS_METRICS,
     WORD(expose, exposures)},
    {.names = {"metric-retention"},
     .placeholder = "DURATION",
     .fallback = "5m",
     .help = "how long the series of an ended process are kept",
     .group = OPTIONS_METRICS,
     DURATION(metric_retention_us, 0, 8760 * HOUR)},
    {.names = {"compat"},
     .placeholder = "NAME",
     .help = "also show another exporter's names, and serve text 0.0.4 only",
     .group = OPTIONS_METRICS,
     .repeatable = true,
     .set = option_type_compat,
     .describe = option_type_describe_words,
     .words = compats},

    {.names = {"pue"},
     .placeholder = "RATIO",
     .fallback = "1",
     .help = "power usage effectiveness: energy of the site per energy of its machines; included "
             "in emissions and cost",
     .group = OPTIONS_PRICES,
     DECIMAL(pue_millionths, 1, 10)},
    {.names = {"emissions-enabled"},
     .fallback = "true",
     .help = "show the CO2 emissions of workloads",
     .group = OPTIONS_PRICES,
     SWITCH(emissions_enabled)},
    {.names = {"emissions.factor"},
     .placeholder = "GRAMS",
     .help = "grams of CO2 equivalent per kWh, if no provider is configured or answers; default: "
             "the average of the country or of the world",
     .group = OPTIONS_PRICES,
     DECIMAL(emissions_factor_ug, 0, PRICE_FACTOR_MAX_G)},
    {.names = {"emissions.zone"},
     .placeholder = "ZONE",
     .help = "country or zone of the grid: FR, FRA, US-CAL-CISO",
     .group = OPTIONS_PRICES,
     TEXT(emissions_zone, 63)},
    {.names = {"emissions.providers"},
     .placeholder = "LIST",
     .help = "providers of the emission factor, in order of preference, as NAME or NAME:ZONE",
     .group = OPTIONS_PRICES,
     .describe = options_describe_providers,
     LIST(emissions_providers)},
    {.names = {"emissions.primary"},
     .placeholder = "NAME",
     .help = "the provider whose factor is used, if not the first; the others are its fallbacks",
     .group = OPTIONS_PRICES,
     TEXT(emissions_primary, 32)},
    {.names = {"emissions.signal"},
     .placeholder = "KIND",
     .help = "kind of --emissions.factor",
     .group = OPTIONS_PRICES,
     WORD(emissions_signal, signals)},
    {.names = {"emissions.basis"},
     .placeholder = "KIND",
     .help = "what --emissions.factor counts, and what electricity_maps is queried for",
     .group = OPTIONS_PRICES,
     WORD(emissions_basis, bases)},
    {.names = {"emissions.keys-file"},
     .placeholder = "FILE",
     .help = "YAML file with the providers' keys, readable by its owner only",
     .group = OPTIONS_PRICES,
     .describe = options_describe_keys,
     PATH(emissions_keys_path)},
    {.names = {"emissions.ca-file"},
     .placeholder = "FILE",
     .help = "PEM file with the authorities that signed the providers' certificates; default: the "
             "system's",
     .group = OPTIONS_PRICES,
     PATH(emissions_ca_path)},
    {.names = {"emissions.url"},
     .placeholder = "NAME=URL",
     .help = "query a mirror at https://HOST[:PORT] instead of this provider",
     .group = OPTIONS_PRICES,
     LIST(emissions_urls)},
    {.names = {"emissions.interval"},
     .placeholder = "DURATION",
     .fallback = "0s",
     .help = "time between two queries of a provider; 0s: as often as it publishes",
     .group = OPTIONS_PRICES,
     DURATION(emissions_interval_us, 0, 6 * HOUR)},
    {.names = {"emissions.embodied"},
     .placeholder = "METER=GRAMS",
     .help = "embodied carbon of a device: grams of CO2 equivalent per hour of its life, for "
             "example gpu=28.5; default: none is shown. METER is one of",
     .group = OPTIONS_PRICES,
     .repeatable = true,
     .set = option_type_embodied,
     .describe = option_type_describe_words,
     .words = booked_meters,
     .max = EMBODIED_MAX_G * MILLION},
    {.names = {"cost.price"},
     .placeholder = "PRICE",
     .help = "price of a kWh; default: no cost is shown",
     .group = OPTIONS_PRICES,
     DECIMAL(cost_price_micro, 0, PRICE_COST_MAX)},
    {.names = {"cost.currency"},
     .placeholder = "CODE",
     .help = "currency of --cost.price, for example EUR",
     .group = OPTIONS_PRICES,
     .set = option_type_currency,
     AT(cost_currency),
     .max = 3},
    {.names = {"cost.tariff-file"},
     .placeholder = "FILE",
     .help = "YAML file with the price of a kWh by hour, day and month",
     .group = OPTIONS_PRICES,
     PATH(cost_tariff_path)},

    {.names = {"listen-address"},
     .placeholder = "ADDRESS",
     .fallback = ":9400",
     .help = "HOST:PORT, :PORT, [IPV6]:PORT or unix:PATH",
     .group = OPTIONS_SERVING,
     .repeatable = true,
     .set = option_type_listen_address,
     .max = PATH_MAX - 1},
    {.names = {"metrics-path"},
     .placeholder = "PATH",
     .fallback = "/metrics",
     .help = "HTTP path of the metrics",
     .group = OPTIONS_SERVING,
     .set = option_type_metrics_path,
     AT(metrics_path),
     .max = 255},
    {.names = {"web.config.file"},
     .placeholder = "FILE",
     .help = "TLS, users and headers, in the format of Prometheus's exporter-toolkit",
     .group = OPTIONS_SERVING,
     PATH(web_config_path)},

    {.names = {"log-level"},
     .placeholder = "LEVEL",
     .fallback = "info",
     .help = "lowest severity that is logged",
     .group = OPTIONS_LOGGING,
     WORD(log_level, log_levels)},
    {.names = {"log-format"},
     .placeholder = "FORMAT",
     .fallback = "logfmt",
     .help = "format of log lines",
     .group = OPTIONS_LOGGING,
     WORD(log_format, log_formats)},

    {.names = {"output", "o"},
     .placeholder = "FILE",
     .help = "trace file to write, gzip; must not exist",
     .group = OPTIONS_RECORDING,
     PATH(output_path)},
    {.names = {"duration"},
     .placeholder = "DURATION",
     .fallback = "0s",
     .help = "how long to record; 0s: until stopped",
     .group = OPTIONS_RECORDING,
     DURATION(duration_us, 0, 8760 * HOUR)},
    {.names = {"record.names"},
     .fallback = "true",
     .help = "also write names into the trace: of pods, containers, images, users and jobs",
     .group = OPTIONS_RECORDING,
     SWITCH(record_names)},
    {.names = {"json"},
     .help = "print the findings and the summary as JSON",
     .group = OPTIONS_CHECKING,
     SWITCH(json)},
    {.names = {"config.file"},
     .placeholder = "FILE",
     .help = "YAML file with flags; flags on the command line override it",
     .group = OPTIONS_GENERAL,
     PATH(config_path)},
    {.names = {"help", "h"},
     .help = "show this text and exit",
     .group = OPTIONS_GENERAL,
     SWITCH(help)},
    {.names = {"version"},
     .help = "show the version and exit",
     .group = OPTIONS_GENERAL,
     SWITCH(version)},
};
const size_t options_row_count = ARRAY_SIZE(options_rows);

static_assert(ARRAY_SIZE(options_rows) + SOURCE_SWITCHES_MAX + RUNTIME_TABLE_MAX <=
                  OPTIONS_FLAG_MAX,
              "raise OPTIONS_FLAG_MAX");
