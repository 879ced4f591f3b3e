"""`meson setup build --prefix=/usr`, as docs/systemd.md has it: what it needs, and where it installs to."""
import json
import os
import shutil
import subprocess
import unittest

from harness import SOURCE_ROOT, TestCase


class Install(TestCase):
    def hide(self, package):
        """An environment in which neither pkg-config nor CMake knows this package."""
        real = shutil.which("pkg-config")
        script = self.write("pkg-config", f"#!/bin/sh\ncase \" $* \" in *' {package} '*) exit 1 ;; esac\n"
                                          f"exec {real} \"$@\"\n".encode())
        os.chmod(script, 0o755)
        return {**os.environ, "PKG_CONFIG": script, "CMAKE": "/bin/false"}

    def test_the_documented_setup_needs_no_library_of_the_tests_and_installs_where_the_manual_says(self):
        build = self.path("build")
        with open(os.path.join(SOURCE_ROOT, "docs", "systemd.md")) as file:
            manual = file.read()
        self.assertIn("`meson setup build --prefix=/usr && sudo meson install -C build`", manual)
        done = subprocess.run(["meson", "setup", build, SOURCE_ROOT, "--prefix=/usr"], env=self.hide("cmocka"),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        installed = json.loads(subprocess.run(["meson", "introspect", build, "--installed"], capture_output=True,
                                              check=True).stdout).values()
        self.assertEqual({"/usr/bin/wattribute", "/usr/lib/systemd/system/wattribute.service", "/etc/default/wattribute",
                          "/usr/share/man/man1", "/usr/share/man/man5", "/usr/share/zsh/site-functions/_wattribute",
                          "/usr/share/bash-completion/completions/wattribute",
                          "/usr/share/fish/vendor_completions.d/wattribute.fish"}, set(installed))
        for directory in map(os.path.dirname, installed):
            self.assertIn(directory, manual)


if __name__ == "__main__":
    unittest.main()
