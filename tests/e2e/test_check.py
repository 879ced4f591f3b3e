"""What `wattribute check` prints on nodes that are made up, compared byte for byte with tests/golden/check/NODE.txt.

Left out is what depends on who runs the test: whether that is root, and may hear of processes; and joules, which are
measured meanwhile. UPDATE_GOLDEN=1 writes
the files anew; read the diff before you commit it.
"""
import contextlib
import difflib
import json
import os
import pathlib
import re
import subprocess
import unittest

from harness import TestCase, binary, run

ROOT = pathlib.Path(os.environ["SOURCE_ROOT"])
GOLDEN = ROOT / "tests/golden/check"
CONTAINER = "a3f0c1d2e4b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff"

PROC = {
    "1/stat": "1 (init) S 0 1 1 0 -1 4194560 " + "0 " * 44,
    "1/cgroup": "0::/init.scope\n",
    "1/status": "Uid:\t0\t0\t0\t0\n",
    "1/comm": "init\n",
    "cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
               "model name\t: Xeon of a test\nphysical id\t: 0\n\n",
}
RAPL = {
    "class/powercap/intel-rapl:0/name": "package-0\n",
    "class/powercap/intel-rapl:0/energy_uj": "262143\n",
    "class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "class/powercap/intel-rapl:0:0/name": "core\n",
    "class/powercap/intel-rapl:0:0/energy_uj": "0\n",
    "class/powercap/intel-rapl:0:1/name": "dram\n",
    "class/powercap/intel-rapl:0:1/energy_uj": "77\n",
    "class/powercap/intel-rapl:1/name": "psys\n",
    "class/powercap/intel-rapl:1/energy_uj": "99\n",
}
HWMON = {
    "class/hwmon/hwmon0/name": "power_meter\n",
    "class/hwmon/hwmon0/power1_average": "300000000\n",
    "class/hwmon/hwmon1/name": "power_meter\n",
    "class/hwmon/hwmon1/power1_average": "299000000\n",
}
AMD = {
    "class/hwmon/hwmon0/name": "amd_energy\n",
    "class/hwmon/hwmon0/energy1_label": "Esocket0\n",
    "class/hwmon/hwmon0/energy1_input": "123456789\n",
    "class/hwmon/hwmon0/energy2_label": "Esocket1\n",
    "class/hwmon/hwmon0/energy2_input": "never\n",
}
CRAY = {f"cray/pm_counters/{name}": text for name, text in (
    ("freshness", "7\n"), ("startup", "1\n"), ("power", "873 W 1734094386462336 us\n"),
    ("energy", "5000 J 1734094386462336 us\n"), ("cpu_energy", "3000 J 1734094386462336 us\n"),
    ("memory_energy", "much\n"))}
RESCTRL = {
    "fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": "4096\n",
    f"fs/resctrl/mon_groups/{CONTAINER}/mon_data/mon_L3_00/mbm_total_bytes": "1024\n",
}
HOST_ENGINE = ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
               "   0: 0100007F:15B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1674 1\n")
FAKE_DCGM = os.path.join(os.environ["FAKE_NVML_DIR"], "../dcgm")
NO_GPU = {"LD_LIBRARY_PATH": "/nonexistent"}
SWITCHES = [f"--no-collector.{name}" for name in ("nvml", "dcgm", "rapl", "hwmon", "cray", "ipmi", "redfish", "cgroups")]


def fake_gpus(scenario):
    return {"LD_LIBRARY_PATH": os.environ["FAKE_NVML_DIR"],
            "FAKE_NVML_SCENARIO": str(ROOT / "tests/fakes/nvml/scenarios" / scenario)}


class Nodes(TestCase):
    def make(self, sysfs):
        for folder, files in (("proc", PROC), ("sys", sysfs), ("root", {})):
            os.makedirs(self.path(folder))
            for name, text in files.items():
                os.makedirs(os.path.dirname(self.path(f"{folder}/{name}")), exist_ok=True)
                self.write(f"{folder}/{name}", text.encode())

    def check_joules(self, text):
        """Of processes that share one board: what is booked adds up to its counter, what DCGM would say does not."""
        processes = re.findall(r": pid .*booked ([\d.]+) J; DCGM would say ([\d.]+) J", text)
        shared = re.search(r"counted ([\d.]+) J, of which ([\d.]+) J .* add up to ([\d.]+) J", text)
        if processes:
            counted, booked, told = map(float, shared.groups())
            self.assertGreater(counted, 0)
            self.assertAlmostEqual(booked, sum(float(joules) for joules, _ in processes), delta=1)
            self.assertLessEqual(booked, counted)
            self.assertEqual({counted}, {float(joules) for _, joules in processes})
            self.assertAlmostEqual(told, counted * len(processes), delta=1)

    def print(self, env, *flags):
        done = run("check", f"--path.procfs={self.path('proc')}", f"--path.sysfs={self.path('sys')}",
                   f"--path.rootfs={self.path('root')}", *flags, env=env)
        self.assertEqual(b"", done.stderr)
        text = re.sub(r"(?m)^\S+ +(privileges|process events) .*\n( +-> .*\n)?", "", done.stdout.decode())
        text = re.sub(r'\n \{"what":"(privileges|process events)".*\},?(?=\n)', "", text)
        text = re.sub(r'(\d+) limited|"limited":\d+', "N limited", text)
        self.check_joules(text)
        text = re.sub(r"\d+\.\d J", "N J", text)
        return f"$ wattribute check {' '.join(flags)}\n{text}= {done.returncode}\n"

    def compare(self, name, env, *flags):
        path = GOLDEN / f"{name}.txt"
        text = self.print(env, *flags) + self.print(env, "--json", *flags)
        if os.environ.get("UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        diff = difflib.unified_diff(path.read_text().splitlines(), text.splitlines(), str(path), "now", lineterm="")
        self.assertEqual("", "\n".join(diff))

    def test_a_node_with_every_meter_of_processors_and_board(self):
        self.make({**RAPL, **HWMON, **CRAY, **RESCTRL})
        self.compare("meters", NO_GPU)

    def test_a_node_where_sensors_stand_in_for_rapl(self):
        self.make({**AMD, "fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": "4096\n"})
        self.compare("sensors", NO_GPU, "--model.cpu=auto", "--no-collector.rapl")

    def test_a_node_with_gpus(self):
        self.make(RAPL)
        self.compare("gpus", fake_gpus("time-slicing.trace"))

    def test_a_node_with_a_gpu_whose_activity_dcgm_knows(self):
        self.make(RAPL)
        os.makedirs(self.path("proc/net"))
        self.write("proc/net/tcp", HOST_ENGINE.encode())
        env = fake_gpus("time-slicing.trace")
        self.compare("gpu-with-dcgm", {**env, "LD_LIBRARY_PATH": f"{env['LD_LIBRARY_PATH']}:{FAKE_DCGM}",
                                       "FAKE_DCGM_GPUS": "GPU-00000000-0000-4000-8000-000000000000"})

    def test_a_host_engine_that_hangs_costs_its_own_lines_only(self):
        self.make(RAPL)
        os.makedirs(self.path("proc/net"))
        self.write("proc/net/tcp", HOST_ENGINE.encode())
        env = fake_gpus("time-slicing.trace")
        done = run("check", f"--path.procfs={self.path('proc')}", f"--path.sysfs={self.path('sys')}",
                   f"--path.rootfs={self.path('root')}", timeout=60, env={
                       **env, "LD_LIBRARY_PATH": f"{env['LD_LIBRARY_PATH']}:{FAKE_DCGM}", "FAKE_DCGM_SILENT": "1",
                       "FAKE_DCGM_GPUS": "GPU-00000000-0000-4000-8000-000000000000"})
        self.assertEqual(3, done.returncode)
        self.assertIn(b"failed   dcgm                     it has hung for 20 s\n", done.stdout)
        self.assertIn(b"ok       rapl ", done.stdout)

    def test_a_node_with_a_gpu_that_counts_no_energy(self):
        self.make(RAPL)
        self.compare("gpu-without-counter", fake_gpus("no-counter.trace"), "--no-collector.hwmon")

    def test_a_node_with_a_gpu_in_mig_mode(self):
        self.make(RAPL)
        self.compare("mig", fake_gpus("a100-mig.trace"))

    def test_a_node_with_a_gpu_in_mig_mode_whose_instances_may_not_all_be_seen(self):
        self.make(RAPL)
        with open(ROOT / "tests/fakes/nvml/scenarios/mig-change.trace", "rb") as file:
            lines = file.read().split(b"\n", 2)
        scenario = self.write("unprivileged.trace", b"\n".join([*lines[:2], b"0 X 0 monitor off", lines[2]]))
        self.compare("mig-unprivileged", {**fake_gpus(""), "FAKE_NVML_SCENARIO": scenario})

    def test_a_node_with_a_vgpu_host(self):
        self.make(RAPL)
        self.compare("vgpu-host", fake_gpus("vgpu-host.trace"))

    def test_a_node_with_everything_switched_off(self):
        self.make({**RAPL, **HWMON, **CRAY, **RESCTRL})
        self.compare("switched-off", NO_GPU, *SWITCHES)

    def test_a_node_whose_watts_are_given(self):
        self.make({})
        self.compare("watts", NO_GPU, "--no-collector.rapl", "--model.idle-watts=40", "--model.full-watts=250.5")

    def on_a_terminal(self, **env):
        """What a terminal gets, and the plain form of it."""
        here, there = os.openpty()
        flags = [f"--path.{name}={self.path(name[:-2] if name != 'rootfs' else 'root')}"
                 for name in ("procfs", "sysfs", "rootfs")]
        with open(here, "rb", buffering=0) as screen:
            done = subprocess.Popen([binary(), "check", *flags], stdin=subprocess.DEVNULL, stdout=there,
                                    env={**os.environ, **NO_GPU, "TERM": "xterm", **env})
            os.close(there)
            text = b""
            with contextlib.suppress(OSError):  # EIO: the other end is closed
                while data := screen.read(65536):
                    text += data
            done.wait(20)
        text = text.decode().replace("\r\n", "\n")
        return text, re.sub(r"\033\[\d*m", "", text)

    def test_words_have_colours_on_a_terminal_that_has_them(self):
        self.make({**RAPL, **HWMON, "class/hwmon/hwmon0/power1_average": "never\n"})
        text, plain = self.on_a_terminal()
        self.assertIn("\033[32mok      \033[0m rapl", text)
        self.assertIn("\033[39mmissing \033[0m ipmi", text)
        self.assertIn("\033[31mfailed  \033[0m hwmon", text)
        self.assertIn("\033[33mlimited \033[0m emissions", text)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual((plain, plain), self.on_a_terminal(**env))

    def test_the_name_of_a_board_controls_neither_the_terminal_nor_the_json(self):
        self.make(RAPL)
        with open(ROOT / "tests/fakes/nvml/scenarios/no-counter.trace", "rb") as file:
            text = file.read().replace(b"name=NVIDIA_H200", b'name=\033]0;x\007"},{\xff', 1)
        env = {**fake_gpus(""), "FAKE_NVML_SCENARIO": self.write("hostile.trace", text)}
        flags = [f"--path.{name}={self.path(folder)}" for name, folder in
                 (("procfs", "proc"), ("sysfs", "sys"), ("rootfs", "root"))]
        self.assertIn(b'ok       gpu 0                    ?]0;x?"},{?, GPU-00000000', run("check", *flags, env=env).stdout)
        report = json.loads(run("check", "--json", *flags, env=env).stdout)
        board, = (finding for finding in report["findings"] if finding["what"] == "gpu 0")
        self.assertRegex(board["detail"], '\\A\033\\]0;x\007"},{\ufffd, GPU-00000000')

    def test_a_name_does_not_control_the_terminal(self):
        self.make(RAPL)
        self.write("proc/1/stat", PROC["1/stat"].replace("(init)", "(\033]0;x\007)").encode())
        self.write("proc/1/comm", b"\033]0;x\007\n")
        text, _ = self.on_a_terminal(NO_COLOR="1")
        self.assertIn("pid 1 is ?]0;x?;", text)


if __name__ == "__main__":
    unittest.main()
