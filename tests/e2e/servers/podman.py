"""Podman with runc, with and without its API service."""
from servers import busybox, cgroups
from servers.container import Container
from servers.server import Server

PARENT = "/libpod_parent"


class Podman(Server):
    """Containers have no network; they sit in /libpod_parent/libpod-<id>, or below cgroup_parent,
    and the processes that watch them in conmon beside that."""

    programs = ("podman", "conmon", "runc")

    def set_up(self):
        root = self.stage.write("root.tar", busybox.root_tar())
        self.call("import", root, "busybox:test")

    def build(self, directory, tag, timeout=400, **build_args):
        """An image from a Dockerfile. Its steps use the machine's network, for packages."""
        return self.stage.run(*self.options(), "build", "--network=host", f"--tag={tag}",
                              *(f"--build-arg={key}={value}" for key, value in build_args.items()),
                              directory, timeout=timeout)

    def service(self):
        """Starts the API; returns its socket. Containers outlive daemon.stop()."""
        socket = self.stage.path("podman.sock")
        self.daemon = self.stage.start(*self.options(), "system", "service", "--time=0",
                                       f"unix://{socket}")
        self.daemon.wait_for_socket(socket)
        return socket

    def run(self, name, cgroup_parent=None, **more):
        """As run_arguments() says."""
        parent = cgroup_parent or PARENT
        with cgroups.making(f"{parent}/conmon"):
            container_id = self.call(*self.run_arguments(name, cgroup_parent, **more))
        self.stage.own(f"{parent}/libpod-{container_id}")
        return self.inspect(container_id)

    def run_arguments(self, name, cgroup_parent=None, pod=None, command=busybox.SLEEP, labels=None):
        """For command(). Without ulimits Podman would raise them, which root may be forbidden."""
        more = {"--pod": pod, "--cgroup-parent": cgroup_parent}
        return ["run", "--detach", "--name", name, "--network=none",
                "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024",
                *(f"{option}={value}" for option, value in more.items() if value),
                *(f"--label={key}={value}" for key, value in (labels or {}).items()),
                "busybox:test", *command]

    def inspect(self, name):
        answer = self.call("inspect", "--format", "{{.Id}} {{.Name}} {{.State.Pid}}", name)
        container_id, name, pid = answer.split()
        return Container(container_id, name, int(pid))

    def monitor_pid(self, container):
        """Of conmon."""
        return int(self.call("inspect", "--format", "{{.State.ConmonPid}}", container.id))

    def create_pod(self, name):
        """Without an infra container; returns its id."""
        return self.call("pod", "create", "--infra=false", "--name", name)

    def remove(self, container):
        self.call("rm", "--force", "--time=0", container.id)

    def call(self, *arguments):
        return self.stage.run(*self.options(), *arguments)

    def command(self, *arguments):
        """The command line that another process, such as a batch job, can run."""
        return self.stage.inside(*self.options(), *arguments)

    def options(self):
        return [self.program["podman"], "--root", self.stage.path("root"),
                "--runroot", self.stage.path("run"), "--tmpdir", self.stage.path("tmp"),
                "--storage-driver=vfs", "--cgroup-manager=cgroupfs",
                "--runtime", self.program["runc"], "--events-backend=file"]
