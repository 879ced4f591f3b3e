/* cli/cli: verbs, flags, precedence, and the generated help. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config/node_config.h"
#include "core/macros.h"
#include "sources/source.h"

enum { WORDS_MAX = 16 };

/* Splits a command line at blanks, so that a case is one string. Empty words are written ''. */
static int parse(const char *line, char *const *env, struct cli *ret, struct error *err)
{
    char text[512], *argv[WORDS_MAX + 1] = {0}, *rest = text, *word;
    int argc = 0;

    snprintf(text, sizeof(text), "%s", line);
    while (argc < WORDS_MAX && (word = strsep(&rest, " ")))
        argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
    return cli_parse(argc, argv, env, ret, err);
}

/* What would run: a verb's name, "help", "help VERB" or "version". */
static const char *action_of(const struct cli *cli, char text[64])
{
    if (cli->options.help)
        snprintf(text, 64, "help%s%s", cli->is_named ? " " : "",
                 cli->is_named ? cli->command->name : "");
    else
        snprintf(text, 64, "%s", cli->options.version ? "version" : cli->command->name);
    return text;
}

static void the_verb_is_serve_unless_another_is_named(void **state)
{
    static const struct {
        const char *line, *action;
    } cases[] = {
        {"wattribute", "serve"},
        {"wattribute serve", "serve"},
        {"wattribute --log-level=warn", "serve"},
        {"wattribute --", "serve"},
        {"wattribute replay a.trace.gz", "replay"},
        {"wattribute server", "server"},
        {"wattribute fetcher", "fetcher"},
        {"wattribute --help", "help"},
        {"wattribute -h", "help"},
        {"wattribute -help", "help"},
        {"wattribute --help=true", "help"},
        {"wattribute --help=false", "serve"},
        {"wattribute --help --help=false", "serve"},
        {"wattribute serve --log-level=warn --help", "help serve"},
        {"wattribute replay --help", "help replay"},
        {"wattribute replay a b c --help", "help replay"},
        {"wattribute --max-processes=wrong --config.file=/none --help", "help"},
        {"wattribute --version", "version"},
        {"wattribute replay --version", "version"},
        {"wattribute --version --help", "help"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {{0}};
        struct cli cli;
        char text[64];

        if (parse(cases[i].line, NULL, &cli, &err) != 0)
            fail_msg("%s: %s", cases[i].line, err.text);
        if (strcmp(action_of(&cli, text), cases[i].action) != 0)
            fail_msg("%s: %s", cases[i].line, text);
        cli_done(&cli);
    }
}

static void an_empty_argv_serves(void **state)
{
    char *argv[] = {NULL};
    struct cli cli;

    (void)state;
    assert_int_equal(cli_parse(0, argv, NULL, &cli, NULL), 0);
    assert_string_equal(cli.command->name, "serve");
    cli_done(&cli);
}

static void a_flag_is_written_with_one_dash_or_two_and_with_or_without_equals(void **state)
{
    static const char *const lines[] = {
        "wattribute --metrics-path=/m",
        "wattribute --metrics-path /m",
        "wattribute -metrics-path=/m",
        "wattribute -metrics-path /m",
        "wattribute serve --metrics-path /m --log-level info",
        "wattribute --metrics-path=/first --metrics-path=/m",
        "wattribute --metrics-path /m --",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct error err = {{0}};
        struct cli cli;

        if (parse(lines[i], NULL, &cli, &err) != 0)
            fail_msg("%s: %s", lines[i], err.text);
        assert_string_equal(cli.options.metrics_path, "/m");
        cli_done(&cli);
    }
}

static void a_value_may_hold_equals_and_begin_with_a_dash(void **state)
{
    struct cli cli;

    (void)state;
    assert_int_equal(parse("wattribute --replay=a=b --path.rootfs -x", NULL, &cli, NULL), 0);
    assert_string_equal(cli.options.replay_path, "a=b");
    assert_string_equal(cli.options.rootfs_path, "-x");
    cli_done(&cli);
}

static void both_names_of_the_sample_interval_are_one_flag(void **state)
{
    struct cli cli;

    (void)state;
    assert_int_equal(
        parse("wattribute --sample-interval=2s --dcgm-update-frequency 3s", NULL, &cli, NULL), 0);
    assert_true(cli.options.sample_interval_us == 3000000);
    cli_done(&cli);
}

static void switches_are_turned_off_by_false_or_by_no_and_the_last_counts(void **state)
{
    static const struct {
        const char *line;
        bool is_on;
    } cases[] = {
        {"wattribute", true},
        {"wattribute --collector.rapl", true},
        {"wattribute --collector.rapl=false", false},
        {"wattribute --no-collector.rapl", false},
        {"wattribute -no-collector.rapl", false},
        {"wattribute --no-collector.rapl --collector.rapl", true},
        {"wattribute --collector.rapl --no-collector.rapl", false},
        {"wattribute record -o x --no-collector.rapl", false},
        {"wattribute check --no-collector.rapl", false},
    };
    struct cli cli;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(parse(cases[i].line, NULL, &cli, NULL), 0);
        assert_int_equal(node_config_is_on(&cli.options, "rapl"), cases[i].is_on);
        assert_true(node_config_is_on(&cli.options, "hwmon"));
        cli_done(&cli);
    }
    assert_int_equal(parse("wattribute --no-process-events", NULL, &cli, NULL), 0);
    assert_false(cli.options.process_events);
    cli_done(&cli);
}

static void every_source_has_a_switch_and_those_that_are_off_are_listed(void **state)
{
    struct source_switches switches;
    struct cli cli;
    char text[64];

    (void)state;
    assert_int_equal(parse("wattribute", NULL, &cli, NULL), 0);
    node_config_switches(&cli.options, &switches);
    assert_int_equal(switches.off_count, 0);
    assert_null(node_config_list_off(&switches, text, sizeof(text)));
    memset(cli.options.source_is_on, 0, sizeof(cli.options.source_is_on));
    node_config_switches(&cli.options, &switches);
    for (size_t i = 0; source_table[i]; i++) {
        const char *name = source_table[i]->name;
        bool has_flags_of_its_own = strcmp(name, "replay") == 0 || strcmp(name, "model") == 0;
        char flag[64];

        snprintf(flag, sizeof(flag), "collector.%s", name);
        if (has_flags_of_its_own)
            assert_null(source_table[i]->flag);
        else
            assert_string_equal(source_table[i]->flag, flag);
        assert_int_equal(source_is_off(&switches, name), !has_flags_of_its_own);
    }
    cli_done(&cli);
    assert_int_equal(parse("wattribute --no-collector.ipmi --no-collector.rapl", NULL, &cli, NULL),
                     0);
    node_config_switches(&cli.options, &switches);
    assert_string_equal(node_config_list_off(&switches, text, sizeof(text)), "rapl, ipmi");
    assert_false(source_is_off(NULL, "rapl"));
    cli_done(&cli);
}

static void the_model_is_off_unless_watts_or_the_table_enable_it(void **state)
{
    static const struct {
        const char *line;
        bool is_on, by_table;
        uint64_t idle_uw, full_uw;
    } cases[] = {
        {"wattribute", false, true, 0, 0},
        {"wattribute --model.cpu=auto", true, true, 0, 0},
        {"wattribute --model.idle-watts=0 --model.full-watts=1", true, false, 0, 1000000},
        {"wattribute --model.cpu=auto --model.idle-watts=7.5 --model.full-watts=90", true, false,
         7500000, 90000000},
    };
    struct source_estimate model;
    struct cli cli;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(parse(cases[i].line, NULL, &cli, NULL), 0);
        node_config_model(&cli.options, &model);
        assert_int_equal(model.is_on, cases[i].is_on);
        assert_int_equal(model.by_table, cases[i].by_table);
        assert_true(model.idle_uw == cases[i].idle_uw && model.full_uw == cases[i].full_uw);
        cli_done(&cli);
    }
}

static void listen_addresses_replace_the_default(void **state)
{
    struct cli cli;

    (void)state;
    assert_int_equal(
        parse("wattribute --listen-address=:1 --listen-address unix:/s", NULL, &cli, NULL), 0);
    assert_int_equal(cli.options.listen_addresses.count, 2);
    assert_string_equal(cli.options.listen_addresses.items[0], ":1");
    assert_string_equal(cli.options.listen_addresses.items[1], "unix:/s");
    cli_done(&cli);
}

static void replay_takes_a_trace_and_the_flags_of_the_books(void **state)
{
    static const char *const lines[] = {
        "wattribute replay --idle-policy=none --sample-interval 2s a.trace.gz",
        "wattribute replay a.trace.gz --idle-policy=none --sample-interval 2s",
        "wattribute replay --idle-policy=none --sample-interval 2s -- a.trace.gz",
    };
    struct cli cli;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        assert_int_equal(parse(lines[i], NULL, &cli, NULL), 0);
        assert_string_equal(cli.command->name, "replay");
        assert_int_equal(cli.argument_count, 1);
        assert_string_equal(cli.arguments[0], "a.trace.gz");
        assert_int_equal(cli.options.idle_policy, IDLE_POLICY_NONE);
        assert_true(cli.options.sample_interval_us == 2000000);
        cli_done(&cli);
    }
    assert_int_equal(parse("wattribute replay -- -odd", NULL, &cli, NULL), 0);
    assert_string_equal(cli.arguments[0], "-odd");
    cli_done(&cli);
}

static void replay_takes_traces_in_order_with_flags_between_them(void **state)
{
    struct cli cli;

    (void)state;
    assert_int_equal(parse("wattribute replay b --idle-policy none a -- -c", NULL, &cli, NULL), 0);
    assert_int_equal(cli.argument_count, 3);
    assert_string_equal(cli.arguments[0], "b");
    assert_string_equal(cli.arguments[1], "a");
    assert_string_equal(cli.arguments[2], "-c");
    assert_int_equal(cli.options.idle_policy, IDLE_POLICY_NONE);
    cli_done(&cli);
}

/* Flags end where the command begins, whatever it is called and whatever its own flags are. */
static void run_takes_a_command_with_all_that_follows_it(void **state)
{
    static char *words[] = {"wattribute", "run",    "--json", "--repeat", "3",
                            "python3",    "--help", "--",     "-x",       NULL};
    static char *dashes[] = {"wattribute", "run", "--no-live", "--", "--json", NULL};
    static char *many[400] = {"wattribute", "run"};
    struct error err = {{0}};
    struct cli cli;

    (void)state;
    assert_int_equal(cli_parse(9, words, NULL, &cli, &err), 0);
    assert_ptr_equal(cli.rest, &words[5]);
    assert_int_equal(cli.options.repeat, 3);
    assert_true(cli.options.json);
    assert_false(cli.options.help);
    cli_done(&cli);
    assert_int_equal(cli_parse(5, dashes, NULL, &cli, &err), 0);
    assert_ptr_equal(cli.rest, &dashes[4]);
    assert_false(cli.options.live);
    assert_false(cli.options.json);
    cli_done(&cli);
    for (size_t i = 2; i < ARRAY_SIZE(many) - 1; i++)
        many[i] = "word";
    assert_int_equal(cli_parse(ARRAY_SIZE(many) - 1, many, NULL, &cli, &err), 0);
    assert_ptr_equal(cli.rest, &many[2]);
    cli_done(&cli);
    assert_true(parse("wattribute run", NULL, &cli, &err) < 0);
    assert_true(parse("wattribute run --", NULL, &cli, &err) < 0);
    /* No program has this name, as a shell finds, too. */
    assert_int_equal(parse("wattribute run ''", NULL, &cli, &err), 0);
    cli_done(&cli);
    assert_true(parse("wattribute run --repeat=101 true", NULL, &cli, &err) < 0);
}

static void replay_takes_at_most_64_traces(void **state)
{
    char *argv[2 + CLI_ARGUMENTS_MAX + 2] = {"wattribute", "replay"};
    struct error err = {""};
    struct cli cli;

    (void)state;
    for (int i = 0; i < 64; i++)
        argv[2 + i] = "a";
    assert_int_equal(cli_parse(66, argv, NULL, &cli, &err), 0);
    assert_int_equal(cli.argument_count, 64);
    cli_done(&cli);
    argv[66] = "last";
    assert_int_equal(cli_parse(67, argv, NULL, &cli, &err), -EINVAL);
    assert_non_null(strstr(err.text, "unexpected argument 'last': 'replay' takes at most 64"));
}

static void an_internal_verb_takes_neither_arguments_nor_the_environment(void **state)
{
    static char *const names[] = {"server", "fetcher"};
    char *const env[] = {"EXPORTER_PORT=wrong", NULL};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *argv[] = {"wattribute", names[i], "--unknown", "3", "--help", NULL};
        struct cli cli;

        assert_int_equal(cli_parse(5, argv, env, &cli, NULL), 0);
        assert_string_equal(cli.command->name, names[i]);
        assert_false(cli.options.help);
        cli_done(&cli);
    }
}

static void errors_name_what_is_wrong_and_what_to_do(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"wattribute srve", "unknown command 'srve' (did you mean 'serve'?)"},
        {"wattribute relpay x", "did you mean 'replay'?"},
        {"wattribute banana", "unknown command 'banana'; see 'wattribute --help'"},
        {"wattribute fetchr", "unknown command 'fetchr'; see"},
        {"wattribute ''", "unknown command ''"},
        {"wattribute --smaple-interval=1s",
         "unknown flag --smaple-interval (did you mean --sample-interval?); see 'wattribute serve "
         "--help'"},
        {"wattribute --web.listen-address=:1", "did you mean --listen-address?"},
        {"wattribute --banana", "unknown flag --banana; see 'wattribute serve --help'"},
        {"wattribute -x", "unknown flag --x; see"},
        {"wattribute --=x", "unknown flag --; see"},
        {"wattribute ---help", "did you mean --help?"},
        {"wattribute --collector.rpal=false", "did you mean --collector.rapl?"},
        {"wattribute --no-collector.rpal", "did you mean --no-collector.rapl?"},
        {"wattribute --no-collector.rapl=true",
         "--no-collector.rapl takes no value: leave it out, or write --collector.rapl=true"},
        {"wattribute --no-idle-policy",
         "--no-idle-policy: --idle-policy takes a value and cannot be negated; leave it out; see"},
        {"wattribute --no-idle-polcy", "unknown flag --no-idle-polcy; see"},
        {"wattribute --no-", "unknown flag --no-; see"},
        {"wattribute --collector.rapl=maybe", "--collector.rapl: 'maybe' is not known; use true"},
        {"wattribute replay --no-collector.rapl a", "--collector.rapl does not apply to 'replay'"},
        {"wattribute --model.idle-watts=1", "--model.full-watts is missing: set both"},
        {"wattribute --model.full-watts=1", "--model.idle-watts is missing: set both"},
        {"wattribute --model.idle-watts=2 --model.full-watts=1.5", "is above"},
        {"wattribute --model.full-watts=0.5 --model.idle-watts=0", "from 1 to 100000"},
        {"wattribute --model.cpu=on", "'on' is not known; use off or auto"},
        {"wattribute --idle-policy", "--idle-policy needs a value: write --idle-policy=POLICY"},
        {"wattribute -log-level", "--log-level needs a value"},
        {"wattribute record -o", "-o needs a value: write -o FILE"},
        {"wattribute record -o=", "-o: "},
        {"wattribute record -o x --model.cpu=auto", "--model.cpu does not apply to 'record'"},
        {"wattribute record -o x --model.idle-watts=1 --model.full-watts=2",
         "--model.idle-watts does not apply to 'record'"},
        {"wattribute --idle-policy=", "--idle-policy: '' is not known"},
        {"wattribute --dcgm-update-frequency=1", "--dcgm-update-frequency: '1' is not a duration"},
        {"wattribute --help=perhaps", "--help: 'perhaps' is not known; use true or false"},
        {"wattribute --log-level=info extra", "unexpected argument 'extra': 'serve' takes only"},
        {"wattribute serve replay", "unexpected argument 'replay'"},
        {"wattribute -- --help", "unexpected argument '--help'"},
        {"wattribute -", "unexpected argument '-'"},
        {"wattribute replay", "'replay' needs an argument: write wattribute replay TRACE"},
        {"wattribute replay ''", "'replay' needs an argument"},
        {"wattribute record -o x y", "unexpected argument 'y': 'record' takes only flags"},
        {"wattribute --program-key-file=x", "--program-key-file does not apply to 'serve'"},
        {"wattribute replay --metric-retention=1m a", "--metric-retention does not apply to 'rep"},
        {"wattribute replay --listen-address=:1 a", "--listen-address does not apply to 'replay'"},
        {"wattribute replay --replay=x a", "--replay does not apply to 'replay'"},
        {"wattribute --config.file=/nonexistent/w.yaml",
         "--config.file /nonexistent/w.yaml: cannot"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {{0}};
        struct cli cli;
        int r = parse(cases[i].line, NULL, &cli, &err);

        if (r >= 0 || !strstr(err.text, cases[i].says))
            fail_msg("%s: gave %d, '%s'", cases[i].line, r, err.text);
    }
}

static void a_bad_variable_stops_serve_but_does_not_concern_replay(void **state)
{
    char *const env[] = {"SCRAPE_INTERVAL=soon", NULL};
    struct error err = {{0}};
    struct cli cli;

    (void)state;
    assert_int_equal(parse("wattribute", env, &cli, &err), -EINVAL);
    assert_non_null(strstr(err.text, "SCRAPE_INTERVAL"));
    assert_int_equal(parse("wattribute replay a", env, &cli, &err), 0);
    cli_done(&cli);
}

static void a_flag_wins_over_the_file_and_the_file_over_the_environment(void **state)
{
    static const struct {
        const char *file, *flags;
        const char *listen;
        uint64_t scan_us;
    } cases[] = {
        {"", "", ":9500", 40000000},
        {"listen-address: ':9600'\nprocess-scan-interval: 20s\n", "", ":9600", 20000000},
        {"listen-address: ':9600'\nprocess-scan-interval: 20s\n",
         " --listen-address=:9700 --process-scan-interval=5s", ":9700", 5000000},
        {"", " --listen-address=:9700 --process-scan-interval=5s", ":9700", 5000000},
    };
    char *const env[] = {"EXPORTER_PORT=9500", "SCRAPE_INTERVAL=40", NULL};
    char path[FILE_PATH_BYTES], line[512];

    (void)state;
    file_make(path, "", 0600);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cli cli;

        file_write_at(AT_FDCWD, path, cases[i].file, strlen(cases[i].file));
        /* The flags stand before the file: their order must not matter. */
        snprintf(line, sizeof(line), "wattribute%s --config.file=%s", cases[i].flags, path);
        assert_int_equal(parse(line, env, &cli, NULL), 0);
        assert_int_equal(cli.options.listen_addresses.count, 1);
        assert_string_equal(cli.options.listen_addresses.items[0], cases[i].listen);
        assert_true(cli.options.process_scan_interval_us == cases[i].scan_us);
        cli_done(&cli);
    }
    unlink(path);
}

static void replay_accepts_the_file_that_serve_uses(void **state)
{
    static const char text[] = "listen-address: ':9600'\nidle-policy: none\n";
    char path[FILE_PATH_BYTES], line[512];
    struct cli cli;

    (void)state;
    file_make(path, text, 0600);
    snprintf(line, sizeof(line), "wattribute replay --config.file %s a.trace.gz", path);
    assert_int_equal(parse(line, NULL, &cli, NULL), 0);
    assert_int_equal(cli.options.idle_policy, IDLE_POLICY_NONE);
    cli_done(&cli);
    unlink(path);
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < CLI_COMMANDS; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

/* The help as a string; the caller frees it. */
static char *help_text(const struct cli_command *command)
{
    struct buffer out;

    buffer_init(&out, 1 << 16);
    cli_help(command, &out);
    buffer_char(&out, '\0');
    assert_false(buffer_failed(&out));
    return out.data;
}

static void help_fits_a_hundred_columns_and_ends_in_examples(void **state)
{
    const struct cli_command *const commands[] = {NULL, find_command("serve"),
                                                  find_command("replay")};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        _cleanup_free_ char *help = help_text(commands[i]);
        struct span rest = span_of(help);

        assert_non_null(strstr(strstr(help, "\nExamples:\n"), "  wattribute"));
        while (rest.len > 0) {
            struct span line = span_cut(&rest, '\n');

            assert_true(line.len <= 100);
            assert_true(line.len == 0 || line.data[line.len - 1] != ' ');
        }
    }
}

static void help_shows_every_flag_that_the_verb_takes_and_no_other(void **state)
{
    _cleanup_free_ char *all = help_text(NULL), *replay = help_text(find_command("replay"));
    struct options_flag flag;

    (void)state;
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        bool books = flag.group == OPTIONS_BOOKS || flag.group == OPTIONS_GENERAL;
        char name[64];

        snprintf(name, sizeof(name), "\n  --%s", flag.name);
        assert_non_null(strstr(all, name));
        assert_int_equal(strstr(replay, name) != NULL, books);
    }
    assert_non_null(strstr(all, "EXPORTER_PORT"));
    assert_null(strstr(replay, "Environment"));
    assert_null(strstr(replay, " serve"));
}

static void internal_verbs_are_not_in_the_help(void **state)
{
    _cleanup_free_ char *help = help_text(NULL);

    (void)state;
    assert_null(strstr(help, "wattribute server"));
    assert_null(strstr(help, "fetcher"));
}

static void the_version_is_one_line(void **state)
{
    struct buffer out;

    (void)state;
    buffer_init(&out, 1024);
    cli_version(&out);
    assert_false(buffer_failed(&out));
    assert_memory_equal(out.data, "wattribute " WATTRIBUTE_VERSION,
                        strlen("wattribute " WATTRIBUTE_VERSION));
    assert_ptr_equal(memchr(out.data, '\n', out.len), out.data + out.len - 1);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verb_is_serve_unless_another_is_named),
        cmocka_unit_test(an_empty_argv_serves),
        cmocka_unit_test(a_flag_is_written_with_one_dash_or_two_and_with_or_without_equals),
        cmocka_unit_test(a_value_may_hold_equals_and_begin_with_a_dash),
        cmocka_unit_test(both_names_of_the_sample_interval_are_one_flag),
        cmocka_unit_test(switches_are_turned_off_by_false_or_by_no_and_the_last_counts),
        cmocka_unit_test(every_source_has_a_switch_and_those_that_are_off_are_listed),
        cmocka_unit_test(the_model_is_off_unless_watts_or_the_table_enable_it),
        cmocka_unit_test(listen_addresses_replace_the_default),
        cmocka_unit_test(replay_takes_a_trace_and_the_flags_of_the_books),
        cmocka_unit_test(replay_takes_traces_in_order_with_flags_between_them),
        cmocka_unit_test(run_takes_a_command_with_all_that_follows_it),
        cmocka_unit_test(replay_takes_at_most_64_traces),
        cmocka_unit_test(an_internal_verb_takes_neither_arguments_nor_the_environment),
        cmocka_unit_test(errors_name_what_is_wrong_and_what_to_do),
        cmocka_unit_test(a_bad_variable_stops_serve_but_does_not_concern_replay),
        cmocka_unit_test(a_flag_wins_over_the_file_and_the_file_over_the_environment),
        cmocka_unit_test(replay_accepts_the_file_that_serve_uses),
        cmocka_unit_test(help_fits_a_hundred_columns_and_ends_in_examples),
        cmocka_unit_test(help_shows_every_flag_that_the_verb_takes_and_no_other),
        cmocka_unit_test(internal_verbs_are_not_in_the_help),
        cmocka_unit_test(the_version_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
