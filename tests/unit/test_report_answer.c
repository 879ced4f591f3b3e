/* report/answer: what servers answer, and what nobody should. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"
#include "report/answer.h"

#define MATRIX(result)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":" result "}}"

static void an_answer_has_its_series_labels_and_samples(void **state)
{
    static const char text[] = MATRIX(
        "[{\"metric\":{\"a\":\"x\\u00e9\\ud83d\\ude00\\n\",\"b\":\"\"},\"values\":[[1700000000,\"1\"],"
        "[1700000060.25,\"2.5e3\"],[1700000120,\"NaN\"],[1700000180,\"+Inf\"],[1700000240,\"-1\"]]},"
        "{\"metric\":{},\"values\":[],\"histograms\":[[1,{\"buckets\":[[0,\"1\"],null,true]}]]}]");
    struct answer *answer;
    struct error err;

    (void)state;
    assert_int_equal(answer_parse(span_of(text), &answer, &err), 0);
    assert_int_equal(answer->series_count, 2);
    assert_string_equal(answer_label(&answer->series[0], "a"), "x\xc3\xa9\xf0\x9f\x98\x80\n");
    assert_string_equal(answer_label(&answer->series[0], "b"), "");
    assert_string_equal(answer_label(&answer->series[0], "c"), "");
    assert_int_equal(answer->series[0].sample_count, 3); /* NaN and Inf are none */
    assert_true(answer->samples[1].t_s == 1700000060.25 && answer->samples[1].value == 2500);
    assert_true(answer->samples[2].value == -1);
    assert_int_equal(answer->series[1].sample_count, 0);
    answer_free(answer);
}

static void warnings_are_counted_and_the_first_is_kept(void **state)
{
    static const char text[] =
        "{\"warnings\":[\"no store\",\"x\"],\"status\":\"success\",\"data\":{\"result\":[],"
        "\"resultType\":\"matrix\",\"stats\":{\"a\":[1,2,{}]}},\"infos\":[\"i\"]} \n";
    struct answer *answer;
    struct error err;

    (void)state;
    assert_int_equal(answer_parse(span_of(text), &answer, &err), 0);
    assert_int_equal(answer->warning_count, 2);
    assert_string_equal(answer->warning, "no store");
    answer_free(answer);
}

static void what_is_no_answer_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "not the answer of a Prometheus"},
        {"<html>", "not the answer of a Prometheus"},
        {"{}", "not the answer of a Prometheus"},
        {"{\"status\":\"success\"}", "not the answer of a Prometheus"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
         "not the answer of a Prometheus"},
        {"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"exceeded maximum\"}",
         "exceeded maximum"},
        {MATRIX("[]") "x", "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{\"a\":1},\"values\":[]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{\"a\":\"\\u0000\"},\"values\":[]}]"),
         "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{\"a\":\"\\x\"},\"values\":[]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{\"a\":\"\n\"},\"values\":[]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{},\"values\":[[1,2]]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{},\"values\":[[1,\"2x\"]]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{},\"values\":[[1,\"\"]]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{},\"values\":[[\"1\",\"2\"]]}]"), "not the answer of a Prometheus"},
        {MATRIX("[{\"metric\":{},\"values\":[[1,\"2\"],]}]"), "not the answer of a Prometheus"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"a",
         "not the answer of a Prometheus"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer *answer;
        struct error err = {""};

        if (answer_parse(span_of(cases[i].text), &answer, &err) != -EBADMSG)
            fail_msg("taken: %s", cases[i].text);
        assert_string_equal(err.text, cases[i].reason);
    }
}

static void any_beginning_of_an_answer_is_refused(void **state)
{
    static const char text[] =
        MATRIX("[{\"metric\":{\"a\":\"\\u00e9\\ud83d\\ude00\"},\"values\":[[1,\"2\"]]}]");
    struct answer *answer;
    struct error err;

    (void)state;
    for (size_t len = 0; len < strlen(text); len++)
        assert_int_equal(answer_parse((struct span){text, len}, &answer, &err), -EBADMSG);
    assert_int_equal(answer_parse(span_of(text), &answer, &err), 0);
    answer_free(answer);
}

static void more_than_the_caps_is_refused_as_too_large(void **state)
{
    struct answer *answer;
    struct buffer text;
    struct error err;

    (void)state;
    buffer_init(&text, 1 << 20);
    buffer_str(
        &text,
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{");
    for (int i = 0; i <= ANSWER_LABELS_MAX; i++)
        buffer_str(&text, i > 0 ? ",\"a\":\"b\"" : "\"a\":\"b\"");
    buffer_str(&text, "},\"values\":[]}]}}");
    assert_int_equal(answer_parse((struct span){text.data, text.len}, &answer, &err), -EFBIG);
    buffer_done(&text);
    /* What nobody reads is not followed without an end, either. */
    buffer_init(&text, 1 << 20);
    buffer_str(&text, "{\"x\":");
    for (int i = 0; i < 100000; i++)
        buffer_char(&text, '[');
    assert_int_equal(answer_parse((struct span){text.data, text.len}, &answer, &err), -EBADMSG);
    buffer_done(&text);
}

static void samples_are_in_time_and_series_in_order(void **state)
{
    static const char text[] =
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
        "{\"metric\":{\"pod\":\"b\"},\"values\":[[160,\"1\"],[220,\"2\"],[86400,\"9\"]]},"
        "{\"metric\":{\"pod\":\"d\"},\"values\":[[160,\"1e308\"]]},"
        "{\"metric\":{\"pod\":\"c\"},\"values\":[[20,\"1\"]]},"
        "{\"metric\":{\"pod\":\"a\"},\"values\":[[100,\"5\"],[160,\"6\"],[100,\"7\"]]}]}}";
    struct answer *answer;
    struct error err;

    (void)state;
    assert_int_equal(answer_parse((struct span){text, sizeof(text) - 1}, &answer, &err), 0);
    answer_settle(answer, 100, 220);
    assert_int_equal(answer->series_count, 2);
    assert_string_equal(answer_label(&answer->series[0], "pod"), "a");
    assert_int_equal(answer->series[0].sample_count, 2);
    assert_string_equal(answer_label(&answer->series[1], "pod"), "b");
    assert_int_equal(answer->series[1].sample_count, 2);
    answer_free(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_has_its_series_labels_and_samples),
        cmocka_unit_test(warnings_are_counted_and_the_first_is_kept),
        cmocka_unit_test(what_is_no_answer_is_refused_with_a_reason),
        cmocka_unit_test(any_beginning_of_an_answer_is_refused),
        cmocka_unit_test(more_than_the_caps_is_refused_as_too_large),
        cmocka_unit_test(samples_are_in_time_and_series_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
