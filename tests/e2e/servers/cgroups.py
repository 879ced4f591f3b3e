"""cgroups that the tests make, in every hierarchy of the machine: v1, v2 or both.

Runtimes make the cgroup of a container and remove it, but leave its parents, such as /docker,
behind. The parents are therefore made here first, marked by an extended attribute, and removed when
nothing is left in them. Several test processes may use the same parent at once: none is removed
while a container is being made.
"""
import contextlib
import errno
import fcntl
import os

from harness import wait_until
from servers import process

ROOT = "/sys/fs/cgroup"
MARK = "trusted.wattribute-test"


def hierarchies(only_systemd=False):
    """Where each is mounted; systemd has its units in v2 and in v1's name=systemd."""
    found = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields, _, more = line.partition(" - ")
            kind, _, options = more.split()
            is_of_systemd = kind == "cgroup2" or "name=systemd" in options
            if is_of_systemd or kind == "cgroup" and not only_systemd:
                _, _, device, _, mount_point, *_ = fields.split()
                found.setdefault(device, mount_point)
    return list(found.values())


def of(pid):
    """/proc/PID/cgroup: a path for each list of controllers, '' is v2. Nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            return {controllers: path for _, controllers, path in
                    (line.rstrip("\n").split(":", 2) for line in file)}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def pids(path):
    """The processes in a cgroup and below, by any hierarchy."""
    found = set()
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy + path):
            with contextlib.suppress(OSError):  # removed meanwhile
                with open(f"{directory}/cgroup.procs") as file:
                    found.update(map(int, file.read().split()))
    return found


def exists(path):
    return any(os.path.isdir(hierarchy + path) for hierarchy in hierarchies())


@contextlib.contextmanager
def making(parent, only_systemd=False):
    """To make cgroups below this one, which is made where it does not exist."""
    with locked(fcntl.LOCK_SH):
        make(parent, only_systemd)
        yield


def make(path, only_systemd=False):
    components = path.strip("/").split("/")
    for hierarchy in hierarchies(only_systemd):
        directory = hierarchy
        for component in components:
            directory += "/" + component
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory)
                os.setxattr(directory, MARK, b"")
                inherit_cpuset(directory)


def inherit_cpuset(directory):
    """v1 refuses processes in a new cgroup of this controller otherwise."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if os.path.exists(f"{directory}/../{name}"):
            with open(f"{directory}/../{name}") as parent:
                value = parent.read()
            with open(f"{directory}/{name}", "w") as child:
                child.write(value)


def give(path, uid, only_systemd=False):
    """To a user, as systemd does for units with User= and Delegate=yes."""
    for hierarchy in hierarchies(only_systemd):
        os.chown(hierarchy + path, uid, uid)


def enter(path, pid, only_systemd=False):
    for hierarchy in hierarchies(only_systemd):
        with open(f"{hierarchy}{path}/cgroup.procs", "w") as file:
            file.write(str(pid))


def remove(path):
    """A cgroup with all in it: its processes are killed."""
    def is_removed():
        for pid in pids(path):
            process.kill(pid)
        for hierarchy in hierarchies():
            for directory, _, _ in os.walk(hierarchy + path, topdown=False):
                remove_directory(directory)
        return not exists(path)
    wait_until(f"{path} is removed", is_removed, 30)


def sweep():
    """Removes what make() made, anywhere, unless something is in it."""
    with locked(fcntl.LOCK_EX):
        for hierarchy in hierarchies():
            sweep_directory(hierarchy)


def sweep_directory(directory):
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False) and is_marked(entry.path):
            sweep_directory(entry.path)
            remove_directory(entry.path)


def is_marked(directory):
    try:
        os.getxattr(directory, MARK)
        return True
    except OSError:
        return False


def remove_directory(directory):
    try:
        os.rmdir(directory)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT):
            raise


@contextlib.contextmanager
def locked(how):
    lock = os.open(ROOT, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)
