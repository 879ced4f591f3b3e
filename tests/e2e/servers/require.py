"""What a server needs of the machine."""
import importlib
import os
import shutil
import sys
import unittest

from harness import SOURCE_ROOT

# A user's PATH may lack where daemons are.
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def missing(reason):
    """Skips the test. Where CI is set it fails: nothing may go untested there."""
    if os.environ.get("CI"):
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)


def root():
    if os.geteuid() != 0:
        missing("making cgroups and mounts needs root")


def writable(hierarchies):
    for hierarchy in hierarchies:
        if not os.access(hierarchy, os.W_OK):
            missing(f"cgroups cannot be made here: {hierarchy} is read-only")


def command(name):
    """The path of a program that `tools/setup servers` installs."""
    path = shutil.which(name, path=PATH)
    if not path:
        missing(f"{name} is not installed: run 'tools/setup servers'")
    return path


def cached(name):
    """A file below .cache/ that `tools/setup servers` makes."""
    path = os.path.join(SOURCE_ROOT, ".cache", name)
    if not os.path.exists(path):
        missing(f".cache/{name} is not there: run 'tools/setup servers'")
    return path


def module(name):
    """A Python package of Debian's."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"{sys.executable} has no {name}: run 'tools/setup servers', use /usr/bin/python3")
