"""Pods on boards that are shared, in MIG mode or under MPS: real processes in cgroups of pods, the kubelet's real
pod-resources API, and fake GPUs that play tests/fakes/nvml/scenarios."""
import shutil
import tempfile
import time
from contextlib import ExitStack

import harness
from gpu_node import FAKE, NO_METERS, Containers, run_pod, write_pids
from harness import PROCESS_ENERGY, SOURCE_ROOT, UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, Trace
from prometheus import Prometheus, queries, serve_page
from servers import cgroups, require
from servers.kubelet import Kubelet, claim, claimed, devices, pod
from servers.slurm import Slurm

ALLOCATED = "wattribute_workload_gpu_allocated"
MIG_PODS = f"{SOURCE_ROOT}/tests/fakes/nvml/scenarios/mig-pods.trace"
UUIDS = ["GPU-%08x-0000-4000-8000-000000000000" % gpu for gpu in range(2)]


def mig_uuid(gpu, instance, slices=1):
    return f"MIG-{gpu:08x}-{instance:04x}-0000-8000-{slices:012x}"


# As dcgm-exporter 4.5 labels an instance. It has no metric of the board itself then, and repeats its power.
DCGM = """DCGM_FI_%s{gpu="%d",UUID="%s",pci_bus_id="00000000:0%d:00.0",device="nvidia%d",modelName="NVIDIA H100",\
GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d",Hostname="node",DCGM_FI_DRIVER_VERSION="580.159.04"} %g
"""
ACTIVITY = ({3: 0.5, 7: 0.9, 8: 0.8, 9: 0, 10: 0}, {7: 0, 8: 0.9, 13: 0})  # of the instances of both boards
SCRAPES = 10


def dcgm_page():
    return "".join(DCGM % (what, gpu, UUIDS[gpu], gpu, gpu, instance, value)
                   for gpu, instances in enumerate(ACTIVITY) for instance, activity in instances.items()
                   for what, value in (("PROF_GR_ENGINE_ACTIVE", activity), ("DEV_POWER_USAGE", (190, 100)[gpu])))


def rows(page, **labels):
    """(name, gpu, uuid, gpu_instance): source."""
    return {(found["name"], found["gpu"], found["uuid"], found["gpu_instance"]):
            found["source"] + ("?" if found["unverified"] else "")
            for found, value in page.values(ALLOCATED, **labels) if value == 1}


class PodTestCase(TestCase):
    """One exporter for all tests of a class, which last as long as the wait for its first page."""

    @classmethod
    def start(cls, scenario, pods, pids, *flags):
        """`pods` are the devices of each pod, by name; `pids` the pods of the processes of the scenario."""
        require.root()
        require.writable(cgroups.hierarchies())
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-e2e-"))
        docker = stack.enter_context(Containers(f"{directory}/docker.sock"))
        found = {name: run_pod(stack, docker, "ml", name, **cls.options_of(name, directory)) for name in pods}
        cls.ids = {name: ident for name, (ident, _) in found.items()}
        cls.pids = {traced: found[name][1] for traced, name in pids.items()}
        kubelet = stack.enter_context(Kubelet([
            pod("ml", name, {"worker": held}) for name, held in pods.items() if held]))
        cls.stack, cls.directory = stack, directory
        cls.exporter = stack.enter_context(Exporter(
            *NO_METERS, "--process-scan-interval=1s", f"--docker-socket={directory}/docker.sock", "--cri-socket=",
            "--podman-socket=", f"--pod-resources-socket={kubelet.socket}", *flags,
            env={"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario,
                 "FAKE_NVML_PIDS": write_pids(f"{directory}/pids", cls.pids)}))

    @classmethod
    def options_of(cls, name, directory):
        return {}

    def joules(self, page, name, gpu=0, **labels):
        return page.sum(WORKLOAD_ENERGY, id=self.ids[name], meter_id=UUIDS[gpu], **labels)

    def gained(self, before, after, name, **labels):
        return float(self.joules(after, name, **labels) - self.joules(before, name, **labels))


class Mig(PodTestCase):
    @classmethod
    def setUpClass(cls):
        cls.start(MIG_PODS, {
            "mixed": [devices("nvidia.com/mig-1g.10gb", mig_uuid(0, 7))],
            "single": [devices("nvidia.com/gpu", f"MIG-{UUIDS[0]}/3/0")],
            "hidden": [devices("nvidia.com/gpu", mig_uuid(0, 8))],
            "gke": [devices("nvidia.com/gpu", "nvidia0/gi9")],
            "claimant": [claim("c", "ml", claimed("gpu.nvidia.com", "node", "gpu-1-mig-1g10gb-19-2"))],
            "media": [claim("d", "ml", claimed("gpu.example.com", "node", "any", cdi_device=(
                "k8s.gpu.nvidia.com/claim=8dea0b1f-4c4e-7a1b-9d3c-0123456789ab-gpu-1-mig-1g10gb-me-20-6")))],
            "numbered": [claim("f", "ml", claimed("gpu.example.com", "node", "x", cdi_device="nvidia.com/gpu=0:4"))],
            "older": [claim("e", "ml", claimed("gpu.nvidia.com", "node", "gpu-1-mig-19-0-1"))],
        }, {401: "mixed", 402: "single", 411: "claimant"}, "--idle-policy=reserved")
        cls.prometheus = cls.stack.enter_context(Prometheus(
            cls.directory, wattribute=[cls.exporter.address],
            dcgm=[cls.stack.enter_context(serve_page(dcgm_page()))]))
        names = tuple(cls.ids)
        cls.before = cls.exporter.wait_for_page("all have their instances, and work or pay", lambda page: all(
            page.values(ALLOCATED, id=cls.ids[name]) and page.sum(WORKLOAD_ENERGY, id=cls.ids[name]) > 50
            for name in names) and page.sum(WORKLOAD_ENERGY, id=cls.ids["hidden"], method="inferred") > 100, 40)
        # The play begins anew after twelve seconds; whatever was booked before the pods had names is over.
        cls.after = cls.exporter.wait_for_page("a whole turn has passed", lambda page: page.sum(
            WORKLOAD_ENERGY, id=cls.ids["gke"]) > cls.before.sum(WORKLOAD_ENERGY, id=cls.ids["gke"]) + 100, 40)

    def test_a_pod_has_the_instance_that_the_kubelet_gave_it_in_whatever_words(self):
        self.assertEqual({
            ("mixed", "0", UUIDS[0], "7"): "kubelet", ("single", "0", UUIDS[0], "3"): "kubelet",
            ("hidden", "0", UUIDS[0], "8"): "kubelet", ("gke", "0", UUIDS[0], "9"): "kubelet",
            ("claimant", "1", UUIDS[1], "8"): "dra", ("media", "1", UUIDS[1], "13"): "dra",
            ("numbered", "0", UUIDS[0], "10"): "dra", ("older", "1", UUIDS[1], "7"): "dra"
        }, rows(self.after, kind="pod"))
        for gpu in ("0", "1"):
            self.assertEqual(1, self.after.value("wattribute_gpu_sharing", gpu=gpu, mode="mig"))

    def test_joules_of_a_process_are_in_the_row_of_its_pod(self):
        for traced, name, gpu in ((401, "mixed", 0), (402, "single", 0), (411, "claimant", 1)):
            joules = self.after.sum(PROCESS_ENERGY, pid=str(self.pids[traced]), gpu=str(gpu))
            self.assertGreater(joules, 100)
            # What the pod paid for its idle instance before is of no process.
            unseen = self.joules(self.after, name, gpu) - joules
            self.assertTrue(0 <= unseen <= self.joules(self.after, name, gpu, tier="idle"), unseen)
            self.assertEqual(0, self.joules(self.after, name, gpu, method="inferred"))
        self.assert_balanced(self.after)

    def test_work_that_no_process_is_seen_to_do_is_of_the_pod_that_has_the_instance(self):
        inferred = {name: self.gained(self.before, self.after, name, method="inferred", tier="active")
                    for name in self.ids if name not in ("claimant", "media", "older")}
        self.assertEqual({"hidden"}, {name for name, joules in inferred.items() if joules > 0})
        # It draws 38 W, and 402 in its two slices 37 W.
        self.assertAlmostEqual(1, inferred["hidden"] / self.gained(self.before, self.after, "single", tier="active"),
                               delta=0.4)

    def test_an_idle_instance_is_paid_by_its_pod_and_free_slices_by_nobody(self):
        paid = self.gained(self.before, self.after, "gke", tier="idle")
        self.assertEqual(0, self.joules(self.after, "gke", tier="active"))
        # One slice, and one is free. `single` has two.
        idle = float(self.after.sum(UNOWNED_ENERGY, owner="idle", meter_id=UUIDS[0]) -
                     self.before.sum(UNOWNED_ENERGY, owner="idle", meter_id=UUIDS[0]))
        self.assertAlmostEqual(1, idle / paid, delta=0.2)
        self.assertAlmostEqual(2, self.gained(self.before, self.after, "single", tier="idle") / paid, delta=0.5)

    def test_memory_is_of_the_pod_in_whose_instance_it_is(self):
        def memory(page):
            return {(labels["pod"], labels["namespace"], labels["method"]): int(value) >> 20
                    for labels, value in page.values("container_gpu_memory_bytes", gpu="0")}

        page = self.exporter.wait_for_page("it is known and inferred", lambda page: memory(page) == {
            ("mixed", "ml", "nvidia-smi"): 512, ("single", "ml", "nvidia-smi"): 512,
            ("hidden", "ml", "inference"): 2048}, 20)
        # An empty instance has none, but its pod has a GPU.
        self.assertEqual(1, page.value("container_gpu_detected", pod="gke", namespace="ml",
                                       container_id=self.ids["gke"], container_name="worker"))


    def documented(self, begin, **parameters):
        """The answer to the one query of promql.md that begins like this, over what was scraped."""
        found = [query for _, query in queries(f"{SOURCE_ROOT}/docs/promql.md") if query.startswith(begin)]
        self.assertEqual(1, len(found), begin)
        return self.prometheus.rows(found[0].replace("[5m]", f"[{SCRAPES}s]"), **parameters)

    def test_dcgm_exporters_metrics_are_joined_by_board_and_instance(self):
        activity = self.documented("sum by (UUID, GPU_I_ID, kind, id,")
        self.assertEqual({("mixed", UUIDS[0], "7"): 0.9, ("single", UUIDS[0], "3"): 0.5, ("hidden", UUIDS[0], "8"): 0.8,
                          ("gke", UUIDS[0], "9"): 0, ("numbered", UUIDS[0], "10"): 0,
                          ("claimant", UUIDS[1], "8"): 0.9, ("older", UUIDS[1], "7"): 0,
                          ("media", UUIDS[1], "13"): 0},
                         {(labels["pod"], labels["UUID"], labels["GPU_I_ID"]): value for labels, value in activity
                          if labels["kind"] == "pod"})
        parts = {(labels["pod"], labels["UUID"]): value for labels, value in
                 self.documented("label_replace(sum by (namespace, pod, meter_id)")}
        self.assertEqual(8, len(parts))
        for uuid in UUIDS:
            self.assertTrue(0.2 < sum(part for (_, board), part in parts.items() if board == uuid) < 1.1, parts)

    def test_queries_about_allocations_count_a_board_once(self):
        unused = self.documented("wattribute_workload_gpu_allocated\n  unless")
        self.assertEqual({"gke", "media", "numbered", "older"}, {
            labels["pod"] for labels, _ in unused if labels["kind"] == "pod"})
        at = time.time() - 1
        watts = self.prometheus.rows('sum(wattribute_gpu_power_watts{gpu_instance=""})', time=at)
        self.assertEqual([watts[0][1]], [value for _, value in self.documented(
            "sum by (instance) (wattribute_gpu_power_watts", time=at)])


class Mps(PodTestCase):
    """The plugin starts the server in a pod of its own, and lists the board many times."""

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        trace = Trace()
        trace.gpu(0, uuid=UUIDS[0].encode())
        for tick in range(201):
            t = tick / 10
            trace.energy(t, 0, 1_000_000 + tick * 35_000)
            trace.utilisation(t, 0, 99)
            if tick % 5 == 0:
                trace.listed(t, 0, 500, 501, 502)
                trace.add(t, "R", 0, b"m", 2, b"501:1048576", b"502:1048576")
            if tick % 2 == 1:
                trace.sample(t, 0, 500)
        trace.add(20, "X", 0, b"loop")
        with open(f"{directory}/scenario", "wb") as file:
            file.write(trace.body().replace(b" X 0 loop", b" X * loop"))
        cls.start(f"{directory}/scenario", {
            "one": [devices("nvidia.com/gpu.shared", f"{UUIDS[0]}::0", f"{UUIDS[0]}::7")],
            "two": [devices("example.com/shared-gpu", f"{UUIDS[0]}::3", numa_node=0),
                    devices("example.com/shared-gpu", f"{UUIDS[0]}::4", numa_node=1)],
            "mps-control-daemon": [],
        }, {500: "mps-control-daemon", 501: "one", 502: "two"})
        cls.page = cls.exporter.wait_for_page("both work and are named", lambda page: all(
            page.sum(WORKLOAD_ENERGY, id=cls.ids[name], name=name) > 1000 for name in ("one", "two")) and
            len(rows(page, kind="pod")) == 2, 40)

    @classmethod
    def options_of(cls, name, directory):
        if name != "mps-control-daemon":
            return {}
        return {"command": (shutil.copy(shutil.which("sleep"), f"{directory}/nvidia-cuda-mps-server"), "600")}

    def test_each_pod_has_one_row_of_the_board_however_many_replicas_it_has(self):
        self.assertEqual({("one", "0", UUIDS[0], ""): "kubelet", ("two", "0", UUIDS[0], ""): "kubelet"},
                         rows(self.page, kind="pod"))
        self.assertEqual({"mps"}, {labels["mode"] for labels, value in self.page.values("wattribute_gpu_sharing")
                                   if value == 1})

    def test_clients_of_unknown_programs_share_alike_and_the_server_is_charged_nothing(self):
        one, two = (self.joules(self.page, name) for name in ("one", "two"))
        self.assertLess(abs(one - two), (one + two) / 50)
        self.assertEqual(0, self.joules(self.page, "mps-control-daemon"))
        self.assertEqual(0, self.page.sum(PROCESS_ENERGY, pid=str(self.pids[500])))
        self.assert_balanced(self.page)


class KnownMpsClients(PodTestCase):
    """Each was alone first, and is another program than the other."""

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        trace, counter_mj = Trace(), 1_000_000
        trace.gpu(0, uuid=UUIDS[0].encode())
        # Watts above the idle board, and GPM's percents of SMs, tensor pipes and memory.
        heavy, light = (300, (80, 60, 10)), (100, (20, 0, 40))
        for tick in range(221):
            t = tick / 10
            clients = {pid: load for pid, load, present in (
                (501, heavy, 3 <= t < 7 or t >= 11), (502, light, 7 <= t < 11 or t >= 11)) if present}
            trace.energy(t, 0, counter_mj)
            counter_mj += 100 * (80 + sum(watts for watts, _ in clients.values()))
            trace.utilisation(t, 0, 99 if clients else 0)
            sm, tensor, dram = (sum(units[i] for _, units in clients.values()) for i in range(3))
            trace.add(t, "G", 0, b"1=%d" % (100 if clients else 0), b"2=%d" % sm, b"3=%d" % (sm // 2), b"4=0",
                      b"5=%d" % tensor, b"7=%d" % tensor, b"10=%d" % dram, b"11=0", b"12=0", b"13=0")
            if tick % 2 == 0:
                trace.listed(t, 0, 500, *clients)
                trace.add(t, "R", 0, b"m", len(clients), *(b"%d:1048576" % pid for pid in clients))
            if tick % 2 == 1 and clients:
                trace.sample(t, 0, 500)
        cls.start(trace.write(f"{directory}/scenario"), {
            "heavy": [devices("nvidia.com/gpu", f"{UUIDS[0]}::0")],
            "light": [devices("nvidia.com/gpu", f"{UUIDS[0]}::1")],
            "mps-control-daemon": [],
        }, {500: "mps-control-daemon", 501: "heavy", 502: "light"})
        cls.page = cls.exporter.wait_for_page("they were together for some seconds", lambda page: page.sum(
            WORKLOAD_ENERGY, id=cls.ids["light"], tier="active") > 1000, 40)

    @classmethod
    def options_of(cls, name, directory):
        if name != "mps-control-daemon":
            return {"command": ("sleep", str(700 + len(name) + (name == "heavy")))}
        return {"command": (shutil.copy(shutil.which("sleep"), f"{directory}/nvidia-cuda-mps-server"), "600")}

    def test_clients_whose_programs_are_known_are_unmixed(self):
        # 3 to 1, alone and together; equal parts of what they did together would be less than 2 to 1.
        heavy, light = (float(self.joules(self.page, name, tier="active")) for name in ("heavy", "light"))
        self.assertGreater(heavy / light, 2)
        self.assertEqual(0, self.joules(self.page, "mps-control-daemon"))
        self.assert_balanced(self.page)


class SlurmWithMig(TestCase):
    def test_a_job_has_the_instances_whose_uuids_are_in_its_environment(self):
        slurm = self.enter(Slurm(gpus=2))
        # With AutoDetect=nvml Slurm writes them itself; it counts MIG devices in SLURM_JOB_GPUS.
        job = slurm.sbatch(f"CUDA_VISIBLE_DEVICES={mig_uuid(0, 8)},MIG-{UUIDS[1]}/13/0 exec sleep 600", gpus=1)
        slurm.wait_for_process(job)
        with Exporter("--process-scan-interval=1s", "--cri-socket=", "--docker-socket=", "--podman-socket=",
                      "--pod-resources-socket=", env={"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": MIG_PODS}
                      ) as exporter:
            exporter.wait_for_page("both instances are shown", lambda page: rows(page, kind="slurm") == {
                (str(job), "0", UUIDS[0], "8"): "environment?", (str(job), "1", UUIDS[1], "13"): "environment?"}, 30)

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result


if __name__ == "__main__":
    harness.main()
