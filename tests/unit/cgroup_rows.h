/* Every path of the reference table, and what is in it: "KIND NAME=VALUE ...". */
#pragma once

/* Container ids; a pod's UID, with systemd's underscores; a static pod's; a Podman pod; a task. */
#define C1 "df7aa2a3a9fb81a46c086544cf6c373d9e0b58dfff774f541d300e0dc08f5a5c"
#define C2 "a3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define C3 "42ece007a37f5e612939932d16e03a3ba0b1666e55a2ff9974c0f0d70e7f0f28"
#define C4 "922a79e426c1a07461515a098521bb48d168894f18761caa0326171837fde7ec"
#define U1 "2c9f8a79-5391-454b-88cb-86190881cb96"
#define V1 "2c9f8a79_5391_454b_88cb_86190881cb96"
#define H1 "5f2c1d9e7b3a4c60812e9f0a6d4b7c35"
#define P1 "fb1fb9e69e4bd70bc415fe29205487a2866634d376f1a938655f35921a82956b"
#define T1 "8a1b2c3d4e5f60718293a4b5c6d7e8f9"

struct cgroup_row {
    int number;
    const char *path;
    const char *place;
};

static const struct cgroup_row cgroup_rows[] = {
    /* Docker */
    {1, "/docker/" C1, "container cid=" C1},
    {2, "/docker/" C1 "/init.scope", "container cid=" C1},
    {3, "/docker/" C1 "/system.slice/nginx.service", "container cid=" C1},
    {4, "/system.slice/docker-" C1 ".scope", "container cid=" C1 " unit=docker-" C1 ".scope"},
    {5, "/docker-" C1, "container cid=" C1},
    {6, "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" C1 ".scope",
     "container cid=" C1 " unit=user@1000.service uid=1000 scope=1000"},
    {7, "/" C1, "container cid=" C1},
    {8, "/actions_job/" C1, "container cid=" C1},

    /* Kubernetes, systemd driver */
    {9,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" V1
     ".slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=" U1 " unit=cri-containerd-" C2 ".scope"},
    {10,
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" V1 ".slice/crio-" C2
     ".scope",
     "pod cid=" C2 " pod=" U1 " unit=crio-" C2 ".scope"},
    {11, "/kubepods.slice/kubepods-pod" V1 ".slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=" U1 " unit=cri-containerd-" C2 ".scope"},
    {12,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" V1 ".slice/docker-" C2
     ".scope",
     "pod cid=" C2 " pod=" U1 " unit=docker-" C2 ".scope"},
    {13,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" V1 ".slice/crio-" C2
     ".scope/container",
     "pod cid=" C2 " pod=" U1 " unit=crio-" C2 ".scope"},
    {14,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" H1
     ".slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=" H1 " unit=cri-containerd-" C2 ".scope"},
    {15, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" V1 ".slice",
     "pod pod=" U1},
    {16,
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" V1 ".slice/crio-conmon-" C2
     ".scope",
     "monitor cid=" C2 " own= pod=" U1 " unit=crio-conmon-" C2 ".scope"},
    {17, "/system.slice/containerd.service/kubepods-burstable-pod" V1 ".slice:cri-containerd:" C2,
     "pod cid=" C2 " pod=" U1 " unit=containerd.service"},
    {18, "/kubepods-besteffort-pod" V1 ".slice:cri-containerd:" C2, "pod cid=" C2 " pod=" U1},
    {19, "/kubepods.slice/kubepods-burstable.slice", "other"},

    /* Kubernetes, cgroupfs driver */
    {20, "/kubepods/burstable/pod" U1 "/" C2, "pod cid=" C2 " pod=" U1},
    {21, "/kubepods/besteffort/pod" U1 "/" C2, "pod cid=" C2 " pod=" U1},
    {22, "/kubepods/pod" U1 "/" C2, "pod cid=" C2 " pod=" U1},
    {23, "/kubepods/burstable/pod" U1 "/crio-" C2, "pod cid=" C2 " pod=" U1},
    {24, "/kubepods/burstable/pod" U1 "/crio-conmon-" C2, "monitor cid=" C2 " own= pod=" U1},
    {25, "/kubepods/burstable/pod" U1 "/" C2 "/system.slice/sshd.service",
     "pod cid=" C2 " pod=" U1},
    {26, "/kubepods/pod" H1 "/" C2, "pod cid=" C2 " pod=" H1},
    {27, "/kubepods/burstable/pod" U1, "pod pod=" U1},
    {28, "/mycluster/kubepods/burstable/pod" U1 "/" C2, "pod cid=" C2 " pod=" U1},

    /* Nested (kind, k3d, Docker in Docker) */
    {29,
     "/system.slice/docker-" C1
     ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" V1
     ".slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " outer=" C1 " pod=" U1 " unit=docker-" C1 ".scope scope=" C1},
    {30,
     "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" V1
     ".slice/cri-containerd-" C2 ".scope",
     "pod cid=" C2 " pod=" U1 " unit=cri-containerd-" C2 ".scope"},
    {31, "/docker/" C1 "/kubelet/kubepods/besteffort/pod" U1 "/" C2,
     "pod cid=" C2 " outer=" C1 " pod=" U1 " scope=" C1},
    {32, "/docker/" C1 "/docker/" C2, "container cid=" C2 " outer=" C1 " scope=" C1},
    {33, "/kubepods/burstable/pod" U1 "/" C1 "/docker/" C2,
     "pod cid=" C2 " outer=" C1 " own=" C1 " pod=" U1},

    /* containerd, nerdctl, ctr */
    {34, "/default/" C2, "container cid=" C2},
    {35, "/k8s.io/" C2, "container cid=" C2},
    {36, "/system.slice/nerdctl-" C2 ".scope", "container cid=" C2 " unit=nerdctl-" C2 ".scope"},
    {37, "/default/web1", "other"},

    /* Podman */
    {38, "/libpod_parent/libpod-" C3, "container cid=" C3},
    {39, "/libpod_parent/conmon", "monitor"},
    {40, "/machine.slice/libpod-" C3 ".scope", "container cid=" C3 " unit=libpod-" C3 ".scope"},
    {41, "/machine.slice/libpod-" C3 ".scope/container",
     "container cid=" C3 " unit=libpod-" C3 ".scope"},
    {42, "/machine.slice/machine-libpod_pod_" P1 ".slice/libpod-" C3 ".scope/container",
     "container cid=" C3 " unit=libpod-" C3 ".scope"},
    {43, "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" C3 ".scope/container",
     "container cid=" C3 " unit=user@1000.service uid=1000 scope=1000"},
    {44,
     "/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_" P1
     ".slice/libpod-" C3 ".scope/container",
     "container cid=" C3 " unit=user@1000.service uid=1000 scope=1000"},
    {45, "/system.slice/myapp.service/libpod-payload-" C3,
     "container cid=" C3 " unit=myapp.service"},
    {46, "/machine.slice/libpod-conmon-" C3 ".scope",
     "monitor cid=" C3 " unit=libpod-conmon-" C3 ".scope"},

    /* ECS */
    {47, "/ecs/" T1 "/" C1, "container cid=" C1},
    {48, "/ecs/prod/" T1 "/" C1, "container cid=" C1},
    {49, "/ecs/" T1 "/" T1 "-3054012820", "container cid=" T1 "-3054012820"},
    {50, "/ecstasks.slice/ecstasks-" T1 ".slice/docker-" C1 ".scope",
     "container cid=" C1 " unit=docker-" C1 ".scope"},

    /* Slurm */
    {51, "/slurm/uid_1000/job_211/step_0/task_3", "slurm job=211 uid=1000"},
    {52, "/slurm_vm/uid_0/job_1/step_batch/task_0", "slurm job=1 uid=0"},
    {53, "/slurm_vm/uid_0/job_1/step_batch", "slurm job=1 uid=0"},
    {54, "/slurm/uid_1000/job_211", "slurm job=211 uid=1000"},
    {55, "/system.slice/slurmstepd.scope/job_211/step_extern/user/task_0",
     "slurm job=211 unit=slurmstepd.scope"},
    {56, "/system.slice/node1_slurmstepd.scope/job_211/step_0/user/task_1",
     "slurm job=211 unit=node1_slurmstepd.scope"},
    {57, "/system.slice/slurmstepd.scope/job_211/step_interactive/user/task_special",
     "slurm job=211 unit=slurmstepd.scope"},
    {58, "/system.slice/slurmstepd.scope/s09NKSR4923V05/step_0/user/task_0",
     "slurm job=s09NKSR4923V05 unit=slurmstepd.scope"},
    {59, "/hpc.slice/slurmstepd.scope/job_9/step_0+1/user/task_0",
     "slurm job=9 unit=slurmstepd.scope"},
    {60, "/system.slice/slurmstepd.scope/job_211/step_0/slurm",
     "monitor job=211 unit=slurmstepd.scope"},
    {61, "/system.slice/slurmstepd.scope/system", "unit unit=slurmstepd.scope"},

    /* Virtual machines, LXC, nspawn */
    {62, "/machine.slice/machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope",
     "vm machine=instance-00000001 unit=machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope"},
    {63, "/machine.slice/machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope/libvirt/emulator",
     "vm machine=instance-00000001 unit=machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope"},
    {64, "/machine.slice/machine-qemu\\x2d1\\x2dubuntu22.04.scope",
     "vm machine=ubuntu22.04 unit=machine-qemu\\x2d1\\x2dubuntu22.04.scope"},
    {65, "/machine/qemu-1-web01.libvirt-qemu/vcpu0", "vm machine=web01"},
    {66, "/qemu.slice/100.scope", "vm machine=100 unit=100.scope"},
    {67, "/lxc.payload.web01/system.slice/nginx.service", "lxc machine=web01"},
    {68, "/lxc.monitor.web01", "monitor machine=web01"},
    {69, "/lxc/101/ns/system.slice/ssh.service", "lxc machine=101"},
    {70, "/machine.slice/systemd-nspawn@web.service/payload/system.slice/x.service",
     "nspawn machine=web unit=systemd-nspawn@web.service"},
    {71, "/machine.slice/machine-web.scope/payload", "nspawn machine=web unit=machine-web.scope"},
    {72, "/machine.slice/systemd-nspawn@web.service/supervisor",
     "monitor machine=web unit=systemd-nspawn@web.service"},
    {73, "/lxc.payload.ci/docker/" C1, "container cid=" C1 " machine=ci scope=lxc:ci"},

    /* Host units and users */
    {74, "/system.slice/nginx.service", "unit unit=nginx.service"},
    {75, "/system.slice/system-getty.slice/getty@tty1.service", "unit unit=getty@tty1.service"},
    {76, "/system.slice/_cpu.service", "unit unit=cpu.service"},
    {77, "/init.scope", "unit unit=init.scope"},
    {78, "/user.slice/user-1000.slice/session-2.scope", "user unit=session-2.scope uid=1000"},
    {79, "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-1234.scope",
     "user unit=user@1000.service uid=1000"},
    {80, "/", "root"},

    /* Odd and hostile */
    {81, "/../../system.slice/nginx.service", "outside"},
    {82, "/system.slice/docker-" C1 ".scope (deleted)",
     "container cid=" C1 " unit=docker-" C1 ".scope"},
    {83, "//docker//" C1 "//", "container cid=" C1},
    {84, "/docker/DF7AA2A3A9FB81A46C086544CF6C373D9E0B58DFFF774F541D300E0DC08F5A5C", "other"},
    {85, "/docker/df7aa2a3a9fb", "other"},
    {86, "/docker/buildx", "other"},
    {87, "/kubepods/burstable/podabc/" C1, "pod cid=" C1 " pod=abc"},
    {88, "/system.slice/docker.service", "unit unit=docker.service"},
    {89, "/system.slice/a:b:c.service", "unit unit=a:b:c.service"},
    {90, "/job_7/step_0", "other"},
};
