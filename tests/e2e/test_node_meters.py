"""The energy of processors: a powercap tree whose counter moves, divided by what real cgroups do."""
import contextlib
import decimal
import os
import subprocess
import tempfile
import threading

from harness import Exporter, METER_ENERGY, TestCase, main, run, wait_until
from servers import cgroups, require, unit

HARDWARE = "wattribute_meter_hardware_energy_joules_total"
WORKLOADS = "wattribute_workload_energy_joules_total"
RANGE_UJ = 262143328850
STEP_UJ, STEP_S = 5_000_000, 0.1
LIMIT_UW = 225_500_000


class Sysfs:
    """A /sys with one package whose counter moves by 50 W, and the machine's own cgroups."""

    def __init__(self, has_driver=True):
        self.has_driver = has_driver

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = self.directory.name
        self.zone = f"{self.path}/devices/virtual/powercap/intel-rapl:0"
        os.makedirs(self.zone)
        os.makedirs(f"{self.path}/class/powercap")
        os.makedirs(f"{self.path}/fs/cgroup")
        self.write("name", "package-0")
        self.write("max_energy_range_uj", RANGE_UJ)
        self.count_uj = RANGE_UJ - 50_000_000  # it wraps a second after the start
        self.write("energy_uj", self.count_uj)
        self.write("enabled", 1)
        self.write("constraint_0_name", "long_term")
        self.write("constraint_0_power_limit_uw", LIMIT_UW)
        if self.has_driver:
            self.load_driver()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.move)
        self.thread.start()
        return self

    def load_driver(self):
        os.symlink(self.zone, f"{self.path}/class/powercap/intel-rapl:0")

    def write(self, name, value):
        """In place: the exporter keeps the file open, as it does in the kernel's file system."""
        with open(os.open(f"{self.zone}/{name}", os.O_WRONLY | os.O_CREAT, 0o644), "w") as file:
            file.write(f"{value}\n")
            file.truncate()

    def move(self):
        while not self.ending.wait(STEP_S):
            self.count_uj = (self.count_uj + STEP_UJ) % (RANGE_UJ + 1)
            self.write("energy_uj", self.count_uj)

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.directory.cleanup()

    def wrapper(self, mount="mount --rbind /sys/fs/cgroup ."):
        """Runs a command that sees this tree with the real cgroups, or something else, in it."""
        return ("unshare", "--mount", "--propagation", "private", "sh", "-c",
                f'cd "{self.path}/fs/cgroup" && {mount} && cd / && exec "$@"', "sh")


def package(page, name, **labels):
    return sum((value for _, value in page.values(name, meter="package", **labels)), decimal.Decimal(0))


@contextlib.contextmanager
def busy_unit():
    """A unit whose only process never rests."""
    with unit.Unit() as service:
        busy = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"])
        try:
            cgroups.enter(service.cgroup, busy.pid, only_systemd=True)
            yield service
        finally:
            busy.kill()
            busy.wait()


class NodeMeters(TestCase):
    def setUp(self):
        require.root()
        super().setUp()

    def assert_balanced(self, page):
        self.assertEqual(package(page, METER_ENERGY),
                         package(page, WORKLOADS) + package(page, "wattribute_unowned_energy_joules_total"))
        self.assertEqual(0, package(page, "wattribute_ledger_imbalance_joules"))
        self.assertGreaterEqual(package(page, HARDWARE), package(page, METER_ENERGY))

    def test_package_energy_is_divided_by_cpu_time_and_balances_over_a_wrap(self):
        with Sysfs() as sysfs, busy_unit() as service, Exporter(
                f"--path.sysfs={sysfs.path}", wrapper=sysfs.wrapper()) as exporter:
            pages = []

            def is_paid():
                page = exporter.page()
                self.assert_balanced(page)
                pages.append(page)
                return package(page, WORKLOADS, kind="unit", id=service.name) > 100
            wait_until("the unit has paid", is_paid, 60)
            last = pages[-1]
            self.assertEqual(1, last.value("wattribute_source_up", source="rapl"))
            self.assertEqual(0, package(last, "wattribute_source_resets_total"))
            self.assertEqual({("long_term", decimal.Decimal("225.5"))}, {
                (labels["limit"], value) for labels, value in last.values(
                    "wattribute_meter_power_limit_watts", meter="package", meter_id="0")})
            settled = [package(page, METER_ENERGY) for page in pages]
            self.assertEqual(sorted(settled), settled)

    def test_a_counter_that_cannot_be_read_costs_nothing_but_its_series(self):
        with Sysfs() as sysfs:
            os.unlink(f"{sysfs.zone}/max_energy_range_uj")
            sysfs.ending.set()
            sysfs.thread.join()
            sysfs.write("energy_uj", "-17")
            with Exporter(f"--path.sysfs={sysfs.path}", wrapper=sysfs.wrapper()) as exporter:
                page = exporter.wait_for_page("cgroups are read", lambda page: page.values(
                    "wattribute_source_up", source="cgroups"))
                self.assertEqual([], page.values(METER_ENERGY, meter="package"))
                self.assertEqual(1, page.value("wattribute_source_up", source="cgroups"))

    def test_without_cgroups_the_energy_of_processors_is_unattributed_and_that_is_said(self):
        with Sysfs() as sysfs:
            done = run("check", f"--path.sysfs={sysfs.path}", timeout=60)
            self.assertRegex(done.stdout.decode(), r"(?m)^missing +cgroups +no cgroup hierarchy is mounted")
            self.assert_not_divided(sysfs, ())

    def assert_not_divided(self, sysfs, wrapper):
        with Exporter(f"--path.sysfs={sysfs.path}", wrapper=wrapper) as exporter:
            page = exporter.wait_for_page("it is booked", lambda page: page.sum(METER_ENERGY, meter="package") > 0, 30)
            self.assertEqual(0, page.value("wattribute_source_up", source="cgroups"))
            self.assertGreater(page.sum("wattribute_unowned_energy_joules_total", meter="package", owner="unattributed"), 0)
            self.assertEqual(0, page.sum("wattribute_unowned_energy_joules_total", meter="package", owner="system"))
            self.assert_balanced(page)
            self.assertIn("no cgroup hierarchy is mounted",
                          exporter.log("source is down; its series go stale")[0]["error"])

    def test_the_empty_directories_of_a_sys_that_was_mounted_alone_are_no_cgroups(self):
        """As in a container with /sys:/host/sys:ro where each controller is a file system of its own."""
        with Sysfs() as sysfs:
            empty = " ".join(f'"{os.path.basename(path)}"' for path in cgroups.hierarchies())
            self.assert_not_divided(sysfs, sysfs.wrapper(f"mount -t tmpfs tmpfs . && cd $PWD && mkdir {empty}"))

    def test_a_part_of_the_tree_is_not_the_nodes(self):
        """As a container sees its own cgroup where the node's would be."""
        with Sysfs() as sysfs, unit.Unit() as part:
            mounts = " && ".join(f'mkdir "{os.path.basename(path)}" && mount --bind "{path}{part.cgroup}" '
                                 f'"{os.path.basename(path)}"' for path in cgroups.hierarchies()
                                 if os.path.isdir(f"{path}{part.cgroup}"))
            self.assert_not_divided(sysfs, sysfs.wrapper(f"mount -t tmpfs tmpfs . && cd $PWD && {mounts}"))

    def test_a_model_is_booked_as_such_and_ends_when_a_meter_is_there(self):
        model = ("--model.idle-watts=20", "--model.full-watts=100.5")
        with Sysfs(has_driver=False) as sysfs, busy_unit() as service, Exporter(
                f"--path.sysfs={sysfs.path}", "--process-scan-interval=1s", *model,
                wrapper=sysfs.wrapper()) as exporter:
            page = exporter.wait_for_page("the unit has paid", lambda page: package(
                page, WORKLOADS, kind="unit", id=service.name, method="modelled") > 0, 30)
            self.assert_balanced_model(page)
            self.assertEqual(1, page.value("wattribute_source_up", source="model"))
            self.assertEqual([], page.values(HARDWARE))
            self.assertGreater(page.value("wattribute_unowned_energy_joules_total",
                                          meter_id="model", owner="idle"), 0)
            sysfs.load_driver()
            page = exporter.wait_for_page("the meter is booked", lambda page: package(
                page, METER_ENERGY, meter_id="0") > 0, 30)
            self.assertEqual([], page.values("wattribute_source_up", source="model"))
            ended = page.value(METER_ENERGY, meter_id="model")
            before = page.value(METER_ENERGY, meter_id="0")
            page = exporter.wait_for_page("the meter is booked again", lambda page: page.value(
                METER_ENERGY, meter_id="0") > before, 30)
            self.assertEqual(ended, page.value(METER_ENERGY, meter_id="model"))
            self.assert_balanced_model(page)

    def assert_balanced_model(self, page):
        for meter_id in {labels["meter_id"] for labels, _ in page.values(METER_ENERGY)}:
            self.assertEqual(package(page, METER_ENERGY, meter_id=meter_id),
                             package(page, WORKLOADS, meter_id=meter_id) +
                             package(page, "wattribute_unowned_energy_joules_total", meter_id=meter_id))
            self.assertEqual(0, package(page, "wattribute_ledger_imbalance_joules", meter_id=meter_id))

    def test_nothing_is_modelled_unless_it_is_asked_for(self):
        with Sysfs(has_driver=False) as sysfs, Exporter(f"--path.sysfs={sysfs.path}",
                                                        wrapper=sysfs.wrapper()) as exporter:
            page = exporter.wait_for_page("cgroups are read", lambda page: page.values(
                "wattribute_source_up", source="cgroups"))
            self.assertEqual([], page.values("wattribute_source_up", source="model"))
            self.assertEqual([], page.values(METER_ENERGY))

    def test_a_source_that_is_switched_off_is_not_read(self):
        with Sysfs() as sysfs, Exporter(f"--path.sysfs={sysfs.path}", "--no-collector.rapl",
                                        wrapper=sysfs.wrapper()) as exporter:
            page = exporter.wait_for_page("cgroups are read", lambda page: page.values(
                "wattribute_source_up", source="cgroups"))
            self.assertEqual([], page.values("wattribute_source_up", source="rapl"))
            self.assertEqual([], page.values(HARDWARE, meter="package"))
            warnings = [line for line in exporter.log() if line.get("level") == "warn"]
            self.assertEqual(["rapl"], [line["switched_off"] for line in warnings])


if __name__ == "__main__":
    main()
