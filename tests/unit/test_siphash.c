/* core/siphash: the values of its authors, and the same hash however the bytes come. */
#include "unit.h"

#include "core/macros.h"
#include "core/siphash.h"

/* 0, 1, 2, ... as in the paper. */
static const uint64_t KEY[] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static const char BYTES[] = "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17";

static uint64_t hash_of(size_t len)
{
    struct siphash hash = siphash_begin(KEY);

    siphash_add(&hash, (struct span){BYTES, len});
    return siphash_end(&hash);
}

/* vectors.h of the reference implementation; 15 bytes are also in the paper, appendix A. */
static void it_gives_the_values_of_its_authors(void **state)
{
    (void)state;
    assert_true(hash_of(0) == 0x726fdb47dd0e0e31);
    assert_true(hash_of(1) == 0x74f839c593dc67fd);
    assert_true(hash_of(8) == 0x93f5f5799a932462);
    assert_true(hash_of(15) == 0xa129ca6149be45e5);
}

static void pieces_have_the_hash_of_the_whole(void **state)
{
    (void)state;
    for (size_t first = 0; first <= 15; first++)
        for (size_t second = 0; first + second <= 15; second++) {
            struct siphash hash = siphash_begin(KEY);

            siphash_add(&hash, (struct span){BYTES, first});
            siphash_add(&hash, (struct span){BYTES + first, second});
            siphash_add(&hash, (struct span){BYTES + first + second, 15 - first - second});
            assert_true(siphash_end(&hash) == 0xa129ca6149be45e5);
        }
}

static void public_hashes_never_change(void **state)
{
    (void)state;
    assert_true(siphash_public(span_of("")) == 0x1e924b9d737700d7);
    assert_true(siphash_public(span_of("/a")) == 0x1b2c8ccc6f11c30d);
    assert_true(siphash_public_pair(1, 2) == 0xe1f97f802bd05035);
    assert_true(siphash_public_pair(1, 2) != siphash_public_pair(2, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_the_values_of_its_authors),
        cmocka_unit_test(pieces_have_the_hash_of_the_whole),
        cmocka_unit_test(public_hashes_never_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
