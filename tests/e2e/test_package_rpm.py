"""The rpm: what it holds, needs and does when it is installed, upgraded and erased in a root; as far as Debian's rpm can tell."""
import glob
import json
import os
import re
import subprocess
import tempfile

import harness
from harness import SOURCE_ROOT, TestCase
from servers import debian, require

CONFIGURATION = "/etc/default/wattribute"
# What the scripts of the package call, and who would answer.
SYSTEMCTL = '#!/bin/sh\necho "$@" >>/calls\n'


class Rpm(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rpm = require.command("rpm")
        require.command("rpmbuild")
        cls.packages = debian.build("rpm", cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-rpm-")))
        cls.package, = (path for path in glob.glob(os.path.join(cls.packages, "wattribute-*.rpm")) if "src" not in path)

    def query(self, *options, package=None):
        done = subprocess.run([self.rpm, "--query", "--package", *options, package or self.package], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    def test_it_holds_what_meson_installs(self):
        build = os.path.dirname(harness.binary())
        installed = json.loads(subprocess.run(["meson", "introspect", build, "--installed"], capture_output=True,
                                              check=True).stdout).values()
        names = {os.path.basename(path) for path in installed} - {"man1", "man5"}
        held = self.query("--list")
        self.assertLessEqual(names, {os.path.basename(path) for path in held})
        self.assertIn("/usr/lib/systemd/system/wattribute.service", held)
        self.assertEqual([CONFIGURATION], self.query("--configfiles"))
        pages = {re.sub(r"\.[15](\.gz)?$", "", os.path.basename(path)) for path in held if "/share/man/" in path}
        self.assertEqual({os.path.basename(path)[:-len(".roff")]
                          for path in glob.glob(os.path.join(SOURCE_ROOT, "docs", "man", "*.roff"))}, pages)

    def test_it_needs_what_the_program_loads_by_itself(self):
        needed = self.query("--requires")
        self.assertIn("(libcurl.so.4()(64bit) or libcurl-gnutls.so.4()(64bit))", needed)
        self.assertTrue(any(each.startswith("libmicrohttpd.so.12()") for each in needed), needed)

    def test_its_source_package_holds_the_archive_and_the_recipe(self):
        source, = glob.glob(os.path.join(self.packages, "wattribute-*.src.rpm"))
        version = self.query("--queryformat=%{VERSION}")[0]
        self.assertEqual({f"wattribute-{version}.tar.xz", "wattribute.spec"}, set(self.query("--list", package=source)))

    def test_the_program_in_it_runs_and_its_unit_starts_it(self):
        place = self.path("unpacked")
        os.mkdir(place)
        subprocess.run(f'rpm2cpio "{self.package}" | cpio --extract --make-directories --quiet', shell=True, cwd=place,
                       check=True, stdin=subprocess.DEVNULL, timeout=60)
        done = subprocess.run([os.path.join(place, "usr/bin/wattribute"), "--version"], capture_output=True, text=True,
                              check=True, timeout=20)
        self.assertEqual(f"wattribute {self.query('--queryformat=%{VERSION}')[0]}\n", done.stdout)
        with open(os.path.join(place, "usr/lib/systemd/system/wattribute.service")) as file:
            self.assertIn("ExecStart=/usr/bin/wattribute serve", file.read())

    def test_its_scripts_enable_restart_and_stop_the_service_and_flags_stay(self):
        root = debian.Root(self)
        os.makedirs(root.path("/run/systemd/system"))
        root.write("/usr/bin/systemctl", SYSTEMCTL)

        def call(*arguments):
            done = subprocess.run([self.rpm, "--root", root.directory, "--nodeps", "--noplugins", "--force-debian", *arguments],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
            said = done.stderr.replace(f"warning: {CONFIGURATION} saved as {CONFIGURATION}.rpmsave\n", "")
            self.assertEqual((0, ""), (done.returncode, said))
            with open(root.path("/calls")) as file:
                called = file.read().splitlines()
            os.unlink(root.path("/calls"))
            return called

        reload = "daemon-reload"
        self.assertEqual([reload, "--no-reload preset wattribute.service"], call("--install", self.package))
        with open(root.path(CONFIGURATION), "a") as file:
            file.write("# changed\n")
        # Of the new one, in which it is an upgrade, and of the old one, which it replaces.
        self.assertEqual([reload, "try-restart wattribute.service"], call("--upgrade", "--replacepkgs", self.package))
        with open(root.path(CONFIGURATION)) as file:
            self.assertTrue(file.read().endswith("# changed\n"))
        self.assertEqual(["--no-reload disable --now wattribute.service", reload], call("--erase", "wattribute"))
        self.assertFalse(os.path.exists(root.path("/usr/bin/wattribute")))
        self.assertTrue(os.path.exists(root.path(f"{CONFIGURATION}.rpmsave")))


if __name__ == "__main__":
    harness.main()
