/* core/table: what was added is found, and walked over once, until it is removed. */
#include "unit.h"

#include "core/macros.h"
#include "core/table.h"
#include "random.h"

enum { KEYS = 200, OPERATIONS = 20000 };

struct thing {
    struct table_entry entry;
    uint32_t key;
    char bytes[16];
};

static bool has_key(const void *entry, const void *key)
{
    return ((const struct thing *)entry)->key == *(const uint32_t *)key;
}

/* Few, so that they collide. */
static uint64_t hash_of(uint32_t key)
{
    return 1 + key % 7;
}

static struct thing *find(const struct table *table, uint32_t key)
{
    return table_find(table, hash_of(key), has_key, &key);
}

static void check(const struct table *table, const struct thing *const expected[KEYS])
{
    size_t count = 0;

    for (uint32_t key = 0; key < KEYS; key++) {
        assert_ptr_equal(find(table, key), expected[key]);
        count += expected[key] != NULL;
    }
    assert_int_equal(table->count, count);
    for (size_t i = 0; i < table->count; i++) {
        const struct thing *thing = table->items[i];

        assert_ptr_equal(thing, expected[thing->key]);
        assert_int_equal(thing->entry.index, i);
    }
}

static void entries_stay_where_they_are_until_they_are_removed(void **state)
{
    const struct thing *expected[KEYS] = {NULL};
    struct table table = {0};
    struct random_source source = {1};

    (void)state;
    for (int i = 0; i < OPERATIONS; i++) {
        uint32_t key = (uint32_t)(random_u64(&source) % KEYS);
        struct thing *thing = find(&table, key);

        if (thing) {
            table_remove(&table, thing);
            expected[key] = NULL;
        } else {
            thing = table_add(&table, hash_of(key), sizeof(*thing));
            assert_int_equal(thing->key, 0);
            thing->key = key;
            expected[key] = thing;
        }
        if (i % 500 == 0)
            check(&table, expected);
    }
    table_done(&table);
    assert_int_equal(table.count, 0);
}

static void a_walk_from_the_last_to_the_first_may_remove(void **state)
{
    const struct thing *expected[KEYS] = {NULL};
    struct table table = {0};

    (void)state;
    for (uint32_t key = 0; key < KEYS; key++) {
        struct thing *thing = table_add(&table, hash_of(key), sizeof(*thing));

        thing->key = key;
        expected[key] = thing;
    }
    for (size_t i = table.count; i-- > 0;) {
        struct thing *thing = table.items[i];

        if (thing->key % 3 == 0) {
            expected[thing->key] = NULL;
            table_remove(&table, thing);
        }
    }
    check(&table, expected);
    table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stay_where_they_are_until_they_are_removed),
        cmocka_unit_test(a_walk_from_the_last_to_the_first_may_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
