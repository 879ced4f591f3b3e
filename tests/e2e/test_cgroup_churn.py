"""The exporter outlives whatever happens to cgroups, and knows in the end which there are.

On the machine's own hierarchies, seen as they are and, where it has both kinds, as v1 and as v2 alone; and on directories
that look like v1, a hybrid and v2, which every machine has. WATTRIBUTE_CHURN_SECONDS is about how long it takes in all.
"""
import contextlib
import os
import secrets
import signal
import tempfile
import time

import harness
from harness import METER_ENERGY, SOON_S, UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, binary, wait_until
from servers import cgroups, require
from servers.churn import Churn
from test_node_meters import Sysfs, package

# Some of it is needed to look at what is there in the end.
CHURN_S = (max(float(os.environ.get("WATTRIBUTE_CHURN_SECONDS", "60")), 40) - 30) / 2
CPU = "wattribute_workload_cpu_seconds_total"
IMBALANCE = "wattribute_ledger_imbalance_joules"
FLAGS = ("--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=", "--metric-retention=0s",
         "--process-scan-interval=1s")
PAUSE_S = 0.15  # for which a busy machine does not run the collector
SETTLE_S = 90  # a rescan comes once a minute
RSS_SLACK_KB = 2048

V1 = ["cpuacct", "memory", "pids"]
LAYOUTS = {"v1": (V1, []), "hybrid": (V1, ["unified"]), "v2": ([], [""])}


def is_sanitized():
    with open(binary(), "rb") as file:
        return b"__asan_init" in file.read()


def descriptors(pid):
    """What each leads to."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def open_fifo(path):
    """To write to it, once it is read; nobody does that."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    return None


def count_watches(pid):
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{fd}") as file:
            count += file.read().count("inotify wd:")
    return count


def resident_kb(pid):
    return int(harness.process_status(pid)["VmRSS"].split()[0])


@contextlib.contextmanager
def fake_node(v1, v2):
    """Flags of an exporter for which these are all hierarchies, and where they are. On a tmpfs: as in a cgroup file
    system, no directory gets the inode number of another."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path, Sysfs() as sysfs:
        for name in ("proc/self", "cgroup"):
            os.makedirs(f"{path}/{name}")
        for name in ("stat", "meminfo"):
            os.symlink(f"/proc/{name}", f"{path}/proc/{name}")
        os.rmdir(f"{sysfs.path}/fs/cgroup")
        os.symlink(f"{path}/cgroup", f"{sysfs.path}/fs/cgroup")
        with open(f"{path}/proc/self/mountinfo", "w") as file:
            for name in v1:
                file.write(f"33 31 0:30 / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n")
            for name in v2:
                file.write(f"33 31 0:30 / /sys/fs/cgroup/{name} rw - cgroup2 cgroup2 rw\n")
        roots = [[os.path.join(path, "cgroup", name).rstrip("/") for name in names] for names in (v1, v2)]
        for root in sum(roots, []):
            os.makedirs(root, exist_ok=True)
        os.mkdir(f"{path}/stage")
        yield (f"--path.sysfs={sysfs.path}", f"--path.procfs={path}/proc"), Churn("churn", *roots, f"{path}/stage")


def own_hierarchies():
    """Where the machine has v1, those that the exporter reads, and where v2."""
    with open("/proc/self/mountinfo") as file:
        is_v2 = {line.split()[4]: " - cgroup2 " in line for line in file}
    found = cgroups.hierarchies()
    return ([root for root in found if not is_v2[root] and set(V1) & set(os.path.basename(root).split(","))],
            [root for root in found if is_v2[root]])


def views(v1, v2):
    """What an exporter is to see: commands that mount it where they are run."""
    found = {"as it is": "mount --rbind /sys/fs/cgroup ."}
    if v1 and v2:
        binds = [f"mkdir {os.path.basename(root)} && mount --bind {root} {os.path.basename(root)}" for root in v1]
        found["v1 alone"] = " && ".join(["mount -t tmpfs tmpfs .", 'cd "$PWD"', *binds])
        found["v2 alone"] = f"mount --bind {v2[0]} ."
    return found


class ChurnTestCase(TestCase):
    def assert_balanced(self, page):
        self.assertEqual(package(page, METER_ENERGY), package(page, WORKLOAD_ENERGY) + package(page, UNOWNED_ENERGY))
        self.assertEqual([], [row for row in page.values(IMBALANCE) if row[1] != 0])

    def shown(self, page, churn):
        """Who of them is on the page."""
        self.assert_balanced(page)
        return {(labels["kind"], labels["id"]) for labels, _ in page.values(CPU) if self.is_ours(labels["id"], churn)}

    def interrupt(self, exporter):
        """As a busy machine does for a moment: much has happened when it goes on."""
        os.kill(exporter.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
        finally:
            os.kill(exporter.pid, signal.SIGCONT)

    def watch(self, subjects, seconds):
        """Scrapes all the time, and interrupts all the time."""
        end = time.monotonic() + seconds
        scrapes = 0
        while time.monotonic() < end:
            for exporter, _ in subjects:
                self.interrupt(exporter)
                self.assertIsNone(exporter.process.poll(), "it has died")
                self.assert_balanced(exporter.page())
            scrapes += 1
        return scrapes

    def wait_for(self, owners, subjects):
        for exporter, churn in subjects:
            exporter.wait_for_page("the page has who there is", lambda page, churn=churn:
                                   self.shown(page, churn) == owners(churn), SETTLE_S)

    def check_end(self, subjects, churns):
        """Each knows what there is, and then that there is nothing."""
        for churn in churns:
            churn.stop()
            churn.clear()
            churn.make_all()
        self.wait_for(lambda churn: churn.names.owners(), subjects)
        for churn in churns:
            churn.clear()
        self.wait_for(lambda churn: set(), subjects)

    def measure_idle(self, exporter, churn):
        """The least of several times: between two reads, which open files for a moment."""
        measured = []
        for _ in range(10):
            measured.append(self.measure(exporter, churn))
            time.sleep(0.05)
        return min(measured)

    def churn(self, subjects):
        for exporter, _ in subjects:
            exporter.wait_for_page("all is read", lambda page: page.values(IMBALANCE) and page.values(
                "wattribute_source_up", source="cgroups"))
        churns = list(dict.fromkeys(churn for _, churn in subjects))
        before = [self.measure_idle(*subject) for subject in subjects]
        for churn in churns:
            churn.start()
        self.watch(subjects, CHURN_S / 4)  # until all has been used once
        warm_kb = [resident_kb(exporter.pid) for exporter, _ in subjects]
        scrapes = self.watch(subjects, CHURN_S * 3 / 4)
        self.check_end(subjects, churns)
        for (exporter, churn), measured, warm in zip(subjects, before, warm_kb):
            end_kb = resident_kb(exporter.pid)
            print(f"{exporter.title}: {CHURN_S} s, {scrapes} scrapes, {warm} KB when warm, {end_kb} KB in the end")
            self.assertEqual(measured, self.measure_idle(exporter, churn))
            if not is_sanitized():
                self.assertLess(end_kb, warm + RSS_SLACK_KB)


class FakeHierarchies(ChurnTestCase):
    def is_ours(self, *_):
        return True

    def measure(self, exporter, _):
        """Nobody else makes cgroups here."""
        return len(descriptors(exporter.pid)), count_watches(exporter.pid)

    @contextlib.contextmanager
    def subject(self, title, v1, v2):
        with fake_node(v1, v2) as (flags, churn):
            with Exporter(*FLAGS, *flags) as exporter, churn:
                exporter.title = f"{title}, not real"
                yield exporter, churn

    def test_a_child_that_is_made_again_before_its_parent_is_known_elsewhere(self):
        ident = "f" * 64
        with self.subject("v1", *LAYOUTS["v1"]) as (exporter, churn):
            cpuacct, memory, _ = churn.hierarchies.all
            churn.hierarchies.move_in(cpuacct, "/docker", [f"/docker/{ident}"])
            exporter.wait_for_page("the container", lambda page: page.values(CPU, id=ident))
            os.kill(exporter.pid, signal.SIGSTOP)
            try:
                churn.hierarchies.remove(cpuacct, "/docker")
                for root in (cpuacct, memory):
                    churn.hierarchies.make(root, f"/docker/{ident}")
            finally:
                os.kill(exporter.pid, signal.SIGCONT)
            exporter.wait_for_page("its memory", lambda page: page.values("wattribute_workload_memory_used_bytes",
                                                                          id=ident))

    def test_there_are_as_many_workloads_as_the_flag_says(self):
        most = 16_400  # more than the default
        with fake_node(*LAYOUTS["v2"]) as (flags, churn):
            for number in range(most):
                group = f"{churn.hierarchies.all[0]}/docker/{number:064x}"
                os.makedirs(group)
                with open(f"{group}/cpu.stat", "w") as file:
                    file.write("usage_usec 1000000\nuser_usec 600000\nsystem_usec 400000\n")
            with Exporter(*FLAGS, *flags, f"--max-workloads={most}") as exporter:
                page = exporter.wait_for_page("all are read", lambda page: page.values(CPU, mode="user"), 60)
                self.assertEqual(most, len(page.values(CPU, kind="container", mode="user")))
                self.assert_balanced(page)

    def test_it_ends_in_the_midst_of_it(self):
        with self.subject("hybrid", *LAYOUTS["hybrid"]) as (exporter, churn):
            churn.start()
            self.watch([(exporter, churn)], 3)
            self.assertLess(exporter.stop(), SOON_S)

    def test_it_ends_though_a_source_hangs(self):
        with fake_node(*LAYOUTS["v1"]) as (flags, _), contextlib.ExitStack() as stack:
            fifo = flags[1].removeprefix("--path.procfs=") + "/meminfo"
            os.unlink(fifo)
            os.mkfifo(fifo)
            exporter = stack.enter_context(Exporter(*FLAGS, *flags))
            stack.callback(os.close, wait_until("cgroups are read, which hangs", lambda: open_fifo(fifo)))
            self.assertLess(exporter.stop(), SOON_S)
            self.assertEqual("cgroups", exporter.log("source hangs and was left behind")[0]["source"])

    def test_v1_hybrid_and_v2_outlive_it(self):
        with contextlib.ExitStack() as stack:
            self.churn([stack.enter_context(self.subject(title, *layout)) for title, layout in LAYOUTS.items()])


class OwnHierarchies(ChurnTestCase):
    def setUp(self):
        require.root()
        require.writable(cgroups.hierarchies())
        super().setUp()

    def is_ours(self, ident, churn):
        return churn.names.token in ident or ident in {known for _, known in churn.names.owners()}

    def measure(self, exporter, churn):
        """Others make cgroups here, too."""
        links = descriptors(exporter.pid)
        return ([link for link in links if any(top in link for top in churn.names.tops())],
                len([link for link in links if "/fs/cgroup" not in link]))

    def test_the_kernels_hierarchies_outlive_it(self):
        v1, v2 = own_hierarchies()
        with Sysfs() as sysfs, Churn(f"churn{secrets.token_hex(4)}", v1, v2) as churn, \
                contextlib.ExitStack() as stack:
            subjects = []
            for title, mounts in views(v1, v2).items():
                exporter = stack.enter_context(Exporter(*FLAGS, f"--path.sysfs={sysfs.path}", wrapper=(
                    "unshare", "--mount", "--propagation", "private", "sh", "-c",
                    f'cd "{sysfs.path}/fs/cgroup" && {mounts} && cd / && exec "$@"', "sh")))
                exporter.title = title
                subjects.append((exporter, churn))
            self.churn(subjects)


if __name__ == "__main__":
    harness.main()
