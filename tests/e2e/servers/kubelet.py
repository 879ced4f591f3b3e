"""The kubelet's pod-resources API (v1): which devices it has given to which container.

Field numbers are those of k8s.io/kubelet, pkg/apis/podresources/v1/api.proto.
"""
import concurrent.futures
import os
import tempfile

from servers import require
from servers.wire import message, text

SERVICE = "/v1.PodResourcesLister/"


def pod(namespace, name, containers):
    """`containers` are lists of devices() and claim() by container name."""
    return message({1: name, 2: namespace, 3: [
        message({1: container}) + b"".join(held) for container, held in containers.items()]})


def devices(resource, *ids, numa_node=None):
    """What a device plugin gave: devices("nvidia.com/gpu", "GPU-<uuid>::3")."""
    topology = None if numa_node is None else message({1: [numa(numa_node)]})
    return message({2: message({1: resource, 2: list(ids), 3: topology})})


def claim(name, namespace, *resources):
    """A DynamicResource: claim("gpu-claim", "ml", claimed("gpu.nvidia.com", "node1", "gpu-0"))."""
    return message({5: message({2: name, 3: namespace, 4: list(resources)})})


def claimed(driver, pool, device, cdi_device=None, share_id=None):
    cdi = cdi_device and message({1: cdi_device})
    return message({1: cdi, 2: driver, 3: pool, 4: device, 5: share_id})


def numa(node):
    # Node 0 is a message without fields, which is there all the same.
    return message({1: node})


class Kubelet:
    """`pods` is what List answers, `error` the name of a gRPC status; both may change any time."""

    def __init__(self, pods=()):
        self.pods, self.error, self.calls = list(pods), None, 0

    def __enter__(self):
        self.grpc = require.module("grpc")
        self.directory = tempfile.TemporaryDirectory(prefix="wattribute-", dir="/tmp")
        self.socket = os.path.join(self.directory.name, "kubelet.sock")
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.directory.cleanup()

    def start(self):
        """Also after stop(); the socket is a new one then, as after a restart of the kubelet."""
        self.server = self.grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((Handler(self),))
        self.server.add_insecure_port(f"unix://{self.socket}")
        self.server.start()

    def stop(self):
        self.server.stop(grace=None).wait()

    def answer(self, method, request, context):
        self.calls += 1
        if self.error:
            context.abort(self.grpc.StatusCode[self.error], "as the test wants it")
        if method == "List":
            return message({1: list(self.pods)})
        if method == "Get":
            return self.get(request, context)
        return b""  # GetAllocatableResources

    def get(self, request, context):
        wanted = (text(request, 2), text(request, 1))
        for each in self.pods:
            if (text(each, 2), text(each, 1)) == wanted:
                return message({1: each})
        context.abort(self.grpc.StatusCode.NOT_FOUND, f"pod {'/'.join(wanted)} not found")


class Handler:
    """Every method of the service; gRPC answers UNIMPLEMENTED for others."""

    def __init__(self, kubelet):
        self.kubelet = kubelet

    def service(self, call):
        method = call.method.removeprefix(SERVICE)
        if method not in ("List", "Get", "GetAllocatableResources"):
            return None
        return self.kubelet.grpc.unary_unary_rpc_method_handler(
            lambda request, context: self.kubelet.answer(method, request, context))
