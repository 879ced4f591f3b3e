"""Runs a command as a unit of systemd would, as far as that goes without systemd:
python3 -m servers.unit_sandbox UNIT-FILE COMMAND...

Its capabilities, its memory and its system calls; what it may call is asked of systemd-analyze. A call that
the unit forbids ends the process, so that none goes unnoticed.
"""
import ctypes
import os
import re
import subprocess
import sys

from servers import require

PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN = 65, 1  # from Linux 6.3 on; systemd has a filter for older ones
KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000  # of libseccomp


def settings(path, name):
    """All values of a setting, in their order."""
    with open(path) as file:
        return re.findall(rf"^{name}=(.*)$", file.read(), re.MULTILINE)


def calls_of(name):
    """The system calls of a set such as @process, those of sets in it included."""
    if not name.startswith("@"):
        return {name}
    listing = subprocess.run([require.command("systemd-analyze"), "syscall-filter", "--no-pager", name],
                             capture_output=True, text=True, check=True).stdout
    members = [line.strip() for line in listing.splitlines()[1:] if line.strip() and "#" not in line]
    return set().union(*map(calls_of, members))


def allowed_calls(unit):
    allowed = calls_of("@default")
    for value in settings(unit, "SystemCallFilter"):
        calls = set().union(*map(calls_of, value.lstrip("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def install_filter(calls):
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
    for call in sorted(calls):
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number >= 0:  # else of another architecture
            seccomp.seccomp_rule_add(context, ctypes.c_uint32(ALLOW), number, 0)
    if seccomp.seccomp_load(context) != 0:
        raise AssertionError("the filter cannot be loaded")


def deny_new_code():
    """Memory that was writable cannot become executable. Where the kernel does not know that, nothing happens."""
    ctypes.CDLL(None).prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


def main():
    unit, *command = sys.argv[1:]
    kept = [f"+{name.lower().removeprefix('cap_')}"
            for value in settings(unit, "CapabilityBoundingSet") for name in value.split()]
    calls = allowed_calls(unit)
    command = [require.command("setpriv"), "--no-new-privs", "--inh-caps=-all",
               f"--bounding-set={','.join(['-all', *kept])}", *command]
    if settings(unit, "MemoryDenyWriteExecute") == ["yes"]:
        deny_new_code()
    install_filter(calls)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
