"""Where a server plays: a directory and a mount namespace of its own.

What it writes to /etc, /opt, /run, /var/lib and /dev/shm stays in the namespace, as do its mounts;
they go with its last process. The directory is shared with the rest of the machine, for its
sockets. A warden (warden.py) clears all of it away, also when the test is killed.
"""
import os
import socket
import subprocess
import sys
import tempfile

from harness import wait_until
from servers import require

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Stage:
    def __init__(self):
        # Not in $TMPDIR: a path of a unix socket has at most 107 bytes, and some are deep in here.
        self.directory = tempfile.mkdtemp(prefix="wattribute-", dir="/tmp")
        self.daemons = []
        self.warden = subprocess.Popen(
            [sys.executable, "-m", "servers.warden", self.directory], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=TESTS, start_new_session=True)
        answer = self.warden.stdout.readline().strip()
        if not answer.isdigit():
            self.close()
            require.missing(f"no private mounts can be made here: {answer}")
        self.holder_pid = int(answer)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content, mode=0o644):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def own(self, group):
        """A cgroup that goes with the stage, with all in it."""
        self.warden.stdin.write(f"{group}\n")
        self.warden.stdin.flush()

    def inside(self, *command):
        """The command that runs a command in here; any process of root may run it."""
        return ["nsenter", f"--mount=/proc/{self.holder_pid}/ns/mnt", "--", *command]

    def start(self, *command):
        log_path = self.path(f"{os.path.basename(command[0])}.log")
        self.daemons.append(Daemon(self.inside(*command), log_path))
        return self.daemons[-1]

    def run(self, *command, env=None, timeout=60):
        """A command to its end; returns what it wrote to stdout."""
        done = subprocess.run(self.inside(*command), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, env=env)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n"
                                 + done.stderr)
        return done.stdout.strip()

    def close(self):
        self.warden.stdin.close()
        self.warden.stdout.close()
        if self.warden.wait(300) != 0:  # it removes the files of whole images
            raise AssertionError(f"{self.directory} could not be cleared away")
        for daemon in self.daemons:
            daemon.process.wait()


class Daemon:
    """In a session of its own, so that a Ctrl-C of the tests does not reach it."""

    def __init__(self, command, log_path):
        self.log_path = log_path
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)

    def wait_until(self, what, condition, seconds=30):
        return wait_until(what, lambda: self.check() and condition(), seconds)

    def wait_for_socket(self, path):
        def is_listening():
            with socket.socket(socket.AF_UNIX) as sock:
                return sock.connect_ex(path) == 0
        self.wait_until(f"{path} is listened on", is_listening)

    def check(self):
        if self.process.poll() is not None:
            with open(self.log_path, errors="replace") as file:
                raise AssertionError(f"{self.process.args} ended with {self.process.returncode}:\n"
                                     + file.read()[-4000:])
        return True

    def stop(self, seconds=10):
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
