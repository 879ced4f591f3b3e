/* identity/recorded_names: a trace's names of its workloads, the last of each. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "identity/recorded_names.h"

#define NO_TEXTS                                                                                   \
    {                                                                                              \
        "", "", "", "", "", "", "", "", "", "", ""                                                 \
    }

static const struct sample_names pod = {
    WORKLOAD_POD,
    "c1",
    {"train", "ml", "train", "worker", "trainer:1", "", "", "", "", "", ""},
};
static const struct sample_names job = {
    WORKLOAD_SLURM,
    "31",
    {"31", "", "", "", "", "alice", "physics", "31", "plasma", "u-u-i-d", "account,job_name"},
};

static int setup(void **state)
{
    return recorded_names_new((struct recorded_names **)state);
}

static int teardown(void **state)
{
    recorded_names_free(*state);
    return 0;
}

static struct workload_names find(struct recorded_names *names, enum workload_kind kind,
                                  const char *id)
{
    struct workload_owner owner = {.kind = kind};
    struct workload_names found;

    snprintf(owner.id, sizeof(owner.id), "%s", id);
    assert_true(recorded_names_find(names, &owner, &found));
    return found;
}

static void a_workload_is_found_by_its_kind_and_id(void **state)
{
    struct workload_names found;

    assert_int_equal(recorded_names_learn(*state, &pod), 1);
    assert_int_equal(recorded_names_learn(*state, &job), 1);
    found = find(*state, WORKLOAD_POD, "c1");
    assert_string_equal(found.name, "train");
    assert_string_equal(found.namespace, "ml");
    assert_string_equal(found.pod, "train");
    assert_string_equal(found.container, "worker");
    assert_string_equal(found.image, "trainer:1");
    assert_string_equal(find(*state, WORKLOAD_SLURM, "31").name, "31");
}

static void a_workload_without_recorded_names_has_none_and_waits_for_none(void **state)
{
    static const char *const ids[] = {"c1", "", "C1", "c1 "};

    assert_int_equal(recorded_names_learn(*state, &pod), 1);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct workload_names found = find(*state, WORKLOAD_CONTAINER, ids[i]);

        assert_string_equal(found.name, "");
        assert_string_equal(found.namespace, "");
        assert_string_equal(found.pod, "");
        assert_string_equal(found.container, "");
        assert_string_equal(found.image, "");
    }
    assert_string_equal(find(*state, WORKLOAD_POD, "c2").name, "");
}

static void the_last_word_counts_and_the_same_word_is_nothing_new(void **state)
{
    struct sample_names renamed = pod;

    assert_int_equal(recorded_names_learn(*state, &pod), 1);
    assert_int_equal(recorded_names_learn(*state, &pod), 0);
    renamed.texts[WORKLOAD_TEXT_NAME] = "serve";
    renamed.texts[WORKLOAD_TEXT_IMAGE] = "";
    assert_int_equal(recorded_names_learn(*state, &renamed), 1);
    assert_string_equal(find(*state, WORKLOAD_POD, "c1").name, "serve");
    assert_string_equal(find(*state, WORKLOAD_POD, "c1").image, "");
}

static void a_machine_is_found_by_its_uuid(void **state)
{
    static const struct sample_names vm = {
        WORKLOAD_VM, "web", {"web", "", "", "", "", "", "", "", "", "AbC-1", ""}};
    struct workload_owner owner;

    assert_int_equal(recorded_names_learn(*state, &job), 1); /* no machine has that uuid */
    assert_int_equal(recorded_names_learn(*state, &vm), 1);
    assert_true(recorded_names_find_vm(*state, "aBc-1", true, &owner));
    assert_int_equal(owner.kind, WORKLOAD_VM);
    assert_string_equal(owner.id, "web");
    assert_false(recorded_names_find_vm(*state, "u-u-i-d", true, &owner));
    assert_false(recorded_names_find_vm(*state, "AbC-1", false, &owner));
}

static void texts_are_copies(void **state)
{
    char id[] = "1000", name[] = "ann";
    struct sample_names user = {WORKLOAD_USER, id, NO_TEXTS};

    user.texts[WORKLOAD_TEXT_NAME] = name;
    assert_int_equal(recorded_names_learn(*state, &user), 1);
    memset(id, 'x', sizeof(id) - 1);
    memset(name, 'x', sizeof(name) - 1);
    assert_string_equal(find(*state, WORKLOAD_USER, "1000").name, "ann");
}

static void more_workloads_than_there_is_room_for_stay_without_names(void **state)
{
    struct sample_names user = {WORKLOAD_USER, "", NO_TEXTS};
    char id[16];

    user.texts[WORKLOAD_TEXT_NAME] = "n";
    for (unsigned i = 0; i <= RECORDED_NAMES_MAX; i++) {
        snprintf(id, sizeof(id), "%u", i);
        user.id = id;
        assert_int_equal(recorded_names_learn(*state, &user), i < RECORDED_NAMES_MAX);
    }
    assert_string_equal(find(*state, WORKLOAD_USER, "0").name, "n");
    assert_string_equal(find(*state, WORKLOAD_USER, "65535").name, "n");
    assert_string_equal(find(*state, WORKLOAD_USER, "65536").name, "");
}

static void a_workload_has_one_info_row_if_it_has_names(void **state)
{
    static const struct snapshot_workload workloads[] = {
        {.kind = WORKLOAD_PROCESS, .id = "31", .container_id = "", .pod_uid = ""},
        {.kind = WORKLOAD_POD, .id = "c1", .container_id = "c1", .pod_uid = "p1", .meter = 0},
        {.kind = WORKLOAD_POD, .id = "c1", .container_id = "c1", .pod_uid = "p1", .meter = 1},
        {.kind = WORKLOAD_SLURM, .id = "31", .container_id = "", .pod_uid = ""},
        {.kind = WORKLOAD_SLURM, .id = "32", .container_id = "", .pod_uid = ""},
    };
    struct snapshot snapshot;

    recorded_names_learn(*state, &pod);
    recorded_names_learn(*state, &job);
    snapshot_init(&snapshot);
    snapshot.workloads = workloads;
    snapshot.workload_count = ARRAY_SIZE(workloads);
    assert_int_equal(recorded_names_describe(*state, &snapshot), 0);
    assert_int_equal(snapshot.info_count, 2);
    assert_string_equal(snapshot.infos[0].id, "c1");
    assert_string_equal(snapshot.infos[0].image, "trainer:1");
    assert_string_equal(snapshot.infos[0].container_id, "c1");
    assert_string_equal(snapshot.infos[0].pod_uid, "p1");
    assert_string_equal(snapshot.infos[0].unverified, "");
    assert_int_equal(snapshot.infos[1].kind, WORKLOAD_SLURM);
    assert_string_equal(snapshot.infos[1].user, "alice");
    assert_string_equal(snapshot.infos[1].account, "physics");
    assert_string_equal(snapshot.infos[1].job_id, "31");
    assert_string_equal(snapshot.infos[1].job_name, "plasma");
    assert_string_equal(snapshot.infos[1].uuid, "u-u-i-d");
    assert_string_equal(snapshot.infos[1].unverified, "account,job_name");
    snapshot_done(&snapshot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_workload_is_found_by_its_kind_and_id),
        TEST(a_workload_without_recorded_names_has_none_and_waits_for_none),
        TEST(the_last_word_counts_and_the_same_word_is_nothing_new),
        TEST(a_machine_is_found_by_its_uuid),
        TEST(texts_are_copies),
        TEST(more_workloads_than_there_is_room_for_stay_without_names),
        TEST(a_workload_has_one_info_row_if_it_has_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
