"""A virtual machine with Debian's kernel and, besides the program under test, nothing but busybox. Emulated, so that
it needs no right; it has no network and no disk."""
import glob
import os
import platform
import re
import stat
import subprocess

import harness
from servers import require

SECONDS = 240
DIRECTORIES = ("bin", "dev", "etc", "proc", "sys", "tmp")
PASSWD = b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
INIT = """#!/bin/busybox sh
export PATH=/bin NO_COLOR=1
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
{script}
poweroff -f
"""


def cpio(files):
    """The archive (newc) of {name: (mode, bytes)} that the kernel unpacks as its first root."""
    archive = b""
    for inode, (name, (mode, data)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], 1):
        name = name.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        for part in (header + name, data):
            archive += part + b"\0" * (-len(part) % 4)
    return archive


def libraries(program):
    listing = subprocess.run([require.command("ldd"), program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)


def module_paths(names):
    """Below .cache/kernel, in the order in which they are to be loaded."""
    root = require.cached("kernel")
    found = [glob.glob(os.path.join(root, "lib", "modules", "*", "**", f"{name}.ko"), recursive=True) for name in names]
    if not all(found):
        require.missing(f".cache/kernel has not all of {', '.join(names)}: run 'tools/setup servers'")
    return [paths[0] for paths in found]


def root(script, modules, programs, copies=()):
    """The files of the machine; its init runs the lines of `script` with the modules loaded, then it ends."""
    load = "".join(f"insmod /{os.path.basename(path)}\n" for path in modules)
    files = {name: (stat.S_IFDIR | 0o755, b"") for name in DIRECTORIES}
    files["etc/passwd"] = (stat.S_IFREG | 0o644, PASSWD)
    files["init"] = (stat.S_IFREG | 0o755, INIT.format(script=load + script).encode())
    sources = {f"/{os.path.basename(path)}": path for path in modules}
    sources.update({"/bin/busybox": require.command("busybox"), "/bin/wattribute": harness.binary()})
    sources.update({f"/bin/{name}": path for name, path in programs.items()})
    sources.update({path: path for program in (harness.binary(), *copies) for path in libraries(program)})
    sources.update({path: path for path in copies})
    for name, path in sources.items():
        for parent in reversed([part for part in parents(name) if part not in files]):
            files[parent] = (stat.S_IFDIR | 0o755, b"")
        with open(path, "rb") as file:
            files[name[1:]] = (stat.S_IFREG | 0o755, file.read())
    return files


def parents(name):
    while (name := os.path.dirname(name)) != "/":
        yield name[1:]


def run(test, script, modules, devices=(), programs=None, copies=(), parameters=""):
    """All that the machine wrote to its console, by the time it switched itself off.

    `programs` (name: path) are linked statically, `copies` are paths of programs that come with their libraries to the
    same path, and `parameters` are the kernel's.
    """
    files = cpio(root(script, module_paths(modules), programs or {}, copies))
    return boot(test, files, devices=devices, parameters=parameters)


def boot(test, files, devices=(), parameters="", memory_mb=384, seconds=SECONDS):
    """The same, of a machine whose root is this archive."""
    if platform.machine() != "x86_64":
        require.missing("the machine that is emulated is an x86_64")
    qemu = require.command("qemu-system-x86_64")
    kernel = glob.glob(os.path.join(require.cached("kernel"), "boot", "vmlinuz-*"))[0]
    image = test.write("initramfs", files)
    done = subprocess.run(
        [qemu, "-accel", "tcg", "-machine", "pc", "-m", str(memory_mb),
         "-nodefaults", "-no-user-config", "-display", "none", "-net", "none", "-no-reboot", "-serial", "stdio",
         "-kernel", kernel, "-initrd", image, "-append", f"console=ttyS0 quiet panic=-1 {parameters}", *devices],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    os.unlink(image)
    console = done.stdout.decode(errors="replace").replace("\r\n", "\n")
    test.assertEqual(0, done.returncode, f"{console}\n{done.stderr.decode(errors='replace')}")
    return console
