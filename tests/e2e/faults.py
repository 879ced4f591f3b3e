"""The test's side of tests/faults: which call of libc fails in the program, and what time it is there."""
import contextlib
import ctypes
import errno
import mmap
import os
import re
import socket
import struct
import subprocess

from harness import SOURCE_ROOT, binary, wait_until

ROWS_MAX, VERSION = 96, 1
SPECIAL = {"short": -1, "eof": -2, "EAI_AGAIN": -3, "EAI_MEMORY": -10, "EAI_SYSTEM": -11}
FOREVER = 1 << 62
SECOND_NS = 10**9


def error_number(name):
    return SPECIAL[name] if name in SPECIAL else getattr(errno, name)


def preload():
    """What has the loader put the shim before all else; of a sanitized binary, its library comes next."""
    shim = os.environ.get("FAULTS_SHIM")
    if not shim:
        raise AssertionError("set FAULTS_SHIM to the path of the library that tests/faults is")
    linked = subprocess.run(["ldd", binary()], stdout=subprocess.PIPE, text=True, check=True).stdout
    sanitizer = re.findall(r"=> (\S*/libasan\.so\S*)", linked)
    env = {"LD_PRELOAD": ":".join([shim, *sanitizer])}
    if sanitizer:
        env["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
        env["LSAN_OPTIONS"] = f"suppressions={SOURCE_ROOT}/tests/faults/lsan.supp:print_suppressions=0"
    return env


class Row(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_char * 24), ("errors", ctypes.c_char * 104), ("calls", ctypes.c_uint64)]


class Page(ctypes.Structure):  # struct fault_page
    _fields_ = [("version", ctypes.c_uint64), ("kind", ctypes.c_char * 24), ("error", ctypes.c_int64),
                ("start", ctypes.c_uint64), ("count", ctypes.c_uint64), ("failed", ctypes.c_uint64),
                ("rows", Row * ROWS_MAX)]


class Faults:
    """For a with statement; `env` is what the program needs in its environment."""

    def __init__(self, path, role=None):
        with open(path, "wb") as file:
            file.truncate(ctypes.sizeof(Page))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), ctypes.sizeof(Page))
        os.chmod(path, 0o666)  # a child may be nobody
        self.page = Page.from_buffer(self.memory)
        self.page.version = VERSION
        self.env = {**preload(), "FAULT_PAGE": path, **({"FAULT_ROLE": role} if role else {})}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.page
        self.memory.close()

    def calls(self):
        """How often each kind was called so far."""
        return {row.kind.decode(): row.calls for row in self.page.rows if row.kind}

    def errors(self):
        """What each kind can fail with."""
        return {row.kind.decode(): row.errors.decode().split() for row in self.page.rows if row.kind}

    def fail(self, kind, number, error, count=1):
        """The call of this number, and the next, fail."""
        self.page.count = 0
        self.page.kind = kind.encode()
        self.page.error = error_number(error)
        self.page.start = number
        self.page.failed = 0
        self.page.count = count

    def lift(self):
        """No call fails from now on."""
        self.page.count = 0

    def fail_next(self, kind, error, skip=0, count=1):
        self.fail(kind, self.calls().get(kind, 0) + 1 + skip, error, count)

    @property
    def failed(self):
        """How many calls have failed."""
        return self.page.failed


class Ended(Exception):
    """The program has ended, and its time with it."""


class Clock:
    """The time in a program, which stands still but for these methods."""

    def __init__(self):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(60)  # of real time: nothing takes so long, unless it hangs
        self.env = {**preload(), "FAULT_CLOCK": str(self.theirs.fileno())}
        self.pass_fds = (self.theirs.fileno(),)
        self.now_ns = 0

    def attach(self):
        """When the program has been started."""
        self.theirs.close()

    def close(self):
        self.ours.close()

    def ask(self, until_ns, step_ns=0):
        try:
            self.ours.send(struct.pack("=Qq", until_ns, step_ns))
            answer = self.ours.recv(8)
        except TimeoutError:
            raise AssertionError("a thread of the program hangs") from None
        except (BrokenPipeError, ConnectionResetError):
            raise Ended from None
        if not answer:
            raise Ended
        self.now_ns, = struct.unpack("=Q", answer)

    def advance(self, seconds):
        """All that is due until then is done when it returns."""
        if self.now_ns == 0:
            self.ask(0)
        self.ask(self.now_ns + int(seconds * SECOND_NS))

    def step(self, seconds):
        """The wall clock is set; or, with meters that moved meanwhile, the machine was suspended."""
        self.ask(self.now_ns, int(seconds * SECOND_NS))

    def run_until(self, what, condition, seconds=10):
        """Lets the time pass until something has happened outside of the program, which takes real time."""
        def pass_time():
            done = condition()
            if not done:
                with contextlib.suppress(Ended):  # the condition says whether it should have
                    self.advance(0.01)
            return done
        return wait_until(what, pass_time, seconds)
