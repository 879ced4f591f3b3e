"""A process in the cgroup that systemd would give a unit; systemd need not run here."""
import secrets
import subprocess

from servers import cgroups, require


class Unit:
    """Its process is in `cgroup` in the hierarchies of systemd and where it was in all others."""

    def __init__(self, cgroup=None):
        self.cgroup = cgroup or f"/system.slice/wattribute-test-{secrets.token_hex(4)}.service"
        self.name = self.cgroup.rsplit("/", 1)[1]

    def __enter__(self):
        require.root()
        require.writable(cgroups.hierarchies(only_systemd=True))
        if cgroups.exists(self.cgroup):
            raise AssertionError(f"{self.cgroup} exists: its processes are not ours to kill")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sleep", "600"],
                                        stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        try:
            with cgroups.making(self.cgroup, only_systemd=True):
                cgroups.enter(self.cgroup, self.pid, only_systemd=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        cgroups.remove(self.cgroup)
        cgroups.sweep()
