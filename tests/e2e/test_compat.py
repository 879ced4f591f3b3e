"""Who swaps another exporter for this one keeps their queries: a real Prometheus, at its default settings but for how
often it scrapes, answers all of queries_of_other_exporters.promql."""
import os
import re
import tempfile
from contextlib import ExitStack

import gpu_node
import harness
from harness import Exporter, TestCase, wait_until
from prometheus import Prometheus

SCRAPES = 8
FILE = os.path.join(os.path.dirname(__file__), "queries_of_other_exporters.promql")


def queries(section):
    """Those that need --compat ("compat"), or that every page answers ("default")."""
    with open(FILE) as file:
        parts = re.split(r"^## (\w+): .*$", file.read(), flags=re.MULTILINE)[1:]
    return [line for name, lines in zip(parts[::2], parts[1::2]) if name == section
            for line in lines.splitlines() if line and not line.startswith("#")]


class Swapped(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        flags, env = gpu_node.populate(stack, stack.enter_context(tempfile.TemporaryDirectory()))
        exporters = [stack.enter_context(Exporter(*flags, *more, env=env))
                     for more in ([], ["--compat=my-gpu-exporter"])]
        for exporter in exporters:
            exporter.wait_for_page("the pod, the container and the job have names, and memory is inferred",
                                   gpu_node.is_complete, 30)
        cls.default, cls.compat = (
            stack.enter_context(Prometheus(stack.enter_context(tempfile.TemporaryDirectory()), gpu=[exporter.address]))
            for exporter in exporters)
        wait_until("both were scraped often enough", lambda: all(
            prometheus.rows(f"count_over_time(up[5m]) >= {SCRAPES}") for prometheus in (cls.default, cls.compat)), 40)

    def assert_answers(self, prometheus, section):
        expressions = queries(section)
        self.assertGreater(len(expressions), 9)
        for expression in expressions:
            with self.subTest(expression):
                rows = prometheus.rows(expression)
                self.assertTrue(rows)
                self.assertFalse([row for row in rows if row[1] != row[1]], "not a number")

    def test_the_queries_for_the_old_names_have_answers_with_compat(self):
        self.assert_answers(self.compat, "compat")

    def test_the_other_queries_have_answers_by_default(self):
        self.assert_answers(self.default, "default")

    def test_the_other_queries_have_answers_with_compat_too(self):
        self.assert_answers(self.compat, "default")

    def test_each_scrape_succeeded(self):
        for prometheus in (self.default, self.compat):
            self.assertEqual([1], [value for _, value in prometheus.rows("min_over_time(up[5m])")])
            self.assertEqual([""], [target["lastError"] for target in prometheus.api("targets")["activeTargets"]])

    def test_the_old_gauge_is_the_energy_of_each_process_one_to_one(self):
        processes = self.compat.rows("my_gpu_process_active")
        self.assertEqual(4, len(processes))  # the pod is on both GPUs
        difference = self.compat.rows("my_gpu_process_energy_joules "
                                      "- sum without (energy_estimated) (my_gpu_process_energy_joules_total)")
        self.assertEqual(len(processes), len(difference))
        self.assertLess(max(abs(value) for _, value in difference), 1e-6)

    def test_the_old_gauge_gives_the_same_watts_as_the_counter(self):
        old, new = (f"sum(rate({name}[{SCRAPES - 2}s]))"
                    for name in ("my_gpu_process_energy_joules", "my_gpu_process_energy_joules_total"))
        self.assertEqual(1, len(self.compat.rows(f"{old} > 0")))
        [(_, difference)] = self.compat.rows(f"{old} - {new}")
        self.assertAlmostEqual(0, difference, places=6)

    def test_every_page_is_the_format_that_it_was_asked_for_or_text(self):
        units = [{row["unit"] for row in prometheus.api("targets/metadata")}
                 for prometheus in (self.default, self.compat)]
        self.assertIn("joules", units[0])  # only OpenMetrics tells units
        self.assertEqual({""}, units[1])


if __name__ == "__main__":
    harness.main()
