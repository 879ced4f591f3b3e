"""A node whose processor counts in real time, so that the joules of a CPU second are known.

60 W are drawn and two CPUs of four are busy, all the time: a CPU second has 30 J. What else runs on the machine of the
test does not matter, and the node is never quiet, so that nothing is taken for idle.
"""
import os
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
WATTS, BUSY_CPUS, CPUS = 60, 2, 4
JOULES_PER_CPU_SECOND = WATTS / BUSY_CPUS
START_J = 1000


class CountingNode:
    """For a with statement, in a directory that stays."""

    def __init__(self, directory):
        self.path = directory
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.count)
        for name in ("proc/self", "sys/class/powercap/intel-rapl:0"):
            os.makedirs(f"{directory}/{name}")
        self.fds = {}
        self.put("proc/self/mountinfo", "")
        self.put("proc/meminfo", "MemTotal: 16384000 kB\nMemAvailable: 8192000 kB\n")
        self.put("sys/class/powercap/intel-rapl:0/name", "package-0\n")
        self.put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n")
        self.began = time.monotonic()
        self.pass_time()
        os.chmod(directory, 0o755)

    def put(self, name, text):
        """In place and of one length: somebody may be reading it."""
        if name not in self.fds:
            self.fds[name] = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(self.fds[name], text.encode(), 0)

    def pass_time(self):
        seconds = time.monotonic() - self.began
        busy, idle = round(BUSY_CPUS * seconds * TICKS), round((CPUS - BUSY_CPUS) * seconds * TICKS)
        self.put("sys/class/powercap/intel-rapl:0/energy_uj", "%012d\n" % ((START_J + WATTS * seconds) * 1e6))
        self.put("proc/stat", "cpu  %010d 0 0 %010d 0 0 0 0 0 0\nbtime 1700000000\n" % (busy, idle)
                 + "".join(f"cpu{i} 0 0 0 0 0 0 0 0 0 0\n" for i in range(CPUS)))

    def count(self):
        while not self.stopping.wait(0.002):
            self.pass_time()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for fd in self.fds.values():
            os.close(fd)

    @property
    def flags(self):
        return [f"--path.procfs={self.path}/proc", f"--path.sysfs={self.path}/sys", "--no-collector.hwmon",
                "--no-collector.ipmi", "--no-collector.drm"]
