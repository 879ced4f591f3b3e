/* identity/details and its parsers: jobs, virtual machines and users. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "identity/details.h"

#define UUID "c5b0a1de-0000-4000-8000-00000000beef"

/* Texts with NULs between and, as /proc has them, behind. */
#define BYTES(text) ((struct span){text, sizeof(text)})

static void assert_text(struct details *details, enum workload_text which, const char *expected)
{
    assert_string_equal(details->texts[which] ? details->texts[which] : "", expected);
}

static void assert_job(enum workload_kind kind, struct span environment, const char *id,
                       const char *name, const char *account)
{
    struct details details = {0};

    details_parse_environ(kind, environment, details.texts);
    assert_text(&details, WORKLOAD_TEXT_JOB_ID, id);
    assert_text(&details, WORKLOAD_TEXT_JOB_NAME, name);
    assert_text(&details, WORKLOAD_TEXT_ACCOUNT, account);
    details_done(&details);
}

static void a_job_is_described_by_its_environment(void **state)
{
    static const struct {
        struct span environment;
        const char *id, *name, *account;
    } cases[] = {
        {BYTES("PATH=/bin\0SLURM_JOB_ID=211\0SLURM_JOB_NAME=fine tune\0SLURM_JOB_ACCOUNT=physics"),
         "211", "fine tune", "physics"},
        {BYTES("SLURM_JOB_NAME=a=b"), "", "a=b", ""},
        {BYTES("SLURM_JOB_NAME=first\0SLURM_JOB_NAME=second"), "", "first", ""},
        {BYTES("SLURM_JOB_ID=12x\0SLURM_JOB_ID=-1\0SLURM_JOB_ID="), "", "", ""},
        {BYTES("XSLURM_JOB_ID=1\0SLURM_JOB_IDX=2\0SLURM_JOB_ID"), "", "", ""},
        {BYTES("\0\0\0=\0=="), "", "", ""},
        {{"SLURM_JOB_ACCOUNT=cut", 21}, "", "", "cut"}, /* no NUL at the end of what was read */
        {{"", 0}, "", "", ""},
    };
    static char longest[300] = "SLURM_JOB_NAME=";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_job(WORKLOAD_SLURM, cases[i].environment, cases[i].id, cases[i].name,
                   cases[i].account);
    memset(longest + strlen(longest), 'x', 256); /* one byte too many: none, not a shorter one */
    assert_job(WORKLOAD_SLURM, span_of(longest), "", "", "");
    longest[strlen(longest) - 1] = '\0';
    assert_job(WORKLOAD_SLURM, span_of(longest), "", longest + strlen("SLURM_JOB_NAME="), "");
}

static void a_job_is_described_by_the_variables_of_its_own_scheduler(void **state)
{
    static const char environment[] = "LSB_JOBID=7\0LSB_JOBNAME=a[1-9]\0LSB_PROJECT_NAME=p\0"
                                      "PBS_JOBID=8.s\0PBS_JOBNAME=b\0PBS_ACCOUNT=q\0SLURM_JOB_ID=9";

    (void)state;
    assert_job(WORKLOAD_LSF, BYTES(environment), "", "a[1-9]", "p"); /* the cgroup has the id */
    assert_job(WORKLOAD_PBS, BYTES(environment), "", "b", "q");
}

static void a_virtual_machine_is_described_by_its_command_line(void **state)
{
    static const struct {
        struct span cmdline;
        const char *name, *uuid;
    } cases[] = {
        {BYTES(
             "/usr/bin/qemu-system-x86_64\0-name\0guest=web01,debug-threads=on\0-S\0-uuid\0" UUID),
         "web01", UUID},
        {BYTES("qemu\0-name\0plain"), "plain", ""},
        {BYTES("qemu\0-name\0guest=a,,b,process=x"), "a,b", ""},
        {BYTES("qemu\0-name\0guest=a,"), "a", ""},
        {BYTES("qemu\0-name\0,x"), "", ""},
        {BYTES("qemu\0-name\0a\0-name\0b"), "b", ""},
        {BYTES("qemu\0-uuid\0" UUID "0\0-uuid\0zzzz"), "", ""},
        {BYTES("qemu\0-uuid\0c5b0a1de-0000-4000-8000+00000000beef"), "", ""},
        {BYTES("qemu\0-name"), "", ""},
        {{"", 0}, "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct details details = {0};

        details_parse_cmdline(cases[i].cmdline, details.texts);
        assert_text(&details, WORKLOAD_TEXT_NAME, cases[i].name);
        assert_text(&details, WORKLOAD_TEXT_UUID, cases[i].uuid);
        details_done(&details);
    }
}

static void users_have_the_names_of_the_passwd_file(void **state)
{
    static const char text[] = "root:x:0:0:root:/root:/bin/sh\n"
                               "broken\n::5:\nalice:x:1000:1000::/home/alice:/bin/sh\n"
                               "twin:x:1000:1000::/:\nminus:x:-1:0::/:\nbig:x:4294967296:0::/:\n"
                               "last:x:7";
    char name[32] = "untouched";

    (void)state;
    assert_true(passwd_find(span_of(text), 0, name, sizeof(name)));
    assert_string_equal(name, "root");
    assert_true(passwd_find(span_of(text), 1000, name, sizeof(name)));
    assert_string_equal(name, "alice");
    assert_true(passwd_find(span_of(text), 7, name, sizeof(name)));
    assert_string_equal(name, "last");
    assert_false(passwd_find(span_of(text), 5, name, sizeof(name)));
    assert_false(passwd_find(span_of(text), UINT32_MAX, name, sizeof(name)));
    assert_false(passwd_find(span_of(text), 1000, name, 4)); /* it would not fit */
    assert_string_equal(name, "last");
}

/* A machine of one process, pid 7, with its files below a directory of its own. */
struct machine {
    char path[64];
    struct host host;
};

static void put(const struct machine *machine, const char *name, const char *data, size_t len)
{
    file_write_at(machine->host.procfs_fd, name, data, len);
}

static struct machine new_machine(const char *cgroup)
{
    struct machine machine = {.path = "/tmp/wattribute-XXXXXX"};
    static const char passwd[] = "alice:x:1000:1000::/home/alice:/bin/sh\n";
    static const char status[] = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n";
    char path[96];
    int fd;

    assert_non_null(mkdtemp(machine.path));
    snprintf(path, sizeof(path), "%s/7", machine.path);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/etc", machine.path);
    mkdir(path, 0755);
    fd = open(machine.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    machine.host = (struct host){.procfs_fd = fd, .sysfs_fd = -1, .rootfs_fd = fd};
    put(&machine, "etc/passwd", passwd, strlen(passwd));
    put(&machine, "7/status", status, strlen(status));
    put(&machine, "7/cgroup", cgroup, strlen(cgroup));
    return machine;
}

static void remove_machine(struct machine *machine)
{
    static const char *const names[] = {"7/status", "7/cgroup", "7/environ", "7/cmdline",
                                        "etc/passwd"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unlinkat(machine->host.procfs_fd, names[i], 0);
    unlinkat(machine->host.procfs_fd, "7", AT_REMOVEDIR);
    unlinkat(machine->host.procfs_fd, "etc", AT_REMOVEDIR);
    close(machine->host.procfs_fd);
    assert_int_equal(rmdir(machine->path), 0);
}

static void a_job_has_its_user_by_uid_and_its_name_from_its_environment(void **state)
{
    static const char environment[] = "SLURM_JOB_ID=999\0SLURM_JOB_NAME=train\0SLURM_JOB_ACCOUNT=a";
    struct machine machine = new_machine("4:memory:/slurm/uid_1000/job_211/step_0\n0::/\n");
    const struct workload_owner owner = {.kind = WORKLOAD_SLURM, .id = "211"};
    struct details details;

    (void)state;
    put(&machine, "7/environ", environment, sizeof(environment));
    assert_int_equal(details_read(&machine.host, 7, &owner, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_USER], "alice");
    assert_string_equal(details.texts[WORKLOAD_TEXT_JOB_ID],
                        "211"); /* the cgroup's, whatever is in the environment */
    assert_false(details.job_id_unverified);
    assert_string_equal(details.texts[WORKLOAD_TEXT_JOB_NAME], "train");
    assert_string_equal(details.texts[WORKLOAD_TEXT_ACCOUNT], "a");
    details_done(&details);
    remove_machine(&machine);
}

static void a_job_that_slurm_calls_otherwise_has_its_number_from_the_environment(void **state)
{
    static const char environment[] = "SLURM_JOB_ID=999";
    struct machine machine =
        new_machine("0::/system.slice/slurmstepd.scope/s09NKSR4923V05/step_0/user/task_0\n");
    const struct workload_owner owner = {.kind = WORKLOAD_SLURM, .id = "s09NKSR4923V05"};
    struct details details;

    (void)state;
    put(&machine, "7/environ", environment, sizeof(environment));
    assert_int_equal(details_read(&machine.host, 7, &owner, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_JOB_ID], "999");
    assert_true(details.job_id_unverified);
    details_done(&details);
    remove_machine(&machine);
}

static void a_job_of_pbs_has_its_id_from_the_cgroup_alone(void **state)
{
    static const char environment[] = "PBS_JOBID=999.s\0PBS_JOBNAME=train\0PBS_ACCOUNT=a";
    struct machine machine = new_machine("0::/pbs_jobs.service/jobs/7[3].s\n");
    struct workload_owner owner = {.kind = WORKLOAD_PBS, .id = "7[3].s"};
    struct details details;

    (void)state;
    put(&machine, "7/environ", environment, sizeof(environment));
    assert_int_equal(details_read(&machine.host, 7, &owner, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_USER], "alice");
    assert_string_equal(details.texts[WORKLOAD_TEXT_JOB_ID], "7[3].s");
    assert_false(details.job_id_unverified);
    assert_string_equal(details.texts[WORKLOAD_TEXT_JOB_NAME], "train");
    assert_string_equal(details.texts[WORKLOAD_TEXT_ACCOUNT], "a");
    details_done(&details);

    put(&machine, "7/cgroup", "0::/lxc.payload.a/pbs_jobs.service/jobs/8.s\n", 44);
    owner = (struct workload_owner){.kind = WORKLOAD_PBS, .id = "lxc:a/8.s"};
    assert_int_equal(details_read(&machine.host, 7, &owner, 10000, &details), 0);
    assert_null(details.texts[WORKLOAD_TEXT_JOB_ID]); /* named inside that machine */
    details_done(&details);
    remove_machine(&machine);
}

static void a_process_that_belongs_to_another_by_now_is_not_read(void **state)
{
    struct machine machine = new_machine("4:memory:/slurm/uid_1000/job_212/step_0\n0::/\n");
    const struct workload_owner owner = {.kind = WORKLOAD_SLURM, .id = "211"};
    const struct workload_owner unit = {.kind = WORKLOAD_UNIT, .id = "a.service"};
    struct details details;

    (void)state;
    put(&machine, "7/environ", "SLURM_JOB_NAME=other", 20);
    assert_int_equal(details_read(&machine.host, 7, &owner, 10000, &details), -ESRCH);
    assert_int_equal(details_read(&machine.host, 8, &owner, 10000, &details), -ESRCH);
    assert_int_equal(details_read(&machine.host, 7, &unit, 10000, &details), -ENODATA);
    remove_machine(&machine);
}

static void a_vm_has_its_uuid_and_a_user_its_name(void **state)
{
    static const char cmdline[] = "qemu\0-name\0guest=web01\0-uuid\0" UUID;
    struct machine machine =
        new_machine("0::/machine.slice/machine-qemu\\x2d1\\x2dweb01.scope/libvirt/emulator\n");
    const struct workload_owner vm = {.kind = WORKLOAD_VM, .id = "web01"};
    const struct workload_owner alice = {.kind = WORKLOAD_USER, .id = "1000"};
    const struct workload_owner nobody = {.kind = WORKLOAD_USER, .id = "4711"};
    struct details details;

    (void)state;
    put(&machine, "7/cmdline", cmdline, sizeof(cmdline));
    assert_int_equal(details_read(&machine.host, 7, &vm, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_NAME], "web01");
    assert_string_equal(details.texts[WORKLOAD_TEXT_UUID], UUID);
    details_done(&details);
    assert_int_equal(details_read(&machine.host, 7, &alice, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_USER], "alice");
    details_done(&details);
    assert_int_equal(details_read(&machine.host, 7, &nobody, 10000, &details), 0);
    assert_string_equal(details.texts[WORKLOAD_TEXT_USER], "4711");
    details_done(&details);
    remove_machine(&machine);
}

static void a_helper_of_a_machine_is_not_the_last_that_is_asked(void **state)
{
    static const char cgroup[] = "0::/machine.slice/machine-qemu\\x2d1\\x2dweb01.scope\n";
    const struct workload_owner vm = {.kind = WORKLOAD_VM, .id = "web01"};
    static const char cmdline[] = "swtpm\0socket";
    struct machine machine = new_machine(cgroup);
    struct details details;

    (void)state;
    put(&machine, "7/cmdline", cmdline, sizeof(cmdline));
    assert_int_equal(details_read(&machine.host, 7, &vm, 2000, &details), 0);
    assert_false(details.complete);
    details_done(&details);
    remove_machine(&machine);
}

/* As if it held the lock that readers of its memory wait for: a pipe without a writer. */
static void a_process_that_blocks_its_readers_costs_its_details_until_it_lets_them(void **state)
{
    static const char cmdline[] = "qemu\0-name\0guest=web01";
    struct machine machine = new_machine("0::/slurm/uid_1000/job_211/step_0\n");
    const struct workload_owner job = {.kind = WORKLOAD_SLURM, .id = "211"};
    const struct workload_owner vm = {.kind = WORKLOAD_VM, .id = "web01"};
    static const char vm_cgroup[] = "0::/machine.slice/machine-qemu\\x2d1\\x2dweb01.scope\n";
    struct details details;

    (void)state;
    assert_int_equal(mkfifoat(machine.host.procfs_fd, "7/environ", 0600), 0);
    assert_int_equal(mkfifoat(machine.host.procfs_fd, "7/cmdline", 0600), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(details_read(&machine.host, 7, &job, 1, &details), 0);
        assert_string_equal(details.texts[WORKLOAD_TEXT_USER], "alice");
        assert_null(details.texts[WORKLOAD_TEXT_JOB_NAME]);
        assert_false(details.complete);
        details_done(&details);
    }
    put(&machine, "7/cgroup", vm_cgroup, strlen(vm_cgroup));
    assert_int_equal(details_read(&machine.host, 7, &vm, 1, &details), 0);
    assert_null(details.texts[WORKLOAD_TEXT_NAME]);
    assert_false(details.complete);
    details_done(&details);

    close(openat(machine.host.procfs_fd, "7/environ", O_WRONLY | O_CLOEXEC));
    close(openat(machine.host.procfs_fd, "7/cmdline", O_WRONLY | O_CLOEXEC));
    unlinkat(machine.host.procfs_fd, "7/cmdline", 0);
    put(&machine, "7/cmdline", cmdline, sizeof(cmdline));
    for (bool complete = false; !complete; details_done(&details)) { /* the other read is ending */
        assert_int_equal(details_read(&machine.host, 7, &vm, 10000, &details), 0);
        complete = details.complete;
        if (complete)
            assert_string_equal(details.texts[WORKLOAD_TEXT_NAME], "web01");
    }
    remove_machine(&machine);
}

static void the_store_keeps_the_first_details_until_they_are_unused(void **state)
{
    struct table store = {0};

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct details details = {.kind = WORKLOAD_SLURM, .used_us = i};
        char id[16];

        snprintf(id, sizeof(id), "%u", i);
        details.id = strdup(id);
        details.texts[WORKLOAD_TEXT_ACCOUNT] = strdup("first");
        details_add(&store, &details);
        details = (struct details){.kind = WORKLOAD_SLURM, .id = strdup(id)};
        details.texts[WORKLOAD_TEXT_ACCOUNT] = strdup("second");
        details_add(&store, &details);
        assert_null(details.id); /* taken over, or freed */
    }
    assert_int_equal(store.count, 100);
    assert_string_equal(details_find(&store, WORKLOAD_SLURM, "42")->texts[WORKLOAD_TEXT_ACCOUNT],
                        "first");
    assert_null(details_find(&store, WORKLOAD_VM, "42"));
    details_expire(&store, 42);
    assert_int_equal(store.count, 58);
    assert_null(details_find(&store, WORKLOAD_SLURM, "41"));
    assert_non_null(details_find(&store, WORKLOAD_SLURM, "42"));
    details_store_done(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_described_by_its_environment),
        cmocka_unit_test(a_job_is_described_by_the_variables_of_its_own_scheduler),
        cmocka_unit_test(a_virtual_machine_is_described_by_its_command_line),
        cmocka_unit_test(users_have_the_names_of_the_passwd_file),
        cmocka_unit_test(a_job_has_its_user_by_uid_and_its_name_from_its_environment),
        cmocka_unit_test(a_job_that_slurm_calls_otherwise_has_its_number_from_the_environment),
        cmocka_unit_test(a_job_of_pbs_has_its_id_from_the_cgroup_alone),
        cmocka_unit_test(a_process_that_belongs_to_another_by_now_is_not_read),
        cmocka_unit_test(a_vm_has_its_uuid_and_a_user_its_name),
        cmocka_unit_test(a_helper_of_a_machine_is_not_the_last_that_is_asked),
        cmocka_unit_test(a_process_that_blocks_its_readers_costs_its_details_until_it_lets_them),
        cmocka_unit_test(the_store_keeps_the_first_details_until_they_are_unused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
