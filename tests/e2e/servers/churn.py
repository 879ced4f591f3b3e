"""Cgroups that come and go without a pause: made, removed, renamed and made again by the same names.

They are below a unit, a user's slice, /docker, kubepods and the cgroups of Slurm's two plugins, in all hierarchies or in
some of them, with a process in them now and then. A process of its own does it: run as a script, this file is that.
Nothing but what the names here are about is ever touched.
"""
import contextlib
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys

LEAVES = 12  # of each place
ATTEMPTS = 200  # to remove a cgroup with a process that is about to end
FAKE_FILES = {"cgroup.events": "populated 1\n", "cpu.stat": "usage_usec 1000000\nuser_usec 600000\nsystem_usec 400000\n",
              "cpuacct.usage": "1000000000\n", "cpuacct.stat": "user 60\nsystem 40\n",
              "memory.usage_in_bytes": "4096\n", "pids.current": "1\n"}


class Names:
    """Of the cgroups of one test: their paths, and who they are on the page, by kind and id."""

    def __init__(self, token):
        seed = int(hashlib.sha256(token.encode()).hexdigest(), 16)
        self.token = token
        self.uid = str(100_000 + seed % 1_000_000_000)
        self.first_job = 1_000_000 + seed % 1_000_000_000

    def places(self):
        """A list of (path, kind, id) for each."""
        containers = (hashlib.sha256(f"{self.token}{i}".encode()).hexdigest() for i in itertools.count())
        jobs = map(str, itertools.count(self.first_job))
        unit = f"/{self.token}.slice/{self.token}.service"
        user = f"/{self.token}.slice/user.slice/user-{self.uid}.slice/user@{self.uid}.service/user.slice"
        pod = f"/{self.token}/kubepods/burstable/pod11111111-2222-3333-4444-"
        scope = f"/{self.token}.slice/{self.token}_slurmstepd.scope"
        return [
            [(f"{unit}/libpod-payload-{c}", "container", c) for c in self.take(containers)],
            [(f"{user}/libpod-{c}.scope/container", "container", f"{self.uid}/{c}") for c in self.take(containers)],
            [(f"/{self.token}/docker/{c}/init.scope", "container", c) for c in self.take(containers)],
            [(f"{pod}{i:012}/{c}", "pod", c) for i, c in enumerate(self.take(containers))],
            [(f"/slurm_{self.token}/uid_0/job_{job}/step_0/task_0", "slurm", job) for job in self.take(jobs)],
            [(f"{scope}/job_{job}/step_0/user/task_0", "slurm", job) for job in self.take(jobs)],
        ]

    @staticmethod
    def take(names):
        return list(itertools.islice(names, LEAVES))

    def paths(self):
        return [path for place in self.places() for path, _, _ in place]

    def owners(self):
        """Those of all places, and what they are in."""
        return {*((kind, ident) for place in self.places() for _, kind, ident in place), ("user", self.uid),
                ("unit", f"{self.token}.service"), ("unit", f"{self.token}_slurmstepd.scope")}

    def tops(self):
        """All of it is below these, and they are nobody else's."""
        return [f"/{self.token}.slice", f"/{self.token}", f"/slurm_{self.token}"]


class Hierarchies:
    """Real ones, or directories of a tmpfs that look so: those have a stage beside them."""

    def __init__(self, v1, v2, stage=None):
        self.v1, self.all, self.stage = v1, v1 + v2, stage

    def make(self, root, path):
        """With what is around it."""
        directory = root
        for component in path.strip("/").split("/"):
            directory += "/" + component
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory)
                self.put_files(directory)

    def put_files(self, directory):
        for name, text in FAKE_FILES.items() if self.stage else ():
            with open(f"{directory}/{name}", "w") as file:
                file.write(text)

    def move_in(self, root, top, paths):
        """With their files: where the kernel makes a directory, they are in it when it is seen."""
        for path in paths:
            self.make(self.stage, path.removeprefix(top.rsplit("/", 1)[0]))
        os.rename(f"{self.stage}/{top.rsplit('/', 1)[1]}", root + top)

    def remove(self, root, path):
        """What is in use stays."""
        for directory, _, files in os.walk(root + path, topdown=False):
            with contextlib.suppress(OSError):
                for name in files if self.stage else ():
                    os.unlink(f"{directory}/{name}")
                os.rmdir(directory)

    def exists(self, path):
        return any(os.path.exists(root + path) for root in self.all)


class Worker:
    def __init__(self, token, hierarchies):
        self.hierarchies = hierarchies
        self.places, self.tops = Names(token).places(), Names(token).tops()
        self.random = random.Random(token)
        self.acts = [self.make, self.make, self.remove, self.remake, self.remake_with_parents, self.rename, self.enter]

    def some(self):
        """All hierarchies in any order, or some of them."""
        roots = self.random.sample(self.hierarchies.all, len(self.hierarchies.all))
        return roots if self.random.random() < 0.6 else roots[:self.random.randint(1, len(roots))]

    def step(self):
        place = self.random.choice(self.places)
        path, _, _ = self.random.choice(place)
        with contextlib.suppress(OSError):  # in the way of a rename, or of a process that has not ended
            self.random.choice(self.acts)(path)

    def above(self, path):
        """The path or something around it, but no more than is ours."""
        top = next(top for top in self.tops if path.startswith(top + "/"))
        return path.rsplit("/", self.random.randint(0, path.count("/") - top.count("/")))[0]

    def make(self, path):
        for root in self.some():
            self.hierarchies.make(root, path)

    def remove(self, path):
        for root in self.some():
            self.hierarchies.remove(root, self.above(path))

    def remake(self, path):
        for root in self.some():
            self.hierarchies.remove(root, path)
            self.hierarchies.make(root, path)

    def remake_with_parents(self, path):
        """As a runtime that starts anew does: first all are removed, and then all are made."""
        above = self.above(path)
        for root in self.hierarchies.all:
            self.hierarchies.remove(root, above)
        for root in self.some():
            self.hierarchies.make(root, path)

    def rename(self, path):
        """v2 knows no such thing. Half of them come back by their own name."""
        above = self.above(path)
        for root in self.hierarchies.v1:
            self.hierarchies.make(root, path)
            os.rename(root + above, root + above + "-renamed")
        for root in self.hierarchies.v1:
            if self.random.random() < 0.5:
                os.rename(root + above + "-renamed", root + above)
            self.hierarchies.remove(root, above + "-renamed")

    def enter(self, path):
        """A process that lives a moment."""
        if self.hierarchies.stage:
            return
        self.make(path)
        child = os.fork()
        if child == 0:
            for root in self.hierarchies.all:
                with contextlib.suppress(OSError), open(f"{root}{path}/cgroup.procs", "w") as file:
                    file.write("0")
            sum(range(100_000))
            os._exit(0)
        os.waitpid(child, 0)


def work(token, v1, v2, stage):
    worker = Worker(token, Hierarchies(v1, v2, stage))
    parent = os.getppid()
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    os.nice(5)
    while not stopped and os.getppid() == parent:
        worker.step()


class Churn:
    """For a with statement. Whatever happens, nothing of it is left afterwards."""

    def __init__(self, token, v1, v2, stage=None):
        self.names = Names(token)
        self.hierarchies = Hierarchies(v1, v2, stage)
        self.arguments = [token, v1, v2, stage]
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.clear()

    def start(self):
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps(self.arguments)], stdin=subprocess.DEVNULL)

    def stop(self):
        if self.process:
            if self.process.poll() is not None:
                raise AssertionError(f"the churn ended by itself with {self.process.returncode}")
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def clear(self):
        for _ in range(ATTEMPTS):
            for root, top in itertools.product(self.hierarchies.all, self.names.tops()):
                self.hierarchies.remove(root, top)
            if not any(map(self.hierarchies.exists, self.names.tops())):
                return
        raise AssertionError("some cgroups cannot be removed")

    def make_all(self):
        """In every place, in all hierarchies; there is none of it."""
        paths = self.names.paths()
        for root in self.hierarchies.all:
            for top in self.names.tops() if self.hierarchies.stage else ():
                self.hierarchies.move_in(root, top, [path for path in paths if path.startswith(top + "/")])
            for path in paths:
                self.hierarchies.make(root, path)


if __name__ == "__main__":
    work(*json.loads(sys.argv[1]))
