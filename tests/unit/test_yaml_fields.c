/* config/yaml_fields: what a table can describe, beyond what the config files use. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/yaml_fields.h"
#include "core/buffer.h"
#include "core/macros.h"

struct target {
    bool is_on;
    size_t calls;
    char texts[64]; /* what the setter saw, each with a semicolon */
};

static int set_text(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    struct target *target = yaml->target;
    size_t len = strlen(target->texts);

    (void)field;
    target->calls++;
    snprintf(target->texts + len, sizeof(target->texts) - len, "%s;", value->text);
    return 7;
}

static int fail_always(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    struct target *target = yaml->target;

    (void)field;
    target->calls++;
    return yaml_fields_fail(yaml, value, "never");
}

static int set_each(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    int r = yaml_fields_begin(yaml, field, value);

    return r > 0 ? yaml_fields_each(yaml, field, "the key", set_text) : r;
}

static const struct yaml_field inner_fields[] = {
    {.name = "needed", .set = set_text, .is_needed = true},
    {.name = "other", .set = set_text},
};

static const struct yaml_field fields[] = {
    {.name = "switch", .set = yaml_fields_set_switch, .offset = offsetof(struct target, is_on)},
    {.name = "text", .set = set_text},
    {.name = "never", .set = fail_always},
    {.name = "section",
     .set = yaml_fields_set_section,
     .takes_any = true,
     .details = inner_fields,
     .detail_count = ARRAY_SIZE(inner_fields)},
    {.name = "names", .set = set_each, .takes_any = true},
};

static int read_by(const struct yaml_field *table, size_t count, const char *text,
                   struct target *target, struct error *err)
{
    struct yaml_fields yaml = {.manual = "docs/it.md", .target = target};
    struct yaml_reader_node root;
    int r;

    assert_int_equal(yaml_reader_open(span_of(text), "f", err, &yaml.reader), 0);
    assert_int_equal(yaml_reader_root(yaml.reader, &root), 0);
    assert_int_equal(root.kind, YAML_READER_MAPPING);
    r = yaml_fields_read(&yaml, &root, table, count);
    yaml_reader_close(yaml.reader);
    return r;
}

static void keys_are_counted_and_any_positive_value_is_a_success(void **state)
{
    struct target target = {0};
    struct error err = {{0}};

    (void)state;
    assert_int_equal(read_by(fields, ARRAY_SIZE(fields), "{}", &target, &err), 0);
    assert_int_equal(read_by(fields, ARRAY_SIZE(fields),
                             "{text: a, section: {other: b, needed: c}, switch: true}", &target,
                             &err),
                     3);
    assert_string_equal(target.texts, "a;b;c;");
    assert_true(target.is_on);
}

static void nothing_leaves_a_switch_and_a_section_as_they_are(void **state)
{
    static const char *const nothings[] = {"", "~", "null", "Null", "NULL"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(nothings); i++) {
        struct target target = {.is_on = true};
        struct error err = {{0}};
        char text[64];

        snprintf(text, sizeof(text), "switch: %s\nsection: %s\nnames: %s\n", nothings[i],
                 nothings[i], nothings[i]);
        assert_int_equal(read_by(fields, ARRAY_SIZE(fields), text, &target, &err), 3);
        assert_true(target.is_on);
        assert_int_equal(target.calls, 0);
    }
}

static void what_stands_in_a_mapping_of_any_keys_is_handed_over_in_turn(void **state)
{
    struct target target = {0};
    struct error err = {{0}};

    (void)state;
    assert_int_equal(
        read_by(fields, ARRAY_SIZE(fields), "names: {a: b, c: d}\ntext: e\n", &target, &err), 2);
    assert_string_equal(target.texts, "a;b;c;d;e;");
}

static void an_error_is_reported_and_ends_the_reading(void **state)
{
    static const struct {
        const char *text, *says;
        size_t calls;
    } cases[] = {
        {"txt: a", "f:1:1: unknown key 'txt' (did you mean 'text'?); docs/it.md lists them", 0},
        {"unheard-of: a", "f:1:1: unknown key 'unheard-of'; docs/it.md lists them", 0},
        {"text: [a]", "f:1:7: text is a list; write one value", 0},
        {"text: {a: b}", "f:1:7: text is a mapping; write one value", 0},
        {"text: a\ntext: b", "f:2:1: text is given twice; keep one", 1},
        {"never: a\ntext: b", "f:1:8: never", 1},
        {"switch: 'null'", "f:1:9: switch: 'null' is neither true nor false", 0},
        {"section: 'null'",
         "f:1:10: section is not a mapping; write 'key: value' below it, indented", 0},
        {"section: {}\ntext: a", "f:1:10: needed is missing; add it", 0},
        {"section: {other: a}\ntext: b", "f:1:10: needed is missing; add it", 1},
        {"section: {needed: a, switch: true}",
         "f:1:22: unknown key 'switch'; docs/it.md lists them", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct target target = {0};
        struct error err = {{0}};

        assert_int_equal(read_by(fields, ARRAY_SIZE(fields), cases[i].text, &target, &err),
                         -EINVAL);
        assert_string_equal(err.text, cases[i].says);
        assert_int_equal(target.calls, cases[i].calls);
    }
}

static void a_table_of_the_most_keys_is_read_to_its_last(void **state)
{
    struct yaml_field table[YAML_FIELDS_MAX];
    char names[YAML_FIELDS_MAX][8];
    struct target target = {0};
    struct error err = {{0}};
    struct buffer text;

    (void)state;
    buffer_init(&text, 1 << 12);
    for (size_t i = 0; i < YAML_FIELDS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "key%zu", i);
        table[i] = (struct yaml_field){.name = names[i], .set = set_text, .is_needed = true};
        buffer_str(&text, names[i]);
        buffer_str(&text, ": a\n");
    }
    buffer_char(&text, '\0');
    assert_int_equal(read_by(table, YAML_FIELDS_MAX, text.data, &target, &err), YAML_FIELDS_MAX);
    assert_int_equal(target.calls, YAML_FIELDS_MAX);
    text.len--;
    buffer_str(&text, "key31: b\n");
    buffer_char(&text, '\0');
    assert_int_equal(read_by(table, YAML_FIELDS_MAX, text.data, &target, &err), -EINVAL);
    assert_string_equal(err.text, "f:33:1: key31 is given twice; keep one");
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_counted_and_any_positive_value_is_a_success),
        cmocka_unit_test(nothing_leaves_a_switch_and_a_section_as_they_are),
        cmocka_unit_test(what_stands_in_a_mapping_of_any_keys_is_handed_over_in_turn),
        cmocka_unit_test(an_error_is_reported_and_ends_the_reading),
        cmocka_unit_test(a_table_of_the_most_keys_is_read_to_its_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
