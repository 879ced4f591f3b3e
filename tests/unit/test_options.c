/* config/options: the table, what each flag allows, the environment, and the manual. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/fs.h"
#include "core/macros.h"
#include "options_fixture.h"

enum { EVERY_GROUP = (1 << OPTIONS_GROUP_COUNT) - 1 };

static int setup(void **state)
{
    struct options *options = malloc(sizeof(*options));

    *state = options;
    return options ? options_init(options, NULL) : -1;
}

static int teardown(void **state)
{
    options_done(*state);
    free(*state);
    return 0;
}

static int set(struct options *options, const char *name, const char *value, struct error *err)
{
    return set_flag(options, name, value, OPTIONS_COMMAND_LINE, err);
}

static void the_defaults_are_those_of_the_manual(void **state)
{
    const struct options *options = *state;

    assert_true(options->sample_interval_us == 1000000);
    assert_true(options->process_scan_interval_us == 10000000);
    assert_true(options->metric_retention_us == 300000000);
    assert_string_equal(options->metric_prefix, "my_gpu_process");
    assert_int_equal(options->listen_addresses.count, 1);
    assert_string_equal(options->listen_addresses.items[0], ":9400");
    assert_string_equal(options->metrics_path, "/metrics");
    assert_int_equal(options->log_level, LOG_LEVEL_INFO);
    assert_int_equal(options->log_format, LOG_FORMAT_LOGFMT);
    assert_string_equal(options->procfs_path, "/proc");
    assert_string_equal(options->sysfs_path, "/sys");
    assert_string_equal(options->rootfs_path, "/");
    assert_int_equal(options->idle_policy, IDLE_POLICY_PROPORTIONAL);
    assert_int_equal(options->node_overhead_policy, NODE_OVERHEAD_POLICY_PROPORTIONAL);
    assert_int_equal(options->node_meter_includes_gpus, INCLUDES_GPUS_AUTO);
    assert_int_equal(options->attribution, ATTRIBUTION_INTENSITY);
    assert_true(options->attribution_delay_us == 60000000);
    assert_true(options->max_processes == 4096);
    assert_true(options->max_workloads == 16384);
    assert_null(options->replay_path);
    assert_null(options->config_path);
    assert_int_equal(options->compat, 0);
    assert_false(options->help || options->version);
}

static void each_flag_takes_what_it_allows_and_nothing_else(void **state)
{
    static const char long_prefix[] =
        "a123456789a123456789a123456789a123456789a123456789a123456789abcde"; /* 65 */
    static const struct {
        const char *flag, *value;
        int r;
        const char *says; /* a part of the error */
    } cases[] = {
        {"sample-interval", "100ms", 0, NULL},
        {"sample-interval", "60s", 0, NULL},
        {"sample-interval", "99ms", -EINVAL, "100ms to 1m"},
        {"sample-interval", "61s", -EINVAL, "100ms to 1m"},
        {"sample-interval", "99999999999999999999h", -EINVAL, "100ms to 1m"},
        {"sample-interval", "1", -EINVAL, "'1' is not a duration"},
        {"sample-interval", "", -EINVAL, "'' is not a duration"},
        {"dcgm-update-frequency", "2s", 0, NULL},
        {"process-scan-interval", "1s", 0, NULL},
        {"process-scan-interval", "1h", 0, NULL},
        {"process-scan-interval", "999ms", -EINVAL, "1s to 1h"},
        {"process-scan-interval", "1h1s", -EINVAL, "1s to 1h"},
        {"metric-retention", "0", 0, NULL},
        {"metric-retention", "8760h", 0, NULL},
        {"metric-retention", "8760h1ms", -EINVAL, "0s to 8760h"},
        {"metric-prefix", "gpu_process", 0, NULL},
        {"metric-prefix", "_a9", 0, NULL},
        {"metric-prefix", long_prefix, -EINVAL, "at most 64"},
        {"metric-prefix", "", -EINVAL, "is empty"},
        {"metric-prefix", "9a", -EINVAL, "no digit first"},
        {"metric-prefix", "a_", -EINVAL, "no '_' last"},
        {"metric-prefix", "_", -EINVAL, "no '_' last"},
        {"metric-prefix", "a-b", -EINVAL, "letters, digits and '_'"},
        {"metric-prefix", "a:b", -EINVAL, "letters, digits and '_'"},
        {"metric-prefix", "é", -EINVAL, "letters, digits and '_'"},
        {"metric-prefix", "wattribute_gpu", -EINVAL, "use another prefix"},
        {"metric-prefix", "wattribute", -EINVAL, "use another prefix"},
        {"metric-prefix", "gpu", -EINVAL, "use another prefix"},
        {"metric-prefix", "gpu_inference", -EINVAL, "use another prefix"},
        {"metric-prefix", "process", -EINVAL, "use another prefix"},
        {"metric-prefix", "wattributes", 0, NULL},
        {"listen-address", "", -EINVAL, "is empty"},
        {"listen-address", "unix:/run/wattribute.sock", 0, NULL},
        {"metrics-path", "/", 0, NULL},
        {"metrics-path", "/a/b-c", 0, NULL},
        {"metrics-path", "", -EINVAL, "is empty"},
        {"metrics-path", "metrics", -EINVAL, "begin with '/'"},
        {"metrics-path", "/a b", -EINVAL, "without blanks"},
        {"metrics-path", "/a?b", -EINVAL, "without blanks, '?'"},
        {"metrics-path", "/a#b", -EINVAL, "and '#'"},
        {"metrics-path", "/\x7f", -EINVAL, "printable ASCII"},
        {"metrics-path", "/é", -EINVAL, "printable ASCII"},
        {"metrics-path", "/-/healthy", -EINVAL, "health checks"},
        {"metrics-path", "/-/ready", -EINVAL, "health checks"},
        {"metrics-path", "/health", -EINVAL, "health checks"},
        {"metrics-path", "/healthy", 0, NULL},
        {"log-level", "debug", 0, NULL},
        {"log-level", "warn", 0, NULL},
        {"log-level", "error", 0, NULL},
        {"log-level", "warning", -EINVAL, "use debug, info, warn or error"},
        {"log-level", "INFO", -EINVAL, "use debug, info, warn or error"},
        {"log-format", "json", 0, NULL},
        {"log-format", "text", -EINVAL, "use logfmt or json"},
        {"path.procfs", "/host/proc", 0, NULL},
        {"path.procfs", "", -EINVAL, "is empty"},
        {"path.sysfs", "", -EINVAL, "is empty"},
        {"path.rootfs", "", -EINVAL, "is empty"},
        {"idle-policy", "equal", 0, NULL},
        {"idle-policy", "none", 0, NULL},
        {"idle-policy", "Equal", -EINVAL, "use proportional, equal, reserved or none"},
        {"rest-policy", "equal", 0, NULL},
        {"rest-policy", "none", 0, NULL},
        {"rest-policy", "reserved", -EINVAL, "use proportional, equal or none"},
        {"node-meter.includes-gpus", "yes", 0, NULL},
        {"node-meter.includes-gpus", "no", 0, NULL},
        {"node-meter.includes-gpus", "true", -EINVAL, "use auto, yes or no"},
        {"attribution", "timeshare", 0, NULL},
        {"attribution", "intensity", 0, NULL},
        {"attribution", "x", -EINVAL, "use timeshare or intensity"},
        {"attribution-delay", "0", 0, NULL},
        {"attribution-delay", "0s", 0, NULL},
        {"attribution-delay", "1m", 0, NULL},
        {"attribution-delay", "60s1ms", -EINVAL, "0s to 1m"},
        {"attribution-delay", "-1s", -EINVAL, "'-1s' is not a duration"},
        {"attribution-delay", "60", -EINVAL, "'60' is not a duration"},
        {"max-processes", "1", 0, NULL},
        {"max-processes", "1048576", 0, NULL},
        {"max-processes", "0", -EINVAL, "1 to 1048576"},
        {"max-processes", "1048577", -EINVAL, "1 to 1048576"},
        {"max-processes", "-1", -EINVAL, "1 to 1048576"},
        {"max-workloads", "0", -EINVAL, "1 to 1048576"},
        {"max-workloads", "16", 0, NULL},
        {"emissions.embodied", "gpu=28.5", 0, NULL},
        {"emissions.embodied", "rest=0", 0, NULL},
        {"emissions.embodied", "dram=100000", 0, NULL},
        {"emissions.embodied", "package=0.000001", 0, NULL},
        {"emissions.embodied", "gpu=100000.000001", -EINVAL, "from 0 to 100000"},
        {"emissions.embodied", "gpu=0.0000001", -EINVAL, "at most six decimals"},
        {"emissions.embodied", "node=1", -EINVAL, "use gpu, package, dram or rest"},
        {"emissions.embodied", "GPU=1", -EINVAL, "use gpu, package, dram or rest"},
        {"emissions.embodied", "=1", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "gpu", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "gpu=", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "gpu=-1", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "gpu=1=2", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "28.5", -EINVAL, "for example gpu=28.5"},
        {"emissions.embodied", "", -EINVAL, "for example gpu=28.5"},
        {"replay", "", -EINVAL, "is empty"},
        {"replay", "a.trace.gz", 0, NULL},
        {"compat", "my-gpu-exporter", 0, NULL},
        {"compat", "their-exporter", -EINVAL, "is not known; use my-gpu-exporter"},
        {"compat", "", -EINVAL, "use my-gpu-exporter"},
        {"compat", "dcgm-exporter", 0, NULL},
        {"compat", "kepler", 0, NULL},
        {"compat", "ceems", 0, NULL},
        {"compat", "dcgm", -EINVAL, "use my-gpu-exporter, dcgm-exporter, kepler or ceems"},
        {"gpu.idle-watts", "75", 0, NULL},
        {"gpu.idle-watts", "0", 0, NULL},
        {"gpu.idle-watts", "0=75.125", 0, NULL},
        {"gpu.idle-watts", "GPU-79185bc1-0000-4000-8000-000000000000=3000", 0, NULL},
        {"gpu.idle-watts", "3000.001", -EINVAL, "watts from 0 to 3000 with at most three"},
        {"gpu.idle-watts", "75.0001", -EINVAL, "watts from 0 to 3000 with at most three"},
        {"gpu.idle-watts", "=75", -EINVAL, "for example 75 or 0=75.5"},
        {"gpu.idle-watts", "0=", -EINVAL, "for example 75 or 0=75.5"},
        {"gpu.idle-watts", "-1", -EINVAL, "for example 75 or 0=75.5"},
        {"gpu.idle-watts", "", -EINVAL, "for example 75 or 0=75.5"},
        {"config.file", "", -EINVAL, "is empty"},
        {"help", "true", 0, NULL},
        {"help", "false", 0, NULL},
        {"help", "1", -EINVAL, "true or false"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {{0}};
        int r = set(*state, cases[i].flag, cases[i].value, &err);

        if (r != cases[i].r || (r < 0 && !strstr(err.text, cases[i].says)) ||
            (r < 0 && strncmp(err.text, cases[i].flag, strlen(cases[i].flag)) != 0))
            fail_msg("%s=%s gave %d, '%s'", cases[i].flag, cases[i].value, r, err.text);
    }
}

static void a_value_that_is_refused_changes_nothing(void **state)
{
    struct options *options = *state;

    assert_int_equal(set(options, "sample-interval", "1h", NULL), -EINVAL);
    assert_int_equal(set(options, "metrics-path", "/health", NULL), -EINVAL);
    assert_int_equal(set(options, "listen-address", "", NULL), -EINVAL);
    assert_int_equal(set(options, "attribution", "magic", NULL), -EINVAL);
    assert_int_equal(set(options, "attribution-delay", "61s", NULL), -EINVAL);
    the_defaults_are_those_of_the_manual(state);
}

static void an_error_keeps_its_advice_whatever_the_length_of_the_value(void **state)
{
    char value[5000];
    struct error err;

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    assert_int_equal(set(*state, "idle-policy", value, &err), -EINVAL);
    assert_non_null(strstr(err.text, "use proportional, equal, reserved or none"));
    assert_int_equal(set(*state, "path.procfs", value, &err), -EINVAL);
    assert_non_null(strstr(err.text, "at most 4095"));
}

static const struct gpu_idle_power *idle_of(const struct options *options, uint32_t index,
                                            const char *uuid)
{
    return gpu_idle_find(&options->gpu_idle_powers, index, uuid);
}

static void a_gpus_own_idle_power_counts_before_that_of_all(void **state)
{
    struct options *options = *state;

    assert_null(idle_of(options, 0, "GPU-a"));
    assert_null(gpu_idle_find(NULL, 0, "GPU-a"));
    assert_int_equal(set(options, "gpu.idle-watts", "70", NULL), 0);
    assert_int_equal(options->gpu_idle_powers.count, 1);
    assert_int_equal(idle_of(options, 0, "GPU-a")->mw, 70000);
    assert_int_equal(set(options, "gpu.idle-watts", "GPU-a=80.5", NULL), 0);
    assert_int_equal(options->gpu_idle_powers.count, 2);
    assert_int_equal(idle_of(options, 0, "GPU-a")->mw, 80500);
    assert_int_equal(idle_of(options, 1, "GPU-b")->mw, 70000);
    assert_int_equal(set(options, "gpu.idle-watts", "1=0", NULL), 0);
    assert_int_equal(idle_of(options, 1, "GPU-b")->mw, 0);
    assert_int_equal(idle_of(options, 11, "GPU-c")->mw, 70000);
    assert_int_equal(set(options, "gpu.idle-watts", "90", NULL), 0); /* the last one wins */
    assert_int_equal(options->gpu_idle_powers.count, 3);
    assert_int_equal(idle_of(options, 11, "GPU-c")->mw, 90000);
}

static void compat_may_repeat(void **state)
{
    struct options *options = *state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(set(options, "compat", "my-gpu-exporter", NULL), 0);
        assert_int_equal(options->compat, COMPAT_MY_GPU_EXPORTER);
    }
    /* One that is refused takes nothing away. */
    assert_int_equal(set(options, "compat", "my-gpu-exporter,", NULL), -EINVAL);
    assert_int_equal(options->compat, COMPAT_MY_GPU_EXPORTER);
    assert_int_equal(set(options, "compat", "kepler", NULL), 0);
    assert_int_equal(options->compat, COMPAT_MY_GPU_EXPORTER | COMPAT_KEPLER);
}

static void strings_are_copies(void **state)
{
    struct options *options = *state;
    char value[] = "/one";

    assert_int_equal(set(options, "metrics-path", value, NULL), 0);
    memcpy(value, "/two", strlen(value));
    assert_string_equal(options->metrics_path, "/one");
}

static void listen_addresses_of_a_higher_source_replace_those_of_a_lower(void **state)
{
    struct options *options = *state;
    const struct options_flag listen = flag_named("listen-address");

    assert_int_equal(options_set(options, &listen, ":1", OPTIONS_CONFIG, "c", NULL), 0);
    assert_int_equal(options_set(options, &listen, ":2", OPTIONS_CONFIG, "c", NULL), 0);
    assert_int_equal(options->listen_addresses.count, 2);
    assert_int_equal(options_set(options, &listen, ":3", OPTIONS_COMMAND_LINE, "f", NULL), 0);
    assert_int_equal(options->listen_addresses.count, 1);
    assert_string_equal(options->listen_addresses.items[0], ":3");
    assert_int_equal(options->sources[listen.index], OPTIONS_COMMAND_LINE);
}

static void one_listen_address_too_many_is_refused(void **state)
{
    struct options *options = *state;
    struct error err;

    for (size_t i = 0; i < OPTIONS_LIST_MAX; i++)
        assert_int_equal(set(options, "listen-address", ":1", &err), 0);
    assert_int_equal(set(options, "listen-address", ":1", &err), -E2BIG);
    assert_non_null(strstr(err.text, "at most 16"));
    assert_int_equal(options->listen_addresses.count, OPTIONS_LIST_MAX);
}

static void the_environment_moves_the_default_port_and_the_scan_interval(void **state)
{
    char *const env[] = {"HOME=/", "EXPORTER_PORT=9500", "SCRAPE_INTERVAL=30", NULL};
    struct options *options = *state;

    assert_int_equal(options_read_environment(options, env, EVERY_GROUP, NULL), 0);
    assert_int_equal(options->listen_addresses.count, 1);
    assert_string_equal(options->listen_addresses.items[0], ":9500");
    assert_true(options->process_scan_interval_us == 30000000);
}

static void an_empty_or_absent_variable_changes_nothing(void **state)
{
    char *const env[] = {"EXPORTER_PORT=",   "SCRAPE_INTERVAL=",
                         "EXPORTER_PORTS=1", "SCRAPE_INTERVAL_SECONDS=2",
                         "EXPORTER_PORT",    NULL};

    assert_int_equal(options_read_environment(*state, env, EVERY_GROUP, NULL), 0);
    assert_int_equal(options_read_environment(*state, NULL, EVERY_GROUP, NULL), 0);
    the_defaults_are_those_of_the_manual(state);
}

static void a_bad_variable_is_an_error_that_names_it(void **state)
{
    static const char *const wrong[] = {
        "EXPORTER_PORT=0",     "EXPORTER_PORT=65536",  "EXPORTER_PORT=http", "EXPORTER_PORT= 9400",
        "SCRAPE_INTERVAL=10s", "SCRAPE_INTERVAL=3601", "SCRAPE_INTERVAL=0",  "SCRAPE_INTERVAL=1.5",
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char text[64];
        char *const env[] = {text, NULL};
        struct error err = {{0}};

        snprintf(text, sizeof(text), "%s", wrong[i]);
        assert_int_equal(options_read_environment(*state, env, EVERY_GROUP, &err), -EINVAL);
        assert_non_null(strstr(err.text, i < 4 ? "EXPORTER_PORT" : "SCRAPE_INTERVAL"));
    }
}

static void variables_of_flags_that_a_verb_does_not_take_are_not_read(void **state)
{
    char *const env[] = {"EXPORTER_PORT=wrong", "SCRAPE_INTERVAL=wrong", NULL};

    assert_int_equal(options_read_environment(*state, env, 1 << OPTIONS_BOOKS, NULL), 0);
    the_defaults_are_those_of_the_manual(state);
}

static void the_nearest_name_is_suggested_and_a_far_one_is_not(void **state)
{
    static const struct {
        const char *wrong, *right;
    } cases[] = {
        {"sample-intervall", "sample-interval"},
        {"smaple-interval", "sample-interval"},
        {"dcgm-update-freq", "dcgm-update-frequency"},
        {"web.listen-address", "listen-address"},
        {"log.level", "log-level"},
        {"log.format", "log-format"},
        {"hlep", "help"},
        {"config-file", "config.file"},
        {"banana", NULL},
        {"x", NULL},
        {"", NULL},
        {"sample-interval-sample-interval-sample-interval-sample-interval-sample", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *near = options_suggest(span_of(cases[i].wrong), EVERY_GROUP, false);

        if (!cases[i].right)
            assert_null(near);
        else
            assert_string_equal(near ? near : "nothing", cases[i].right);
    }
    assert_null(options_suggest(span_of("hlep"), 1 << OPTIONS_BOOKS, false));
}

static void every_name_is_in_the_table_once(void **state)
{
    struct options_flag flag;

    (void)state;
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        assert_int_equal(flag_named(flag.name).index, i);
        assert_int_equal(flag_named(flag.alias ? flag.alias : flag.name).index, i);
    }
    for (size_t i = 0; i < options_variable_count; i++)
        (void)flag_named(options_variables[i].flag);
}

static char *read_manual(void)
{
    int fd = open(SOURCE_DIR "/docs/configuration.md", O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t len;

    assert_true(fd >= 0);
    assert_int_equal(fs_read_fd(fd, 1 << 20, &text, &len), 0);
    close(fd);
    return text;
}

static void the_manual_lists_every_flag_with_its_default_and_every_variable(void **state)
{
    _cleanup_free_ char *manual = read_manual();
    struct options_flag flag;
    char wanted[256];

    (void)state;
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        const char *const names[] = {flag.name, flag.alias};

        for (size_t j = 0; j < ARRAY_SIZE(names) && names[j]; j++) {
            snprintf(wanted, sizeof(wanted), "`%s%s`", names[j][1] ? "--" : "-", names[j]);
            if (!strstr(manual, wanted))
                fail_msg("docs/configuration.md lacks %s", wanted);
        }
        if (!flag.fallback)
            continue;
        snprintf(wanted, sizeof(wanted), "| `--%s` | `%s` |", flag.name, flag.fallback);
        if (!strstr(manual, wanted))
            fail_msg("docs/configuration.md lacks the row %s", wanted);
    }
    for (size_t i = 0; i < options_variable_count; i++) {
        snprintf(wanted, sizeof(wanted), "`%s`", options_variables[i].name);
        if (!strstr(manual, wanted))
            fail_msg("docs/configuration.md lacks %s", wanted);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_defaults_are_those_of_the_manual),
        TEST(each_flag_takes_what_it_allows_and_nothing_else),
        TEST(a_value_that_is_refused_changes_nothing),
        TEST(an_error_keeps_its_advice_whatever_the_length_of_the_value),
        TEST(strings_are_copies),
        TEST(a_gpus_own_idle_power_counts_before_that_of_all),
        TEST(compat_may_repeat),
        TEST(listen_addresses_of_a_higher_source_replace_those_of_a_lower),
        TEST(one_listen_address_too_many_is_refused),
        TEST(the_environment_moves_the_default_port_and_the_scan_interval),
        TEST(an_empty_or_absent_variable_changes_nothing),
        TEST(a_bad_variable_is_an_error_that_names_it),
        TEST(variables_of_flags_that_a_verb_does_not_take_are_not_read),
        TEST(the_nearest_name_is_suggested_and_a_far_one_is_not),
        TEST(every_name_is_in_the_table_once),
        TEST(the_manual_lists_every_flag_with_its_default_and_every_variable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
