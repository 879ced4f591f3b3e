/* attribution/gpu/gpu_vgpu: a host of vGPUs. Virtual machines are charged by the utilisation of
 * their vGPUs. */
#include "pipeline_fixture.h"

#include "attribution/gpu/gpu.h"

#define WEB   "0f4f1cbb-7d3d-4a46-8a8f-4e3ba0c0a5a1"
#define BATCH "5c7d3e1e-92a4-4b35-9a55-6d1d1c2b7c11"

enum { WEB_VGPU = 3000000001, BATCH_VGPU, XEN_VGPU };

static const struct sample_vgpu vgpus[] = {
    {WEB_VGPU, WEB, true, "vgpu-1", 1 << 30},
    {BATCH_VGPU, BATCH, true, "vgpu-2", 1 << 20},
    {XEN_VGPU, "7", false, "", SAMPLE_MEMORY_UNKNOWN},
};

/* libvirt's name of one of them; the other is not found. */
static bool find_web(void *context, const char *vm, bool is_uuid, struct workload_owner *ret_owner)
{
    (void)context;
    if (!is_uuid || strcmp(vm, WEB) != 0)
        return false;
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_VM, .id = "web"};
    return true;
}

static struct pipeline *open_host(void)
{
    struct pipeline_options options = default_options();

    options.gpu.find_vm = find_web;
    return pipeline_with(options);
}

static void list_vgpus(struct pipeline *pipeline, uint64_t t_us, size_t count)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_VGPUS, .t_us = t_us, .vgpus = {count, vgpus}});
}

static void use(struct pipeline *pipeline, uint64_t at_us, uint32_t vgpu, uint16_t percent)
{
    feed(pipeline,
         (struct sample){.kind = SAMPLE_VGPU_USE,
                         .t_us = at_us,
                         .vgpu_use = {.vgpu = vgpu, .at_us = at_us, .sm_percent = percent}});
}

static void machines_are_charged_by_the_utilisation_of_their_vgpus(void **state)
{
    struct pipeline *pipeline = open_host();

    (void)state;
    energy(pipeline, 0, T0, 0);
    list_vgpus(pipeline, T0 + 1, 3);
    for (uint64_t t = T0; t < T0 + 10 * SECOND; t += SECOND) {
        use(pipeline, t + 2 * TICK, WEB_VGPU, 60);
        use(pipeline, t + 2 * TICK, BATCH_VGPU, 30);
        use(pipeline, t + 2 * TICK, XEN_VGPU, 10);
        ticks(pipeline, 0, t, t + SECOND, (t - T0) * 100, 100);
    }
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, "web"), 600 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, BATCH), 300 * JOULE); /* known by its id */
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, "7"), 100 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 0);
    pipeline_free(pipeline);
}

static void a_machine_that_ended_is_charged_for_what_it_did(void **state)
{
    struct pipeline *pipeline = open_host();

    (void)state;
    energy(pipeline, 0, T0, 0);
    list_vgpus(pipeline, T0 + 1, 2);
    use(pipeline, T0 + 2 * TICK, WEB_VGPU, 50);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    list_vgpus(pipeline, T0 + SECOND + 1, 1);
    use(pipeline, T0 + SECOND + 2 * TICK, WEB_VGPU, 50);
    use(pipeline, T0 + SECOND + 2 * TICK, BATCH_VGPU, 50); /* late: it is off the list */
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 100 * JOULE, 100);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, "web"), 150 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, BATCH), 50 * JOULE);
    pipeline_free(pipeline);
}

static void a_sample_of_a_vgpu_that_was_never_listed_is_nobodys(void **state)
{
    struct pipeline *pipeline = open_host();

    (void)state;
    energy(pipeline, 0, T0, 0);
    use(pipeline, T0 + TICK, 12345, 99);
    list_vgpus(pipeline, T0 + TICK + 1, 1);
    use(pipeline, T0 + 2 * TICK, 12345, 99);
    use(pipeline, T0 + 2 * TICK, WEB_VGPU, 1);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, "web"), 100 * JOULE);
    pipeline_free(pipeline);
}

static void handles_without_end_are_bounded_and_the_books_balance(void **state)
{
    struct sample_vgpu many[SAMPLE_VGPUS_MAX];
    struct pipeline *pipeline = open_host();

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t t = T0 + round * SECOND;

        for (uint32_t i = 0; i < SAMPLE_VGPUS_MAX; i++)
            many[i] = (struct sample_vgpu){round * 1000 + i, i % 2 ? WEB : "x", i % 2, "", 1};
        feed(pipeline, (struct sample){
                           .kind = SAMPLE_VGPUS, .t_us = t + 1, .vgpus = {SAMPLE_VGPUS_MAX, many}});
        use(pipeline, t + 2 * TICK, round * 1000 + 1, 200); /* garbage */
        use(pipeline, t + 3 * TICK, round * 1000 + 1, 50);
        ticks(pipeline, 0, t, t + SECOND, round * 100 * JOULE, 100);
    }
    pipeline_finish(pipeline);
    assert_int_equal(meter_uj(pipeline, 0), 500 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_VM, "web"), 500 * JOULE);
    pipeline_free(pipeline);
}

static void a_host_of_vgpus_is_shown_as_one(void **state)
{
    struct pipeline *pipeline = open_host();
    struct snapshot *snapshot;

    (void)state;
    list_vgpus(pipeline, T0, 2);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->gpus[0].sharing, GPU_SHARING_VGPU);
    close_books(snapshot);
    list_vgpus(pipeline, T0 + SECOND, 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->gpus[0].sharing, GPU_SHARING_EXCLUSIVE);
    close_books(snapshot);
    pipeline_free(pipeline);
}

/* The other modes, by the lists in force. */
static void sharing_is_what_the_lists_show(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    static const struct {
        uint32_t compute[4], mps[4];
        enum gpu_sharing sharing;
    } cases[] = {{{0}, {0}, GPU_SHARING_EXCLUSIVE},      {{5}, {0}, GPU_SHARING_EXCLUSIVE},
                 {{5, 6}, {0}, GPU_SHARING_TIME_SLICED}, {{900, 5, 6}, {5, 6}, GPU_SHARING_MPS},
                 {{900}, {0}, GPU_SHARING_EXCLUSIVE}, /* a server without clients */
                 {{900, 7}, {0}, GPU_SHARING_EXCLUSIVE}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct snapshot *snapshot;

        list(pipeline, 0, T0 + i, SAMPLE_LIST_MPS, cases[i].mps);
        list(pipeline, 0, T0 + i, SAMPLE_LIST_COMPUTE, cases[i].compute);
        snapshot = books(pipeline);
        assert_int_equal(snapshot->gpus[0].sharing, cases[i].sharing);
        close_books(snapshot);
    }
    pipeline_free(pipeline);
}

/* MIG-backed vGPUs: the host lists no process of theirs, and the driver does not say in which
 * instance one is. */
static void also_on_a_board_in_mig_mode(void **state)
{
    static const struct sample_instance instances[] = {
        {1, 0, 0, "MIG-1", "3g.40gb", 3, 3, 60, 0, {0}},
        {2, 0, 1, "MIG-2", "3g.40gb", 3, 3, 60, 0, {0}},
    };
    struct pipeline *pipeline = open_host();
    uint64_t web_uj, batch_uj;

    (void)state;
    feed(pipeline, (struct sample){
                       .kind = SAMPLE_LAYOUT, .t_us = T0, .layout = {true, 7, 132, 2, instances}});
    energy(pipeline, 0, T0, 0);
    list_vgpus(pipeline, T0 + 1, 2);
    for (uint64_t t = T0; t < T0 + 10 * SECOND; t += SECOND) {
        use(pipeline, t + 2 * TICK, WEB_VGPU, 80);
        use(pipeline, t + 2 * TICK, BATCH_VGPU, 10);
        ticks(pipeline, 0, t, t + SECOND, (t - T0) * 100, 100);
        list_vgpus(pipeline, t + SECOND, 2);
    }
    assert_int_equal(pipeline_finish(pipeline), 0);
    web_uj = workload_uj(pipeline, WORKLOAD_VM, "web");
    batch_uj = workload_uj(pipeline, WORKLOAD_VM, BATCH);
    assert_true(batch_uj > 10 * JOULE);
    assert_true(web_uj > 7 * batch_uj && web_uj < 9 * batch_uj);
    close_books(books(pipeline));
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_charged_by_the_utilisation_of_their_vgpus),
        cmocka_unit_test(also_on_a_board_in_mig_mode),
        cmocka_unit_test(a_machine_that_ended_is_charged_for_what_it_did),
        cmocka_unit_test(a_sample_of_a_vgpu_that_was_never_listed_is_nobodys),
        cmocka_unit_test(handles_without_end_are_bounded_and_the_books_balance),
        cmocka_unit_test(a_host_of_vgpus_is_shown_as_one),
        cmocka_unit_test(sharing_is_what_the_lists_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
