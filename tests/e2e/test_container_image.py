"""The image of the Dockerfile, run by the lines of docs/docker.md, in real Docker and Podman on a fake GPU.

It is built by Podman on a base image that tools/make-base-image made; no registry is needed.
"""
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

import exposition
import harness
from harness import PROCESS_ENERGY, SOURCE_ROOT, WORKLOAD_ENERGY, TestCase, wait_until
from servers import cgroups, require
from servers.docker import PARENT as DOCKER_PARENT, Dockerd
from servers.podman import PARENT as PODMAN_PARENT, Podman
from test_identity import Gpu

IMAGE = "wattribute"
SIZE_MB_MAX = 110
# Of the lines: a fake library stands in for what the first two do, and nothing is to outlive the test.
LEFT_OUT = ("--gpus", "--device", "--restart")
FAKE = os.environ["FAKE_NVML_DIR"]
HANGS = "wattribute_child_hangs_total"
OUTSIDE = "wattribute_node_processes_outside"


def documented(program, option):
    """The one command of docs/docker.md that runs the image by this program with this option, as words."""
    with open(os.path.join(SOURCE_ROOT, "docs", "docker.md")) as file:
        blocks = re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL)
    lines = [block.replace("\\\n", " ") for block in blocks]
    found = [line for line in lines if line.startswith(f"{program} run ") and f" {option} " in line]
    if len(found) != 1:
        raise AssertionError(f"docs/docker.md has {len(found)} lines of {program} with {option}")
    return shlex.split(found[0])[2:]


def without(words, *options):
    """Without these options and the word that follows each."""
    return [word for before, word in zip(["", *words], words) if not {before, word} & set(options)]


class Running:
    """A container of the image, made by a documented line; `call` runs the runtime's command."""

    def __init__(self, call, words, gpu, directory, own, volumes, options=()):
        # Not where the checkout is: who is not root in there may not get to that place.
        places = {FAKE: "/fake-nvml", directory: "/fake-gpu"}
        gpu_options = [f"--volume={path}:{place}:ro" for path, place in places.items()]
        for name, value in gpu.env.items():
            for path, place in places.items():
                value = value.replace(path, place)
            gpu_options.append(f"--env={name}={value}")
        words = [volumes.get(word, word) for word in without(words, *LEFT_OUT)]
        words = ["run", *gpu_options, *options, *words, "--listen-address=127.0.0.1:0",
                 "--process-scan-interval=1s"]
        self.call, self.id = call, call(*words)
        own(self.id)

    def __enter__(self):
        try:
            self.address = wait_until("it listens", self.find_address)
            wait_until("it is ready", lambda: harness.ask(self.address, "/-/ready").status == 200)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, error_type, *_):
        try:
            if error_type is None:
                self.stop()
            else:
                print(f"--- log of the container\n{self.log()}\n---", file=sys.stderr)
        finally:
            self.call("rm", "--force", self.id)

    def log(self):
        return self.call("logs", self.id)

    def find_address(self):
        found = re.search(r"msg=listening address=(\S+)", self.log())
        return found and found.group(1)

    def page(self):
        return exposition.read(harness.ask(self.address, accept=harness.TEXT).body, False)

    def wait_for_page(self, what, condition, seconds=30):
        def find():
            page = self.page()
            return page if condition(page) else None
        return wait_until(what, find, seconds)

    def stop(self):
        self.call("stop", "--time=10", self.id)
        state = self.call("inspect", "--format={{.State.ExitCode}}", self.id)
        log = self.log()
        if state != "0" or "level=error" in log:
            raise AssertionError(f"exit status {state}:\n{log}")


class ContainerImage(TestCase):
    @classmethod
    def setUpClass(cls):
        base = require.cached("debian.tar")
        cls.docker_command = require.command("docker")
        cls.podman = cls.enterClassContext(Podman())
        cls.podman.call("import", base, "localhost/debian:12-slim")
        cls.lists = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-image-"))
        done = subprocess.run([os.path.join(SOURCE_ROOT, "tools", "make-image"), cls.lists], capture_output=True, text=True, env={
            **os.environ, "ENGINE": shlex.join(cls.podman.command()), "BASE": "localhost/debian:12-slim",
            "BUILD_OPTIONS": "--network=host"}, stdin=subprocess.DEVNULL, timeout=500)
        if done.returncode != 0:
            raise AssertionError(f"tools/make-image: {done.stdout}{done.stderr}")
        version = harness.run("--version").stdout.decode().split()[1]
        cls.podman.call("tag", f"localhost/{IMAGE}:{version}", f"localhost/{IMAGE}:latest")
        archive = cls.podman.stage.path("image.tar")
        cls.podman.call("save", "--output", archive, f"localhost/{IMAGE}:latest")
        cls.docker = cls.enterClassContext(Dockerd())
        cls.call_docker("load", "--input", archive)
        cls.call_docker("tag", f"localhost/{IMAGE}:latest", IMAGE)
        os.unlink(archive)
        cls.podman_socket = cls.podman.service()

    @classmethod
    def call_docker(cls, *arguments):
        """stdout and stderr: that is where logs are."""
        done = subprocess.run([cls.docker_command, "--host", f"unix://{cls.docker.socket}", *arguments],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"docker {shlex.join(arguments)}: {done.stdout}")
        return done.stdout.strip()

    @classmethod
    def call_podman(cls, *arguments):
        done = subprocess.run(cls.podman.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"podman {shlex.join(arguments)}: {done.stdout}")
        return done.stdout.strip()

    def gpu_of(self, container):
        gpu = Gpu(self, 1)
        gpu.put([container.pid])
        os.chmod(self.directory, 0o755)  # for who is not root in there
        return gpu

    def run_docker(self, words, container, **more):
        mount = "type=bind,source={},target=/host/run,readonly,bind-nonrecursive"
        volumes = {mount.format("/run"): mount.format(os.path.dirname(self.docker.socket))}
        with cgroups.making(DOCKER_PARENT):
            return Running(self.call_docker, words, self.gpu_of(container), self.directory,
                           lambda found: self.docker.stage.own(f"{DOCKER_PARENT}/{found}"), volumes, **more)

    def run_podman(self, words, container, **more):
        volumes = {"/run/podman:/host/run/podman:ro":
                   f"{os.path.dirname(self.podman_socket)}:/host/run/podman:ro"}
        with cgroups.making(f"{PODMAN_PARENT}/conmon"):
            return Running(self.call_podman, words, self.gpu_of(container), self.directory,
                           lambda found: self.podman.stage.own(f"{PODMAN_PARENT}/libpod-{found}"), volumes,
                           options=("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"), **more)

    def is_shown(self, found, name):
        return lambda page: page.sum(PROCESS_ENERGY, pid=str(found.pid), container_id=found.id, container=name) > 0

    def test_the_image_is_small_and_holds_no_tools(self):
        size = int(self.call_docker("image", "inspect", "--format={{.Size}}", IMAGE))
        print(f"the image has {size / 1e6:.1f} MB")
        self.assertLess(size, SIZE_MB_MAX * 1_000_000)
        for page in ("README.md", "docs/docker.md"):
            with open(os.path.join(SOURCE_ROOT, page)) as file:
                stated = re.findall(r"\bimage (?:has|is)\b[^.]*?(\d+) MB", file.read())
            self.assertEqual([round(size / 1e6)], [int(figure) for figure in stated], page)
        for tool in ("gcc", "meson", "python3", "curl"):
            with self.assertRaisesRegex(AssertionError, "executable file not found"):
                self.call_docker("run", "--rm", "--network=none", f"--entrypoint={tool}", IMAGE)
        self.assertIn("wattribute", self.call_docker("run", "--rm", "--network=none", IMAGE, "--version"))

    def test_what_is_in_the_image_is_listed(self):
        path, = glob.glob(os.path.join(self.lists, "wattribute-*-image-*.spdx.json"))
        subprocess.run([require.cached("spdx/bin/pyspdxtools"), "--infile", path, "--version", "SPDX-2.3"], check=True, timeout=120,
                       stdin=subprocess.DEVNULL)
        with open(path) as file:
            listed = json.load(file)["packages"]
        found = self.call_docker("run", "--rm", "--network=none", "--entrypoint=dpkg-query", IMAGE, "--show",
                                 "--showformat=${Package} ${Version}\n").splitlines()
        self.assertGreater(len(found), 50)
        debian = [f"{each['name']} {each['versionInfo']}" for each in listed
                  if each.get("externalRefs", [{}])[0].get("referenceLocator", "").startswith("pkg:deb/debian/")]
        self.assertEqual(sorted(found), sorted(debian))
        self.assertLess({"wattribute", "uPlot"}, {each["name"] for each in listed})

    def test_docker_shows_the_names_of_other_containers(self):
        web = self.docker.run("web")
        with self.run_docker(documented("docker", "--cgroupns host"), web) as exporter:
            page = exporter.wait_for_page("web is shown", self.is_shown(web, "web"))
            self.assert_balanced(page)
            self.assertGreater(page.sum(WORKLOAD_ENERGY, kind="container", name="web"), 0)
            self.assertEqual(0, page.value(OUTSIDE))

    def test_the_server_is_not_root_and_is_replaced_if_it_stops(self):
        web = self.docker.run("bystander")
        with self.run_docker(documented("docker", "--cgroupns host"), web) as exporter:
            collector = int(self.call_docker("inspect", "--format={{.State.Pid}}", exporter.id))
            server, = harness.children(collector)
            self.assertEqual(["65521"] * 4, harness.process_status(server)["Uid"].split())
            os.kill(server, signal.SIGSTOP)
            wait_until("another server", lambda: harness.children(collector) not in ([], [server]), 30)
            exporter.wait_for_page("a hang", lambda page: page.value(HANGS, child="server") == 1)

    def test_podmans_server_is_not_root(self):
        web = self.podman.run("bystander")
        with self.run_podman(documented("podman", "--cgroupns host"), web) as exporter:
            collector = int(self.call_podman("inspect", "--format={{.State.Pid}}", exporter.id))
            server, = harness.children(collector)
            self.assertEqual(["65521"] * 4, harness.process_status(server)["Uid"].split())

    def test_nothing_can_be_written_through_what_docker_mounts(self):
        web = self.docker.run("neighbour")
        is_v2 = os.path.exists(f"{cgroups.ROOT}/cgroup.controllers")
        for cgroupns in ("host", "private") if is_v2 else ("host",):
            with self.run_docker(documented("docker", f"--cgroupns {cgroupns}"), web) as exporter:
                pid = self.call_docker("inspect", "--format={{.State.Pid}}", exporter.id)
                with open(f"/proc/{pid}/mountinfo") as file:
                    mounts = {fields[4]: fields[5].split(",") for fields in map(str.split, file)}
                inside = {point: options for point, options in mounts.items() if point.startswith("/host/")}
                self.assertIn("/host/run", inside)
                self.assertEqual([], [point for point, options in inside.items() if "ro" not in options])

    def test_podman_shows_the_names_of_other_containers(self):
        web = self.podman.run("web")
        with self.run_podman(documented("podman", "--cgroupns host"), web) as exporter:
            page = exporter.wait_for_page("web is shown", self.is_shown(web, "web"))
            self.assert_balanced(page)
            self.assertEqual(0, page.value(OUTSIDE))

    def test_in_a_cgroup_namespace_of_its_own_the_nodes_tree_tells_who_is_who(self):
        web = self.docker.run("fenced")
        with self.run_docker(documented("docker", "--cgroupns private"), web) as exporter:
            page = exporter.wait_for_page("it is shown", self.is_shown(web, "fenced"))
            self.assert_balanced(page)

    def test_without_that_tree_processes_are_counted_as_outside(self):
        web = self.docker.run("lost")
        words = documented("docker", "--cgroupns private")
        words.remove("--path.sysfs=/host/sys")
        with self.run_docker(words, web) as exporter:
            exporter.wait_for_page("processes are outside", lambda page: page.sum(OUTSIDE) > 0)
            self.assertIn("outside our cgroup namespace",
                          self.call_docker("exec", exporter.id, "sh", "-c", "wattribute check || [ $? -eq 3 ]"))

    def test_who_is_not_root_gets_ids_instead_of_names(self):
        web = self.docker.run("nameless")
        words = documented("docker", "--cgroupns host")
        with self.run_docker(words, web, options=("--user=65534:65534",)) as exporter:
            page = exporter.wait_for_page("its id is shown", self.is_shown(web, ""))
            self.assert_balanced(page)
            self.assertGreater(page.sum(WORKLOAD_ENERGY, kind="container", id=web.id, name=""), 0)


if __name__ == "__main__":
    harness.main()
