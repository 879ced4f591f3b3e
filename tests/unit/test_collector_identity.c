/* collector/collector_identity: the rows of workloads and their GPUs, by what the kubelet, claims,
 * runtimes and environments tell. These are scripted here. */
#include "pipeline_fixture.h"

#include "collector/collector_private.h"

#define POD "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct attached last_row;
static const struct attachment *told;
static size_t told_count;

void identity_each_attachment(struct identity *identity, attachments_visit *visit, void *context)
{
    (void)identity;
    for (size_t i = 0; i < told_count; i++) {
        struct attachment attachment = told[i];

        attachment.owner_kind = WORKLOAD_CONTAINER;
        attachment.owner_id = POD;
        attachment.container_name = "worker";
        visit(context, &attachment);
    }
}

/* "kubelet 1 10GiB; " for each row: who tells, the GPU instance, the memory; "?": unverified. */
static const char *rows_of(const struct attachment *attachments, size_t count)
{
    static const struct sample_instance instances[] = {
        {1, 0, 0, "MIG-a", "3g.40gb", 3, 3, 48, 0, {true, 9, 4, 4}},
        {2, 0, 1, "MIG-b", "1g.10gb", 1, 1, 16, 0, {true, 19, 0, 1}}};
    struct collector collector = {.pipeline = pipeline_with(default_options())};
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    const char *const sockets[RUNTIME_TABLE_MAX] = {"", "", ""};
    static char text[1024];
    struct error err;

    told = attachments;
    told_count = count;
    text[0] = '\0';
    assert_int_equal(identity_open(&(struct identity_options){.host = &host,
                                                              .rootfs_path = "",
                                                              .clock = &clock_system,
                                                              .scan_interval_us = USEC_PER_SEC,
                                                              .runtime_sockets = sockets,
                                                              .pod_resources_socket = ""},
                                   &collector.identity, &err),
                     0);
    feed(
        collector.pipeline,
        (struct sample){.kind = SAMPLE_LAYOUT, .t_us = T0, .layout = {true, 7, 112, 2, instances}});
    collector_refresh_identity(&collector);
    for (size_t i = 0; i < collector.pipeline->gpus[0]->attached_count; i++) {
        const struct attached *row = &collector.pipeline->gpus[0]->attached[i];

        last_row = *row;
        sprintf(text + strlen(text), "%s%s %d %dGiB; ", row->is_unverified ? "?" : "",
                allocation_source_words[row->source],
                row->is_of_instance ? (int)row->gpu_instance : -1, (int)(row->memory_bytes >> 30));
    }
    identity_close(collector.identity);
    pipeline_free(collector.pipeline);
    return text;
}

/* Docker has names of the pod in labels, which are believed once a process is seen in it. */
static void a_pod_that_was_given_a_gpu_has_its_names_before_it_uses_it(void **state)
{
    static const struct attachment by_both[] = {
        {.source = ALLOCATED_BY_KUBELET,
         .kind = ALLOCATION_MIG_UUID,
         .id = "MIG-a",
         .namespace = "ml",
         .pod = "training"},
        {.source = ALLOCATED_BY_DOCKER, .kind = ALLOCATION_MIG_UUID, .id = "MIG-a"}};

    (void)state;
    for (size_t count = 1; count <= ARRAY_SIZE(by_both); count++) {
        assert_string_equal(rows_of(by_both, count), "kubelet 1 0GiB; ");
        assert_true(last_row.is_named);
        assert_int_equal(last_row.owner.kind, WORKLOAD_POD);
        assert_string_equal(last_row.name, "training");
        assert_string_equal(last_row.namespace, "ml");
        assert_string_equal(last_row.pod, "training");
        assert_string_equal(last_row.container, "worker");
    }
}

#define ROWS(...)                                                                                  \
    rows_of((const struct attachment[]){__VA_ARGS__},                                              \
            ARRAY_SIZE(((const struct attachment[]){__VA_ARGS__})))

/* Attachments to MIG-a, and to MIG-b. */
#define A_BY(by, ...)                                                                              \
    {                                                                                              \
        .source = ALLOCATED_BY_##by, .kind = ALLOCATION_MIG_UUID, .id = "MIG-a", __VA_ARGS__       \
    }
#define B_BY(by, ...)                                                                              \
    {                                                                                              \
        .source = ALLOCATED_BY_##by, .kind = ALLOCATION_MIG_UUID, .id = "MIG-b", __VA_ARGS__       \
    }

static void instances_that_different_sources_tell_are_all_rows(void **state)
{
    (void)state;
    assert_string_equal(ROWS(A_BY(KUBELET), B_BY(DRA)), "kubelet 1 0GiB; dra 2 0GiB; ");
    assert_string_equal(ROWS(B_BY(CRI), A_BY(DRA)), "dra 1 0GiB; cri 2 0GiB; ");
}

static void what_several_sources_tell_is_one_row_by_the_strongest(void **state)
{
    (void)state;
    assert_string_equal(ROWS(A_BY(ENVIRONMENT, .is_unverified = true),
                             A_BY(DRA, .memory_bytes = 40ULL << 30), A_BY(CRI), A_BY(KUBELET)),
                        "kubelet 1 40GiB; ");
    /* What it was given before what it merely can use. */
    assert_string_equal(ROWS(A_BY(KUBELET, .is_privileged = true), A_BY(CRI)), "cri 1 0GiB; ");
}

static void an_instance_that_it_merely_claims_beside_what_it_was_given_is_no_row(void **state)
{
    (void)state;
    assert_string_equal(ROWS(A_BY(KUBELET), B_BY(ENVIRONMENT, .is_unverified = true)),
                        "kubelet 1 0GiB; ");
    assert_string_equal(ROWS(B_BY(ENVIRONMENT, .is_unverified = true)), "?environment 2 0GiB; ");
}

static void a_part_that_is_not_there_is_no_row(void **state)
{
    (void)state;
    assert_string_equal(
        ROWS(A_BY(KUBELET),
             {.source = ALLOCATED_BY_DRA, .kind = ALLOCATION_MIG_UUID, .id = "MIG-gone"},
             {.source = ALLOCATED_BY_CRI, .kind = ALLOCATION_MIG_UUID, .id = "MIG-GPU-0/9/0"},
             {.source = ALLOCATED_BY_DRA, .kind = ALLOCATION_INDEX, .id = "7"}),
        "kubelet 1 0GiB; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_that_was_given_a_gpu_has_its_names_before_it_uses_it),
        cmocka_unit_test(instances_that_different_sources_tell_are_all_rows),
        cmocka_unit_test(what_several_sources_tell_is_one_row_by_the_strongest),
        cmocka_unit_test(an_instance_that_it_merely_claims_beside_what_it_was_given_is_no_row),
        cmocka_unit_test(a_part_that_is_not_there_is_no_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
