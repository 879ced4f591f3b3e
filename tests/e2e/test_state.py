"""Counters and what was learned survive restarts, however a run ends.

RESTARTS=1000 is the long form of the test of restarts; its seed is printed, and SEED repeats it."""
import contextlib
import os
import random
import re
import signal
import socket
import stat
import time

import gpu_node
import harness
from harness import Exporter, TestCase, wait_until
from prometheus import Prometheus

RESTARTS = int(os.environ.get("RESTARTS", "20"))
SEED = int(os.environ.get("SEED", str(random.randrange(1 << 32))))
ENERGY = re.compile(r"^(wattribute|my_gpu_process)_\w*(joules|grams|cost)_total$")
WITHOUT = ("continuing without the state file, which is neither read nor written: counters start at 0, now and at "
           "each restart")
HARDWARE = "wattribute_meter_hardware_energy_joules_total"


class Listener:
    """A socket that outlives the exporter, as systemd's sockets do: no scrape is refused meanwhile."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def wrapper(self):
        # The variables of systemd's protocol name the process itself.
        return ["sh", "-c", 'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&%d' % self.socket.fileno(), "sh"]


class Node(TestCase):
    """A node with two GPUs whose counters go on while nobody reads them."""

    def setUp(self):
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        directory = self.path("node")
        os.mkdir(directory)
        self.flags, self.env = gpu_node.populate(stack, directory)
        self.env["FAKE_NVML_START_US"] = str(int(time.time() * 1e6))
        self.state = self.path("state")

    def exporter(self, *flags, env=None, **more):
        return Exporter(*self.flags, *flags, env={**self.env, **(env or {})}, **more)

    def with_state(self, *flags, **more):
        return self.exporter(f"--state-file={self.state}", *flags, **more)

    def origins(self, page):
        """What each GPU's counter had when its books began: it must stay the same."""
        pending = {labels["meter_id"]: value for labels, value in page.values("wattribute_energy_pending_joules")}
        booked = {labels["meter_id"]: value for labels, value in page.values(harness.METER_ENERGY)}
        return {labels["meter_id"]: value - booked[labels["meter_id"]] - pending[labels["meter_id"]]
                for labels, value in page.values(HARDWARE, meter="gpu")}

    def counters(self, page):
        return {series: value for series, value in page.series.items() if ENERGY.match(series[0])}

    def gap(self, page):
        return page.sum("wattribute_unowned_energy_joules_total", meter="gpu", owner="gap")

    def wait_for_energy(self, exporter):
        return exporter.wait_for_page("joules of all three", gpu_node.is_complete, 30)


class Restarts(Node):
    def test_no_restart_loses_a_microjoule_or_shows_less_than_before(self):
        print(f"SEED={SEED} RESTARTS={RESTARTS}")
        chance = random.Random(SEED)
        listener = Listener()
        self.addCleanup(listener.socket.close)
        directory = self.path("prometheus")
        os.mkdir(directory)
        origins, shown, killed = {}, {}, 0
        with Prometheus(directory, node=[listener.address]) as prometheus:
            for turn in range(RESTARTS + 1):
                exporter = self.with_state(
                    listen=(), wrapper=listener.wrapper(), pass_fds=(listener.socket.fileno(),),
                    settles_at_once=chance.random() < 0.5)
                with exporter:
                    until = time.monotonic() + (chance.uniform(0, 2.5) if turn < RESTARTS else 5)
                    while time.monotonic() < until:
                        page = exporter.page()
                        self.assert_balanced(page)
                        for board, origin in self.origins(page).items():
                            self.assertEqual(origins.setdefault(board, origin), origin, board)
                        now = self.counters(page)
                        for series, value in shown.items():
                            # Workloads of this machine come and go; others stay.
                            self.assertGreaterEqual(now.get(series, value), value, series)
                        shown.update(now)
                        time.sleep(chance.uniform(0, 0.5))
                    if turn % 3 == 2:
                        killed += 1
                        exporter.process.kill()
                        exporter.process.wait()
                        exporter.process.returncode = 0
                    else:
                        exporter.stop(seconds=60)  # a busy disk keeps who syncs to it
            self.assertGreaterEqual(killed, RESTARTS // 3)
            self.assertEqual(len(gpu_node.UUIDS), len(origins))
            for kind, name in gpu_node.OWNERS:
                self.assertTrue(page.values(harness.WORKLOAD_ENERGY, kind=kind, name=name, meter="gpu"), name)
            names = {series[0] for series in shown}
            self.assertIn("my_gpu_process_energy_joules_total", names)
            self.assertIn("wattribute_workload_energy_joules_total", names)
            compared = 0
            for name in sorted(names):
                rows = prometheus.rows(f"resets({name}[1d])")
                self.assertEqual([], [row for row in rows if row[1] != 0], name)
                compared += len(rows)
            self.assertGreater(compared, 20)
            starts = prometheus.rows("changes(process_start_time_seconds[1d])")
            self.assertGreater(starts[0][1], RESTARTS / 4)
            print(f"{RESTARTS} restarts, {killed} by SIGKILL; Prometheus saw {int(starts[0][1])} of them, and no "
                  f"reset in {compared} series")


class Kept(Node):
    def test_a_graceful_stop_settles_what_is_pending_and_a_kill_books_it_as_a_gap(self):
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=signal_number), contextlib.suppress(FileNotFoundError):
                os.unlink(self.state)
            with self.with_state("--attribution-delay=60s", settles_at_once=False) as exporter:
                page = exporter.wait_for_page(
                    "pending energy", lambda found: found.sum("wattribute_energy_pending_joules", meter="gpu") > 500)
                before = self.origins(page)
                self.assertEqual(len(gpu_node.UUIDS), len(before))
                if signal_number == signal.SIGKILL:
                    exporter.process.kill()
                    exporter.process.wait()
                    exporter.process.returncode = 0
            with self.with_state() as exporter:
                page = exporter.wait_for_page("GPUs", lambda found: len(self.origins(found)) == len(before))
                self.assertEqual(before, self.origins(page))
                self.assert_balanced(page)
                self.assertEqual(signal_number == signal.SIGKILL, self.gap(page) > 500, self.gap(page))

    def test_who_ended_before_the_restart_is_still_in_the_bill(self):
        with self.with_state() as exporter:
            before = self.wait_for_energy(exporter)
        self.env["FAKE_NVML_PIDS"] = self.write("no-pids", b"")  # all of them have ended
        self.flags = [flag for flag in self.flags if not flag.startswith("--docker-socket")] + ["--docker-socket="]
        with self.with_state() as exporter:
            page = exporter.page()
            for kind, name in gpu_node.OWNERS:
                then = sum(value for _, value in before.values(harness.WORKLOAD_ENERGY, kind=kind, name=name))
                now = sum(value for _, value in page.values(harness.WORKLOAD_ENERGY, kind=kind, name=name))
                self.assertGreaterEqual(now, then, name)
                self.assertGreater(then, 0)

    def test_after_a_boot_counters_start_at_0(self):
        with self.with_state() as exporter:
            self.wait_for_energy(exporter)
        with open(self.state, "rb") as file:
            data = file.read()
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            self.assertIn(file.read().strip(), data)
        # The same file of another boot: a procfs of our own names it.
        procfs = self.path("proc")
        os.makedirs(f"{procfs}/sys/kernel/random")
        with open(f"{procfs}/sys/kernel/random/boot_id", "w") as file:
            file.write("12345678-0000-4000-8000-000000000000\n")
        for name in ("stat", "meminfo"):
            with open(f"/proc/{name}", "rb") as file:
                self.write(f"proc/{name}", file.read())
        with self.with_state(f"--path.procfs={procfs}") as exporter:
            exporter.wait_for_log("the machine was rebooted: counters start at 0; what was learned is kept")
            page = exporter.page()
            self.assertLess(sum(value for _, value in page.values(harness.METER_ENERGY, meter="gpu")), 500)
            self.assertEqual(0, self.gap(page))

    def test_systemds_directory_is_the_default_and_the_file_is_private(self):
        directory = self.path("state-directory")
        os.mkdir(directory)
        with self.exporter(env={"STATE_DIRECTORY": f"{directory}:/another"}) as exporter:
            wait_until("the state", lambda: os.path.exists(f"{directory}/state"))
            self.assertEqual(0o600, stat.S_IMODE(os.stat(f"{directory}/state").st_mode))
            self.assertEqual([({}, 1)], [(labels, int(value)) for labels, value
                                         in exporter.page().values("wattribute_state_up")])
        with self.exporter("--state-file=", env={"STATE_DIRECTORY": directory}) as exporter:
            exporter.wait_for_log("no state file: a restart sets all counters to 0 and forgets what was learned; "
                                  "--state-file keeps them")
            self.assertEqual([], exporter.page().values("wattribute_state_up"))

    def test_a_replay_has_no_state(self):
        before = os.listdir(os.path.dirname(self.state))
        trace = self.path("node/scenario")
        with Exporter(f"--replay={trace}", f"--state-file={self.state}") as exporter:
            exporter.page()
            self.assertNotIn("state file", exporter.log_text())
        done = harness.run("replay", trace)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(before, os.listdir(os.path.dirname(self.state)))


class Trouble(Node):
    def test_a_useless_file_is_set_aside_with_one_line(self):
        with self.with_state() as exporter:
            self.wait_for_energy(exporter)
        with open(self.state, "rb") as file:
            good = file.read()
        damaged = bytearray(good)
        damaged[len(good) // 2] ^= 1
        newer = bytearray(good)
        newer[len(b"wattribute state\n")] += 1
        for what, data in {"damaged": bytes(damaged), "truncated": good[:-1], "newer": bytes(newer), "empty": b"",
                           "lost by a power failure": bytes(5000)}.items():
            with self.subTest(what):
                self.write("state", data)
                with self.with_state() as exporter:
                    lines = [line for line in exporter.log() if "state file" in line.get("msg", "")]
                    self.assertEqual(1, len(lines), lines)
                    self.assertEqual("warn", lines[0]["level"])
                    self.assertLess(self.gap(exporter.page()), 1)
                with open(f"{self.state}.bad", "rb") as file:
                    self.assertEqual(data, file.read())

    def test_what_is_not_a_state_file_stops_the_start_and_stays(self):
        def make_file():
            self.write("state", b"rte: secret\n")
        for make, path, why in ((make_file, self.state, "is a file that wattribute did not write"),
                                (lambda: os.mkdir(self.state), self.state, "is a directory"),
                                (lambda: os.mkdir(self.state), self.state + "/", "that is a directory"),
                                (lambda: os.symlink("/etc/passwd", self.state), self.state, "is a symbolic link"),
                                (lambda: os.mkfifo(self.state), self.state, "is a pipe")):
            with self.subTest(why):
                make()
                before, names = os.lstat(self.state), sorted(os.listdir(os.path.dirname(self.state)))
                done = harness.run("serve", "--listen-address=127.0.0.1:0", f"--state-file={path}")
                self.assertEqual(2, done.returncode)
                self.assertRegex(done.stderr.decode(),
                                 f"^wattribute: cannot use the state file '{path}': .*{why}.* --state-file.*\n$")
                self.assertEqual(before, os.lstat(self.state))
                self.assertEqual(names, sorted(os.listdir(os.path.dirname(self.state))))
                (os.rmdir if stat.S_ISDIR(before.st_mode) else os.unlink)(self.state)

    def test_dev_null_is_no_state_file(self):
        with self.exporter("--state-file=/dev/null") as exporter:
            exporter.wait_for_log("no state file: a restart sets all counters to 0 and forgets what was learned; "
                                  "--state-file keeps them")
            self.assertEqual([], exporter.page().values("wattribute_state_up"))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertFalse(os.path.exists("/dev/null.lock"))

    def test_what_takes_the_place_of_the_file_while_it_runs_stays(self):
        exporter = self.with_state()
        with exporter:
            wait_until("the state", lambda: os.path.exists(self.state))
            with open(f"{self.state}.keys", "wb") as file:
                file.write(b"rte: secret\n")
            os.rename(f"{self.state}.keys", self.state)
            exporter.wait_for_page("trouble", lambda found: not found.sum("wattribute_state_up"))
            for _ in range(3):
                self.assertEqual(0, exporter.page().sum("wattribute_state_up"))
            line = exporter.wait_for_log("the state file cannot be written: after a restart, counters would be lower "
                                         "than already served")
            self.assertEqual("something that wattribute did not write is in its place", line["error"])
            with open(self.state, "rb") as file:
                self.assertEqual(b"rte: secret\n", file.read())
            os.unlink(self.state)
            exporter.wait_for_page("no trouble", lambda found: found.sum("wattribute_state_up"))
            exporter.stop()
            self.assertEqual(1, exporter.log_text().count("level=error"))
            exporter.check_log = lambda: None  # it has that error

    def test_a_second_exporter_with_the_same_file_does_not_start(self):
        with self.with_state():
            done = harness.run("serve", "--listen-address=127.0.0.1:0", f"--state-file={self.state}")
            self.assertEqual(2, done.returncode)
            self.assertIn(b"another process uses the state file", done.stderr)

    def test_a_state_that_cannot_be_written_costs_no_scrape(self):
        directory = self.path("gone")
        os.mkdir(directory)
        exporter = self.exporter(f"--state-file={directory}/state")
        with exporter:
            wait_until("the state", lambda: os.path.exists(f"{directory}/state"))
            os.rename(directory, f"{directory}-away")
            os.mkdir(f"{directory}-away/state.new")
            page = exporter.wait_for_page("trouble", lambda found: not sum(
                value for _, value in found.values("wattribute_state_up")))
            self.assert_balanced(page)
            os.rmdir(f"{directory}-away/state.new")
            exporter.wait_for_page("no trouble", lambda found: sum(
                value for _, value in found.values("wattribute_state_up")))
            self.assertEqual(1, len(exporter.log("the state is written again")))
            exporter.stop()
            self.assertEqual(1, exporter.log_text().count("the state file cannot be written"))
            exporter.check_log = lambda: None  # it has that error

    def test_a_directory_that_cannot_be_used_is_told(self):
        with self.exporter(f"--state-file={self.path('readonly')}/state") as exporter:
            page = exporter.page()
            self.assertEqual(0, page.sum("wattribute_state_up"))
            line, = exporter.log(WITHOUT)
            self.assertIn("No such file or directory", line["error"])
        os.mkdir(self.path("readonly"))
        with self.exporter(f"--state-file={self.path('readonly')}/state") as exporter:
            self.wait_for_energy(exporter)
        os.chmod(self.path("readonly"), 0o555)
        self.flags = [flag for flag in self.flags if not flag.startswith("--docker-socket")]  # it needs DAC_OVERRIDE
        os.unlink(self.path("readonly/state.lock"))
        before = os.stat(self.path("readonly/state"))
        with self.exporter(f"--state-file={self.path('readonly')}/state") as exporter:
            self.assertEqual(0, exporter.page().sum("wattribute_state_up"))
            line, = exporter.log(WITHOUT)
            self.assertIn("state.lock', which locks the state file: Permission denied", line["error"])
            self.assertEqual([], exporter.log("continuing the books of the previous run"))
        self.assertEqual(before, os.stat(self.path("readonly/state")))


if __name__ == "__main__":
    harness.main()
