"""Names in traces: those of the demo, hostile ones, and those that a recording of a node has."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack

import gpu_node
import harness
from harness import (H200_TRACE, OPENMETRICS, PROCESS_ENERGY, SOURCE_ROOT, TEXT, WORKLOAD_ENERGY, Exporter, TestCase,
                     Trace, escape, run)

INFO = "wattribute_workload_info"
WORKLOADS = {("pod", "ml", "training-job"), ("pod", "chat", "llm-server-0"), ("slurm", "", "4711"), ("user", "", "bob"),
             ("unit", "", "gpu-health.service"), ("container", "", "old-experiment")}


def workloads(page, name=WORKLOAD_ENERGY):
    return {(labels["kind"], labels["namespace"], labels["name"]) for labels, _ in page.values(name)}


def lines_of(path):
    with gzip.open(path, "rb") as file:
        return file.read().splitlines(keepends=True)


class Demo(TestCase):
    """The trace that `make run` plays where there is no GPU."""

    def test_its_page_shows_pods_a_job_a_user_and_one_that_is_idle(self):
        with Exporter("--replay", H200_TRACE, "--attribution-delay=5s") as exporter:
            page = exporter.wait_for_page("all six are there", lambda page: workloads(page) == WORKLOADS, 40)
            for shown in (page, exporter.page(OPENMETRICS)):
                self.assert_balanced(shown)
                self.assert_processes_sum_to_workloads(shown)
                self.assertEqual(WORKLOADS, workloads(shown))
            self.assertEqual(1, page.value("wattribute_replay_active"))
        names = {labels["pid"]: (labels["process_name"], labels["namespace"], labels["pod"], labels["container"])
                 for labels, _ in page.values("my_gpu_process_active")}
        self.assertEqual({"541": ("python3", "ml", "training-job", "trainer"),
                          "542": ("python3", "chat", "llm-server-0", "server"),
                          "543": ("ipykernel", "", "", ""), "544": ("healthd", "", "", ""),
                          "545": ("simulate", "", "", ""), "546": ("python3", "", "", "old-experiment")}, names)
        self.assertEqual(1, page.value(INFO, kind="slurm", id="4711", user="alice", account="physics",
                                       job_id="4711", job_name="plasma", unverified="account,job_name"))
        self.assertEqual(1, page.value(INFO, kind="user", id="1002", user="bob"))
        self.assertEqual(1, page.value(INFO, kind="pod", image="trainer:1.4"))
        self.assertEqual(0, page.sum(WORKLOAD_ENERGY, name="old-experiment", tier="active"))

    def test_its_names_change_no_joule(self):
        nameless = self.write("nameless.trace", b"".join(
            line for line in lines_of(H200_TRACE) if line.split()[1:2] not in ([b"N"], [b"O"])))
        for method in ("intensity", "timeshare"):
            with self.subTest(method):
                named = json.loads(run("replay", f"--attribution={method}", H200_TRACE).stdout)
                before = json.loads(run("replay", f"--attribution={method}", nameless).stdout)
                self.assertEqual({(row["kind"], row.get("namespace", ""), row["name"]) for row in named["workloads"]},
                                 WORKLOADS)
                self.assertEqual(sorted(row["energy_uj"] for row in named["processes"]),
                                 sorted(row["energy_uj"] for row in named.pop("workloads")))
                self.assertEqual(before, named)

    def test_it_is_what_the_tool_makes_of_its_list_of_names(self):
        again = shutil.copy(H200_TRACE, self.path("again.trace.gz"))
        subprocess.run([sys.executable, f"{SOURCE_ROOT}/tools/name-trace", again,
                        f"{SOURCE_ROOT}/data/h200-five-workers.names.json"], check=True, timeout=60)
        self.assertEqual(lines_of(H200_TRACE), lines_of(again))


class Hostile(TestCase):
    NAMES = {b'a"b\\c\nd': 'a"b\\c\nd', b"\xff": "\ufffdff", b"\x01\x7f": "\ufffd01\ufffd7f", b"-": "-",
             b"a b%=,{}": "a b%=,{}", "é🔥".encode(): "é🔥"}

    def test_they_come_out_escaped_and_the_pages_are_valid(self):
        trace = Trace()
        trace.gpu(0)
        pids = range(100, 100 + len(self.NAMES))
        for pid, name in zip(pids, self.NAMES):
            unit = b"u%d.service" % pid
            trace.process(0, 0, pid, name, b"/system.slice/" + unit)
            texts = (b"%b=%b" % (key, b"%2D" if name == b"-" else escape(name).replace(b"\x7f", b"%7F"))
                     for key in (b"name", b"namespace", b"pod", b"container", b"image", b"user", b"account", b"job_id",
                                 b"job_name", b"uuid", b"unverified"))
            trace.records.append((trace.us(0), b" ".join([b"O unit", unit, *texts])))
        trace.work(0, list(pids), seconds=10)
        path = trace.write(self.path("names.trace.gz"))
        with Exporter("--replay", path, "--sample-interval=100ms") as exporter:
            exporter.wait_for_page("all are there", lambda page: len(page.values(INFO)) == len(pids))
            for page in (exporter.page(TEXT), exporter.page(OPENMETRICS)):
                self.assert_balanced(page)
                for pid, shown in zip(pids, self.NAMES.values()):
                    labels = page.values(INFO, id=f"u{pid}.service")[0][0]
                    self.assertEqual({shown}, {labels[key] for key in ("image", "user", "account", "job_id", "job_name",
                                                                       "uuid", "unverified")})
                    labels = page.values(WORKLOAD_ENERGY, id=f"u{pid}.service")[0][0]
                    self.assertEqual({shown}, {labels[key] for key in ("name", "namespace", "pod", "container")})
        ledger = json.loads(run("replay", path).stdout)
        self.assertEqual(len(pids), len(ledger["workloads"]))


class Recorded(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = cls.enterClassContext(ExitStack())
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        flags, env = gpu_node.populate(stack, directory)
        cls.trace = os.path.join(directory, "node.trace.gz")
        flags = [flag for flag in flags if not flag.startswith("--model.")]
        cls.done = run("record", "-o", cls.trace, "--duration=6s", *flags, env=env)

    def test_a_recording_has_the_names_that_the_node_gave(self):
        self.assertEqual((0, b""), (self.done.returncode, self.done.stderr), self.done)
        names = {found[1]: dict(word.split(b"=") for word in found[2].split())
                 for found in re.finditer(rb"^\d+ O (\w+) \S+ (.*)$", b"".join(lines_of(self.trace)), re.MULTILINE)}
        self.assertEqual({b"name": b"training-job", b"namespace": b"ml", b"pod": b"training-job",
                          b"container": b"worker", b"image": b"trainer:1"}, names[b"pod"])
        self.assertEqual({b"name": b"web", b"container": b"web", b"image": b"trainer:1"}, names[b"container"])
        self.assertEqual({b"name": b"4711", b"user": b"root", b"account": b"physics", b"job_id": b"4711",
                          b"job_name": b"tune", b"unverified": b"account,job_name"}, names[b"slurm"])

    def test_it_replays_to_the_ledger_that_was_booked_live_names_and_all(self):
        self.assertEqual(self.done.stdout, run("replay", self.trace).stdout)
        ledger = json.loads(self.done.stdout)
        self.assertEqual({"training-job", "web", "4711"}, {row["name"] for row in ledger["workloads"]})

    def test_its_page_has_the_names(self):
        with Exporter("--replay", self.trace) as exporter:
            page = exporter.wait_for_page("energy of the pod", lambda page: page.sum(
                WORKLOAD_ENERGY, kind="pod", namespace="ml", pod="training-job") > 0)
            self.assert_balanced(page)
            self.assertGreater(page.sum(PROCESS_ENERGY, namespace="ml", pod="training-job", process_name="sleep"), 0)


if __name__ == "__main__":
    harness.main()
