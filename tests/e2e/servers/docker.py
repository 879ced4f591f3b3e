"""dockerd, with the containerd that it starts."""
import http.client
import json
import os
import urllib.parse

import harness
from servers import busybox, cgroups, require
from servers.container import Container
from servers.server import Server

PARENT = "/docker"


class Dockerd(Server):
    """Containers have no network; they sit in /docker/<id> or <cgroup_parent>/<id>."""

    programs = ("dockerd", "containerd", "runc")

    def set_up(self):
        # dockerd takes requests for GPUs where it finds NVIDIA's hook. This one gives a container nothing.
        os.mkdir(self.stage.path("bin"))
        self.stage.write("bin/nvidia-container-runtime-hook", "#!/bin/sh\nexit 0\n", 0o755)
        self.start()
        self.send("POST", "/images/create?fromSrc=-&repo=busybox&tag=test", busybox.root_tar())

    @property
    def socket(self):
        return self.stage.path("docker.sock")

    def start(self):
        """Also after daemon.stop(), which ends its containers."""
        self.daemon = self.stage.start(
            "env", f"PATH={self.stage.path('bin')}:{require.PATH}", self.program["dockerd"],
            "--host", f"unix://{self.socket}",
            "--data-root", self.stage.path("root"), "--exec-root", self.stage.path("exec"),
            "--pidfile", self.stage.path("pid"), "--storage-driver=vfs",
            "--exec-opt=native.cgroupdriver=cgroupfs", "--bridge=none", "--iptables=false",
            "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")
        self.daemon.wait_until("dockerd answers", self.is_up)

    def is_up(self):
        try:
            return self.send("GET", "/_ping")
        except (OSError, http.client.HTTPException):
            return False

    def run(self, name=None, cgroup_parent=None, **more):
        """As create(), and starts it."""
        container_id = self.create(name, cgroup_parent, **more)
        with cgroups.making(cgroup_parent or PARENT):
            self.ask("POST", f"/containers/{container_id}/start")
        found = self.ask("GET", f"/containers/{container_id}/json")
        return Container(container_id, found["Name"].lstrip("/"), found["State"]["Pid"])

    def create(self, name=None, cgroup_parent=None, command=busybox.SLEEP, labels=None, env=(),
               **host_config):
        """A container that does not run; returns its id. host_config is as in Docker's API."""
        query = "?name=" + urllib.parse.quote(name) if name else ""
        container_id = self.ask("POST", f"/containers/create{query}", {
            "Image": "busybox:test", "Cmd": list(command), "Labels": labels or {}, "Env": list(env),
            "HostConfig": {"NetworkMode": "none", "CgroupParent": cgroup_parent or "",
                           **host_config}})["Id"]
        self.stage.own(f"{cgroup_parent or PARENT}/{container_id}")
        return container_id

    def rename(self, container, name):
        self.ask("POST", f"/containers/{container.id}/rename?name={urllib.parse.quote(name)}")
        return container._replace(name=name)

    def remove(self, container):
        self.ask("DELETE", f"/containers/{container.id}?force=true")

    def ask(self, method, path, body=None):
        """What the API answers, both as JSON."""
        text = None if body is None else json.dumps(body)
        answer = self.send(method, path, text, "application/json")
        return json.loads(answer) if answer else None

    def send(self, method, path, body=None, content_type="application/x-tar"):
        connection = harness.Connection(f"unix:{self.socket}", timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": content_type})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise AssertionError(f"dockerd: {method} {path}: {response.status} {answer.decode()}")
        return answer
