"""The memory and the joules that nobody is seen to use, with real Docker containers on fake GPUs."""
import os

import harness
from harness import UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, Trace
from servers.docker import Dockerd

FAKE = os.environ["FAKE_NVML_DIR"]
GB = 1 << 30
RESERVED = 644939776  # what the fake driver keeps for itself
UUIDS = ["GPU-79185bc1-0000-4000-8000-00000000000%d" % gpu for gpu in range(2)]
NO_RUNTIMES = ("--cri-socket=", "--podman-socket=", "--pod-resources-socket=")
MEMORY, DETECTED = "container_gpu_memory_bytes", "container_gpu_detected"
SEEN = 100  # a pid of the trace


class InferenceTestCase(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.docker = cls.enterClassContext(Dockerd())

    def scenario(self, used, listed, busy=(0, 0)):
        """Two GPUs for ever: bytes in use, listed processes with theirs, and the utilisation of each."""
        trace = Trace()
        for gpu, uuid in enumerate(UUIDS):
            trace.gpu(gpu, uuid=uuid.encode())
        for tick in range(101):
            t = tick / 10
            for gpu in range(2):
                trace.energy(t, gpu, 1_000_000 + tick * (40_000 if busy[gpu] else 8_000))
                trace.utilisation(t, gpu, busy[gpu])
                trace.add(t, "M", gpu, used[gpu] + RESERVED, 140 * GB - used[gpu], 140 * GB + RESERVED)
                entries = listed.get(gpu, {})
                trace.add(t, "R", gpu, b"c", len(entries), *(b"%d:%d" % each for each in entries.items()))
        trace.add(10, "X", 0, b"loop")
        return self.write("scenario", trace.body().replace(b" X 0 loop", b" X * loop"))

    def exporter(self, scenario, *flags, seen=None):
        pids = f"{SEEN} {seen}\n" if seen else ""
        env = {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario,
               "FAKE_NVML_PIDS": self.write("pids", pids.encode())}
        return Exporter("--process-scan-interval=1s", f"--docker-socket={self.docker.socket}", *NO_RUNTIMES,
                        *flags, env=env)

    def run_with(self, name, *uuids):
        """A container that was given these GPUs, as by `docker run --gpus`; it ends with the test."""
        container = self.docker.run(name, DeviceRequests=[
            {"Driver": "", "Count": 0, "DeviceIDs": list(uuids), "Capabilities": [["gpu"]]}])
        self.addCleanup(container.kill)
        return container

    def rows(self, page):
        return {(labels["container_name"], labels["gpu"], labels["method"]): value
                for labels, value in page.values(MEMORY)}


class Memory(InferenceTestCase):
    def test_known_unknown_and_inferred_bytes_are_exact_and_sum_to_used(self):
        seen = self.run_with("visible", UUIDS[0])
        hidden = self.run_with("invisible", UUIDS[0])
        self.run_with("elsewhere", UUIDS[1])
        self.docker.run("without", env=["NVIDIA_VISIBLE_DEVICES=all"])
        scenario = self.scenario((10 * GB, 3 * GB), {0: {SEEN: 2 * GB}})
        with self.exporter(scenario, seen=seen.pid) as exporter:
            page = exporter.wait_for_page("all are found", lambda page: len(self.rows(page)) == 3, 30)
            self.assertEqual({("visible", "0", "nvidia-smi"): 2 * GB,
                              ("invisible", "0", "inference"): 8 * GB,
                              ("elsewhere", "1", "inference"): 3 * GB}, self.rows(page))
            for gpu, known, unknown in (("0", 2 * GB, 8 * GB), ("1", 0, 3 * GB)):
                self.assertEqual(known, page.value("gpu_memory_known_bytes", gpu=gpu))
                self.assertEqual(unknown, page.value("gpu_memory_unknown_bytes", gpu=gpu))
                self.assertEqual(known + unknown, page.value("gpu_memory_used_bytes", gpu=gpu))
                self.assertEqual(RESERVED, page.value("gpu_memory_reserved_bytes", gpu=gpu))
                self.assertEqual(1, page.value("gpu_inference_active", gpu=gpu))
            self.assertEqual({"visible", "invisible", "elsewhere"},
                             {labels["container_name"] for labels, _ in page.values(DETECTED)})
            self.assertEqual(1, page.value(DETECTED, container_id=hidden.id))

            # When it stops, what is unknown has nobody any more, and no series is invented.
            hidden.kill()
            page = exporter.wait_for_page("it is gone", lambda page: not page.values(
                DETECTED, container_id=hidden.id))
            self.assertEqual({("visible", "0", "nvidia-smi"), ("elsewhere", "1", "inference")},
                             set(self.rows(page)))
            self.assertEqual(8 * GB, page.value("gpu_memory_unknown_bytes", gpu="0"))
            self.assertEqual(0, page.value("gpu_inference_active", gpu="0"))

    def test_an_environment_alone_gives_nobody_a_gpu(self):
        self.docker.run("plain", env=["NVIDIA_VISIBLE_DEVICES=all"])
        with self.exporter(self.scenario((5 * GB, 0), {})) as exporter:
            page = exporter.wait_for_page("memory is compared", lambda page: page.values(
                "gpu_memory_unknown_bytes", gpu="0"))
            self.assertEqual(5 * GB, page.value("gpu_memory_unknown_bytes", gpu="0"))
            self.assertEqual([], page.values(MEMORY))
            self.assertEqual([], page.values(DETECTED))


class Energy(InferenceTestCase):
    def test_work_that_nobody_is_seen_to_do_is_inferred_for_the_one_that_can(self):
        hidden = self.run_with("worker", UUIDS[0])
        with self.exporter(self.scenario((5 * GB, 0), {}, busy=(99, 0))) as exporter:
            page = exporter.wait_for_page("it is booked", lambda page: page.sum(
                WORKLOAD_ENERGY, id=hidden.id, method="inferred") > 500, 30)
            self.assert_balanced(page)
            self.assertEqual(page.sum(WORKLOAD_ENERGY),
                             page.sum(WORKLOAD_ENERGY, id=hidden.id, kind="container", name="worker",
                                      container="worker", method="inferred"))
            self.assertEqual(0, page.value("wattribute_workload_energy_confidence_ratio", id=hidden.id,
                                           meter_id=UUIDS[0]))
            self.assertEqual(page.sum(WORKLOAD_ENERGY, id=hidden.id, meter_id=UUIDS[0]),
                             page.value("wattribute_workload_energy_uncertainty_joules_total", id=hidden.id,
                                        meter_id=UUIDS[0]))

    def test_without_anybody_it_is_unattributed(self):
        with self.exporter(self.scenario((5 * GB, 0), {}, busy=(99, 0))) as exporter:
            page = exporter.wait_for_page("it is booked", lambda page: page.sum(
                UNOWNED_ENERGY, owner="unattributed") > 500)
            self.assertEqual([], page.values(WORKLOAD_ENERGY))

    def test_who_was_given_an_idle_gpu_pays_for_it_where_that_is_the_policy(self):
        idle = self.run_with("idler", UUIDS[0])
        with self.exporter(self.scenario((0, 0), {}), "--idle-policy=reserved") as exporter:
            # Each board has windows of its own: the other's may be settled later.
            page = exporter.wait_for_page("it pays, and nobody for the other", lambda page: page.sum(
                WORKLOAD_ENERGY, id=idle.id, tier="idle", method="shared") > 200 and page.sum(
                UNOWNED_ENERGY, owner="idle", meter_id=UUIDS[1]) > 200, 30)
            self.assert_balanced(page)
            self.assertEqual(0, page.sum(WORKLOAD_ENERGY, meter_id=UUIDS[1]))


if __name__ == "__main__":
    harness.main()
