/*
 * Options: the command line, the environment and --config.file, read by one table of flags.
 *
 * Precedence, lowest first: default, environment (EXPORTER_PORT, SCRAPE_INTERVAL), config file,
 * flag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/log.h"
#include "core/span.h"
#include "identity/runtime_table.h"
#include "model/policy.h"
#include "model/price.h"
#include "sources/source.h"

enum { OPTIONS_FLAG_MAX = 128, OPTIONS_LIST_MAX = 16 };

/* Where a value came from, lowest precedence first. */
enum options_source { OPTIONS_DEFAULT, OPTIONS_ENVIRONMENT, OPTIONS_CONFIG, OPTIONS_COMMAND_LINE };

enum options_model { OPTIONS_MODEL_OFF, OPTIONS_MODEL_AUTO };

/* Values of a repeatable flag. */
struct options_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

struct options {
    uint64_t sample_interval_us;
    uint64_t process_scan_interval_us;
    uint64_t metric_retention_us;
    const char *metric_prefix;
    struct options_list listen_addresses;
    const char *metrics_path;
    uint64_t page_interval_us;   /* 0: each page is the newest */
    bool history;                /* keep the last hour for the API */
    const char *web_config_path; /* NULL: plain HTTP, no authentication */
    enum log_level log_level;
    enum log_format log_format;
    bool source_is_on[SOURCE_SWITCHES_MAX]; /* as source_table; of those that have a switch */
    enum options_model model_cpu;
    uint64_t model_idle_uw, model_full_uw; /* both, or neither: the second is 0 */
    const char *procfs_path, *sysfs_path, *rootfs_path;
    enum idle_policy idle_policy;
    struct gpu_idle_powers gpu_idle_powers;
    enum node_overhead_policy node_overhead_policy;
    enum includes_gpus node_meter_includes_gpus;
    enum attribution_method attribution;
    uint64_t attribution_delay_us;
    uint64_t max_processes, max_workloads;
    const char *replay_path; /* NULL: live */
    const char *state_path;  /* NULL: by default; "": none */
    unsigned compat;         /* bits of enum compat */
    enum expose expose;
    uint64_t pue_millionths; /* power usage effectiveness, at least 1 */
    bool emissions_enabled;
    uint64_t emissions_factor_ug; /* per kWh, if given */
    const char *emissions_zone;   /* NULL: not given */
    struct options_list emissions_providers, emissions_urls;
    const char *emissions_primary, *emissions_keys_path, *emissions_ca_path; /* likewise */
    uint64_t emissions_interval_us;                                          /* 0: their own */
    enum price_signal emissions_signal; /* of emissions_factor_ug */
    enum price_basis emissions_basis;
    struct embodied_rates emissions_embodied;
    uint64_t cost_price_micro; /* per kWh, if given, with the currency */
    const char *cost_currency;
    const char *cost_tariff_path; /* NULL: none; excludes both */
    bool kubernetes_enabled, kubernetes_api, process_events;
    const char *kubernetes_service_account_dir;
    /* NULL: search the usual paths; "": do not query. */
    const char *pod_resources_socket;
    const char *runtime_sockets[RUNTIME_TABLE_MAX]; /* as runtime_table */
    /* The BMC over the network; NULL: not given. */
    const char *redfish_url, *redfish_credentials_path, *redfish_ca_path;
    const char *redfish_certificate_sha256;
    bool redfish_insecure;
    uint64_t redfish_interval_us;
    const char *output_path;      /* of `record` and `run`; NULL: none */
    bool record_names;            /* of `record` */
    const char *program_key_path; /* of `record`; NULL: a new secret in each run */
    uint64_t duration_us;         /* of `record`; 0: until it is stopped */
    bool json;                    /* of verbs that print */
    uint64_t repeat;              /* of `run` */
    bool remember, live;          /* of `run` */
    /* A running daemon; NULL: not given. */
    const char *daemon_url, *daemon_ca_path, *daemon_credentials_path;
    uint64_t screen_interval_us; /* of `top` */
    bool once;                   /* likewise */
    struct {                     /* of `report`; texts are NULL where not given */
        const char *server_url, *ca_path, *token_path, *credentials_path, *tenant;
        const char *period, *select, *job, *pod, *html_path, *keep_path;
        bool is_insecure, is_recorded, csv;
        unsigned by; /* enum names_by */
        uint64_t step_us, parallel;
    } report;

    /* On the command line only. */
    const char *config_path; /* NULL: none */
    bool help, version;

    enum options_source sources[OPTIONS_FLAG_MAX]; /* of each flag, by its index */
    struct arena strings;                          /* owns every string above */
};

/* The headings of --help; a verb accepts whole groups. */
enum options_group {
    OPTIONS_BOOKS,
    OPTIONS_NODE,
    OPTIONS_SOURCES,
    OPTIONS_MODEL, /* below the same heading; not for `record`, which writes no estimates */
    OPTIONS_METRICS,
    OPTIONS_PRICES,
    OPTIONS_SERVING,
    OPTIONS_LOGGING,
    OPTIONS_RECORDING, /* of `record` alone */
    OPTIONS_RUNNING,   /* of `run` alone */
    OPTIONS_FILE,      /* of verbs that write a file */
    OPTIONS_OUTPUT,    /* of what a verb prints */
    OPTIONS_DAEMON,    /* of clients of a running daemon */
    OPTIONS_SCREEN,    /* of `top` alone */
    OPTIONS_REPORTING, /* of `report` alone */
    OPTIONS_GENERAL,   /* about the command line itself: not in the config file */
    OPTIONS_GROUP_COUNT,
};

struct options_flag;

/* One value on its way into the options. */
struct options_value {
    const char *text;
    const char *where; /* how errors call the place: "--idle-policy", "a.yaml:3:1: idle-policy" */
    bool first;        /* from its source: a repeatable flag starts over */
};

typedef int options_setter(struct options *options, const struct options_flag *flag,
                           const struct options_value *value, struct error *err);
typedef void options_describer(const struct options_flag *flag, char *text, size_t size_bytes);
typedef const char *options_lister(size_t index); /* NULL beyond the last */

struct options_flag {
    const char *name; /* without dashes */
    const char *help;
    enum options_group group;
    const char *fallback;    /* the default as a user would write it; NULL: none */
    const char *alias;       /* NULL: none */
    const char *placeholder; /* NULL: a boolean, for which the bare flag means true */
    bool repeatable;
    bool splits; /* its values at commas */

    options_setter *set;
    options_describer *describe; /* NULL: what is allowed cannot be put in a few words */
    size_t offset;               /* in struct options, of the member that `set` writes */
    uint64_t min, max;           /* of numbers; for texts `max` is the longest */
    const struct option_type_number *number; /* kind of number */
    const char *const *words;                /* by the member's value; NULL where none is allowed */
    size_t word_count;
    options_lister *list; /* names to begin a value with that are in no such array; or NULL */

    size_t index; /* among all flags */
};

/* The flags one after another: the table's, then one per container runtime and per source. False
 * beyond the last. */
bool options_flag_at(size_t index, struct options_flag *ret_flag);

/* What a value can be, or begin with, for completion: one word after another, then NULL. */
const char *options_flag_word(const struct options_flag *flag, size_t index);

/* Can --config.file have it? */
bool options_flag_is_key(const struct options_flag *flag);

/* An environment variable: a whole number that stands for a flag's value. */
struct options_variable {
    const char *name;
    const char *flag;
    const char *prefix, *suffix; /* what makes the number a value of the flag */
    uint64_t min, max;
    const char *help;
};

extern const struct options_variable options_variables[];
extern const size_t options_variable_count;

/* Defaults. On failure there is nothing to free. */
int options_init(struct options *options, struct error *err);
void options_done(struct options *options);

/* By name or alias; false: no such flag. */
bool options_find(struct span name, struct options_flag *ret_flag);

/* "Did you mean": the nearest of the names that exist to one that does not. */
struct suggestion {
    const char *name; /* NULL: nothing is near enough */
    size_t distance;
};

/* Keeps `candidate` if it is nearer to `wanted` than what `best` (zeroed at first) holds. */
void suggest_consider(struct suggestion *best, struct span wanted, const char *candidate);

/* The nearest flag in `groups` (bits 1 << group), or NULL. With `only_switches`, of those that have
 * a --no- form. */
const char *options_suggest(struct span name, unsigned groups, bool only_switches);

/* Checks and sets one value. Sources are to be applied in the order of their precedence: the last
 * call wins. `text` and `where` are not kept. */
int options_set(struct options *options, const struct options_flag *flag, const char *text,
                enum options_source source, const char *where, struct error *err);

/* Rejects combinations of flags that contradict each other or miss a part. */
int options_check(const struct options *options, struct error *err);

/* False: it has its default. */
bool options_is_given(const struct options *options, const char *name);

/* Applies those variables of `env` (like environ; may be NULL) whose flag is in `groups`. */
int options_read_environment(struct options *options, char *const *env, unsigned groups,
                             struct error *err);

/*
 * Reads --config.file, a flat YAML mapping of flag names, without dashes, to values; at most 1 MiB,
 * and may block as long as the file does. Messages begin with FILE:LINE:COLUMN. After a failure the
 * options before it are set.
 */
int options_load_file(const char *path, struct options *options, struct error *err);
/* The part that reads no file. */
int options_parse_file(struct span text, const char *file_name, struct options *options,
                       struct error *err);
