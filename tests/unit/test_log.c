/* core/log: one line an event on standard error, whatever the values hold. */
#include "log_capture.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/macros.h"

/* Cuts the time, which no test knows, after checking its form: 2026-07-29T01:02:03.456Z. */
static const char *behind_time(const char *line, const char *before, const char *after)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";

    assert_int_equal(strncmp(line, before, strlen(before)), 0);
    line += strlen(before);
    for (const char *f = form; *f; f++, line++)
        assert_true(*f == 'd' ? isdigit((unsigned char)*line) : *line == *f);
    assert_int_equal(strncmp(line, after, strlen(after)), 0);
    return line + strlen(after);
}

static void logfmt_quotes_only_what_needs_it(void **state)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"plain", "plain"},
        {"/proc/1/cgroup:9400[]{}~!", "/proc/1/cgroup:9400[]{}~!"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"no\"", "\"say \\\"no\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"line\nlevel=error", "\"line\\u000alevel=error\""},
        {"tab\t", "\"tab\\u0009\""},
        {"\x1b[2J", "\"\\u001b[2J\""},
        {"del\x7f", "\"del\\u007f\""},
        {"caf\xc3\xa9", "\"caf\xc3\xa9\""},
        {"bad\xff", "\"bad\xef\xbf\xbd\""},
    };

    (void)state;
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct capture capture = capture_begin();
        char text[1024], expected[256];

        log_warn("cannot read", "value", cases[i].value, "next", "1");
        capture_end(capture, text, sizeof(text));
        strcpy(expected, "level=warn msg=\"cannot read\" value=");
        strcat(expected, cases[i].written);
        strcat(expected, " next=1\n");
        assert_string_equal(behind_time(text, "ts=", " "), expected);
    }
}

static void json_lines_are_objects_of_strings(void **state)
{
    struct capture capture;
    char text[1024];

    (void)state;
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    capture = capture_begin();
    log_error("cannot open", "path", "/a \"b\"\n\xff", "why", "denied");
    capture_end(capture, text, sizeof(text));
    assert_string_equal(behind_time(text, "{\"ts\":\"", "\","),
                        "\"level\":\"error\",\"msg\":\"cannot open\","
                        "\"path\":\"/a \\\"b\\\"\\u000a\xef\xbf\xbd\",\"why\":\"denied\"}\n");
}

static void a_value_that_is_null_is_left_out(void **state)
{
    static const char *const none = NULL;
    struct capture capture;
    char text[1024];

    (void)state;
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    capture = capture_begin();
    log_info("started", "first", none, "second", "2");
    log_info("bare");
    capture_end(capture, text, sizeof(text));
    assert_non_null(strstr(text, "level=info msg=started second=2\n"));
    assert_non_null(strstr(text, "level=info msg=bare\n"));
    assert_null(strstr(text, "first"));
}

static void events_below_the_level_are_not_written(void **state)
{
    static const char *const marks[] = {"msg=d\n", "msg=i\n", "msg=w\n", "msg=e\n"};

    (void)state;
    for (int level = LOG_LEVEL_DEBUG; level <= LOG_LEVEL_ERROR; level++) {
        struct capture capture = capture_begin();
        char text[1024];

        log_configure((enum log_level)level, LOG_FORMAT_LOGFMT);
        log_debug("d");
        log_info("i");
        log_warn("w");
        log_error("e");
        capture_end(capture, text, sizeof(text));
        for (int event = LOG_LEVEL_DEBUG; event <= LOG_LEVEL_ERROR; event++)
            assert_int_equal(strstr(text, marks[event]) != NULL, event >= level);
    }
}

/* Whatever the bytes, in both formats: the line that follows is a line of its own. */
static void a_hostile_value_cannot_forge_a_line(void **state)
{
    char all[256], text[8192];

    (void)state;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    for (int format = LOG_FORMAT_LOGFMT; format <= LOG_FORMAT_JSON; format++) {
        struct capture capture = capture_begin();
        const char *first, *second;

        log_configure(LOG_LEVEL_INFO, (enum log_format)format);
        log_info("first", "value", all);
        log_info("second");
        capture_end(capture, text, sizeof(text));
        first = strchr(text, '\n');
        assert_non_null(first);
        second = strchr(first + 1, '\n');
        assert_non_null(second);
        assert_int_equal(second[1], '\0');
        assert_non_null(strstr(first, "second"));
        for (const char *p = text; p < first; p++)
            assert_true((unsigned char)*p >= 0x20);
    }
}

/* 16 KiB bound a line; what is longer is dropped whole, and the log goes on. */
static void a_line_of_any_length_does_not_break_the_next(void **state)
{
    _cleanup_free_ char *huge = malloc(1 << 20);
    struct capture capture;
    char text[1 << 16];

    (void)state;
    assert_non_null(huge);
    memset(huge, 'x', (1 << 20) - 1);
    huge[(1 << 20) - 1] = '\0';
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    capture = capture_begin();
    log_info("huge", "value", huge);
    log_info("next");
    capture_end(capture, text, sizeof(text));
    assert_string_equal(behind_time(text, "ts=", " "), "level=info msg=next\n");
}

static void a_log_that_cannot_be_written_does_not_stop_the_caller(void **state)
{
    int kept = dup(STDERR_FILENO);

    (void)state;
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    close(STDERR_FILENO);
    log_error("nobody reads this");
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
}

static void a_pipe_that_nobody_reads_does_not_block(void **state)
{
    int old_stderr = dup(STDERR_FILENO), fds[2];
    char text[8192];

    (void)state;
    assert_return_code(pipe2(fds, O_CLOEXEC), errno);
    assert_return_code(fcntl(fds[1], F_SETPIPE_SZ, 2 * PIPE_BUF), errno);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    dup2(fds[1], STDERR_FILENO);
    for (int i = 0; i < 100; i++)
        log_warn(i % 2 ? text : "short");
    dup2(old_stderr, STDERR_FILENO);
    close(old_stderr);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logfmt_quotes_only_what_needs_it),
        cmocka_unit_test(a_pipe_that_nobody_reads_does_not_block),
        cmocka_unit_test(json_lines_are_objects_of_strings),
        cmocka_unit_test(a_value_that_is_null_is_left_out),
        cmocka_unit_test(events_below_the_level_are_not_written),
        cmocka_unit_test(a_hostile_value_cannot_forge_a_line),
        cmocka_unit_test(a_line_of_any_length_does_not_break_the_next),
        cmocka_unit_test(a_log_that_cannot_be_written_does_not_stop_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
