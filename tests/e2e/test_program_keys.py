"""Keys of programs: the same in every recording with one key file, and nothing of the arguments anywhere."""
import gzip
import json
import os
import re
import secrets
import subprocess
import sys
from contextlib import contextmanager

import harness
from harness import PROCESS_ENERGY, Exporter, TestCase, Trace, run

FAKE = os.environ["FAKE_NVML_DIR"]
TRACED = 100  # the pid in the scenario
NO_METERS = [f"--no-collector.{source}" for source in ("rapl", "hwmon", "cray")]
KEYS = re.compile(rb"^\d+ N 0 \d+ .* x=(\d+) c=(\d+)$", re.MULTILINE)


@contextmanager
def program(*arguments):
    """The pid of a Python program with these arguments."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *arguments],
                               stdin=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


class ProgramKeys(TestCase):
    def setUp(self):
        super().setUp()
        self.secret = "hunter2" + secrets.token_hex(8)
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [TRACED], seconds=20, watts=300)
        trace.add(20, "X", 0, b"loop")
        self.scenario = self.write("scenario", trace.body().replace(b" X 0 loop", b" X * loop"))

    def node(self, pid):
        return {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": self.scenario,
                "FAKE_NVML_PIDS": self.write("pids", b"%d %d\n" % (TRACED, pid))}

    def record(self, name, *flags, seed=1):
        """Records a program with a password; its exact and its coarse key, and the ledger."""
        path = self.path(name)
        with program(f"--password={self.secret}", "--seed", str(seed)) as pid:
            done = run("record", "-o", path, "--duration=2s", "--log-level=debug", *NO_METERS, *flags,
                       env=self.node(pid))
        self.assertEqual(0, done.returncode, done)
        with gzip.open(path, "rb") as file:
            text = file.read()
        self.assert_no_secret(text, done.stdout, done.stderr)
        found = KEYS.findall(text)
        self.assertEqual(1, len(found), text[:2000])
        return *found[0], done.stdout

    def assert_no_secret(self, *texts):
        for text in texts:
            self.assertNotIn(self.secret.encode(), text)
            self.assertNotIn(b"time.sleep", text)

    def test_with_a_key_file_a_program_has_the_same_keys_in_every_recording(self):
        flag = f"--program-key-file={self.path('program.key')}"
        exact, coarse, _ = self.record("one.trace.gz", flag)
        self.assertEqual(0o100600, os.stat(self.path("program.key")).st_mode)
        with open(self.path("program.key"), "rb") as file:
            self.assertRegex(file.read(), rb"\A[0-9a-f]{32}\n\Z")
        self.assertEqual((exact, coarse), self.record("two.trace.gz", flag)[:2])
        other_exact, other_coarse, _ = self.record("other.trace.gz", flag, seed=2)
        self.assertNotEqual(exact, other_exact)
        self.assertEqual(coarse, other_coarse)

    def test_without_one_every_run_has_keys_of_its_own(self):
        first, second = self.record("one.trace.gz"), self.record("two.trace.gz")
        self.assertNotEqual(first[0], second[0])
        self.assertNotEqual(first[1], second[1])

    def test_several_recordings_are_replayed_in_order_each_to_its_ledger(self):
        flag = f"--program-key-file={self.path('program.key')}"
        ledgers = [self.record(name, flag)[2] for name in ("one.trace.gz", "two.trace.gz")]
        done = run("replay", self.path("one.trace.gz"), self.path("two.trace.gz"))
        self.assertEqual((0, b""), (done.returncode, done.stderr), done)
        self.assertEqual(ledgers[0], done.stdout[:len(ledgers[0])])
        second = json.loads(done.stdout[len(ledgers[0]):])
        self.assertEqual(json.loads(ledgers[1])["meters"], second["meters"])

    def test_a_bad_trace_ends_the_replay_after_the_ledgers_before_it(self):
        ledger = self.record("one.trace.gz")[2]
        bad = self.write("bad.trace", b"wattribute-trace 2\nnonsense\n")
        done = run("replay", self.path("one.trace.gz"), bad, self.path("one.trace.gz"))
        self.assertEqual((1, ledger), (done.returncode, done.stdout))
        self.assertTrue(done.stderr.startswith(f"wattribute: trace '{bad}', line 2: ".encode()), done.stderr)

    def test_nothing_is_recorded_with_a_key_file_that_others_can_read(self):
        key = self.write("program.key", b"0123456789abcdef" * 2 + b"\n")
        os.chmod(key, 0o644)
        done = run("record", "-o", self.path("none.trace.gz"), f"--program-key-file={key}", "--duration=2s",
                   env=self.node(os.getpid()))
        self.assertEqual(2, done.returncode)
        self.assertIn(b"mode 0644 gives access to others than its owner; chmod 600 it", done.stderr)
        self.assertNotIn(b"0123456789abcdef", done.stderr)
        self.assertFalse(os.path.exists(self.path("none.trace.gz")))

    def test_the_page_and_the_log_have_nothing_of_the_arguments(self):
        with program(f"--password={self.secret}") as pid, \
                Exporter("--log-level=debug", *NO_METERS, env=self.node(pid)) as exporter:
            exporter.wait_for_page("energy of the program", lambda page: page.sum(PROCESS_ENERGY) > 0)
            for path in ("/metrics", "/"):
                self.assert_no_secret(exporter.ask(path).body)
            self.assert_no_secret(exporter.log_text().encode())


if __name__ == "__main__":
    harness.main()
