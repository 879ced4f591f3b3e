"""bench/ground-truth: its scores are those one computes by hand, its recordings are traces."""
import json
import os
import subprocess
import sys
import time
import types
import unittest

from harness import SOURCE_ROOT, TestCase, Trace, binary, run

BENCH = os.path.join(SOURCE_ROOT, "bench")
sys.path.insert(0, BENCH)
import attribution_score
import truth_recorder

TRUTH = """# window_us\t1700000000000000\t1700000010000000
# idle_context_watts\t0.0
# additivity_residual_percent\t-1.5
name\tkind\tpid\tstart_us\tend_us\tunits\tactive_joules
copy\tcopy\t1\t1700000000000000\t1700000010000000\t900\t{}
fma\tfma\t2\t1700000000000000\t1700000010000000\t700\t{}
"""


def booked(**joules_and_confidence):
    return {"meters": [], "processes": [
        {"pid": int(pid[1:]), "gpu": 0, "active_uj": joules * 1000000, "confidence": confidence}
        for pid, (joules, confidence) in joules_and_confidence.items()]}


class Scores(TestCase):
    def test_half_of_what_differs_is_misattributed(self):
        result = attribution_score.score(booked(p1=(80, 0), p2=(20, 0)), {1: 50.0, 2: 50.0})
        self.assertAlmostEqual(0.3, result.tv)

    def test_joules_that_are_all_too_high_by_one_factor_are_attributed_right(self):
        result = attribution_score.score(booked(p1=(300, 0), p2=(100, 0)), {1: 75.0, 2: 25.0})
        self.assertAlmostEqual(0, result.tv)

    def test_a_process_that_was_booked_nothing_is_misattributed_with_all_it_used(self):
        result = attribution_score.score(booked(p1=(10, 0)), {1: 60.0, 2: 40.0})
        self.assertAlmostEqual(0.4, result.tv)

    def test_a_ledger_without_any_of_the_processes_is_all_wrong(self):
        self.assertEqual(1, attribution_score.score(booked(p9=(10, 1)), {1: 60.0}).tv)

    def test_only_confident_bookings_are_held_to_their_word(self):
        result = attribution_score.score(booked(p1=(60, 0.9), p2=(30, 0.5), p3=(10, 0.95)),
                                         {1: 50.0, 2: 40.0, 3: 10.0})
        self.assertEqual(2, result.confident_count)
        self.assertAlmostEqual(10 / 60, result.confident_error)

    def test_without_a_confident_booking_there_is_no_error_of_them(self):
        result = attribution_score.score(booked(p1=(60, 0.8), p2=(40, 0)), {1: 60.0, 2: 40.0})
        self.assertEqual((0, None), (result.confident_count, result.confident_error))


class Folders(TestCase):
    def record(self, name, first_joules, second_joules):
        """Of ten samples eight are of process 1: time share books 80 to 20."""
        trace = Trace()
        trace.gpu(0)
        for tick in range(101):
            trace.energy(tick / 10, 0, 1000 + tick * 7000)
            trace.utilisation(tick / 10, 0, 99)
        for second in range(10):
            trace.listed(second, 0, 1, 2)
            for fifth in range(5):
                trace.sample(second + fifth / 5 + 0.1, 0, 1 if fifth < 4 else 2)
        trace.write(self.path(f"{name}.trace.gz"))
        self.write(f"{name}.truth.tsv", TRUTH.format(first_joules, second_joules).encode())

    def score(self, program=None):
        return subprocess.run([sys.executable, os.path.join(BENCH, "ground-truth"), program or binary(),
                               "--score-only", self.directory],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_a_folder_is_scored_as_one_would_by_hand(self):
        self.record("a-stag-even", 350, 350)
        self.record("a-stag-right", 560, 140)
        self.record("a-co-none", 0, 700)
        self.record("a-solo-left-out", 1, 1)
        done = self.score()
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        rows = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("a-")}
        self.assertEqual({"a-stag-even": ["-1.5%", "30.0%"], "a-stag-right": ["-1.5%", "0.0%"],
                          "a-co-none": ["-1.5%", "80.0%"]}, rows)
        self.assertRegex(done.stdout, r"(?m)^varied .*: 2 traces, TV timeshare median 15\.0% worst 30\.0%")
        self.assertRegex(done.stdout, r"(?m)^all: 3 traces, TV timeshare median 30\.0% worst 80\.0%")

    def test_a_method_that_the_program_refuses_is_named_with_its_words(self):
        self.record("a-stag-even", 350, 350)
        program = self.write("program", f"""#!/bin/sh
case $2 in *=timeshare) exec {binary()} replay "$3" ;; esac
echo "no such method" >&2
exit 2
""".encode())
        os.chmod(program, 0o755)
        done = self.score(program)
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^a-stag-even +-1\.5% +30\.0% +refused +-$")
        self.assertRegex(done.stdout, r"(?m)^intensity: no such method$")

    def test_books_that_do_not_balance_fail(self):
        self.record("a-stag-even", 350, 350)
        ledger = json.loads(run("replay", self.path("a-stag-even.trace.gz")).stdout)
        ledger["meters"][0]["energy_uj"] += 1
        told = self.write("ledger.json", json.dumps(ledger).encode())
        program = self.write("program", f"#!/bin/sh\nexec cat {told}\n".encode())
        os.chmod(program, 0o755)
        done = self.score(program)
        self.assertEqual((1, ""), (done.returncode, done.stderr), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^a-stag-even: timeshare does not balance by 1 uJ$")

    def test_a_folder_without_recordings_fails(self):
        self.assertEqual(1, self.score().returncode)


class Gpu:
    """Seventy joules more at each reading."""

    def __init__(self):
        self.joules = 0

    def describe(self):
        return "gpu 0 uuid=GPU-0 name=x driver=1 power_limit_mw=700000"

    def power_mw(self):
        return 70000, 70000, 71000

    def utilisation(self):
        return 99, 10, 1980, 40

    def samples(self):
        return [types.SimpleNamespace(pid=7, timestamp_us=time.time_ns() // 1000, sm=99, memory=10, encoder=0,
                                      decoder=0)]

    def processes(self, which):
        return [types.SimpleNamespace(pid=7, used_memory=1048576)] if which == "Compute" else []

    def memory(self):
        return types.SimpleNamespace(used=3, free=4, total=7)

    def gpm(self):
        return [(1, 100.0), (2, float("nan"))]

    def energy_mj(self):
        self.joules += 70
        return self.joules * 1000


class Recordings(TestCase):
    def recorder(self, readings):
        """Read by hand, not by its clock."""
        recorder = truth_recorder.Recorder(Gpu())
        for tick in range(readings):
            recorder.read(tick)
        return recorder

    def test_a_recording_is_a_trace_that_replay_books(self):
        recorder = self.recorder(7)
        recorder.write(self.path("fine.trace.gz"))
        done = run("replay", self.path("fine.trace.gz"))
        self.assertEqual((0, b""), (done.returncode, done.stderr), done)
        self.assertEqual("GPU-0", json.loads(done.stdout)["meters"][0]["meter_id"])

    def test_energy_is_read_at_every_tick_lists_at_every_third_and_gpm_at_every_second(self):
        kinds = [line.split()[1] for line in self.recorder(7).lines[2:]]
        self.assertEqual({"E": 7, "P": 7, "U": 7, "S": 7, "R": 6, "M": 3, "G": 3},
                         {kind: kinds.count(kind) for kind in kinds})

    def test_the_counter_is_known_between_two_readings(self):
        energy = [(0, 10.0), (100, 20.0), (300, 40.0)]
        self.assertEqual([10, 15, 20, 30, 40], [truth_recorder.joules_at(energy, t) for t in (0, 50, 100, 200, 300)])


if __name__ == "__main__":
    unittest.main()
