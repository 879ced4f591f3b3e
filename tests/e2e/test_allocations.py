"""Which workload has which GPU, whoever gave it: real jobs of a real Slurm, real containers and cgroups, on fake GPUs
that nobody uses."""
import os
import re
import secrets
import sys

import harness
from gpu_node import FAKE, Containers, process_in
from harness import UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, Trace, wait_until
from servers import cgroups, require
from servers.containerd import Containerd
from servers.docker import Dockerd
from servers.kubelet import Kubelet, claim, claimed, devices, pod
from servers.slurm import CONTROL_MINOR, GPU_MAJOR, USUAL_DEVICES, Slurm, comm

ALLOCATED = "wattribute_workload_gpu_allocated"
UUIDS = ["GPU-79185bc1-0000-4000-8000-00000000000%d" % gpu for gpu in range(3)]
SOCKETS = ("cri", "docker", "podman", "pod-resources")
PAID_J = 200  # of an idle GPU, in some seconds


class AllocationTestCase(TestCase):
    """Other tests may run beside it on the same machine, with jobs and containers that are on the page, too: only those
    that a test has in `own` count."""

    def setUp(self):
        super().setUp()
        self.own = set()

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def exporter(self, *flags, **sockets):
        """On a node with three idle GPUs."""
        trace = Trace()
        for gpu, uuid in enumerate(UUIDS):
            trace.gpu(gpu, uuid=uuid.encode())
        for tick in range(101):
            for gpu in range(len(UUIDS)):
                trace.energy(tick / 10, gpu, 1_000_000 + tick * 8_000)
                trace.utilisation(tick / 10, gpu, 0)
                trace.add(tick / 10, "R", gpu, b"c", 0)
        trace.add(10, "X", 0, b"loop")
        scenario = self.write("scenario", trace.body().replace(b" X 0 loop", b" X * loop"))
        return Exporter("--process-scan-interval=1s", *flags, *(
            f"--{name}-socket={sockets.get(name.replace('-', '_'), '')}" for name in SOCKETS),
            env={"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario})

    def rows(self, page):
        """(kind, id, gpu): its source, with "?" if it is not verified."""
        return {(labels["kind"], labels["id"], int(labels["gpu"])):
                labels["source"] + ("?" if labels["unverified"] == "gpu" else "")
                for labels, value in page.values(ALLOCATED) if value == 1 and labels["id"] in self.own}

    def wait_for_rows(self, exporter, expected, seconds=30):
        self.own.update(ident for _, ident, _ in expected)
        page = exporter.wait_for_page(f"{expected} are shown", lambda page: self.rows(page) == expected, seconds)
        for labels, _ in page.values(ALLOCATED):
            self.assertEqual(UUIDS[int(labels["gpu"])], labels["uuid"])
        return page

    def idle(self, page, gpu):
        """What is nobody's, or of who claims the GPU beside this test."""
        return page.sum(UNOWNED_ENERGY, owner="idle", meter_id=UUIDS[gpu]) + page.sum(
            WORKLOAD_ENERGY, tier="idle", meter_id=UUIDS[gpu])

    def paid(self, page, ident, gpu):
        return page.sum(WORKLOAD_ENERGY, id=ident, meter_id=UUIDS[gpu], tier="idle", method="shared")

    def wait_until_paid(self, exporter, payers, idle):
        """Each payer (id, gpu) pays, and nobody for the idle ones."""
        page = exporter.wait_for_page("they pay", lambda page: all(
            self.paid(page, ident, gpu) > PAID_J for ident, gpu in payers) and all(
            self.idle(page, gpu) > PAID_J for gpu in idle), 40)
        self.assert_balanced(page)
        for gpu in idle:
            for ident in self.own:
                self.assertEqual(0, page.sum(WORKLOAD_ENERGY, id=ident, meter_id=UUIDS[gpu]))
        return page

    def assert_checked(self, pattern, *least):
        """`check` counts at least these, and those that are beside this test."""
        report = harness.run("check", timeout=60).stdout.decode()
        self.assertRegex(report, pattern)
        for found, wanted in zip(re.search(pattern, report).groups(), least, strict=True):
            self.assertGreaterEqual(int(found), wanted, report)


def allow_only(group, *minors):
    """The device rules of a cgroup of v1, as of one that constrains GPUs."""
    rules = [f"c {GPU_MAJOR}:{minor} rwm" for minor in (*minors, CONTROL_MINOR)]
    for name, rule in (("deny", "a"), *(("allow", rule) for rule in (*USUAL_DEVICES, *rules))):
        with open(f"{cgroups.ROOT}/devices{group}/devices.{name}", "w") as file:
            file.write(rule)


class SlurmJobs(AllocationTestCase):
    def slurm(self, **options):
        return self.enter(Slurm(gpus=len(UUIDS), **options))

    def test_a_job_has_the_gpus_of_its_environment_and_pays_for_them_while_they_are_idle(self):
        slurm = self.slurm(constrain_devices=True)
        first, second = slurm.sbatch(gpus=1), slurm.sbatch(gpus=1)
        without = slurm.sbatch()
        for job in (first, second, without):
            slurm.wait_for_process(job)
            self.own.add(str(job))
        with self.exporter("--idle-policy=reserved") as exporter:
            page = self.wait_for_rows(exporter, {("slurm", str(first), 0): "environment?",
                                                 ("slurm", str(second), 1): "environment?"})
            labels = page.values(ALLOCATED, id=str(first))[0][0]
            self.assertEqual((str(first), "", "", "", ""), tuple(
                labels[name] for name in ("name", "namespace", "pod", "container", "gpu_instance")))
            self.wait_until_paid(exporter, [(str(first), 0), (str(second), 1)], idle=[2])
            self.assert_checked(r"limited +GPUs of jobs +\d+ by device rules, (\d+) by the job's environment alone", 2)
            slurm.cancel(first)
            self.wait_for_rows(exporter, {("slurm", str(second), 1): "environment?"})

    def test_the_steps_of_an_allocation_have_theirs(self):
        slurm = self.slurm()
        step = "srun --ntasks=1 --exact --gres=gpu:1 sleep 600"
        job = slurm.sbatch(f"#SBATCH --ntasks=2\nexec env -u SLURM_JOB_GPUS sh -c '{step} & {step}'", gpus=2)
        wait_until("both steps run", lambda: sum(comm(pid) == "sleep" for pid in slurm.pids(job)) == 2, 30)
        with self.exporter() as exporter:
            self.wait_for_rows(exporter, {("slurm", str(job), gpu): "environment?" for gpu in (0, 1)})

    def test_a_step_without_a_batch_script_has_the_gpus_of_all_its_tasks(self):
        slurm = self.slurm()
        job = str(slurm.srun("--gres=gpu:3", "--gpu-bind=map_gpu:0,1,2", tasks=3))
        with self.exporter() as exporter:
            self.wait_for_rows(exporter, {("slurm", job, gpu): "environment?" for gpu in range(3)})

    def test_gpus_that_a_job_counts_and_nothing_names_are_counted(self):
        """With ConstrainDevices, Slurm 22.05 writes the first GPU of the step into all its tasks."""
        slurm = self.slurm(constrain_devices=True)
        other = str(slurm.sbatch(gpus=1))
        slurm.wait_for_process(int(other))
        job = str(slurm.srun("--gpus-per-task=1", tasks=2))
        with self.exporter("--idle-policy=reserved") as exporter:
            self.wait_for_rows(exporter, {("slurm", other, 0): "environment?", ("slurm", job, 1): "environment?"})
            self.wait_until_paid(exporter, [(other, 0), (job, 1)], idle=[2])
            self.assertGreaterEqual(exporter.page().value("wattribute_node_job_gpus_unknown"), 1)
            self.assert_checked(r"limited +GPUs of jobs +(\d+) of (\d+) jobs? ha\w+ (\d+) more GPUs? than", 1, 2, 1)

    def test_device_rules_that_can_be_read_count_and_what_the_job_says_does_not(self):
        slurm = self.slurm(constrain_devices=True)
        slurm.forbid_other_devices()
        honest = slurm.sbatch(gpus=1)
        slurm.wait_for_process(honest)
        liar = slurm.sbatch("SLURM_JOB_GPUS=0,1,2 exec sleep 600", gpus=2)
        greedy = slurm.sbatch("SLURM_JOB_GPUS=0,1,2 exec sleep 600")
        for job in (liar, greedy):
            slurm.wait_for_process(job)
            self.own.add(str(job))
        with self.exporter("--idle-policy=reserved") as exporter:
            self.wait_for_rows(exporter, {("slurm", str(honest), 0): "device_cgroup",
                                          ("slurm", str(liar), 1): "device_cgroup",
                                          ("slurm", str(liar), 2): "device_cgroup"})
            page = self.wait_until_paid(exporter, [(str(honest), 0), (str(liar), 1), (str(liar), 2)], idle=[])
            self.assert_checked(r"GPUs of jobs +(?:\d+ jobs; )?(\d+) by device rules", 2)
            self.assertEqual(0, page.sum(WORKLOAD_ENERGY, id=str(greedy), meter="gpu"))

    def test_a_jobs_own_word_takes_no_share_from_who_was_given_the_gpu(self):
        slurm, docker = self.slurm(), self.enter(Dockerd())
        liar = slurm.sbatch("SLURM_JOB_GPUS=0,1 exec sleep 600")
        slurm.wait_for_process(liar)
        holder = docker.run("holder", DeviceRequests=[
            {"Driver": "", "Count": 0, "DeviceIDs": [UUIDS[0]], "Capabilities": [["gpu"]]}])
        with self.exporter("--idle-policy=reserved", docker=docker.socket) as exporter:
            self.wait_for_rows(exporter, {("container", holder.id, 0): "docker",
                                          ("slurm", str(liar), 0): "environment?",
                                          ("slurm", str(liar), 1): "environment?"})
            # What it had before the container was listed stays its own.
            before = self.wait_until_paid(exporter, [(holder.id, 0), (str(liar), 1)], idle=[2])
            after = exporter.wait_for_page("more is paid", lambda page: self.paid(
                page, holder.id, 0) > self.paid(before, holder.id, 0) + PAID_J, 40)
            self.assertEqual(self.paid(before, str(liar), 0), self.paid(after, str(liar), 0))


class OtherJobs(AllocationTestCase):
    def setUp(self):
        super().setUp()
        require.root()
        require.writable(cgroups.hierarchies())
        if not os.path.ismount(f"{cgroups.ROOT}/devices"):
            require.missing("the devices controller of cgroup v1 is not mounted")

    def test_jobs_of_lsf_and_pbs_and_units_have_the_gpus_of_their_device_rules(self):
        tag = secrets.token_hex(4)
        first, second = (str(secrets.randbelow(10**6) + base) for base in (10**6, 2 * 10**6))
        lsf, pbs = f"/lsf/{tag}/job.{first}.{os.getpid()}.5", f"/pbs_jobs.service/jobid/5.{tag}"
        unit = f"/system.slice/w{tag}.service"
        for group, minors in ((lsf, [0]), (pbs, [1, 2]), (unit, [2])):
            self.enter(process_in(group, CUDA_VISIBLE_DEVICES="0"))
            allow_only(group, *minors)
        named = f"/pbs_jobs.service/jobid/6.{tag}"
        self.enter(process_in(named, CUDA_VISIBLE_DEVICES=f"{UUIDS[0]},{UUIDS[1]}"))
        # An index says nothing: it may count from 0 in each job.
        self.enter(process_in(f"/lsf/{tag}/job.{second}.{os.getpid()}.5", CUDA_VISIBLE_DEVICES="1"))
        self.own.add(second)
        with self.exporter("--idle-policy=reserved") as exporter:
            self.wait_for_rows(exporter, {
                ("lsf", first, 0): "device_cgroup",
                ("pbs", f"5.{tag}", 1): "device_cgroup", ("pbs", f"5.{tag}", 2): "device_cgroup",
                ("unit", f"w{tag}.service", 2): "device_cgroup",
                ("pbs", f"6.{tag}", 0): "environment?", ("pbs", f"6.{tag}", 1): "environment?"})
            page = self.wait_until_paid(exporter, [(first, 0), (f"5.{tag}", 1), (f"5.{tag}", 2)], idle=[])
            # Two were given it, and pay alike.
            self.assertLess(abs(self.paid(page, f"5.{tag}", 2) - self.paid(page, f"w{tag}.service", 2)), 50)

    def test_a_tenant_cannot_have_a_gpu_in_the_name_of_another(self):
        own, victim, job = secrets.token_hex(32), secrets.token_hex(32), str(secrets.randbelow(10**6) + 10**6)
        tag = secrets.token_hex(4)
        service = f"/system.slice/w{tag}.service"
        says = {"SLURM_JOB_GPUS": "0,1,2", "CUDA_VISIBLE_DEVICES": ",".join(UUIDS)}
        self.enter(process_in(f"/docker/{victim}"))
        self.enter(process_in(f"/slurm_{tag}/uid_0/job_{job}/step_batch"))
        # Root in a container names cgroups like the victim's job and container, and so does the user of a service.
        self.enter(process_in(f"/docker/{own}/slurm_{tag}/uid_0/job_{job}/step_batch", **says))
        self.enter(process_in(f"/docker/{own}/docker/{victim}", **says))
        self.enter(process_in(service))
        cgroups.give(service, 4711)
        for forged in (f"{service}/slurm_{tag}/uid_0/job_{job}/step_batch", f"{service}/docker/{victim}"):
            self.enter(process_in(forged, **says))
            allow_only(forged, 1)
        # One job is honest, so that the page is known to be complete.
        self.enter(process_in(f"/slurm_{tag}/uid_0/job_1{job}/step_batch", SLURM_JOB_GPUS="2"))
        with self.exporter("--idle-policy=reserved") as exporter:
            page = exporter.wait_for_page("the honest one is shown", lambda page: page.values(
                ALLOCATED, id=f"1{job}") and self.paid(page, f"1{job}", 2) > PAID_J, 40)
            for ident in (victim, job, own):
                self.assertEqual([], page.values(ALLOCATED, id=ident), ident)
                self.assertEqual(0, page.sum(WORKLOAD_ENERGY, id=ident, meter="gpu"))
            self.assert_balanced(page)


class DockerContainers(AllocationTestCase):
    def test_gpus_and_cdi_names_are_allocations_and_an_environment_is_not(self):
        docker = self.enter(Containers(self.path("docker.sock")))
        gpus = docker.add("gpus", requests=[{"Driver": "", "Count": 1, "DeviceIDs": None, "Capabilities": [["gpu"]]}])
        cdi = docker.add("cdi", requests=[{"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=1"],
                                           "Capabilities": None}])
        every = docker.add("every", requests=[{"Driver": "", "Count": -1, "DeviceIDs": None,
                                               "Capabilities": [["gpu"]]}])
        hint = docker.add("hint")
        docker.of_id[hint]["Config"] = {"Env": ["NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES=0"]}
        agent = docker.add("agent")
        docker.of_id[agent]["HostConfig"]["Privileged"] = True
        self.own.update((hint, agent))
        with self.exporter("--idle-policy=reserved", docker=self.path("docker.sock")) as exporter:
            page = self.wait_for_rows(exporter, {
                ("container", gpus, 0): "docker", ("container", cdi, 1): "docker",
                **{("container", every, gpu): "docker" for gpu in range(3)}})
            self.assertEqual("cdi", page.values(ALLOCATED, id=cdi)[0][0]["container"])
            page = self.wait_until_paid(exporter, [(cdi, 1), (every, 2)], idle=[])
            for ident in (hint, agent):
                self.assertEqual(0, page.sum(WORKLOAD_ENERGY, id=ident))

    def test_who_can_use_every_device_was_given_none_and_pays_for_none(self):
        docker = self.enter(Containers(self.path("docker.sock")))
        agent = docker.add("agent")
        docker.of_id[agent]["HostConfig"]["Privileged"] = True
        self.own.add(agent)
        with self.exporter("--idle-policy=reserved", docker=self.path("docker.sock")) as exporter:
            page = exporter.wait_for_page("it is found, and does not pay", lambda page: page.values(
                "container_gpu_detected", container_id=agent) and all(
                    self.idle(page, gpu) > PAID_J for gpu in range(len(UUIDS))), 40)
            self.assertEqual({}, self.rows(page))
            self.assertEqual(0, page.sum(WORKLOAD_ENERGY, id=agent))


class Pods(AllocationTestCase):
    def test_device_plugins_and_claims_are_allocations_and_idle_pods_pay(self):
        containerd = self.enter(Containerd())
        train = containerd.run_pod("ml", "train-0", ["plugin", "claimant", "other", "none"])
        ids = {container.name: container.id for container in train.containers}
        self.own.update(ids.values())
        kubelet = self.enter(Kubelet([pod("ml", "train-0", {
            "plugin": [devices("nvidia.com/gpu", f"{UUIDS[0]}::1"), devices("nvidia.com/gpu", f"{UUIDS[0]}::2")],
            "claimant": [claim("c", "ml", claimed("gpu.nvidia.com", "node", "gpu-1", share_id="s",
                                                  cdi_device="k8s.gpu.nvidia.com/claim=x-gpu-1"))],
            "other": [claim("d", "ml", claimed("gpu.example.com", "node", "any", cdi_device=(
                "k8s.gpu.nvidia.com/claim=8dea0b1f-4c4e-7a1b-9d3c-0123456789ab-gpu-2"))),
                claim("e", "ml", claimed("gpu.amd.com", "node", "gpu-0-128"))],
        }), pod("ml", "ended", {"main": [devices("nvidia.com/gpu", UUIDS[2])]})]))
        with self.exporter("--idle-policy=reserved", cri=containerd.socket, pod_resources=kubelet.socket) as exporter:
            page = self.wait_for_rows(exporter, {("pod", ids["plugin"], 0): "kubelet",
                                                 ("pod", ids["claimant"], 1): "dra",
                                                 ("pod", ids["other"], 2): "dra"})
            labels = page.values(ALLOCATED, id=ids["claimant"])[0][0]
            self.assertEqual(("train-0", "ml", "train-0", "claimant"), tuple(
                labels[name] for name in ("name", "namespace", "pod", "container")))
            self.wait_until_paid(exporter, [(ids["plugin"], 0), (ids["claimant"], 1), (ids["other"], 2)], idle=[])
            page = exporter.page()
            for name in ("plugin", "claimant"):
                self.assertEqual(1, page.value("container_gpu_detected", container_name=name, container_id=ids[name],
                                               pod="train-0", namespace="ml"))


BOARD, VGPU = "0000:18:00.0", "9d0a4a52-3f0b-11ef-9f2c-0242ac120002"
PASSED_THROUGH = ("0000:65:00.0", "0000:66:00.0")
VGPU_SCENARIO = os.path.join(harness.SOURCE_ROOT, "tests/fakes/nvml/scenarios/vgpu-host.trace")
BOARD_UUID = "GPU-00000000-0000-4000-8000-000000000000"
MACHINES = "0f4f1cbb-7d3d-4a46-8a8f-4e3ba0c0a5a1", "5c7d3e1e-92a4-4b35-9a55-6d1d1c2b7c11"  # of the scenario


class VirtualMachines(AllocationTestCase):
    """On the host of two vGPUs of one board. Two more boards are VFIO's, and one of them is a machine's."""

    def setUp(self):
        super().setUp()
        require.root()
        require.writable(cgroups.hierarchies())
        for address, driver in ((BOARD, "nvidia"), ("0000:18:00.4", "nvidia"),
                                *((address, "vfio-pci") for address in PASSED_THROUGH)):
            folder = self.path(f"sys/bus/pci/devices/{address}")
            os.makedirs(folder)
            for name, text in (("vendor", b"0x10de\n"), ("class", b"0x030200\n")):
                self.write(f"{folder}/{name}", text)
            os.symlink(f"../../../../bus/pci/drivers/{driver}", f"{folder}/driver")
        os.symlink(f"../{BOARD}", self.path("sys/bus/pci/devices/0000:18:00.4/physfn"))
        os.makedirs(self.path("sys/bus/mdev/devices"))
        os.symlink(f"../../../devices/pci0000:17/{BOARD}/{VGPU}", self.path(f"sys/bus/mdev/devices/{VGPU}"))
        os.symlink("/sys/fs", self.path("sys/fs"))
        self.tag = secrets.token_hex(4)

    def qemu(self, name, uuid, device, above="/machine.slice"):
        """A process that has the command line of a QEMU of libvirt, and its cgroup."""
        self.enter(process_in(f"{above}/machine-qemu\\x2d1\\x2d{name}.scope", (
            sys.executable, "-c", "import signal; signal.pause()", "-name", f"guest=The {name},debug-threads=on",
            "-uuid", uuid, "-device", "virtio-net-pci,id=net0", "-device", device)))

    def test_a_machine_has_the_board_of_its_vgpu_and_the_energy_in_the_same_row(self):
        names = {kind: f"{kind}{self.tag}" for kind in ("mdev", "vf", "whole")}
        self.own.update((*names.values(), f"liar{self.tag}", f"w{self.tag}.service"))
        mdev = f"vfio-pci,id=hostdev0,sysfsdev=/sys/bus/mdev/devices/{VGPU},display=off"
        self.qemu(names["mdev"], MACHINES[0], mdev)
        self.qemu(names["vf"], MACHINES[1], '{"driver":"vfio-pci","host":"0000:18:00.4","id":"hostdev0"}')
        self.qemu(names["whole"], "7c7d3e1e-92a4-4b35-9a55-6d1d1c2b7c11", f"vfio-pci,host={PASSED_THROUGH[0]}")
        service, liar = f"/system.slice/w{self.tag}.service", f"liar{self.tag}"
        self.enter(process_in(service))
        cgroups.give(service, 4711)
        self.qemu(liar, "8c7d3e1e-92a4-4b35-9a55-6d1d1c2b7c11", mdev, above=service)
        with open(VGPU_SCENARIO, "rb") as file:
            scenario = self.write("scenario", file.read() + b"1800000012200000 X * loop\n")
        flags = (f"--path.sysfs={self.path('sys')}", *(f"--{name}-socket=" for name in SOCKETS))
        env = {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario}
        with Exporter("--process-scan-interval=1s", *flags, env=env) as exporter:
            page = exporter.wait_for_page("both have the board, and energy of it", lambda page: all(
                page.values(ALLOCATED, id=names[kind]) and page.sum(
                    WORKLOAD_ENERGY, kind="vm", id=names[kind], meter_id=BOARD_UUID, tier="active") > 0
                for kind in ("mdev", "vf")), 40)
            self.assertEqual({("vm", names[kind], 0): "qemu" for kind in ("mdev", "vf")}, self.rows(page))
            for labels in (labels for labels, _ in page.values(ALLOCATED) if labels["id"] in self.own):
                self.assertEqual((f"The {labels['id']}", BOARD_UUID, ""),
                                 tuple(labels[name] for name in ("name", "uuid", "gpu_instance")))
            self.assert_balanced(page)
        report = harness.run("check", *flags, env=env, timeout=60).stdout.decode()
        self.assertRegex(report, rf"limited +GPU {PASSED_THROUGH[0]} +passed through to the virtual machine "
                                 rf"{names['whole']} \(VFIO\)\n +-> this node's driver cannot see it")
        self.assertRegex(report, rf"limited +GPU {PASSED_THROUGH[1]} +reserved for pass-through \(VFIO\); "
                                 r"no known virtual machine has it")
        self.assertNotIn(f"GPU {BOARD}", report)


if __name__ == "__main__":
    harness.main()
