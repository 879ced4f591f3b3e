"""The Kubernetes API server, as far as names need it: list and watch of pods, over TLS, for a bearer token."""
import json
import os
import threading
import time
import urllib.parse

from servers import https


class ServiceAccount:
    """The directory as the kubelet keeps it: links through ..data, which is replaced whole."""

    def __init__(self, directory, token, authority):
        self.directory, self.writes = directory, 0
        os.mkdir(directory, 0o755)
        for name in ("token", "ca.crt"):
            os.symlink(f"..data/{name}", os.path.join(directory, name))
        self.write(token, authority)

    def write(self, token, authority, mode=0o644):
        self.writes += 1
        data = f"..data_{self.writes}"
        os.mkdir(self.path(data), 0o755)
        with open(authority.crt, "rb") as file:
            certificate = file.read()
        for name, content, its_mode in (("token", token.encode(), mode), ("ca.crt", certificate, 0o644)):
            with open(self.path(data, name), "wb") as file:
                file.write(content)
            os.chmod(self.path(data, name), its_mode)
        os.symlink(data, self.path("..data_tmp"))
        os.rename(self.path("..data_tmp"), self.path("..data"))

    def path(self, *names):
        return os.path.join(self.directory, *names)


def pod(namespace, name, uid, containers, **metadata):
    """`containers` are ids by name."""
    return {"kind": "Pod", "metadata": {"namespace": namespace, "name": name, "uid": uid, **metadata}, "status": {
        "phase": "Running", "containerStatuses": [
            {"name": container, "image": f"{container}:1", "containerID": f"containerd://{ident}"}
            for container, ident in containers.items()]}}


class KubernetesApi(https.Service):
    """For a with statement. What is set here may change any time; `answer(request)` replaces all of it."""

    def __init__(self, certificate, token="first", node="node-a", listening=True):
        self.tokens, self.node, self.page_size, self.answer = [token], node, None, None
        self.requests = []  # (seconds, query) of each that came
        self.version, self.oldest, self.epoch = 100, 0, 0
        self.sent = 0  # the version of the last event that a watch was told
        self.pods, self.events = {}, []
        self.changed = threading.Condition()
        super().__init__(Request, certificate, listening=listening)

    def __exit__(self, *_):
        with self.changed:
            self.stopped.set()
            self.changed.notify_all()
        super().__exit__()

    def put(self, each, how="ADDED"):
        """A pod is new, or has changed."""
        with self.changed:
            self.version += 1
            each["metadata"]["resourceVersion"] = str(self.version)
            self.pods[each["metadata"]["namespace"], each["metadata"]["name"]] = each
            self.events.append((self.version, how, each))
            self.changed.notify_all()

    def bookmark(self):
        with self.changed:
            self.version += 1
            self.events.append((self.version, "BOOKMARK", {
                "kind": "Pod", "metadata": {"resourceVersion": str(self.version)}}))
            self.changed.notify_all()

    def expire(self):
        """Forgets all events: who watches from an older version is told that it is gone."""
        with self.changed:
            self.version += 1
            self.oldest, self.events = self.version, []
            self.changed.notify_all()

    def end_watches(self):
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()

    def asked(self, **wanted):
        """The queries with these parameters, and all others; None: the parameter is not there."""
        return [query for _, query in list(self.requests)
                if all(query.get(name) == value for name, value in wanted.items())]


class Request(https.Request):
    def handle_any(self):
        self.api = self.service
        path, _, query = self.path.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.api.requests.append((time.monotonic(), self.query))
        if self.api.answer:
            self.api.answer(self)
        elif self.headers["Authorization"] not in [f"Bearer {token}" for token in self.api.tokens]:
            self.refuse(401, "Unauthorized")
        elif path != "/api/v1/pods" or self.query.get("fieldSelector") != f"spec.nodeName={self.api.node}":
            self.refuse(400, "not what this node may ask for")
        elif "watch" in self.query:
            self.watch(int(self.query["resourceVersion"]))
        else:
            self.list()

    def refuse(self, status, message):
        self.reply(json.dumps({"kind": "Status", "status": "Failure", "message": message, "code": status}).encode(),
                   status)

    def list(self):
        with self.api.changed:
            items, version = list(self.api.pods.values()), self.api.version
        first = int(self.query.get("continue", "0=").removesuffix("="))
        last = first + (self.api.page_size or len(items) + 1)
        metadata = {"resourceVersion": str(version)}
        if last < len(items):
            metadata["continue"] = f"{last}="
        self.reply(json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata,
                               "items": items[first:last]}).encode())

    def event(self, how, what):
        self.chunk(json.dumps({"type": how, "object": what}).encode() + b"\n")

    def watch(self, version):
        epoch = self.api.epoch
        self.begin_stream()
        while True:
            with self.api.changed:
                self.api.changed.wait_for(lambda: self.api.stopped.is_set() or self.api.epoch != epoch or
                                          version < self.api.oldest or self.next_event(version))
                if self.api.stopped.is_set() or self.api.epoch != epoch:
                    break
                gone, found = version < self.api.oldest, self.next_event(version)
            if gone:
                self.event("ERROR", {"kind": "Status", "message": "too old resource version", "code": 410})
                break
            version, how, what = found
            self.event(how, what)
            self.api.sent = version
        self.chunk(b"")

    def next_event(self, version):
        return next((event for event in self.api.events if event[0] > version), None)
