"""Days of real programs on one GPU, recorded by the exporter at its defaults, with what each process really used.

A day is a list of phases. In each, programs (bench/programs.py) come, work, rest, end and come back. Every variant of a
program (kind and size) also runs alone in one of the phases, before or after it shares the board. That gives its joules
per unit of work; units times joules per unit is the truth.

The truth is JSON: the board, the seed, and for each phase its window, the board's power with idle contexts, the
residual (measured above the sum of the truth), the error of the time share, and for each process its arguments, its
units and its active joules.
"""
import collections
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mps

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs.py"
WARM_UNITS = 3  # done by programs.py before it is ready
SOLO_S = 6
SETTLE_S = 2.5  # contexts resident and nothing running, before the work; the idle power is read here
AFTER_S = 1.2  # the same, after the work
GONE_S = 2  # the exporter reads once a second: it shall see them gone
TAIL_US = 150_000  # the counter ticks every 100 ms: energy of the last work shows that much later
HANG_S = 60  # programs that are so late are ended, and the day with them
SECOND_US = 1_000_000

Program = collections.namedtuple("Program", "kind size job start seconds busy pause acts_as seed mps threads")
Phase = collections.namedtuple("Phase", "name programs")
Day = collections.namedtuple("Day", "seed phases")


def program(kind, size="medium", job=None, start=0, seconds=30, busy=0, pause=0, acts_as=None, seed=None, mps=False,
            threads=None):
    """`busy` and `pause`: mean seconds of work and of rest, random; 0: never rests. `start`: when its context is made.
    `acts_as`: the kind that really runs, under the arguments of `kind`. `seed`: drawn by default, which makes the
    command line differ from run to run. `mps`: it is a client of MPS; `threads`: with this percentage of the SMs."""
    return Program(kind, size, job or kind, start, seconds, busy, pause, acts_as, seed, mps, threads)


def solo(kind, size="medium", seed=None):
    return Phase(f"solo-{kind}-{size}", [program(kind, size, seconds=SOLO_S, seed=seed)])


def is_solo(phase):
    return len(phase.programs) == 1


def variant(plan):
    """What has joules per unit of its own."""
    return f"{plan.acts_as or plan.kind}-{plan.size}"


def length_of(programs):
    return max(p.start + p.seconds for p in programs)


def arguments(plan, seed):
    """Those of programs.py, as the truth tells them: without the machine's paths."""
    return ["python3", "programs.py", plan.kind, "--size", plan.size, "--seed", str(seed), "--job", plan.job]


class Worker:
    """A process, with PyTorch loaded and no context yet."""

    def __init__(self, plan, seed, mps_environment):
        self.plan, self.units, self.argv = plan, WARM_UNITS, arguments(plan, seed)
        environment = {**os.environ, **(mps_environment if plan.mps else {})}
        if plan.threads:
            environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(plan.threads)
        self.process = subprocess.Popen([sys.executable, str(PROGRAMS), *self.argv[2:]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def await_word(self, word):
        words = self.process.stdout.readline().split()
        if not words or words[0] != word:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)  # its stdout has ended, so it is about to end as well
            raise RuntimeError(f"{self.plan.kind}: no '{word}', exit status {self.process.poll()}")
        return words

    def make_context(self):
        self.tell(f"context {self.plan.acts_as}" if self.plan.acts_as else "context")

    def start(self, epoch):
        rests = f" {self.plan.busy} {self.plan.pause}" if self.plan.busy else ""
        self.tell(f"start {epoch:.6f} {self.plan.seconds}{rests}")

    def await_end(self):
        words = self.await_word("end")
        self.units += int(words[2])
        self.start_us, self.end_us = int(words[4]), int(words[6])

    def come_late(self, epoch):
        """From the context to the end of the process. Blocks for that long."""
        time.sleep(max(0.0, epoch - time.time()))
        self.make_context()
        self.await_word("ready")
        self.start(time.time())
        self.await_end()
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def close_all(workers):
    for worker in workers:
        worker.close()


def run_workers(workers):
    """When the first context was made, when all of the first were ready, when work began and when it ended, in us. All
    keep their contexts until then but those that come late."""
    early = [w for w in workers if w.plan.start == 0]
    late = [w for w in workers if w.plan.start > 0]
    context_us = time.time_ns() // 1000
    for worker in early:
        worker.make_context()
    for worker in early:
        worker.await_word("ready")
    ready_us = time.time_ns() // 1000
    start = ready_us / 1e6 + SETTLE_S
    for worker in early:
        worker.start(start)
    with ThreadPoolExecutor(len(workers)) as threads:
        lives = [threads.submit(w.come_late, start + w.plan.start) for w in late]
        for worker in early:
            worker.await_end()
        for life in lives:
            life.result()
    end_us = max(w.end_us for w in workers)
    time.sleep(max(0.0, end_us / 1e6 + AFTER_S - time.time()))
    return context_us, ready_us, int(start * 1e6), end_us


def run_phase(phase, workers, meter):
    """What is known of the phase; its workers have ended."""
    watchdog = threading.Timer(length_of(phase.programs) + HANG_S, lambda: [w.process.kill() for w in workers])
    watchdog.start()
    try:
        context_us, ready_us, start_us, end_us = run_workers(workers)
    finally:
        watchdog.cancel()
        close_all(workers)
    idle = [meter.watts(ready_us + 700_000, start_us - 100_000),
            meter.watts(end_us + 500_000, end_us + AFTER_S * 1e6 - 100_000)]
    return {"phase": phase.name, "context_us": context_us, "start_us": start_us, "end_us": end_us + TAIL_US,
            "idle_watts": round(sum(idle) / 2, 2), "workers": workers}


def active_joules(meter, facts):
    """Above idle, from the first context on: warming up is work, too."""
    begin_us, end_us = facts["context_us"], facts["end_us"]
    return meter.joules_at(end_us) - meter.joules_at(begin_us) - facts["idle_watts"] * (end_us - begin_us) / 1e6


def time_shares(meter, facts):
    """Active joules by the utilisation samples of each pid, second by second. The samples of clients of MPS have the pid
    of their server: each gets an equal part."""
    samples, joules = collections.defaultdict(collections.Counter), collections.Counter()
    pids = {w.pid for w in facts["workers"]}
    clients = [w.pid for w in facts["workers"] if w.plan.mps]
    for line in meter.lines:
        words = line.split()
        if len(words) > 5 and words[1] == "S":
            pid, second = int(words[3]), (int(words[4]) - facts["context_us"]) // SECOND_US
            owners = [pid] if pid in pids else clients
            for owner in owners:
                samples[second][owner] += int(words[5]) / len(owners)
    for second in range((facts["end_us"] - facts["context_us"]) // SECOND_US + 1):
        begin_us, total = facts["context_us"] + second * SECOND_US, sum(samples[second].values())
        active = meter.joules_at(begin_us + SECOND_US) - meter.joules_at(begin_us) - facts["idle_watts"]
        for pid, percent in samples[second].items() if total else ():
            joules[pid] += max(0.0, active) * percent / total
    return joules


def misattributed_percent(joules, truth):
    """Half the sum of the differences of shares."""
    total, true_total = sum(joules.values()), sum(truth.values())
    if total <= 0 or true_total <= 0:
        return 0.0
    return 50 * sum(abs(joules[pid] / total - truth[pid] / true_total) for pid in truth)


def joules_per_unit(meter, phases):
    """By variant, of the phases in which it was alone."""
    alone = {variant(facts["workers"][0].plan): facts for facts in phases if len(facts["workers"]) == 1}
    return {name: max(0.0, active_joules(meter, facts)) / facts["workers"][0].units for name, facts in alone.items()}


def truth_of_phase(meter, facts, per_unit):
    workers = facts["workers"]
    truth = {w.pid: w.units * per_unit[variant(w.plan)] for w in workers}
    shares, total = time_shares(meter, facts), sum(truth.values())
    return {**{key: value for key, value in facts.items() if key != "workers"},
            "residual_percent": round(100 * (active_joules(meter, facts) / total - 1), 1) if total else 0.0,
            "timeshare_tv_percent": round(misattributed_percent(shares, truth), 1),
            "processes": [{"name": variant(w.plan), "pid": w.pid, "argv": w.argv, "start_us": w.start_us,
                           "end_us": w.end_us, "units": w.units, "active_joules": round(truth[w.pid], 1),
                           "timeshare_joules": round(shares[w.pid], 1)} for w in workers]}


def truth_of(meter, phases):
    """The phases as the truth has them, less those with a variant that never ran alone: their truth is unknown."""
    per_unit = joules_per_unit(meter, phases)
    return [truth_of_phase(meter, facts, per_unit) for facts in phases
            if all(variant(w.plan) in per_unit for w in facts["workers"])]


def board_name(line):
    """Of a `gpu` line."""
    names = [word[len("name="):] for word in line.split() if word.startswith("name=")]
    return names[0].replace("_", " ") if names else "unknown"


def spawn(phase, chance, mps_environment):
    drawn = [chance.randrange(1000) for _ in phase.programs]  # one for each, so that plans can fix some
    workers = [Worker(p, seed if p.seed is None else p.seed, mps_environment) for p, seed in zip(phase.programs, drawn)]
    try:
        for worker in workers:
            worker.await_word("loaded")
    except RuntimeError:
        close_all(workers)
        raise
    return workers


def run_day(phases, seed, meter, budget_s):
    """What is known of each phase that ran. PyTorch takes seconds to load: it does so during the phase before."""
    chance, workers, done, began = random.Random(seed), [], [], time.monotonic()
    needs_mps = any(p.mps for phase in phases for p in phase.programs)
    try:
        with ThreadPoolExecutor(1) as loader, mps.server() if needs_mps else contextlib.nullcontext({}) as environment:
            workers = spawn(phases[0], chance, environment)
            for phase, following in zip(phases, [*phases[1:], None]):
                loading = loader.submit(spawn, following, chance, environment) if following else None
                try:
                    done.append(run_phase(phase, workers, meter))
                finally:
                    workers = loading.result() if loading else []
                used = time.monotonic() - began
                print(f"{used:6.1f} s  {phase.name}: {[(variant(w.plan), w.units) for w in done[-1]['workers']]}",
                      flush=True)
                time.sleep(GONE_S)
                if budget_s and used > budget_s:
                    print(f"stopped after {phase.name}: {budget_s:.0f} s are used", flush=True)
                    break
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"stopped: {error}", flush=True)
    finally:
        close_all(workers)
    return done


def record(phases, seed, meter, recording, path, budget_s=None):
    """Runs the phases while `recording`, an exporter, records them and `meter` (a truth_recorder.Recorder) measures the
    board. Stops both and writes the truth to `path`. If no phase has a truth, there is no file."""
    meter.start()
    try:
        done = run_day(phases, seed, meter, budget_s)
    finally:
        meter.stop()
        recording.stop()
    truth = {"board": board_name(meter.lines[1]), "seed": seed, "phases": truth_of(meter, done)}
    if truth["phases"]:
        path.write_text(json.dumps(truth, indent=1) + "\n")
    for facts in truth["phases"]:
        used = ", ".join(f"{p['name']} {p['active_joules']:.0f} J" for p in facts["processes"])
        print(f"{facts['phase']:26s} idle {facts['idle_watts']:.1f} W, residual {facts['residual_percent']:+.1f} %, "
              f"time share {facts['timeshare_tv_percent']:.1f} %: {used}", flush=True)
