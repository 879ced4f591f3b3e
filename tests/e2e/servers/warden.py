"""Clears a stage away when its test has ended, in whatever way: python3 -m servers.warden DIRECTORY

Makes the mount namespace and says the pid of the process that holds it, or why there is none.
stdin has the paths of cgroups, and ends with the test.
"""
import os
import shutil
import subprocess
import sys

from harness import wait_until
from servers import cgroups, process

SETUP = """
mount -t tmpfs tmpfs "$1"
for directory in etc opt run var/lib; do
    upper=$1/$directory work=$1/$directory.work
    mkdir -p "$upper" "$work"
    mount -t overlay -o "lowerdir=/$directory,upperdir=$upper,workdir=$work" overlay "/$directory"
done
mount -t tmpfs tmpfs /dev/shm
echo ready
exec sleep infinity
"""


def main():
    directory = sys.argv[1]
    mounts = os.path.join(directory, "mounts")
    os.mkdir(mounts)
    holder = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-ec", SETUP, "sh", mounts],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    answer = holder.stdout.readline().strip()
    is_ready = answer == "ready"
    print(holder.pid if is_ready else answer, flush=True)
    groups = sys.stdin.read().split()
    # Containers before the shims that wait for them: until somebody has waited for a dead process,
    # its cgroup is busy.
    remove_all(groups)
    if is_ready:
        wait_until("nothing runs in the mount namespace", lambda: not kill_all(holder.pid))
    remove_all(groups)  # again: the daemons could still make new ones
    holder.kill()
    holder.wait()
    shutil.rmtree(directory)
    cgroups.sweep()


def remove_all(groups):
    for group in groups:
        cgroups.remove(group)


def kill_all(holder_pid):
    """All in the holder's mount namespace: daemons, shims, which outlive these by design, and jobs.

    No container: each has a namespace of its own, and a cgroup that we know.
    """
    namespace = mount_namespace(holder_pid)
    left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if pid != holder_pid and mount_namespace(pid) == namespace]
    for pid in left:
        process.kill(pid)
    return left


def mount_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:  # it has ended
        return None


if __name__ == "__main__":
    main()
