"""A node with AMD's or Intel's GPUs: a scripted machine (tests/fakes/drm) that runs in real time below a directory, with
the names of its pods from an API like Docker's, and their devices from a kubelet."""
import os
import subprocess
import tempfile
from contextlib import ExitStack

from gpu_node import Containers
from harness import Exporter, wait_until
from servers.kubelet import Kubelet, pod

MACHINE = os.environ.get("FAKE_DRM_MACHINE", "")
LIMIT_S = 240  # it ends by then, whatever happens
NAMESPACE = "ml"
NO_NVIDIA = {"LD_LIBRARY_PATH": "/nonexistent"}
FLAGS = ("--cri-socket=", "--podman-socket=", "--no-process-events", "--process-scan-interval=1s",
         *(f"--no-collector.{source}" for source in ("ipmi", "nvml")))


def container_id(digit):
    """Of the scripts' POD(digit)."""
    return str(digit) * 64


class DrmNode:
    """For a with statement. `pods` are the devices of each pod, by name; `digits` tells which of the script it is."""

    def __init__(self, name, pods=None, digits=None):
        self.name, self.pods, self.digits = name, pods or {}, digits or {}

    def __enter__(self):
        with ExitStack() as stack:
            self.path = stack.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-", dir="/dev/shm"))
            self.process = subprocess.Popen([MACHINE, self.name, self.path, str(LIMIT_S)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE)
            stack.callback(self.end_process)
            if self.process.stdout.readline() != b"ready\n":
                raise AssertionError("the machine does not start")
            self.write("proc/meminfo", "MemTotal: 16384000 kB\nMemAvailable: 8192000 kB\n")
            self.docker = stack.enter_context(Containers(f"{self.path}/docker.sock"))
            for pod_name, digit in self.digits.items():
                self.docker.of_id[container_id(digit)] = {
                    "Id": container_id(digit), "Names": [f"/k8s_{pod_name}"], "Image": "trainer:1", "Labels": {
                        "io.kubernetes.container.name": "worker", "io.kubernetes.pod.name": pod_name,
                        "io.kubernetes.pod.namespace": NAMESPACE,
                        "io.kubernetes.pod.uid": f"0a0a0a0a-1111-4222-8333-44444444444{digit}"},
                    "HostConfig": {"DeviceRequests": []}}
            self.kubelet = stack.enter_context(Kubelet([
                pod(NAMESPACE, pod_name, {"worker": held}) for pod_name, held in self.pods.items()]))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def end_process(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Its files stay as they are."""
        self.process.terminate()
        self.process.wait()

    def write(self, name, text):
        with open(f"{self.path}/{name}", "w") as file:
            file.write(text)

    def truth(self):
        """{("board", number): microjoules in its counter, ("process", pid): microjoules above idle}."""
        with open(f"{self.path}/truth") as file:
            words = (line.split() for line in file)
            return {(kind, int(number)): int(value) for kind, number, value in words}

    @property
    def paths(self):
        return (f"--path.procfs={self.path}/proc", f"--path.sysfs={self.path}/sys")

    @property
    def flags(self):
        return (*FLAGS, *self.paths, f"--docker-socket={self.path}/docker.sock",
                f"--pod-resources-socket={self.kubelet.socket}")

    def exporter(self, *flags):
        return Exporter(*self.flags, *flags, env=NO_NVIDIA)

    def wait_for_work(self, joules, *pids):
        wait_until(f"{pids} have caused {joules} J", lambda: all(
            self.truth()["process", pid] > joules * 10**6 for pid in pids), 60)
