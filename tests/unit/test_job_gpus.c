/* identity/job_gpus: the GPUs of jobs and units, by device rules and environments. */
#include "node_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "identity/job_gpus.h"

#define A  "GPU-79185bc1-0000-4000-8000-000000000000"
#define B  "GPU-79185bc1-0000-4000-8000-000000000001"
#define M  "MIG-11111111-2222-3333-4444-555555555555"
#define Z  "\0"
#define V1 "c 1:* rwm\nc *:* m\nc 195:255 rwm\n"

/* "o1" an ordinal, "m1" a minor, "r128" a render node, "u..." a uuid; "?" before those that are not
 * verified. */
static const char *words(const struct gpu_access_list *gpus)
{
    static char text[1024];

    text[0] = '\0';
    for (size_t i = 0; i < gpus->count; i++) {
        const struct gpu_access *gpu = &gpus->items[i];

        sprintf(text + strlen(text), "%s%s%c", i ? " " : "", gpu->is_unverified ? "?" : "",
                gpu->kind == ALLOCATION_ORDINAL  ? 'o'
                : gpu->kind == ALLOCATION_MINOR  ? 'm'
                : gpu->kind == ALLOCATION_RENDER ? 'r'
                                                 : 'u');
        if (gpu->id[0])
            strcat(text, gpu->id);
        else
            sprintf(text + strlen(text), "%u", gpu->index);
        assert_int_equal(gpu->source, gpu->is_unverified ? ALLOCATED_BY_ENVIRONMENT
                                                         : ALLOCATED_BY_DEVICE_CGROUP);
    }
    return text;
}

struct environment_case {
    enum workload_kind kind;
    enum job_step step;
    struct span text;
    const char *expected;
};

#define ENV(literal)                                                                               \
    {                                                                                              \
        literal "", sizeof(literal) - 1,                                                           \
    }

static void environments_name_gpus_as_their_scheduler_does(void **state)
{
    static const struct environment_case cases[] = {
        /* As slurmstepd 22.05 writes them, with ConstrainDevices: these count from 0 for CUDA. */
        {WORKLOAD_SLURM, JOB_STEP_BATCH,
         ENV("SLURM_JOB_GPUS=1,2" Z "CUDA_VISIBLE_DEVICES=0,1" Z "GPU_DEVICE_ORDINAL=0,1" Z),
         "?o1 ?o2"},
        {WORKLOAD_SLURM, JOB_STEP_TASKS,
         ENV("SLURM_JOB_GPUS=1,2" Z "CUDA_VISIBLE_DEVICES=0" Z "SLURM_STEP_GPUS=2" Z), "?o2"},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_JOB_GPUS=1,2" Z), ""}, /* of another node */
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_STEP_GPUS=2" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_NONE, ENV("SLURM_JOB_GPUS=1" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=0-2,5" Z), "?o0 ?o1 ?o2 ?o5"},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("A=1" Z "SLURM_JOB_GPUS=3" Z "SLURM_JOB_GPUS=4" Z),
         "?o3"},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=1,NoDevFiles" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=1,,2" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=2-1" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=1-" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=64" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=0-18446744073709551615" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=+1" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=1"), "?o1"},
        /* With MIG the ordinals count MIG devices. */
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_JOB_GPUS=1" Z "CUDA_VISIBLE_DEVICES=" M Z),
         "?u" M},
        /* For Slurm it is a hint, and does not count. */
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("CUDA_VISIBLE_DEVICES=0" Z), ""},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("CUDA_VISIBLE_DEVICES=" A Z), ""},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=" A "," B Z), "?u" A " ?u" B},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=" A "\\," B Z), "?u" A " ?u" B},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=" M Z), "?u" M},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=GPU-7918" Z), ""},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=" A ",0" Z), ""},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=0" Z), ""},
        {WORKLOAD_PBS, JOB_STEP_NONE, ENV("SLURM_JOB_GPUS=0" Z), ""},
        {WORKLOAD_LSF, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=" B Z), "?u" B},
        {WORKLOAD_LSF, JOB_STEP_NONE, ENV("CUDA_VISIBLE_DEVICES=0,1" Z), ""},
        {WORKLOAD_LSF, JOB_STEP_NONE, ENV(""), ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct gpu_access_list gpus = {.count = 0};

        job_gpus_parse_environ(cases[i].kind, cases[i].step, cases[i].text, &gpus);
        if (strcmp(words(&gpus), cases[i].expected) != 0)
            fail_msg("case %zu: %s", i, words(&gpus));
    }
}

static void a_step_of_slurm_counts_its_gpus(void **state)
{
    static const struct {
        enum workload_kind kind;
        enum job_step step;
        struct span text;
        uint32_t expected;
    } cases[] = {
        /* As slurmstepd 22.05 writes them with --gpu-bind=single:1 and ConstrainDevices. */
        {WORKLOAD_SLURM, JOB_STEP_TASKS,
         ENV("SLURM_GPUS_ON_NODE=4" Z "SLURM_STEP_GPUS=0" Z "CUDA_VISIBLE_DEVICES=0" Z), 4},
        {WORKLOAD_SLURM, JOB_STEP_BATCH, ENV("SLURM_GPUS_ON_NODE=2" Z "SLURM_GPUS=8" Z), 2},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_GPUS_ON_NODE=64" Z), 64},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_GPUS_ON_NODE=65" Z), 0},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_GPUS_ON_NODE=gpu:2" Z), 0},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_GPUS_ON_NODE=" Z), 0},
        {WORKLOAD_SLURM, JOB_STEP_TASKS, ENV("SLURM_GPUS=8" Z), 0}, /* of all nodes */
        {WORKLOAD_SLURM, JOB_STEP_NONE, ENV("SLURM_GPUS_ON_NODE=4" Z), 0},
        {WORKLOAD_PBS, JOB_STEP_BATCH, ENV("SLURM_GPUS_ON_NODE=4" Z), 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (job_gpus_parse_count(cases[i].kind, cases[i].step, cases[i].text) != cases[i].expected)
            fail_msg("case %zu", i);
}

static void rules_prove_only_the_gpus_that_they_name(void **state)
{
    static const struct {
        const char *rules, *expected; /* NULL: they prove nothing */
    } cases[] = {
        {V1 "c 195:0 rwm\nc 195:3 rw\n", "m0 m3"},
        {V1, ""},              /* no GPU is allowed */
        {"a *:* rwm\n", NULL}, /* also of a cgroup that denies some */
        {"c *:* rwm\n", NULL}, /* as in the configuration that PBS comes with */
        {"c 195:* rwm\n", NULL},
        {"c 195:* rwm\nc 195:1 rwm\n", NULL},
        {"c 195:* m\nc 195:1 rwm\n", "m1"}, /* nodes may be made, but not opened */
        {"c 195:1 r\n", ""},
        {V1 "c 226:129 rwm\nc 226:1 rwm\nc 195:2 rwm\n", "m2 r129"},
        {"c 226:* rwm\nc 226:129 rwm\n", NULL},
        {"b 195:1 rwm\n", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct gpu_access_list gpus = {.count = 0};
        bool proves = job_gpus_read_rules(span_of(cases[i].rules), &gpus);

        if (proves != (cases[i].expected != NULL) ||
            strcmp(words(&gpus), proves ? cases[i].expected : "") != 0)
            fail_msg("'%s': %s", cases[i].rules, words(&gpus));
    }
}

static void the_step_is_that_of_the_cgroup(void **state)
{
    static const struct {
        const char *text;
        enum job_step step;
    } cases[] = {
        {"6:freezer:/slurm_n/uid_0/job_1/step_batch\n5:devices:/\n", JOB_STEP_BATCH},
        {"0::/system.slice/slurmstepd.scope/job_1/step_interactive/user/task_0\n", JOB_STEP_BATCH},
        {"0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n", JOB_STEP_TASKS},
        {"5:devices:/slurm/uid_0/job_1/step_12\n", JOB_STEP_TASKS},
        {"5:devices:/slurm/uid_0/job_1\n", JOB_STEP_NONE},
        {"0::/lsf/c/job.1.2.3\n", JOB_STEP_NONE},
        {"", JOB_STEP_NONE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (job_gpus_find_step(span_of(cases[i].text)) != cases[i].step)
            fail_msg("%s", cases[i].text);
}

/* From here on: a node of ordinary files. */

static void put_bytes(const struct node *node, const char *path, const char *text, size_t len)
{
    _cleanup_close_ int fd = tree_open(node->path, path);

    assert_int_equal(fs_write_all(fd, text, len), 0);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
}

static void put(const struct node *node, const char *path, const char *text)
{
    put_bytes(node, path, text, strlen(text));
}

/* Its variables, with spaces between them. */
static void put_process(const struct node *node, uint32_t pid, const char *cgroup,
                        const char *variables)
{
    char path[64], text[256];
    size_t len = strlen(variables) + 1;

    snprintf(path, sizeof(path), "proc/%u/cgroup", pid);
    put(node, path, cgroup);
    snprintf(path, sizeof(path), "proc/%u/environ", pid);
    assert_true(len <= sizeof(text));
    for (size_t i = 0; i < len; i++)
        text[i] = variables[i] == ' ' ? '\0' : variables[i];
    put_bytes(node, path, text, len);
}

static void put_rules(const struct node *node, const char *cgroup, const char *rules)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/fs/cgroup/devices%s/devices.list", cgroup);
    put(node, path, rules);
}

static void note(void *context, const struct attachment *attachment)
{
    char *text = context;

    assert_true(strlen(text) < 3000);
    sprintf(text + strlen(text), "%s %s %s%u; ", workload_words[attachment->owner_kind],
            attachment->owner_id, attachment->is_unverified ? "?" : "", attachment->index);
}

static const char *scan(struct node *node, uint64_t now_us)
{
    static char text[4096];

    text[0] = '\0';
    assert_int_equal(process_table_scan(node->table, false, NULL, NULL), 0);
    job_gpus_scan(&node->host, node->table, node->attachments, 16, 2000, now_us);
    attachments_each(node->attachments, now_us, note, text);
    return text;
}

#define JOB       "/slurm_n/uid_0/job_7"
#define IN(group) "6:freezer:" group "\n5:devices:" group "\n0::/\n"

static void the_rules_of_a_job_are_those_around_all_its_steps(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_batch/task_0"), "SLURM_JOB_GPUS=3");
    put_rules(node, JOB, V1 "c 195:0 rwm\nc 195:1 rwm\n");
    put_rules(node, JOB "/step_batch/task_0", V1 "c 195:0 rwm\n");
    assert_string_equal(scan(node, 1), "slurm 7 0; slurm 7 1; ");
}

static void an_environment_proves_nothing_against_rules(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_batch"), "SLURM_JOB_GPUS=0,1");
    put_rules(node, JOB, V1);
    assert_string_equal(scan(node, 1), "");
}

static void an_environment_counts_where_everything_is_allowed_or_cannot_be_read(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_batch"), "SLURM_JOB_GPUS=1");
    put_rules(node, JOB, "a *:* rwm\n");
    put_process(node, 20, "0::/system.slice/slurmstepd.scope/job_8/step_3/user/task_0\n",
                "SLURM_STEP_GPUS=2");
    put_process(node, 21, "0::/system.slice/slurmstepd.scope/job_8/step_4/user/task_0\n",
                "SLURM_STEP_GPUS=3");
    /* The devices controller has no cgroup of this job, so its rules are of something else. */
    put_process(node, 30, "6:freezer:/slurm_n/uid_0/job_9/step_batch\n5:devices:/x\n",
                "SLURM_JOB_GPUS=4");
    put_rules(node, "/x", V1 "c 195:0 rwm\n");
    assert_string_equal(scan(node, 1), "slurm 7 ?1; slurm 8 ?2; slurm 8 ?3; slurm 9 ?4; ");
}

static void a_job_that_shows_nothing_yet_is_asked_again_soon(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_batch"), "PATH=/bin");
    assert_string_equal(scan(node, USEC_PER_SEC), "");
    put_process(node, 10, IN(JOB "/step_batch"), "SLURM_JOB_GPUS=1");
    assert_string_equal(scan(node, 2 * USEC_PER_SEC), "");
    assert_string_equal(scan(node, 3 * USEC_PER_SEC), "slurm 7 ?1; ");
    put_process(node, 10, IN(JOB "/step_batch"), "PATH=/bin"); /* it executed something else */
    assert_string_equal(scan(node, 63 * USEC_PER_SEC), "slurm 7 ?1; ");
}

static void assert_count(struct node *node, struct job_gpus_count expected)
{
    struct job_gpus_count count = job_gpus_count(&node->host, node->table, 2000);

    assert_int_equal(count.jobs, expected.jobs);
    assert_int_equal(count.by_rules, expected.by_rules);
    assert_int_equal(count.by_environment, expected.by_environment);
    assert_int_equal(count.incomplete, expected.incomplete);
    assert_int_equal(count.unknown, expected.unknown);
    assert_int_equal(attachments_count_unknown(node->attachments), expected.unknown);
}

/* As with --gpu-bind: each task has one of the step's. */
static void a_job_has_the_gpus_of_all_its_tasks(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_0"), "SLURM_STEP_GPUS=2 SLURM_GPUS_ON_NODE=3");
    put_process(node, 11, IN(JOB "/step_0"), "SLURM_STEP_GPUS=0 SLURM_GPUS_ON_NODE=3");
    put_process(node, 12, IN(JOB "/step_1"), "SLURM_STEP_GPUS=1 SLURM_GPUS_ON_NODE=1");
    assert_string_equal(scan(node, 1), "slurm 7 ?2; slurm 7 ?0; slurm 7 ?1; ");
    assert_count(node, (struct job_gpus_count){.jobs = 1, .by_environment = 1});
}

/* Processes of one task hide those of the others, until the count says that there are more. */
static void a_job_that_counts_more_gpus_than_its_first_processes_name_is_read_on(void **state)
{
    struct node *node = *state;

    for (uint32_t pid = 100; pid < 140; pid++)
        put_process(node, pid, IN(JOB "/step_0"), "SLURM_STEP_GPUS=0 SLURM_GPUS_ON_NODE=2");
    put_process(node, 140, IN(JOB "/step_0"), "SLURM_STEP_GPUS=1 SLURM_GPUS_ON_NODE=2");
    for (uint32_t pid = 200; pid < 240; pid++)
        put_process(node, pid, IN("/slurm_n/uid_0/job_8/step_0"), "SLURM_STEP_GPUS=0");
    put_process(node, 240, IN("/slurm_n/uid_0/job_8/step_0"), "SLURM_STEP_GPUS=1");
    assert_string_equal(scan(node, 1), "slurm 7 ?0; slurm 7 ?1; slurm 8 ?0; ");
}

/* As slurmstepd 22.05 writes it with --gpu-bind and ConstrainDevices. Rules tell all. */
static void gpus_that_a_job_counts_and_nothing_names_are_counted(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_0"), "SLURM_STEP_GPUS=1 SLURM_GPUS_ON_NODE=4");
    put_process(node, 11, IN(JOB "/step_0"), "SLURM_STEP_GPUS=1 SLURM_GPUS_ON_NODE=4");
    put_process(node, 20, IN("/slurm_n/uid_0/job_8/step_0"), "SLURM_GPUS_ON_NODE=2");
    put_process(node, 30, IN("/slurm_n/uid_0/job_9/step_0"), "SLURM_GPUS_ON_NODE=2");
    put_rules(node, "/slurm_n/uid_0/job_9", V1 "c 195:0 rwm\n");
    assert_string_equal(scan(node, 1), "slurm 7 ?1; slurm 9 0; ");
    assert_count(node,
                 (struct job_gpus_count){
                     .jobs = 3, .by_rules = 1, .by_environment = 1, .incomplete = 2, .unknown = 5});
}

static void what_a_step_showed_stays_while_the_job_lasts(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN(JOB "/step_0"), "SLURM_STEP_GPUS=0");
    assert_string_equal(scan(node, 1), "slurm 7 ?0; ");
    put_process(node, 10, IN(JOB "/step_1"), "SLURM_STEP_GPUS=3");
    assert_string_equal(scan(node, 61 * USEC_PER_SEC), "slurm 7 ?3; slurm 7 ?0; ");
    put_process(node, 10, IN(JOB "/step_2"), "SLURM_GPUS_ON_NODE=3");
    assert_string_equal(scan(node, 122 * USEC_PER_SEC), "slurm 7 ?3; slurm 7 ?0; ");
    assert_int_equal(attachments_count_unknown(node->attachments), 1);
    put_rules(node, JOB, V1 "c 195:3 rwm\n"); /* these prove what it has */
    assert_string_equal(scan(node, 183 * USEC_PER_SEC), "slurm 7 3; ");
    assert_int_equal(attachments_count_unknown(node->attachments), 0);
}

static void jobs_of_lsf_and_pbs_and_units_are_read_alike(void **state)
{
    struct node *node = *state;

    put_process(node, 10, IN("/lsf/c/job.12.345.678"), "CUDA_VISIBLE_DEVICES=0");
    put_rules(node, "/lsf/c/job.12.345.678", V1 "c 195:2 rw\n");
    put_process(node, 20, IN("/pbs_jobs.service/jobid/5.server"), "CUDA_VISIBLE_DEVICES=" A);
    put_process(node, 30, IN("/system.slice/inference.service"), "SLURM_JOB_GPUS=3");
    put_rules(node, "/system.slice/inference.service", V1 "c 195:4 rwm\n");
    put_process(node, 40, IN("/system.slice/ssh.service"), "SLURM_JOB_GPUS=3");
    put_rules(node, "/system.slice/ssh.service", "a *:* rwm\n");
    assert_string_equal(scan(node, 1), "lsf 12 2; pbs 5.server ?0; unit inference.service 4; ");
}

/* What looks like a job below what a tenant may name is not one. */
static void a_tenant_cannot_have_gpus_as_another_ones_job(void **state)
{
    struct node *node = *state;

    put_process(node, 10,
                "0::/user.slice/user-1000.slice/user@1000.service//1000/slurm/uid_0/job_7/"
                "step_batch\n",
                "SLURM_JOB_GPUS=1");
    put_process(node, 20,
                "0::/docker/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"
                "slurm/uid_0/job_7/step_batch\n",
                "SLURM_JOB_GPUS=2");
    assert_null(strstr(scan(node, 1), "slurm 7 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environments_name_gpus_as_their_scheduler_does),
        cmocka_unit_test(a_step_of_slurm_counts_its_gpus),
        cmocka_unit_test(rules_prove_only_the_gpus_that_they_name),
        cmocka_unit_test(the_step_is_that_of_the_cgroup),
        node_test(the_rules_of_a_job_are_those_around_all_its_steps),
        node_test(an_environment_proves_nothing_against_rules),
        node_test(an_environment_counts_where_everything_is_allowed_or_cannot_be_read),
        node_test(a_job_that_shows_nothing_yet_is_asked_again_soon),
        node_test(a_job_has_the_gpus_of_all_its_tasks),
        node_test(a_job_that_counts_more_gpus_than_its_first_processes_name_is_read_on),
        node_test(gpus_that_a_job_counts_and_nothing_names_are_counted),
        node_test(what_a_step_showed_stays_while_the_job_lasts),
        node_test(jobs_of_lsf_and_pbs_and_units_are_read_alike),
        node_test(a_tenant_cannot_have_gpus_as_another_ones_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
