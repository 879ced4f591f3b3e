#!/usr/bin/env python3
"""Writes the scenarios/*.trace of the fake NVML: short, made by hand, the same on every run.

Usage: make_scenarios.py [FOLDER]        (default: scenarios/ beside this file)
       make_scenarios.py --check FOLDER  fails where a file is not what would be written
"""
import pathlib
import sys

START_US = 1_800_000_000_000_000
MIB = 1 << 20
TOTAL_BYTES = 150_754_820_096
RESERVED_BYTES = 644_939_776
LISTED_CALLS = [
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessUtilization",
]


class Scenario:
    """Lines of one trace; times are milliseconds after its start."""

    def __init__(self, gpus, about):
        self.gpus = gpus
        self.lines = []
        for line in about:
            self.at(0, "#", 0, line)

    def at(self, ms, kind, gpu, *fields):
        time_us = START_US + ms * 1000
        words = " ".join(str(field) for field in (time_us, kind, gpu, *fields))
        self.lines.append((time_us, len(self.lines), words))

    def directive(self, ms, gpu, *words):
        self.at(ms, "X", gpu, *words)

    def board(self, gpu, until_ms, watts, start_mj=1_000_000, counter=True, power=True):
        """Energy every 200 ms, power and utilisation every 1 s; watts is a function of ms."""
        energy_mj = start_mj
        for ms in range(0, until_ms + 1, 200):
            if counter:
                self.at(ms, "E", gpu, energy_mj)
            energy_mj += watts(ms) * 200
            if ms % 1000 == 0:
                if power:
                    self.at(ms, "P", gpu, *[watts(ms) * 1000] * 3)
                busy = 99 if watts(ms) > 130 else 0
                self.at(ms, "U", gpu, busy, busy // 4, 1980 if busy else 345, 30 + watts(ms) // 20)

    def processes(self, ms, gpu, pids, kind="c"):
        """The whole list from now on; each process holds 1 GiB."""
        self.at(ms, "R", gpu, kind, len(pids), *(f"{pid}:{1024 * MIB}" for pid in pids))
        if kind == "c":
            used = RESERVED_BYTES + len(pids) * 1024 * MIB
            self.at(ms, "M", gpu, used, TOTAL_BYTES - used, TOTAL_BYTES)

    def samples(self, gpu, from_ms, until_ms, pids):
        """One sample every 200 ms, which the processes win in turn."""
        for turn, ms in enumerate(range(from_ms, until_ms, 200)):
            sample_us = START_US + (ms + 100) * 1000
            self.at(ms + 100, "S", gpu, pids[turn % len(pids)], sample_us, 99, 25, 0, 0)

    def who(self, ms, gpu, pid, start_ms, cgroup, name):
        self.at(ms, "N", gpu, pid, START_US + start_ms * 1000, cgroup, name)

    def text(self):
        head = ["wattribute-trace 1"] + [
            f"gpu {gpu} uuid=GPU-{gpu:08x}-0000-4000-8000-000000000000 name=NVIDIA_H200 "
            f"driver=580.159.04 power_limit_mw=700000 memory_bytes={TOTAL_BYTES}"
            for gpu in range(self.gpus)
        ]
        return "\n".join(head + [words for _, _, words in sorted(self.lines)]) + "\n"


def eight_gpus():
    scenario = Scenario(8, ["Eight GPUs of 150 to 500 W, each with two processes of its own."])
    for gpu in range(8):
        pids = [1000 * (gpu + 1) + 1, 1000 * (gpu + 1) + 2]
        scenario.board(gpu, 6000, lambda ms, gpu=gpu: 150 + 50 * gpu, 1_000_000 * (gpu + 1))
        scenario.processes(0, gpu, pids)
        scenario.samples(gpu, 0, 6000, pids)
    return scenario


def time_slicing():
    scenario = Scenario(1, ["Three processes win 5, 3 and 2 of ten samples; one holds a context."])
    scenario.board(0, 20000, lambda ms: 400)
    scenario.processes(0, 0, [101, 102, 103, 104])
    scenario.samples(0, 0, 20000, [101, 102, 101, 103, 101, 102, 101, 103, 101, 102])
    return scenario


def mps():
    scenario = Scenario(1, ["The MPS server 500 has every sample; the clients are 501 and 502."])
    scenario.board(0, 10000, lambda ms: 350)
    scenario.processes(0, 0, [500, 501, 502])
    scenario.processes(0, 0, [501, 502], "m")
    scenario.processes(6000, 0, [500, 501])
    scenario.processes(6000, 0, [501], "m")
    scenario.samples(0, 0, 10000, [500])
    return scenario


def exits_between_samples():
    scenario = Scenario(1, [
        "601 stays. 602 lives for 150 ms between two samples and has none.",
        "603 has a sample at 4.1 s and is gone from the list at 4.15 s.",
        "604 has samples from 6 s on and is in no list at all.",
    ])
    scenario.board(0, 10000, lambda ms: 300)
    scenario.processes(0, 0, [601])
    scenario.processes(2110, 0, [601, 602])
    scenario.processes(2260, 0, [601])
    scenario.processes(4050, 0, [601, 603])
    scenario.processes(4150, 0, [601])
    scenario.samples(0, 0, 4000, [601])
    scenario.samples(0, 4000, 4200, [603])
    scenario.samples(0, 4200, 6000, [601])
    scenario.samples(0, 6000, 7000, [604])
    scenario.samples(0, 7000, 10000, [601])
    return scenario


def pid_reuse():
    scenario = Scenario(1, [
        "700 ends at 4 s; at 6 s another process has its pid. In between no list has it.",
        "701 ends and its pid is used again within one poll at 8 s: no list shows a gap.",
        "N records tell them apart by start time and cgroup; NVML itself cannot.",
    ])
    scenario.board(0, 12000, lambda ms: 300)
    scenario.who(0, 0, 700, -60000, "/system.slice/first.service", "first")
    scenario.who(0, 0, 701, -30000, "/system.slice/second.service", "second")
    scenario.processes(0, 0, [700, 701])
    scenario.processes(4000, 0, [701])
    scenario.who(6000, 0, 700, 5500, "/system.slice/third.service", "third")
    scenario.processes(6000, 0, [700, 701])
    scenario.who(8000, 0, 701, 7950, "/system.slice/fourth.service", "fourth")
    scenario.samples(0, 0, 4000, [700, 701])
    scenario.samples(0, 4000, 6000, [701])
    scenario.samples(0, 6000, 12000, [700, 701])
    return scenario


def counter_reset():
    scenario = Scenario(2, [
        "GPU 1 restarts its counter at 3 s without a word.",
        "From 6 to 7 s the driver is unloaded: both counters restart at 0.",
    ])
    scenario.board(0, 12000, lambda ms: 300, 50_000_000)
    scenario.board(1, 3000, lambda ms: 300, 80_000_000)
    tail = Scenario(2, [])
    tail.board(1, 8800, lambda ms: 300, 60_000)
    for time_us, _, words in tail.lines:
        later = time_us + 3_200_000
        scenario.lines.append((later, len(scenario.lines), f"{later} {words.split(' ', 1)[1]}"))
    for gpu in (0, 1):
        scenario.processes(0, gpu, [800 + gpu])
        scenario.samples(gpu, 0, 6000, [800 + gpu])
        scenario.samples(gpu, 7000, 12000, [800 + gpu])
    scenario.directive(6000, "*", "driver-unload")
    scenario.directive(7000, "*", "driver-load")
    return scenario


def lost_gpu():
    scenario = Scenario(2, ["GPU 1 falls off the bus at 3 s with XID 79 and is back at 7 s."])
    for gpu in (0, 1):
        scenario.board(gpu, 12000, lambda ms: 300)
        scenario.processes(0, gpu, [900 + gpu])
        scenario.samples(gpu, 0, 12000, [900 + gpu])
    scenario.directive(3000, 1, "xid", 79)
    scenario.directive(3000, 1, "lost")
    scenario.directive(7000, 1, "back")
    return scenario


def hang():
    scenario = Scenario(2, ["Every energy call on GPU 1 takes 3 s from 2 s to 6 s; GPU 0 is well."])
    for gpu in (0, 1):
        scenario.board(gpu, 12000, lambda ms: 300)
        scenario.processes(0, gpu, [950 + gpu])
        scenario.samples(gpu, 0, 12000, [950 + gpu])
    scenario.directive(2000, 1, "hang", "nvmlDeviceGetTotalEnergyConsumption", 3000)
    scenario.directive(6000, 1, "hang", "nvmlDeviceGetTotalEnergyConsumption", 0)
    return scenario


def every_error_code():
    scenario = Scenario(2, [
        "From 2 s on GPU 0 answers its main calls with each code in turn, half a second each.",
        "GPU 1 is well throughout.",
    ])
    for gpu in (0, 1):
        scenario.board(gpu, 20000, lambda ms: 300)
        scenario.processes(0, gpu, [970 + gpu])
        scenario.samples(gpu, 0, 20000, [970 + gpu])
    codes = list(range(1, 31)) + [999, 0]
    for turn, code in enumerate(codes):
        for call in LISTED_CALLS:
            scenario.directive(2000 + 500 * turn, 0, "error", call, code)
    return scenario


def no_counter():
    scenario = Scenario(2, [
        "GPU 0 has power but its energy call is not supported; GPU 1 has neither.",
    ])
    scenario.board(0, 10000, lambda ms: 250)
    scenario.board(1, 10000, lambda ms: 250, counter=False, power=False)
    for gpu in (0, 1):
        scenario.processes(0, gpu, [980 + gpu])
        scenario.samples(gpu, 0, 10000, [980 + gpu])
    scenario.directive(0, 0, "no-energy")
    return scenario


def churn():
    scenario = Scenario(1, ["Twelve processes; every 200 ms two go and two come."])
    scenario.board(0, 10000, lambda ms: 400)
    for turn in range(50):
        pids = list(range(10000 + 2 * turn, 10012 + 2 * turn))
        scenario.processes(200 * turn, 0, pids)
        scenario.samples(0, 200 * turn, 200 * turn + 1, [pids[5 * turn % 12]])
    scenario.processes(10000, 0, [])
    return scenario


SCENARIOS = [
    eight_gpus, time_slicing, mps, exits_between_samples, pid_reuse, counter_reset, lost_gpu, hang,
    every_error_code, no_counter, churn,
]


def main():
    words = sys.argv[1:]
    check = words[:1] == ["--check"]
    if check:
        words = words[1:]
    folder = pathlib.Path(words[0]) if words else pathlib.Path(__file__).parent / "scenarios"
    folder.mkdir(parents=True, exist_ok=True)
    stale = []
    for make in SCENARIOS:
        path = folder / (make.__name__.replace("_", "-") + ".trace")
        text = make().text()
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        sys.exit("not what make_scenarios.py writes: " + " ".join(stale))


if __name__ == "__main__":
    main()
