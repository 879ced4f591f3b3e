"""What the end-to-end tests share: running the exporter, asking it over HTTP, writing traces.

The environment names the build under test: WATTRIBUTE is the binary, SOURCE_ROOT the checkout,
PROMETHEUS_BIN_DIR (optional) where promtool and prometheus are, if not in PATH.
"""
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from decimal import Decimal

import exposition

SOURCE_ROOT = os.environ.get("SOURCE_ROOT", os.path.join(os.path.dirname(__file__), "..", ".."))
H200_TRACE = os.path.join(SOURCE_ROOT, "data", "h200-five-workers.trace.gz")

TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
METER_ENERGY = "wattribute_meter_energy_joules_total"
HARDWARE_ENERGY = "wattribute_meter_hardware_energy_joules_total"
UNOWNED_ENERGY = "wattribute_unowned_energy_joules_total"
WORKLOAD_ENERGY = "wattribute_workload_energy_joules_total"
METER_GRAMS = "wattribute_meter_emissions_grams_total"
WORLD_FACTOR = Decimal("473.007")  # grams per kWh, if nothing else is said
PROCESS_ENERGY = "my_gpu_process_energy_joules_total"

POLL_S = 0.02


def binary():
    path = os.environ.get("WATTRIBUTE")
    if not path:
        raise AssertionError("set WATTRIBUTE to the path of the binary under test")
    return path


def prometheus_tool(name):
    path = shutil.which(name, path=os.pathsep.join(
        filter(None, [os.environ.get("PROMETHEUS_BIN_DIR"), os.environ.get("PATH")])))
    if not path:
        raise AssertionError(f"{name} is in neither $PROMETHEUS_BIN_DIR nor PATH: "
                             "run 'tools/setup test'")
    return path


def run(*arguments, env=None, wrapper=(), pass_fds=(), timeout=20):
    """The program to its end: returncode, stdout and stderr, as bytes."""
    return subprocess.run([*wrapper, binary(), *arguments], env={**os.environ, **(env or {})},
                          stdin=subprocess.DEVNULL, capture_output=True, pass_fds=pass_fds,
                          timeout=timeout)


# What ends or comes at once, on a machine that is busy. What hangs takes longer by far.
SOON_S = 4


def wait_until(what, condition, seconds=10):
    """Polls until the condition gives something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(POLL_S)


# --- processes ---

def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())  # a thread may end meanwhile
    return found


def process_status(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def environment_of(pid):
    """Empty where only root may read it, as of one that leaves no core."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except PermissionError:
        return b""


def arguments_of(pid):
    """Empty of one that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_running(pid):
    """A zombie has ended; who should have reaped it may be nobody of ours."""
    try:
        return not process_status(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- HTTP ---

def connect(address, timeout=10):
    """A connected stream socket; the address is as the exporter logs it."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(timeout)
            sock.connect(address[5:])
        except OSError:
            sock.close()
            raise
        return sock
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout)


def fill(client):
    """Asks for so much over this connection, and reads nothing, that the exporter waits for us."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    client.setblocking(False)

    def is_full():
        """Nothing was taken since the last time."""
        sent = 0
        try:
            while True:
                sent += client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        except BlockingIOError:
            return sent == 0
    wait_until("the exporter waits for a client that does not read", is_full)


class Connection(http.client.HTTPConnection):
    """Kept open between requests, to TCP and unix sockets alike."""

    def __init__(self, address, timeout=10):
        super().__init__("localhost", timeout=timeout)
        self.address = address

    def connect(self):
        self.sock = connect(self.address, self.timeout)

    def ask(self, path="/metrics", method="GET", **headers):
        """A response with .status, .headers and .body; accept_encoding='gzip' is a header."""
        self.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            self.putheader(name.replace("_", "-"), value)
        self.endheaders()
        response = self.getresponse()
        response.body = response.read()
        return response


def ask(address, path="/metrics", method="GET", timeout=10, **headers):
    connection = Connection(address, timeout)
    try:
        return connection.ask(path, method, **headers)
    finally:
        connection.close()


def exchange(address, request, timeout=10):
    """Sends raw bytes and returns all that comes back until the other side closes."""
    answer = b""
    with connect(address, timeout) as sock:
        try:
            sock.sendall(request)
            while True:
                part = sock.recv(65536)
                if not part:
                    break
                answer += part
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed while we were still sending
    return answer


# --- the exporter ---

class Exporter:
    """`wattribute serve` on loopback, for a with statement. At the end it must stop cleanly.

    Unless `settles_at_once` is false, shared energy does not wait for what is learned later.
    `server_deaths` is how often the test makes the server die; one that dies otherwise is a failure.
    """

    def __init__(self, *flags, listen=("127.0.0.1:0",), env=None, wrapper=(), pass_fds=(),
                 settles_at_once=True):
        if settles_at_once:
            flags = ("--attribution-delay=0s", *flags)
        self.server_deaths = 0
        self.directory = tempfile.TemporaryDirectory()
        self.log_path = os.path.join(self.directory.name, "log")
        addresses = [f"--listen-address={address}" for address in listen]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, binary(), "serve", *addresses, *flags], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log, pass_fds=pass_fds,
                env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        self.started = time.monotonic()

    def __enter__(self):
        try:
            self.address = self.wait_for_log("listening")["address"]
            wait_until("the exporter is ready", self.is_ready)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None and self.process.returncode is None:
                self.stop()
            if error_type is None:
                self.check_log()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if error_type is not None:
                print(f"--- log of {' '.join(map(str, self.process.args))}\n{self.log_text()}---",
                      file=sys.stderr)
            self.directory.cleanup()

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the exporter ended with {self.process.returncode}")
        try:
            return self.ask("/-/ready").status == 200
        except OSError:
            return False

    def stop(self, signal_number=signal.SIGTERM, seconds=10):
        """Ends it; returns how long that took."""
        began = time.monotonic()
        self.process.send_signal(signal_number)
        status = self.process.wait(seconds)
        if status != 0:
            raise AssertionError(f"exit status {status} after signal {signal_number}")
        return time.monotonic() - began

    def check_log(self):
        text = self.log_text()
        for trouble in ("Sanitizer", "runtime error:", "level=error", '"level":"error"',
                        "the sandbox refused a system call"):
            if trouble in text:
                raise AssertionError(f"the log has '{trouble}':\n{text}")
        deaths = text.count("the server ended")
        if deaths != self.server_deaths:
            raise AssertionError(f"the server died {deaths} times, not {self.server_deaths}:\n{text}")

    def log_text(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def log(self, message=None):
        """Its log lines (logfmt) as dicts, or only those with this message."""
        lines = []
        for line in self.log_text().splitlines():
            pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)
            lines.append({key: json.loads(value) if value.startswith('"') else value
                          for key, value in pairs})
        return [line for line in lines if message is None or line.get("msg") == message]

    def wait_for_log(self, message, seconds=10):
        def find():
            if not self.log(message) and self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode} before it said "
                                     f"'{message}':\n{self.log_text()}")
            return self.log(message)
        return wait_until(f"log message '{message}'", find, seconds)[0]

    def child(self, verb):
        """The pid of the process of this verb; None: there is none."""
        found = [pid for pid in children(self.pid) if arguments_of(pid)[1:2] == [verb]]
        if len(found) > 1:
            raise AssertionError(f"the collector has {len(found)} children '{verb}'")
        return found[0] if found else None

    def server(self):
        """The pid of the server."""
        found = self.child("server")
        if not found:
            raise AssertionError(f"the collector has the children {children(self.pid)}, no server")
        return found

    def ask(self, *arguments, **headers):
        return ask(self.address, *arguments, **headers)

    def page(self, accept=TEXT):
        """A scrape that succeeded and passed the strict checker."""
        response = self.ask(accept=accept)
        if response.status != 200:
            raise AssertionError(f"status {response.status}: {response.body[:200]}")
        return exposition.read(response.body, accept == OPENMETRICS)

    def wait_for_page(self, what, condition, seconds=15):
        """The first page for which the condition holds."""
        def find():
            page = self.page()
            return page if condition(page) else None
        return wait_until(what, find, seconds)


# --- traces ---

def escape(raw):
    """Bytes as a word of an N record."""
    return b"".join(b"%c" % c if 0x20 < c != 0x25 else b"%%%02X" % c for c in raw) or b"-"


class Trace:
    """A trace in the making. Times are seconds since its beginning, energy is in millijoules."""

    BEGIN_US = 1_700_000_000_000_000

    def __init__(self):
        self.devices, self.records = [], []
        self.energy_mj = {}  # what work() made each GPU use

    def gpu(self, index, uuid=None, name=b"Test_GPU", power_limit_mw=700000):
        """Returns the uuid. `uuid` and `name` can be any bytes without blank, newline and NUL."""
        uuid = uuid or b"GPU-%08d" % index
        self.devices.append(b"gpu %d uuid=%b name=%b driver=1.2.3 power_limit_mw=%d"
                            % (index, uuid, name, power_limit_mw))
        return uuid.decode(errors="replace")

    def add(self, t, kind, gpu, *fields):
        words = [field if isinstance(field, bytes) else b"%d" % field for field in fields]
        self.records.append((self.us(t), b" ".join([kind.encode(), b"%d" % gpu, *words])))

    def us(self, t):
        return self.BEGIN_US + round(t * 1e6)

    def energy(self, t, gpu, counter_mj):
        self.add(t, "E", gpu, counter_mj)

    def sample(self, t, gpu, pid, sm_percent=99):
        self.add(t, "S", gpu, pid, self.us(t), sm_percent, 10, 0, 0)

    def listed(self, t, gpu, *pids):
        self.add(t, "R", gpu, b"c", len(pids), *(b"%d:1048576" % pid for pid in pids))

    def utilisation(self, t, gpu, percent):
        self.add(t, "U", gpu, percent, 10, 1980, 40)

    def process(self, t, gpu, pid, name, cgroup=b"", start_s=0):
        start_us = self.us(start_s) if start_s else 0
        self.add(t, "N", gpu, pid, start_us, escape(cgroup), escape(name))

    def work(self, gpu, pids, seconds, counter_mj=5_000_000, watts=70):
        """A busy GPU, read every 100 ms; each tick's energy differs."""
        first_mj = counter_mj
        for tick in range(seconds * 10 + 1):
            t = tick / 10
            if tick > 0:
                counter_mj += watts * 100 + (tick * 37 + gpu * 101) % 97
            self.energy(t, gpu, counter_mj)
            self.utilisation(t, gpu, 99)
            self.add(t, "P", gpu, watts * 1000, watts * 1000, watts * 1000)
            if tick % 5 == 0:
                self.listed(t, gpu, *pids)
            if tick % 2 == 1:
                self.sample(t, gpu, pids[tick // 2 % len(pids)])
        self.energy_mj[gpu] = counter_mj - first_mj

    def body(self):
        records = sorted(self.records, key=lambda record: record[0])
        lines = [b"wattribute-trace 1", *self.devices, *(b"%d %b" % record for record in records)]
        return b"\n".join(lines) + b"\n"

    def write(self, path):
        body = self.body()
        with open(path, "wb") as file:
            file.write(gzip.compress(body, mtime=0) if path.endswith(".gz") else body)
        return path


class TestCase(unittest.TestCase):
    """With a private directory, self.path(name)."""

    @classmethod
    def enterClassContext(cls, context):  # unittest has it from Python 3.11 on
        result = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return result

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="wattribute-e2e-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def meters(self, page):
        return [labels["meter_id"] for labels, _ in page.values(METER_ENERGY)]

    def assert_balanced(self, page):
        """Every meter is, exactly, what workloads and nobody own of it."""
        for meter, energy in page.values(METER_ENERGY):
            self.assertEqual(energy, page.sum(WORKLOAD_ENERGY, **meter) + page.sum(UNOWNED_ENERGY, **meter), meter)
            self.assertEqual(0, page.value("wattribute_ledger_imbalance_joules", **meter))
            self.assert_grams_balanced(page, **meter)

    def assert_grams_balanced(self, page, **meter):
        self.assert_grams_conserved(page, **meter)
        self.assertLessEqual(abs(page.value(METER_ENERGY, **meter) * WORLD_FACTOR / 3600000 -
                                 page.value(METER_GRAMS, **meter)), Decimal("0.5e-9"), meter)

    def assert_grams_conserved(self, page, **meter):
        """Whatever the factor. Each row is rounded to a nanogram."""
        rows = [value for kind in ("workload", "unowned")
                for _, value in page.values(f"wattribute_{kind}_emissions_grams_total", **meter)]
        grams = page.value(METER_GRAMS, **meter)
        self.assertLessEqual(abs(grams - sum(rows)), (len(rows) + 1) * Decimal("0.5e-9"), meter)

    def assert_processes_sum_to_workloads(self, page):
        """As long as no process was forgotten. Those of the system have no workload."""
        for labels, _ in page.values("wattribute_gpu_info"):
            self.assertEqual(page.sum(WORKLOAD_ENERGY, meter_id=labels["uuid"]) +
                             page.sum(UNOWNED_ENERGY, meter_id=labels["uuid"], owner="system"),
                             page.sum(PROCESS_ENERGY, gpu=labels["gpu"]), labels["uuid"])

    def assert_counters_grow(self, before, after):
        """No counter that is on both pages went back, and none of the first has gone."""
        for family in before.families.values():
            for name, labels, value in family.series if family.type == "counter" else ():
                self.assertIn((name, labels), after.series)
                self.assertGreaterEqual(after.series[name, labels], value, (name, labels))


SKIPPED = 77  # as exit status, to meson


def main():
    """unittest.main() for meson, and for tools/run-tests, which shows the lines with "skipped:"."""
    result = unittest.main(exit=False).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that was skipped as a whole has not counted its tests as run.
    ran = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)
    if ran == 0:
        print("no test ran")
        sys.exit(SKIPPED if result.skipped else 1)
