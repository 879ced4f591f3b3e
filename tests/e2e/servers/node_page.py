"""The page of src/page with an API of its own below it, for nodes that no trace can play: a thousand workloads, and
whatever a test puts into its document."""
import json
import math
import os
import threading
import time

from harness import SOURCE_ROOT
from servers import https

PAGE = os.path.join(SOURCE_ROOT, "src", "page")
TYPES = {".css": "text/css", ".js": "text/javascript", "": "text/plain"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def workload(number, watts, **more):
    """One pod on GPU 0."""
    joules = watts * 3600.0
    return {"kind": "pod", "id": f"id-{number:04}", "name": f"trainer-{number:04}", "namespace": "ml", "container": "main",
            "watts": watts, "energy_joules": joules, "uncertainty_joules": joules / 50, "gpu_memory_bytes": 2 << 30,
            "meters": [{"meter": 0, "watts": watts, "energy_joules": joules, "uncertainty_joules": joules / 50, "confidence": 0.9}],
            "processes": [{"pid": 1000 + number, "gpu": 0, "name": "python3", "energy_joules": joules}], **more}


def document(workloads, generation=1, now=None, idle=70.0):
    """The node's document, whose books balance."""
    booked = sum(each["watts"] for each in workloads) + idle
    joules = sum(each["energy_joules"] for each in workloads) + idle * 3600
    return {"api": 1, "version": "mock", "node": "node-a", "time": now or time.time(), "start_time": 1.0, "generation": generation,
            "watts": booked, "meters": [{
                "meter": "gpu", "meter_id": "GPU-0", "gpu": 0, "watts": booked, "measured_watts": booked + 1, "energy_joules": joules,
                "imbalance_joules": 0, "unowned": {
                    "idle": {"watts": idle, "energy_joules": idle * 3600}, "system": {"watts": 0, "energy_joules": 0},
                    "unattributed": {"watts": 0, "energy_joules": 0}, "gap": {"watts": 0, "energy_joules": 0}}}],
            "workloads": workloads, "gpus": [{"gpu": 0, "uuid": "GPU-0", "name": "Test GPU", "sharing": "time_sliced"}],
            "sources": [{"name": "nvml/0", "up": True, "age_seconds": 0.1, "errors": 0}]}


def history(doc, points=720, interval=5, largest=12):
    """An hour before the document, of its largest workloads and the rest."""
    def wave(watts, phase):
        return [round(watts * (1 + 0.3 * math.sin(i / 40 + phase)), 3) for i in range(points)]
    ranked = sorted(doc["workloads"], key=lambda each: -each["watts"])
    series = [{**{key: each.get(key) for key in ("kind", "id", "name", "namespace")}, "watts": wave(each["watts"], i)}
              for i, each in enumerate(ranked[:largest])]
    others = wave(sum(each["watts"] for each in ranked[largest:]), 0)
    idle = [70.0] * points
    booked = [sum(values) for values in zip(others, idle, *(each["watts"] for each in series))]
    return {"api": 1, "interval_seconds": interval, "start_time": doc["time"] - points * interval, "count": points, "series": series,
            "others": others, "unowned": {"idle": idle}, "booked": booked, "measured": booked}


class NodePage(https.Service):
    """For a with statement. `prefix` is where a proxy would have put it; without `has_events` there are only polls, and
    without `past` no history."""

    EMPTY = {"api": 1, "interval_seconds": 5, "start_time": 0, "count": 0, "series": []}

    def __init__(self, doc, prefix="", has_events=True, past=EMPTY, **options):
        self.doc, self.prefix, self.has_events, self.past = doc, prefix, has_events, past
        self.check = {"state": "running"}
        self.requests = []
        self.changed = threading.Condition()
        super().__init__(Request, **options)
        self.url += prefix + "/"

    def __exit__(self, *_):
        self.stopped.set()
        with self.changed:
            self.changed.notify_all()
        super().__exit__()

    def show(self, doc):
        with self.changed:
            self.doc = doc
            self.changed.notify_all()


class Request(https.Request):
    def handle_any(self):
        service = self.service
        path = self.path.removeprefix(service.prefix)
        service.requests.append(path)
        if path == "/":
            self.reply_file("index.html", "text/html")
        elif path.startswith("/page/"):
            name = path.removeprefix("/page/")
            self.reply_file(name, TYPES[os.path.splitext(name)[1]])
        elif path == "/api/v1/node":
            self.reply_json(service.doc)
        elif path == "/api/v1/history":
            self.reply_json(service.past or {"error": "off"}, 200 if service.past else 404)
        elif path == "/api/v1/check":
            self.reply_json(service.check, 202 if "state" in service.check else 200)
        elif path == "/api/v1/events":
            if service.has_events:
                self.stream_events()
            else:
                self.reply_json({"error": "too many"}, 503)
        else:
            self.reply(b"not found\n", 404)

    def reply_json(self, value, status=200):
        self.reply(json.dumps(value).encode(), status, {"Cache-Control": "no-store"})

    def reply_file(self, name, kind):
        with open(os.path.join(PAGE, name), encoding="utf-8") as file:
            text = file.read().replace("{{version}}", "mock").replace("{{metrics_path}}", "/metrics")
        self.reply(text.encode(), 200, {"Content-Type": kind + "; charset=utf-8", "Content-Security-Policy": POLICY})

    def stream_events(self):
        service, sent = self.service, None
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b"retry: 500\n\n")
        while not service.stopped.is_set():
            with service.changed:
                service.changed.wait_for(lambda: service.doc is not sent or service.stopped.is_set(), 15)
                sent = service.doc
            self.chunk(b"event: node\ndata: " + json.dumps(sent).encode() + b"\n\n")
