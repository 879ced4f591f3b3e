"""A daemon's /api/v1/node, with whatever document a test wants it to have, on loopback."""
import json
import time

from servers import https

GIB = 2**30


def document(**changes):
    """A node with a shared H200, its processors, and workloads of every sort. Its watts add up."""
    def on(meter, watts, joules, off, confidence=None):
        share = {"meter": meter, "watts": watts, "energy_joules": joules, "uncertainty_joules": off}
        return share if confidence is None else {**share, "confidence": confidence}

    def workload(kind, id, name, *shares, **more):
        found = {"kind": kind, "id": id, "name": name, "meters": list(shares)}
        if shares and "watts" in shares[0]:
            found["watts"] = round(sum(share["watts"] for share in shares), 3)
        found["energy_joules"] = sum(share["energy_joules"] for share in shares)
        found["uncertainty_joules"] = sum(share["uncertainty_joules"] for share in shares)
        found["emissions_grams"] = found["energy_joules"] * 56.1 / 3.6e6
        found["cost"] = found["energy_joules"] * 0.21 / 3.6e6
        return {**found, **more}
    workloads = [
        workload("container", "c0ffee", "old-experiment", on(0, 1.122, 201.5, 2.5), gpu_memory_bytes=38.5 * GIB,
                 cpu_seconds=0.25, memory_bytes=2.5 * GIB),
        workload("pod", "8f1c", "training-job", on(0, 172.874, 31412.25, 680.5, 0.93), on(1, 20.5, 3500.0, 90.0),
                 namespace="ml", pod="training-job", container="worker", gpu_memory_bytes=61.2 * GIB, cpu_seconds=310.5,
                 memory_bytes=12.0 * GIB, details={"image": "registry.example/train:7"},
                 processes=[{"pid": 4242, "gpu": 0, "name": "python3", "energy_joules": 30000.25,
                             "uncertainty_joules": 600.5, "gpu_memory_bytes": 60.2 * GIB},
                            {"pid": 4243, "gpu": 0, "name": "dataloader", "energy_joules": 1412.0,
                             "uncertainty_joules": 80.0, "gpu_memory_bytes": GIB}],
                 gpus=[{"gpu": 0, "uuid": "GPU-79185bc1", "source": "kubelet"}]),
        workload("pod", "9a2d", "llm-server-0", on(0, 51.014, 9300.0, 250.0, 0.9), namespace="chat",
                 gpu_memory_bytes=20.0 * GIB, cpu_seconds=40.0, memory_bytes=8.0 * GIB),
        workload("slurm", "4711", "4711", on(0, 17.818, 3200.0, 120.0), cpu_seconds=12.0,
                 details={"user": "alice", "account": "physics", "job_id": "4711", "job_name": "relax"}),
        workload("unit", "gpu-health.service", "gpu-health.service", on(0, 43.705, 900.0, 45.0), cpu_seconds=3.0),
        {"kind": "user", "id": "1001", "name": "carol", "energy_joules": 77.0, "uncertainty_joules": 3.0},
    ]
    booked = sum(each.get("watts", 0) for each in workloads)
    nobody = {owner: {"watts": watts, "energy_joules": joules} for owner, watts, joules in
              (("idle", 12.1, 906.0), ("system", 0, 0), ("unattributed", 2.25, 12.2), ("gap", 0, 0))}
    on_gpu = sum(share["watts"] for each in workloads for share in each.get("meters", ()) if share["meter"] == 0)
    return {"api": 1, "version": "0.1.0", "node": "gpu-07", "time": time.time(), "start_time": 1763490000.5,
            "generation": 1, "currency": "EUR", "price_per_kwh": 0.21, "grams_per_kwh": 56.1,
            "watts": round(booked + 14.35 + 5, 3),
            "meters": [{"meter": "gpu", "meter_id": "GPU-79185bc1", "gpu": 0, "watts": round(on_gpu + 14.35, 3),
                        "measured_watts": 302.5, "energy_joules": 45932.0, "unowned": nobody},
                       {"meter": "package", "meter_id": "0", "modelled": False, "watts": 25.5, "measured_watts": 25.25,
                        "energy_joules": 4000.0, "unowned": {"idle": {"watts": 5, "energy_joules": 500}}}],
            "workloads": workloads,
            "gpus": [{"gpu": 0, "uuid": "GPU-79185bc1", "name": "NVIDIA H200", "driver": "550.90", "sharing": "time_sliced",
                      "utilisation_percent": 98, "memory_used_bytes": 119.7 * GIB, "memory_total_bytes": 140.4 * GIB,
                      "temperature_celsius": 43, "watts": 302.5}],
            "sources": [{"name": "nvml/0", "up": True, "age_seconds": 0.4, "errors": 0}], **changes}


class NodeApi(https.Service):
    """`document` may be replaced at any time; a function is asked each time, and bytes are sent as they are. The time of
    each reply is its own."""

    def __init__(self, document, **more):
        self.document, self.status, self.requests = document, 200, 0
        super().__init__(Request, **more)

    def body(self):
        document = self.document() if callable(self.document) else self.document
        return document if isinstance(document, bytes) else json.dumps({**document, "time": time.time()}).encode()


class Request(https.Request):
    def handle_any(self):
        self.service.requests += 1
        self.reply(self.service.body(), self.service.status if self.path == "/api/v1/node" else 404)
