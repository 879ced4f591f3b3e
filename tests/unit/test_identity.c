/* identity: the names of owners, and what is known beyond them. */
#include "tree_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "identity/container_cache.h"
#include "identity/identity.h"

#define A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define UID "2c9f8a79-5391-454b-88cb-86190881cb96"

/* A machine without processes, runtimes and kubelet; it is both procfs and root. */
struct place {
    char path[64];
    struct host host;
};

struct rig {
    struct place *place; /* identity keeps pointers into it */
    struct identity *identity;
};

static struct rig new_rig(bool expects_fetched_names)
{
    struct rig rig = {.place = calloc(1, sizeof(*rig.place))};
    struct error err;
    int fd;

    assert_non_null(rig.place);
    strcpy(rig.place->path, "/tmp/wattribute-XXXXXX");
    assert_non_null(mkdtemp(rig.place->path));
    fd = open(rig.place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig.place->host = (struct host){.procfs_fd = fd, .sysfs_fd = -1, .rootfs_fd = fd};
    assert_int_equal(mkdirat(fd, "etc", 0755), 0);
    tree_write(rig.place->path, "etc/passwd", "alice:x:1000:1000::/home/alice:/bin/sh\n");
    assert_int_equal(
        identity_open(&(struct identity_options){.host = &rig.place->host,
                                                 .rootfs_path = rig.place->path,
                                                 .clock = &clock_system,
                                                 .scan_interval_us = 3600 * USEC_PER_SEC,
                                                 .kubernetes = true,
                                                 .expects_fetched_names = expects_fetched_names},
                      &rig.identity, &err),
        0);
    return rig;
}

static void end_rig(struct rig *rig)
{
    identity_close(rig->identity);
    unlinkat(rig->place->host.rootfs_fd, "etc/passwd", 0);
    unlinkat(rig->place->host.rootfs_fd, "etc", AT_REMOVEDIR);
    close(rig->place->host.rootfs_fd);
    assert_int_equal(rmdir(rig->place->path), 0);
    free(rig->place);
}

static void learn(struct rig *rig, struct container container)
{
    identity_add_names(rig->identity, &(struct container_list){.items = &container, .count = 1});
}

static struct workload_owner container(const char *id)
{
    struct workload_owner owner = {.kind = WORKLOAD_CONTAINER};

    snprintf(owner.id, sizeof(owner.id), "%s", id);
    snprintf(owner.container_id, sizeof(owner.container_id), "%s", id);
    return owner;
}

static void assert_names(struct rig *rig, const struct workload_owner *owner, const char *name,
                         const char *namespace, const char *pod, const char *in_container)
{
    struct workload_names names;

    assert_true(identity_find_names(rig->identity, owner, &names));
    assert_string_equal(names.name, name);
    assert_string_equal(names.namespace, namespace);
    assert_string_equal(names.pod, pod);
    assert_string_equal(names.container, in_container);
}

static void names_that_cannot_come_are_not_waited_for(void **state)
{
    const struct workload_owner owner = container(A);
    struct rig rig = new_rig(false);

    (void)state;
    assert_names(&rig, &owner, "", "", "", "");
    end_rig(&rig);
}

static void names_are_waited_for_until_they_arrive(void **state)
{
    struct workload_owner owner = container(A);
    struct rig rig = new_rig(true);
    struct workload_names names;

    (void)state;
    assert_false(identity_find_names(rig.identity, &owner, &names));
    learn(&rig,
          (struct container){{{A, "worker", "ml", "train-0", UID, "img"}}, true, false, false});
    assert_names(&rig, &owner, "worker", "ml", "train-0", "worker");
    owner.kind = WORKLOAD_POD;
    strcpy(owner.pod_uid, UID);
    assert_names(&rig, &owner, "train-0", "ml", "train-0", "worker");
    end_rig(&rig);
}

static void more_containers_than_are_kept_are_told(void **state)
{
    struct rig rig = new_rig(false);
    struct workload_names names;

    (void)state;
    for (unsigned i = 0; i < CONTAINER_CACHE_ENTRIES_MAX; i++) {
        struct workload_owner owner;
        char id[65];

        assert_false(identity_is_full(rig.identity));
        snprintf(id, sizeof(id), "%064x", i);
        owner = container(id);
        (void)identity_find_names(rig.identity, &owner, &names);
    }
    assert_true(identity_is_full(rig.identity));
    end_rig(&rig);
}

static void a_label_alone_makes_no_container_a_pods(void **state)
{
    struct workload_owner owner = container(A);
    struct rig rig = new_rig(true);

    (void)state;
    learn(&rig, (struct container){{{A, "worker", "ml", "train-0", UID, ""}}, false, false, false});
    assert_names(&rig, &owner, "worker", "", "", "worker");
    strcpy(owner.pod_uid, UID); /* its cgroup names it, too */
    assert_names(&rig, &owner, "worker", "ml", "train-0", "worker");
    end_rig(&rig);
}

static struct workload_owner in_pod(const char *id, const char *uid)
{
    struct workload_owner owner = container(id);

    owner.kind = WORKLOAD_POD;
    snprintf(owner.pod_uid, sizeof(owner.pod_uid), "%s", uid);
    return owner;
}

static void a_pod_counts_unless_the_cgroup_names_another(void **state)
{
    const struct workload_owner same = in_pod(A, UID), other = in_pod(A, "another");
    const struct workload_owner unlabelled = container(B);
    struct rig rig = new_rig(true);

    (void)state;
    learn(&rig, (struct container){{{A, "worker", "ml", "train-0", UID, ""}}, true, false, false});
    assert_names(&rig, &same, "train-0", "ml", "train-0", "worker");
    assert_names(&rig, &other, "worker", "", "", "worker");
    learn(&rig, (struct container){{{B, "web", "ml", "train-0", "", ""}}, false, false, false});
    assert_names(&rig, &unlabelled, "web", "", "", "web");
    end_rig(&rig);
}

static void an_unknown_container_has_the_pod_that_its_cgroup_names(void **state)
{
    const struct workload_owner pause = in_pod(A, UID), other = in_pod(B, "another");
    struct rig rig = new_rig(true);
    struct workload_names names;

    (void)state;
    learn(&rig, (struct container){{{"", "", "ml", "train-0", UID, ""}}, false, false, false});
    assert_false(identity_find_names(rig.identity, &pause, &names)); /* its own may still come */
    assert_string_equal(names.name, "train-0");
    assert_string_equal(names.namespace, "ml");
    assert_string_equal(names.pod, "train-0");
    assert_string_equal(names.container, "");
    assert_false(identity_find_names(rig.identity, &other, &names));
    assert_string_equal(names.pod, "");
    end_rig(&rig);
}

static void names_are_found_any_number_of_times(void **state)
{
    const struct workload_owner owner = in_pod(A, UID);
    struct rig rig = new_rig(true);

    (void)state;
    learn(&rig,
          (struct container){{{A, "worker", "ml", "train-0", UID, "img"}}, true, false, false});
    for (int i = 0; i < 20000; i++) /* more than fit in what they are kept in */
        assert_names(&rig, &owner, "train-0", "ml", "train-0", "worker");
    end_rig(&rig);
}

static bool get_api_status(struct rig *rig, struct identity_status *status)
{
    for (size_t i = 0; identity_get_status(rig->identity, i, status); i++)
        if (strcmp(status->name, "kubernetes_api") == 0)
            return true;
    return false;
}

static void the_api_server_is_a_source_that_is_up_or_down(void **state)
{
    struct identity_status status;
    struct rig rig = new_rig(true);

    (void)state;
    assert_true(get_api_status(&rig, &status));
    assert_false(status.polled);
    identity_note_api_server(rig.identity, -EACCES, 0);
    assert_true(get_api_status(&rig, &status));
    assert_true(status.polled && !status.up && status.is_logged_by_fetcher);
    assert_int_equal(status.errors, 1);
    identity_note_api_server(rig.identity, 0, 7);
    assert_true(get_api_status(&rig, &status));
    assert_true(status.up);
    assert_int_equal(status.duration_us, 7);
    end_rig(&rig);
    rig = new_rig(false);
    assert_false(get_api_status(&rig, &status));
    end_rig(&rig);
}

static void a_claim_counts_unless_another_process_is_in_the_container(void **state)
{
    struct workload_owner job = {.kind = WORKLOAD_SLURM, .id = "7", .container_is_claim = true};
    const struct workload_owner real = container(B);
    struct rig rig = new_rig(true);
    struct workload_names names;

    (void)state;
    learn(&rig, (struct container){{{A, "inner", "", "", "", ""}}, true, false, false});
    learn(&rig, (struct container){{{B, "victim", "", "", "", ""}}, true, false, false});
    strcpy(job.container_id, A);
    assert_names(&rig, &job, "7", "", "", "inner");
    strcpy(job.container_id, B);
    identity_note_process(rig.identity, 1, &real);
    do { /* its thread has met the real one */
        assert_true(identity_find_names(rig.identity, &job, &names));
        poll(NULL, 0, 1);
    } while (strcmp(names.container, "victim") == 0);
    assert_string_equal(names.container, "");
    assert_names(&rig, &real, "victim", "", "", "victim");
    end_rig(&rig);
}

static void a_user_has_a_name_and_what_needs_none_is_not_waited_for(void **state)
{
    static const struct workload_owner others[] = {
        {.kind = WORKLOAD_SLURM, .id = "211"},        {.kind = WORKLOAD_LXC, .id = "web"},
        {.kind = WORKLOAD_NSPAWN, .id = "box"},       {.kind = WORKLOAD_UNIT, .id = "a.service"},
        {.kind = WORKLOAD_CONTAINER, .id = "1000/x"}, {.kind = WORKLOAD_PROCESS, .id = "5"},
    };
    const struct workload_owner alice = {.kind = WORKLOAD_USER, .id = "1000"};
    struct rig rig = new_rig(true);
    struct workload_names names;

    (void)state;
    identity_note_process(rig.identity, 1, &alice);
    while (!identity_find_names(rig.identity, &alice, &names))
        poll(NULL, 0, 1);
    assert_string_equal(names.name, "alice");
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_true(identity_find_names(rig.identity, &others[i], &names));
        if (others[i].kind != WORKLOAD_CONTAINER && others[i].kind != WORKLOAD_PROCESS)
            assert_string_equal(names.name, others[i].id);
    }
    end_rig(&rig);
}

static void what_is_known_of_a_workload_is_one_row_whatever_meters_it_is_at(void **state)
{
    const struct snapshot_workload workloads[] = {
        {.kind = WORKLOAD_PROCESS, .id = "5", .container_id = "", .pod_uid = ""},
        {.kind = WORKLOAD_POD, .id = A, .container_id = A, .pod_uid = UID, .meter = 0},
        {.kind = WORKLOAD_POD, .id = A, .container_id = A, .pod_uid = UID, .meter = 1},
        {.kind = WORKLOAD_CONTAINER, .id = B, .container_id = B, .pod_uid = ""},
        {.kind = WORKLOAD_RETIRED, .id = "1.0", .container_id = "", .pod_uid = ""},
    };
    struct rig rig = new_rig(true);
    struct snapshot snapshot;

    (void)state;
    learn(&rig,
          (struct container){{{A, "worker", "ml", "train-0", UID, "img:1"}}, true, false, false});
    snapshot_init(&snapshot);
    snapshot.workloads = workloads;
    snapshot.workload_count = ARRAY_SIZE(workloads);
    assert_int_equal(identity_describe(rig.identity, &snapshot), 0);
    assert_int_equal(snapshot.info_count, 2);
    assert_string_equal(snapshot.infos[0].image, "img:1");
    assert_string_equal(snapshot.infos[0].namespace, "ml");
    assert_string_equal(snapshot.infos[0].pod, "train-0");
    assert_string_equal(snapshot.infos[0].container, "worker");
    assert_string_equal(snapshot.infos[0].pod_uid, UID);
    assert_string_equal(snapshot.infos[1].id, B);
    assert_string_equal(snapshot.infos[1].image, "");
    snapshot_done(&snapshot);
    end_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_cannot_come_are_not_waited_for),
        cmocka_unit_test(names_are_waited_for_until_they_arrive),
        cmocka_unit_test(more_containers_than_are_kept_are_told),
        cmocka_unit_test(a_label_alone_makes_no_container_a_pods),
        cmocka_unit_test(a_pod_counts_unless_the_cgroup_names_another),
        cmocka_unit_test(an_unknown_container_has_the_pod_that_its_cgroup_names),
        cmocka_unit_test(names_are_found_any_number_of_times),
        cmocka_unit_test(the_api_server_is_a_source_that_is_up_or_down),
        cmocka_unit_test(a_claim_counts_unless_another_process_is_in_the_container),
        cmocka_unit_test(a_user_has_a_name_and_what_needs_none_is_not_waited_for),
        cmocka_unit_test(what_is_known_of_a_workload_is_one_row_whatever_meters_it_is_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
