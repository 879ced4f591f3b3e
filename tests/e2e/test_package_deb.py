"""The Debian package: clean by lintian, and installed, upgraded, removed and purged by apt where systemd runs.

CODENAME is another release than this machine's, PACKAGES a directory of packages that were built there (tools/test-package).
"""
import glob
import os
import re
import subprocess
import tempfile

import harness
from harness import TestCase
from servers import debian, require

# What only the archive of Debian could have: a place where releases are published, and a page of the project.
TAGS = {"I: wattribute source: debian-watch-file-is-missing", "P: wattribute source: no-homepage-field"}
SCRIPT = r"""
cd /packages
page() {{ curl -s http://localhost:9400/metrics; }}
joules() {{ page | sed -n 's/^wattribute_meter_energy_joules_total{{meter="package",meter_id="model"}} //p'; }}
wait_for() {{ i=0; until eval "$1" || [ $i -ge 120 ]; do sleep 0.5; i=$((i + 1)); done; eval "$1"; echo "$2 $?"; }}
more() {{ awk -v a="$(joules)" -v b="$1" 'BEGIN {{ exit !(a > b) }}'; }}
quiet() {{ "$@" >/tmp/log 2>&1 || {{ cat /tmp/log; echo "failed: $*"; }}; }}

echo; echo '=== install' # systemd may have reset the terminal
quiet apt-get install -y ./old/wattribute_*.deb
systemctl is-active wattribute; systemctl is-enabled wattribute
wait_for 'page | grep -q ^wattribute_build_info' page
sed -i 's/^WATTRIBUTE_FLAGS=.*/WATTRIBUTE_FLAGS="--model.idle-watts=1000 --model.full-watts=2000"/' /etc/default/wattribute
systemctl restart wattribute
wait_for 'more 100' counted
before=$(joules); pid=$(systemctl show -P MainPID wattribute)

echo '=== upgrade'
quiet {install}
dpkg-query -W -f='${{Version}}\n' wattribute
systemctl is-active wattribute
[ "$(systemctl show -P MainPID wattribute)" != "$pid" ]; echo "restarted $?"
grep -c model.idle-watts=1000 /etc/default/wattribute
wait_for 'page | grep -q ^wattribute_build_info' page
more "$before"; echo "continued $?"
page | awk '/^wattribute_ledger_imbalance_joules/ {{ n++; if ($2 != 0) bad++ }} END {{ print n + 0, bad + 0 }}'

echo '=== check'
{check}
man -w wattribute >/dev/null 2>&1 || ls /usr/share/man/man1/wattribute.1.gz

before=$(joules)
echo '=== remove'
quiet apt-get remove -y wattribute
systemctl is-active wattribute
ls /usr/bin/wattribute /lib/systemd/system/wattribute.service 2>/dev/null
ls -1 /var/lib/wattribute/state /etc/default/wattribute

echo '=== again'
quiet apt-get install -y ./wattribute_*.deb
systemctl is-active wattribute
wait_for 'page | grep -q ^wattribute_build_info' page
more "$before"; echo "continued $?"

echo '=== purge'
quiet apt-get purge -y wattribute
systemctl is-active wattribute
ls -1d /var/lib/wattribute /etc/default/wattribute /etc/systemd/system/multi-user.target.wants/wattribute.service 2>/dev/null
dpkg --audit
systemctl --failed --no-legend --plain | grep wattribute
"""


class Deb(TestCase):
    @classmethod
    def setUpClass(cls):
        require.command("dpkg-buildpackage")
        require.command("dh")
        cls.packages = debian.build("deb", cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-deb-")))

    def only(self, pattern):
        found, = glob.glob(os.path.join(self.packages, pattern))
        return found

    def test_lintian_has_nothing_to_say_of_the_packages_and_their_source(self):
        changes = self.only("wattribute_*.changes")
        done = subprocess.run([require.command("lintian"), "--display-info", "--pedantic", "--no-tag-display-limit",
                               changes], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        found = {line for line in done.stdout.splitlines() if not line.startswith("N:")}
        self.assertLessEqual({line.split(" [")[0] for line in found}, TAGS, done.stdout + done.stderr)
        self.assertLess(done.returncode, 2, done.stderr)

    def test_it_needs_what_the_program_loads_by_itself(self):
        fields = subprocess.run(["dpkg-deb", "--field", self.only("wattribute_*.deb"), "Depends"], capture_output=True,
                                text=True, check=True).stdout
        for name in ("libcurl3t64-gnutls | libcurl3-gnutls", "libncursesw6", "libmicrohttpd12", "libjansson4"):
            self.assertIn(name, fields)

    def test_systemd_runs_it_and_counters_survive_an_upgrade_and_removal_but_not_purge(self):
        root = debian.Root(self)
        os.makedirs(root.path("/packages/old"))
        package = self.only("wattribute_*.deb")
        name = os.path.basename(package)
        with open(package, "rb") as source, open(root.path(f"/packages/{name}"), "wb") as target:
            target.write(source.read())
        # Only what it is called differs: a version before.
        root.run(f"cd /packages && dpkg-deb -R {name} /tmp/old && sed -i 's/^Version: .*/Version: 0.1.9-1/' "
                 f"/tmp/old/DEBIAN/control && dpkg-deb -b /tmp/old old/wattribute_0.1.9-1_amd64.deb && rm -r /tmp/old")
        root.write("/etc/apt/apt.conf.d/recommends", 'APT::Install-Recommends "false";\n')
        root.run(f"apt-get update -qq && apt-get install -y --download-only /packages/{name}", network=True)
        version = re.search(r"_(.*)_", name)[1]
        install, check = debian.documented("install.md", "Debian and Ubuntu").split("\n\n")[:2]
        self.assertTrue(install.startswith("sudo apt install ./"), install)
        self.assertIn(version, install)
        found = root.boot(SCRIPT.format(install=install.replace("sudo apt", "apt-get -y"),
                                        check=check.replace("sudo ", "")))
        self.assertEqual(["active", "enabled", "page 0", "counted 0"], found["install"])
        self.assertEqual([version, "active", "restarted 0", "1", "page 0", "continued 0"], found["upgrade"][:-1])
        self.assertRegex(found["upgrade"][-1], r"^[1-9]\d* 0$")
        check = "\n".join(found["check"])
        self.assertIn("wattribute_build_info{", check)
        self.assertRegex(check, r"(?m)^ok +owners")
        self.assertEqual(["inactive", "/etc/default/wattribute", "/var/lib/wattribute/state"], found["remove"], found)
        self.assertEqual(["active", "page 0", "continued 0"], found["again"])
        self.assertEqual(["inactive"], found["purge"])


if __name__ == "__main__":
    harness.main()
