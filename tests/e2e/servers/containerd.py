"""containerd with its CRI plugin: pods as the kubelet has them made, without Kubernetes."""
import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from servers import busybox, cgroups, require
from servers.container import Container
from servers.server import Server
from servers.wire import fields, message, text, text_map

CONFIG = """
version = 2
root = "{directory}/root"
state = "{directory}/state"
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  # Root may lack CAP_SYS_RESOURCE, which a negative oom_score_adj needs.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""
IMAGE = "localhost/busybox:test"
NODE = 2  # NamespaceMode: the node's own network, which needs no CNI
SECONDS = 30


class Pod(NamedTuple):
    namespace: str
    name: str
    uid: str
    sandbox_id: str
    containers: list

    def container(self, name):
        return next(container for container in self.containers if container.name == name)


class Containerd(Server):
    """Processes of a pod sit in <cgroup_parent>/<container id>, by default as burstable pods do."""

    programs = ("containerd", "ctr", "runc")
    channel = None

    def __init__(self):
        self.lock = threading.Lock()

    def require(self):
        self.grpc = require.module("grpc")
        super().require()

    def set_up(self):
        self.stage.write("config.toml", CONFIG.format(directory=self.stage.directory, image=IMAGE))
        self.start()
        image = self.stage.write("image.tar", busybox.oci_tar(IMAGE))
        self.stage.run(self.program["ctr"], "--address", self.socket, "--namespace", "k8s.io",
                       "images", "import", "--snapshotter", "native", image)

    def __exit__(self, *_):
        if self.channel:
            self.channel.close()
        super().__exit__()

    @property
    def socket(self):
        return self.stage.path("containerd.sock")

    def start(self):
        """Also after daemon.stop(): what runs in pods goes on meanwhile."""
        self.daemon = self.stage.start(self.program["containerd"], "--log-level", "warn",
                                       "--config", self.stage.path("config.toml"))
        if self.channel:
            self.channel.close()
        # After a refused connection gRPC would wait for seconds.
        self.daemon.wait_for_socket(self.socket)
        self.channel = self.grpc.insecure_channel(f"unix://{self.socket}")
        self.daemon.wait_until("CRI answers", self.is_up)

    def is_up(self):
        try:
            return self.call("Version")
        except self.grpc.RpcError:  # "server is not initialized yet"
            return False

    def run_pod(self, namespace, name, containers, uid=None, cgroup_parent=None, labels=None,
                **options):
        """A pod with these containers, labelled as by the kubelet; `labels` are the pod's own. Others as of
        run_container."""
        uid = uid or str(uuid.uuid4())
        cgroup_parent = cgroup_parent or f"/kubepods/burstable/pod{uid}"
        identity = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                    "io.kubernetes.pod.uid": uid}
        config = message({
            1: message({1: name, 2: uid, 3: namespace}),
            6: {**(labels or {}), **identity},
            7: {"kubernetes.io/config.source": "api"},
            8: message({1: cgroup_parent, 2: message({1: message({1: NODE})})})})
        with cgroups.making(cgroup_parent):
            sandbox_id = text(self.call("RunPodSandbox", {1: config}), 1)
            self.own(f"{cgroup_parent}/{sandbox_id}")
            return Pod(namespace, name, uid, sandbox_id, [
                self.run_container(sandbox_id, config, container, identity, cgroup_parent, **options)
                for container in containers])

    def run_pods(self, pods, **options):
        """run_pod for each (namespace, name, containers), all at once."""
        with ThreadPoolExecutor(len(pods)) as pool:
            return [each.result() for each in [pool.submit(self.run_pod, *pod, **options) for pod in pods]]

    def own(self, group):
        with self.lock:
            self.stage.own(group)

    def run_container(self, sandbox_id, sandbox_config, name, identity, cgroup_parent, command=busybox.SLEEP,
                      image=IMAGE, mounts=(), capabilities=None):
        """`mounts` are (path of the host, path in the container), read-only as of Kubernetes' `readOnly`;
        `capabilities` are those to `add` and to `drop`."""
        config = message({
            1: message({1: name}),
            2: message({1: image}),
            3: list(command),
            7: [message({1: inside, 2: outside, 3: True}) for outside, inside in mounts],
            9: {"io.kubernetes.container.name": name, **identity},
            10: {"io.kubernetes.container.restartCount": "0",
                 "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
                 "io.kubernetes.container.terminationMessagePolicy": "File",
                 "io.kubernetes.pod.terminationGracePeriod": "30"},
            15: message({2: message({
                1: message({1: capabilities["add"], 2: capabilities["drop"]}) if capabilities else None,
                3: message({1: NODE})})})})
        container_id = text(self.call("CreateContainer", {
            1: sandbox_id, 2: config, 3: sandbox_config}), 1)
        self.own(f"{cgroup_parent}/{container_id}")
        self.call("StartContainer", {1: container_id})
        status = self.call("ContainerStatus", {1: container_id, 2: True})
        return Container(container_id, name, json.loads(text_map(status, 2)["info"])["pid"])

    def sandbox_pid(self, pod):
        status = self.call("PodSandboxStatus", {1: pod.sandbox_id, 2: True})
        return json.loads(text_map(status, 2)["info"])["pid"]

    def remove_pod(self, pod):
        self.call("StopPodSandbox", {1: pod.sandbox_id})
        self.call("RemovePodSandbox", {1: pod.sandbox_id})

    def image_id(self):
        """The digest by which the kubelet has the image of every container started."""
        return text(fields(self.call("ImageStatus", {1: message({1: IMAGE})}, "ImageService"))[1][0], 1)

    def exec(self, container, *command):
        """Exit status, and what it wrote to stdout and stderr."""
        found = fields(self.call("ExecSync", {1: container.id, 2: list(command), 3: SECONDS}))
        return found.get(3, [0])[0], (found.get(1, [b""])[0] + found.get(2, [b""])[0]).decode()

    def call(self, method, request=None, service="RuntimeService"):
        """The bytes that CRI answers; fields are numbered as in k8s.io/cri-api's runtime/v1."""
        call = self.channel.unary_unary(f"/runtime.v1.{service}/{method}")
        return call(message(request or {}), timeout=SECONDS, wait_for_ready=True)
