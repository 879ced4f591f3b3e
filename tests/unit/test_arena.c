/* core/arena: zeroed and aligned memory, a cap that holds, and a reset that keeps one chunk. */
#include "unit.h"

#include <stdalign.h>
#include <string.h>

#include "core/arena.h"
#include "core/macros.h"

enum { CAP_BYTES = 1 << 20 };

static void memory_of_any_size_is_aligned_for_any_type(void **state)
{
    static const size_t sizes[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 100, 4095, 65537};
    struct arena arena;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        const void *p = arena_alloc(&arena, sizes[i]);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
    }
    arena_done(&arena);
}

static void memory_is_zeroed_even_where_it_was_used_before(void **state)
{
    static const char zeros[1000];
    struct arena arena;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    for (int round = 0; round < 3; round++) {
        char *p = arena_alloc(&arena, sizeof(zeros));

        assert_memory_equal(p, zeros, sizeof(zeros));
        memset(p, 0xff, sizeof(zeros));
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void allocations_do_not_overlap(void **state)
{
    unsigned char *blocks[500];
    struct arena arena;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
        blocks[i] = arena_alloc(&arena, i);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        for (size_t at = 0; at < i; at++)
            assert_int_equal(blocks[i][at], i & 0xff);
    arena_done(&arena);
}

static void the_cap_is_the_last_byte_that_can_be_had(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 1024);
    assert_null(arena_alloc(&arena, 1025));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_int_equal(arena.used_bytes, 0);
    assert_null(arena.chunks);
    assert_non_null(arena_alloc(&arena, 512));
    assert_non_null(arena_alloc(&arena, 512));
    assert_int_equal(arena.used_bytes, 1024);
    assert_null(arena_alloc(&arena, 1));
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 1024));
    arena_done(&arena);
}

static void an_array_whose_size_overflows_is_refused(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    /* Wraps to 16 bytes in 64 bits. */
    assert_null(arena_array(&arena, SIZE_MAX / 8 + 3, 8));
    assert_null(arena_array(&arena, CAP_BYTES, 2));
    assert_non_null(arena_array(&arena, 0, 8));
    assert_non_null(arena_array(&arena, 4, 8));
    arena_done(&arena);
}

static void a_copy_ends_with_a_nul_of_its_own(void **state)
{
    struct arena arena;
    char *copy;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    copy = arena_copy(&arena, "abcdef", 3);
    assert_string_equal(copy, "abc");
    assert_string_equal(arena_copy(&arena, NULL, 0), "");
    assert_string_equal(copy, "abc");
    assert_null(arena_copy(&arena, "x", SIZE_MAX));
    assert_null(arena_copy(&arena, "x", CAP_BYTES));
    arena_done(&arena);
}

static void a_reset_keeps_the_newest_chunk_so_that_a_steady_cycle_allocates_nothing(void **state)
{
    struct arena arena;
    const struct arena_chunk *kept;

    (void)state;
    arena_init(&arena, CAP_BYTES);
    /* Larger than what is left of each chunk before it. */
    for (size_t size = 1000; size <= 256000; size *= 4)
        assert_non_null(arena_alloc(&arena, size));
    kept = arena.chunks;
    arena_reset(&arena);
    assert_ptr_equal(arena.chunks, kept);
    assert_int_equal(arena.used_bytes, 0);
    for (int round = 0; round < 10; round++) {
        assert_non_null(arena_alloc(&arena, 200000));
        assert_ptr_equal(arena.chunks, kept);
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void a_zeroed_arena_can_be_done_with_and_a_done_one_used_again(void **state)
{
    struct arena zeroed = {0}, arena;

    (void)state;
    arena_reset(&zeroed);
    arena_done(&zeroed);
    assert_null(arena_alloc(&zeroed, 1));
    arena_init(&arena, CAP_BYTES);
    assert_non_null(arena_alloc(&arena, 100));
    arena_done(&arena);
    assert_null(arena.chunks);
    assert_int_equal(arena.used_bytes, 0);
    assert_non_null(arena_alloc(&arena, CAP_BYTES));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_any_size_is_aligned_for_any_type),
        cmocka_unit_test(memory_is_zeroed_even_where_it_was_used_before),
        cmocka_unit_test(allocations_do_not_overlap),
        cmocka_unit_test(the_cap_is_the_last_byte_that_can_be_had),
        cmocka_unit_test(an_array_whose_size_overflows_is_refused),
        cmocka_unit_test(a_copy_ends_with_a_nul_of_its_own),
        cmocka_unit_test(a_reset_keeps_the_newest_chunk_so_that_a_steady_cycle_allocates_nothing),
        cmocka_unit_test(a_zeroed_arena_can_be_done_with_and_a_done_one_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
