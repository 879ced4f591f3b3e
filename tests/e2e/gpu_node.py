"""A node with two fake GPUs, for queries: a pod, a container and a Slurm job, all real processes in cgroups of those
shapes, are on them; a second container was given one of them and is not seen."""
import json
import os
import secrets
import socketserver
import subprocess
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from harness import WORKLOAD_ENERGY, Trace
from servers import cgroups, require

FAKE = os.environ["FAKE_NVML_DIR"]
UUIDS = ["GPU-79185bc1-0000-4000-8000-00000000000%d" % gpu for gpu in range(2)]
MIB, GIB = 1 << 20, 1 << 30
RESERVED = 644939776  # what the fake driver keeps for itself
POD, CONTAINER, JOB = 100, 101, 102  # pids of the trace
POD_NAME, NAMESPACE, JOB_ID = "training-job", "ml", "4711"
OWNERS = (("pod", POD_NAME), ("container", "web"), ("slurm", JOB_ID))  # kind and name
# A model, also where this machine has a meter.
NO_METERS = ["--model.idle-watts=5", "--model.full-watts=50",
             *(f"--no-collector.{source}" for source in ("rapl", "hwmon", "cray"))]


class Containers:
    """As much of Docker's API as the exporter asks for; `of_id` has what each container is, in both answers."""

    def __init__(self, path):
        self.of_id = {}
        containers = self.of_id

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.path.split("?")[0].split("/")[3:-1]  # /v1.40/containers[/ID]/json
                answer = containers.get(asked[0]) if asked else list(containers.values())
                body = json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = socketserver.ThreadingUnixStreamServer(path, Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)

    def add(self, name, labels=None, requests=()):
        ident = secrets.token_hex(32)
        self.of_id[ident] = {"Id": ident, "Names": [f"/{name}"], "Image": "trainer:1", "Labels": labels or {},
                             "HostConfig": {"DeviceRequests": list(requests)}}
        return ident

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@contextmanager
def process_in(group, command=("sleep", "3600"), **env):
    """The pid of a process that sleeps in this cgroup."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                               env={**os.environ, **env})
    try:
        with cgroups.making(group):
            cgroups.enter(group, process.pid)
        yield process.pid
    finally:
        process.kill()
        process.wait()
        cgroups.remove(group)
        cgroups.sweep()


def run_pod(stack, docker, namespace, name, container="worker", **options):
    """A pod of one container, as cri-dockerd names it: the container's id, and the pid of its process."""
    uid = str(uuid.uuid4())
    ident = docker.add(f"k8s_{name}", labels={
        "io.kubernetes.container.name": container, "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid})
    return ident, stack.enter_context(process_in(f"/kubepods/pod{uid}/{ident}", **options))


def write_pids(path, pids):
    """`pids` maps those of a trace to real ones; returns the path, for FAKE_NVML_PIDS."""
    with open(path, "w") as file:
        file.write("".join(f"{traced} {pid}\n" for traced, pid in pids.items()))
    return path


def write_scenario(path):
    """GPU 0 is shared by all three; on GPU 1 the pod is alone, and more memory is in use than it has."""
    trace = Trace()
    for gpu, ident in enumerate(UUIDS):
        trace.gpu(gpu, uuid=ident.encode())
    trace.work(0, [POD, CONTAINER, JOB], seconds=20, watts=300)
    trace.work(1, [POD], seconds=20, watts=500)
    for tick in range(201):
        for gpu, used in enumerate((3 * MIB, 5 * GIB)):
            trace.add(tick / 10, "M", gpu, used + RESERVED, 140 * GIB - used, 140 * GIB + RESERVED)
    trace.add(20, "X", 0, b"loop")
    with open(path, "wb") as file:
        file.write(trace.body().replace(b" X 0 loop", b" X * loop"))


def populate(stack, directory, meters=tuple(NO_METERS), command=("sleep", "3600")):
    """The node: flags and environment of an exporter that sees it. Each of its processes runs the command."""
    require.root()
    require.writable(cgroups.hierarchies())
    docker = stack.enter_context(Containers(f"{directory}/docker.sock"))
    web = docker.add("web")
    docker.add("hidden", requests=[{"DeviceIDs": [UUIDS[1]], "Capabilities": [["gpu"]]}])
    write_pids(f"{directory}/pids", {
        POD: run_pod(stack, docker, NAMESPACE, POD_NAME, command=command)[1],
        CONTAINER: stack.enter_context(process_in(f"/docker/{web}", command)),
        JOB: stack.enter_context(process_in(
            f"/slurm_{secrets.token_hex(4)}/uid_0/job_{JOB_ID}/step_0/task_0", command, SLURM_JOB_ID=JOB_ID,
            SLURM_JOB_NAME="tune", SLURM_JOB_ACCOUNT="physics", SLURM_STEP_GPUS="0")),
    })
    write_scenario(f"{directory}/scenario")
    return ([*meters, "--process-scan-interval=1s", f"--docker-socket={directory}/docker.sock", "--cri-socket=",
             "--podman-socket=", "--pod-resources-socket="],
            {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": f"{directory}/scenario",
             "FAKE_NVML_PIDS": f"{directory}/pids"})


def is_complete(page):
    """All of them have names and joules, and memory is inferred."""
    rows = [labels for labels, value in page.values(WORKLOAD_ENERGY) if value > 0]
    return (set(OWNERS)
            <= {(labels["kind"], labels["name"]) for labels in rows}
            and page.values("container_gpu_memory_bytes", method="inference"))
