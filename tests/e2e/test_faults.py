"""Any call of libc may fail, once or for a while: no crash, no hang, and the books balance.

Each case is a program, a kind of call, the number of the call and an error (tests/faults/calls.h). 300 are drawn;
WATTRIBUTE_FAULTS=1000 draws more, and WATTRIBUTE_FAULTS=all takes every call up to the 2,000th of its kind, of the
programs that WATTRIBUTE_FAULTS_PROGRAMS lists or all of them. WATTRIBUTE_FAULTS_SEED repeats a draw, and
WATTRIBUTE_FAULTS_CASE='PROGRAM KIND NUMBER ERROR MANNER' one case.
"""
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
from typing import NamedTuple

import exposition
import harness
from books import Books
from faults import FOREVER, Clock, Ended, Faults
from harness import H200_TRACE, SOURCE_ROOT, TestCase, wait_until
from simulated_node import SimulatedExporter, SimulatedNode

NUMBER_MAX = 2000
DRAWN = os.environ.get("WATTRIBUTE_FAULTS", "300")
CASE = os.environ.get("WATTRIBUTE_FAULTS_CASE")
SEED = int(os.environ.get("WATTRIBUTE_FAULTS_SEED", random.randrange(10**9)))
DAY_TRACE = os.path.join(SOURCE_ROOT, "tests/recordings/days/h200-day-check.trace.gz")
EXITS = (0, 1, 2, 3)  # cli.h; the last is of `check` alone
# After these one tries again, for as long as it takes; but EAGAIN is also a limit that was reached.
TRANSIENT = ("EINTR", "EAGAIN", "short")
LIMITED = ("credentials", "mmap", "spawn", "thread")
NO_ANSWER = (OSError, http.client.HTTPException)


class Case(NamedTuple):
    program: str
    kind: str
    number: int
    error: str
    manner: str  # once, or on: this call and all after it

    def __str__(self):
        return " ".join(map(str, self))

    def count(self):
        return 1 if self.manner == "once" else FOREVER


def documents(text):
    """Of the JSON that `replay` prints, one for each trace."""
    decoder, text = json.JSONDecoder(), text.decode().strip()
    while text:
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:].strip()


def energies(test, text):
    """Of each meter of each ledger; its owners must have it all."""
    found = []
    for ledger in documents(text):
        for meter in ledger["meters"]:
            ident = meter["meter"], meter["meter_id"]
            owners = [row for row in ledger.get("workloads", ()) if (row["meter"], row["meter_id"]) == ident] or \
                     [row for row in ledger["processes"] if row["gpu"] == meter.get("gpu")]
            owned = sum(row["energy_uj"] for row in owners)
            unowned = sum(meter.get(f"{owner}_uj", 0) for owner in ("idle", "system", "unattributed", "gap"))
            test.assertEqual(meter["energy_uj"], owned + unowned, ident)
            found.append((ident, meter["energy_uj"]))
    return found


class Command:
    """A verb that ends by itself."""

    status = 0

    def __init__(self, *arguments):
        self.arguments = arguments

    def run(self, faults):
        return harness.run(*self.arguments, env=faults.env, timeout=60)

    def survey(self, test, faults):
        done = self.run(faults)
        test.assertEqual((self.status, b""), (done.returncode, done.stderr))
        self.expected = done.stdout

    def check(self, test, faults, case):
        done = self.run(faults)
        test.assertIn(done.returncode, EXITS, done.stderr)
        test.assertNotIn(b"Sanitizer", done.stderr)
        if done.returncode == self.status:
            self.check_output(test, done.stdout)
        elif case.kind != "write":  # it may be the message that is not written
            self.check_failure(test, done)

    def check_failure(self, test, done):
        test.assertRegex(done.stderr, b"(?m)^wattribute: .+$")


class Replay(Command):
    def check_output(self, test, text):
        test.assertEqual(energies(test, self.expected), energies(test, text))


class Check(Command):
    """On a simulated node, with everything there is to find."""

    status = 3  # the node has no pid 1

    def __init__(self, node):
        super().__init__("check", f"--path.procfs={node.path}/proc", f"--path.sysfs={node.path}/sys",
                         "--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=")
        self.node = node

    def run(self, faults):
        return harness.run(*self.arguments, env={**faults.env, **self.node.env}, timeout=60)

    def check_output(self, test, text):
        test.assertRegex(text, b"(?m)^[a-z]+ .+\n")

    def check_failure(self, test, done):
        """To find nothing is a failure, too."""
        if not done.stdout:
            super().check_failure(test, done)


class Record(Command):
    """Twenty seconds of a simulated node. What was written before a fault can be replayed."""

    def __init__(self, node):
        super().__init__("record", "--duration=20s", f"--path.procfs={node.path}/proc",
                         f"--path.sysfs={node.path}/sys", "--no-collector.ipmi", "--cri-socket=", "--docker-socket=",
                         "--podman-socket=", "--pod-resources-socket=", "-o", f"{node.path}/trace.gz")
        self.node = node

    def run(self, faults):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.node.path}/trace.gz")
        clock = Clock()
        process = subprocess.Popen([harness.binary(), *self.arguments], stdin=subprocess.DEVNULL, text=False,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=clock.pass_fds,
                                   env={**os.environ, **faults.env, **self.node.env, **clock.env})
        clock.attach()
        try:
            with contextlib.suppress(Ended):
                for _ in range(40):
                    self.node.pass_time(1)
                    clock.advance(1)
            output = process.communicate(timeout=10)
        finally:
            process.kill()
            clock.close()
        return subprocess.CompletedProcess(process.args, process.returncode, *output)

    def survey(self, test, faults):
        done = self.run(faults)
        test.assertEqual(0, done.returncode, done)
        test.assertEqual({"gpu", "package", "dram"}, {meter for (meter, _), _ in self.check_output(test, done.stdout)})

    def check_output(self, test, text):
        """A meter may be missing, but the books of the others balance."""
        done = harness.run("replay", f"{self.node.path}/trace.gz")
        test.assertEqual(0, done.returncode, done)
        return energies(test, done.stdout)


class Service:
    """`serve` for some minutes of its own time: with the fault, and then without, when all must be well again."""

    TURN_S = 5
    ASK_S = 1  # of real time; a server that is not there does not answer

    def __init__(self, node, *flags):
        self.node, self.flags = node, flags  # flags: of one that does not read this node

    def exporter(self, test, faults):
        exporter = SimulatedExporter(self.node, *self.flags, env=faults.env)
        # It has every reason to complain.
        exporter.check_log = lambda: test.assertNotIn("Sanitizer", exporter.log_text())
        return exporter

    def survey(self, test, faults):
        self.check(test, faults, None)

    def check(self, test, faults, case):
        books = Books(test, dict if self.flags else self.node.joules)
        exporter = self.exporter(test, faults)
        try:
            with exporter:
                self.live(exporter, books)
                faults.lift()
                exporter.clock.run_until("it has healed", lambda: self.read(exporter, books), 30)
        except Ended:  # it may refuse to start, if it says why
            test.assertNotIn("Sanitizer", exporter.text)
            test.assertNotIn("msg=listening", exporter.text)
            test.assertIn(exporter.process.wait(10), (1, 2), exporter.text)
            if case.kind != "write":
                test.assertRegex(exporter.text, "(?m)^wattribute: .+")

    def live(self, exporter, books):
        """Containers come and go. A page may be missing, but none may be wrong."""
        for _ in range(2):
            self.node.add_container()
            exporter.pass_time(self.TURN_S)
            self.node.remove_container()
            self.read(exporter, books)

    def read(self, exporter, books):
        exporter.pass_time(self.TURN_S)
        with contextlib.suppress(*NO_ANSWER):
            response = exporter.ask("/metrics", "GET", self.ASK_S)
            return response.status == 200 and books.check(exposition.read(response.body, False))


class Faulty(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = cls.enterClassContext(SimulatedNode())
        for _ in range(3):
            cls.node.add_container()
        cls.programs = {
            "replay": (Replay("replay", H200_TRACE), None),
            "replay-days": (Replay("replay", DAY_TRACE, DAY_TRACE), None),
            "check": (Check(cls.node), None),
            "record": (Record(cls.node), None),
            "collector": (Service(cls.node), None),
            "server": (Service(cls.node), "server"),
            "collector-of-replay": (Service(cls.node, f"--replay={H200_TRACE}"), None),
        }

    def survey(self, name):
        """What the program calls how often, and what can go wrong with it."""
        program, role = self.programs[name]
        with Faults(self.path("page"), role) as faults:
            program.survey(self, faults)
            calls = {kind: min(count, NUMBER_MAX) for kind, count in faults.calls().items() if count}
            print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in calls.items()))
            return calls, faults.errors()

    @staticmethod
    def manners(kind, error):
        return ("once",) if error in TRANSIENT and kind not in LIMITED else ("once", "on")

    @staticmethod
    def case(name, kind, number, errors, dice):
        error = dice.choice(errors)
        return Case(name, kind, number, error, dice.choice(Faulty.manners(kind, error)))

    def every(self, surveys, dice):
        for name, (calls, errors) in surveys.items():
            for kind, count in calls.items():
                for number in range(1, count + 1):
                    yield self.case(name, kind, number, errors[kind], dice)

    def draw(self, surveys, dice, count):
        for _ in range(count):
            name = dice.choice(list(surveys))
            calls, errors = surveys[name]
            kind = dice.choice(list(calls))
            yield self.case(name, kind, dice.randint(1, calls[kind]), errors[kind], dice)

    def run_cases(self, cases):
        """How many, and in how many a call has failed: threads do not call the same number of times in each run."""
        ran = failed = 0
        for case in cases:
            program, role = self.programs[case.program]
            with self.subTest(case=f"WATTRIBUTE_FAULTS_CASE='{case}'"), Faults(self.path("page"), role) as faults:
                ran += 1
                faults.fail(case.kind, case.number, case.error, case.count())
                program.check(self, faults, case)
                failed += faults.failed > 0
        print(f"{ran} cases; in {failed} a call has failed")
        return ran, failed

    def test_every_call_of_a_replay(self):
        """Here each run makes the same calls."""
        calls, errors = self.survey("replay")
        ran, failed = self.run_cases(
            Case("replay", kind, number, error, manner) for kind, count in calls.items()
            for number in range(1, count + 1) for error in errors[kind] for manner in self.manners(kind, error))
        self.assertEqual(ran, failed)

    def test_every_thread_that_cannot_start(self):
        calls, errors = self.survey("collector")
        self.run_cases(Case("collector", "thread", number, error, manner) for number in range(1, calls["thread"] + 1)
                       for error in errors["thread"] for manner in ("once", "on"))

    def test_a_server_whose_end_was_missed_is_started_again(self):
        with Faults(self.path("page")) as faults, SimulatedExporter(self.node, env=faults.env) as exporter:
            exporter.server_deaths = 1
            exporter.clock.run_until("it is ready", exporter.is_ready)
            faults.fail_next("waitpid", "ECHILD")
            os.kill(exporter.server(), signal.SIGKILL)
            wait_until("that was missed", lambda: faults.failed)
            exporter.pass_time(30)  # a scan comes every ten seconds
            exporter.clock.run_until("it is ready again", exporter.is_ready)

    def test_calls_of_any_program(self):
        if CASE:
            name, kind, number, error, manner = CASE.split()
            self.survey(name)
            self.assertEqual((1, 1), self.run_cases([Case(name, kind, int(number), error, manner)]))
            return
        surveys = {name: self.survey(name) for name in os.environ.get(
            "WATTRIBUTE_FAULTS_PROGRAMS", " ".join(self.programs)).split()}
        dice = random.Random(SEED)
        print(f"WATTRIBUTE_FAULTS_SEED={SEED}", flush=True)
        ran, failed = self.run_cases(self.every(surveys, dice) if DRAWN == "all" else
                                     self.draw(surveys, dice, int(DRAWN)))
        self.assertGreater(failed, ran / 2)


if __name__ == "__main__":
    harness.main()
