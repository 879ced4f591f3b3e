/* core/pack: what is packed is unpacked, and nothing else is. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/pack.h"

static struct unpack unpack_of(const struct buffer *packed)
{
    return (struct unpack){.rest = {packed->data, packed->len}};
}

static void numbers_take_seven_bits_a_byte(void **state)
{
    static const struct {
        uint64_t value;
        size_t len;
    } cases[] = {{0, 1},          {127, 1},        {128, 2},         {16383, 2},      {16384, 3},
                 {UINT32_MAX, 5}, {1ULL << 62, 9}, {1ULL << 63, 10}, {UINT64_MAX, 10}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer packed;
        struct unpack in;

        buffer_init(&packed, 100);
        pack_u64(&packed, cases[i].value);
        assert_int_equal(packed.len, cases[i].len);
        in = unpack_of(&packed);
        assert_true(unpack_u64(&in, UINT64_MAX) == cases[i].value);
        assert_int_equal(unpack_end(&in), 0);
        in = unpack_of(&packed);
        if (cases[i].value > 0) {
            assert_int_equal(unpack_u64(&in, cases[i].value - 1), 0);
            assert_int_equal(unpack_end(&in), -EPROTO);
        }
        for (size_t len = 0; len < packed.len; len++) {
            in = (struct unpack){.rest = {packed.data, len}};
            assert_int_equal(unpack_u64(&in, UINT64_MAX), 0);
            assert_true(in.is_broken);
        }
        buffer_done(&packed);
    }
}

static void numbers_of_more_than_64_bits_are_rejected(void **state)
{
    static const char *const texts[] = {
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", /* the 65th bit */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct unpack in = {.rest = {texts[i], strlen(texts[i])}};

        assert_int_equal(unpack_u64(&in, UINT64_MAX), 0);
        assert_true(in.is_broken);
    }
}

/* Every kind of field, there and back. */
struct fields {
    uint64_t number;
    unsigned __int128 large;
    double real;
    struct span bytes;
    char array[8];
    char *allocated, *absent;
};

static void code_fields(struct coder *coder, struct fields *fields)
{
    fields->number = code_u64(coder, fields->number, 1000);
    fields->large = code_u128(coder, fields->large);
    fields->real = code_double(coder, fields->real);
    fields->bytes = code_bytes(coder, fields->bytes);
    code_array_text(coder, fields->array, sizeof(fields->array));
    code_allocated_text(coder, &fields->allocated, 16);
    code_allocated_text(coder, &fields->absent, 16);
}

static void one_walk_packs_and_unpacks_a_struct(void **state)
{
    struct fields fields = {.number = 999,
                            .large = (unsigned __int128)7 << 100 | 5,
                            .real = -1.5e-300,
                            .bytes = {"a\0b", 3},
                            .array = "seven77",
                            .allocated = (char *)"text"};
    struct fields copy = {0};
    struct coder coder = {0};
    struct buffer packed;

    (void)state;
    buffer_init(&packed, 1000);
    code_fields(&(struct coder){.out = &packed}, &fields);
    coder.in = unpack_of(&packed);
    code_fields(&coder, &copy);
    assert_int_equal(unpack_end(&coder.in), 0);
    assert_int_equal(copy.number, 999);
    assert_true(copy.large == fields.large);
    assert_true(copy.real == fields.real);
    assert_int_equal(copy.bytes.len, 3);
    assert_memory_equal(copy.bytes.data, "a\0b", 3);
    assert_string_equal(copy.array, "seven77");
    assert_string_equal(copy.allocated, "text");
    assert_null(copy.absent);
    free(copy.allocated);
    buffer_done(&packed);
}

static void what_does_not_fit_is_rejected(void **state)
{
    struct buffer packed;
    struct coder coder;
    char small[4] = "";
    char *allocated = NULL;

    (void)state;
    buffer_init(&packed, 1000);
    pack_text(&packed, "long");
    coder = (struct coder){.in = unpack_of(&packed)};
    code_array_text(&coder, small, sizeof(small));
    assert_true(coder.in.is_broken);
    assert_string_equal(small, "");
    coder = (struct coder){.in = unpack_of(&packed)};
    code_allocated_text(&coder, &allocated, 4);
    assert_true(coder.in.is_broken);
    assert_null(allocated);
    buffer_done(&packed);

    buffer_init(&packed, 1000);
    code_double(&(struct coder){.out = &packed}, 1);
    coder = (struct coder){.in = unpack_of(&packed)};
    assert_true(code_double(&coder, 0) == 1);
    buffer_done(&packed);
    buffer_init(&packed, 1000);
    pack_u64(&packed, 0x7ff0000000000000); /* infinity */
    coder = (struct coder){.in = unpack_of(&packed)};
    assert_true(code_double(&coder, 0) == 0 && coder.in.is_broken);
    buffer_done(&packed);

    buffer_init(&packed, 1000);
    pack_u64(&packed, 3); /* three items in two bytes */
    pack_u64(&packed, 0);
    pack_u64(&packed, 0);
    coder = (struct coder){.in = unpack_of(&packed)};
    assert_int_equal(code_count(&coder, 0, 10), 0);
    assert_true(coder.in.is_broken);
    buffer_done(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_seven_bits_a_byte),
        cmocka_unit_test(numbers_of_more_than_64_bits_are_rejected),
        cmocka_unit_test(one_walk_packs_and_unpacks_a_struct),
        cmocka_unit_test(what_does_not_fit_is_rejected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
