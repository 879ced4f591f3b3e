"""Real containers come and go on a node with a processor meter and two GPUs, one of which is lost and comes back.

Docker, Podman and containerd run them, and each has its turn on the GPUs. Every page is checked: the books balance, and
no joule of a meter is missing or counted twice. WATTRIBUTE_CHURN_SECONDS is about how long it takes.
"""
import contextlib
import itertools
import os
import time

import harness
from books import Books
from gpu_node import FAKE, UUIDS
from harness import WORKLOAD_ENERGY, Exporter, TestCase, Trace, wait_until
from servers.containerd import Containerd
from servers.docker import Dockerd
from servers.podman import Podman
from test_cgroup_churn import RSS_SLACK_KB, descriptors, is_sanitized, resident_kb
from test_node_meters import Sysfs

SECONDS = float(os.environ.get("WATTRIBUTE_CHURN_SECONDS", "60"))
BUSY = ("/bin/sh", "-c", "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.05; done")
TURNS = (100, 101, 102)  # the pids of the trace
KEPT = 4  # containers at once
SETTLE_S = 90  # cgroups are rescanned once a minute
FLAGS = ("--pod-resources-socket=", "--metric-retention=5s", "--process-scan-interval=1s")


def write_scenario(path):
    """Three turns on GPU 0; GPU 1 has one user, and is lost for five seconds of each minute."""
    trace = Trace()
    for gpu, ident in enumerate(UUIDS):
        trace.gpu(gpu, uuid=ident.encode())
    trace.work(0, list(TURNS), seconds=60, watts=300)
    trace.work(1, [TURNS[0]], seconds=60, watts=500)
    trace.add(30, "X", 1, b"lost")
    trace.add(35, "X", 1, b"back")
    trace.add(60, "X", 0, b"loop")
    with open(path, "wb") as file:
        file.write(trace.body().replace(b" X 0 loop", b" X * loop"))


class Runtimes:
    """Starts a container by each of them in turn; the youngest are on the GPUs."""

    def __init__(self, stack, pids_path):
        self.docker, self.podman, self.containerd = (
            stack.enter_context(server()) for server in (Dockerd, Podman, Containerd))
        self.flags = (f"--docker-socket={self.docker.socket}", f"--podman-socket={self.podman.service()}",
                      f"--cri-socket={self.containerd.socket}")
        self.pids_path = pids_path
        self.numbers = itertools.count()
        self.live = []

    def start(self):
        number = next(self.numbers)
        run = (self.run_docker, self.run_podman, self.run_pod)[number % 3]
        name = f"churn-{number}"
        self.live.append((name, *run(name)))
        self.take_turns()

    def run_docker(self, name):
        container = self.docker.run(name, command=BUSY)
        return container, lambda: self.docker.remove(container)

    def run_podman(self, name):
        container = self.podman.run(name, command=BUSY)
        return container, lambda: self.podman.remove(container)

    def run_pod(self, name):
        pod = self.containerd.run_pod("churn", name, ["worker"], command=BUSY)
        return pod.containers[0], lambda: self.containerd.remove_pod(pod)

    def take_turns(self):
        with open(self.pids_path + ".new", "w") as file:
            for turn, (_, container, _) in zip(TURNS, reversed(self.live)):
                file.write(f"{turn} {container.pid}\n")
        os.rename(self.pids_path + ".new", self.pids_path)

    def remove_oldest(self):
        *_, remove = self.live.pop(0)
        remove()
        self.take_turns()


class Containers(TestCase):
    def churn(self, exporter, runtimes, books, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            runtimes.start()
            books.check(exporter.page())
            if len(runtimes.live) > KEPT:
                runtimes.remove_oldest()
            books.check(exporter.page())

    def count_descriptors(self, exporter):
        """The least of several times: reads open files for a moment. Other cgroups come and go here."""
        counts = []
        for _ in range(20):
            counts.append(sum("/fs/cgroup" not in link for link in descriptors(exporter.pid)))
            time.sleep(0.05)
        return min(counts)

    def test_the_books_balance_on_every_page_and_nothing_leaks(self):
        with contextlib.ExitStack() as stack:
            runtimes = Runtimes(stack, self.path("pids"))
            runtimes.take_turns()
            write_scenario(self.path("scenario"))
            sysfs = stack.enter_context(Sysfs())
            exporter = stack.enter_context(Exporter(
                *FLAGS, *runtimes.flags, f"--path.sysfs={sysfs.path}", wrapper=sysfs.wrapper(),
                env={"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": self.path("scenario"),
                     "FAKE_NVML_PIDS": self.path("pids")}))
            books = Books(self)
            self.churn(exporter, runtimes, books, SECONDS / 4)  # until all has been used once
            warm_kb, warm_fds = resident_kb(exporter.pid), self.count_descriptors(exporter)
            self.churn(exporter, runtimes, books, SECONDS * 3 / 4)
            end_kb = resident_kb(exporter.pid)
            exporter.wait_for_page("all have joules of the package under their names", lambda page: {
                labels["name"] for labels, value in books.check(page).values(WORKLOAD_ENERGY, meter="package")
                if value > 0} >= {name for name, _, _ in runtimes.live}, SETTLE_S)
            while runtimes.live:
                runtimes.remove_oldest()
            wait_until("what was opened for containers is closed", lambda: books.check(exporter.page()) and
                       self.count_descriptors(exporter) <= warm_fds, SETTLE_S)
            print(f"{SECONDS:.0f} s, {next(runtimes.numbers)} containers, {books.pages} pages, {books.total()} J; "
                  f"{warm_kb} KB when warm, {end_kb} KB in the end; {warm_fds} descriptors")
            if not is_sanitized():
                self.assertLess(end_kb, warm_kb + RSS_SLACK_KB)


if __name__ == "__main__":
    harness.main()
