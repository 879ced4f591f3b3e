"""docs/first-look.md does what it says: its commands are run in order, as a newcomer would paste them, with ports of our own."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile

import harness
from harness import SOURCE_ROOT, TestCase, binary, prometheus_tool

PAGE = f"{SOURCE_ROOT}/docs/first-look.md"


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class FirstLook(TestCase):
    def blocks(self, kind):
        with open(PAGE, encoding="utf-8") as file:
            return re.findall(rf"^```{kind}\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)

    def test_the_commands_of_the_page_lead_to_watts_of_pods_in_prometheus(self):
        exporter, prometheus = free_port(), free_port()
        with tempfile.TemporaryDirectory() as directory:
            def ours(text):
                return text.replace("localhost:9400", f"127.0.0.1:{exporter}").replace(
                    "localhost:9090", f"127.0.0.1:{prometheus}")

            [config] = self.blocks("yaml")
            with open(f"{directory}/prometheus.yml", "w") as file:
                file.write(ours(config))
            os.makedirs(f"{directory}/build")
            os.symlink(binary(), f"{directory}/build/wattribute")
            os.symlink(f"{SOURCE_ROOT}/data", f"{directory}/data")
            build, *commands = self.blocks("sh")
            self.assertEqual("make build\n", build)  # this test runs with what it has built
            script = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n" + "".join(f"{ours(block)}echo '=== end'\n" for block in commands) + "kill %1 %2\n"
            tools = os.path.dirname(prometheus_tool("prometheus")), os.path.dirname(prometheus_tool("promtool"))
            # A process group of its own, so that nothing of it is left.
            process = subprocess.Popen(["bash", "-c", script], cwd=directory, start_new_session=True,
                                       env={**os.environ, "PATH": ":".join([*tools, os.environ["PATH"]])},
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                out, err = process.communicate(timeout=240)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(0, process.returncode, err)
        _, look, _, queries, end = out.split("=== end\n")
        self.assertEqual("", end)
        with self.subTest("look"):
            self.assertIn("training-job", look)
            self.assertRegex(look, r'wattribute_workload_power_watts\{kind="pod"[^\n]* \d')
            self.assertRegex(look, r"wattribute_ledger_imbalance_joules\{[^\n]*\} 0\n")
        with self.subTest("queries"):
            self.assertEqual(2, queries.count('"status":"success"'), out + err)
            self.assertIn('"pod":"training-job"', queries)
            self.assertNotIn('"result":[]', queries)


if __name__ == "__main__":
    harness.main()
