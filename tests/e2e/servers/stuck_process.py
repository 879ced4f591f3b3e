"""A process that holds its own mmap_lock for ever, as one that is stuck in a driver does: whoever reads its environ or
cmdline hangs.

A thread of it reads a file that is never answered (FUSE), which locks the page. Another one maps the file while it holds
the lock of its memory, and waits for that page.
"""
import ctypes
import os
import struct
import subprocess
import sys
from contextlib import contextmanager

from servers import require

INIT, LOOKUP, GETATTR, OPEN, READ, RELEASE, FLUSH, FORGET = 26, 1, 3, 14, 15, 18, 25, 2  # linux/fuse.h
DIRECT_IO = 1
ENOSYS = -38
DETACH = 2

VICTIM = """
import contextlib, ctypes, os, sys, threading
libc = ctypes.CDLL(None)
cached, direct = (os.open(sys.argv[1], os.O_RDONLY) for _ in range(2))
def read():
    with contextlib.suppress(OSError):
        os.read(cached, 1)
threading.Thread(target=read).start()
sys.stdin.readline()
libc.mmap(None, ctypes.c_size_t(4096), 1, 2, direct, ctypes.c_long(0))
print("free", flush=True)
sys.stdin.readline()
"""


def attributes(node):
    mode = 0o40755 if node == 1 else 0o100444
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answers(device):
    """One file, whose reads are not answered. The second to open it gets it without a cache."""
    flags = 0
    while True:
        message = os.read(device, 1 << 20)
        _, opcode, unique, node = struct.unpack("<IIQQ", message[:24])
        body, error = b"", 0
        if opcode == INIT:
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 16, 12, 4096, 1, 0, 0, 0)
        elif opcode == LOOKUP:
            body = struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        elif opcode == GETATTR:
            body = struct.pack("<QII", 3600, 0, 0) + attributes(node)
        elif opcode == OPEN:
            body, flags = struct.pack("<QII", 0, flags, 0), DIRECT_IO
        elif opcode == READ:
            print("held", flush=True)
            continue
        elif opcode == FORGET:
            continue
        elif opcode not in (RELEASE, FLUSH):
            error = ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def serve(directory):
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"fuse", directory.encode(), b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "cannot mount FUSE")
    print("mounted", flush=True)
    answers(device)


class StuckProcess:
    def __init__(self, server, process):
        self.server, self.process, self.pid = server, process, process.pid

    def block(self):
        """Returns when it holds the lock."""
        assert self.server.stdout.readline() == "held\n"
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        probe = subprocess.Popen(["cat", f"/proc/{self.pid}/cmdline"], stdout=subprocess.DEVNULL)
        try:
            while True:
                probe.wait(0.1)
                probe = subprocess.Popen(["cat", f"/proc/{self.pid}/cmdline"], stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            probe.kill()
            probe.wait()

    def free(self):
        """Ends the server: the kernel answers the read with an error."""
        self.server.kill()
        self.server.wait()
        assert self.process.stdout.readline() == "free\n"


@contextmanager
def stuck_process(directory, **env):
    require.root()
    if not os.path.exists("/dev/fuse"):
        require.missing("there is no /dev/fuse: load the module fuse")
    server = subprocess.Popen([sys.executable, __file__, directory], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))})
    process = None
    try:
        assert server.stdout.readline() == "mounted\n"
        process = subprocess.Popen([sys.executable, "-c", VICTIM, f"{directory}/file"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        yield StuckProcess(server, process)
    finally:
        server.kill()  # first: nothing else frees the process
        server.wait()
        ctypes.CDLL(None).umount2(directory.encode(), DETACH)
        if process:
            process.kill()
            process.wait()
        for one in (server, process):
            for stream in (one.stdin, one.stdout) if one else ():
                if stream:
                    stream.close()


if __name__ == "__main__":
    serve(sys.argv[1])
