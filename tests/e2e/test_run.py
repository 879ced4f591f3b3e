"""`wattribute run`: the joules of a command are those of its CPU seconds, whoever its processes are, and the command
sees nothing of it."""
import contextlib
import glob
import json
import os
import pty
import select
import signal
import subprocess
import time

import harness
import terminal_picture
from counting_node import JOULES_PER_CPU_SECOND, CountingNode
from gpu_node import FAKE, UUIDS, write_pids
from harness import Exporter, SOURCE_ROOT, TestCase, Trace, binary, is_running, process_status, wait_until
from servers import cgroups, require

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# Uses so many CPU seconds, measured by itself, in all its threads.
SPIN = """
import sys, time
while time.process_time() < float(sys.argv[1]):
    pass
"""
# In five children that nobody waits for, one after the other.
UNWAITED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(5):
    child = os.fork()
    while child == 0:
        if time.process_time() > 0.3:
            os._exit(0)
    while os.path.exists(f"/proc/{child}"):
        time.sleep(0.01)
"""
# Works a little, and then is only there.
REST = """
import time
while time.process_time() < 0.1:
    pass
time.sleep(3)
"""
# What a process is born with.
BORN_WITH = """
import json, os, resource, signal
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
masks = {name: status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Seccomp", "CapEff", "CapBnd")}
limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
files = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
print(json.dumps([masks, limits, files, dict(os.environ), os.umask(0), os.getcwd(), os.nice(0), os.sched_getscheduler(0)],
                 sort_keys=True))
"""
# Says when it is ready, then which signals came.
CATCH = """
import os, signal, sys, time
count = 0
def caught(number, frame):
    global count
    count += 1
    os.write(1, b"caught %d\\n" % number)
for name in sys.argv[1].split(","):
    signal.signal(getattr(signal, name), caught)
os.write(1, b"ready %d\\n" % os.getpid())
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end and count < 2:
    time.sleep(0.01)
sys.exit(40 + count)
"""


def read(path):
    with open(path) as file:
        return file.read()


def own_cgroups():
    return [path for root in cgroups.hierarchies() for path in glob.glob(f"{root}/**/wattribute-run-*", recursive=True)]


def python(program, *arguments):
    return ["/usr/bin/python3", "-S", "-c", program, *map(str, arguments)]


class Run(TestCase):
    def setUp(self):
        super().setUp()
        os.chmod(self.directory, 0o755)
        os.mkdir(self.path("home"))
        os.chmod(self.path("home"), 0o700)
        self.env = {"XDG_STATE_HOME": self.path("home")}

    def node(self):
        node = CountingNode(self.path(f"node{len(os.listdir(self.directory))}"))
        self.enter(node)
        return node

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def run_it(self, *arguments, wrapper=(), env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*wrapper, binary(), "run", *arguments], env={**os.environ, **self.env, **(env or {})},
                              capture_output=True, timeout=60, **options)

    def start(self, *arguments, **options):
        process = subprocess.Popen([binary(), "run", *arguments], env={**os.environ, **self.env}, **options)

        def end():
            if process.poll() is None:
                process.kill()
                process.wait()
        self.addCleanup(end)
        return process

    def report(self, *arguments, **options):
        """Of a run that succeeds."""
        done = self.run_it("--json", *arguments, **options)
        self.assertEqual(0, done.returncode, done.stderr)
        report = json.loads(done.stderr)
        for run in report["runs"]:
            self.assert_conserved(run)
        return report

    def gpu(self):
        """A board at 300 W that whoever writes his pid uses: the scenario, and the file of pids."""
        trace = Trace()
        trace.gpu(0, uuid=UUIDS[0].encode())
        trace.work(0, [100], seconds=20, watts=300)
        trace.add(20, "X", 0, b"loop")
        return (self.write("scenario", trace.body().replace(b" X 0 loop", b" X * loop")), write_pids(self.path("pids"), {}))

    def gpu_user(self, pids):
        return "sh", "-c", f"echo 100 $$ > {pids}; sleep 4; : > {pids}"

    def assert_conserved(self, run):
        for meter in run["meters"]:
            self.assertLessEqual(meter["joules"], meter["counted_joules"])
            self.assertLessEqual(meter["joules"] + meter["idle_joules"], meter["counted_joules"] + 1e-6)
        self.assertAlmostEqual(run["joules"], sum(meter["joules"] for meter in run["meters"]), 3)

    def assert_near(self, expected, value, part=0.08):
        self.assertLess(abs(value - expected), part * expected, f"{value} instead of {expected}")


class Joules(Run):
    def test_a_cpu_second_has_the_joules_that_the_processor_counts_for_it(self):
        report = self.report(*self.node().flags, "--", *python(SPIN, 1))
        run = report["runs"][0]
        self.assert_near(1, run["cpu_seconds"])
        self.assert_near(run["cpu_seconds"] * JOULES_PER_CPU_SECOND, run["cpu_joules"])
        self.assert_near(60 * run["wall_seconds"], run["meters"][0]["counted_joules"])
        self.assertIs(True, report["own_cgroup"])

    def test_children_that_outlive_their_parent_count(self):
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o777)
        for wrapper in ((), AS_NOBODY):
            with self.subTest(wrapper=wrapper):
                mark = self.path(f"shared/{len(wrapper)}")
                program = f"( (/usr/bin/python3 -S -c '{SPIN}' 0.5; echo > {mark}) & ); while [ ! -e {mark} ]; do sleep 0.1; done"
                report = self.report(*self.node().flags, "--", "sh", "-c", program, wrapper=wrapper)
                run = report["runs"][0]
                self.assertGreater(run["cpu_seconds"], 0.5)
                self.assert_near(run["cpu_seconds"] * JOULES_PER_CPU_SECOND, run["cpu_joules"], 0.15)
                self.assertEqual(not wrapper, report.get("own_cgroup", False))
                self.assertEqual(bool(wrapper), run["meters"][0].get("estimated", False))
                spinner = max(run["processes"], key=lambda process: process["cpu_seconds"])
                self.assertIn("python", spinner["name"])
                self.assertGreater(spinner["cpu_seconds"], 0.2)

    def test_a_process_that_goes_on_after_the_command_is_told_and_left_alone(self):
        done = self.run_it(*self.node().flags, "--json", "--", "sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!")
        sleeper = int(done.stdout)
        self.addCleanup(os.kill, sleeper, signal.SIGKILL)
        self.assertIn("1 process of the command went on", done.stderr.decode())
        self.assertTrue(is_running(sleeper))
        self.assertEqual([], [path for path in own_cgroups() if str(sleeper) in read(f"{path}/cgroup.procs")])

    def test_children_that_nobody_waits_for_count_as_far_as_they_were_seen(self):
        run = self.report(*self.node().flags, "--", *python(UNWAITED), wrapper=AS_NOBODY)["runs"][0]
        seen = sum(process["cpu_seconds"] for process in run["processes"])
        self.assertGreater(run["cpu_seconds"], 0.3)  # not the parent's alone
        self.assertLess(seen, run["cpu_seconds"] + 0.05)
        self.assertLess(abs(run["joules"] - 5 * 0.3 * JOULES_PER_CPU_SECOND), run["uncertainty_joules"])

    def test_a_user_who_may_not_read_the_meter_is_told_how_to(self):
        node = self.node()
        os.chmod(f"{node.path}/sys/class/powercap/intel-rapl:0/energy_uj", 0o400)
        done = self.run_it(*node.flags, "--", "sh", "-c", "exit 5", wrapper=AS_NOBODY)
        text = done.stderr.decode()
        self.assertEqual(5, done.returncode)
        self.assertIn("No energy was measured.", text)
        self.assertIn("Permission denied", text)
        self.assertIn("-> run as root; or with CAP_PERFMON", text)

    def test_without_a_cgroup_of_its_own_it_says_so(self):
        done = self.run_it(*self.node().flags, "--", "true", wrapper=AS_NOBODY)
        self.assertIn("cgroup: estimated by the CPU time of the command's processes", done.stderr.decode())

    def test_repeated_runs_have_mean_and_spread_and_end_with_the_first_that_fails(self):
        node = self.node()
        report = self.report(*node.flags, "--repeat=3", "--", *python(SPIN, 0.2))
        energies = [run["joules"] for run in report["runs"]]
        self.assertEqual(3, len(energies))
        summary = report["summary"]["joules"]
        self.assertAlmostEqual(sum(energies) / 3, summary["mean"], 3)
        self.assertAlmostEqual(min(energies), summary["min"], 3)
        self.assertGreater(summary["sd"], 0)
        counter = self.path("count")
        done = self.run_it(*node.flags, "--json", "--repeat=5", "--", "sh", "-c", f"echo >> {counter}; [ $(wc -l < {counter}) -lt 2 ]")
        self.assertEqual(1, done.returncode)
        self.assertEqual(2, len(json.loads(done.stderr)["runs"]))
        self.assertEqual(2, read(counter).count("\n"))

    def test_two_commands_differ_if_one_does_twice_the_work(self):
        node = self.node()
        for name, seconds in (("a", 0.15), ("b", 0.3)):
            self.report(*node.flags, "--repeat=4", f"--output={self.path(name)}", "--", *python(SPIN, seconds))
        done = harness.run("diff", self.path("a"), self.path("b"))
        self.assertIn("They differ: B has", done.stdout.decode())
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        one = self.path("one")
        self.report(*node.flags, f"--output={one}", "--", "true")
        self.assertIn("Too few runs", harness.run("diff", one, self.path("b")).stdout.decode())
        self.assertTrue(json.loads(harness.run("diff", "--json", self.path("a"), self.path("b")).stdout)
                        ["quantities"]["joules"]["differ"])
        self.assertEqual(1, harness.run("diff", one, self.write("bad", b"{}")).returncode)

    def test_the_next_run_of_the_same_command_is_compared_with_the_last(self):
        flags = self.node().flags
        self.assertNotIn(b"Since ", self.run_it(*flags, "--", *python(SPIN, 0.1)).stderr)
        self.assertRegex(self.run_it(*flags, "--", *python(SPIN, 0.1)).stderr.decode(), r"Since 20.* \(1 run\): energy [+-]")
        self.assertNotIn(b"Since ", self.run_it(*flags, "--", *python(SPIN, 0.11)).stderr)
        self.assertNotIn(b"Since ", self.run_it(*flags, "--no-remember", "--", "true").stderr)
        self.assertNotIn(b"Since ", self.run_it(*flags, "--", "true").stderr)
        self.assertNotIn(b"Since ", self.run_it(*flags, "--", "false").stderr)  # a failure is not remembered
        kept = glob.glob(f"{self.path('home')}/wattribute/run/*")
        self.assertEqual(3, len(kept))
        self.assertEqual({0o600}, {os.stat(path).st_mode & 0o777 for path in kept})


class Daemon(Run):
    """What this process may not read, it asks for."""

    def test_the_joules_of_a_meter_that_only_the_daemon_may_read(self):
        node = self.node()
        os.chmod(f"{node.path}/sys/class/powercap/intel-rapl:0/energy_uj", 0o400)
        with Exporter(*node.flags, "--no-process-events") as exporter:
            exporter.wait_for_page("its books are open", lambda page: page.values(harness.METER_ENERGY))
            report = self.report(*node.flags, f"--daemon=http://{exporter.address}", "--", *python(SPIN, 1), wrapper=AS_NOBODY)
            run = report["runs"][0]
            self.assertEqual(f"http://{exporter.address}", report["daemon"])
            self.assert_near(1, run["cpu_seconds"])
            self.assertLess(abs(run["cpu_joules"] - JOULES_PER_CPU_SECOND), run["uncertainty_joules"] + 0.1 * run["cpu_joules"])
            self.assertNotIn("rapl", [finding["what"] for finding in report["findings"]])
            self.assertNotIn("partial", run["meters"][0])

    def test_what_a_daemon_that_ended_did_not_count_is_told(self):
        node = self.node()
        os.chmod(f"{node.path}/sys/class/powercap/intel-rapl:0/energy_uj", 0o400)
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o777)
        mark, report = self.path("shared/mark"), self.path("shared/report")
        spin = f"/usr/bin/python3 -S -c '{SPIN}' 1"
        with Exporter(*node.flags, "--no-process-events") as exporter:
            exporter.wait_for_page("its books are open", lambda page: page.values(harness.METER_ENERGY))
            run = subprocess.Popen([*AS_NOBODY, binary(), "run", *node.flags, f"--daemon=http://{exporter.address}", "--no-remember",
                                    f"--output={report}", "--", "sh", "-c", f"{spin}; echo > {mark}; {spin}"], stderr=subprocess.DEVNULL)
            wait_until("half of it is done", lambda: os.path.exists(mark))
            exporter.process.kill()
            self.assertEqual(0, run.wait(60))
            exporter.process.wait()
        report = json.loads(read(report))
        run = report["runs"][0]
        self.assertIn("daemon", [finding["what"] for finding in report["findings"]])
        self.assertIs(True, run["meters"][0]["partial"])
        self.assertLess(abs(run["joules"] - run["cpu_seconds"] * JOULES_PER_CPU_SECOND), run["uncertainty_joules"])
        self.assertGreater(run["uncertainty_joules"], 0.5 * JOULES_PER_CPU_SECOND)

    def test_the_joules_of_a_gpu_are_those_of_the_daemons_books(self):
        scenario, pids = self.gpu()
        env = {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario, "FAKE_NVML_PIDS": pids}
        node = self.node()
        with Exporter(*node.flags[1:], env=env) as exporter:  # with the processes of this machine
            report = self.report(*node.flags, f"--daemon=http://{exporter.address}", "--", *self.gpu_user(pids))
        run = report["runs"][0]
        self.assert_near(300 * run["wall_seconds"], run["gpu_joules"], 0.3)
        self.assertEqual(["gpu", "package"], sorted(meter["meter"] for meter in run["meters"]))
        self.assertEqual("sh", max(run["processes"], key=lambda process: process["gpu_joules"])["name"])
        self.assertNotIn("gpu 0", [finding["what"] for finding in report["findings"]])  # nothing is pending

    def test_a_daemon_that_plays_a_trace_is_not_believed(self):
        with Exporter(f"--replay={harness.H200_TRACE}") as exporter:
            done = self.run_it(*self.node().flags, f"--daemon=http://{exporter.address}", "--", "true")
        self.assertEqual(125, done.returncode)
        self.assertIn(f"http://{exporter.address}: it plays a trace".encode(), done.stderr)


class Gpus(Run):
    def test_the_joules_of_a_gpu_are_those_of_its_process_in_the_command(self):
        scenario, pids = self.gpu()
        report = self.report(*self.node().flags, "--", *self.gpu_user(pids), env={
            "LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": scenario, "FAKE_NVML_PIDS": pids})
        run = report["runs"][0]
        self.assert_near(300 * run["wall_seconds"], run["gpu_joules"], 0.2)
        first = max(run["processes"], key=lambda process: process["gpu_joules"])
        self.assertEqual("sh", first["name"])
        self.assert_near(run["gpu_joules"], first["gpu_joules"], 0.01)


class Picture(Run):
    def test_the_picture_of_the_manual_is_of_two_programs(self):
        """The words; with UPDATE_PICTURES=1 it is drawn anew, from what they print."""
        picture = os.path.join(SOURCE_ROOT, "docs/pictures/run.svg")
        if os.environ.get("UPDATE_PICTURES"):
            flags = [*self.node().flags, "--emissions.zone=FR", "--cost.price=0.21", "--cost.currency=EUR"]
            for name, program in (("sum.py", "print(sum(i * i for i in range(30_000_000)))"),
                                  ("formula.py", "n = 30_000_000 - 1; print(n * (n + 1) * (2 * n + 1) // 6)")):
                self.write(name, program.encode())
            shown = ""
            for command in ("run -- python3 sum.py", "run --repeat=5 --output=a.json -- python3 sum.py",
                            "run --repeat=5 --output=b.json -- python3 formula.py", "diff a.json b.json"):
                verb, _, rest = command.partition(" ")
                done = harness.run(verb, *(flags if verb == "run" else []), *rest.split(), env={**self.env, "PATH": "/usr/bin:/bin"},
                                   wrapper=["env", "-C", self.directory], timeout=60)
                self.assertEqual(0, done.returncode, done.stderr)
                if "b.json --" not in command and "a.json --" not in command:
                    shown += f"$ wattribute {command}\n{done.stdout.decode()}{done.stderr.decode()}\n"
                else:
                    shown += f"$ wattribute {command} 2>/dev/null\n{done.stdout.decode()}\n"
            with open(picture, "w") as file:
                file.write(terminal_picture.svg(shown, 126, "wattribute run and diff"))
        for text in ("<svg", "CPU package 0", "They differ: B has", "g CO2e"):
            self.assertIn(text, read(picture))


class Unseen(Run):
    """The command is as it would be alone."""

    def setUp(self):
        super().setUp()
        self.flags = self.node().flags

    def test_its_exit_status_is_ours(self):
        for status, command in ((0, ["true"]), (3, ["sh", "-c", "exit 3"]), (255, ["sh", "-c", "exit 255"]),
                                (128 + signal.SIGKILL, ["sh", "-c", "kill -9 $$"]),
                                (128 + signal.SIGTERM, ["sh", "-c", "kill -TERM $$"]),
                                (127, ["/nonexistent"]), (127, ["no-such-program"]), (127, [""]), (126, ["/etc/passwd"]), (126, ["/"])):
            with self.subTest(command=command):
                self.assertEqual(status, self.run_it(*self.flags, "--", *command).returncode)

    def test_our_own_failure_is_125_and_runs_nothing(self):
        mark = self.path("mark")
        for flag in (f"--output={self.path('no/such/file')}", "--daemon=http://127.0.0.1:1", "--daemon=nonsense"):
            with self.subTest(flag=flag):
                done = self.run_it(*self.flags, flag, "--", "touch", mark)
                self.assertEqual(125, done.returncode, done.stderr)
                self.assertFalse(os.path.exists(mark))

    def test_a_report_is_replaced_by_another_report_alone(self):
        kept = self.write("kept.json", b"of yesterday, and longer" * 10000)
        self.assertEqual(127, self.run_it(*self.flags, f"--output={kept}", "--", "/nonexistent").returncode)
        self.assertIn("of yesterday", read(kept))
        self.run_it(*self.flags, f"--output={kept}", "--", "true")
        self.assertEqual(1, json.loads(read(kept))["run_report"])

    def test_flags_after_its_name_are_the_commands(self):
        done = self.run_it(*self.flags, "echo", "--json", "--", "-n")
        self.assertEqual(b"--json -- -n\n", done.stdout)
        done = self.run_it(*self.flags, "--", "echo", "--json", "--", "-n")
        self.assertEqual(b"--json -- -n\n", done.stdout)
        self.assertEqual(2, self.run_it(*self.flags).returncode)

    def test_its_input_and_output_pass_unchanged(self):
        data = os.urandom(1 << 20)
        done = subprocess.run([binary(), "run", *self.flags, "--", "cat"], input=data, capture_output=True, timeout=60)
        self.assertEqual(data, done.stdout)
        self.assertEqual(0, done.returncode)

    def test_it_is_born_with_what_it_would_have_had_without(self):
        command = python(BORN_WITH)
        for wrapper in ((), ["env", "--ignore-signal=USR1,HUP", "--block-signal=USR2,CHLD"],
                        ["prlimit", "--nofile=300:4096", "--fsize=1000000000"], ["sh", "-c", 'umask 013; exec 7</dev/null; exec "$@"', "sh"],
                        AS_NOBODY, ["setsid", "--wait"]):
            with self.subTest(wrapper=wrapper):
                alone = subprocess.run([*wrapper, *command], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                                       env={**os.environ, **self.env})
                beside = self.run_it(*self.flags, "--output=/dev/null", "--", *command, wrapper=wrapper)

                def comparable(text):
                    masks, limits, files, *others = json.loads(text)
                    return masks, limits, sorted(files), others
                self.assertEqual(comparable(alone.stdout), comparable(beside.stdout))

    def caught(self, process):
        return process.stdout.readline().decode().split()

    def test_signals_that_are_sent_to_us_reach_it(self):
        names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
        process = self.start(*self.flags, "--", *python(CATCH, ",".join(names), 60), stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        self.assertEqual("ready", self.caught(process)[0])
        for name in ("SIGTERM", "SIGINT"):
            process.send_signal(getattr(signal, name))
            self.assertEqual(["caught", str(int(getattr(signal, name)))], self.caught(process))
        self.assertEqual(42, process.wait(20))
        process.stdout.close()
        for name in ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
            process = self.start(*self.flags, "--", *python(CATCH, ",".join(names), 60), stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
            self.assertEqual("ready", self.caught(process)[0])
            process.send_signal(getattr(signal, name))
            self.assertEqual(["caught", str(int(getattr(signal, name)))], self.caught(process))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(42, process.wait(20))
            process.stdout.close()

    def test_one_that_ends_by_a_signal_that_we_passed_on_is_reported(self):
        process = self.start(*self.flags, "--", "sleep", "60", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until("the command runs", lambda: ["sleep", "60"] in map(harness.arguments_of, harness.children(process.pid)))
        process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=30)
        self.assertEqual(128 + signal.SIGTERM, process.returncode)
        self.assertIn(b"wall time", text)

    def test_two_with_one_process_number_have_a_cgroup_each(self):
        """As in two containers that share a cgroup."""
        require.root()
        reports = [self.path(f"{seconds}.json") for seconds in (0.5, 1)]
        runs = [subprocess.Popen(["unshare", "-pf", "--mount-proc", binary(), "run", *self.flags, "--no-remember", f"--output={path}",
                                  "--", *python(SPIN, os.path.basename(path)[:-5])], stderr=subprocess.DEVNULL, env={**os.environ, **self.env})
                for path in reports]
        self.assertEqual([0, 0], [run.wait(60) for run in runs])
        for path, seconds in zip(reports, (0.5, 1)):
            report = json.loads(read(path))
            self.assertTrue(report["own_cgroup"])
            self.assert_near(seconds, report["runs"][0]["cpu_seconds"], 0.3)

    def test_a_run_in_a_run_leaves_nothing_if_it_is_killed(self):
        require.root()
        mark = self.path("mark")
        inner = f"{binary()} run {' '.join(self.flags)} -- sh -c 'cat /proc/self/cgroup > {mark}.cgroup; echo $$ > {mark}; exec sleep 60'"
        kill = f"while [ ! -s {mark} ]; do sleep 0.05; done; kill -9 $!; wait $!; kill $(cat {mark})"
        self.assertEqual(0, self.run_it(*self.flags, "--", "sh", "-c", f"exec 2>/dev/null; {inner} & {kill}").returncode)
        inside = [line for line in read(f"{mark}.cgroup").split() if line.count("/wattribute-run-") == 2]
        self.assertTrue(inside)
        for path in own_cgroups():
            self.assertFalse(any(line.endswith(path[path.index("/wattribute-run-"):]) for line in inside), path)

    def test_what_a_killed_run_left_goes_with_the_next(self):
        require.root()
        process = self.start(*self.flags, "--", "sleep", "60", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mine = wait_until("it has a cgroup", lambda: [path for path in own_cgroups() if f"-{process.pid}-" in path])
        sleeper = wait_until("the command runs", lambda: [pid for pid in harness.children(process.pid) if any(
            str(pid) in read(f"{path}/cgroup.procs").split() for path in mine)])[0]
        process.kill()
        process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(sleeper, signal.SIGKILL)
        wait_until("the command is gone", lambda: not is_running(sleeper))
        self.assertTrue(all(os.path.isdir(path) for path in mine))
        wait_until("the next run removes it", lambda: self.run_it(*self.flags, "--", "true").returncode == 0 and
                   not any(os.path.isdir(path) for path in mine))


class Terminal(Run):
    """With a controlling terminal."""

    def setUp(self):
        super().setUp()
        self.flags = self.node().flags

    def open(self, *command, stdout_to=None, flags=()):
        """`run` as the foreground job of a shell that is this test: its pid, and the terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(self.env)
            if stdout_to:
                os.dup2(os.open(stdout_to, os.O_WRONLY | os.O_CREAT, 0o644), 1)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
            child = os.fork()  # the session's leader stays, as a shell does
            if child == 0:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGUSR2})
                os.setpgid(0, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, os.getpgrp())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.execv(binary(), [binary(), "run", *self.flags, *flags, "--", *command])
            while True:
                _, status = os.waitpid(child, os.WUNTRACED)
                if not os.WIFSTOPPED(status):
                    os._exit(os.waitstatus_to_exitcode(status) & 255)
                os.write(2, b"stopped\n")
                if signal.sigwait({signal.SIGUSR1, signal.SIGUSR2}) == signal.SIGUSR1:
                    os.killpg(child, signal.SIGCONT)
                else:
                    os.kill(child, signal.SIGCONT)
        self.addCleanup(os.close, terminal)
        self.leader = pid
        return terminal

    def read_until(self, terminal, text, seconds=40):
        seen, end = b"", time.monotonic() + seconds
        while text not in seen:
            if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {text} in {seen}")
            try:
                part = os.read(terminal, 65536)
            except OSError:  # everybody has closed it
                part = b""
            if not part:
                raise AssertionError(f"no {text} in {seen}")
            seen += part
        return seen

    def wait(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.leader, 0)[1])

    def test_ctrl_c_reaches_it_once(self):
        terminal = self.open(*python(CATCH, "SIGINT", 2))
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        seen = self.read_until(terminal, b"wall time")
        self.assertEqual(1, seen.count(b"caught 2"))
        self.assertEqual(41, self.wait())

    def test_ctrl_z_stops_both_and_the_shell_continues_both(self):
        terminal = self.open(*python(CATCH, "SIGUSR2", 3))
        command = int(self.read_until(terminal, b"\n").split()[-1])
        os.write(terminal, b"\x1a")
        self.read_until(terminal, b"stopped")
        self.assertTrue(process_status(command)["State"].startswith("T"))
        os.kill(self.leader, signal.SIGUSR1)
        wait_until("it runs again", lambda: not process_status(command)["State"].startswith("T"))
        self.read_until(terminal, b"wall time")
        self.assertEqual(40, self.wait())

    def test_ctrl_z_in_a_series_stops_no_later_run_for_ever(self):
        """`kill -CONT` of run alone, as with `kill -CONT $(jobs -p)`."""
        terminal = self.open(*python(CATCH, "SIGUSR2", 0.5), flags=("--repeat=2",))
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x1a")
        self.read_until(terminal, b"stopped")
        os.kill(self.leader, signal.SIGUSR2)
        self.read_until(terminal, b"Run 1 of 2 ended with status 40; no more were started.")
        self.assertEqual(40, self.wait())

    def test_ctrl_z_in_a_series_lets_the_next_run_begin(self):
        """`kill -CONT` of run alone, as with `kill -CONT $(jobs -p)`."""
        terminal = self.open(*python("import time; print('ready', flush=True); time.sleep(0.5)"), flags=("--repeat=2",))
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x1a")
        self.read_until(terminal, b"stopped")
        os.kill(self.leader, signal.SIGUSR2)
        self.read_until(terminal, b"wall time")
        self.assertEqual(0, self.wait())

    def test_ctrl_c_ends_a_series_whatever_the_command_makes_of_it(self):
        terminal = self.open("sh", "-c", "trap 'exit 0' INT; echo ready; while :; do sleep 0.1; done", flags=("--repeat=3",))
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"Run 1 of 3 was interrupted; no more were started.")
        self.assertEqual(128 + signal.SIGINT, self.wait())

    def test_the_line_of_a_long_run_is_shown_where_the_output_is_not_and_is_gone_at_the_end(self):
        terminal = self.open(*python(REST), stdout_to=self.path("out"))
        seen = self.read_until(terminal, b"wall time")
        self.assertRegex(seen, rb"\r\x1b\[Kwattribute: \d+ s, [\d.]+ J, [\d.]+ W\r")
        self.assertIn(b"\r\x1b[K\r\n  Energy of", seen)
        self.assertEqual(0, self.wait())
        self.assertEqual("", read(self.path("out")))

    def test_no_line_is_shown_where_the_output_is(self):
        terminal = self.open(*python(REST))
        self.assertNotIn(b"wattribute: ", self.read_until(terminal, b"wall time"))
        self.assertEqual(0, self.wait())


if __name__ == "__main__":
    harness.main()
