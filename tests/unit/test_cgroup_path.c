#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_rows.h"
#include "core/macros.h"
#include "identity/cgroup_path.h"

#define USER_1000 "/user.slice/user-1000.slice/user@1000.service"

/* Forged paths. */
static const struct cgroup_row forged_rows[] = {
    /* A user's own cgroups. */
    {1, USER_1000 "/kubepods/burstable/pod" U1 "/" C2,
     "pod cid=" C2 " pod=" U1 " unit=user@1000.service uid=1000 scope=1000"},
    {2, USER_1000 "/slurmstepd.scope/job_9/step_0/user/task_0",
     "slurm job=9 unit=user@1000.service uid=1000 scope=1000"},
    {3, USER_1000 "/slurm/uid_0/job_9", /* nor root's uid */
     "slurm job=9 unit=user@1000.service uid=1000 scope=1000"},
    {4, USER_1000 "/machine.slice/machine-qemu\\x2d2\\x2dweb.scope",
     "vm machine=web unit=user@1000.service uid=1000 scope=1000"},
    {5, USER_1000 "/lxc.payload.web", "lxc machine=web unit=user@1000.service uid=1000 scope=1000"},
    {6, USER_1000 "/user.slice/user-0.slice/user@0.service/docker/" C1,
     "container cid=" C1 " unit=user@1000.service uid=1000 scope=1000"},
    {7, "/user.slice/user-1000.slice/session-2.scope/docker/" C1,
     "container cid=" C1 " unit=session-2.scope uid=1000 scope=1000"},

    /* Whoever is root in a container. */
    {20, "/docker/" C1 "/slurm/uid_0/job_7", "slurm cid=" C1 " job=7 scope=" C1},
    {21, "/docker/" C1 "/docker/" C2 "/docker/" C3, "container cid=" C3 " outer=" C2 " scope=" C1},
    {22, "/docker/" C1 "/user.slice/user-0.slice/user@0.service", "container cid=" C1},
    {23, "/docker/" C1 "/libpod_parent/conmon", "container cid=" C1},
    {24, "/docker/" C1 "/libpod-conmon-" C2, "container cid=" C1},
    {25, "/docker/" C1 "/lxc.payload.web/lxc.monitor.web", "container cid=" C1},
    {26, "/docker/" C1 "/slurmstepd.scope/job_7/step_0/slurm", "slurm cid=" C1 " job=7 scope=" C1},
    {27, "/docker/" C1 "/kubepods/pod" U1, /* the container is around the pod, not in it */
     "pod outer=" C1 " pod=" U1 " scope=" C1},
    {28, "/kubepods/pod" U1 "/" C1 "/kubepods/pod" H1 "/" C2,
     "pod cid=" C2 " outer=" C1 " pod=" H1 " scope=" C1},
    {29, "/kubepods/pod" U1 "/" C1 "/slurmstepd.scope/job_7/step_0",
     "slurm cid=" C1 " pod=" U1 " job=7 scope=" C1},
    {30, "/docker/" C1 "/kubepods/pod" U1 "/" C2 "/docker/" C3,
     "pod cid=" C3 " outer=" C2 " own=" C2 " pod=" U1 " scope=" C1},

    /* Whoever is root in an LXC or nspawn machine, whatever the machine is called. */
    {40, "/lxc.payload.1000/kubepods/pod" U1 "/" C2,
     "pod cid=" C2 " pod=" U1 " machine=1000 scope=lxc:1000"},
    {41, "/lxc/slurm/uid_0/job_7", "lxc machine=slurm"},
    {42, "/lxc/" C1 "/docker/" C2, "container cid=" C2 " machine=" C1 " scope=lxc:" C1},
    {43, "/machine.slice/machine-web.scope/payload/slurm/uid_0/job_7",
     "slurm job=7 machine=web unit=machine-web.scope scope=nspawn:web"},
    {44, "/machine.slice/machine-a_slurmstepd.scope/job_7",
     "nspawn machine=a_slurmstepd unit=machine-a_slurmstepd.scope"},
    {45, "/lxc.payload.a/lxc.payload.b", "lxc machine=b scope=lxc:a"},
    {46, "/lxc.payload.a/machine.slice/machine-b.scope/supervisor", "nspawn machine=b scope=lxc:a"},
    {47, "/lxc.payload.a/libpod_parent/conmon", "lxc machine=a"},
    {48, "/lxc.payload.a/lxc.monitor.b", "lxc machine=a"},

    /* The user of a job, who owns the step's cgroup in v1. */
    {60, "/slurm/uid_1000/job_7/step_0/kubepods/pod" U1 "/" C2,
     "pod cid=" C2 " pod=" U1 " job=7 uid=1000 scope=slurm:7"},
    {61, "/slurm/uid_1000/job_7/step_0/job_8", "slurm job=7 uid=1000"},
    {62, "/slurm/uid_1000/job_7/step_0/slurm", "slurm job=7 uid=1000"},
    {63, "/slurm/uid_1000/job_7/step_0/slurm/uid_0/job_8", "slurm job=8 uid=1000 scope=slurm:7"},
    {64, "/slurm/uid_1000/job_7/step_0/docker/" C1,
     "container cid=" C1 " job=7 uid=1000 holder=slurm"},
    {65, "/system.slice/slurmstepd.scope/job_7/step_0/user/task_1/docker/" C1,
     "container cid=" C1 " job=7 unit=slurmstepd.scope holder=slurm"},

    /* Of LSF and PBS it is not known what a job may make. */
    {66, "/lsf/c1/job.7.35464.1775318445/pbs_jobs.service/jobs/8.s", "pbs job=8.s scope=lsf:7"},
    {67, "/lsf/c1/job.7.35464.1775318445/job.8.1.2", "lsf job=7"},
    {68, "/pbs_jobs.service/jobid/7.s/lsf/c1/job.8.1.2",
     "lsf job=8 unit=pbs_jobs.service scope=pbs:7.s"},
    {69, "/pbs_jobs.service/jobid/7.s/docker/" C1,
     "container cid=" C1 " job=7.s unit=pbs_jobs.service holder=pbs"},
    {70, USER_1000 "/pbs_jobs.service/jobid/123.server",
     "pbs job=123.server unit=user@1000.service uid=1000 scope=1000"},
    {71, USER_1000 "/jobid/123.server", "user unit=user@1000.service uid=1000"},
    {72, "/docker/" C1 "/lsf/c1/job.7.1.2", "lsf cid=" C1 " job=7 scope=" C1},
    {73, "/lxc/pbspro/7.s", "lxc machine=pbspro"},
    {74, "/lxc/lsf/c1/job.7.1.2", "lxc machine=lsf"},
};

/* The uid of a static pod may be any text: metadata.uid of its manifest. Only the kubelet makes
 * cgroups right below that of all pods and those of the QoS classes. */
static const struct cgroup_row static_pod_rows[] = {
    {0, "/kubepods/podmy-etcd/" C2, "pod cid=" C2 " pod=my-etcd"},
    {1, "/kubepods/burstable/podEtcd-1.2/" C2, "pod cid=" C2 " pod=Etcd-1.2"},
    {2, "/kubepods/besteffort/pod7/" C2, "pod cid=" C2 " pod=7"},
    {4, "/kubepods.slice/kubepods-podmy_etcd.slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=my-etcd unit=cri-containerd-" C2 ".scope"},
    {5,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podetcd.slice/crio-" C2 ".scope",
     "pod cid=" C2 " pod=etcd unit=crio-" C2 ".scope"},
    {6,
     "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
     "kubelet-kubepods-besteffort-podpod.slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=pod unit=cri-containerd-" C2 ".scope"},
    {7, "/kubepods/burstable/podetcd/crio-conmon-" C2, "monitor cid=" C2 " own= pod=etcd"},
    /* Not at that level, or not as the kubelet writes it. */
    {8, "/kubepods/pod" V1 "/x", "other"},
    {9, "/kubepods/podmy_etcd/" C2, "container cid=" C2},
    {10, "/kubepods/x/podmy-etcd/" C2, "container cid=" C2},
    {11, "/podmy-etcd/" C2, "container cid=" C2},
    {12, "/burstable/podmy-etcd/" C2, "container cid=" C2},
    {13, "/kubepods-podetcd.slice/cri-containerd-" C2 ".scope",
     "container cid=" C2 " unit=cri-containerd-" C2 ".scope"},
    {14, "/kubepods.slice/kubepods-burstable-podetcd.slice/cri-containerd-" C2 ".scope",
     "container cid=" C2 " unit=cri-containerd-" C2 ".scope"},
    {15, "/kubepods.slice/kubepods-burstable.slice/kubepods-podetcd.slice", "other"},
    {16, "/xkubepods.slice/xkubepods-podetcd.slice", "other"},
    {17, "/system.slice/system-podetcd.slice", "other"},
    {18, "/kubepods.slice/kubepods-pod.slice", "other"},
    {19, "/kubepods.slice/kubepods-podmy-etcd.slice", "other"},
    {20, "/kubepods.slice/kubepods-podetcd.slice:cri-containerd:" C2, "other"},
    /* Where strangers name cgroups. */
    {30, USER_1000 "/kubepods/podetcd/" C2,
     "pod cid=" C2 " pod=etcd unit=user@1000.service uid=1000 scope=1000"},
    {31, "/docker/" C1 "/kubepods.slice/kubepods-podetcd.slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " outer=" C1 " pod=etcd scope=" C1},
};

/* The schedulers whose paths are not in the reference. */
static const struct cgroup_row scheduler_rows[] = {
    {1, "/lsf/cluster1/job.1009249.35464.1775318445", "lsf job=1009249"},
    {2, "/lsf/cluster1/job.1009249[3].35464.1775318445/inner", "lsf job=1009249[3]"},
    {3, "/lsf/cluster1", "other"},
    {4, "/lsf/job.7.1.2", "other"}, /* the cluster is missing */
    {5, "/lsf/c1/x/job.7.1.2", "other"},
    {6, "/c1/job.7.1.2", "other"},
    {7, "/lsf/c1/job.7", "other"},
    {8, "/lsf/c1/job.7.1", "other"},
    {9, "/lsf/c1/job.7.1.2.3", "other"},
    {10, "/lsf/c1/job.7x.1.2", "other"},
    {11, "/lsf/c1/job.7[].1.2", "other"},
    {12, "/lsf/c1/job.7[1.1.2", "other"},
    {13, "/lsf/c1/job.[1].1.2", "other"},

    {20, "/pbs_jobs.service/jobid/12345.gadi-pbs", "pbs job=12345.gadi-pbs unit=pbs_jobs.service"},
    {21, "/pbs_jobs.service/jobs/12345[7].pbs.example.org/inner",
     "pbs job=12345[7].pbs.example.org unit=pbs_jobs.service"},
    {22, "/pbs.service/jobid/7.s", "pbs job=7.s unit=pbs.service"},
    {23, "/pbspro.service/jobid/7.s", "pbs job=7.s unit=pbspro.service"},
    {24, "/pbspro/7.s", "pbs job=7.s"},
    {25, "/pbspro.slice/pbspro-7\\x5b3\\x5d.my\\x2dserver.slice", "pbs job=7[3].my-server"},
    {26, "/pbs_jobs.service/jobid", "unit unit=pbs_jobs.service"},
    {27, "/pbs_jobs.service/other/7.s", "unit unit=pbs_jobs.service"},
    {28, "/pbs_jobs.service/7.s", "unit unit=pbs_jobs.service"},
    {29, "/web.service/jobid/7.s", "unit unit=web.service"},
    {30, "/pbs_jobs.service/jobid/7", "unit unit=pbs_jobs.service"},
    {31, "/pbs_jobs.service/jobid/7.", "unit unit=pbs_jobs.service"},
    {32, "/pbs_jobs.service/jobid/7[].s", "unit unit=pbs_jobs.service"},
    {33, "/pbs_jobs.service/jobid/x.s", "unit unit=pbs_jobs.service"},
    {34, "/pbs_jobs.service/jobid/7.s s", "unit unit=pbs_jobs.service"},
    {35, "/pbspro.slice/pbspro-7.s", "other"},
    {36, "/pbspro.slice/7.s", "other"},
};

static const struct cgroup_row almost_rows[] = {
    {80, "/slurm/uid_1000/other/job_7", "other uid=1000"},
    {81, "/slurm/uid_1000/job_7x", "other uid=1000"},
    {82, "/slurm/uid_1000/job_123456789012345678901234567890123", "other uid=1000"},
    {83, "/slurm/uid_-1/job_7", "other"},
    {84, "/slurm/uid_4294967295/job_7", "other"},
    {85, "/slurm_/uid_1/job_7", "other"},
    {86, "/system.slice/_slurmstepd.scope/job_7", /* escaped, not a node without a name */
     "slurm job=7 unit=slurmstepd.scope"},
    {87, "/system.slice/slurmstepd.scope/s09NKSR4923V0U/step_0", "unit unit=slurmstepd.scope"},
    {88, "/system.slice/slurmstepd.scope/job_7/step_0+/task_0",
     "slurm job=7 unit=slurmstepd.scope"},
    {89, "/kubepods/pod", "other"},
    {90, "/kubepods.slice/kubepods-pod" U1 ".slice", "other"},
    {91, "/xkubepods-pod" V1 ".slice", "other"},
    {92, "/kubepods-pod" V1 ".slice:cri-containerd:" C2 "0", "other"},
    {93, "/kubepods-pod" V1 ".slice::" C2, "other"},
    {94, "/kubepods/burstable/x/pod" U1, "other"},
    {95, "/docker-" C1 ".scope.scope", "unit unit=docker-" C1 ".scope.scope"},
    {96, "/docker-" C1 "0.scope", "unit unit=docker-" C1 "0.scope"},
    {97, "/-" C1, "other"},
    {98, "/" T1 "/" T1 "-3054012820", "other"}, /* not below ecs */
    {99, "/ecs/" T1 "/" T1 "-30540128203054012820305401282030", "other"},
    {100, "/machine.slice/machine-qemu\\x2d\\x2dweb.scope",
     "nspawn machine=qemu--web unit=machine-qemu\\x2d\\x2dweb.scope"},
    {101, "/machine.slice/machine-a\\x2fb\\x00c\\x7e\\xg.scope",
     "nspawn machine=a\\x2fb\\x00c~\\xg unit=machine-a\\x2fb\\x00c\\x7e\\xg.scope"},
    {102, "/other/machine-web.scope", "other"},
    {103, "/a/lxc/web", "other"},
    {104, "/lxc.payload.", "other"},
    {105, "/system.slice/getty@.service", "other"},
    {106, "/system.slice/.service", "other"},
    {107, "/system.slice/_.service", "other"},
    {108, "/_cpu.slice/x.service", "unit unit=x.service"},
    {109, "/lxc/_web", "lxc machine=_web"}, /* LXC does not escape */
    {110, "/user.slice/user-1000.slice", "other uid=1000"},
    {111, "/user.slice/user-x.slice/session-2.scope", "unit unit=session-2.scope"},
    {112, "/..", "outside"},
    {113, "/docker/" C1 "/..", "outside"},
    {114, "/...", "other"},
    {115, "", "root"},
    {116, "/ (deleted)", "root"},
    {117, "/docker/" C1 " (deleted) (deleted)", "other"},
};

static const char *const kinds[] = {
    [CGROUP_ROOT] = "root",
    [CGROUP_OUTSIDE] = "outside",
    [CGROUP_OTHER] = "other",
    [CGROUP_USER] = "user",
    [CGROUP_UNIT] = "unit",
    [CGROUP_MONITOR] = "monitor",
    [CGROUP_NSPAWN] = "nspawn",
    [CGROUP_LXC] = "lxc",
    [CGROUP_VM] = "vm",
    [CGROUP_LSF] = "lsf",
    [CGROUP_PBS] = "pbs",
    [CGROUP_SLURM] = "slurm",
    [CGROUP_CONTAINER] = "container",
    [CGROUP_POD] = "pod",
};

/* As in the tables. What goes without saying is left out: a pod's own container if it is the
 * innermost, the holder if it is what the place is. */
static const char *describe(const struct cgroup_place *place, char text[2048])
{
    const struct {
        const char *name, *value;
    } fields[] = {
        {"job", place->job},
        {"machine", place->machine},
        {"unit", place->unit},
    };
    bool holds = place->kind == place->holder || place->kind == CGROUP_MONITOR;
    FILE *out = fmemopen(text, 2048, "w");

    assert_non_null(out);
    fprintf(out, "%s", kinds[place->kind]);
    if (place->container_id[0])
        fprintf(out, " cid=%s", place->container_id);
    if (place->outer_container_id[0])
        fprintf(out, " outer=%s", place->outer_container_id);
    if (place->holder == CGROUP_POD && strcmp(place->pod_container_id, place->container_id) != 0)
        fprintf(out, " own=%s", place->pod_container_id);
    if (place->pod_uid[0])
        fprintf(out, " pod=%s", place->pod_uid);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].value[0])
            fprintf(out, " %s=%s", fields[i].name, fields[i].value);
    if (place->has_uid)
        fprintf(out, " uid=%u", place->uid);
    if (place->scope[0])
        fprintf(out, " scope=%s", place->scope);
    if (!holds && place->holder != CGROUP_ROOT)
        fprintf(out, " holder=%s", kinds[place->holder]);
    fclose(out);
    return text;
}

static void check_rows(const struct cgroup_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cgroup_place place;
        char text[2048];

        cgroup_path_parse(span_of(rows[i].path), &place);
        if (strcmp(describe(&place, text), rows[i].place) != 0)
            fail_msg("row %d, %s\n  is     %s\n  not    %s", rows[i].number, rows[i].path, text,
                     rows[i].place);
    }
}

static void every_path_of_the_reference_is_read(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_SIZE(cgroup_rows), 90);
    check_rows(cgroup_rows, ARRAY_SIZE(cgroup_rows));
}

static void the_jobs_of_lsf_and_pbs_are_where_these_put_them(void **state)
{
    (void)state;
    check_rows(scheduler_rows, ARRAY_SIZE(scheduler_rows));
}

static void a_server_name_that_is_too_long_is_not_truncated_to_another(void **state)
{
    char path[512] = "/pbs_jobs.service/jobid/7.";
    struct cgroup_place place;
    size_t len = strlen(path);

    (void)state;
    memset(path + len, 's', CGROUP_JOB_BYTES - 3); /* "7." and a NUL take the rest */
    cgroup_path_parse(span_of(path), &place);
    assert_int_equal(place.kind, CGROUP_PBS);
    assert_string_equal(place.job, path + len - strlen("7."));
    path[strlen(path)] = 's';
    cgroup_path_parse(span_of(path), &place);
    assert_int_equal(place.kind, CGROUP_UNIT);
}

static void a_static_pod_may_have_any_uid_where_only_the_kubelet_makes_cgroups(void **state)
{
    (void)state;
    check_rows(static_pod_rows, ARRAY_SIZE(static_pod_rows));
}

static void a_uid_that_is_too_long_is_not_truncated_to_another(void **state)
{
    char path[512], uid[WORKLOAD_POD_UID_BYTES + 1];
    struct cgroup_place place;

    (void)state;
    memset(uid, 'u', sizeof(uid));
    for (size_t len = sizeof(place.pod_uid) - 1; len <= sizeof(place.pod_uid); len++) {
        snprintf(path, sizeof(path), "/kubepods/pod%.*s/" C2, (int)len, uid);
        cgroup_path_parse(span_of(path), &place);
        assert_int_equal(strlen(place.pod_uid), len < sizeof(place.pod_uid) ? len : 0);
        assert_int_equal(place.kind, len < sizeof(place.pod_uid) ? CGROUP_POD : CGROUP_CONTAINER);
    }
}

static void what_strangers_name_is_in_their_own_scope(void **state)
{
    (void)state;
    check_rows(forged_rows, ARRAY_SIZE(forged_rows));
}

static void what_is_almost_an_id_is_none(void **state)
{
    (void)state;
    check_rows(almost_rows, ARRAY_SIZE(almost_rows));
}

/* "" for -ENODATA. */
static void check_file(const char *file, size_t len, const char *expected)
{
    struct cgroup_place place;
    char text[2048] = "";
    int r = cgroup_file_parse((struct span){file, len}, &place);

    assert_int_equal(r, expected[0] ? 0 : -ENODATA);
    if (r == 0)
        describe(&place, text);
    assert_string_equal(text, expected);
}

static void every_line_is_read_and_the_best_one_counts(void **state)
{
    static const struct {
        const char *file, *place;
    } files[] = {
        /* M1 to M8 of the reference. */
        {"0::/kubepods.slice/kubepods-pod" V1 ".slice/cri-containerd-" C2 ".scope\n",
         "pod cid=" C2 " pod=" U1 " unit=cri-containerd-" C2 ".scope"},
        {"2:memory:/docker/" C1 "\n1:cpu:/docker/" C1 "\n0::/\n", "container cid=" C1},
        {"9:name=systemd:/\n"
         "8:pids:/\n"
         "6:freezer:/slurm_vm/uid_0/job_1/step_batch\n"
         "5:devices:/\n"
         "4:memory:/slurm_vm/uid_0/job_1/step_batch/task_0\n"
         "3:cpuset:/\n"
         "2:cpuacct:/slurm_vm/uid_0/job_1/step_batch/task_0\n"
         "1:cpu:/\n"
         "0::/\n",
         "slurm job=1 uid=0"},
        {"2:memory:/\n1:cpu:/\n0::/\n", "root"},
        {"1:name=systemd:/system.slice/docker.service\n4:memory:/docker/" C1 "\n",
         "container cid=" C1},
        {"0::/../../kubepods/burstable/pod" U1 "/" C2 "\n", "outside"},
        {"", ""},
        {"garbage\n1:cpu\n\n0::/init.scope\n", "unit unit=init.scope"},

        {"9:name=systemd:/\n8:pids:/libpod_parent/conmon\n", "monitor"},
        {"0::/init.scope", "unit unit=init.scope"}, /* no newline */
        {"0::/a:b:c.service\n", "unit unit=a:b:c.service"},
        {"0::\n", ""},
        {"0::x\n", ""},
        {"\n\n", ""},
        {"/docker/" C1, "container cid=" C1}, /* as in a trace */
        {"/docker/" C1 "\n", "container cid=" C1},
        {"2:cpu:/a.service\n1:pids:/x.slice/b.service\n", "unit unit=b.service"}, /* deeper */
        {"2:cpu:/x.slice/b.service\n1:pids:/a.service\n", "unit unit=b.service"},
        {"3:cpu:/slurm/uid_1/job_7/step_0\n2:pids:/slurm/uid_1/job_7/step_0/task_4\n"
         "1:misc:/slurm/uid_1/job_7\n",
         "slurm job=7 uid=1"},
        {"1:name=systemd:/user.slice/user-1000.slice/session-2.scope\n"
         "2:pids:/slurm/uid_1000/job_7\n",
         "slurm job=7 uid=1000"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        check_file(files[i].file, strlen(files[i].file), files[i].place);
}

static void a_job_on_one_line_holds_the_container_on_another(void **state)
{
    static const char pbs[] = "3:memory:/docker/" C1 "\n2:cpu:/pbs_jobs.service/jobid/7.s\n";
    static const char file[] = "3:memory:/docker/" C1 "\n"
                               "2:cpu:/slurm/uid_1000/job_7/step_0\n"
                               "1:freezer:/slurm/uid_1000/job_7\n";

    (void)state;
    check_file(file, sizeof(file) - 1, "container cid=" C1 " job=7 uid=1000 holder=slurm");
    check_file(pbs, sizeof(pbs) - 1, "container cid=" C1 " job=7.s holder=pbs");
}

static void a_line_that_strangers_name_does_not_count_against_a_trusted_one(void **state)
{
    static const struct {
        const char *file, *place;
    } files[] = {
        /* A user who owns a part of one hierarchy would leave the job. */
        {"2:memory:/slurm/uid_1000/job_7\n1:name=systemd:" USER_1000 "/kubepods/pod" U1 "/" C2 "\n",
         "slurm job=7 uid=1000"},
        {"4:freezer:/lsf/c1/job.7[2].1.2\n2:memory:/lsf/c1/job.7[2].1.2\n1:name=systemd:" USER_1000
         "/slurm/uid_0/job_8\n",
         "lsf job=7[2]"},
        {"2:memory:/pbs_jobs.service/jobid/7.s\n1:name=systemd:" USER_1000 "/docker/" C2 "\n0::/\n",
         "pbs job=7.s unit=pbs_jobs.service"},
        {"2:memory:/docker/" C1 "\n1:name=systemd:" USER_1000 "/kubepods/pod" U1 "/" C2 "\n",
         "container cid=" C1},
        {"2:memory:/lxc.payload.a\n1:name=systemd:" USER_1000 "/docker/" C2 "\n", "lxc machine=a"},
        {"2:memory:/slurm/uid_1000/job_7/step_0\n"
         "1:cpu:/slurm/uid_1000/job_7/step_0/kubepods/pod" U1 "/" C2 "\n",
         "slurm job=7 uid=1000"},
        /* A job is not left through a container that is its own, either. */
        {"3:memory:/docker/" C1 "/docker/" C2 "\n2:cpu:/docker/" C1 "\n1:pids:/slurm/uid_1/job_7\n",
         "container cid=" C1 " job=7 uid=1 holder=slurm"},
        /* Nor is it joined. */
        {"2:memory:/docker/" C1 "\n1:cpu:" USER_1000 "/slurm/uid_0/job_7\n", "container cid=" C1},
        /* Inside what the trusted line names, it does count: kind with cgroup v1. */
        {"2:memory:/docker/" C1 "/kubelet/kubepods/pod" U1 "/" C2 "\n1:rdma:/docker/" C1 "\n",
         "pod cid=" C2 " outer=" C1 " pod=" U1 " scope=" C1},
        {"2:memory:/lxc/101/docker/" C2 "\n1:rdma:/lxc/101/ns\n",
         "container cid=" C2 " machine=101 scope=lxc:101"},
        /* Or if nothing else is known. */
        {"2:memory:/\n1:name=systemd:" USER_1000 "/docker/" C2 "\n",
         "container cid=" C2 " unit=user@1000.service uid=1000 scope=1000"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        check_file(files[i].file, strlen(files[i].file), files[i].place);
}

/* M9. The limit is that of the path, so that the kernel's longest is still read. */
static void a_path_longer_than_the_kernels_is_skipped(void **state)
{
    static const struct {
        size_t path_len;
        const char *behind, *place;
    } cases[] = {
        {4095, "", "container cid=" C1},
        {4096, "", ""},
        {4095, "\n0::/x\n", "container cid=" C1},
        {4096, "\n0::/x\n", "other"},
        {4095, " (deleted)\n", "container cid=" C1},
    };
    static const char head[] = "0::/docker/" C1 "/";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t len = strlen("0::") + cases[i].path_len, behind = strlen(cases[i].behind);
        char file[4096 + 64];

        memset(file, 'x', sizeof(file));
        memcpy(file, head, sizeof(head) - 1);
        memcpy(file + len, cases[i].behind, behind);
        check_file(file, len + behind, cases[i].place);
    }
}

static void a_component_that_does_not_fit_is_not_truncated_to_one_that_does(void **state)
{
    char path[1024] = "/system.slice/";
    struct cgroup_place place;
    char text[2048];
    size_t len = strlen(path);

    (void)state;
    memset(path + len, 'x', 247);
    memcpy(path + len + 247, ".service", 9); /* 255 bytes, the most that a name can have */
    cgroup_path_parse(span_of(path), &place);
    assert_int_equal(place.kind, CGROUP_UNIT);
    assert_string_equal(place.unit, path + len);
    memset(path + len, 'x', 248);
    memcpy(path + len + 248, ".service", 9);
    cgroup_path_parse(span_of(path), &place);
    assert_string_equal(describe(&place, text), "other");

    /* A NUL would end a name early. */
    cgroup_path_parse((struct span){"/a\0b.service", 12}, &place);
    assert_string_equal(describe(&place, text), "other");
    cgroup_path_parse((struct span){"/lxc.payload.a\0b", 16}, &place);
    assert_string_equal(describe(&place, text), "other");
}

static void other_bytes_are_kept_as_they_are(void **state)
{
    struct cgroup_place place;

    (void)state;
    cgroup_path_parse(span_of("/lxc.payload.\x01 \xff\""), &place);
    assert_string_equal(place.machine, "\x01 \xff\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_of_the_reference_is_read),
        cmocka_unit_test(the_jobs_of_lsf_and_pbs_are_where_these_put_them),
        cmocka_unit_test(a_server_name_that_is_too_long_is_not_truncated_to_another),
        cmocka_unit_test(a_static_pod_may_have_any_uid_where_only_the_kubelet_makes_cgroups),
        cmocka_unit_test(a_uid_that_is_too_long_is_not_truncated_to_another),
        cmocka_unit_test(what_strangers_name_is_in_their_own_scope),
        cmocka_unit_test(what_is_almost_an_id_is_none),
        cmocka_unit_test(every_line_is_read_and_the_best_one_counts),
        cmocka_unit_test(a_job_on_one_line_holds_the_container_on_another),
        cmocka_unit_test(a_line_that_strangers_name_does_not_count_against_a_trusted_one),
        cmocka_unit_test(a_path_longer_than_the_kernels_is_skipped),
        cmocka_unit_test(a_component_that_does_not_fit_is_not_truncated_to_one_that_does),
        cmocka_unit_test(other_bytes_are_kept_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
