"""Reads the first NVIDIA GPU by NVML and writes what it says as a `wattribute-trace 1`, ten times a second.

Finer than `wattribute record`, which reads the counter once a second: energy, power, utilisation and process
samples every 100 ms, GPM every 200 ms, process lists and memory every 300 ms. The format is in
docs/trace-format.md.
"""
import bisect
import ctypes
import gzip
import threading
import time

NOT_FOUND, INSUFFICIENT_SIZE = 6, 7
FIELD_POWER_AVERAGE, FIELD_POWER_INSTANT = 185, 186
CLOCK_SM, TEMPERATURE_GPU = 1, 0
GPM_VERSION, GPM_METRICS_MAX = 1, 333  # the largest header's; older drivers fit
GPM_METRICS = (1, 2, 3, 4, 5, 7, 10, 11, 12, 13)
PROCESSES_MAX, SAMPLES_MAX = 1024, 1024
TICK_S = 0.1  # of the energy counter
LEAD_S = 0.025  # a round begins so long before the next tick, and ends with it
LATE_S = 0.06  # a tick that is so late is not waited for

u32, u64 = ctypes.c_uint, ctypes.c_ulonglong


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", u32), ("memory", u32)]


class Memory(ctypes.Structure):
    _fields_ = [("total", u64), ("free", u64), ("used", u64)]  # used includes reserved


class Process(ctypes.Structure):
    _fields_ = [("pid", u32), ("used_memory", u64), ("gpu_instance", u32), ("compute_instance", u32)]


class ProcessSample(ctypes.Structure):
    _fields_ = [("pid", u32), ("timestamp_us", u64), ("sm", u32), ("memory", u32), ("encoder", u32),
                ("decoder", u32)]


class FieldValue(ctypes.Structure):
    _fields_ = [("field_id", u32), ("scope_id", u32), ("timestamp_us", ctypes.c_longlong),
                ("latency_us", ctypes.c_longlong), ("value_type", ctypes.c_int), ("result", ctypes.c_int),
                ("value", u64)]


class GpmMetric(ctypes.Structure):
    _fields_ = [("id", u32), ("result", ctypes.c_int), ("value", ctypes.c_double), ("short_name", ctypes.c_void_p),
                ("long_name", ctypes.c_void_p), ("unit", ctypes.c_void_p)]


class GpmMetrics(ctypes.Structure):
    _fields_ = [("version", u32), ("count", u32), ("begin", ctypes.c_void_p), ("end", ctypes.c_void_p),
                ("metrics", GpmMetric * GPM_METRICS_MAX)]


class GpmSupport(ctypes.Structure):
    _fields_ = [("version", u32), ("is_supported", u32)]


SIZES = {Process: 24, ProcessSample: 32, FieldValue: 40, GpmMetric: 40, GpmMetrics: 13344}
for layout, size in SIZES.items():
    assert ctypes.sizeof(layout) == size, layout


class Gpu:
    """The first GPU. What it does not support reads as None."""

    def __init__(self, library="libnvidia-ml.so.1"):
        self.nvml = ctypes.CDLL(library)
        self.device = ctypes.c_void_p()
        self.must("nvmlInit_v2")
        self.must("nvmlDeviceGetHandleByIndex_v2", u32(0), ctypes.byref(self.device))
        self.last_sample_us = 0
        self.gpm_metrics, self.gpm_samples = GpmMetrics(), self.open_gpm()

    def call(self, name, *arguments):
        function = getattr(self.nvml, name, None)
        return function(*arguments) if function else NOT_FOUND

    def must(self, name, *arguments):
        code = self.call(name, *arguments)
        if code != 0:
            raise OSError(f"{name}: NVML error {code}")

    def number(self, name, *arguments, of=u32):
        value = of()
        if self.call(name, self.device, *arguments, ctypes.byref(value)) != 0:
            return None
        return value if isinstance(value, ctypes.Structure) else value.value

    def text(self, name, *before):
        value = ctypes.create_string_buffer(96)
        return value.value.decode() if self.call(name, *before, value, u32(80)) == 0 else ""

    def describe(self):
        words = [f"uuid={self.text('nvmlDeviceGetUUID', self.device)}",
                 f"name={self.text('nvmlDeviceGetName', self.device).replace(' ', '_')}",
                 f"driver={self.text('nvmlSystemGetDriverVersion')}"]
        limit_mw, memory = self.number("nvmlDeviceGetEnforcedPowerLimit"), self.memory()
        if limit_mw:
            words.append(f"power_limit_mw={limit_mw}")
        if memory:
            words.append(f"memory_bytes={memory.total}")
        return "gpu 0 " + " ".join(words)

    def energy_mj(self):
        return self.number("nvmlDeviceGetTotalEnergyConsumption", of=u64)

    def power_mw(self):
        """As the driver averages it, field 185 and field 186; a field that is not there is the first."""
        usage = self.number("nvmlDeviceGetPowerUsage")
        fields = (FieldValue * 2)()
        fields[0].field_id, fields[1].field_id = FIELD_POWER_AVERAGE, FIELD_POWER_INSTANT
        code = self.call("nvmlDeviceGetFieldValues", self.device, ctypes.c_int(2), fields)
        return usage, *(f.value & 0xffffffff if code == 0 and f.result == 0 else usage for f in fields)

    def utilisation(self):
        """GPU and memory percent, SM clock in MHz, temperature in C."""
        rates = self.number("nvmlDeviceGetUtilizationRates", of=Utilization)
        if rates is None:
            return None
        return (rates.gpu, rates.memory, self.number("nvmlDeviceGetClockInfo", ctypes.c_int(CLOCK_SM)) or 0,
                self.number("nvmlDeviceGetTemperature", ctypes.c_int(TEMPERATURE_GPU)) or 0)

    def memory(self):
        return self.number("nvmlDeviceGetMemoryInfo", of=Memory)

    def forget(self):
        """What happened before now is not part of the next samples() and gpm()."""
        self.last_sample_us = time.time_ns() // 1000
        self.gpm()

    def samples(self):
        """The records of process utilisation that are new since the last call."""
        records, count = (ProcessSample * SAMPLES_MAX)(), u32(SAMPLES_MAX)
        code = self.call("nvmlDeviceGetProcessUtilization", self.device, records, ctypes.byref(count),
                         u64(self.last_sample_us))
        if code != 0:  # NOT_FOUND: nothing new
            return []
        new = sorted((r for r in records[:count.value] if r.pid != 0 and r.timestamp_us > self.last_sample_us),
                     key=lambda r: r.timestamp_us)
        if new:
            self.last_sample_us = new[-1].timestamp_us
        return new

    def processes(self, which):
        records, count = (Process * PROCESSES_MAX)(), u32(PROCESSES_MAX)
        code = self.call(f"nvmlDeviceGet{which}RunningProcesses_v3", self.device, ctypes.byref(count), records)
        return records[:count.value] if code == 0 else None

    def open_gpm(self):
        support = GpmSupport(version=GPM_VERSION)
        if self.call("nvmlGpmQueryDeviceSupport", self.device, ctypes.byref(support)) != 0 or not support.is_supported:
            return None
        samples = [ctypes.c_void_p(), ctypes.c_void_p()]
        for sample in samples:
            self.must("nvmlGpmSampleAlloc", ctypes.byref(sample))
        self.must("nvmlGpmSampleGet", self.device, samples[0])
        return samples

    def gpm(self):
        """Percent by metric since the last call; nan where there is none."""
        if not self.gpm_samples:
            return None
        begin, end = self.gpm_samples
        if self.call("nvmlGpmSampleGet", self.device, end) != 0:
            return None
        self.gpm_samples = [end, begin]
        get = self.gpm_metrics
        get.version, get.count, get.begin, get.end = GPM_VERSION, len(GPM_METRICS), begin, end
        for metric, wanted in zip(get.metrics, GPM_METRICS):
            metric.id, metric.result, metric.value = wanted, -1, 0
        if self.call("nvmlGpmMetricsGet", ctypes.byref(get)) != 0:
            return None
        return [(m.id, m.value if m.result == 0 else float("nan")) for m in get.metrics[:len(GPM_METRICS)]]


class Recorder(threading.Thread):
    """Records from start() to stop()."""

    def __init__(self, gpu):
        super().__init__(daemon=True)
        self.gpu, self.lines, self.energy = gpu, ["wattribute-trace 1", gpu.describe()], []
        self.ending, self.failure, self.last_mj = threading.Event(), None, None

    def run(self):
        try:
            self.gpu.forget()
            rounds, next_tick = 0, time.monotonic() + TICK_S
            while not self.ending.wait(max(0.0, next_tick - LEAD_S - time.monotonic())):
                self.read(rounds)
                next_tick = time.monotonic() + TICK_S
                rounds += 1
        except Exception as error:  # told by stop(), in the thread that asked for the recording
            self.failure = error

    def read(self, tick):
        t_us = time.time_ns() // 1000

        def add(kind, *fields):
            self.lines.append(" ".join(map(str, (t_us, kind, 0, *fields))))

        power, use = self.gpu.power_mw(), self.gpu.utilisation()
        if power[0] is not None:
            add("P", *power)
        if use:
            add("U", *use)
        for s in self.gpu.samples():
            add("S", s.pid, s.timestamp_us, s.sm, s.memory, s.encoder, s.decoder)
        if tick % 3 == 0:
            self.add_lists(add)
        if tick % 2 == 0 and tick > 0:  # shorter than 100 ms there is nothing but nan
            metrics = self.gpu.gpm()
            if metrics:
                add("G", *(f"{metric}={value:.3f}" for metric, value in metrics))
        energy_mj = self.await_tick()
        if energy_mj is not None:  # the call takes some milliseconds: the value is of its end
            t_us = time.time_ns() // 1000
            add("E", energy_mj)
            self.energy.append((t_us, energy_mj / 1e3))

    def await_tick(self):
        """The counter just after it moved: read at any other time it would be stale by up to a tick."""
        began, before = time.monotonic(), self.last_mj
        self.last_mj = self.gpu.energy_mj()
        while self.last_mj is not None and self.last_mj == before and time.monotonic() - began < LEAD_S + LATE_S:
            self.last_mj = self.gpu.energy_mj()
        return self.last_mj

    def add_lists(self, add):
        for letter, which in (("c", "Compute"), ("m", "MPSCompute")):
            processes = self.gpu.processes(which)
            if processes is not None:
                add("R", letter, len(processes), *(f"{p.pid}:{p.used_memory}" for p in processes))
        memory = self.gpu.memory()
        if memory:
            add("M", memory.used, memory.free, memory.total)

    def joules_at(self, t_us):
        return joules_at(self.energy, t_us)

    def watts(self, from_us, until_us):
        return (self.joules_at(until_us) - self.joules_at(from_us)) / (until_us - from_us) * 1e6

    def stop(self):
        self.ending.set()
        self.join()
        if self.failure:
            raise self.failure

    def write(self, path):
        with gzip.open(path, "wt", compresslevel=6) as file:
            file.write("\n".join(self.lines) + "\n")


def joules_at(energy, t_us):
    """The counter at a time, between two of its readings."""
    i = min(max(bisect.bisect(energy, (t_us, 0.0)), 1), len(energy) - 1)
    (t0, j0), (t1, j1) = energy[i - 1], energy[i]
    return j0 + (j1 - j0) * (t_us - t0) / (t1 - t0)
