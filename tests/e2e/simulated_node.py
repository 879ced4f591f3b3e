"""A node whose time, hardware and cgroups are all made up: an exporter on it can live a week in minutes.

It has two processor packages with memory, two GPUs and containers. Nothing happens but what the test does: the clock
(faults.Clock) moves the GPUs, and `pass_time` all else.
"""
import contextlib
import hashlib
import itertools
import os
import tempfile
from decimal import Decimal

from faults import Clock, Ended
from gpu_node import FAKE, UUIDS
from harness import Exporter, Trace

RANGE_UJ = 262143328850
WATTS = {"intel-rapl:0": 61, "intel-rapl:0:0": 7, "intel-rapl:1": 83, "intel-rapl:1:0": 11}
NAMES = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram", "intel-rapl:1": "package-1", "intel-rapl:1:0": "dram"}
TURNS = (100, 101, 102)  # the pids of the trace
TICKS = os.sysconf("SC_CLK_TCK")
MINUTE = 60
FLAGS = ("--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=", "--no-process-events",
         "--metric-retention=1m", "--no-collector.ipmi")


def write_scenario(path):
    """Three turns on GPU 0. GPU 1 has one user, and is lost for five seconds of each minute."""
    trace = Trace()
    for gpu, ident in enumerate(UUIDS):
        trace.gpu(gpu, uuid=ident.encode())
    trace.work(0, list(TURNS), seconds=MINUTE, watts=300)
    trace.work(1, [TURNS[0]], seconds=MINUTE, watts=500)
    trace.add(30, "X", 1, b"lost")
    trace.add(35, "X", 1, b"back")
    trace.add(MINUTE, "X", 0, b"loop")
    with open(path, "wb") as file:
        file.write(trace.body().replace(b" X 0 loop", b" X * loop"))


class SimulatedNode:
    """For a with statement."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(dir="/dev/shm")  # inode numbers are new, as of cgroups
        self.path = self.directory.name
        self.cgroups = f"{self.path}/sys/fs/cgroup"
        self.containers = {}  # the pid of each
        self.numbers = itertools.count()
        self.pids = itertools.count(5000)
        self.passed_s = 0
        for name in ("proc/self", "sys/fs/cgroup", "sys/class/powercap"):
            os.makedirs(f"{self.path}/{name}")
        self.write("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        self.write("proc/meminfo", "MemTotal: 16384000 kB\nMemAvailable: 8192000 kB\n")
        self.counted = {zone: Decimal(0) for zone in WATTS}
        self.counts_uj = {zone: RANGE_UJ - 10**9 for zone in WATTS}  # each wraps in the first minute
        for zone, name in NAMES.items():
            os.mkdir(f"{self.path}/sys/class/powercap/{zone}")
            self.write(f"sys/class/powercap/{zone}/name", f"{name}\n")
            self.write(f"sys/class/powercap/{zone}/max_energy_range_uj", f"{RANGE_UJ}\n")
        write_scenario(f"{self.path}/scenario")
        self.pass_time(0)
        self.take_turns()
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def write(self, name, text):
        """In place: the exporter keeps some of them open."""
        with open(os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_CREAT, 0o644), "w") as file:
            file.write(text)
            file.truncate()

    def pass_time(self, seconds):
        """The processors count: half of them is busy, and each container has its part."""
        self.passed_s += seconds
        for zone, watts in WATTS.items():
            self.counted[zone] += watts * seconds
            self.counts_uj[zone] = (self.counts_uj[zone] + watts * seconds * 10**6) % RANGE_UJ
            self.write(f"sys/class/powercap/{zone}/energy_uj", f"{self.counts_uj[zone]}\n")
        ticks = self.passed_s * TICKS
        self.write("proc/stat", f"cpu  {2 * ticks} 0 0 {2 * ticks} 0 0 0 0 0 0\n"
                   + "".join(f"cpu{i} {ticks // 2} 0 0 {ticks // 2} 0 0 0 0 0 0\n" for i in range(4))
                   + "btime 1700000000\n")
        for ident in self.containers:
            self.write_usage(ident)

    def joules(self):
        """What the processors and their memory have counted, by (meter, meter_id)."""
        return {(NAMES[zone].split("-")[0], zone.split(":")[1]): counted for zone, counted in self.counted.items()}

    def write_usage(self, ident):
        """A tenth of a CPU, since the beginning."""
        usage_us = self.passed_s * 100_000
        self.write(f"sys/fs/cgroup/docker/{ident}/cpu.stat",
                   f"usage_usec {usage_us}\nuser_usec {usage_us}\nsystem_usec 0\n")

    def add_container(self):
        ident = hashlib.sha256(str(next(self.numbers)).encode()).hexdigest()
        pid = next(self.pids)
        for directory in ("docker", f"docker/{ident}"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{self.cgroups}/{directory}")
                for name, text in (("cgroup.events", "populated 1\n"), ("memory.current", "1048576\n"),
                                   ("pids.current", "1\n"), ("cgroup.procs", f"{pid}\n")):
                    self.write(f"sys/fs/cgroup/{directory}/{name}", text)
        self.write_usage(ident)
        os.mkdir(f"{self.path}/proc/{pid}")
        self.write(f"proc/{pid}/cgroup", f"0::/docker/{ident}\n")
        self.write(f"proc/{pid}/stat", f"{pid} (worker) S" + " 0" * 18 + " 1000 0\n")
        self.write(f"proc/{pid}/status", "Name:\tworker\nUid:\t1000\t1000\t1000\t1000\n")
        self.write(f"proc/{pid}/cmdline", f"python\0train-{pid % 3}.py\0")
        self.containers[ident] = pid
        self.take_turns()

    def remove_container(self):
        """The oldest."""
        ident = next(iter(self.containers))
        pid = self.containers.pop(ident)
        for path in (f"{self.path}/proc/{pid}", f"{self.cgroups}/docker/{ident}"):
            for name in os.listdir(path):
                os.unlink(f"{path}/{name}")
            os.rmdir(path)
        self.take_turns()

    def take_turns(self):
        """The youngest are on the GPUs."""
        youngest = list(self.containers.values())[-len(TURNS):]
        with open(f"{self.path}/pids.new", "w") as file:
            file.writelines(f"{turn} {pid}\n" for turn, pid in zip(TURNS, youngest))
        os.rename(f"{self.path}/pids.new", f"{self.path}/pids")

    @property
    def flags(self):
        return (*FLAGS, f"--path.procfs={self.path}/proc", f"--path.sysfs={self.path}/sys",
                f"--state-file={self.path}/state")

    @property
    def env(self):
        return {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": f"{self.path}/scenario",
                "FAKE_NVML_PIDS": f"{self.path}/pids"}


class SimulatedExporter(Exporter):
    """An exporter on such a node, whose time stands still but for `pass_time`."""

    def __init__(self, node, *flags, env=None):
        self.node, self.clock = node, Clock()
        self.address = f"unix:{node.path}/socket"  # the other may be unknown
        for name in ("socket", "state"):  # of the one before
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{node.path}/{name}")
        super().__init__(*node.flags, *flags, env={**node.env, **(env or {}), **self.clock.env},
                         listen=("127.0.0.1:0", self.address), pass_fds=self.clock.pass_fds)
        self.clock.attach()

    def __enter__(self):
        """Raises Ended if it ends instead."""
        try:
            self.clock.run_until("it listens", self.is_listening)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def is_listening(self):
        if self.process.poll() is not None:
            raise Ended
        return os.path.exists(self.address.removeprefix("unix:"))

    def __exit__(self, *error):
        self.text = self.log_text()
        try:
            super().__exit__(*error)
        finally:
            self.clock.close()

    def pass_time(self, seconds, step=1):
        """The node's meters move once in each step."""
        for _ in range(0, seconds, step):
            self.node.pass_time(step)
            self.clock.advance(step)

    def stop(self, *signals, **limits):
        self.process.terminate()
        self.clock.run_until("it ends", lambda: self.process.poll() is not None)
        if self.process.returncode != 0:
            raise AssertionError(f"exit status {self.process.returncode}")
