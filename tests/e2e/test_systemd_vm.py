"""The unit under systemd itself, in a virtual machine: it is up when the server answers, and a collector that is stopped is
replaced by the watchdog."""
import re

import harness
from harness import TestCase
from servers import require, vm

SYSTEMD = "/lib/systemd/systemd"
# systemd takes over as process 1. The script is a unit of its own, and switches the machine off.
SCRIPT = """
mkdir -p /run /etc/systemd/system /etc/default /usr/bin
ln -s /bin/wattribute /usr/bin/wattribute
: >/etc/machine-id
for target in sysinit basic shutdown; do
    printf '[Unit]\\nDefaultDependencies=no\\n' >/etc/systemd/system/$target.target
done
cat >/etc/systemd/system/wattribute.service <<'END'
{unit}
END
cat >/etc/systemd/system/test.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=exec
ExecStart=/bin/sh /test
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
END
cat >/test <<'END'
export PATH=/bin SYSTEMD_PAGER= SYSTEMD_COLORS=0
page() {{ wget -q -O - http://127.0.0.1:9400/metrics 2>/dev/null; }}
show() {{ systemctl show -P "$1" wattribute; }}
echo; echo '=== start'; systemctl start wattribute; echo "status $?"
echo '=== active'; show ActiveState; show StatusText; page | grep -c '^wattribute_build_info'
first=$(show MainPID)
kill -STOP $first
i=0
while [ "$(show NRestarts)" = 0 ] && [ $i -lt 120 ]; do sleep 1; i=$((i + 1)); done
i=0
while [ "$(show ActiveState)" != active ] && [ $i -lt 60 ]; do sleep 1; i=$((i + 1)); done
echo '=== restarted'; show NRestarts; show ActiveState; page | grep -c '^wattribute_build_info'
[ -d /proc/$first ] && echo 'it is still there'
systemctl stop wattribute
echo '=== stopped'; show ActiveState; show Result
echo '=== end'
poweroff -f
END
exec {systemd} --unit=test.service --show-status=no --log-target=null
"""


class Systemd(TestCase):
    def test_it_waits_for_the_server_and_replaces_a_collector_that_is_stopped(self):
        with open(f"{harness.binary().rsplit('/', 1)[0]}/wattribute.service") as file:
            unit = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/usr/bin/wattribute", file.read())
        require.command("systemctl")
        console = vm.run(self, SCRIPT.format(unit=unit, systemd=SYSTEMD), (), copies=(SYSTEMD, "/bin/systemctl"))
        found = dict(re.findall(r"(?ms)^=== (\w+)\n(.*?)(?==== |\Z)", console))
        self.assertIn("end", found, console)
        self.assertEqual(
            {"start": ["status 0"], "active": ["active", "Serving metrics", "1"], "restarted": ["1", "active", "1"],
             "stopped": ["inactive", "success"]},
            {name: found[name].split("\n")[:-1] for name in found if name != "end"}, console)


if __name__ == "__main__":
    harness.main()
