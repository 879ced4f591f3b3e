"""The manual's word is kept: every query of docs/*.md is run by a real Prometheus, and every message that
docs/troubleshooting.md quotes is one that the program has; links lead somewhere.

A pod, a container and a Slurm job, all real processes in cgroups of those shapes, are on two fake GPUs; a second
container was given one of them and is not seen. Two exporters watch, as two nodes would.
"""
import errno
import glob
import json
import os
import re
import secrets
import socketserver
import subprocess
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler

import harness
from harness import SOURCE_ROOT, Exporter, TestCase, Trace, wait_until
from prometheus import Prometheus
from servers import cgroups, require

FAKE = os.environ["FAKE_NVML_DIR"]
UUIDS = ["GPU-79185bc1-0000-4000-8000-00000000000%d" % gpu for gpu in range(2)]
MIB, GIB = 1 << 20, 1 << 30
RESERVED = 644939776  # what the fake driver keeps for itself
POD, CONTAINER, JOB = 100, 101, 102  # pids of the trace
JOB_ID = "4711"
EXPORTERS, SCRAPES = 2, 12
# A model, also where this machine has a meter.
OF_THE_SITE = ["--pue=1.25", "--emissions.embodied=gpu=28.5", "--cost.price=0.30", "--cost.currency=EUR",
               "--model.idle-watts=5", "--model.full-watts=50",
               *(f"--no-collector.{source}" for source in ("rapl", "hwmon", "cray"))]
METRIC = r"\b(?:wattribute|my_gpu_process|gpu|container_gpu)_\w+"


# --- the queries ---

def queries(path):
    """[(line, query)] of each promql block of a page."""
    with open(path) as file:
        text = file.read()
    return [(text[:found.start()].count("\n") + 2, found[1])
            for found in re.finditer(r"^```promql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def all_queries():
    return [(f"{os.path.basename(path)}:{line}", query)
            for path in sorted(glob.glob(f"{SOURCE_ROOT}/docs/*.md")) for line, query in queries(path)]


def is_alert(query):
    return query.startswith("# alert\n")


def without_threshold(alert):
    bare, count = re.subn(r" (?:>|<|==|!=) [\d.]+\n\Z", "", alert)
    if count != 1:
        raise AssertionError(f"an alert ends with a comparison to a number: {alert}")
    return bare


# --- the messages and links ---

LITERAL = r'"((?:[^"\\\n]|\\.)*)"'


def literals():
    """The strings of the program, those that the compiler joins as one."""
    for path in glob.glob(f"{SOURCE_ROOT}/src/**/*.c", recursive=True):
        with open(path) as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        for found in re.finditer(rf"{LITERAL}(?:\s*{LITERAL})*", text):
            yield re.sub(r"\\(.)", r"\1", "".join(re.findall(LITERAL, found[0])))


def headings(path):
    """As GitHub makes anchors of them."""
    with open(path) as file:
        titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", file.read(), flags=re.DOTALL | re.MULTILINE),
                            re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


class Manual(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.literals = set(literals())
        with open(f"{SOURCE_ROOT}/docs/troubleshooting.md") as file:
            cls.page = file.read()

    def quoted(self, pattern):
        found = re.findall(pattern, self.page)
        self.assertGreater(len(found), 3, pattern)
        return found

    def test_every_log_message_is_one_to_the_letter(self):
        self.assertEqual(set(), set(self.quoted(r'`msg="([^"]*)"')) - {"..."} - self.literals)

    def test_every_error_is_made_of_what_the_program_says(self):
        texts = self.quoted(r'`error="([^"]*)"') + self.quoted(r"`(?:wattribute:|503) ([^`]+)`")
        system = {os.strerror(number) for number in (errno.EADDRINUSE, errno.EACCES)}
        for text in texts:
            for piece in re.split(r"\.\.\.|: |; ", text):
                with self.subTest(text, piece=piece):
                    self.assertTrue(piece.strip() in {"", *system} or
                                    any(piece in literal for literal in self.literals))

    def test_every_link_of_the_manual_leads_somewhere(self):
        pages = [f"{SOURCE_ROOT}/README.md", *glob.glob(f"{SOURCE_ROOT}/docs/*.md")]
        anchors = {os.path.realpath(path): headings(path) for path in pages}
        for path in pages:
            with open(path) as file:
                links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", file.read())
            for target, anchor in links:
                with self.subTest(path, target=target, anchor=anchor):
                    found = os.path.realpath(os.path.join(os.path.dirname(path), target) if target else path)
                    self.assertTrue(os.path.exists(found))
                    self.assertTrue(not anchor or anchor in anchors[found])


# --- the node ---

class Containers:
    """As much of Docker's API as the exporter asks for; `of_id` has what each container is, in both answers."""

    def __init__(self, path):
        self.of_id = {}
        containers = self.of_id

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.path.split("?")[0].split("/")[3:-1]  # /v1.40/containers[/ID]/json
                answer = containers.get(asked[0]) if asked else list(containers.values())
                body = json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = socketserver.ThreadingUnixStreamServer(path, Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)

    def add(self, name, labels=None, requests=()):
        ident = secrets.token_hex(32)
        self.of_id[ident] = {"Id": ident, "Names": [f"/{name}"], "Image": "trainer:1", "Labels": labels or {},
                             "HostConfig": {"DeviceRequests": list(requests)}}
        return ident

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@contextmanager
def process_in(group, **env):
    """The pid of a process that sleeps in this cgroup."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sleep", "600"], stdin=subprocess.DEVNULL,
                               env={**os.environ, **env})
    try:
        with cgroups.making(group):
            cgroups.enter(group, process.pid)
        yield process.pid
    finally:
        process.kill()
        process.wait()
        cgroups.remove(group)
        cgroups.sweep()


def write_scenario(path):
    """GPU 0 is shared by all three; on GPU 1 the pod is alone, and more memory is in use than it has."""
    trace = Trace()
    for gpu, ident in enumerate(UUIDS):
        trace.gpu(gpu, uuid=ident.encode())
    trace.work(0, [POD, CONTAINER, JOB], seconds=20, watts=300)
    trace.work(1, [POD], seconds=20, watts=500)
    for tick in range(201):
        for gpu, used in enumerate((3 * MIB, 5 * GIB)):
            trace.add(tick / 10, "M", gpu, used + RESERVED, 140 * GIB - used, 140 * GIB + RESERVED)
    trace.add(20, "X", 0, b"loop")
    with open(path, "wb") as file:
        file.write(trace.body().replace(b" X 0 loop", b" X * loop"))


def cut(query):
    """With its range cut to what was scraped: rate() divides by the whole of it."""
    return query.replace("[5m]", f"[{SCRAPES - 2}s]")


class Scraped(TestCase):
    @classmethod
    def setUpClass(cls):
        require.root()
        require.writable(cgroups.hierarchies())
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        flags, env = cls.populate(stack, directory)
        exporters = [stack.enter_context(Exporter(*OF_THE_SITE, *flags, env=env)) for _ in range(EXPORTERS)]
        for exporter in exporters:
            exporter.wait_for_page("the pod, the container and the job have names, and memory is inferred",
                                   cls.is_complete, 30)
        cls.prometheus = stack.enter_context(Prometheus(
            directory, wattribute=[exporter.address for exporter in exporters]))
        wait_until("both were scraped often enough", lambda: EXPORTERS == len(
            cls.prometheus.rows(f"count_over_time(up[5m]) >= {SCRAPES}")), 40)

    @staticmethod
    def populate(stack, directory):
        """The node: flags and environment of an exporter that sees it."""
        docker = stack.enter_context(Containers(f"{directory}/docker.sock"))
        pod_uid = str(uuid.uuid4())
        worker = docker.add("k8s_worker", labels={
            "io.kubernetes.container.name": "worker", "io.kubernetes.pod.name": "train-0",
            "io.kubernetes.pod.namespace": "ml", "io.kubernetes.pod.uid": pod_uid})
        web = docker.add("web")
        docker.add("hidden", requests=[{"DeviceIDs": [UUIDS[1]], "Capabilities": [["gpu"]]}])
        pids = {
            POD: process_in(f"/kubepods/pod{pod_uid}/{worker}"),
            CONTAINER: process_in(f"/docker/{web}"),
            JOB: process_in(f"/slurm_{secrets.token_hex(4)}/uid_0/job_{JOB_ID}/step_0/task_0",
                            SLURM_JOB_ID=JOB_ID, SLURM_JOB_NAME="tune", SLURM_JOB_ACCOUNT="physics"),
        }
        with open(f"{directory}/pids", "w") as file:
            for traced, process in pids.items():
                file.write(f"{traced} {stack.enter_context(process)}\n")
        write_scenario(f"{directory}/scenario")
        return (["--process-scan-interval=1s", f"--docker-socket={directory}/docker.sock", "--cri-socket=",
                 "--podman-socket=", "--pod-resources-socket="],
                {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": f"{directory}/scenario",
                 "FAKE_NVML_PIDS": f"{directory}/pids"})

    @staticmethod
    def is_complete(page):
        rows = [labels for labels, value in page.values(harness.WORKLOAD_ENERGY) if value > 0]
        return ({("pod", "train-0"), ("container", "web"), ("slurm", JOB_ID)}
                <= {(labels["kind"], labels["name"]) for labels in rows}
                and page.values("container_gpu_memory_bytes", method="inference"))

    def total(self, begin):
        """The sum over the rows of the one query of promql.md that begins like this."""
        found = [query for _, query in queries(f"{SOURCE_ROOT}/docs/promql.md") if query.startswith(begin)]
        self.assertEqual(1, len(found), begin)
        return sum(value for _, value in self.prometheus.rows(cut(found[0])))

    def test_there_are_queries(self):
        self.assertGreater(len([1 for _, query in all_queries() if is_alert(query)]), 5)
        self.assertGreater(len([1 for _, query in all_queries() if not is_alert(query)]), 20)

    def test_every_query_has_an_answer(self):
        for where, query in all_queries():
            if not is_alert(query):
                with self.subTest(where):
                    rows = self.prometheus.rows(query)
                    self.assertTrue(rows, query)
                    self.assertFalse([row for row in rows if row[1] != row[1]], "not a number")

    def test_no_alert_is_raised_by_healthy_nodes(self):
        for where, query in all_queries():
            if is_alert(query):
                with self.subTest(where):
                    self.assertEqual([], self.prometheus.rows(cut(query)))

    def test_every_alert_looks_at_something(self):
        for where, query in all_queries():
            if is_alert(query):
                with self.subTest(where):
                    self.assertTrue(self.prometheus.rows(without_threshold(query)))

    def test_every_metric_that_is_asked_for_is_there(self):
        known = set(self.prometheus.api("label/__name__/values"))
        for where, query in all_queries():
            with self.subTest(where):
                self.assertEqual(set(), set(re.findall(METRIC, query)) - known)

    def test_the_owners_watts_are_the_meters(self):
        meters = self.total("sum by (instance, meter_id) (rate(wattribute_meter_energy_joules_total{meter")
        owned = self.total("topk(10, sum by (kind, id, name")
        self.assertAlmostEqual(EXPORTERS * 800, meters, delta=EXPORTERS * 80)
        self.assertAlmostEqual(meters, owned, delta=0.02 * meters)

    def test_a_pods_watts_are_its_share(self):
        watts = self.total("sum by (namespace, pod) (rate(wattribute_workload_energy_joules_total{pod!=\"\"}[")
        self.assertAlmostEqual(EXPORTERS * 600, watts, delta=EXPORTERS * 90)

    def test_a_whole_bill_outlives_the_page(self):
        """Ten minutes later, when everything that was not scraped since is gone."""
        whole = [(where, query) for where, query in all_queries() if "max_over_time" in query]
        self.assertGreater(len(whole), 3)
        for where, query in whole:
            with self.subTest(where):
                rows = self.prometheus.rows(query, time=time.time() + 600)
                self.assertEqual([JOB_ID], [labels["id"] for labels, value in rows if value > 0])

    def test_the_books_balance_to_the_microjoule(self):
        self.assertEqual(0, self.total("round("))


if __name__ == "__main__":
    harness.main()
