"""Real servers, started by the tests in private directories and cleared away without a trace.

    with Dockerd() as docker:       container = docker.run("web", labels={"team": "red"})
    with Containerd() as cri:       pod = cri.run_pod("ml", "train-0", ["worker", "sidecar"])
    with Podman() as podman:        container = podman.run("web"); socket = podman.service()
    with Slurm() as slurm:          job = slurm.sbatch(); pid = slurm.wait_for_process(job)
    with Unit() as unit:            a process (unit.pid) in the cgroup of a systemd unit
    with Kubelet([pod(...)]) as k:  the kubelet's pod-resources API on k.socket

A container has .id, .name, .pid and .kill(). `cgroup_parent` puts one anywhere: below kubepods, or
below a job (slurm.task_cgroup(job)). All but Kubelet need root and what `tools/setup servers`
installs; where that is not to be had, the test is skipped, or fails: see require.missing.
"""
