/* The ledger's room for workloads, and that tenants cannot take it from others. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "attribution/ledger/ledger.h"
#include "cgroup_rows.h"
#include "core/macros.h"

#define T0     ((uint64_t)1785000000000000)
#define MINUTE (60 * USEC_PER_SEC)

/* A user's part is 10 workloads. */
enum { WORKLOADS_MAX = 160, SCOPE_MAX = 10, MANY = 20000 };

static struct ledger *open_ledger(size_t max_workloads)
{
    const struct ledger_options options = {.max_processes = 64, .max_workloads = max_workloads};
    struct ledger *ledger = NULL;
    uint32_t meter;

    assert_int_equal(ledger_new(&options, &ledger), 0);
    assert_int_equal(ledger_add_meter(ledger, METER_PACKAGE, "0", 0, &meter), 0);
    ledger_advance(ledger, T0);
    return ledger;
}

static uint32_t open_id(struct ledger *ledger, enum workload_kind kind, const char *id)
{
    struct workload_owner owner = {.kind = kind};
    uint32_t workload;

    snprintf(owner.id, sizeof(owner.id), "%s", id);
    assert_int_equal(ledger_open_workload(ledger, &owner, &workload), 0);
    return workload;
}

static uint32_t open_container(struct ledger *ledger, const char *scope, unsigned number)
{
    char id[256];

    snprintf(id, sizeof(id), "%s%s%064x", scope, scope[0] ? "/" : "", number);
    return open_id(ledger, WORKLOAD_CONTAINER, id);
}

static void assert_is(const struct ledger *ledger, uint32_t workload, enum workload_kind kind,
                      const char *id)
{
    assert_int_equal(ledger_workload(ledger, workload)->kind, kind);
    assert_string_equal(ledger_workload(ledger, workload)->id, id);
}

static void one_user_with_fake_containers_does_not_take_the_room_of_others(void **state)
{
    struct ledger *ledger = open_ledger(WORKLOADS_MAX);

    (void)state;
    for (unsigned i = 0; i < 10 * WORKLOADS_MAX; i++) {
        uint32_t workload = open_container(ledger, "1000", i);

        ledger_join_workload(ledger, workload);
        if (i >= SCOPE_MAX)
            assert_is(ledger, workload, WORKLOAD_USER, "1000");
        else
            assert_int_equal(ledger_workload(ledger, workload)->kind, WORKLOAD_CONTAINER);
    }
    assert_int_equal(ledger_counts(ledger)->workloads, SCOPE_MAX + 1);
    /* Nobody else is cut, up to the last place. */
    for (unsigned i = 0; i < WORKLOADS_MAX - SCOPE_MAX - 1; i++) {
        uint32_t workload = open_container(ledger, "", i);

        ledger_join_workload(ledger, workload);
        assert_int_equal(ledger_workload(ledger, workload)->kind, WORKLOAD_CONTAINER);
    }
    assert_is(ledger, open_container(ledger, "", WORKLOADS_MAX), WORKLOAD_OTHER, "other");
    ledger_free(ledger);
}

static void what_tenants_had_named_before_a_restart_counts(void **state)
{
    struct ledger *before = open_ledger(WORKLOADS_MAX), *after = NULL;
    const struct ledger_options options = {.max_processes = 64, .max_workloads = WORKLOADS_MAX};
    struct coder coder = {0};
    struct buffer packed;

    (void)state;
    for (unsigned i = 0; i < SCOPE_MAX; i++)
        ledger_join_workload(before, open_container(before, "1000", i));
    buffer_init(&packed, 1 << 20);
    ledger_code_state(before, &(struct coder){.out = &packed});
    ledger_free(before);
    assert_int_equal(ledger_new(&options, &after), 0);
    coder.in.rest = (struct span){packed.data, packed.len};
    ledger_code_state(after, &coder);
    assert_int_equal(unpack_end(&coder.in), 0);
    for (unsigned i = 0; i < SCOPE_MAX; i++)
        ledger_join_workload(after, open_container(after, "1000", i));
    assert_int_equal(ledger_counts(after)->workloads, SCOPE_MAX);
    assert_is(after, open_container(after, "1000", SCOPE_MAX), WORKLOAD_USER, "1000");
    buffer_done(&packed);
    ledger_free(after);
}

static void any_number_of_tenants_leave_half_of_the_room_to_root(void **state)
{
    struct ledger *ledger = open_ledger(WORKLOADS_MAX);
    size_t containers = 0;

    (void)state;
    for (unsigned tenant = 0; tenant < 8 + 1; tenant++)
        for (unsigned i = 0; i < 2 * SCOPE_MAX; i++) {
            char scope[80];
            uint32_t workload;

            snprintf(scope, sizeof(scope), "lxc:%u", tenant);
            workload = open_container(ledger, scope, i);
            ledger_join_workload(ledger, workload);
            containers += ledger_workload(ledger, workload)->kind == WORKLOAD_CONTAINER;
            assert_true(ledger_workload(ledger, workload)->kind != WORKLOAD_OTHER);
        }
    assert_int_equal(containers, WORKLOADS_MAX / 2);
    ledger_free(ledger);
}

static void what_a_scope_has_too_much_of_is_booked_to_who_named_it(void **state)
{
    static const struct {
        const char *scope;
        enum workload_kind kind;
        const char *id;
        bool is_there; /* it has a row before */
    } cases[] = {
        {"1000", WORKLOAD_USER, "1000", false}, {"lxc:web", WORKLOAD_LXC, "web", false},
        {"slurm:7", WORKLOAD_SLURM, "7", true}, {C1, WORKLOAD_CONTAINER, C1, false},
        {C2, WORKLOAD_POD, C2, true}, /* a container of a pod, with pods of its own */
        {C3, WORKLOAD_CONTAINER, C3, true},
    };
    struct ledger *ledger = open_ledger(WORKLOADS_MAX);

    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
        const struct ledger_account *account;
        uint32_t workload = LEDGER_NONE;

        if (cases[c].is_there)
            ledger_join_workload(ledger, open_id(ledger, cases[c].kind, cases[c].id));
        for (unsigned i = 0; i <= SCOPE_MAX; i++) {
            workload = open_container(ledger, cases[c].scope, i);
            ledger_join_workload(ledger, workload);
        }
        assert_is(ledger, workload, cases[c].kind, cases[c].id);
        assert_int_equal(ledger_counts(ledger)->workloads_dropped, c + 1);
        assert_int_equal(ledger_book(ledger, 0, 7, T0, T0 + 1,
                                     &(struct booking){.process = LEDGER_NONE,
                                                       .to_workload = true,
                                                       .workload = workload,
                                                       .energy_uj = 7},
                                     1),
                         0);
        account = ledger_next_account(ledger, ledger_workload(ledger, workload), NULL);
        assert_int_equal(account_total_uj(&account->account), 7);
    }
    ledger_free(ledger);
}

/* Their energy is kept: ended ones are only retired with some. */
static void end(struct ledger *ledger, uint32_t workload)
{
    const struct booking booking = {
        .process = LEDGER_NONE, .to_workload = true, .workload = workload, .energy_uj = 1};

    assert_int_equal(ledger_book(ledger, 0, 1, T0, T0 + 1, &booking, 1), 0);
    ledger_leave_workload(ledger, workload);
}

static void the_ended_of_a_scope_make_room_in_it_once_a_minute_and_those_of_others_stay(
    void **state)
{
    struct ledger *ledger = open_ledger(WORKLOADS_MAX);
    uint32_t job = open_id(ledger, WORKLOAD_SLURM, "7"), workloads[SCOPE_MAX];

    (void)state;
    ledger_join_workload(ledger, job);
    end(ledger, job);
    for (unsigned i = 0; i < SCOPE_MAX; i++) {
        workloads[i] = open_container(ledger, "1000", i);
        ledger_join_workload(ledger, workloads[i]);
    }
    end(ledger, workloads[3]);
    workloads[3] = open_container(ledger, "1000", 100);
    ledger_join_workload(ledger, workloads[3]);
    assert_int_equal(ledger_workload(ledger, workloads[3])->kind, WORKLOAD_CONTAINER);

    end(ledger, workloads[4]);
    assert_is(ledger, open_container(ledger, "1000", 101), WORKLOAD_USER, "1000");
    ledger_advance(ledger, T0 + MINUTE);
    workloads[4] = open_container(ledger, "1000", 101);
    assert_int_equal(ledger_workload(ledger, workloads[4])->kind, WORKLOAD_CONTAINER);
    assert_int_equal(open_id(ledger, WORKLOAD_SLURM, "7"), job);
    assert_int_equal(account_total_uj(&ledger_meter(ledger, 0)->retired), 2);

    /* All of a scope. */
    ledger_advance(ledger, T0 + 2 * MINUTE);
    ledger_join_workload(ledger, workloads[4]);
    for (unsigned i = 0; i < SCOPE_MAX; i++)
        end(ledger, workloads[i]);
    assert_int_equal(ledger_workload(ledger, open_container(ledger, "1000", 102))->kind,
                     WORKLOAD_CONTAINER);
    ledger_free(ledger);
}

static void there_is_room_for_as_many_workloads_as_the_option_says(void **state)
{
    struct ledger *ledger = open_ledger(MANY);
    uint32_t first = open_container(ledger, "", 0), second = open_container(ledger, "", 1);

    (void)state;
    ledger_join_workload(ledger, first);
    ledger_join_workload(ledger, second);
    for (unsigned i = 2; i < MANY; i++)
        ledger_join_workload(ledger, open_container(ledger, "", i));
    assert_int_equal(ledger_counts(ledger)->workloads, MANY);
    assert_int_equal(ledger_counts(ledger)->workloads_dropped, 0);
    assert_is(ledger, open_container(ledger, "", MANY), WORKLOAD_OTHER, "other");
    /* The place of one that has gone is taken again; `other` has one, too. */
    ledger_leave_workload(ledger, second);
    ledger_leave_workload(ledger, first);
    assert_int_equal(open_container(ledger, "", MANY), first);
    ledger_free(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_user_with_fake_containers_does_not_take_the_room_of_others),
        cmocka_unit_test(what_tenants_had_named_before_a_restart_counts),
        cmocka_unit_test(any_number_of_tenants_leave_half_of_the_room_to_root),
        cmocka_unit_test(what_a_scope_has_too_much_of_is_booked_to_who_named_it),
        cmocka_unit_test(
            the_ended_of_a_scope_make_room_in_it_once_a_minute_and_those_of_others_stay),
        cmocka_unit_test(there_is_room_for_as_many_workloads_as_the_option_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
