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


H200 = ("NVIDIA_H200", TOTAL_BYTES)


class Scenario:
    """Lines of one trace; times are milliseconds after its start."""

    def __init__(self, gpus, about, board=H200):
        self.gpus = gpus
        self.model = board
        self.version = 1 if board == H200 else 3
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
            self.memory(ms, gpu, len(pids) * 1024)

    def memory(self, ms, gpu, mib):
        used = RESERVED_BYTES + mib * MIB
        self.at(ms, "M", gpu, used, self.model[1] - used, self.model[1])

    def samples(self, gpu, from_ms, until_ms, pids):
        """One sample every 200 ms, which the processes win in turn."""
        for turn, ms in enumerate(range(from_ms, until_ms, 200)):
            sample_us = START_US + (ms + 100) * 1000
            self.at(ms + 100, "S", gpu, pids[turn % len(pids)], sample_us, 99, 25, 0, 0)

    def who(self, ms, gpu, pid, start_ms, cgroup, name, *keys):
        self.at(ms, "N", gpu, pid, START_US + start_ms * 1000, cgroup, name, *keys)

    def activity(self, ms, gpu, units, *words):
        """A record of GPM: `units` (0 to 1, by NVML's ids) since the last one."""
        self.at(ms, "G", gpu, *words, *(f"{key}={100 * value:.3f}" for key, value in units.items()))

    def truth(self, ms, gpu, truth_mj):
        """Joules above the idle board, by process, as comments."""
        for pid, mj in truth_mj.items():
            self.at(ms, "#", gpu, "truth", pid, round(mj / 1000))

    def text(self):
        head = [f"wattribute-trace {self.version}"] + [
            f"gpu {gpu} uuid=GPU-{gpu:08x}-0000-4000-8000-000000000000 name={self.model[0]} "
            f"driver=580.159.04 power_limit_mw=700000 memory_bytes={self.model[1]}"
            for gpu in range(self.gpus)
        ]
        return "\n".join(head + [words for _, _, words in sorted(self.lines)]) + "\n"


class Instance:
    """A MIG device; `slices` are those of its GPU instance."""

    def __init__(self, index, gpu_instance, compute_instance, profile, slices, compute_slices, sms, mib,
                 placement=None):
        """`placement` is (id of its profile, first memory slice, memory slices); None: the driver does not tell."""
        self.index, self.gpu_instance, self.compute_instance = index, gpu_instance, compute_instance
        self.placement = placement
        self.profile, self.slices, self.compute_slices = profile, slices, compute_slices
        self.sms, self.mib = sms, mib

    def uuid(self, gpu):
        return f"MIG-{gpu:08x}-{self.gpu_instance:04x}-{self.compute_instance:04x}-8000-{self.slices:012x}"

    def entry(self, gpu):
        return ":".join(str(word) for word in (
            self.gpu_instance, self.compute_instance, self.index, self.slices, self.compute_slices, self.sms,
            self.mib * MIB, self.profile, self.uuid(gpu), *(self.placement or ())))


class Load:
    """A process in an instance, and how busy it keeps the instance: SMs, tensor pipes, memory (0 to 1). One that is
    hidden is on no list, but its memory is in use."""

    def __init__(self, pid, instance, from_ms, until_ms, sm, tensor=0.0, dram=0.0, is_hidden=False):
        self.pid, self.instance, self.from_ms, self.until_ms = pid, instance, from_ms, until_ms
        self.is_hidden = is_hidden
        self.sm, self.tensor, self.dram = sm, tensor, dram

    def watts(self, board_sms, board_bytes):
        """At full size: 200 W for the SMs, 250 W for the tensor pipes, 150 W for the memory, which has slices of its
        own (MIG User Guide, "GPU Memory Slice": an eighth of it)."""
        return (self.instance.sms / board_sms * (200 * self.sm + 250 * self.tensor)
                + self.instance.mib * MIB / board_bytes * 150 * self.dram)


# Of the MIG User Guide, "Supported MIG Profiles": memory and SMs of a profile, by its slices.
A100 = ("NVIDIA_A100-SXM4-40GB", 42_949_672_960)
A100_SLICES, A100_SMS = 7, 98
A100_PROFILES = {1: ("1g.5gb", 14, 4864), 2: ("2g.10gb", 28, 9856), 3: ("3g.20gb", 42, 19968),
                 4: ("4g.20gb", 56, 19968), 7: ("7g.40gb", 98, 40192)}
H100 = ("NVIDIA_H100_80GB_HBM3", 85_520_809_984)
H100_SLICES, H100_SMS = 7, 132
H100_PROFILES = {1: ("1g.10gb", 16, 9984), 2: ("2g.20gb", 32, 20096), 3: ("3g.40gb", 60, 40448),
                 4: ("4g.40gb", 64, 40448), 7: ("7g.80gb", 132, 81152)}
IDLE_WATTS = 80
HIDDEN_BYTES = 2048 * MIB
END = 1_000_000  # of a load that outlasts its scenario


def whole_instance(profiles, index, gpu_instance, slices, profile=None, placement=None):
    """A GPU instance with one compute instance that has all of it."""
    name, sms, mib = profiles[slices]
    return Instance(index, gpu_instance, 0, profile or name, slices, slices, sms, mib, placement)


def a100_instance(index, gpu_instance, slices):
    return whole_instance(A100_PROFILES, index, gpu_instance, slices)


def h100_instance(index, gpu_instance, slices, profile=None, placement=None):
    return whole_instance(H100_PROFILES, index, gpu_instance, slices, profile, placement)


class MigBoard:
    """A board whose energy and activity follow from what the processes in its instances do."""

    def __init__(self, scenario, gpu, slices, sms, has_gpm):
        self.scenario, self.gpu, self.slices, self.sms, self.has_gpm = scenario, gpu, slices, sms, has_gpm
        self.layouts, self.loads = [], []
        self.total_bytes = scenario.model[1]

    def layout(self, ms, instances):
        """None: not in MIG mode."""
        self.layouts.append((ms, instances))
        words = ["0 0 0 0"] if instances is None else [
            f"1 {self.slices} {self.sms} {len(instances)}", *(instance.entry(self.gpu) for instance in instances)]
        self.scenario.at(ms, "B", self.gpu, *words)

    def load(self, *arguments, **activity):
        self.loads.append(Load(*arguments, **activity))

    def at_work(self, ms):
        return [load for load in self.loads if load.from_ms <= ms < load.until_ms]

    def list(self, ms):
        loads = [load for load in self.at_work(ms) if not load.is_hidden]
        self.scenario.at(ms, "R", self.gpu, "c", len(loads), *(
            f"{load.pid}:{512 * MIB}:{load.instance.gpu_instance}:{load.instance.compute_instance}" for load in loads))

    def memory(self, ms):
        """Only of a board with a hidden process: the list shows that of others."""
        hidden = [load for load in self.loads if load.is_hidden]
        for load in hidden:
            self.scenario.at(ms, "K", self.gpu, load.instance.gpu_instance, "used",
                             HIDDEN_BYTES if load in self.at_work(ms) else 0)
        if hidden:
            used = RESERVED_BYTES + sum(HIDDEN_BYTES if load.is_hidden else 512 * MIB for load in self.at_work(ms))
            self.scenario.at(ms, "M", self.gpu, used, self.total_bytes - used, self.total_bytes)

    def activity(self, ms):
        """Since the last record, that is, before `ms`."""
        instances = {load.instance.gpu_instance for load in self.loads}
        for gpu_instance in sorted(instances):
            loads = [load for load in self.at_work(ms - 200) if load.instance.gpu_instance == gpu_instance]
            # Of the instance: each compute instance counts by its SMs.
            whole = sum(sms for _, sms in {(load.instance.compute_instance, load.instance.sms)
                                           for load in self.loads if load.instance.gpu_instance == gpu_instance})
            sm, tensor = (sum(load.instance.sms / whole * value(load) for load in loads)
                          for value in (lambda load: load.sm, lambda load: load.tensor))
            dram = min(sum(load.dram for load in loads), 1)
            values = {1: 1 if loads else 0, 2: sm, 3: sm / 2, 4: 0, 5: tensor, 7: tensor, 10: dram, 11: 0, 12: sm / 4,
                      13: 0}
            self.scenario.activity(ms, self.gpu, values, f"i={gpu_instance}")

    def play(self, until_ms):
        """The truth is in the comments at the end: joules above the idle board, by process. There are no `U`
        records: a board in MIG mode has no utilisation."""
        energy_mj, truth_mj = 1_000_000, {load.pid: 0 for load in self.loads}
        listed = None
        for ms in range(0, until_ms + 1, 200):
            if listed != (listed := [load.pid for load in self.at_work(ms)]):
                self.list(ms)
            if self.has_gpm:
                self.activity(ms)
            self.scenario.at(ms, "E", self.gpu, round(energy_mj))
            watts = IDLE_WATTS
            for load in self.at_work(ms):
                load_watts = load.watts(self.sms, self.scenario.model[1])
                truth_mj[load.pid] += load_watts * 200 * (ms < until_ms)
                watts += load_watts
            if ms % 1000 == 0:
                self.memory(ms)
                self.scenario.at(ms, "P", self.gpu, *[round(watts * 1000)] * 3)
            energy_mj += watts * 200
        self.scenario.truth(until_ms, self.gpu, truth_mj)
        return round(energy_mj)


def a100_mig():
    scenario = Scenario(1, [
        "An A100 without GPM: 1g.5gb twice, 2g.10gb, and 3g.20gb split into two compute instances.",
        "The second 1g.5gb has no process.",
    ], A100)
    board = MigBoard(scenario, 0, A100_SLICES, A100_SMS, has_gpm=False)
    split = [Instance(0, 2, 0, "1c.3g.20gb", 3, 1, 14, 19968), Instance(1, 2, 1, "2c.3g.20gb", 3, 2, 28, 19968)]
    two = Instance(2, 3, 0, "2g.10gb", 2, 2, 28, 9856)
    one = [Instance(3, 9, 0, "1g.5gb", 1, 1, 14, 4864), Instance(4, 10, 0, "1g.5gb", 1, 1, 14, 4864)]
    board.layout(0, [*split, two, *one])
    board.load(101, split[0], 0, END, sm=1.0)
    board.load(102, split[1], 0, END, sm=0.5, dram=0.3)
    board.load(103, two, 2000, 8000, sm=0.9, tensor=0.4)
    board.load(104, one[0], 0, END, sm=1.0, dram=0.6)
    board.play(12000)
    return scenario


def a100_mig_large():
    scenario = Scenario(2, [
        "A100s without GPM. GPU 0: 7g.40gb. GPU 1: 4g.20gb and 2g.10gb, and a free slice. Both idle for 2 s.",
    ], A100)
    whole = MigBoard(scenario, 0, A100_SLICES, A100_SMS, has_gpm=False)
    instance = a100_instance(0, 0, 7)
    whole.layout(0, [instance])
    whole.load(111, instance, 3000, 10000, sm=0.9, tensor=0.5, dram=0.3)
    whole.play(12000)
    mixed = MigBoard(scenario, 1, A100_SLICES, A100_SMS, has_gpm=False)
    instances = [a100_instance(0, 1, 4), a100_instance(1, 5, 2)]
    mixed.layout(0, instances)
    mixed.load(121, instances[0], 3000, END, sm=0.6, tensor=0.2)
    mixed.load(122, instances[1], 5000, END, sm=0.8, dram=0.4)
    mixed.play(12000)
    return scenario


def h100_mig():
    scenario = Scenario(3, [
        "H100s with GPM. GPU 0: seven times 1g.10gb. GPU 1: 7g.80gb. GPU 2: 4g.40gb, 2g.20gb and 1g.10gb+me, mixed.",
        "Of GPU 2, the 1g.10gb+me has no process and the 4g.40gb has two.",
    ], H100)
    small = MigBoard(scenario, 0, H100_SLICES, H100_SMS, has_gpm=True)
    instances = [h100_instance(index, 7 + index, 1) for index in range(7)]
    small.layout(0, instances)
    for index, instance in enumerate(instances):
        small.load(201 + index, instance, 0, END, sm=0.1 + 0.1 * index, tensor=0.1 * index, dram=0.5)
    small.play(12000)
    whole = MigBoard(scenario, 1, H100_SLICES, H100_SMS, has_gpm=True)
    instance = h100_instance(0, 0, 7)
    whole.layout(0, [instance])
    whole.load(211, instance, 1000, 9000, sm=0.9, tensor=0.7, dram=0.4)
    whole.play(12000)
    mixed = MigBoard(scenario, 2, H100_SLICES, H100_SMS, has_gpm=True)
    instances = [h100_instance(0, 1, 4), h100_instance(1, 5, 2), h100_instance(2, 13, 1, "1g.10gb+me")]
    mixed.layout(0, instances)
    mixed.load(221, instances[0], 0, 6000, sm=0.4, dram=0.2)
    mixed.load(222, instances[0], 3000, END, sm=0.3, tensor=0.3)
    mixed.load(223, instances[1], 0, END, sm=0.8, tensor=0.6, dram=0.1)
    mixed.play(12000)
    return scenario


def h100_mig_split():
    scenario = Scenario(1, [
        "An H100 with GPM, idle for 2 s: 3g.40gb split into two compute instances, 2g.20gb with one process until 8 s and",
        "another from 11.8 s on, 1g.10gb without a process, and a free slice.",
    ], H100)
    board = MigBoard(scenario, 0, H100_SLICES, H100_SMS, has_gpm=True)
    # The SMs of a compute instance are those of a GPU instance of as many slices.
    split = [Instance(0, 2, 0, "1c.3g.40gb", 3, 1, 16, 40448), Instance(1, 2, 1, "2c.3g.40gb", 3, 2, 32, 40448)]
    two, one = h100_instance(2, 3, 2), h100_instance(3, 9, 1)
    board.layout(0, [*split, two, one])
    board.load(231, split[0], 3000, END, sm=0.9)
    board.load(232, split[1], 3000, END, sm=0.9)
    board.load(233, two, 4000, 8000, sm=0.7, tensor=0.6, dram=0.2)
    board.load(234, two, 11800, END, sm=0.5, dram=0.5)
    board.play(15000)
    return scenario


def mig_pods():
    scenario = Scenario(2, [
        "H100s whose instances are given to pods. GPU 0: 2g.20gb (402), and 1g.10gb four times: 401, a process that is",
        "on no list (403), and two that are idle; a slice is free. GPU 1: 1g.10gb twice and 1g.10gb+me, of which the",
        "placements are known, and 411 is in the second; four slices are free. Nobody is there in the first 3 s.",
    ], H100)
    board = MigBoard(scenario, 0, H100_SLICES, H100_SMS, has_gpm=True)
    two = h100_instance(0, 3, 2)
    ones = [h100_instance(1 + index, 7 + index, 1) for index in range(4)]
    board.layout(0, [two, *ones])
    board.load(401, ones[0], 3000, 12000, sm=0.9, tensor=0.3)
    board.load(402, two, 3000, 12000, sm=0.5, dram=0.3)
    board.load(403, ones[1], 3000, 12000, sm=0.8, tensor=0.6, is_hidden=True)
    board.play(12000)
    claimed = MigBoard(scenario, 1, H100_SLICES, H100_SMS, has_gpm=True)
    ones = [h100_instance(0, 7, 1, placement=(19, 0, 1)), h100_instance(1, 8, 1, placement=(19, 2, 1)),
            h100_instance(2, 13, 1, "1g.10gb+me", placement=(20, 6, 1))]
    claimed.layout(0, ones)
    claimed.load(411, ones[1], 3000, 12000, sm=0.9)
    claimed.play(12000)
    scenario.at(12000, "X", "*", "loop")
    return scenario


def mig_change():
    scenario = Scenario(1, [
        "An H100 with 3g.40gb twice. At 4.4 s the second is destroyed, at 6.2 s two 1g.10gb take its place.",
        "At 10.2 s MIG mode is off, and 304 has the whole board.",
    ], H100)
    board = MigBoard(scenario, 0, H100_SLICES, H100_SMS, has_gpm=True)
    halves = [h100_instance(0, 1, 3), h100_instance(1, 2, 3)]
    small = [h100_instance(1, 9, 1), h100_instance(2, 10, 1)]
    board.layout(0, halves)
    board.layout(4400, halves[:1])
    board.layout(6200, [halves[0], *small])
    board.layout(10200, None)
    board.load(301, halves[0], 0, 10000, sm=0.9, tensor=0.5)
    board.load(302, halves[1], 0, 4200, sm=0.5, dram=0.5)
    board.load(303, small[0], 6600, 10000, sm=1.0)
    energy_mj = board.play(10000)
    for ms in range(10200, 14001, 200):
        scenario.at(ms, "G", 0, "1=100.000 2=90.000 5=10.000 10=5.000")
        scenario.at(ms, "U", 0, 99, 25, 1980, 60)
        scenario.at(ms, "P", 0, *[300_000] * 3)
        scenario.at(ms, "E", 0, energy_mj + 300 * (ms - 10200))
    scenario.at(10200, "R", 0, "c", 1, f"304:{512 * MIB}")
    scenario.samples(0, 10200, 14000, [304])
    return scenario


def vgpu_host():
    scenario = Scenario(1, [
        "An L40S that is the host of two vGPUs. At 5 s the second machine ends, at 7 s a third starts.",
    ], ("NVIDIA_L40S", 48_305_799_168))
    vms = {
        3251634178: ("u", "0f4f1cbb-7d3d-4a46-8a8f-4e3ba0c0a5a1", "9d0a4a52-3f0b-11ef-9f2c-0242ac120002", 4096, 60),
        3251634179: ("u", "5c7d3e1e-92a4-4b35-9a55-6d1d1c2b7c11", "a2c4b6de-3f0b-11ef-8a10-0242ac120002", 2048, 20),
        3251634180: ("d", "7", "b1b2b3b4-3f0b-11ef-8a10-0242ac120002", 1024, 40),
    }

    def active(ms):
        return [3251634178] + ([3251634179] if ms < 5000 else []) + ([3251634180] if ms >= 7000 else [])

    for ms in (0, 5000, 7000):
        scenario.at(ms, "V", 0, len(active(ms)), *(
            f"{vgpu}:{mib * MIB}:{kind}:{vm}:{uuid}"
            for vgpu, (kind, vm, uuid, mib, _) in vms.items() if vgpu in active(ms)))
        scenario.at(ms, "R", 0, "c", 0)  # what runs in a machine is not visible on its host
        scenario.memory(ms, 0, sum(vms[vgpu][3] for vgpu in active(ms)))
    energy_mj = 1_000_000
    for ms in range(0, 12001, 200):
        busy = sum(vms[vgpu][4] for vgpu in active(ms))
        scenario.at(ms, "U", 0, busy, 5, 2520, 50)
        scenario.at(ms, "P", 0, *[(60 + 2 * busy) * 1000] * 3)
        scenario.at(ms, "E", 0, energy_mj)
        energy_mj += (60 + 2 * busy) * 200
        for vgpu in active(ms):
            scenario.at(ms, "Y", 0, vgpu, START_US + ms * 1000, vms[vgpu][4], 5, 0, 0)
    return scenario


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


class Program:
    """What a program shows alone on an H200: units (0 to 1, by GPM's ids) and watts above an idle board with a
    context."""

    def __init__(self, name, watts, **units):
        self.name, self.watts = name, watts
        self.units = {1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0, 7: 0.0, 10: 0.0, 11: 0.0, 12: 0.0, 13: 0.0}
        ids = {"sm": 2, "occupancy": 3, "integer": 4, "tensor": 5, "dram": 10, "fp32": 12}
        self.units.update({ids[unit]: value for unit, value in units.items()})
        self.units[7] = self.units[5]
        self.keys = [f"{kind}={number + sum(name.encode())}" for kind, number in (("x", 1000), ("c", 2000))]


class Run:
    """A process of a program. It has a context all the time, and does `part` of what it does alone: under MPS its
    share of the SMs (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE), which limits the units and thus the watts."""

    def __init__(self, pid, program, from_ms, until_ms, part=1.0, pauses=()):
        self.pid, self.program, self.from_ms, self.until_ms = pid, program, from_ms, until_ms
        self.part, self.pauses = part, pauses

    def at_work(self, ms):
        return self.from_ms + 1000 <= ms < self.until_ms and not any(a <= ms < b for a, b in self.pauses)


def mps_partitions():
    """NVML says nothing of the percentages: lists, the server's samples, GPM and energy are all that shows."""
    scenario = Scenario(1, [
        "train, serve and sort run alone, then as clients of the MPS server 600 with 50, 30 and 10 % of the SMs. From",
        "34 s on serve has 70 % and train 20 %. Every process holds a context for a second before it works.",
    ])
    scenario.version = 3
    train = Program("train", 520, sm=0.9, occupancy=0.3, tensor=0.7, dram=0.4, fp32=0.1)
    serve = Program("serve", 260, sm=0.8, occupancy=0.5, dram=0.8, fp32=0.15)
    sort = Program("sort", 150, sm=0.7, occupancy=0.6, integer=0.5, dram=0.3)
    alone = [Run(601, train, 2000, 7000), Run(602, serve, 8000, 13000), Run(603, sort, 14000, 19000)]
    clients = [
        Run(611, train, 20000, 34000, 0.5), Run(612, serve, 20000, 34000, 0.3, pauses=[(24000, 26000)]),
        Run(613, sort, 20000, END, 0.1, pauses=[(28000, 30000)]),
        Run(621, train, 34000, END, 0.2, pauses=[(40000, 42000)]), Run(622, serve, 34000, END, 0.7),
    ]
    server, server_from_ms, until_ms = 600, 20000, 44000
    floor_watts, context_watts = 76, 122  # measured, H200
    scenario.who(server_from_ms, 0, server, server_from_ms, "/system.slice/mps.service", "nvidia-cuda-mps-server")
    for run in alone + clients:
        scenario.who(run.from_ms, 0, run.pid, run.from_ms, f"/system.slice/{run.program.name}.service",
                     run.program.name, 0, *run.program.keys)
    energy_mj, truth_mj = 1_000_000, {run.pid: 0 for run in alone + clients}
    for ms in range(0, until_ms + 1, 200):
        here = [run.pid for run in alone + clients if run.from_ms <= ms < run.until_ms]
        under_mps = [run.pid for run in clients if run.from_ms <= ms < run.until_ms]
        if ms % 1000 == 0:  # as a recorder repeats them
            scenario.processes(ms, 0, here + ([server] if ms >= server_from_ms else []))
            scenario.processes(ms, 0, under_mps, "m")
        before = [run for run in alone + clients if run.at_work(ms - 200)]
        scenario.activity(ms, 0, {key: sum(run.part * run.program.units[key] for run in before) if key != 1
                                  else float(bool(before)) for key in train.units})
        scenario.at(ms, "U", 0, 99 if before else 0, 25 if before else 0, 1980, 45)
        scenario.at(ms, "E", 0, round(energy_mj))
        now = [run for run in alone + clients if run.at_work(ms)]
        watts = (context_watts if here else floor_watts) + sum(run.part * run.program.watts for run in now)
        if now:
            pid = server if under_mps else now[0].pid
            scenario.at(ms + 100, "S", 0, pid, START_US + (ms + 100) * 1000, 99, 25, 0, 0)
        for run in now:
            truth_mj[run.pid] += run.part * run.program.watts * 200 * (ms < until_ms)
        if ms % 1000 == 0:
            scenario.at(ms, "P", 0, *[round(watts * 1000)] * 3)
        energy_mj += watts * 200
    scenario.truth(until_ms, 0, truth_mj)
    return scenario


def no_process_utilization():
    scenario = Scenario(1, ["Two processes on a board that has no utilisation of processes. 992 is alone for 4 s."])
    scenario.board(0, 16000, lambda ms: 200 if 6000 <= ms < 10000 else 400)
    scenario.processes(0, 0, [991, 992])
    scenario.processes(6000, 0, [992])
    scenario.processes(10000, 0, [991, 992])
    scenario.directive(0, 0, "error", "nvmlDeviceGetProcessUtilization", 3)
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
    every_error_code, no_counter, churn, a100_mig, a100_mig_large, h100_mig, h100_mig_split, mig_pods, mig_change,
    vgpu_host,
    mps_partitions, no_process_utilization,
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
