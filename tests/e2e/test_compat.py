"""Who swaps another exporter for this one keeps their queries: a real Prometheus, at its default settings but for how
often it scrapes, answers all of queries_of_other_exporters.promql and those in the tables of docs/migration."""
import glob
import os
import re
import tempfile
from contextlib import ExitStack

import gpu_node
import harness
from harness import SOURCE_ROOT, Exporter, TestCase, wait_until
from prometheus import Prometheus
from servers import cgroups
from test_node_meters import Sysfs

SCRAPES = 8
FILE = os.path.join(os.path.dirname(__file__), "queries_of_other_exporters.promql")
COMPATS = [f"--compat={name}" for name in ("my-gpu-exporter", "dcgm-exporter", "kepler", "ceems")]
# A processor with a meter of its own; a factor that needs no network.
METERS = [*(f"--no-collector.{source}" for source in ("hwmon", "cray")), "--emissions.providers=owid:FR"]
TICKING = ("sh", "-c", "while sleep 0.05; do :; done")  # uses a little of a CPU, until it is killed
LIMIT_BYTES = 1 << 30


def queries(section):
    """Those that need --compat ("compat"), or that every page answers ("default")."""
    with open(FILE) as file:
        parts = re.split(r"^## (\w+): .*$", file.read(), flags=re.MULTILINE)[1:]
    return [line for name, lines in zip(parts[::2], parts[1::2]) if name == section
            for line in lines.splitlines() if line and not line.startswith("#")]


def tables(header):
    """(page, cells) of each row of the tables of docs/migration that begin with this line."""
    rows = []
    for path in sorted(glob.glob(os.path.join(SOURCE_ROOT, "docs/migration/*.md"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for table in text.split(header + "\n")[1:]:
            for line in table.splitlines()[1:]:
                if not line.startswith("|"):
                    break
                cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                rows.append((os.path.basename(path), [cell.strip("`") for cell in cells]))
    return rows


class Swapped(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        sysfs = stack.enter_context(Sysfs())
        flags, env = gpu_node.populate(stack, stack.enter_context(tempfile.TemporaryDirectory()), METERS, TICKING)
        cls.limit_the_job()
        exporters = [stack.enter_context(Exporter(*flags, *more, f"--path.sysfs={sysfs.path}", env=env,
                                                  wrapper=sysfs.wrapper()))
                     for more in ([], COMPATS)]
        for exporter in exporters:
            exporter.wait_for_page("the pod, the container and the job have names, and memory is inferred",
                                   gpu_node.is_complete, 30)
            exporter.wait_for_page("the pod, the container and the job have used the processor", cls.is_divided, 30)
        cls.default, cls.compat = (
            stack.enter_context(Prometheus(stack.enter_context(tempfile.TemporaryDirectory()), gpu=[exporter.address]))
            for exporter in exporters)
        wait_until("both were scraped often enough", lambda: all(
            prometheus.rows(f"count_over_time(up[5m]) >= {SCRAPES}") for prometheus in (cls.default, cls.compat)), 40)

    @staticmethod
    def limit_the_job():
        """What the scheduler gives a job: so much memory."""
        names = ("memory.max", "memory.limit_in_bytes")
        paths = [path for hierarchy in cgroups.hierarchies() for name in names
                 for path in glob.glob(f"{hierarchy}/slurm_*/uid_0/job_{gpu_node.JOB_ID}/{name}")]
        assert paths, "the memory controller has the job's cgroup"
        for path in paths:
            with open(path, "w") as file:
                file.write(str(LIMIT_BYTES))

    @staticmethod
    def is_divided(page):
        return {"pod", "container", "slurm"} <= {
            labels["kind"] for labels, value in page.values(harness.WORKLOAD_ENERGY, meter="package") if value > 0}

    def assert_answers(self, prometheus, section):
        expressions = queries(section)
        self.assertGreater(len(expressions), 9)
        for expression in expressions:
            with self.subTest(expression):
                self.answer(prometheus, expression)

    def answer(self, prometheus, expression, **parameters):
        rows = prometheus.rows(expression, **parameters)
        self.assertTrue(rows)
        self.assertFalse([row for row in rows if row[1] != row[1]], "not a number")
        return rows

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

    def test_the_queries_of_the_pages_on_migration_have_answers_and_are_the_same_where_they_say_so(self):
        """One Prometheus answers both at one time; the new names are also there without --compat."""
        rows = tables("| before | after | same value |")
        self.assertEqual({"ceems.md", "dcgm-exporter.md", "kepler.md", "memory-inference-exporter.md",
                          "my-gpu-exporter.md"}, {page for page, _ in rows})
        [(_, time)] = self.compat.rows("timestamp(up)")
        for page, (before, after, is_same) in rows:
            with self.subTest(page=page, before=before):
                self.answer(self.default, after)
                old, new = (sorted(value for _, value in self.answer(self.compat, expression, time=time))
                            for expression in (before, after))
                self.assertEqual(len(old), len(new))
                if is_same == "yes":
                    for one, other in zip(old, new):
                        self.assertAlmostEqual(one, other, delta=1e-9 * max(abs(one), 1))

    def test_the_rules_for_ceems_have_answers(self):
        rows = tables("| record | expression |")
        self.assertEqual(6, len(rows))
        for _, (name, expression) in rows:
            with self.subTest(name):
                found = self.answer(self.default, expression.replace('job="wattribute"', 'job="gpu"'))
                if name.startswith("uuid:"):
                    self.assertIn(gpu_node.JOB_ID, {labels["uuid"] for labels, _ in found})

    def test_what_the_tables_call_shown_is_shown_and_nothing_else(self):
        """Of names that are written in full."""
        found = {labels["__name__"] for labels, _ in self.compat.rows(
            'count by (__name__) ({__name__=~"DCGM_.+|kepler_.+|ceems_.+"})')}
        for compat, title in (("dcgm-exporter", "dcgm-exporter"), ("kepler", "Kepler"), ("ceems", "CEEMS")):
            with open(os.path.join(SOURCE_ROOT, f"tests/golden/compat.{compat}.txt")) as file:
                shown = set(re.findall(r"^# TYPE (\w+) ", file.read(), re.MULTILINE))
            rows = tables(f"| {title} | here | with `--compat={compat}` |")
            self.assertGreater(len(rows), 10)
            named = set()
            for _, (old, _, answer) in rows:
                names = set(re.findall(r"\b(?:DCGM_FI|kepler|ceems)_\w+\b(?![_*])", old))
                with self.subTest(old):
                    self.assertRegex(answer, "^(yes|no)")
                    self.assertEqual(set(), names & (shown | found) if answer.startswith("no") else names - shown)
                named |= names
            self.assertTrue(named & shown)

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
