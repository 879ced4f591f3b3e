"""Nodes with AMD's and Intel's GPUs, which are scripted machines of files: the whole daemon on them, the GPUs that pods
and jobs were given, `check`, `record` and `replay`."""
import glob
import json
import os
import shutil
import subprocess

import harness
from drm_node import MACHINE, NAMESPACE, NO_NVIDIA, DrmNode, container_id
from harness import (HARDWARE_ENERGY, METER_ENERGY, PROCESS_ENERGY, SOON_S, UNOWNED_ENERGY, WORKLOAD_ENERGY, TestCase,
                     is_running, prometheus_tool, wait_until)
from servers.kubelet import claim, claimed, devices

ALLOCATED = "wattribute_workload_gpu_allocated"


def rows(page):
    """(kind, name or id, gpu, gpu_instance): source, with "?" if it is not verified."""
    return {(labels["kind"], labels["name"] or labels["id"], labels["gpu"], labels["gpu_instance"]):
            labels["source"] + ("?" if labels["unverified"] else "")
            for labels, value in page.values(ALLOCATED) if value == 1}


class NodeTestCase(TestCase):
    """One machine and one exporter for all tests of a class. `page` is of a machine that has stopped: all that its
    counters show was read."""

    pods, digits, flags = {}, {}, ()

    @classmethod
    def setUpClass(cls):
        cls.node = cls.enterClassContext(DrmNode(cls.machine, cls.pods, cls.digits))
        cls.exporter = cls.enterClassContext(cls.node.exporter(*cls.flags))
        cls.exporter.wait_for_page("the GPUs are read", lambda page: all(
            page.values(METER_ENERGY, meter_id=uuid) for uuid in cls.uuids), 20)
        cls.node.wait_for_work(*cls.until)
        cls.allocated = rows(cls.exporter.wait_for_page(
            "allocations are shown", lambda page: rows(page).keys() >= cls.expected_rows.keys(), 30))
        cls.node.stop()
        cls.truth = cls.node.truth()
        cls.page = cls.exporter.wait_for_page("the last of it is read", cls.is_complete, 20)

    @classmethod
    def is_complete(cls, page):
        return all(page.value(HARDWARE_ENERGY, meter_id=uuid) * 10**6 == cls.truth["board", board] and
                   page.value("wattribute_energy_pending_joules", meter_id=uuid) == 0
                   for board, uuid in enumerate(cls.uuids))

    def test_the_page_balances_and_promtool_finds_nothing_in_it(self):
        self.assert_balanced(self.page)
        self.assert_processes_sum_to_workloads(self.page)
        done = subprocess.run([prometheus_tool("promtool"), "check", "metrics"],
                              input=self.exporter.ask(accept=harness.TEXT).body, capture_output=True, timeout=20)
        self.assertEqual((0, b"", b""), (done.returncode, done.stdout, done.stderr))

    def test_each_gpu_is_known_by_its_own_id(self):
        self.assertEqual(list(self.uuids), [
            labels["uuid"] for labels, _ in sorted(self.page.values("wattribute_gpu_info"),
                                                   key=lambda row: int(row[0]["gpu"]))])

    def test_nothing_of_the_gpus_is_counted_by_another_meter(self):
        self.assertEqual(set(self.uuids), {labels["meter_id"] for labels, _ in self.page.values(METER_ENERGY)})

    def test_processes_have_the_energy_that_they_caused(self):
        """Above idle; the exporter started later than the machine, and confounds what it cannot yet tell apart."""
        for gpu, pids in self.processes.items():
            booked = {pid: float(self.page.sum(PROCESS_ENERGY, pid=str(pid), gpu=str(gpu))) for pid in pids}
            caused = {pid: self.truth["process", pid] / 10**6 for pid in pids}
            for pid in pids:
                self.assertAlmostEqual(caused[pid] / sum(caused.values()), booked[pid] / sum(booked.values()),
                                       delta=self.delta, msg=(booked, caused))

    def test_workloads_have_the_gpus_that_they_were_given(self):
        self.assertEqual(self.expected_rows, self.allocated)

    def test_check_reports_what_can_be_read(self):
        report = harness.run("check", *self.node.flags, env=NO_NVIDIA, timeout=60).stdout.decode()
        for line in self.expected_checks:
            self.assertRegex(report, line)


class AmdPartitions(NodeTestCase):
    machine, uuids, until = "mi300x-cpx", ("AMD-3f0a2b3c4d5e6f70",), (900, 101)
    digits = {"first": 1, "second": 2, "third": 3, "sixth": 4}
    pods = {"first": [devices("amd.com/gpu", "0000:05:00.0")],
            "second": [devices("amd.com/cpx_nps1", "amdgpu_xcp_0")],
            "third": [claim("c", NAMESPACE, claimed("gpu.amd.com", "node", "gpu-1-129"))],
            "sixth": [devices("amd.com/gpu", "amdgpu_xcp_4")]}
    processes, delta = {0: (101, 102, 104)}, 0.12
    expected_rows = {("pod", "first", "0", "0"): "kubelet", ("pod", "second", "0", "1"): "kubelet",
                     ("pod", "third", "0", "1"): "dra", ("pod", "sixth", "0", "5"): "kubelet"}
    expected_checks = (r"ok +gpu 0 +AMD Instinct MI300X, AMD-3f0a2b3c4d5e6f70",
                       r"ok +gpu 0: energy +counted by gpu_metrics 1\.8",
                       r"ok +gpu 0: compute processes +by KFD, 8 nodes")

    def test_a_partition_is_an_instance_of_the_board(self):
        found = {labels["gpu_instance"]: labels["uuid"]
                 for labels, _ in self.page.values("wattribute_gpu_instance_info", profile="CPX")}
        self.assertEqual({"0": "PCI-0000:05:00.0", **{str(i): f"amdgpu_xcp_{i - 1}" for i in range(1, 8)}}, found)

    def test_the_energy_of_a_pod_has_its_name(self):
        for name, digit in self.digits.items():
            if name != "third":  # it comes later
                self.assertGreater(self.page.sum(WORKLOAD_ENERGY, kind="pod", id=container_id(digit), name=name,
                                                 namespace=NAMESPACE, tier="active"), 100, name)


class AmdJob(NodeTestCase):
    machine, uuids, until = "mi300x-spx", ("AMD-3f0a2b3c4d5e6f70",), (1200, 101, 102)
    digits = {"serve": 2}
    pods = {"serve": [devices("amd.com/gpu", "0000:05:00.0")]}
    processes, delta = {0: (101, 102)}, 0.1
    expected_rows = {("slurm", "77", "0", ""): "environment?", ("pod", "serve", "0", ""): "kubelet"}
    expected_checks = (r"ok +gpu 0: energy +counted by gpu_metrics 1\.7", r"ok +gpu clients +of all processes")

    def test_the_job_pays_for_what_it_did(self):
        self.assertGreater(self.page.sum(WORKLOAD_ENERGY, kind="slurm", id="77", tier="active"), 500)
        self.assertEqual(0, self.page.sum(UNOWNED_ENERGY, owner="unattributed"))


class IntelMax(NodeTestCase):
    machine, uuids, until = "max-xe", ("PCI-0000:29:00.0", "PCI-0000:9a:00.0"), (1500, 101, 103)
    digits = {"analysis": 2, "other": 3}
    pods = {"analysis": [devices("gpu.intel.com/xe", "card0-0")], "other": [devices("gpu.intel.com/i915", "card1-0")]}
    processes, delta = {0: (101, 102), 1: (103,)}, 0.12
    expected_rows = {("slurm", "78", "0", ""): "environment?", ("pod", "analysis", "0", ""): "kubelet",
                     ("pod", "other", "1", ""): "kubelet"}
    expected_checks = (r"ok +gpu 0 +Intel GPU 0x0bd5, PCI-0000:29:00\.0, xe",
                       r"ok +gpu 1: energy +counted, hwmon's energy1_input")


class Recording(TestCase):
    def test_what_was_recorded_replays_to_books_that_balance(self):
        for machine, pid in (("mi210", 101), ("arc-i915", 101)):
            with DrmNode(machine) as node:
                node.wait_for_work(1, pid)
                trace = self.path(f"{machine}.trace.gz")
                done = harness.run("record", "-o", trace, "--duration=6s", *node.paths, "--no-collector.nvml",
                                   env=NO_NVIDIA, timeout=60)
                self.assertEqual(0, done.returncode, done.stderr)
            replays = [harness.run("replay", trace).stdout for _ in range(2)]
            self.assertEqual(*replays)
            ledger = json.loads(replays[0])
            meter, = (meter for meter in ledger["meters"] if meter["meter"] == "gpu")
            self.assertGreater(meter["energy_uj"], 300 * 10**6)
            self.assertEqual(meter["energy_uj"], sum(process["energy_uj"] for process in ledger["processes"]) + sum(
                meter[name] for name in ("idle_uj", "unattributed_uj", "gap_uj")))
            self.assertIn(pid, [process["pid"] for process in ledger["processes"]])


class Check(TestCase):
    """Of machines that have stopped, and were changed then."""

    def machine(self, name):
        node = self.enterContext(DrmNode(name))
        node.stop()
        return node

    def check(self, node):
        return harness.run("check", *node.flags, env=NO_NVIDIA, timeout=60).stdout.decode()

    def test_a_card_that_hangs_is_named_and_the_others_are_reported(self):
        node = self.machine("max-xe")
        counter, = glob.glob(f"{node.path}/sys/class/drm/card1/device/hwmon/*/energy1_input")
        os.unlink(counter)
        os.mkfifo(counter)  # who opens it waits for a writer
        report = self.check(node)
        for line in (r"ok +gpu 0: energy +counted, hwmon's energy1_input", r"ok +gpu clients +of all processes",
                     r"failed +gpu 1 +xe at 0000:9a:00\.0: its driver has hung for 10 s", r"\n1 GPU, "):
            self.assertRegex(report, line)

    def test_the_reason_for_a_missing_counter_is_told(self):
        node = self.machine("max-xe")
        devices_of = [f"{node.path}/sys/class/drm/card{card}/device" for card in range(2)]
        for device in devices_of:
            shutil.rmtree(f"{device}/hwmon")
        os.symlink("../0000:29:00.0", f"{devices_of[1]}/physfn")
        report = self.check(node)
        self.assertRegex(report, r"limited +gpu 0: energy +its driver shows no counter.*\n.*use Linux 6\.5 or newer")
        self.assertRegex(report, r"limited +gpu 1: energy +a virtual function has no counter of its own.*\n"
                                 r".*its physical function")


class Machine(TestCase):
    def test_time_passes_on_it(self):
        with DrmNode("apu") as node:
            before = node.truth()["board", 0]
            wait_until("its counter moves", lambda: node.truth()["board", 0] > before)

    def test_it_ends_with_whoever_started_it(self):
        parent = subprocess.Popen(["sh", "-c", '"$0" apu "$1" 60 & echo $! >"$2"; wait', MACHINE, self.directory,
                                   self.path("pid")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            self.assertEqual(b"ready\n", parent.stdout.readline())
            with open(self.path("pid")) as file:
                pid = int(file.read())
            self.assertTrue(is_running(pid))
        finally:
            parent.kill()
            parent.wait()
            parent.stdout.close()
        wait_until("the machine has ended", lambda: not is_running(pid), SOON_S)


del NodeTestCase  # it has no machine


if __name__ == "__main__":
    harness.main()
