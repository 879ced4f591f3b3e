"""Load of known size (load.c), in a cgroup or a container."""
import contextlib
import decimal
import os
import re
import shutil
import subprocess

import harness
from servers import cgroups, require


def program():
    path = os.environ.get("LOAD")
    if not path:
        raise AssertionError("set LOAD to the path of the program that load.c is")
    return path


def words(loads):
    """cpu_ms=3000, threads=2 as arguments."""
    return [str(word) for pair in loads.items() for word in pair]


def used_s(text):
    """The CPU seconds that it said it had used."""
    found = re.fullmatch(r"used (\d+) us\n", text)
    if not found:
        raise AssertionError(f"the load has failed: {text}")
    return decimal.Decimal(found[1]) / 1_000_000


def wait_for_used_s(path, seconds=120):
    """From the file to which it writes, when all is done."""
    def said():
        with contextlib.suppress(FileNotFoundError), open(path) as file:
            text = file.read()
            return text if text.endswith("\n") else None
    return used_s(harness.wait_until(f"the load of {path} is done", said, seconds))


class Process:
    """In a cgroup of its own; for a with statement."""

    def __init__(self, cgroup, only_systemd=False, **loads):
        self.cgroup, self.only_systemd, self.loads = cgroup, only_systemd, loads

    def __enter__(self):
        require.root()
        require.writable(cgroups.hierarchies(self.only_systemd))
        self.process = subprocess.Popen(  # does nothing before it is in its cgroup
            ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'read -r _ && exec "$@"', "sh", program(),
             *words(self.loads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            with cgroups.making(self.cgroup, self.only_systemd):
                cgroups.enter(self.cgroup, self.process.pid, self.only_systemd)
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BaseException:
            self.__exit__()
            raise
        return self

    def used_s(self):
        """When all is done."""
        return used_s(self.process.stdout.readline())

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        cgroups.remove(self.cgroup)
        cgroups.sweep()


class Shared:
    """A directory of a Dockerd in which its containers find the program and leave what it says."""

    def __init__(self, docker):
        self.docker = docker
        self.path = docker.stage.path("shared")
        if not os.path.isdir(self.path):
            os.mkdir(self.path)
            shutil.copy(program(), f"{self.path}/load")

    def run(self, name, loads, **more):
        """A container that does this."""
        command = f"DISK_FILE=/shared/{name}.disk exec /shared/load {' '.join(words(loads))} >/shared/{name} 2>&1"
        return self.docker.run(name, command=["/bin/sh", "-c", command], Binds=[f"{self.path}:/shared"], **more)

    def used_s(self, name):
        """When all is done."""
        return wait_for_used_s(f"{self.path}/{name}")
