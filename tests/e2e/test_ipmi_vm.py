"""The kernel's own IPMI driver in a virtual machine: QEMU's BMC, which has no DCMI, and one that has."""
import re

import harness
from harness import TestCase
from servers import vm
from servers.bmc import UNKNOWN_COMMAND, Bmc, power_reading

MODULES = ("ipmi_msghandler", "ipmi_devintf", "ipmi_si")
SIMULATED = ("-device", "ipmi-bmc-sim,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0")
CONTROLLERS = {"cpu", "cpuset", "io", "memory", "pids"}
# The device comes when the driver has talked to the BMC. `serve` looks once a second for what is not there; until it
# shows the source, or for the time of a hundred pages.
SCRIPT = """
i=0
while [ ! -c /dev/ipmi0 ] && [ $i -lt 300 ]; do usleep 100000; i=$((i + 1)); done
echo; echo '=== device'; ls -l /dev/ipmi0
echo '=== controllers'; cat /sys/fs/cgroup/cgroup.controllers
echo '=== check'; wattribute check
echo '=== refused'; su nobody -s /bin/wattribute -- check
wattribute serve --listen-address=127.0.0.1:9400 --process-scan-interval=1s >/tmp/log 2>&1 &
pid=$!
page() { wget -q -O - http://127.0.0.1:9400/metrics 2>/dev/null; }
i=0
while ! page >/dev/null && [ $i -lt 300 ]; do usleep 100000; i=$((i + 1)); done
i=0
while [ $i -lt 100 ] && ! page | grep -q '^wattribute_source_up{source="ipmi"}'; do usleep 50000; i=$((i + 1)); done
echo '=== page'; page | grep '^wattribute_source_up\\|^wattribute_build_info'
kill $pid; wait $pid
echo '=== log'; cat /tmp/log
echo '=== end'
"""


class Ipmi(TestCase):
    def boot(self, devices):
        """The sections of what the machine wrote."""
        console = vm.run(self, SCRIPT, MODULES, devices)
        found = dict(re.findall(r"(?ms)^=== (\w+)\n(.*?)(?==== |\Z)", console))
        self.assertIn("end", found, console)
        print(f"controllers: {found['controllers']}", *re.findall(".* ipmi .*", found["check"]), sep="")
        self.assertRegex(found["device"], r"^crw------- .* /dev/ipmi0")
        self.assertLessEqual(CONTROLLERS, set(found["controllers"].split()))
        self.assertRegex(found["refused"], r"(?m)^failed +ipmi +cannot open /dev/ipmi0: not permitted; run as root")
        self.assertIn("wattribute_build_info", found["page"])
        self.assertIn("msg=listening", found["log"])
        return found

    def assert_absent(self, found):
        self.assertRegex(found["check"], r"(?m)^missing +ipmi .*does not know the command \(completion code 0xc1\)")
        self.assertNotIn("ipmi", found["page"])
        self.assertNotIn("ipmi", found["log"])

    def test_the_bmc_of_qemu_is_told_by_check_and_otherwise_absent(self):
        self.assert_absent(self.boot(SIMULATED))

    def test_a_bmc_without_dcmi_stays_absent_though_it_is_asked_again(self):
        with Bmc(self.path("bmc"), UNKNOWN_COMMAND) as bmc:
            self.assert_absent(self.boot(bmc.device))
        self.assertGreaterEqual(len(bmc.asked), 3)  # by check, and more than once by serve

    def test_a_bmc_with_dcmi_tells_its_power(self):
        with Bmc(self.path("bmc"), power_reading(319)) as bmc:
            found = self.boot(bmc.device)
        self.assertRegex(found["check"], r"(?m)^ok +ipmi .*: 319 W$")
        self.assertIn('wattribute_source_up{source="ipmi"} 1\n', found["page"])
        self.assertNotIn("ipmi", found["log"])
        self.assertEqual({b"\xdc\x01\x00\x00"}, set(bmc.asked))

    def test_a_bmc_that_does_not_answer_is_down(self):
        with Bmc(self.path("bmc"), None) as bmc:
            found = self.boot(bmc.device)
        self.assertRegex(found["check"], r"(?m)^failed +ipmi .*timeout \(completion code 0xc3\)")
        self.assertIn('wattribute_source_up{source="ipmi"} 0\n', found["page"])
        self.assertEqual(1, len(re.findall('(?m)"source is down.* source=ipmi ', found["log"])), found["log"])


if __name__ == "__main__":
    harness.main()
