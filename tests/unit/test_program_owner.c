/* gpu_intensity: whose program a process runs. What one tenant's program taught is not for others.
 */
#include "simulation.h"

/* What the names of workloads are by now; by the id of the workload. */
struct names {
    const char *id;
    struct workload_names names;
};

static bool find_names(void *context, const struct workload_owner *owner,
                       struct workload_names *ret_names)
{
    const struct names *names = context;

    *ret_names = (struct workload_names){"", "", "", "", ""};
    for (; names->id; names++)
        if (strcmp(names->id, owner->id) == 0)
            *ret_names = names->names;
    return true;
}

/* A cgroup here is the letter of a kind and an id; in pods and containers the latter is that of the
 * container, too. */
static void own_by_letter(const struct sample_process *who, struct workload_owner *ret_owner)
{
    static const char letters[] = {
        [WORKLOAD_PROCESS] = '?', [WORKLOAD_POD] = 'p',  [WORKLOAD_CONTAINER] = 'c',
        [WORKLOAD_SLURM] = 's',   [WORKLOAD_VM] = 'v',   [WORKLOAD_LXC] = 'l',
        [WORKLOAD_UNIT] = 'u',    [WORKLOAD_USER] = 'U',
    };
    bool is_job = who->cgroup[0] == 's';
    const char *letter = memchr(letters, who->cgroup[0], sizeof(letters));

    assert_non_null(letter);
    *ret_owner = (struct workload_owner){.kind = (enum workload_kind)(letter - letters),
                                         .container_is_claim = is_job};
    snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", who->cgroup + 1);
    if (strchr("pcs", who->cgroup[0]))
        snprintf(ret_owner->container_id, sizeof(ret_owner->container_id), "%s", who->cgroup + 1);
}

struct process {
    const char *cgroup;
    uint32_t uid;
};

static struct pipeline *pipeline_of(const struct names *names)
{
    struct pipeline_options options = intensity_options();

    options.find_owner = own_by_letter;
    options.gpu.find_names = names ? find_names : NULL;
    options.gpu.names_context = (void *)names;
    options.gpu.patience_us = 0;
    return pipeline_with(options);
}

static void run_process(struct pipeline *pipeline, const struct process *process)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                   .t_us = T0,
                                   .process = {.pid = 11,
                                               .uid = process->uid,
                                               .start_us = T0,
                                               .cgroup = process->cgroup,
                                               .name = "python3",
                                               .program = {101, 201}}});
    energy(pipeline, 0, T0, 0);
    feed(pipeline,
         (struct sample){.kind = SAMPLE_LIST,
                         .t_us = T0 + 1,
                         .list = {.count = 1,
                                  .entries = &(struct sample_listed){
                                      11, 1 << 20, SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE}}});
}

static struct program_key key_of(const struct pipeline *pipeline)
{
    uint32_t process;

    assert_true(ledger_find_process(pipeline->ledger, 0, 11, &process));
    return pipeline->gpus[0]
        ->learning->intensity.keys[gpu_sighting(pipeline->gpus[0], process)->tenant - 1];
}

/* The key of the same program, run by somebody. */
static struct program_key key_by(const struct names *names, struct process process)
{
    struct pipeline *pipeline = pipeline_of(names);
    struct program_key key;

    run_process(pipeline, &process);
    key = key_of(pipeline);
    pipeline_free(pipeline);
    return key;
}

static const struct names known[] = {
    {"p1", {.namespace = "ml", .image = "trainer:1"}},
    {"p2", {.namespace = "ml", .image = "trainer:1"}},
    {"p3", {.namespace = "web", .image = "trainer:1"}},
    {"p4", {.namespace = "ml", .image = "trainer:2"}},
    {"no-image", {.namespace = "ml", .image = ""}},
    {"null-image", {.namespace = "ml"}},
    {"no-namespace", {.namespace = "", .image = "trainer:1"}},
    {"c1", {.image = "trainer:1"}},
    {"c2", {.image = "trainer:1"}},
    {"c3", {.image = "other:1"}},
    {"s1", {.image = "trainer:1"}},
    {"s2", {.image = "trainer:1"}},
    {0},
};

static void the_same_owner_has_the_same_key(void **state)
{
    static const struct process pairs[][2] = {
        {{"pp1", 0}, {"pp2", 0}},
        {{"pp1", 0}, {"pp2", 1000}}, /* users of a container are its own affair */
        {{"cc1", 0}, {"cc2", 0}},
        {{"ss1", 1000}, {"ss2", 1000}}, /* two jobs */
        {{"s7", 1000}, {"s8", 1000}},
        {{"ua.service", 1000}, {"ua.service", 1000}},
        {{"U1000", 1000}, {"U1000", 1000}},
        {{"?", 1000}, {"?", 1000}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        struct program_key one = key_by(known, pairs[i][0]), other = key_by(known, pairs[i][1]);

        if (one.exact == 0 || one.exact != other.exact || one.coarse != other.coarse)
            fail_msg("pair %zu", i);
    }
}

static void other_owners_have_other_keys(void **state)
{
    static const struct process processes[] = {
        {"pp1", 0},        {"pp3", 0},
        {"pp4", 0},        {"cc1", 0},
        {"cc3", 0},        {"ss1", 1000},
        {"ss1", 1001}, /* a job cannot claim another's container */
        {"ua.service", 0}, {"ua.service", 1000},
        {"ub.service", 0}, {"v1", 0},
        {"v2", 0},         {"l1", 0},
        {"l2", 0}, /* root of each machine */
        {"U1000", 1000},   {"U1001", 1001},
        {"?", 1000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
        for (size_t k = 0; k < i; k++) {
            struct program_key one = key_by(known, processes[i]);
            struct program_key other = key_by(known, processes[k]);

            if (one.exact == 0 || one.exact == other.exact || one.coarse == other.coarse)
                fail_msg("%s and %s", processes[i].cgroup, processes[k].cgroup);
        }
}

static void an_owner_that_is_not_known_has_no_key(void **state)
{
    static const struct process processes[] = {
        {"pnobody", 0}, {"pno-image", 0}, {"pnull-image", 0},          {"pno-namespace", 0},
        {"cnobody", 0}, {"cno-image", 0}, {"ss1", SAMPLE_UID_UNKNOWN}, {"?", SAMPLE_UID_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
        if (key_by(known, processes[i]).exact != 0)
            fail_msg("%s", processes[i].cgroup);
    assert_int_equal(key_by(NULL, (struct process){"pp1", 0}).exact, 0);
    assert_int_equal(key_by(NULL, (struct process){"cc1", 0}).exact, 0);
    assert_int_not_equal(key_by(NULL, (struct process){"ss1", 1000}).exact, 0);
}

static void names_that_come_later_give_the_key_then(void **state)
{
    struct names names[] = {{"p1", {.namespace = "ml", .image = ""}}, {0}};
    struct pipeline *pipeline = pipeline_of(names);

    (void)state;
    run_process(pipeline, &(struct process){"pp1", 0});
    assert_int_equal(key_of(pipeline).exact, 0);
    for (uint64_t tick = 1; tick <= 30; tick++)
        energy(pipeline, 0, T0 + tick * TICK, tick * 10 * JOULE);
    assert_int_equal(key_of(pipeline).exact, 0);
    names[0].names.image = "trainer:1";
    for (uint64_t tick = 31; tick <= 60; tick++)
        energy(pipeline, 0, T0 + tick * TICK, tick * 10 * JOULE);
    assert_int_equal(key_of(pipeline).exact, key_by(known, (struct process){"pp2", 0}).exact);
    pipeline_free(pipeline);
}

/* In `serve`, where the names of labels are the same. */
static void a_pipeline_with_names_uses_them(void **state)
{
    struct pipeline_options options = intensity_options();
    struct pipeline *pipeline;

    (void)state;
    options.find_owner = own_by_letter;
    options.find_names = find_names;
    options.names_context = (void *)known;
    pipeline = pipeline_with(options);
    run_process(pipeline, &(struct process){"pp1", 0});
    assert_int_equal(key_of(pipeline).exact, key_by(known, (struct process){"pp2", 0}).exact);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_owner_has_the_same_key),
        cmocka_unit_test(other_owners_have_other_keys),
        cmocka_unit_test(an_owner_that_is_not_known_has_no_key),
        cmocka_unit_test(names_that_come_later_give_the_key_then),
        cmocka_unit_test(a_pipeline_with_names_uses_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
