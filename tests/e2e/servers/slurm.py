"""Slurm: a cluster of this one machine, with a controller, a node daemon and their munge."""
import os
import re
import secrets
import shlex
import socket
import stat

from harness import is_running, wait_until
from servers import cgroups, require
from servers.server import Server

# The node claims more processors than the machine may have, so that several jobs run at once.
CONFIG = """
ClusterName={node}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.sock
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
SchedulerParameters=batch_sched_delay=0
FirstJobId={first_job}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
KillWait=1
ReturnToService=2
MailProg=/bin/true
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 {gres}State=UNKNOWN
PartitionName=test Nodes={node} Default=YES State=UP
"""
CGROUP_CONFIG = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=no
ConstrainDevices={constrain}
"""
# Of NVIDIA's driver. Slurm reads the numbers of the nodes; nobody opens them.
GPU_MAJOR, CONTROL_MINOR = 195, 255
# What jobs need of a machine whose rules forbid everything else: see forbid_other_devices().
USUAL_DEVICES = ("b *:* m", "c *:* m", "c 1:* rwm", "c 5:* rwm", "c 136:* rwm")
SLEEP = "exec sleep 600"
# The deepest path that the job has in any hierarchy: that of its task.
OWN_CGROUP = r"$(sed -n 's|^[0-9]*:[^:]*:\(/slurm\)|\1|p' /proc/self/cgroup | sort | tail -n 1)"


class Slurm(Server):
    """A job's processes sit in /slurm_<node>/uid_0/job_<id>/step_<step> in one hierarchy, in
    task_<n> below that in others, and at the root in the rest."""

    def __init__(self, gpus=0, constrain_devices=False):
        self.gpus, self.constrain_devices = gpus, constrain_devices

    programs = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "srun")

    def require(self):
        super().require()
        if not os.path.ismount("/sys/fs/cgroup/freezer"):
            require.missing("Slurm's plugin for cgroup v1 needs its hierarchies, such as freezer")

    def set_up(self):
        self.node = "n" + secrets.token_hex(4)
        self.root = f"/slurm_{self.node}"
        self.stage.own(self.root)
        self.configure()
        if self.gpus:
            self.configure_gpus()
        self.start()

    def configure(self):
        for name in ("state", "spool"):
            os.mkdir(self.stage.path(name))
        self.stage.write("munge.key", secrets.token_hex(512), 0o400)
        with socket.socket() as controller, socket.socket() as node:
            for sock in (controller, node):
                sock.bind(("127.0.0.1", 0))
            self.stage.write("slurm.conf", CONFIG.format(
                node=self.node, host=socket.gethostname(), directory=self.stage.directory,
                first_job=secrets.randbelow(6 * 10**7) + 10**6,  # another test may have a cluster beside this one
                controller_port=controller.getsockname()[1], node_port=node.getsockname()[1],
                gres=f"Gres=gpu:{self.gpus} " if self.gpus else ""))
        self.stage.write("cgroup.conf", CGROUP_CONFIG.format(
            constrain="yes" if self.constrain_devices else "no"))
        self.env = {**os.environ, "SLURM_CONF": self.stage.path("slurm.conf")}

    def configure_gpus(self):
        with open(self.stage.path("slurm.conf"), "a") as file:
            file.write("GresTypes=gpu\n")
        os.mkdir(self.stage.path("dev"))
        for gpu in range(self.gpus):
            os.mknod(self.gpu_node(gpu), stat.S_IFCHR | 0o666, os.makedev(GPU_MAJOR, gpu))
        self.stage.write("gres.conf", "".join(
            f"NodeName={self.node} Name=gpu File={self.gpu_node(gpu)}\n" for gpu in range(self.gpus)))

    def gpu_node(self, gpu):
        return self.stage.path(f"dev/nvidia{gpu}")

    def forbid_other_devices(self):
        """Before the first job: only what is named here is allowed to jobs. Slurm itself forbids a job the GPUs of
        others, which the kernel does not show (devices.list is "a *:* rwm") as long as all else is allowed."""
        directory = f"{cgroups.ROOT}/devices{self.root}"
        os.makedirs(directory, exist_ok=True)
        rules = [f"c {GPU_MAJOR}:{minor} rwm" for minor in (*range(self.gpus), CONTROL_MINOR)]
        for name, rule in (("deny", "a"), *(("allow", rule) for rule in (*USUAL_DEVICES, *rules))):
            with open(f"{directory}/devices.{name}", "w") as file:
                file.write(rule)

    def start(self):
        path, config = self.stage.path, self.stage.path("slurm.conf")
        munge = self.stage.start(
            self.program["munged"], "--foreground", "--force", f"--key-file={path('munge.key')}",
            f"--socket={path('munge.sock')}", f"--pid-file={path('munge.pid')}",
            f"--seed-file={path('munge.seed')}", f"--log-file={path('munge.log')}")
        munge.wait_for_socket(path("munge.sock"))
        controller = self.stage.start(self.program["slurmctld"], "-D", "-f", config)
        node = self.stage.start(self.program["slurmd"], "-D", "-f", config, "-N", self.node)
        controller.wait_until("the node is idle",
                              lambda: node.check() and self.node_state() == "idle")

    def node_state(self):
        try:
            return self.call("sinfo", "--noheader", "--format=%T")
        except AssertionError:  # the controller does not answer yet
            return None

    def sbatch(self, script=SLEEP, job_name="train", account="research", gpus=0):
        """Submits lines of shell; returns the job's id."""
        wanted = [f"--gres=gpu:{gpus}"] if gpus else []
        return int(self.call(
            "sbatch", "--parsable", *wanted, f"--job-name={job_name}", f"--account={account}",
            f"--chdir={self.stage.directory}", f"--output={self.stage.path('job-%j.out')}",
            self.stage.write(f"script-{secrets.token_hex(4)}", f"#!/bin/sh\n{script}\n")))

    def srun(self, *flags, tasks=1):
        """A job that is one step, without a batch script; returns its id when all its tasks run."""
        path = self.stage.path(f"tasks-{secrets.token_hex(4)}")
        self.stage.start("env", f"SLURM_CONF={self.env['SLURM_CONF']}", self.program["srun"], f"--ntasks={tasks}", *flags,
                         "sh", "-c", f'echo "$SLURM_JOB_ID" >>{path}; {SLEEP}')
        return int(wait_until("all tasks run", lambda: os.path.exists(path) and len(ids := lines(path)) == tasks and ids,
                              60)[0])

    def cgroup(self, job):
        return f"{self.root}/uid_0/job_{job}"

    def pids(self, job):
        """All processes of its steps, without Slurm's own."""
        return {pid for pid in cgroups.pids(self.cgroup(job))
                if any("/step_" in path for path in cgroups.of(pid).values())}

    def task_cgroup(self, job):
        """That of its first task, as a parent for containers."""
        return f"{self.cgroup(job)}/step_batch/task_0"

    def wait_for_process(self, job, name="sleep"):
        """The pid of the job's own process of this name, when it is in all its cgroups."""
        def find():
            for pid in self.pids(job):
                paths = cgroups.of(pid).values()
                if comm(pid) == name and any(re.search(r"/task_\d+$", path) for path in paths):
                    return pid
            return None
        return wait_until(f"job {job} runs {name}", find, 20)

    def run_podman(self, podman, name, **job):
        """A job that starts a container in a cgroup below its own; returns its id and that."""
        arguments = podman.run_arguments(name, cgroup_parent="OWN_CGROUP")
        command = shlex.join(podman.command(*arguments)).replace("OWN_CGROUP", OWN_CGROUP)
        job_id = self.sbatch(f"{command}\n{SLEEP}", **job)
        self.wait_for_process(job_id)
        return job_id, podman.inspect(name)

    def cancel(self, job):
        """Slurm does not kill a container in a cgroup below the job's: do that first."""
        processes = self.pids(job)
        self.call("scancel", "--full", str(job))
        wait_until(f"job {job} has ended", lambda: not any(
            map(is_running, processes | self.pids(job))), 20)

    def call(self, name, *arguments):
        return self.stage.run(self.program[name], *arguments, env=self.env)


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().rstrip("\n")
    except OSError:  # it has ended
        return None
