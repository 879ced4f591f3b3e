/* attribution/gpu: memory and work of no visible process, and the containers they are inferred
 * to. */
#include "pipeline_fixture.h"

#define GB ((uint64_t)1 << 30)

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

/* The cgroup of these tests is a container's id. */
static void own_by_container(const struct sample_process *who, struct workload_owner *ret_owner)
{
    *ret_owner =
        (struct workload_owner){.kind = who->cgroup[0] ? WORKLOAD_CONTAINER : WORKLOAD_PROCESS};
    snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", who->cgroup);
    snprintf(ret_owner->container_id, sizeof(ret_owner->container_id), "%s", who->cgroup);
}

static struct pipeline *new_pipeline(enum idle_policy policy)
{
    struct pipeline_options options = default_options();

    options.find_owner = own_by_container;
    options.gpu.idle_policy = policy;
    return pipeline_with(options);
}

/* It was given the GPU, and its names are known. */
static const struct attached GRANTED = {.owner = {.kind = WORKLOAD_CONTAINER},
                                        .source = ALLOCATED_BY_DOCKER,
                                        .is_allocated = true,
                                        .pays_idle = true,
                                        .is_candidate = true,
                                        .is_named = true,
                                        .units = 1};

static void attach(struct pipeline *pipeline, const char *const *ids, const uint64_t *memory,
                   size_t count)
{
    struct attached *attached = calloc(count, sizeof(*attached));

    assert_non_null(attached);
    for (size_t i = 0; i < count; i++) {
        attached[i] = GRANTED;
        strcpy(attached[i].owner.id, ids[i]);
        strcpy(attached[i].owner.container_id, ids[i]);
        snprintf(attached[i].container, sizeof(attached[i].container), "%.1s", ids[i]);
        attached[i].memory_bytes = memory ? memory[i] : 0;
    }
    pipeline_set_attached(pipeline, 0, attached, count);
}

static void listed(struct pipeline *pipeline, uint64_t t_us, uint32_t pid, uint64_t bytes)
{
    struct sample_listed entry = {pid, bytes, SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE};

    feed(pipeline, (struct sample){
                       .kind = SAMPLE_LIST,
                       .t_us = t_us,
                       .list = {.kind = SAMPLE_LIST_COMPUTE, .count = pid > 0, .entries = &entry}});
}

static void used(struct pipeline *pipeline, uint64_t t_us, uint64_t bytes)
{
    feed(pipeline,
         (struct sample){.kind = SAMPLE_GAUGE,
                         .t_us = t_us,
                         .gauge = {GPU_GAUGE_MEMORY_USED_BYTES, bytes, SAMPLE_NO_INSTANCE}});
}

/* As often as it takes to be believed. */
static void see(struct pipeline *pipeline, uint32_t pid, uint64_t known, uint64_t in_use)
{
    for (int i = 0; i < GPU_UNKNOWN_READINGS; i++) {
        listed(pipeline, T0 + (uint64_t)i * SECOND, pid, known);
        used(pipeline, T0 + (uint64_t)i * SECOND, in_use);
    }
}

static const struct snapshot_container *row_of(const struct snapshot *snapshot, const char *id)
{
    for (size_t i = 0; i < snapshot->container_count; i++)
        if (strcmp(snapshot->containers[i].container_id, id) == 0)
            return &snapshot->containers[i];
    return NULL;
}

static void the_unknown_belongs_to_the_container_without_a_visible_process(void **state)
{
    static const char *const ids[] = {A, B};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, A, "worker");
    attach(pipeline, ids, NULL, 2);
    see(pipeline, 5, 2 * GB, 10 * GB);
    snapshot = books(pipeline);
    assert_true(snapshot->gpus[0].has_unknown);
    assert_int_equal(snapshot->gpus[0].unknown_bytes, 8 * GB);
    assert_true(snapshot->gpus[0].inference_active);
    assert_int_equal(snapshot->container_count, 2);
    assert_int_equal(row_of(snapshot, A)->bytes, 2 * GB);
    assert_false(row_of(snapshot, A)->inferred);
    assert_int_equal(row_of(snapshot, B)->bytes, 8 * GB);
    assert_true(row_of(snapshot, B)->inferred);
    assert_string_equal(row_of(snapshot, B)->name, "b");
    assert_int_equal(snapshot->detected_count, 2);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void unknown_memory_is_divided_by_requests_or_else_equally_and_to_the_byte(void **state)
{
    static const char *const ids[] = {A, B, C};
    static const uint64_t asked[] = {10 * GB, 20 * GB, 70 * GB}, partly[] = {10 * GB, 0, 70 * GB};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    see(pipeline, 0, 0, 1000);
    attach(pipeline, ids, asked, 3);
    snapshot = books(pipeline);
    assert_int_equal(row_of(snapshot, A)->bytes, 100);
    assert_int_equal(row_of(snapshot, B)->bytes, 200);
    assert_int_equal(row_of(snapshot, C)->bytes, 700);
    close_books(snapshot);
    attach(pipeline, ids, partly, 3);
    snapshot = books(pipeline);
    assert_int_equal(row_of(snapshot, A)->bytes, 334);
    assert_int_equal(row_of(snapshot, B)->bytes, 333);
    assert_int_equal(row_of(snapshot, C)->bytes, 333);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void without_containers_memory_stays_unknown(void **state)
{
    static const char *const ids[] = {A};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, A, "worker");
    see(pipeline, 5, 2 * GB, 10 * GB);
    attach(pipeline, ids, NULL, 1); /* it is seen: what it uses is known */
    snapshot = books(pipeline);
    assert_int_equal(snapshot->gpus[0].unknown_bytes, 8 * GB);
    assert_false(snapshot->gpus[0].inference_active);
    assert_int_equal(snapshot->container_count, 1);
    assert_int_equal(row_of(snapshot, A)->bytes, 2 * GB);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void without_unknown_memory_nothing_is_inferred_but_all_containers_are_detected(void **state)
{
    static const char *const ids[] = {A, B};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, A, "worker");
    attach(pipeline, ids, NULL, 2);
    see(pipeline, 5, 2 * GB, GB); /* less is used than is known: two calls, two moments */
    snapshot = books(pipeline);
    assert_int_equal(snapshot->gpus[0].unknown_bytes, 0);
    assert_false(snapshot->gpus[0].inference_active);
    assert_false(row_of(snapshot, B)->has_bytes);
    assert_int_equal(snapshot->detected_count, 2);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void memory_allocated_between_two_calls_is_not_unknown(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, A, "worker");
    see(pipeline, 5, 2 * GB, 2 * GB);
    used(pipeline, T0 + 3 * SECOND, 6 * GB); /* the list comes later */
    snapshot = books(pipeline);
    assert_int_equal(snapshot->gpus[0].unknown_bytes, 0);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void memory_that_the_driver_hides_is_not_inferred(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    see(pipeline, 5, SAMPLE_MEMORY_UNKNOWN, 10 * GB);
    snapshot = books(pipeline);
    assert_false(snapshot->gpus[0].has_unknown);
    close_books(snapshot);
    see(pipeline, 5, GB, 10 * GB);
    used(pipeline, T0 + 60 * SECOND, 10 * GB); /* the list was not read for a minute */
    snapshot = books(pipeline);
    assert_false(snapshot->gpus[0].has_unknown);
    close_books(snapshot);
    pipeline_free(pipeline);
}

/* A second of 100 W on a busy board without listed or sampled processes. */
static uint64_t busy_second(struct pipeline *pipeline, uint64_t t_us)
{
    struct gpu *gpu = pipeline->gpus[0];

    if (!gpu->counter_seen)
        energy(pipeline, 0, t_us, 0);
    listed(pipeline, t_us + 1, 0, 0);
    utilisation(pipeline, 0, t_us + TICK, 99);
    ticks(pipeline, 0, t_us, t_us + SECOND, gpu->counter_uj, 100);
    return t_us + SECOND;
}

static uint64_t inferred_uj(const struct pipeline *pipeline, const char *id)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t energy_uj = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++)
        if (strcmp(snapshot->workloads[i].id, id) == 0)
            energy_uj += snapshot->workloads[i].account.energy_uj[TIER_ACTIVE][METHOD_INFERRED] +
                         snapshot->workloads[i].account.energy_uj[TIER_IDLE][METHOD_INFERRED];
    close_books(snapshot);
    return energy_uj;
}

static void work_of_no_visible_process_is_that_of_the_one_container_with_access(void **state)
{
    static const char *const ids[] = {A};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    attach(pipeline, ids, NULL, 1);
    busy_second(pipeline, busy_second(pipeline, T0));
    pipeline_finish(pipeline);
    assert_int_equal(inferred_uj(pipeline, A), 200 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_CONTAINER, A), 200 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->process_count, 1);
    assert_true(snapshot->processes[0].hidden); /* it has no pid to be shown with */
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void samples_of_unknown_processes_go_to_containers_without_visible_ones(void **state)
{
    static const char *const ids[] = {A, B, C};
    static const uint64_t asked[] = {10 * GB, 10 * GB, 30 * GB};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    uint64_t sum;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, A, "worker");
    attach(pipeline, ids, asked, 3);
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 5);
    label(pipeline, 0, T0 + 2 * TICK, 5, T0 + TICK, 99);
    label(pipeline, 0, T0 + 4 * TICK, 999, T0 + 3 * TICK, 99); /* unknown */
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_in_range(workload_uj(pipeline, WORKLOAD_CONTAINER, A), 49 * JOULE, 51 * JOULE);
    assert_int_equal(inferred_uj(pipeline, A), 0);
    sum = inferred_uj(pipeline, B) + inferred_uj(pipeline, C);
    assert_in_range(sum, 49 * JOULE, 51 * JOULE);
    assert_in_range(inferred_uj(pipeline, C), sum * 74 / 100, sum * 76 / 100);
    pipeline_free(pipeline);
}

static void without_candidates_such_work_stays_unattributed(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);

    (void)state;
    busy_second(pipeline, T0);
    pipeline_finish(pipeline);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 100 * JOULE);
    pipeline_free(pipeline);
}

/* A second of 100 W in which nothing runs. */
static uint64_t idle_second(struct pipeline *pipeline, uint64_t t_us)
{
    if (!pipeline->gpus[0]->counter_seen)
        energy(pipeline, 0, t_us, 0);
    listed(pipeline, t_us + 1, 0, 0);
    utilisation(pipeline, 0, t_us + TICK, 0);
    ticks(pipeline, 0, t_us, t_us + SECOND, pipeline->gpus[0]->counter_uj, 100);
    return t_us + SECOND;
}

static void an_idle_board_is_charged_to_its_grantee_by_the_reserved_policy(void **state)
{
    static const char *const ids[] = {A, B};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_RESERVED);

    (void)state;
    idle_second(pipeline, idle_second(pipeline, T0)); /* not granted yet */
    pipeline_finish(pipeline);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_IDLE), 200 * JOULE);
    attach(pipeline, ids, NULL, 2);
    idle_second(pipeline, T0 + 2 * SECOND);
    pipeline_finish(pipeline);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_IDLE), 200 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_CONTAINER, A), 50 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_CONTAINER, B), 50 * JOULE);
    assert_int_equal(inferred_uj(pipeline, A), 0); /* it is not a guess */
    pipeline_free(pipeline);
}

/* A Slurm job in this role beside the container A. */
static void attach_job(struct pipeline *pipeline, struct attached role)
{
    struct attached *attached = calloc(2, sizeof(*attached));

    assert_non_null(attached);
    attached[0] = GRANTED;
    strcpy(attached[0].owner.id, A);
    strcpy(attached[0].owner.container_id, A);
    attached[1] = role;
    attached[1].owner = (struct workload_owner){.kind = WORKLOAD_SLURM, .id = "7"};
    strcpy(attached[1].name, "7");
    pipeline_set_attached(pipeline, 0, attached, 2);
}

static void a_job_that_was_given_the_gpu_has_its_part_of_the_unknown(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    attach_job(pipeline, GRANTED);
    see(pipeline, 0, 0, 10 * GB);
    busy_second(pipeline, T0 + 10 * SECOND);
    pipeline_finish(pipeline);
    snapshot = books(pipeline);
    assert_true(snapshot->gpus[0].inference_active);
    assert_int_equal(snapshot->container_count, 1); /* a job is no container */
    assert_int_equal(row_of(snapshot, A)->bytes, 5 * GB);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_CONTAINER, A),
                     workload_uj(pipeline, WORKLOAD_SLURM, "7"));
    assert_true(workload_uj(pipeline, WORKLOAD_SLURM, "7") > 0);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void own_as_job(const struct sample_process *who, struct workload_owner *ret_owner)
{
    (void)who;
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_SLURM, .id = "7"};
}

static void a_job_with_a_visible_process_has_none_of_the_unknown(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.find_owner = own_as_job;
    pipeline = pipeline_with(options);
    identify(pipeline, 0, T0, 5, T0, "", "worker");
    attach_job(pipeline, GRANTED);
    see(pipeline, 5, 2 * GB, 10 * GB);
    snapshot = books(pipeline);
    assert_int_equal(row_of(snapshot, A)->bytes, 8 * GB);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void nothing_is_inferred_to_who_only_says_that_he_has_the_gpu(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_RESERVED);
    struct attached claim = GRANTED;
    struct snapshot *snapshot;

    (void)state;
    claim.source = ALLOCATED_BY_ENVIRONMENT;
    claim.is_unverified = true;
    claim.pays_idle = claim.is_candidate = false;
    attach_job(pipeline, claim);
    see(pipeline, 0, 0, 10 * GB);
    idle_second(pipeline, busy_second(pipeline, T0 + 10 * SECOND));
    pipeline_finish(pipeline);
    snapshot = books(pipeline);
    assert_int_equal(row_of(snapshot, A)->bytes, 10 * GB);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_SLURM, "7"), 0);
    /* It is shown nevertheless. */
    assert_int_equal(snapshot->allocation_count, 2);
    assert_int_equal(snapshot->allocations[1].kind, WORKLOAD_SLURM);
    assert_string_equal(snapshot->allocations[1].id, "7");
    assert_int_equal(snapshot->allocations[1].source, ALLOCATED_BY_ENVIRONMENT);
    assert_true(snapshot->allocations[1].is_unverified);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void who_pays_for_an_idle_board_need_not_be_a_candidate_and_the_reverse(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_RESERVED);
    struct attached claim = GRANTED;
    struct snapshot *snapshot;

    (void)state;
    claim.is_candidate = false;
    attach_job(pipeline, claim);
    /* A is privileged: it can use the board, and was not given it. */
    pipeline->gpus[0]->attached[0].is_allocated = false;
    pipeline->gpus[0]->attached[0].pays_idle = false;
    busy_second(pipeline, T0);
    pipeline_finish(pipeline);
    assert_int_equal(inferred_uj(pipeline, A), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_SLURM, "7"), 0);
    idle_second(pipeline, T0 + 2 * SECOND);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_CONTAINER, A), 100 * JOULE);
    assert_true(workload_uj(pipeline, WORKLOAD_SLURM, "7") >= 100 * JOULE);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->allocation_count, 1);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void rows_wait_for_names(void **state)
{
    static const char *const ids[] = {A, B};
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_PROPORTIONAL);
    struct snapshot *snapshot;

    (void)state;
    see(pipeline, 0, 0, 10 * GB);
    attach(pipeline, ids, NULL, 2);
    pipeline->gpus[0]->attached[0].is_named = false;
    strcpy(pipeline->gpus[0]->attached[1].pod, "train-0");
    strcpy(pipeline->gpus[0]->attached[1].namespace, "ml");
    snapshot = books(pipeline);
    assert_null(row_of(snapshot, A));
    assert_int_equal(row_of(snapshot, B)->bytes, 5 * GB); /* and not what is A's */
    assert_string_equal(row_of(snapshot, B)->pod, "train-0");
    assert_string_equal(row_of(snapshot, B)->namespace, "ml");
    assert_int_equal(snapshot->allocation_count, 1);
    assert_string_equal(snapshot->allocations[0].names.pod, "train-0");
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void five_thousand_containers_at_one_board_are_no_trouble(void **state)
{
    struct pipeline *pipeline = new_pipeline(IDLE_POLICY_RESERVED);
    struct attached *attached = calloc(5000, sizeof(*attached));
    struct snapshot *snapshot;
    uint64_t sum = 0;

    (void)state;
    assert_non_null(attached);
    for (unsigned i = 0; i < 5000; i++) {
        attached[i] = GRANTED;
        snprintf(attached[i].owner.id, sizeof(attached[i].owner.id), "%064x", i);
        snprintf(attached[i].owner.container_id, sizeof(attached[i].owner.container_id), "%064x",
                 i);
    }
    pipeline_set_attached(pipeline, 0, attached, 5000);
    see(pipeline, 0, 0, 10 * GB + 7);
    busy_second(pipeline, T0 + 10 * SECOND);
    pipeline_finish(pipeline);
    snapshot = books(pipeline);
    for (size_t i = 0; i < snapshot->container_count; i++)
        sum += snapshot->containers[i].bytes;
    assert_int_equal(sum, 10 * GB + 7);
    assert_int_equal(snapshot->detected_count, 5000);
    close_books(snapshot);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_unknown_belongs_to_the_container_without_a_visible_process),
        cmocka_unit_test(unknown_memory_is_divided_by_requests_or_else_equally_and_to_the_byte),
        cmocka_unit_test(without_containers_memory_stays_unknown),
        cmocka_unit_test(
            without_unknown_memory_nothing_is_inferred_but_all_containers_are_detected),
        cmocka_unit_test(memory_allocated_between_two_calls_is_not_unknown),
        cmocka_unit_test(memory_that_the_driver_hides_is_not_inferred),
        cmocka_unit_test(work_of_no_visible_process_is_that_of_the_one_container_with_access),
        cmocka_unit_test(samples_of_unknown_processes_go_to_containers_without_visible_ones),
        cmocka_unit_test(without_candidates_such_work_stays_unattributed),
        cmocka_unit_test(an_idle_board_is_charged_to_its_grantee_by_the_reserved_policy),
        cmocka_unit_test(a_job_that_was_given_the_gpu_has_its_part_of_the_unknown),
        cmocka_unit_test(a_job_with_a_visible_process_has_none_of_the_unknown),
        cmocka_unit_test(nothing_is_inferred_to_who_only_says_that_he_has_the_gpu),
        cmocka_unit_test(who_pays_for_an_idle_board_need_not_be_a_candidate_and_the_reverse),
        cmocka_unit_test(rows_wait_for_names),
        cmocka_unit_test(five_thousand_containers_at_one_board_are_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
