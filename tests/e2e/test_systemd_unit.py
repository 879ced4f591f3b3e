"""The unit for systemd: what systemd says of it, and that the program runs with what it leaves."""
import os
import re
import subprocess
import sys

import harness
from harness import PROCESS_ENERGY, Exporter, TestCase
from servers import require, unit_sandbox
from test_identity import Gpu

UNIT = os.path.join(os.path.dirname(harness.binary()), "wattribute.service")
EXPOSURE_MAX = 3.0
# Each would hide processes or the GPU, and then there is nothing to book.
NEVER = ("ProtectProc", "ProcSubset", "PrivateDevices", "PrivateUsers", "PrivateNetwork")


class SystemdUnit(TestCase):
    def analyze(self, *arguments):
        done = subprocess.run([require.command("systemd-analyze"), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def installed(self):
        """The unit with the binary under test."""
        with open(UNIT) as file:
            text = re.sub(r"^ExecStart=\S+", f"ExecStart={harness.binary()}", file.read(), flags=re.MULTILINE)
        return self.write("wattribute.service", text.encode())

    def test_systemd_finds_no_fault_in_it(self):
        self.assertEqual((0, "", ""), self.analyze("verify", "--man=no", self.installed()))

    def test_it_exposes_little(self):
        status, report, errors = self.analyze("security", "--offline=true", "--no-pager", self.installed())
        self.assertEqual((0, ""), (status, errors))
        exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", report).group(1))
        print(f"exposure level {exposure}")
        self.assertLess(exposure, EXPOSURE_MAX)

    def test_it_hides_neither_processes_nor_the_gpu(self):
        for name in NEVER:
            self.assertEqual([], unit_sandbox.settings(UNIT, name), name)
        self.assertIn("char-195 rw", unit_sandbox.settings(UNIT, "DeviceAllow"))
        self.assertIn("char-ipmidev r", unit_sandbox.settings(UNIT, "DeviceAllow"))
        self.assertIn("char-drm rw", unit_sandbox.settings(UNIT, "DeviceAllow"))

    def test_its_flags_come_from_the_environment_file(self):
        with open(os.path.join(harness.SOURCE_ROOT, "packaging", "systemd", "wattribute.default")) as file:
            self.assertRegex(file.read(), r'(?m)^WATTRIBUTE_FLAGS=""$')
        self.assertEqual(["serve $WATTRIBUTE_FLAGS"], [
            value.split(None, 1)[1] for value in unit_sandbox.settings(UNIT, "ExecStart")])

    def test_systemd_waits_for_the_server_and_restarts_a_collector_that_hangs(self):
        """What is told to it is in test_liveness.py."""
        for name, value in (("Type", "notify"), ("NotifyAccess", "main"), ("WatchdogSec", "30s"), ("Restart", "always")):
            self.assertEqual([value], unit_sandbox.settings(UNIT, name), name)
        self.assertIn("AF_UNIX", unit_sandbox.settings(UNIT, "RestrictAddressFamilies")[0].split())

    def test_landlock_is_allowed(self):
        allowed = unit_sandbox.allowed_calls(UNIT)
        self.assertLessEqual({"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}, allowed)

    def test_the_program_runs_with_what_the_unit_leaves(self):
        require.root()
        require.command("systemd-analyze")
        gpu = Gpu(self, 1)
        other = subprocess.Popen(["setpriv", "--reuid=4711", "--clear-groups", "sleep", "600"],
                                 stdin=subprocess.DEVNULL)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        gpu.put([other.pid])
        wrapper = (sys.executable, "-m", "servers.unit_sandbox", UNIT)
        env = {**gpu.env, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
        with Exporter("--process-scan-interval=1s", wrapper=wrapper, env=env) as exporter:
            page = exporter.wait_for_page("it is shown", lambda page: page.sum(
                PROCESS_ENERGY, pid=str(other.pid), process_name="sleep") > 0)
            self.assert_balanced(page)
            collector = harness.process_status(exporter.pid)
            kept = bin(int(collector["CapEff"], 16)).count("1")
            names = unit_sandbox.settings(UNIT, "CapabilityBoundingSet")[0].split()
            self.assertEqual(("2", len(names)), (collector["Seccomp"], kept))
            front = harness.process_status(exporter.server())
            self.assertEqual(["65521"] * 4, front["Uid"].split())
            self.assertEqual(0, int(front["CapEff"], 16))


if __name__ == "__main__":
    harness.main()
