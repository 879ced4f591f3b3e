"""A week on a node on which nothing lasts: containers come and go, a GPU is lost every minute, calls of libc fail, the
clock is set, the machine sleeps, the server dies.

The time is simulated, and a day takes a minute or two. Every page is checked by the hardware's own counters, and in the
end memory and descriptors are what they were after the first hour. WATTRIBUTE_WEEK_HOURS is its length: 3 by
default, 168 in `make soak`; WATTRIBUTE_FAULTS_SEED repeats one.
"""
import collections
import contextlib
import http.client
import os
import random
import signal

import harness
from books import Books
from faults import Faults
from harness import WORKLOAD_ENERGY, TestCase
from simulated_node import MINUTE, SimulatedExporter, SimulatedNode
from test_cgroup_churn import RSS_SLACK_KB, count_watches, descriptors, is_sanitized, resident_kb

HOURS = int(os.environ.get("WATTRIBUTE_WEEK_HOURS", "3"))
SEED = int(os.environ.get("WATTRIBUTE_FAULTS_SEED", random.randrange(10**9)))
HOUR = 60 * MINUTE
STEP_S = 5
CONTAINERS = (2, 8)
NO_ANSWER = (OSError, http.client.HTTPException)
# A process that cannot wait at all can do nothing but wait; to say so once is enough.
BRIEF = ("epoll_wait", "nanosleep", "poll", "waitpid")


class Week:
    def __init__(self, test, node, exporter, faults, dice):
        self.test, self.node, self.exporter, self.faults, self.dice = test, node, exporter, faults, dice
        self.books = Books(test, node.joules)
        self.events = dict.fromkeys(("faults", "calls that failed", "clock steps", "sleeps", "dead servers",
                                     "missing pages", "containers"), 0)
        self.missing = 0  # pages, since the last
        self.recent = collections.deque(maxlen=30)  # before it went wrong

    def hours(self, count):
        """Each ends with a minute without faults."""
        try:
            for _ in range(count):
                for _ in range(59):
                    self.minute()
                self.recover()
        except BaseException:
            print("\n".join(self.recent))
            raise

    def recover(self):
        self.faults.lift()
        self.exporter.pass_time(MINUTE, STEP_S)
        return self.books.check_all(self.exporter.clock.run_until("a page", self.read, 30))

    def note(self, event, text):
        self.events[event] += 1
        if event == "missing pages":
            self.missing += 1
        if self.missing < 3:
            self.recent.append(text)

    def minute(self):
        for happens, chance in ((self.churn, 1), (self.fail_call, 0.5), (self.set_clock, 0.02), (self.sleep, 0.01),
                                (self.kill_server, 0.02)):
            if self.dice.random() < chance:
                happens()
        self.exporter.pass_time(MINUTE, STEP_S)
        self.read()

    def churn(self):
        few, many = CONTAINERS
        while len(self.node.containers) < self.dice.randint(few, many):
            self.node.add_container()
            self.events["containers"] += 1
        while len(self.node.containers) > self.dice.randint(few, many):
            self.node.remove_container()

    def fail_call(self):
        """One of the next calls of a kind, and some after it."""
        self.events["calls that failed"] += self.faults.failed
        kinds = [kind for kind, count in self.faults.calls().items() if count]
        kind = self.dice.choice(kinds)
        error = self.dice.choice(self.faults.errors()[kind])
        count = 1 if kind in BRIEF else self.dice.choice((1, 1, 2, 10, 100))
        skipped = self.dice.randint(0, 20)
        self.faults.fail_next(kind, error, skipped, count)
        self.note("faults", f"{count} {kind} {error} after {skipped}")

    def set_clock(self):
        seconds = self.dice.choice((-1, 1)) * self.dice.choice((0.5, 3, 60, HOUR, 30 * HOUR))
        self.exporter.clock.step(seconds)
        self.note("clock steps", f"the clock is set by {seconds} s")

    def sleep(self):
        """Nothing is counted meanwhile."""
        seconds = self.dice.choice((MINUTE, HOUR, 9 * HOUR))
        self.exporter.clock.step(seconds)
        self.note("sleeps", f"the machine slept for {seconds} s")

    def kill_server(self):
        with contextlib.suppress(AssertionError, ProcessLookupError):  # it may be dead already
            os.kill(self.exporter.server(), signal.SIGKILL)
            self.note("dead servers", "the server is killed")

    def read(self):
        """A page may be missing, but none may be wrong."""
        with contextlib.suppress(*NO_ANSWER):
            response = self.exporter.ask("/metrics", "GET", 1)
            if response.status == 200:
                self.missing = 0
                return self.books.check(harness.exposition.read(response.body, False))
        self.note("missing pages", "no page")
        return None

    def measure(self):
        """Memory, descriptors and watches, when containers have gone and are forgotten."""
        while self.node.containers:
            self.node.remove_container()
        self.exporter.pass_time(5 * MINUTE)
        page = self.recover()
        self.test.assertEqual([], page.values(WORKLOAD_ENERGY, kind="container"))
        pid = self.exporter.pid
        return resident_kb(pid), len(descriptors(pid)), count_watches(pid)


class Simulated(TestCase):
    def test_the_books_balance_on_every_page_and_nothing_leaks(self):
        print(f"WATTRIBUTE_FAULTS_SEED={SEED} WATTRIBUTE_WEEK_HOURS={HOURS}", flush=True)
        with SimulatedNode() as node, Faults(self.path("page")) as faults:
            exporter = SimulatedExporter(node, env=faults.env)
            exporter.check_log = lambda: self.assertNotIn("Sanitizer", exporter.log_text())
            with exporter:
                week = Week(self, node, exporter, faults, random.Random(SEED))
                week.hours(1)
                warm_kb, *warm = week.measure()
                week.hours(HOURS - 1)
                end_kb, *end = week.measure()
                print(f"{HOURS} h, {week.books.pages} pages, {week.books.total():.0f} J, "
                      + ", ".join(f"{count} {name}" for name, count in week.events.items())
                      + f"; {warm_kb} KB when warm, {end_kb} KB in the end; {end} descriptors and watches")
        self.assertEqual(warm, end)
        if not is_sanitized():
            self.assertLess(end_kb, warm_kb + RSS_SLACK_KB)


if __name__ == "__main__":
    harness.main()
