"""A minimal Debian with systemd, as a directory in which apt works, and as a virtual machine without a network."""
import os
import platform
import re
import subprocess

import harness
from harness import SOURCE_ROOT
from servers import require, vm

# Its script's units begin with the others; nothing waits for a login.
UNIT = """[Unit]
Description=The test
[Service]
Type=exec
ExecStart=/bin/bash /test
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
Environment=HOME=/root DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
Environment=SYSTEMD_PAGER= SYSTEMD_COLORS=0 NO_COLOR=1
"""
SECONDS = 900


def codename():
    """Of the release that is tested: this machine's, unless CODENAME says another."""
    return os.environ.get("CODENAME") or platform.freedesktop_os_release()["VERSION_CODENAME"]


def build(kind, directory):
    """The packages of the tree, which PACKAGES may hold already."""
    built = os.environ.get("PACKAGES")
    if built:
        return built
    done = subprocess.run([os.path.join(SOURCE_ROOT, "tools", "package"), kind, directory], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=800)
    if done.returncode != 0:
        raise AssertionError(f"tools/package {kind}: {done.stdout}{done.stderr}")
    return directory


def documented(page, heading, language="sh"):
    """What is in this language in this section of a manual."""
    with open(os.path.join(SOURCE_ROOT, "docs", page)) as file:
        section = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", re.sub(r"(?m)^# ", "## ", file.read()),
                            re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL))


class Root:
    """Belongs to a test, which removes it."""

    def __init__(self, test):
        require.root()
        self.test = test
        self.directory = test.path("root")
        os.mkdir(self.directory)
        subprocess.run(["tar", "--numeric-owner", "-xf", require.cached(f"systemd-{codename()}.tar"), "-C",
                        self.directory], check=True)

    def path(self, name):
        return os.path.join(self.directory, name.lstrip("/"))

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def run(self, command, network=False):
        """In the root, with mounts and processes of its own. Returns what it wrote."""
        if network:
            with open("/etc/resolv.conf") as file:
                self.write("/etc/resolv.conf", file.read())
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-c",
             'mount -t proc proc "$0/proc" && exec chroot "$0" sh -ec "$1"', self.directory, command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/tmp"})
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}")
        return done.stdout

    def boot(self, script):
        """What the script wrote between lines "=== NAME", by name. It runs under systemd; the machine ends with it."""
        self.write("/test", f"{script}\necho '=== end'\nsystemctl --force --force poweroff\n")
        self.write("/etc/systemd/system/test.service", UNIT)
        self.write("/init", "#!/bin/sh\nexec /lib/systemd/systemd --show-status=no --log-target=null\n")
        os.chmod(self.path("/init"), 0o755)
        wants = self.path("/etc/systemd/system/multi-user.target.wants")
        os.makedirs(wants, exist_ok=True)
        os.symlink("/etc/systemd/system/test.service", os.path.join(wants, "test.service"))
        archive = subprocess.run("find . -xdev -print0 | cpio --null --create --format=newc --quiet", shell=True,
                                 cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
        console = vm.boot(self.test, archive, memory_mb=1536, seconds=SECONDS,
                          parameters="systemd.getty_auto=0 systemd.mask=serial-getty@ttyS0.service")
        found = dict(re.findall(r"(?ms)^=== (\S+)\n(.*?)(?=^=== |\Z)", console))
        self.test.assertIn("end", found, console)
        return {name: text.splitlines() for name, text in found.items() if name != "end"}
