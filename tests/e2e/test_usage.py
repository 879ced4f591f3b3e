"""What workloads use: real containers, units and jobs do work of known size, and the page must say so.

The exporter reads cgroups every 5 s. What all of them have done by now is on the page as soon as a unit is there that
is made now: see UsageTestCase.read.
"""
import contextlib
import os
import secrets
from decimal import Decimal

import harness
from harness import METER_ENERGY, UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, wait_until
from servers import cgroups, load, require
from servers.docker import Dockerd
from servers.slurm import Slurm
from servers.unit import Unit
from test_node_meters import Sysfs, package

PREFIX = "wattribute_workload_"
CPU = PREFIX + "cpu_seconds_total"
PIDS = PREFIX + "pids"
PENDING = "wattribute_energy_pending_joules"
NO_RUNTIMES = ("--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=")
MIB = 1 << 20
TICK_S = Decimal(1) / os.sysconf("SC_CLK_TCK")


def exporter_of(docker, *flags, **more):
    sockets = [flag for flag in NO_RUNTIMES if flag != "--docker-socket="]
    return Exporter(f"--docker-socket={docker.socket}", *sockets, *flags, **more)


def read_file(group, *names):
    """The first of these files that a cgroup has in any hierarchy, or None."""
    for name in names:
        for hierarchy in cgroups.hierarchies():
            with contextlib.suppress(FileNotFoundError), open(f"{hierarchy}{group}/{name}") as file:
                return file.read()
    return None


def machine_busy_s():
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) * TICK_S


def disk_of(path):
    """(name, major:minor) of the disk with the file system of a path, or None: it is on no disk."""
    device = os.stat(path).st_dev
    link = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"
    if not os.path.exists(link):
        return None
    directory = os.path.realpath(link)
    if os.path.exists(f"{directory}/partition"):
        directory = os.path.dirname(directory)
    with open(f"{directory}/dev") as file:
        return os.path.basename(directory), file.read().strip()


def bytes_written(group, number):
    """By the cgroup's own files, v2's or v1's; None: they do not tell of this disk."""
    for line in (read_file(group, "io.stat") or "").splitlines():
        device, *pairs = line.split()
        if device == number and pairs:
            return int(dict(pair.split("=") for pair in pairs)["wbytes"])
    for line in (read_file(group, "blkio.throttle.io_service_bytes_recursive") or "").splitlines():
        if line.startswith(f"{number} Write "):
            return int(line.split()[2])
    return None


class UsageTestCase(TestCase):
    def read(self, exporter, *idents):
        """A page that was read from now on, with all of these ids."""
        with Unit() as mark:
            return exporter.wait_for_page("all of them are read", lambda page: all(
                page.values(CPU, id=ident) for ident in (mark.name, *idents)), 40)

    def assert_cpu(self, page, used_s, **labels):
        """Within 1 % and a tick of what the kernel says of the processes."""
        shown = page.sum(CPU, **labels)
        print(f"{labels['kind']}: {shown} s, {used_s} s by its processes ({100 * (shown / used_s - 1):+.2f} %)")
        self.assertAlmostEqual(used_s, shown, delta=used_s / 100 + TICK_S)
        self.assertEqual(["system", "user"], sorted(found["mode"] for found, _ in page.values(CPU, **labels)))

    def assert_families(self, page, ident, present=(), absent=()):
        shown = {name.removeprefix(PREFIX) for name, labels in page.series
                 if name.startswith(PREFIX) and ("id", ident) in labels}
        self.assertLessEqual(set(present), shown)
        self.assertEqual(set(), set(absent) & shown)


class Containers(UsageTestCase):
    @classmethod
    def setUpClass(cls):
        cls.docker = cls.enterClassContext(Dockerd())
        cls.shared = load.Shared(cls.docker)

    def test_a_container_uses_what_it_has_measured(self):
        with exporter_of(self.docker) as exporter:
            box = self.shared.run("box", {"memory_mib": 64, "threads": 3, "cpu_ms": 3000}, Memory=256 * MIB)
            used_s = self.shared.used_s("box")
            page = self.read(exporter, box.id)
        self.assert_cpu(page, used_s, kind="container", id=box.id, name="box", container="box", namespace="", pod="")
        self.assertGreater(page.value(CPU, id=box.id, mode="user"), page.value(CPU, id=box.id, mode="system"))
        self.assertEqual(4, page.value(PIDS, id=box.id))
        self.assertEqual(256 * MIB, page.value(PREFIX + "memory_limit_bytes", id=box.id))
        self.assertEqual(len(os.sched_getaffinity(0)), page.value(PREFIX + "cpus", id=box.id))  # all of the machine's
        self.assertEqual(0, page.value(PREFIX + "memory_oom_kills_total", id=box.id))
        rss, used, working_set = (page.value(f"{PREFIX}memory_{name}_bytes", id=box.id)
                                  for name in ("rss", "used", "working_set"))
        self.assertGreaterEqual(rss, 64 * MIB)
        self.assertLess(rss, 72 * MIB)
        self.assertGreaterEqual(used, rss)
        self.assertLessEqual(working_set, used)

    def test_a_quota_and_a_memory_limit_that_are_exceeded_are_counted(self):
        with exporter_of(self.docker) as exporter:
            box = self.shared.run("tight", {"exceed_mib": 128, "cpu_ms": 300}, Memory=32 * MIB, CpuPeriod=100_000,
                                  CpuQuota=20_000)
            self.shared.used_s("tight")
            page = self.read(exporter, box.id)
        self.assertEqual(1, page.value(PREFIX + "memory_oom_kills_total", id=box.id))
        self.assertGreater(page.value(PREFIX + "memory_failures_total", id=box.id), 0)
        self.assertEqual(32 * MIB, page.value(PREFIX + "memory_limit_bytes", id=box.id))
        self.assertEqual(Decimal("0.2"), page.value(PREFIX + "cpus", id=box.id))
        stat = dict(line.split() for line in read_file(f"/docker/{box.id}", "cpu.stat").splitlines())
        throttled_s = Decimal(stat["throttled_usec"]) / 10**6 if "throttled_usec" in stat else \
            Decimal(stat["throttled_time"]) / 10**9
        self.assertGreater(throttled_s, 0)
        self.assertAlmostEqual(throttled_s, page.value(PREFIX + "cpu_throttled_seconds_total", id=box.id), places=5)
        self.assertEqual(int(stat["nr_throttled"]), page.value(PREFIX + "cpu_throttled_periods_total", id=box.id))
        self.assertLessEqual(int(stat["nr_throttled"]), page.value(PREFIX + "cpu_periods_total", id=box.id))

    def test_bytes_are_counted_where_the_kernel_counts_them(self):
        disk = disk_of(self.shared.path)
        # v1 counts for a disk only if some cgroup has a limit on it (Linux 6.10 and later). This one is never reached.
        limits = {"BlkioDeviceWriteBps": [{"Path": f"/dev/{disk[0]}", "Rate": 1 << 40}]} if disk else {}
        with exporter_of(self.docker) as exporter:
            box = self.shared.run("writer", {"write_mib": 8} if disk else {}, **limits)
            self.shared.used_s("writer")
            page = self.read(exporter, box.id)
        expected = bytes_written(f"/docker/{box.id}", disk[1]) if disk else None
        shown = {labels["device"]: value for labels, value in page.values(
            PREFIX + "io_written_bytes_total", id=box.id)}
        print(f"written: {expected} by the cgroup on {disk}, shown: {shown}")
        if expected is None:
            self.assertEqual({}, shown)
        else:
            self.assertGreaterEqual(expected, 8 * MIB)
            self.assertEqual(expected, shown[disk[0]])
            self.assertGreater(page.value(PREFIX + "io_writes_total", id=box.id, device=disk[0]), 0)

    def test_gauges_end_with_a_container_and_counters_with_the_retention(self):
        gauges = {"pids", "memory_rss_bytes", "memory_used_bytes", "memory_working_set_bytes"}
        counters = {"cpu_seconds_total", "memory_failures_total", "memory_oom_kills_total"}
        with exporter_of(self.docker, "--metric-retention=8s") as exporter:
            box = self.shared.run("short", {"cpu_ms": 200})
            self.shared.used_s("short")
            before = self.read(exporter, box.id)
            self.assert_families(before, box.id, present=gauges | counters)
            box.kill()
            ended = exporter.wait_for_page("it has ended", lambda page: not page.values(PIDS, id=box.id), 30)
            self.assert_families(ended, box.id, present=counters, absent=gauges)
            self.assertGreaterEqual(ended.sum(CPU, id=box.id, name="short"), before.sum(CPU, id=box.id))
            forgotten = exporter.wait_for_page("it is forgotten", lambda page: not page.values(CPU, id=box.id), 30)
            self.assert_families(forgotten, box.id, absent=gauges | counters)

    def test_what_is_inside_of_another_workload_is_counted_once(self):
        uid = 3_000_000_000 + secrets.randbelow(1_000_000_000)
        unit = f"wattribute-test-{secrets.token_hex(4)}.service"
        holders = {("unit", unit): f"/system.slice/{unit}",
                   ("user", str(uid)): f"/user.slice/user-{uid}.slice/user@{uid}.service"}
        boxes, outer = {}, {}
        with contextlib.ExitStack() as stack:
            busy_s = machine_busy_s()
            exporter = stack.enter_context(exporter_of(self.docker))
            before = self.read(exporter)
            for (kind, ident), group in holders.items():
                outer[ident] = stack.enter_context(load.Process(f"{group}/own", cpu_ms=1000, memory_mib=16))
                boxes[ident] = self.shared.run(f"in-{kind}", {"cpu_ms": 2000, "memory_mib": 48}, cgroup_parent=group)
                stack.callback(self.docker.remove, boxes[ident])
            used_s = {ident: (outer[ident].used_s(), self.shared.used_s(boxes[ident].name)) for _, ident in holders}
            ids = {unit: boxes[unit].id, str(uid): f"{uid}/{boxes[str(uid)].id}"}
            page = self.read(exporter, *ids, *ids.values())
            busy_s = machine_busy_s() - busy_s
            for kind, ident in holders:
                self.assert_cpu(page, used_s[ident][0], kind=kind, id=ident)
                self.assert_cpu(page, used_s[ident][1], kind="container", id=ids[ident])
                for name, expected in ((ident, 16), (ids[ident], 48)):
                    rss = page.value(PREFIX + "memory_rss_bytes", id=name)
                    self.assertTrue(expected * MIB <= rss < (expected + 8) * MIB, (name, rss))
            done_s = self.done_s(before, page, [*ids, *ids.values()])
            print(f"{done_s} s by all workloads, {busy_s} s by the machine")
            self.assertGreaterEqual(done_s, sum(map(sum, used_s.values())) * Decimal("0.99"))
            self.assertLessEqual(done_s, busy_s * Decimal("1.02"))

    def done_s(self, before, after, new):
        """By those that are on both pages, and by the new ones: others that appear may have done it long ago."""
        return sum(value - before.series.get((CPU, tuple(sorted(labels.items()))), 0)
                   for labels, value in after.values(CPU)
                   if labels["id"] in new or before.values(CPU, id=labels["id"]))

    def test_containers_pay_for_their_share_of_the_processors(self):
        # First, so that the machine is never so quiet that all its power is taken for what it draws when idle.
        boxes = [self.shared.run(name, {"cpu_ms": 600_000}, CpuShares=shares)
                 for name, shares in (("large", 1024), ("small", 512))]
        with contextlib.ExitStack() as stack:
            for box in boxes:
                stack.callback(self.docker.remove, box)
            sysfs = stack.enter_context(Sysfs())
            windows = self.windows(stack.enter_context(exporter_of(
                self.docker, f"--path.sysfs={sysfs.path}", wrapper=sysfs.wrapper())), boxes, 4)
        for before, after in zip(windows, windows[1:]):
            self.assert_package_balances(after)
            (large_j, large_s), (small_j, small_s) = (self.grown(before, after, box) for box in boxes)
            self.assertAlmostEqual(large_s / small_s, large_j / small_j, delta=large_s / small_s / 10000)
        joules, seconds = self.grown(windows[0], windows[-1], boxes[0])
        all_joules, all_seconds = (getattr(windows[-1], name) - getattr(windows[0], name)
                                   for name in ("active_j", "busy_s"))
        print(f"large: {joules} of {all_joules} J, {seconds} of {all_seconds} s")
        self.assertAlmostEqual(seconds / all_seconds, joules / all_joules, delta=seconds / all_seconds / 4)

    def windows(self, exporter, boxes, count):
        """The first pages after so many times that energy was divided among these and others."""
        found = []

        def is_enough():
            page = exporter.page()
            page.busy_s, page.active_j = machine_busy_s(), self.active_j(page)
            if all(self.grown(found[-1], page, box)[0] if found else package(page, WORKLOAD_ENERGY, id=box.id)
                   for box in boxes):
                found.append(page)
            return len(found) > count
        wait_until(f"{count} windows", is_enough, 90)
        return found

    def grown(self, before, after, box):
        """Joules and CPU seconds."""
        return (package(after, WORKLOAD_ENERGY, id=box.id) - package(before, WORKLOAD_ENERGY, id=box.id),
                after.sum(CPU, id=box.id) - before.sum(CPU, id=box.id))

    def active_j(self, page):
        return package(page, METER_ENERGY) + package(page, PENDING) - package(page, UNOWNED_ENERGY, owner="idle")

    def assert_package_balances(self, page):
        self.assertEqual(package(page, METER_ENERGY),
                         package(page, WORKLOAD_ENERGY) + package(page, UNOWNED_ENERGY))
        self.assertEqual(0, package(page, "wattribute_ledger_imbalance_joules"))


class Units(UsageTestCase):
    def setUp(self):
        require.root()
        super().setUp()

    def test_ten_thousand_short_processes_are_counted_to_one_percent(self):
        name = f"wattribute-test-{secrets.token_hex(4)}.service"
        with Exporter(*NO_RUNTIMES) as exporter, \
                load.Process(f"/system.slice/{name}", only_systemd=True, children=10_000) as process:
            self.read(exporter, name)  # while they run
            used_s = process.used_s()
            page = self.read(exporter, name)
            self.assert_cpu(page, used_s, kind="unit", id=name, name=name)


class Impostors(UsageTestCase):
    def test_whoever_names_a_cgroup_like_anothers_container_pays_for_it(self):
        victim, service = secrets.token_hex(32), f"/system.slice/wattribute-test-{secrets.token_hex(4)}.service"
        with contextlib.ExitStack() as stack:
            exporter = stack.enter_context(Exporter(*NO_RUNTIMES))
            own = stack.enter_context(load.Process(f"/docker/{victim}", cpu_ms=500))
            stack.callback(cgroups.remove, service)
            with cgroups.making(service):
                cgroups.give(service, 4711)
            forged = stack.enter_context(load.Process(f"{service}/docker/{victim}", cpu_ms=2000))
            used_s, forged_s = own.used_s(), forged.used_s()
            page = self.read(exporter, victim, f"4711/{victim}")
            self.assert_cpu(page, used_s, kind="container", id=victim)
            self.assert_cpu(page, forged_s, kind="container", id=f"4711/{victim}")


class Jobs(UsageTestCase):
    def test_a_job_uses_what_it_has_measured(self):
        with Slurm() as slurm, Exporter(*NO_RUNTIMES) as exporter:
            job = slurm.sbatch(f"exec {load.program()} {' '.join(load.words({'cpu_ms': 3000, 'memory_mib': 64}))}")
            used_s = load.wait_for_used_s(slurm.stage.path(f"job-{job}.out"))
            page = self.read(exporter, str(job))
            self.assert_cpu(page, used_s, kind="slurm", id=str(job), name=str(job))
            rss = page.value(PREFIX + "memory_rss_bytes", kind="slurm", id=str(job))
            self.assertTrue(64 * MIB <= rss < 80 * MIB, rss)


if __name__ == "__main__":
    harness.main()
