"""A terminal that a test types into and reads: tmux, with a server of its own."""
import os
import shutil
import subprocess
import tempfile

from harness import wait_until


class Tmux:
    """For a with statement. The shell in it has no prompt, and echoes nothing."""

    def __init__(self, columns=80, rows=24, env=None):
        self.directory = tempfile.TemporaryDirectory(prefix="wattribute-tmux-")
        self.socket = os.path.join(self.directory.name, "socket")
        self.raw_path = os.path.join(self.directory.name, "raw")
        settings = {"LC_ALL": "C.UTF-8", "PS1": "", "PATH": os.environ["PATH"], "HOME": self.directory.name, **(env or {})}
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows),
                  *(word for name, value in settings.items() for word in ("-e", f"{name}={value}")), "/bin/sh")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.tmux("pipe-pane", f"cat > {self.raw_path}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)
        self.directory.cleanup()

    def tmux(self, *arguments):
        environment = {**os.environ, "TMUX": "", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(["tmux", "-u", "-S", self.socket, "-f", "/dev/null", *arguments], env=environment, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tmux {arguments[0]}: {done.stderr}")
        return done.stdout

    def type(self, *keys):
        """Keys by tmux's names: 'j', 'Enter', 'PageDown', 'C-z'."""
        self.tmux("send-keys", *keys)

    def write(self, text):
        """Text as it is."""
        self.tmux("send-keys", "-l", text)

    def run(self, command):
        self.write(command)
        self.type("Enter")

    def screen(self, *flags):
        return self.tmux("capture-pane", "-p", *flags)

    def state(self, *names):
        return self.tmux("display-message", "-p", " ".join("#{%s}" % name for name in names)).split()

    def raw(self):
        """All that programs wrote to the terminal so far."""
        with open(self.raw_path, "rb") as file:
            return file.read()

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, text, seconds=10):
        """The first screen that contains it."""
        try:
            return wait_until(text, lambda: next((s for s in [self.screen()] if text in s), None), seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def wait_without(self, text, seconds=10):
        return wait_until(f"no '{text}'", lambda: next((s for s in [self.screen()] if text not in s), None), seconds)


def is_here():
    return shutil.which("tmux") is not None
