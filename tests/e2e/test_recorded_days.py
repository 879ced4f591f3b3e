"""bench/ground-truth --day: what the days consist of, what their truth is made of, their scores and their keys."""
import ast
import collections
import contextlib
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

from harness import SOURCE_ROOT, TestCase, Trace, binary, run

BENCH = pathlib.Path(SOURCE_ROOT) / "bench"
sys.path.insert(0, str(BENCH))
import attribution_score
import day_plans
import day_score
import truth_day
from truth_day import Phase, is_solo, program, variant

# As much of PyTorch as programs.py needs to import, and its `wait` to run.
TORCH = """
import types
cuda, uint8 = types.SimpleNamespace(synchronize=lambda: None), None
def no_grad(): return lambda function: function
def manual_seed(seed): pass
def set_default_device(device): pass
def zeros(count, dtype): return count
"""
TRAIN, SERVE = ["python3", "train.py", "--seed", "1"], ["python3", "serve.py", "--seed", "2"]
# Computed with another implementation of SipHash-2-4, for the secret 000102...0f; the coarse keys without the seeds.
TRAIN_KEYS = "x=10175382704069002107 c=13027167281630142845"
SERVE_KEYS = "x=8963508836196732467 c=4611796106800282525"
SERVE_KEYS_ELSEWHERE = "x=13041261183952508811 c=12814815588429369804"  # of ffff...ff


def kinds():
    """The functions of programs.py that KINDS lists, by name."""
    tree = ast.parse((BENCH / "programs.py").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    (table,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "KINDS"]
    return {name.id: functions[name.id] for name in table.generators[0].iter.elts}


class Programs(TestCase):
    def test_there_are_at_least_twelve_kinds_and_none_is_a_copy_of_another(self):
        units = {}
        for name, function in kinds().items():
            (unit,) = [node for node in function.body if isinstance(node, ast.FunctionDef) and node.name == "unit"]
            units[name] = ast.dump(ast.Module(unit.body, []))
        self.assertGreaterEqual(len(units), 12)
        self.assertEqual(len(units), len(set(units.values())))
        self.assertEqual(len(units), len({ast.get_docstring(function) for function in kinds().values()}))

    def test_the_days_use_kinds_and_sizes_that_exist(self):
        for day in day_plans.DAYS.values():
            for plan in (p for phase in day.phases for p in phase.programs):
                self.assertIn(plan.kind, kinds())
                self.assertIn(plan.acts_as or plan.kind, kinds())
                self.assertIn(plan.size, ("small", "medium", "large"))


def shared(day):
    return [phase for phase in day.phases if not is_solo(phase)]


def command_line(plan):
    return truth_day.arguments(plan, plan.seed) if plan.seed is not None else None


def is_client(plan):
    return plan.mps


class Plans(TestCase):
    def every_day(self, of_mps=(False, True)):
        for name, day in day_plans.DAYS.items():
            if name.startswith("mps-") in of_mps:
                with self.subTest(name):
                    yield day

    def test_every_variant_that_shares_also_runs_alone(self):
        for day in self.every_day():
            alone = {variant(phase.programs[0]) for phase in day.phases if is_solo(phase)}
            self.assertLessEqual({variant(p) for phase in shared(day) for p in phase.programs}, alone)

    def test_a_phase_is_known_by_its_name(self):
        for day in self.every_day():
            self.assertEqual(len(day.phases), len({phase.name for phase in day.phases}))

    def test_a_day_has_at_least_five_shared_phases_steady_and_varied_ones(self):
        for day in self.every_day():
            self.assertGreaterEqual(len(shared(day)), 5)
            self.assertTrue(any(all(p.busy == 0 for p in phase.programs) for phase in shared(day)))
            self.assertTrue(any(all(p.busy > 0 for p in phase.programs) for phase in shared(day)))

    def test_programs_are_alone_without_mps_and_share_by_it_only_on_its_days(self):
        for day in self.every_day():
            self.assertFalse(any(p.mps for phase in day.phases if is_solo(phase) for p in phase.programs))
        for day in self.every_day(of_mps=[False]):
            self.assertFalse(any(p.mps or p.threads for phase in day.phases for p in phase.programs))
        for day in self.every_day(of_mps=[True]):
            for phase in shared(day):
                self.assertGreater(sum(map(is_client, phase.programs)), 1)
        self.assertTrue(any(p.threads for name, day in day_plans.DAYS.items() if name.startswith("mps-")
                            for phase in shared(day) for p in phase.programs))

    def test_in_a_day_programs_come_as_strangers_end_come_back_and_change(self):
        for day in self.every_day(of_mps=[False]):
            seen, strangers, returned = set(), 0, 0
            for phase in day.phases:
                if is_solo(phase):
                    seen.add(variant(phase.programs[0]))
                strangers += any(variant(p) not in seen for p in phase.programs)
                jobs = collections.defaultdict(set)
                for p in phase.programs:
                    jobs[p.kind].add((p.size, p.job))
                returned += any(len(arguments) > 1 for arguments in jobs.values())
            self.assertGreater(strangers, 0)
            self.assertGreater(returned, 0, "with other arguments")
            self.assertTrue(any(p.start + p.seconds < truth_day.length_of(phase.programs)
                                for phase in shared(day) for p in phase.programs), "one ends while others work")
            self.assertTrue(any(p.acts_as for phase in shared(day) for p in phase.programs))

    def test_two_days_have_a_swap(self):
        def is_swapped(phase):
            pairs = {(p.kind, p.acts_as) for p in phase.programs if p.acts_as}
            return any((other, kind) in pairs for kind, other in pairs)

        self.assertEqual(["check", "final"],
                         [name for name, day in day_plans.DAYS.items() if any(map(is_swapped, day.phases))])

    def test_what_changes_in_the_last_day_ran_alone_under_the_very_command_line(self):
        phases = day_plans.DAYS["final"].phases
        alone = [command_line(phase.programs[0]) for phase in phases if is_solo(phase)]
        changed = [p for phase in phases for p in phase.programs if p.acts_as]
        self.assertEqual(3, len(changed))
        for plan in changed:
            self.assertIn(command_line(plan), [line for line in alone if line])

    def test_the_last_day_shares_no_variant_and_no_seed_with_the_others(self):
        for of_mps in (False, True):
            *others, final = self.every_day(of_mps=[of_mps])
            variants = {variant(p) for day in others for phase in day.phases for p in phase.programs}
            self.assertFalse(variants & {variant(p) for phase in final.phases for p in phase.programs})
        self.assertEqual(len(day_plans.DAYS), len({day.seed for day in day_plans.DAYS.values()}))

    def test_the_phases_of_a_day_are_listed(self):
        done = subprocess.run([sys.executable, BENCH / "ground-truth", "--day", "final", "--list"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual([phase.name for phase in day_plans.DAYS["final"].phases],
                         [line.split()[0] for line in done.stdout.splitlines()])
        self.assertRegex(done.stdout, r"(?m)^E-changed +36 s  attract-small, simulate_flow-small$")


class Meter:
    """100 W idle, and what the phases add: (begin, end, watts) in seconds. Samples: (second, pid, percent)."""

    def __init__(self, loads=(), samples=()):
        self.loads = loads
        self.lines = ["wattribute-trace 1", "gpu 0 uuid=GPU-0 name=NVIDIA_H200 driver=1"]
        self.lines += [f"{t}000000 S 0 {pid} {t}100000 {percent} 0 0 0" for t, pid, percent in samples]

    def joules_at(self, t_us):
        t = t_us / 1e6
        return 100 * t + sum(watts * max(0, min(t, end) - begin) for begin, end, watts in self.loads)

    def watts(self, from_us, until_us):
        return 100.0

    def start(self):
        pass

    stop = start


def worker(kind, pid, units, **more):
    return types.SimpleNamespace(plan=program(kind, **more), pid=pid, units=units, argv=[kind], start_us=0, end_us=0)


def facts(name, begin, end, *workers):
    return {"phase": name, "context_us": begin * 1000000, "start_us": begin * 1000000, "end_us": end * 1000000,
            "idle_watts": 100.0, "workers": list(workers)}


class Truth(TestCase):
    """One alone uses 1000 J for 10 units, the other 200 J for 100; together 6 and 150 units."""

    def truth(self, *more):
        meter = Meter([(0, 10, 100), (20, 30, 20), (40, 50, 99)],
                      [(0, 1, 90), (20, 2, 90), (40, 3, 75), (40, 4, 25), (41, 4, 50)])
        return truth_day.truth_of(meter, [facts("solo-a", 0, 10, worker("a", 1, 10)),
                                          facts("solo-b", 20, 30, worker("b", 2, 100)),
                                          facts("both", 40, 50, worker("a", 3, 6), worker("b", 4, 150)), *more])

    def test_a_process_used_its_units_times_the_joules_per_unit_when_alone(self):
        self.assertEqual([[1000], [200], [600, 300]],
                         [[p["active_joules"] for p in phase["processes"]] for phase in self.truth()])

    def test_the_residual_is_what_the_board_used_above_the_sum(self):
        self.assertEqual([0, 0, 10], [phase["residual_percent"] for phase in self.truth()])

    def test_the_time_share_divides_each_second_by_its_samples(self):
        both = self.truth()[2]
        self.assertEqual([74.2, 123.8], [p["timeshare_joules"] for p in both["processes"]])
        self.assertAlmostEqual(100 * (2 / 3 - 0.375), both["timeshare_tv_percent"], delta=0.05)

    def test_samples_of_an_mps_server_are_divided_equally_among_its_clients(self):
        mps = facts("mps", 40, 50, worker("a", 7, 6, mps=True), worker("b", 8, 150, mps=True), worker("b", 4, 0))
        self.assertEqual([37.1, 37.1, 123.8],  # half of 0.75 x 99 J each; the rest
                         [p["timeshare_joules"] for p in self.truth(mps)[3]["processes"]])

    def test_a_phase_with_a_program_that_never_ran_alone_has_no_truth(self):
        self.assertEqual(3, len(self.truth(facts("strange", 60, 70, worker("a", 5, 1), worker("c", 6, 1)))))


class RunningDays(TestCase):
    def record(self, phases, budget_s=None):
        os.mkdir(self.path("torch"))
        self.write("torch/__init__.py", TORCH.encode())
        os.mkdir(self.path("torch/nn"))
        self.write("torch/nn/__init__.py", b"Module = object\n")
        self.write("torch/nn/functional.py", b"")
        stopped, out = [], pathlib.Path(self.path("day.truth.json"))
        with mock.patch.multiple(truth_day, SETTLE_S=0, AFTER_S=0, GONE_S=0), \
                mock.patch.dict(os.environ, PYTHONPATH=self.directory), \
                contextlib.redirect_stdout(io.StringIO()) as told:
            recording = types.SimpleNamespace(stop=lambda: stopped.append(True))
            truth_day.record(phases, 7, Meter(), recording, out, budget_s)
        self.assertEqual([True], stopped)
        return json.loads(out.read_text()) if out.exists() else None, told.getvalue()

    def wait(self, **more):
        return program("wait", seconds=0.1, **more)

    def test_programs_come_work_and_end_as_planned(self):
        truth, told = self.record([
            Phase("alone", [self.wait(seed=3)]),
            Phase("both", [self.wait(seed=3), program("attend", acts_as="wait", job="other", start=0.2, seconds=0.1)])])
        self.assertEqual(("NVIDIA H200", 7), (truth["board"], truth["seed"]), told)
        (first,), (again, late) = (phase["processes"] for phase in truth["phases"])
        self.assertEqual("python3 programs.py wait --size medium --seed 3 --job wait".split(), first["argv"])
        self.assertEqual(first["argv"], again["argv"])
        self.assertEqual(("wait-medium", "attend", "other"), (late["name"], late["argv"][2], late["argv"][-1]))
        self.assertGreaterEqual(late["start_us"], truth["phases"][1]["start_us"] + 200000)
        self.assertGreater(first["units"], truth_day.WARM_UNITS)
        self.assertEqual(3, len({p["pid"] for p in (first, again, late)}))

    def test_seeds_that_are_not_fixed_are_drawn_from_that_of_the_day(self):
        truth, told = self.record([Phase("alone", [self.wait()]), Phase("again", [self.wait()])])
        chance = truth_day.random.Random(7)
        self.assertEqual([str(chance.randrange(1000)), str(chance.randrange(1000))],
                         [phase["processes"][0]["argv"][6] for phase in truth["phases"]], told)

    def test_a_program_that_fails_ends_the_day_and_the_truth_until_then_is_kept(self):
        with mock.patch.object(truth_day.subprocess, "Popen", quiet(truth_day.subprocess.Popen)):
            truth, told = self.record([Phase("alone", [self.wait()]), Phase("fails", [program("attend", seconds=0.1)]),
                                       Phase("never", [self.wait()])])
        self.assertEqual(["alone"], [phase["phase"] for phase in truth["phases"]])
        self.assertIn("stopped: attend: no 'ready', exit status 1", told)

    def test_without_pytorch_there_is_no_truth(self):
        with mock.patch.object(truth_day.subprocess, "Popen", quiet(truth_day.subprocess.Popen)), \
                mock.patch(f"{__name__}.TORCH", "raise ImportError\n"):
            truth, told = self.record([Phase("alone", [self.wait()])])
        self.assertEqual((None, "stopped: wait: no 'loaded', exit status 1\n"), (truth, told))

    def test_no_phase_begins_after_the_budget_is_spent(self):
        truth, told = self.record([Phase("alone", [self.wait()]), Phase("never", [self.wait()])], budget_s=0.01)
        self.assertEqual(["alone"], [phase["phase"] for phase in truth["phases"]], told)


def quiet(popen):
    """The traceback of a program that is meant to fail."""
    return lambda *arguments, **more: popen(*arguments, **more, stderr=subprocess.DEVNULL)


def process(pid, active_j, confidence, **more):
    return {"pid": pid, "gpu": 0, "energy_uj": active_j * 1000000, "active_uj": active_j * 1000000,
            "confidence": confidence, **more}


class Scores(TestCase):
    def score(self, *processes, energy_j=1000):
        """A day of one solo and one shared phase, in which 2 used 600 J and 3 used 400 J."""
        ledger = {"processes": processes, "meters": [
            {"gpu": 0, "energy_uj": energy_j * 1000000, "idle_uj": 0, "unattributed_uj": 0}]}
        told = self.write("ledger.json", json.dumps(ledger).encode())
        program_path = self.write("program", f"#!/bin/sh\nexec cat {told}\n".encode())
        os.chmod(program_path, 0o755)
        Trace().write(self.path("a-day.trace.gz"))
        self.write("a-day.truth.json", json.dumps({"phases": [
            {"phase": "solo-x", "context_us": 0, "end_us": 1, "residual_percent": 0, "timeshare_tv_percent": 0,
             "processes": [{"name": "x", "pid": 1, "active_joules": 5}]},
            {"phase": "A-both", "context_us": 2, "end_us": 3, "residual_percent": 1.5, "timeshare_tv_percent": 7,
             "processes": [{"name": "x", "pid": 2, "active_joules": 600},
                           {"name": "y", "pid": 3, "active_joules": 400}]},
        ]}).encode())
        return subprocess.run([sys.executable, BENCH / "ground-truth", program_path, "--score-only", self.directory],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_a_shared_phase_is_scored_by_shares_beside_the_time_share(self):
        done = self.score(process(2, 700, 0.9), process(3, 300, 0.4))
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^a-day +A-both +\+1\.5% +7\.0% +10\.0% +10\.0%   worse: whole fresh$")
        self.assertNotIn("solo-x", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^1 phases: timeshare median 7\.0% worst 7\.0%, whole median 10\.0% .*"
                                      r"points: whole 1, fresh 1$")
        self.assertIn("\nuncertainty: the ledger has none\n", done.stdout)

    def test_each_process_has_the_errors_of_its_joules_and_of_its_share(self):
        done = self.score(process(2, 700, 0.9), process(3, 500, 0.6), energy_j=1200)
        self.assertRegex(done.stdout, r"(?m)^a-day +A-both +x +600 J +700 J +\+16\.7% +-2\.8% +0\.90 +-$")
        self.assertRegex(done.stdout, r"(?m)^a-day +A-both +y +400 J +500 J +\+25\.0% +\+4\.2% +0\.60 +-$")
        self.assertIn("\nconfidence above 0.8: 1 processes, worst 16.7% off, of share 2.8%; above 0.5: 2 processes, "
                      "0 within 15%, of share 2\n", done.stdout)

    def test_who_used_nothing_is_off_by_all_that_was_booked(self):
        self.assertEqual([0, float("inf"), -100, 10],
                         [round(day_score.off_percent(*pair), 6) for pair in ((0, 0), (1, 0), (0, 5), (11, 10))])

    def test_what_is_off_by_less_than_its_uncertainty_is_within_it(self):
        done = self.score(process(2, 700, 0, uncertainty_uj=150000000), process(3, 300, 0, uncertainty_uj=50000000))
        self.assertIn("\nuncertainty: 1 of 2 processes within their uncertainty; median uncertainty 100.0 J, "
                      "median error 100.0 J, 1.0 times\n", done.stdout)
        self.assertEqual(["50 J   beyond"], re.findall(r"\d+ J +beyond", done.stdout))

    def test_the_picture_has_a_point_for_each_process_of_a_shared_phase(self):
        self.score(process(2, 700, 0), process(3, 300, 0))
        done = subprocess.run([BENCH / "attribution-picture", self.path("program"), self.directory, "--svg",
                               self.path("shares.svg")], capture_output=True, text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("| a-day A-both | +1.5 % | 10.0 % | 10.0 % |", done.stdout)
        points = re.findall(r"<title>(.*?)</title>", pathlib.Path(self.path("shares.svg")).read_text())
        self.assertEqual(2 * ["a-day A-both: 60.0 % used, 70.0 % booked", "a-day A-both: 40.0 % used, 30.0 % booked"],
                         points)

    def test_books_that_do_not_balance_fail(self):
        done = self.score(process(2, 700, 0), process(3, 300, 0), energy_j=1001)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("a-day.trace.gz: does not balance by 1000000 uJ", done.stdout)

    def test_a_residual_of_the_truth_is_no_error(self):
        ledger = {"processes": [process(1, 90, 0, uncertainty_uj=0), process(2, 30, 0, uncertainty_uj=0)]}
        self.assertEqual([(0, 0), (0, 0)], attribution_score.uncertainties(ledger, {1: 75.0, 2: 25.0}))

    def test_of_several_ledgers_the_last_is_that_of_the_trace(self):
        told = self.write("ledgers", b'{"processes": [1]}\n{"processes": [2]}\n')
        script = f'#!/bin/sh\necho "$@" >{self.path("arguments")}\nexec cat {told}\n'
        program_path = self.write("program", script.encode())
        os.chmod(program_path, 0o755)
        self.assertEqual(({"processes": [2]}, None),
                         attribution_score.replay(program_path, "b", "intensity", after=["a"]))
        self.assertEqual("replay --attribution=intensity a b\n", pathlib.Path(self.path("arguments")).read_text())

    def test_a_phase_alone_has_the_names_of_the_whole_day(self):
        lines = ["wattribute-trace 2\n", "gpu 0 uuid=x\n", *(f"{t}000000 E 0 1\n" for t in (1, 30, 33, 40, 54, 55)),
                 "2000000 N 0 7 0 - x\n"]
        before, phase = {"end_us": 30000000}, {"context_us": 40000000, "end_us": 50000000}
        self.assertEqual(["wattribute-trace", "gpu", "33000000", "40000000", "54000000", "2000000"],
                         [line.split()[0] for line in day_score.lines_of_phase(lines, before, phase)])

    def test_a_decimated_recording_has_energy_and_power_once_a_second_and_all_the_rest(self):
        kept = list(attribution_score.decimate(itertools.chain(["wattribute-trace 1\n"], (
            f"{1700000000000000 + tick * 100000} {kind} {gpu} 5\n" for tick in range(21) for gpu in (0, 1)
            for kind in "EPU"))))
        self.assertEqual({"E": 6, "P": 6, "U": 42}, {kind: sum(f" {kind} " in line for line in kept) for kind in "EPU"})
        self.assertEqual("wattribute-trace 1\n", kept[0])


class Keys(TestCase):
    def add(self, trace, out, *options):
        """The lines of the trace with keys."""
        done = subprocess.run([BENCH / "add-program-keys", self.path(trace), self.path("day.truth.json"),
                               "-o", self.path(out), "--hash",
                               os.path.join(os.path.dirname(binary()), "bench/program_keys"), *options],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        with gzip.open(self.path(out), "rt") as lines:
            return lines.read().splitlines()

    def add_keys(self, *options):
        trace = Trace()
        trace.gpu(0)
        for pid in (1, 2, 3, 4):
            trace.process(pid, 0, pid, b"python3")
        trace.work(0, [1, 2, 3, 4], 8)
        trace.write(self.path("day.trace.gz"))
        self.write("day.truth.json", json.dumps({"phases": [
            {"processes": [{"pid": 1, "argv": TRAIN}]}, {"processes": [{"pid": 2, "argv": SERVE}]},
            {"processes": [{"pid": 3, "argv": SERVE}, {"pid": 9, "argv": TRAIN}]}]}).encode())
        return self.add("day.trace.gz", "keys.trace.gz", *options)

    def keys(self, *options):
        return {int(line.split()[3]): " ".join(line.split()[7:]) for line in self.add_keys(*options) if " N " in line}

    def test_processes_of_the_truth_get_the_keys_that_the_exporter_would_have_written(self):
        self.assertEqual({1: TRAIN_KEYS, 2: SERVE_KEYS, 3: SERVE_KEYS, 4: ""}, self.keys())

    def test_the_rest_of_the_trace_stays_as_it_is_but_for_its_version(self):
        with_keys = self.add_keys()
        with gzip.open(self.path("day.trace.gz"), "rt") as lines:
            without = lines.read().splitlines()
        self.assertEqual(("wattribute-trace 1", "wattribute-trace 2"), (without[0], with_keys[0]))
        self.assertEqual([line for line in without[1:] if " N " not in line],
                         [line for line in with_keys[1:] if " N " not in line])

    def test_a_newer_trace_keeps_its_version(self):
        self.add_keys()
        with gzip.open(self.path("day.trace.gz"), "rt") as lines:
            newer = lines.read().replace("wattribute-trace 1", "wattribute-trace 3", 1)
        with gzip.open(self.path("newer.trace.gz"), "wt") as out:
            out.write(newer)
        self.assertEqual("wattribute-trace 3", self.add("newer.trace.gz", "keys.trace.gz")[0])

    def test_replay_takes_the_trace_and_its_ledger_balances(self):
        self.add_keys()
        done = run("replay", self.path("keys.trace.gz"))
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        ledger = json.loads(done.stdout)
        self.assertEqual(0, attribution_score.imbalance_uj(ledger))
        self.assertEqual({1, 2, 3, 4}, {p["pid"] for p in ledger["processes"]})

    def test_another_secret_gives_other_keys(self):
        secret = self.write("secret", b"f" * 32 + b"\n")
        os.chmod(secret, 0o600)
        self.assertEqual(SERVE_KEYS_ELSEWHERE, self.keys("--program-key-file", secret)[2])

    def test_rotated_keys_make_the_memory_of_the_solo_phases_wrong_and_of_no_other(self):
        self.assertEqual({1: SERVE_KEYS, 2: TRAIN_KEYS, 3: SERVE_KEYS, 4: ""}, self.keys("--rotate", "1"))

    def test_keys_that_are_there_are_replaced(self):
        right = self.add_keys()
        self.add("day.trace.gz", "rotated.trace.gz", "--rotate", "1")
        self.assertEqual(right, self.add("rotated.trace.gz", "again.trace.gz"))


if __name__ == "__main__":
    unittest.main()
