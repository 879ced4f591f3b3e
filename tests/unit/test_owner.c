#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "cgroup_rows.h"
#include "core/macros.h"
#include "identity/owner.h"

#define USER_1000   "/user.slice/user-1000.slice/user@1000.service"
#define SLURM_STEP  "/system.slice/slurmstepd.scope/job_211/step_0"
#define SERVICE     "/system.slice/batch.service"
#define UID_UNKNOWN OWNER_UID_UNKNOWN

static const char *describe(const struct workload_owner *owner, char *text, size_t size)
{
    snprintf(text, size, "%s %s%s%s%s%s", workload_words[owner->kind], owner->id,
             owner->container_is_claim ? " claim="
             : owner->container_id[0]  ? " container="
                                       : "",
             owner->container_id, owner->pod_uid[0] ? " pod=" : "", owner->pod_uid);
    return text;
}

static void the_innermost_pod_job_or_vm_is_the_owner_else_the_container_else_the_unit_or_user(
    void **state)
{
    static const struct {
        const char *cgroup;
        uint32_t uid;
        const char *owner;
    } cases[] = {
        {"/kubepods/burstable/pod" U1 "/" C2, 0, "pod " C2 " container=" C2 " pod=" U1},
        {"/kubepods/burstable/pod" U1, 0, "pod " U1 " pod=" U1},
        {"/kubepods/burstable/pod" U1 "/" C1 "/docker/" C2, 0,
         "pod " C1 " container=" C1 " pod=" U1},
        {"/docker/" C1, 1000, "container " C1 " container=" C1},
        {"/ecs/" T1 "/" T1 "-3054012820", 0,
         "container " T1 "-3054012820 container=" T1 "-3054012820"},
        {"/slurm/uid_1000/job_211/step_0/task_3", 1000, "slurm 211"},
        {"/system.slice/slurmstepd.scope/s09NKSR4923V05/step_0/user/task_0", 1000,
         "slurm s09NKSR4923V05"},
        {"/lsf/cluster1/job.1009249[3].35464.1775318445", 1000, "lsf 1009249[3]"},
        {"/pbs_jobs.service/jobid/12345[7].server", 1000, "pbs 12345[7].server"},
        {"/qemu.slice/100.scope", 0, "vm 100"},
        {"/lxc.payload.web01/system.slice/nginx.service", 0, "lxc web01"},
        {"/machine.slice/machine-web.scope/payload", 0, "nspawn web"},
        {"/system.slice/nginx.service", 33, "unit nginx.service"},
        {"/init.scope", 0, "unit init.scope"},
        {"/user.slice/user-1000.slice/session-2.scope", 0, "user 1000"}, /* by sudo */
        {USER_1000 "/app.slice/app-firefox-1234.scope", 1000, "user 1000"},
        {"/user.slice/user-0.slice/session-2.scope", 0, "system system"},

        /* A container in a job or VM is a label: if the node's own services named it. */
        {SLURM_STEP "/user/task_0/docker/" C1, 1000, "slurm 211 container=" C1},
        {SLURM_STEP "/user/task_0/docker/" C1 "/docker/" C2, 1000, "slurm 211 container=" C1},
        {"/slurm/uid_1000/job_7/step_0/docker/" C1, 1000, "slurm 7 claim=" C1},
        {"/lsf/c1/job.7.1.2/docker/" C1, 1000, "lsf 7 claim=" C1},
        {"/qemu.slice/100.scope/docker/" C1, 0, "vm 100 container=" C1},
        {"2:memory:/docker/" C1 "\n1:cpu:/slurm/uid_1000/job_7\n", 0, "slurm 7 container=" C1},

        /* Innermost. */
        {"/kubepods/pod" U1 "/" C1 "/slurmstepd.scope/job_7/step_0/user/task_0", 0,
         "slurm " C1 "/7 container=" C1},
        {SLURM_STEP "/user/task_0/kubepods/pod" U1 "/" C2, 0,
         "pod " C2 " container=" C2 " pod=" U1},

        /* In a tenant's scope. */
        {"/docker/" C1 "/kubelet/kubepods/besteffort/pod" U1 "/" C2, 0, "pod " C1 "/" C2},
        {"/docker/" C1 "/kubepods/pod" U1, 0, "pod " C1 "/" U1},
        {"/docker/" C1 "/docker/" C2, 0, "container " C1 "/" C2},
        {"/docker/" C1 "/slurm/uid_0/job_7", 0, "slurm " C1 "/7 container=" C1},
        {"/docker/" C1 "/docker/" C2 "/slurm/uid_0/job_7", 0, "slurm " C1 "/7 container=" C1},
        {"/lxc.payload.ci/docker/" C1, 0, "container lxc:ci/" C1},
        {"/lxc.payload.a/lxc.payload.b", 0, "lxc lxc:a/b"},
        {"/slurm/uid_1000/job_7/step_0/kubepods/pod" U1 "/" C2, 1000, "pod slurm:7/" C2},
        {USER_1000 "/user.slice/libpod-" C3 ".scope/container", 1000, "container 1000/" C3},
        {USER_1000 "/slurm/uid_0/job_7/step_0/task_0", 1000, "slurm 1000/7"},
        {USER_1000 "/machine.slice/machine-qemu\\x2d2\\x2dweb.scope", 1000, "vm 1000/web"},
        {USER_1000 "/pbs_jobs.service/jobid/123.server", 1000, "pbs 1000/123.server"},
        {"/pbs_jobs.service/jobid/7.s/pbs_jobs.service/jobid/8.s", 1000, "pbs pbs:7.s/8.s"},
        {USER_1000 "/lxc.payload.web", 1000, "lxc 1000/web"},
        {USER_1000 "/machine.slice/machine-web.scope", 1000, "nspawn 1000/web"},

        /* Below a directory that root does not own: rootless containers and machines, no pods, jobs
         * or VMs. */
        {SERVICE "//1000", 1000, "unit batch.service"},
        {SERVICE "//1000/libpod-payload-" C3, 1000, "container 1000/" C3},
        {SERVICE "//1000/kubepods/pod" U1 "/" C2, 1000, "container 1000/" C2},
        {SERVICE "//1000/kubepods/pod" U1, 1000, "unit batch.service"},
        {SERVICE "//1000/slurm/uid_0/job_7/step_0", 1000, "unit batch.service"},
        {SERVICE "//1000/lsf/c1/job.7.1.2", 1000, "unit batch.service"},
        {SERVICE "//1000/pbs_jobs.service/jobid/7.s", 1000, "unit batch.service"},
        {SERVICE "//1000/machine.slice/machine-qemu\\x2d2\\x2dweb.scope", 1000,
         "unit batch.service"},
        {SERVICE "//1000/qemu.slice/100.scope", 1000, "unit batch.service"},
        {SERVICE "//1000/lxc.payload.web", 1000, "lxc 1000/web"},
        {SERVICE "//1000/systemd-nspawn@web.service", 1000, "nspawn 1000/web"},
        {SERVICE "//1000/libpod-conmon-" C3 ".scope", 1000, "unit batch.service"},
        {"/batch/slot_17//1000", 0, "user 1000"},
        {"/batch/slot_17//1000/docker/" C1, 0, "container 1000/" C1},
        {"/batch/slot_17//1000/kubepods/pod" U1, 0, "user 1000"},
        {"/batch/slot_17//1000/system.slice/nginx.service", 0, "user 1000"},
        {"/batch.slice//1000/nginx.service", 0, "user 1000"},
        {"/batch/slot_17//0/docker/" C1, 33, "user 33"}, /* anybody may write there */
        {"/system.slice/batch.service//0/docker/" C1, 33, "unit batch.service"},
        {"/docker/" C2 "//0/docker/" C1, 33, "container " C2 " container=" C2},
        {"/batch/slot_17//0", 33, "user 33"},
        {"/docker/" C1 "//100000/docker/" C2, 0, "container " C1 "/" C2},
        {"/docker/" C1 "//100000/kubepods/pod" U1 "/" C2, 0, "container " C1 "/" C2},
        {"/docker/" C1 "//100000/slurm/uid_0/job_7", 0, "container " C1 " container=" C1},
        {"/kubepods/pod" U1 "/" C1 "//100000/init.scope", 0, "pod " C1 " container=" C1 " pod=" U1},
        {"/kubepods/pod" U1 "//1000/" C1, 0, "pod " U1 " pod=" U1},
        {"/lxc.payload.ci//100000/docker/" C1, 0, "container lxc:ci/" C1},
        {"/machine.slice/systemd-nspawn@web.service//1000/supervisor", 0, "nspawn web"},
        {"/machine.slice/systemd-nspawn@web.service/payload//100000/init.scope", 0, "nspawn web"},
        {"/slurm/uid_1000/job_7/step_0//1000/task_0", 1000, "slurm 7"},
        {"/slurm/uid_1000/job_7/step_0//1000/docker/" C1, 1000, "slurm 7 claim=" C1},
        {"/slurm/uid_1000//1000/job_7", 1000, "user 1000"},
        {USER_1000 "//1000/user.slice/libpod-" C3 ".scope/container", 1000, "container 1000/" C3},
        {USER_1000 "//1000/app.slice/app-firefox-1234.scope", 1000, "user 1000"},
        {USER_1000 "//1000/slurm/uid_0/job_7/step_0", 1000, "user 1000"},
        {USER_1000 "//1000/user.slice/libpod-conmon-" C3 ".scope", UID_UNKNOWN, "user 1000"},
        /* A line that a user owns does not count against one that root does. */
        {"2:memory:/docker/" C1 "\n1:name=systemd:" SERVICE "//1000/docker/" C2 "\n", 0,
         "container " C1 " container=" C1},
        {"2:memory:/slurm/uid_1000/job_7\n1:name=systemd:" SERVICE "//1000/docker/" C2 "\n", 0,
         "slurm 7"},
        {"2:memory:" SERVICE "\n1:name=systemd:" SERVICE "//1000/docker/" C2 "\n", 0,
         "container 1000/" C2},

        /* Monitors. */
        {"/kubepods/burstable/pod" U1 "/crio-conmon-" C2, 0, "system system"},
        {"/kubepods.slice/kubepods-pod" V1 ".slice/crio-conmon-" C2 ".scope", 0, "system system"},
        {"/system.slice/crio.service/crio-conmon-" C2, 0, "unit crio.service"},
        {SLURM_STEP "/slurm", 0, "unit slurmstepd.scope"},
        {"/machine.slice/systemd-nspawn@web.service/supervisor", 0,
         "unit systemd-nspawn@web.service"},
        {"/lxc.monitor.web01", 0, "system system"},
        {USER_1000 "/user.slice/libpod-conmon-" C3 ".scope", UID_UNKNOWN, "user 1000"},
        {"/libpod_parent/conmon", 1000, "user 1000"},

        /* The user, where nothing else is known. */
        {"/", 0, "system system"},
        {"/", 1000, "user 1000"},
        {"/", UID_UNKNOWN, "system system"},
        {"/default/web1", 4294967294, "user 4294967294"},
        {"0::/../../system.slice/nginx.service\n", 1000, "user 1000"},
        {"0::/../../system.slice/nginx.service\n", UID_UNKNOWN, "system system"},
        {"", 1000, "user 1000"},
        {"garbage", 0, "system system"},
        {"", UID_UNKNOWN, "process "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct workload_owner owner;
        char text[1024];

        owner_find_by_cgroup_file(span_of(cases[i].cgroup), cases[i].uid, &owner);
        if (strcmp(describe(&owner, text, sizeof(text)), cases[i].owner) != 0)
            fail_msg("%s\n  is     %s\n  not    %s", cases[i].cgroup, text, cases[i].owner);
        assert_true(!strchr(owner.id, '/') == !strchr(text, '/'));
    }
}

/* Whatever tenants make below the point that they own, they are charged for it. */
static void nothing_gets_out_of_a_scope_whatever_it_is_named(void **state)
{
    static const struct {
        const char *point;
        enum workload_kind kind;
        const char *id, *scope;
    } strangers[] = {
        {USER_1000, WORKLOAD_USER, "1000", "1000/"},
        {"/user.slice/user-1000.slice/session-2.scope", WORKLOAD_USER, "1000", "1000/"},
        {"/docker/" C4, WORKLOAD_CONTAINER, C4, C4 "/"},
        {"/system.slice/docker-" C4 ".scope", WORKLOAD_CONTAINER, C4, C4 "/"},
        {"/kubepods/pod" U1 "/" C4, WORKLOAD_POD, C4, C4 "/"},
        {"/kubepods.slice/kubepods-pod" V1 ".slice/crio-" C4 ".scope/container", WORKLOAD_POD, C4,
         C4 "/"},
        {"/lxc.payload.tenant", WORKLOAD_LXC, "tenant", "lxc:tenant/"},
        {"/lxc/slurm", WORKLOAD_LXC, "slurm", "lxc:slurm/"},
        {"/machine.slice/machine-web.scope/payload", WORKLOAD_NSPAWN, "web", "nspawn:web/"},
        {"/slurm/uid_1000/job_7/step_0", WORKLOAD_SLURM, "7", "slurm:7/"},
        {"/lsf/c1/job.7.1.2", WORKLOAD_LSF, "7", "lsf:7/"},
        {"/pbs_jobs.service/jobs/7.s", WORKLOAD_PBS, "7.s", "pbs:7.s/"},
        {SERVICE "//1000", WORKLOAD_UNIT, "batch.service", "1000/"},
        {SERVICE "/a//1000", WORKLOAD_UNIT, "batch.service", "1000/"},
        {"/init.scope//1000", WORKLOAD_UNIT, "init.scope", "1000/"},
        {"/batch/slot_17//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/batch.slice//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/slurm//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/kubepods/burstable//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/lxc//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/qemu.slice//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/pbs_jobs.service/jobid//1000", WORKLOAD_UNIT, "pbs_jobs.service", "1000/"},
        {"/lsf/cluster//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/ecs//1000", WORKLOAD_USER, "1000", "1000/"},
        {USER_1000 "//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/user.slice/user-1000.slice/session-2.scope//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/user.slice/user-1000.slice//1000", WORKLOAD_USER, "1000", "1000/"},
        {"/docker/" C4 "//100000", WORKLOAD_CONTAINER, C4, C4 "/"},
        {"/system.slice/docker-" C4 ".scope//100000", WORKLOAD_CONTAINER, C4, C4 "/"},
        {"/machine.slice/libpod-" C4 ".scope/container//100000", WORKLOAD_CONTAINER, C4, C4 "/"},
        {"/kubepods/pod" U1 "/" C4 "//100000", WORKLOAD_POD, C4, C4 "/"},
        {"/lxc.payload.tenant//100000", WORKLOAD_LXC, "tenant", "lxc:tenant/"},
        {"/machine.slice/machine-web.scope/payload//100000", WORKLOAD_NSPAWN, "web", "nspawn:web/"},
        {"/slurm/uid_1000/job_7/step_0//1000", WORKLOAD_SLURM, "7", "slurm:7/"},
        {"/system.slice/slurmstepd.scope/job_7/step_0//1000", WORKLOAD_SLURM, "7", "1000/"},
        {"/qemu.slice/100.scope//1000", WORKLOAD_VM, "100", "1000/"},
    };

    (void)state;
    for (size_t s = 0; s < ARRAY_SIZE(strangers); s++)
        for (size_t i = 0; i < ARRAY_SIZE(cgroup_rows); i++) {
            struct workload_owner owner;
            char path[1024];

            if (cgroup_rows[i].number == 81) /* "..": not a name that can be made */
                continue;
            snprintf(path, sizeof(path), "%s%s", strangers[s].point, cgroup_rows[i].path);
            owner_find_by_cgroup_file(span_of(path), 0, &owner);
            if (strchr(owner.id, '/')
                    ? strncmp(owner.id, strangers[s].scope, strlen(strangers[s].scope)) != 0
                    : owner.kind != strangers[s].kind || strcmp(owner.id, strangers[s].id) != 0)
                fail_msg("%s is %d %s", path, owner.kind, owner.id);
            /* Only root starts pods, jobs and VMs. */
            if (strstr(strangers[s].point, "//") && strchr(owner.id, '/'))
                assert_true(owner.kind == WORKLOAD_CONTAINER || owner.kind == WORKLOAD_LXC ||
                            owner.kind == WORKLOAD_NSPAWN);
            /* Nor does it get the names of a container that root started. */
            if (strchr(owner.id, '/'))
                assert_non_null(strstr(strangers[s].scope, owner.container_id));
        }
}

static void the_longest_names_fit_an_id(void **state)
{
    char path[1024], name[256];
    struct workload_owner owner;

    (void)state;
    memset(name, 'x', 243);
    name[243] = '\0'; /* with "lxc.payload." before it, the most that a name can have */
    snprintf(path, sizeof(path), "/lxc.payload.%s/lxc.payload.%s", name, name);
    owner_find_by_cgroup_file(span_of(path), 0, &owner);
    assert_int_equal(strlen(owner.id), 4 + 243 + 1 + 243);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_innermost_pod_job_or_vm_is_the_owner_else_the_container_else_the_unit_or_user),
        cmocka_unit_test(nothing_gets_out_of_a_scope_whatever_it_is_named),
        cmocka_unit_test(the_longest_names_fit_an_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
