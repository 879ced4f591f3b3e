#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "cgroup_rows.h"
#include "core/macros.h"
#include "model/scopes.h"

static void the_scope_of_an_id_tells_who_named_it(void **state)
{
    static const struct {
        const char *id;
        enum workload_kind kind;
        const char *owner;
    } cases[] = {
        {"1000/" C1, WORKLOAD_USER, "1000"},
        {"4294967294/" C1, WORKLOAD_USER, "4294967294"},
        {"0/" C1, WORKLOAD_SYSTEM, "system"}, /* anybody could write there */
        {C1 "/" C2, WORKLOAD_CONTAINER, C1},
        {T1 "-3054012820/" C2, WORKLOAD_CONTAINER, T1 "-3054012820"},
        {"lxc:web/" C1, WORKLOAD_LXC, "web"},
        {"lxc:1000/" C1, WORKLOAD_LXC, "1000"},
        {"nspawn:web/web", WORKLOAD_NSPAWN, "web"},
        {"nspawn:lxc:web/web", WORKLOAD_NSPAWN, "lxc:web"},
        {"slurm:7/" C1, WORKLOAD_SLURM, "7"},
        {"lsf:7[3]/" C1, WORKLOAD_LSF, "7[3]"},
        {"pbs:7.server/" C1, WORKLOAD_PBS, "7.server"},
        {.id = C1},
        {.id = "nginx.service"},
        {.id = ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct workload_owner owner;

        assert_int_equal(scope_find_owner(cases[i].id, &owner), cases[i].owner != NULL);
        if (!cases[i].owner)
            continue;
        assert_int_equal(owner.kind, cases[i].kind);
        assert_string_equal(owner.id, cases[i].owner);
        /* So that the row has its names, should this be the first that is booked to it. */
        assert_string_equal(owner.container_id,
                            owner.kind == WORKLOAD_CONTAINER ? cases[i].owner : "");
    }
}

static void fill(struct scopes *scopes, const char *scope, size_t count)
{
    char id[64];

    for (size_t i = 0; i < count; i++) {
        snprintf(id, sizeof(id), "%s/%zu", scope, i);
        assert_true(scopes_have_room(scopes, id));
        assert_int_equal(scopes_add(scopes, id), 0);
    }
}

static void one_scope_has_a_sixteenth_and_all_have_half(void **state)
{
    struct scopes scopes = {.workloads_max = 160};

    (void)state;
    fill(&scopes, "1000", 10);
    assert_false(scopes_have_room(&scopes, "1000/x"));
    assert_true(scopes_have_room(&scopes, "100/x")); /* not a part of it */
    for (int uid = 1; uid < 8; uid++)
        fill(&scopes, (char[]){(char)('0' + uid), '\0'}, 10);
    assert_false(scopes_have_room(&scopes, "9/x"));
    assert_true(scopes_have_room(&scopes, "nginx.service")); /* the other half is root's */
    assert_int_equal(scopes_add(&scopes, "nginx.service"), 0);
    assert_int_equal(scopes.count, 80);

    scopes_remove(&scopes, "nginx.service");
    scopes_remove(&scopes, "1000/3");
    assert_int_equal(scopes.count, 79);
    assert_true(scopes_have_room(&scopes, "1000/x"));
    assert_true(scopes_have_room(&scopes, "9/x"));
    for (int i = 0; i < 9; i++)
        scopes_remove(&scopes, "1000/x");
    assert_null(scopes_find(&scopes, "1000/x"));
    scopes_done(&scopes);
}

static void the_smallest_maximum_has_room_for_one(void **state)
{
    struct scopes scopes = {.workloads_max = 1};

    (void)state;
    fill(&scopes, "1000", 1);
    assert_false(scopes_have_room(&scopes, "1000/x"));
    assert_false(scopes_have_room(&scopes, "9/x"));
    scopes_done(&scopes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scope_of_an_id_tells_who_named_it),
        cmocka_unit_test(one_scope_has_a_sixteenth_and_all_have_half),
        cmocka_unit_test(the_smallest_maximum_has_room_for_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
