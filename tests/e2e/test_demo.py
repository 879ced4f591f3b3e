"""The demo of packaging/demo: the exporter and Prometheus run as its services say, and Prometheus has the watts of pods.

What Compose and the images of others do is not tried here: a registry would be needed. Debian's Prometheus stands in.
"""
import json
import os
import subprocess
import sys

import harness
from harness import SOURCE_ROOT, TestCase
from servers import debian, require

DEMO = os.path.join(SOURCE_ROOT, "packaging", "demo")
QUERY = 'sum by (namespace, pod) (rate(wattribute_workload_energy_joules_total{pod!=""}[30s]))'
# In a network of its own, where the services have their names and ports.
SCRIPT = """
ip link set lo up
mount --bind {hosts} /etc/hosts
cd {directory}
{exporter} >exporter.log 2>&1 &
{prometheus} >prometheus.log 2>&1 &
exec {python} {asker}
"""
ASKER = r"""
import json, sys, time, urllib.parse, urllib.request
end = time.monotonic() + 180
while True:
    try:
        with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote({query!r}), timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        if len(found) >= 2 and all(float(each["value"][1]) > 0 for each in found):
            print(json.dumps(found))
            break
    except OSError:
        pass
    if time.monotonic() > end:
        sys.exit("no watts: " + open("prometheus.log").read() + open("exporter.log").read())
    time.sleep(1)
"""


class Demo(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.yaml = require.module("yaml")
        with open(os.path.join(DEMO, "compose.yaml")) as file:
            cls.services = cls.yaml.safe_load(file)["services"]

    def mounted(self, service):
        """{path in the container: path in the tree}; each can only be read."""
        found = {}
        for volume in self.services[service]["volumes"]:
            source, target, mode = volume.split(":")
            self.assertEqual("ro", mode)
            found[target] = os.path.normpath(os.path.join(DEMO, source))
        return found

    def test_images_have_versions_and_ports_are_on_loopback(self):
        for name, service in self.services.items():
            self.assertRegex(service["image"], r":(v?\d+\.\d+\.\d+|demo)$", name)
            for port in service["ports"]:
                self.assertRegex(port, r"^127\.0\.0\.1:(\d+):\1$")
        with open(os.path.join(DEMO, "README.md")) as file:
            text = file.read()
        for service in ("prometheus", "grafana"):
            self.assertIn(f"({self.services[service]['image'].rpartition(':')[2]})", text)

    def test_what_is_mounted_is_in_the_tree(self):
        for name in self.services:
            for path in self.mounted(name).values():
                self.assertTrue(os.path.exists(path), path)

    def test_the_command_of_the_manuals_is_that_of_the_file(self):
        command = "docker compose -f packaging/demo/compose.yaml up --build"
        self.assertEqual(f"{command}\n", debian.documented("install.md", "A demo with Docker alone"))
        for path in ("README.md", "compose.yaml"):
            with open(os.path.join(DEMO, path)) as file:
                self.assertIn(command, file.read())

    def test_grafana_finds_prometheus_and_the_dashboards(self):
        provisioning = self.mounted("grafana")["/etc/grafana/provisioning"]
        with open(os.path.join(provisioning, "datasources", "prometheus.yaml")) as file:
            source, = self.yaml.safe_load(file)["datasources"]
        self.assertEqual(("prometheus", "http://prometheus:9090"), (source["type"], source["url"]))
        with open(os.path.join(provisioning, "dashboards", "wattribute.yaml")) as file:
            provider, = self.yaml.safe_load(file)["providers"]
        self.assertIn(provider["options"]["path"], self.mounted("grafana"))

    def test_prometheus_has_the_watts_of_the_pods(self):
        require.root()
        data = self.mounted("wattribute")["/data"]
        verb, *flags = self.services["wattribute"]["command"]
        flags = [flag.replace("/data/", f"{data}/") for flag in flags]
        with open(self.mounted("prometheus")["/etc/prometheus/prometheus.yml"]) as file:
            configuration = file.read().replace("/etc/prometheus/mixin/",
                                                f"{self.mounted('prometheus')['/etc/prometheus/mixin']}/")
        path = self.write("prometheus.yaml", configuration.encode())
        subprocess.run([harness.prometheus_tool("promtool"), "check", "config", "--syntax-only", path], check=True, timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        hosts = self.write("hosts", b"127.0.0.1 localhost wattribute prometheus\n")
        asker = self.write("ask.py", ASKER.format(query=QUERY).encode())
        script = SCRIPT.format(
            hosts=hosts, directory=self.directory, python=sys.executable, asker=asker,
            exporter=" ".join([harness.binary(), verb, *flags]),
            prometheus=f"{harness.prometheus_tool('prometheus')} --config.file={path} --storage.tsdb.path={self.path('tsdb')}")
        done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
                               "sh", "-ec", script],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
        self.assertEqual(0, done.returncode, done.stderr)
        pods = {each["metric"]["pod"]: float(each["value"][1]) for each in json.loads(done.stdout)}
        self.assertLessEqual({"training-job", "llm-server-0"}, set(pods))
        self.assertGreater(pods["training-job"], pods["llm-server-0"])  # as the README shows


if __name__ == "__main__":
    harness.main()
