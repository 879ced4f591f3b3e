/* config/options: what --config.file may hold, and how the rest is rejected. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/options.h"
#include "core/fs.h"
#include "core/macros.h"

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

static void a_flat_mapping_sets_flags_by_their_names(void **state)
{
    struct options *options = *state;
    struct error err = {{0}};
    const char *text = "# the node's exporter\n"
                       "listen-address: [\":9400\", \"unix:/run/wattribute.sock\"]\n"
                       "idle-policy: equal\n"
                       "attribution: timeshare\n"
                       "attribution-delay: 0\n"
                       "dcgm-update-frequency: 500ms\n"
                       "metric-retention: 0\n"
                       "max-processes: 100\n"
                       "path.procfs: '/host/proc'\n"
                       "compat: my-gpu-exporter\n";

    assert_int_equal(options_parse_file(span_of(text), "w.yaml", options, &err), 0);
    assert_int_equal(options->listen_addresses.count, 2);
    assert_string_equal(options->listen_addresses.items[0], ":9400");
    assert_string_equal(options->listen_addresses.items[1], "unix:/run/wattribute.sock");
    assert_int_equal(options->idle_policy, IDLE_POLICY_EQUAL);
    assert_int_equal(options->attribution, ATTRIBUTION_TIMESHARE);
    assert_true(options->attribution_delay_us == 0);
    assert_true(options->sample_interval_us == 500000);
    assert_true(options->metric_retention_us == 0);
    assert_true(options->max_processes == 100);
    assert_string_equal(options->procfs_path, "/host/proc");
    assert_int_equal(options->compat, COMPAT_MY_GPU_EXPORTER);
}

static void a_repeatable_flag_takes_one_value_or_a_list(void **state)
{
    struct options *options = *state;

    assert_int_equal(options_parse_file(span_of("listen-address: ':1'\n"), "w", options, NULL), 0);
    assert_int_equal(options->listen_addresses.count, 1);
    assert_string_equal(options->listen_addresses.items[0], ":1");
    options_done(options);
    assert_int_equal(options_init(options, NULL), 0);
    assert_int_equal(
        options_parse_file(span_of("listen-address:\n  - ':1'\n  - ':2'\n"), "w", options, NULL),
        0);
    assert_int_equal(options->listen_addresses.count, 2);
    assert_int_equal(options_parse_file(span_of("compat: [my-gpu-exporter, my-gpu-exporter]\n"),
                                        "w", options, NULL),
                     0);
    assert_int_equal(options->compat, COMPAT_MY_GPU_EXPORTER);
    assert_int_equal(
        options_parse_file(span_of("emissions.embodied: [gpu=28.5, rest=3]\n"), "w", options, NULL),
        0);
    assert_int_equal(options->emissions_embodied.of[METER_GPU].ug_per_hour, 28500000);
    assert_int_equal(options->emissions_embodied.of[METER_NODE_OVERHEAD].ug_per_hour, 3000000);
}

static void an_empty_file_is_fine(void **state)
{
    static const char *const texts[] = {
        "",   "\n\n", "# only a comment\n", "---\n", "---\n...\n",
        "{}", "\"\"", "%YAML 1.1\n---\n",   "   ",   "\xef\xbb\xbf"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {{0}};

        if (options_parse_file(span_of(texts[i]), "w", *state, &err) != 0)
            fail_msg("'%s': %s", texts[i], err.text);
    }
    assert_int_equal(options_parse_file((struct span){NULL, 0}, "w", *state, NULL), 0);
}

static void errors_name_their_line_and_column(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"idel-policy: equal",
         "w.yaml:1:1: unknown key 'idel-policy' (did you mean 'idle-policy'?)"},
        {"banana: 1", "w.yaml:1:1: unknown key 'banana'; keys are the flags"},
        {"--idle-policy: equal", "w.yaml:1:1: unknown key '--idle-policy' (did you mean 'idle-"},
        {"<<: 1", "w.yaml:1:1: unknown key '<<'"},
        {"idle-policy: equal\nidle-policy: none", "w.yaml:2:1: idle-policy is given twice"},
        {"sample-interval: 1s\ndcgm-update-frequency: 1s",
         "w.yaml:2:1: sample-interval is given twice, here as 'dcgm-update-frequency'"},
        {"listen-address: ':1'\nlisten-address: ':2'", "w.yaml:2:1: listen-address is given twice"},
        {"idle-policy:\n  gpu: equal", "w.yaml:2:3: idle-policy is a mapping; write one value"},
        {"idle-policy: [equal]", "w.yaml:1:14: idle-policy is a list"},
        {"listen-address: []", "w.yaml:1:17: listen-address is an empty list"},
        {"listen-address: [':1', [':2']]", "w.yaml:1:24: listen-address is a list"},
        {"listen-address: [{a: b}]", "w.yaml:1:18: listen-address is a mapping"},
        {"listen-address: ['']", "w.yaml:1:18: listen-address: is empty"},
        {"listen-address: &a [':1']", "w.yaml:1:17: anchors (&a) are not supported"},
        {"listen-address: !x [':1']", "w.yaml:1:17: tags (!x) are not supported"},
        {"idle-policy: &a equal", "w.yaml:1:14: anchors (&a) are not supported"},
        {"idle-policy: *a", "w.yaml:1:14: aliases (*a) are not supported"},
        {"idle-policy: !!str equal", "w.yaml:1:14: tags (tag:yaml.org,2002:str) are not supported"},
        {"&a idle-policy: equal", "w.yaml:1:1: anchors (&a) are not supported"},
        {"--- !!map\nidle-policy: equal", "w.yaml:1:5: tags"},
        {"--- &a ''", "w.yaml:1:5: anchors (&a)"},
        {"idle-policy: equal\n---\nlog-level: warn", "w.yaml:2:1: a second document begins here"},
        {"? [a]\n: 1", "w.yaml:1:3: the key is a list"},
        {"? {a: b}\n: 1", "w.yaml:1:3: the key is a mapping"},
        {"*a : 1", "w.yaml:1:1: aliases (*a) are not supported"},
        {"config.file: x", "w.yaml:1:1: 'config.file' works on the command line only"},
        {"help: true", "w.yaml:1:1: 'help' works on the command line only"},
        {"version: true", "w.yaml:1:1: 'version' works on the command line only"},
        {"- idle-policy", "w.yaml:1:1: the file is not a mapping"},
        {"equal", "w.yaml:1:1: the file is not a mapping"},
        {"idle-policy: equal\nlog-level: loud",
         "w.yaml:2:12: log-level: 'loud' is not known; use debug, info, warn or error"},
        {"attribution: magic",
         "w.yaml:1:14: attribution: 'magic' is not known; use timeshare or intensity"},
        {"attribution-delay: 2m",
         "w.yaml:1:20: attribution-delay: '2m' is not a duration from 0s to 1m"},
        {"sample-interval: 2m", "w.yaml:1:18: sample-interval: '2m' is not a duration"},
        {"replay:", "replay: is empty"},
        {"replay: \"a\\0b\"", "w.yaml:1:9: replay holds a NUL character"},
        {"\"help\\0\": 1", "w.yaml:1:1: the key holds a NUL character"},
        {"listen-address: [", "w.yaml:2:1: not YAML: "},
        {"idle-policy: 'equal", "w.yaml:1:20: not YAML: "},
        {"log-level: info: x", "w.yaml:1:16: not YAML: mapping values are not allowed"},
        {"idle-policy:\n\tequal",
         "w.yaml:2:1: not YAML: found character that cannot start any token while scanning for the "
         "next token; a tab? indent with spaces"},
        {"log-level: info\nidle-policy: \xff", "w.yaml:2:14: not UTF-8 text: "},
        {"log-level: info\nidle-policy: \xc3", "w.yaml:2:14: not UTF-8 text: "},
        {"idle-policy: \x01", "w.yaml:1:14: not UTF-8 text: control characters are not allowed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct options options;
        struct error err = {{0}};
        int r;

        assert_int_equal(options_init(&options, NULL), 0);
        r = options_parse_file(span_of(cases[i].text), "w.yaml", &options, &err);
        if (r >= 0 || !strstr(err.text, cases[i].says))
            fail_msg("'%s' gave %d, '%s'", cases[i].text, r, err.text);
        options_done(&options);
    }
}

static void an_embedded_nul_is_refused_where_it_stands(void **state)
{
    static const char text[] = "log-level: info\nidle-policy: \0equal\n";
    struct error err = {{0}};

    assert_int_equal(options_parse_file((struct span){text, sizeof(text) - 1}, "w", *state, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "w:2:14: not UTF-8 text"));
}

static void the_file_need_not_end_in_a_nul(void **state)
{
    const struct options *options = *state;
    char *text = malloc(18);

    assert_non_null(text);
    memcpy(text, "idle-policy: equal", 18);
    assert_int_equal(options_parse_file((struct span){text, 18}, "w", *state, NULL), 0);
    assert_int_equal(options->idle_policy, IDLE_POLICY_EQUAL);
    free(text);
}

static void write_file(const char *path, size_t size_bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, "#", 1), 0);
    assert_int_equal(ftruncate(fd, (off_t)size_bytes), 0);
    close(fd);
}

static void a_file_that_cannot_be_read_is_named_with_the_reason(void **state)
{
    char dir[] = "/tmp/wattribute-config-XXXXXX", path[64];
    struct error err = {{0}};

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/w.yaml", dir);
    assert_int_equal(options_load_file(path, *state, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(options_load_file(dir, *state, &err), -EISDIR);
    write_file(path, (1 << 20) + 1);
    assert_int_equal(options_load_file(path, *state, &err), -EFBIG);
    assert_non_null(strstr(err.text, "larger than 1 MiB"));
    unlink(path);
    rmdir(dir);
}

static void the_example_of_the_manual_is_accepted(void **state)
{
    static const char opening[] = "```yaml\n";
    int fd = open(SOURCE_DIR "/docs/configuration.md", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *manual = NULL;
    struct error err = {{0}};
    const char *start, *end;
    size_t len;

    assert_true(fd >= 0);
    assert_int_equal(fs_read_fd(fd, 1 << 20, &manual, &len), 0);
    close(fd);
    start = strstr(manual, opening);
    assert_non_null(start);
    start += strlen(opening);
    end = strstr(start, "```");
    assert_non_null(end);
    if (options_parse_file((struct span){start, (size_t)(end - start)}, "manual", *state, &err) !=
        0)
        fail_msg("%s", err.text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_flat_mapping_sets_flags_by_their_names),
        TEST(a_repeatable_flag_takes_one_value_or_a_list),
        TEST(an_empty_file_is_fine),
        TEST(errors_name_their_line_and_column),
        TEST(an_embedded_nul_is_refused_where_it_stands),
        TEST(the_file_need_not_end_in_a_nul),
        TEST(a_file_that_cannot_be_read_is_named_with_the_reason),
        TEST(the_example_of_the_manual_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
