"""A made-up fleet in blocks of a Prometheus, with the ledger of who used what in it.

Nodes book as wattribute does: a row begins with what is booked, an ended workload stays for a while and then becomes a
part of `retired`, whose id changes; with a state file counters survive a restart, without one all begin anew.
"""
import os
import random
import subprocess
from collections import defaultdict

from harness import prometheus_tool

RETENTION_S = 600
UJ = 1_000_000
GRAMS_PER_KWH, PRICE_PER_KWH = 400, 0.25
FAMILIES = ("workload_energy_joules", "workload_energy_uncertainty_joules", "unowned_energy_joules", "meter_energy_joules",
            "workload_emissions_grams", "unowned_emissions_grams", "meter_emissions_grams",
            "workload_cost", "unowned_cost", "meter_cost")


def escape(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels_of(**labels):
    return "{" + ",".join(f'{key}="{escape(value)}"' for key, value in labels.items() if value != "") + "}"


def write_blocks(path, directory):
    """Of an OpenMetrics file, which is removed."""
    subprocess.run([prometheus_tool("promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet",
                    "--max-block-duration=768h", path, directory], check=True, timeout=240, stdout=subprocess.DEVNULL)
    os.remove(path)


class Workload:
    def __init__(self, kind, id, begin_s, end_s, name="", namespace="", pod="", watts=300, **info):
        self.kind, self.id, self.name, self.namespace, self.pod = kind, id, name, namespace, pod
        self.begin_s, self.end_s, self.watts, self.info = begin_s, end_s, watts, info

    def labels(self):
        return {"kind": self.kind, "id": self.id, "name": self.name, "namespace": self.namespace, "pod": self.pod,
                "container": "main" if self.pod else ""}


class Node:
    """`away` are [(from, to)] without scrapes, `restarts` the moments at which the exporter starts again."""

    def __init__(self, instance, workloads, has_state=True, begin_s=0, end_s=1 << 60, away=(), restarts=(), is_pod=False):
        self.instance, self.workloads, self.has_state = instance, workloads, has_state
        self.begin_s, self.end_s, self.away, self.restarts = begin_s, end_s, away, sorted(restarts)
        self.is_pod = is_pod  # its target has the labels of the exporter's pod, which is another one after each restart
        self.gpu = f"GPU-{instance.split(':')[0]}-0"
        self.target = {"instance": instance, "job": "wattribute"}

    def is_seen(self, t_s):
        return self.begin_s <= t_s < self.end_s and not any(a <= t_s < b for a, b in self.away)


class Fleet:
    """Writes the series of nodes between two moments; `ledger` is what was booked where a scrape saw it."""

    def __init__(self, nodes, from_s, to_s, interval_s, seed=1):
        self.nodes, self.from_s, self.to_s, self.interval_s = nodes, from_s, to_s, interval_s
        self.random = random.Random(seed)
        self.series = defaultdict(lambda: defaultdict(list))  # family: labels: [(t, value)]
        self.by_workload = defaultdict(int)  # (instance, kind, id): microjoules after from_s that a scrape saw
        self.by_owner = defaultdict(int)
        self.by_instance = defaultdict(int)
        self.uncertainty = defaultdict(int)
        for node in nodes:
            self.play(node)

    def put(self, family, t_s, value, target_pod="", **labels):
        if target_pod:
            labels.update({f"exported_{key}": labels.get(key, "") for key in ("namespace", "pod", "container")})
            labels.update(namespace="monitoring", pod=target_pod, container="exporter")
        self.series[family][labels_of(**labels)].append((t_s, value))

    def play(self, node):
        rows, unowned, retired, retired_id = {}, {"idle": 0, "system": 0, "gap": 0}, defaultdict(int), ""
        seen_rows, seen_unowned = {}, dict(unowned)
        uncertain, seen_uncertain = {}, {}
        start_s = node.begin_s or self.from_s - 86400
        waiting = sorted(node.workloads, key=lambda workload: workload.begin_s)
        live, restarts = {}, list(node.restarts)
        first_s = self.from_s - 2 * self.interval_s
        is_first = True
        for t_s in range(first_s, self.to_s + 1, self.interval_s):
            if t_s < node.begin_s or t_s >= node.end_s:
                continue
            since_s = t_s - self.interval_s
            while restarts and restarts[0] <= t_s:
                start_s = restarts.pop(0)
                if not node.has_state:
                    rows, unowned, retired = {}, dict.fromkeys(unowned, 0), defaultdict(int)
                    uncertain, seen_rows, seen_uncertain = {}, {}, {}
                    seen_unowned = dict(unowned)
            while waiting and waiting[0].begin_s <= t_s:
                workload = waiting.pop(0)
                live[workload.kind, workload.id] = workload
            for key, workload in list(live.items()):
                seconds = min(t_s, workload.end_s) - max(since_s, workload.begin_s)
                if seconds > 0:
                    jitter = self.random.randrange(900, 1100)
                    gpu = seconds * workload.watts * jitter * UJ // 1000
                    for meter, tier, part in (("gpu", "active", gpu), ("gpu", "idle", gpu // 7), ("package", "active", gpu // 5)):
                        rows[key, meter, tier] = rows.get((key, meter, tier), 0) + part
                    uncertain[key] = uncertain.get(key, 0) + gpu // 50
                elif t_s - workload.end_s > RETENTION_S:
                    for meter, tier in (("gpu", "active"), ("gpu", "idle"), ("package", "active")):
                        retired[meter] += rows.pop((key, meter, tier), 0)
                        seen_rows.pop((key, meter, tier), None)
                    uncertain.pop(key, None), seen_uncertain.pop(key, None)
                    del live[key]
                    retired_id = str(t_s)
            unowned["idle"] += self.interval_s * 70 * UJ
            unowned["system"] += self.interval_s * 3 * UJ
            if node.is_seen(t_s):
                self.scrape(node, t_s, start_s, rows, unowned, retired, retired_id, live, uncertain)
                if t_s > self.from_s and not (is_first and node.has_state):
                    self.book(node, rows, seen_rows, unowned, seen_unowned, retired, uncertain, seen_uncertain)
                seen_rows, seen_unowned, seen_uncertain = dict(rows), dict(unowned), dict(uncertain)
                is_first = False

    def book(self, node, rows, seen_rows, unowned, seen_unowned, retired, uncertain, seen_uncertain):
        for (key, meter, tier), value in rows.items():
            self.by_workload[(node.instance, *key)] += value - seen_rows.get((key, meter, tier), 0)
        for key, value in uncertain.items():
            self.uncertainty[(node.instance, *key)] += value - seen_uncertain.get(key, 0)
        for owner, value in unowned.items():
            self.by_owner[owner] += value - seen_unowned.get(owner, 0)

    def scrape(self, node, t_s, start_s, rows, unowned, retired, retired_id, live, uncertain):
        target = dict(node.target, target_pod=f"wattribute-{sum(at <= t_s for at in node.restarts)}" if node.is_pod else "")
        self.put("wattribute_build_info", t_s, 1, version="0.2.0", **target)
        self.put("process_start_time_seconds", t_s, start_s, **target)
        if node.has_state:
            self.put("wattribute_state_up", t_s, 1, **target)
        sums = defaultdict(int)
        for (key, meter, tier), value in rows.items():
            labels = dict(live[key].labels(), meter=meter, meter_id=node.gpu if meter == "gpu" else "0", **target)
            self.put("wattribute_workload_energy_joules", t_s, value / UJ, tier=tier, method="shared", **labels)
            sums[meter] += value
        bills = defaultdict(int)
        for (key, meter, tier), value in rows.items():
            bills[key, meter] += value
        for (key, meter), value in bills.items():
            labels = dict(live[key].labels(), meter=meter, meter_id=node.gpu if meter == "gpu" else "0", **target)
            self.put("wattribute_workload_emissions_grams", t_s, value / UJ / 3.6e6 * GRAMS_PER_KWH, **labels)
            self.put("wattribute_workload_cost", t_s, value / UJ / 3.6e6 * PRICE_PER_KWH, currency="EUR", **labels)
        for key, value in uncertain.items():
            labels = dict(live[key].labels(), meter="gpu", meter_id=node.gpu, **target)
            self.put("wattribute_workload_energy_uncertainty_joules", t_s, value / UJ, **labels)
        for meter, value in retired.items():
            if value:
                self.put("wattribute_workload_energy_joules", t_s, value / UJ, kind="retired", id=retired_id, tier="active",
                         method="shared", meter=meter, meter_id=node.gpu if meter == "gpu" else "0", **target)
                sums[meter] += value
        for owner, value in unowned.items():
            labels = dict(target, meter="gpu", meter_id=node.gpu, owner=owner)
            self.put("wattribute_unowned_energy_joules", t_s, value / UJ, **labels)
            self.put("wattribute_unowned_emissions_grams", t_s, value / UJ / 3.6e6 * GRAMS_PER_KWH, **labels)
            self.put("wattribute_unowned_cost", t_s, value / UJ / 3.6e6 * PRICE_PER_KWH, currency="EUR", **labels)
            sums["gpu"] += value
        for meter, value in sums.items():
            labels = dict(target, meter=meter, meter_id=node.gpu if meter == "gpu" else "0")
            self.put("wattribute_meter_energy_joules", t_s, value / UJ, **labels)
            self.put("wattribute_meter_emissions_grams", t_s, value / UJ / 3.6e6 * GRAMS_PER_KWH, **labels)
            self.put("wattribute_meter_cost", t_s, value / UJ / 3.6e6 * PRICE_PER_KWH, currency="EUR", **labels)
        for key, workload in live.items():
            if any((key, meter, "active") in rows for meter in ("gpu", "package")):
                self.put("wattribute_workload_info", t_s, 1, kind=workload.kind, id=workload.id,
                         node=node.instance.split(":")[0], namespace=workload.namespace, pod=workload.pod,
                         **workload.info, **target)
        self.put("wattribute_gpu_info", t_s, 1, gpu="0", uuid=node.gpu, name="NVIDIA H200", **target)

    def write(self, directory):
        """The blocks, in directory/data."""
        path = os.path.join(directory, "fleet.om")
        counters = {f"wattribute_{name}" for name in FAMILIES}
        with open(path, "w") as file:
            for family, rows in self.series.items():
                is_counter = family in counters
                file.write(f"# TYPE {family} {'counter' if is_counter else 'gauge'}\n")
                name = family + ("_total" if is_counter else "")
                for labels, samples in rows.items():
                    file.write("".join(f"{name}{labels} {value!r} {t_s}\n" for t_s, value in samples))
            file.write("# EOF\n")
        write_blocks(path, os.path.join(directory, "data"))
