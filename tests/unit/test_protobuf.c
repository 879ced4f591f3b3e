/* client/protobuf: the wire format, and malformed messages. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "wire.h"

#define BYTES(literal) ((struct span){(literal), sizeof(literal) - 1})

static void every_wire_type_is_read(void **state)
{
    struct protobuf message = protobuf_message(BYTES("\x08\x96\x01"
                                                     "\x11\x08\x07\x06\x05\x04\x03\x02\x01"
                                                     "\x1a\x03"
                                                     "abc"
                                                     "\x25\x04\x03\x02\x01"
                                                     "\x2a\x00"));
    struct protobuf_field field;

    (void)state;
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, 1);
    assert_false(field.is_bytes);
    assert_int_equal(field.value, 150);
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, 2);
    assert_int_equal(field.value, 0x0102030405060708);
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, 3);
    assert_true(field.is_bytes);
    assert_true(span_equals(field.bytes, "abc"));
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, 4);
    assert_false(field.is_bytes);
    assert_int_equal(field.value, 0x01020304);
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, 5);
    assert_true(field.is_bytes);
    assert_int_equal(field.bytes.len, 0);
    assert_false(protobuf_next(&message, &field));
    assert_false(message.broken);
}

static void a_varint_has_ten_bytes_and_64_bits(void **state)
{
    static const struct {
        struct span bytes;
        bool broken;
        uint64_t value;
    } cases[] = {
        {BYTES("\x08\x00"), false, 0},
        {BYTES("\x08\x7f"), false, 127},
        {BYTES("\x08\x80\x01"), false, 128},
        {BYTES("\x08\x80\x80\x00"), false, 0}, /* longer than needed is allowed */
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), false, INT64_MAX},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false, UINT64_MAX},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), true, 0},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), true, 0},
        {BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), true, 0},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00"), true, 0},
        {BYTES("\x08\x80"), true, 0},
        {BYTES("\x08"), true, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct protobuf message = protobuf_message(cases[i].bytes);
        struct protobuf_field field = {.number = 77};

        assert_int_equal(protobuf_next(&message, &field), !cases[i].broken);
        assert_int_equal(message.broken, cases[i].broken);
        if (cases[i].broken) {
            assert_int_equal(field.number, 77); /* untouched */
            continue;
        }
        assert_int_equal(field.value, cases[i].value);
        assert_int_equal(message.rest.len, 0);
    }
}

static void malformed_fields_are_broken(void **state)
{
    static const struct {
        struct span bytes;
        const char *what;
    } cases[] = {
        {BYTES("\x00\x00"), "field 0"},
        {BYTES("\x02\x00"), "field 0, length-delimited"},
        {BYTES("\x80\x00\x00"), "field 0 in two bytes"},
        {BYTES("\x0b\x0c"), "a group"},
        {BYTES("\x0c"), "the end of a group"},
        {BYTES("\x0e\x00"), "wire type 6"},
        {BYTES("\x0f\x00"), "wire type 7"},
        {BYTES("\x80\x80\x80\x80\x10\x00"), "a field number of more than 29 bits"},
        {BYTES("\x80"), "half a key"},
        {BYTES("\x0a"), "no length"},
        {BYTES("\x0a\x01"), "a length beyond the end"},
        {BYTES("\x0a\x05"
               "abcd"),
         "a length one beyond the end"},
        {BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
               "abcd"),
         "a length of 64 bits"},
        {BYTES("\x0a\xff\xff\xff\xff\x0f"
               "abcd"),
         "a length of 32 bits"},
        {BYTES("\x09\x01\x02\x03\x04\x05\x06\x07"), "seven bytes of 64 bits"},
        {BYTES("\x0d\x01\x02\x03"), "three bytes of 32 bits"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct protobuf message = protobuf_message(cases[i].bytes);
        struct protobuf_field field;

        if (protobuf_next(&message, &field) || !message.broken)
            fail_msg("%s", cases[i].what);
    }
}

static void the_largest_field_number_is_read(void **state)
{
    struct protobuf message = protobuf_message(BYTES("\xf8\xff\xff\xff\x0f\x01"));
    struct protobuf_field field;

    (void)state;
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.number, (1 << 29) - 1);
}

static void fields_before_malformed_data_count_and_later_ones_do_not(void **state)
{
    struct protobuf message = protobuf_message(BYTES("\x08\x01\x0b\x08\x02"));
    struct protobuf_field field;

    (void)state;
    assert_true(protobuf_next(&message, &field));
    assert_int_equal(field.value, 1);
    for (int i = 0; i < 3; i++) {
        assert_false(protobuf_next(&message, &field));
        assert_true(message.broken);
    }
}

static void an_empty_message_has_no_fields(void **state)
{
    struct protobuf message = protobuf_message((struct span){NULL, 0});
    struct protobuf_field field;

    (void)state;
    assert_false(protobuf_next(&message, &field));
    assert_false(message.broken);
}

static void the_last_text_of_a_number_is_found(void **state)
{
    static const struct {
        struct span bytes;
        const char *found; /* of field 1 */
    } cases[] = {
        {BYTES(""), ""},
        {BYTES("\x0a\x01"
               "a"),
         "a"},
        {BYTES("\x0a\x01"
               "a\x12\x01"
               "b"),
         "a"},
        {BYTES("\x0a\x01"
               "a\x0a\x02"
               "bc"),
         "bc"},
        {BYTES("\x0a\x01"
               "a\x0a\x00"),
         ""},
        {BYTES("\x0a\x01"
               "a\x08\x07"),
         "a"}, /* of another type: not this field */
        {BYTES("\x12\x01"
               "a"),
         ""},
        {BYTES("\x0a\x01"
               "a\x0b"),
         ""}, /* broken */
        {BYTES("\x0a\x01"
               "a\x0a\x02"
               "b"),
         ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (!span_equals(protobuf_find_bytes(cases[i].bytes, 1), cases[i].found))
            fail_msg("case %zu", i);
}

static void the_writer_matches_the_specification(void **state)
{
    struct buffer message = wire_new();

    (void)state;
    protobuf_put_varint(&message, 1, 150);
    wire_text(&message, 2, "testing");
    protobuf_put_varint(&message, 16, 0);
    assert_int_equal(message.len, 3 + 9 + 3);
    assert_memory_equal(message.data, "\x08\x96\x01\x12\x07testing\x80\x01\x00", message.len);
    buffer_done(&message);
}

static void written_fields_are_read_back(void **state)
{
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    static const uint32_t numbers[] = {1, 15, 16, 2047, 2048, (1 << 29) - 1};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(numbers); i++) {
        uint64_t value = values[i % ARRAY_SIZE(values)];
        uint32_t number = numbers[i / ARRAY_SIZE(values)];
        size_t text_len = (size_t)(value % 40000);
        _cleanup_free_ char *text = calloc(1, text_len + 1);
        struct buffer message = wire_new();
        struct protobuf_field field;
        struct protobuf reader;

        assert_non_null(text);
        protobuf_put_bytes(&message, number, (struct span){text, text_len});
        protobuf_put_varint(&message, number, value);
        reader = protobuf_message(wire_span(&message));
        assert_true(protobuf_next(&reader, &field));
        assert_true(field.is_bytes && field.number == number && field.bytes.len == text_len);
        assert_true(protobuf_next(&reader, &field));
        assert_true(!field.is_bytes && field.number == number && field.value == value);
        assert_false(protobuf_next(&reader, &field));
        assert_false(reader.broken);
        buffer_done(&message);
    }
}

/* Both of a repeated number: packed, as one run of varints, and one by one. */
static void a_packed_number_is_a_run_of_varints(void **state)
{
    struct protobuf message = protobuf_message(BYTES("\x22\x03\x01\x96\x01\x20\x05"));
    struct protobuf_field field;

    (void)state;
    assert_true(protobuf_next(&message, &field));
    assert_true(field.number == 4 && field.is_bytes && field.bytes.len == 3);
    assert_true(protobuf_next(&message, &field));
    assert_true(field.number == 4 && !field.is_bytes && field.value == 5);
}

static void a_message_that_breaks_off_is_read_up_to_there(void **state)
{
    struct buffer message = wire_new();
    struct span whole;

    (void)state;
    wire_unknown(&message);
    wire_text(&message, 1, "text");
    protobuf_put_varint(&message, 2, UINT64_MAX);
    whole = wire_span(&message);
    for (size_t len = 0; len < whole.len; len++) {
        _cleanup_free_ char *cut = wire_cut(whole, len);
        struct protobuf reader = protobuf_message((struct span){cut, len});
        struct protobuf_field field;
        size_t end = 0;

        while (protobuf_next(&reader, &field))
            end = len - reader.rest.len;
        assert_int_equal(reader.broken, end < len);
    }
    buffer_done(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wire_type_is_read),
        cmocka_unit_test(a_varint_has_ten_bytes_and_64_bits),
        cmocka_unit_test(malformed_fields_are_broken),
        cmocka_unit_test(the_largest_field_number_is_read),
        cmocka_unit_test(fields_before_malformed_data_count_and_later_ones_do_not),
        cmocka_unit_test(an_empty_message_has_no_fields),
        cmocka_unit_test(the_last_text_of_a_number_is_found),
        cmocka_unit_test(the_writer_matches_the_specification),
        cmocka_unit_test(written_fields_are_read_back),
        cmocka_unit_test(a_packed_number_is_a_run_of_varints),
        cmocka_unit_test(a_message_that_breaks_off_is_read_up_to_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
