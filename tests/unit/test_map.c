/* core/map: every entry is found until it is removed, however the hashes collide. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/macros.h"
#include "core/map.h"

enum { KEYS = 300, OPERATIONS = 100000 };

/* A reference that cannot be wrong, and the keys that values of the map index. */
struct model {
    struct map map;
    bool present[KEYS];
    size_t count;
    uint64_t (*hash)(uint32_t key);
};

/* Values of this map are keys, so that equal hashes differ by the value itself. */
static bool is_key(const void *context, uint32_t value, const void *key)
{
    (void)context;
    return value == *(const uint32_t *)key;
}

static bool found(const struct model *model, uint32_t key)
{
    uint32_t value = UINT32_MAX;

    if (!map_find(&model->map, model->hash(key), is_key, NULL, &key, &value))
        return false;
    assert_int_equal(value, key);
    return true;
}

static void insert(struct model *model, uint32_t key)
{
    assert_int_equal(map_insert(&model->map, model->hash(key), key), 0);
    model->present[key] = true;
    model->count++;
}

static void take_out(struct model *model, uint32_t key)
{
    map_remove(&model->map, model->hash(key), key);
    if (model->present[key])
        model->count--;
    model->present[key] = false;
}

static void compare(const struct model *model)
{
    assert_int_equal(model->map.count, model->count);
    for (uint32_t key = 0; key < KEYS; key++)
        assert_int_equal(found(model, key), model->present[key]);
}

static uint64_t spread(uint32_t key)
{
    return map_hash_u64(key);
}

/* Seven homes for all, with equal and with different hashes. */
static uint64_t crowded(uint32_t key)
{
    return 1 + key % 7 + (uint64_t)(key % 3) * (1 << 20);
}

/* All at the end of the table, so that clusters run around it. */
static uint64_t around_the_end(uint32_t key)
{
    return UINT64_MAX - key % 5;
}

static uint64_t always_the_same(uint32_t key)
{
    (void)key;
    return 42;
}

/* xorshift64*: the same operations in every run. */
static uint32_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * 0x2545f4914f6cdd1dULL >> 32);
}

static void a_hundred_thousand_random_operations_agree_with_a_plain_array(void **state)
{
    uint64_t (*const hashes[])(uint32_t) = {spread, crowded, around_the_end, always_the_same};

    (void)state;
    for (size_t h = 0; h < ARRAY_SIZE(hashes); h++) {
        struct model model = {.hash = hashes[h]};
        uint64_t seed = 20260729 + h;

        for (size_t i = 0; i < OPERATIONS; i++) {
            uint32_t key = next_random(&seed) % KEYS;
            /* Waves: the table fills up, then drains to nearly nothing. */
            bool filling = i / 1000 % 2 == 0;
            bool add = next_random(&seed) % 4 < (filling ? 3 : 1);

            assert_int_equal(found(&model, key), model.present[key]);
            if (add && !model.present[key])
                insert(&model, key);
            else if (!add)
                take_out(&model, key);
            if (i % 500 == 0)
                compare(&model);
        }
        compare(&model);
        for (uint32_t key = 0; key < KEYS; key++)
            take_out(&model, key);
        assert_int_equal(model.map.count, 0);
        for (size_t i = 0; i < model.map.capacity; i++)
            assert_true(model.map.slots[i].hash == 0);
        map_done(&model.map);
    }
}

static void removing_the_front_of_a_cluster_does_not_lose_the_rest(void **state)
{
    /* Homes 3 3 4 3 5: after the first goes, each moves only as far as its home allows. */
    static const uint64_t hashes[] = {3, 3 + 256, 4, 3 + 512, 5};
    struct map map = {0};

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(hashes); i++)
        assert_int_equal(map_insert(&map, hashes[i], i), 0);
    map_remove(&map, hashes[0], 0);
    for (uint32_t i = 1; i < ARRAY_SIZE(hashes); i++) {
        uint32_t value = UINT32_MAX;

        assert_true(map_find(&map, hashes[i], is_key, NULL, &i, &value));
        assert_int_equal(value, i);
    }
    map_done(&map);
}

static void only_the_very_value_is_removed(void **state)
{
    struct map map = {0};
    uint32_t value, one = 1, two = 2;

    (void)state;
    map_remove(&map, 9, 1); /* an empty map has nothing to remove */
    assert_int_equal(map_insert(&map, 9, 1), 0);
    map_remove(&map, 9, 2);
    map_remove(&map, 8, 1);
    assert_int_equal(map.count, 1);
    assert_true(map_find(&map, 9, is_key, NULL, &one, &value));
    assert_false(map_find(&map, 9, is_key, NULL, &two, &value));
    map_remove(&map, 9, 1);
    assert_false(map_find(&map, 9, is_key, NULL, &one, &value));
    map_done(&map);
}

static void a_lookup_that_fails_leaves_its_result_alone(void **state)
{
    struct map map = {0};
    uint32_t value = 77, key = 1;

    (void)state;
    assert_false(map_find(&map, 5, is_key, NULL, &key, &value));
    assert_int_equal(map_insert(&map, 5, 2), 0);
    assert_false(map_find(&map, 5, is_key, NULL, &key, &value));
    assert_int_equal(value, 77);
    map_done(&map);
    assert_false(map_find(&map, 5, is_key, NULL, &key, &value));
}

static void no_key_hashes_to_the_mark_of_an_empty_slot(void **state)
{
    uint64_t key[2], number;

    (void)state;
    /* The one number that is taken to 0: the way back from it. */
    memcpy(key, (const void *)getauxval(AT_RANDOM), sizeof(key));
    number = key[1];
    number = (number ^ (number >> 31) ^ (number >> 62)) * 0x319642b2d24d8ec3ULL;
    number = (number ^ (number >> 27) ^ (number >> 54)) * 0x96de1b173f119089ULL;
    number = (number ^ (number >> 30) ^ (number >> 60)) - key[0];
    assert_true(map_hash_u64(number) == 1);
    assert_true(map_hash_u64(number + 1) > 1);
    assert_true(map_hash_bytes(span_of("")) != 0);
}

static void the_hash_of_bytes_depends_on_each_of_them_and_their_order(void **state)
{
    static const char *const texts[] = {"", "a", "b", "ab", "ba", "aa", "aaa", "A"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        for (size_t j = 0; j < ARRAY_SIZE(texts); j++)
            assert_int_equal(map_hash_bytes(span_of(texts[i])) == map_hash_bytes(span_of(texts[j])),
                             i == j);
    assert_true(map_hash_bytes((struct span){"abc", 2}) == map_hash_bytes(span_of("ab")));
}

/* Hashes of another process of this program, as it prints them. */
static void ask_another(char *text, size_t size)
{
    FILE *other = popen("exec /proc/$PPID/exe hash", "r");

    assert_non_null(other);
    assert_non_null(fgets(text, (int)size, other));
    assert_int_equal(pclose(other), 0);
}

static void another_process_has_other_hashes(void **state)
{
    char first[64], second[64];

    (void)state;
    ask_another(first, sizeof(first));
    ask_another(second, sizeof(second));
    assert_string_not_equal(first, second);
    /* Both of them: the number and the text. */
    assert_string_not_equal(strchr(first, ' '), strchr(second, ' '));
    *strchr(first, ' ') = *strchr(second, ' ') = '\0';
    assert_string_not_equal(first, second);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_has_other_hashes),
        cmocka_unit_test(a_hundred_thousand_random_operations_agree_with_a_plain_array),
        cmocka_unit_test(removing_the_front_of_a_cluster_does_not_lose_the_rest),
        cmocka_unit_test(only_the_very_value_is_removed),
        cmocka_unit_test(a_lookup_that_fails_leaves_its_result_alone),
        cmocka_unit_test(no_key_hashes_to_the_mark_of_an_empty_slot),
        cmocka_unit_test(the_hash_of_bytes_depends_on_each_of_them_and_their_order),
    };

    if (argc == 2 && strcmp(argv[1], "hash") == 0) {
        printf("%llx %llx\n", (unsigned long long)map_hash_u64(1),
               (unsigned long long)map_hash_bytes(span_of("a")));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
