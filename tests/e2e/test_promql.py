"""The manual's word is kept: every query of docs/*.md is run by a real Prometheus, and every message that
docs/troubleshooting.md quotes is one that the program has; links lead somewhere.

Two exporters watch the node of gpu_node.py, as two nodes would.
"""
import errno
import glob
import os
import re
import tempfile
import time
from contextlib import ExitStack

import gpu_node
import harness
from gpu_node import JOB_ID
from harness import SOURCE_ROOT, Exporter, TestCase, wait_until
from prometheus import Prometheus, queries, serve_page

EXPORTERS, SCRAPES = 2, 12
OF_THE_SITE = ["--pue=1.25", "--emissions.embodied=gpu=28.5", "--cost.price=0.30", "--cost.currency=EUR"]
METRIC = r"\b(?!gpu_instance\b)(?:wattribute|my_gpu_process|gpu|container_gpu)_\w+"  # without a label like one


# --- the queries ---

def all_queries():
    return [(f"{os.path.basename(path)}:{line}", query)
            for path in sorted(glob.glob(f"{SOURCE_ROOT}/docs/*.md")) for line, query in queries(path)]


def is_alert(query):
    return query.startswith("# alert\n")


def without_threshold(alert):
    bare, count = re.subn(r" (?:>|<|==|!=) [\d.]+\n\Z", "", alert)
    if count != 1:
        raise AssertionError(f"an alert ends with a comparison to a number: {alert}")
    return bare


# --- the messages and links ---

LITERAL = r'"((?:[^"\\\n]|\\.)*)"'


def literals():
    """The strings of the program, those that the compiler joins as one."""
    for path in glob.glob(f"{SOURCE_ROOT}/src/**/*.c", recursive=True):
        with open(path) as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        for found in re.finditer(rf"{LITERAL}(?:\s*{LITERAL})*", text):
            yield re.sub(r"\\(.)", r"\1", "".join(re.findall(LITERAL, found[0])))


def headings(path):
    """As GitHub makes anchors of them."""
    with open(path) as file:
        titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", file.read(), flags=re.DOTALL | re.MULTILINE),
                            re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


class Manual(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.literals = set(literals())
        with open(f"{SOURCE_ROOT}/docs/troubleshooting.md") as file:
            cls.page = file.read()

    def quoted(self, pattern):
        found = re.findall(pattern, self.page)
        self.assertGreater(len(found), 3, pattern)
        return found

    def test_every_log_message_is_one_to_the_letter(self):
        self.assertEqual(set(), set(self.quoted(r'`msg="([^"]*)"')) - {"..."} - self.literals)

    def test_every_error_is_made_of_what_the_program_says(self):
        texts = self.quoted(r'`error="([^"]*)"') + self.quoted(r"`(?:wattribute:|503) ([^`]+)`")
        system = {os.strerror(number) for number in (errno.EADDRINUSE, errno.EACCES, errno.EINVAL)}
        for text in texts:
            for piece in re.split(r"\.\.\.|: |; ", text):
                with self.subTest(text, piece=piece):
                    self.assertTrue(piece.strip() in {"", *system} or
                                    any(piece in literal for literal in self.literals))

    def test_how_mig_is_divided_is_said_in_the_same_words_everywhere(self):
        words = "energy is divided among instances by the activity of their units or, without GPM, by their slices"
        self.assertTrue(any(words in literal for literal in self.literals))
        for page in ("attribution", "nvidia"):
            with open(f"{SOURCE_ROOT}/docs/{page}.md") as file:
                self.assertIn(words, " ".join(file.read().split()).replace("Energy is", "energy is"))

    def test_every_link_of_the_manual_leads_somewhere(self):
        pages = [f"{SOURCE_ROOT}/README.md", f"{SOURCE_ROOT}/SECURITY.md", *glob.glob(f"{SOURCE_ROOT}/docs/*.md")]
        anchors = {os.path.realpath(path): headings(path) for path in pages}
        for path in pages:
            with open(path) as file:
                links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", file.read())
            for target, anchor in links:
                with self.subTest(path, target=target, anchor=anchor):
                    found = os.path.realpath(os.path.join(os.path.dirname(path), target) if target else path)
                    self.assertTrue(os.path.exists(found))
                    self.assertTrue(not anchor or anchor in anchors[found])


# --- the answers ---

def cut(query):
    """With its range cut to what was scraped: rate() divides by the whole of it."""
    return query.replace("[5m]", f"[{SCRAPES - 2}s]")


# As dcgm-exporter 4.5 labels a board that no pod has.
DCGM = """DCGM_FI_%s{gpu="%d",UUID="%s",pci_bus_id="00000000:0%d:00.0",device="nvidia%d",modelName="NVIDIA H200",\
Hostname="node",DCGM_FI_DRIVER_VERSION="580.65.06"} %g
"""


def dcgm_page():
    """As one of both boards would answer."""
    return "".join(DCGM % (what, gpu, uuid, gpu, gpu, value) for gpu, uuid in enumerate(gpu_node.UUIDS)
                   for what, value in (("DEV_GPU_UTIL", 99), ("PROF_GR_ENGINE_ACTIVE", 0.99),
                                       ("DEV_POWER_USAGE", (300, 500)[gpu])))


# A pod that used nothing while it was watched, as in its first moments.
STILL = "".join(f'wattribute_workload_energy_joules_total{{kind="pod",id="{"e" * 64}",name="still",namespace="ml",'
                f'pod="still",container="main",meter="gpu",meter_id="GPU-still",tier="{tier}",method="shared"}} 0\n'
                for tier in ("active", "idle"))


class Scraped(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        flags, env = gpu_node.populate(stack, directory)
        exporters = [stack.enter_context(Exporter(*OF_THE_SITE, *flags, env=env)) for _ in range(EXPORTERS)]
        for exporter in exporters:
            exporter.wait_for_page("the pod, the container and the job have names, and memory is inferred",
                                   gpu_node.is_complete, 30)
        cls.prometheus = stack.enter_context(Prometheus(
            directory, wattribute=[exporter.address for exporter in exporters],
            dcgm=[stack.enter_context(serve_page(dcgm_page()))],
            still=[stack.enter_context(serve_page(STILL))]))
        wait_until("both were scraped often enough", lambda: EXPORTERS == len(
            cls.prometheus.rows(f'count_over_time(up{{job="wattribute"}}[5m]) >= {SCRAPES}')), 40)

    def total(self, begin):
        """The sum over the rows of the one query of promql.md that begins like this."""
        found = [query for _, query in queries(f"{SOURCE_ROOT}/docs/promql.md") if query.startswith(begin)]
        self.assertEqual(1, len(found), begin)
        return sum(value for _, value in self.prometheus.rows(cut(found[0])))

    def test_there_are_queries(self):
        self.assertGreater(len([1 for _, query in all_queries() if is_alert(query)]), 5)
        self.assertGreater(len([1 for _, query in all_queries() if not is_alert(query)]), 20)

    def test_every_query_has_an_answer(self):
        for where, query in all_queries():
            if not is_alert(query):
                with self.subTest(where):
                    rows = self.prometheus.rows(query)
                    self.assertTrue(rows, query)
                    self.assertFalse([row for row in rows if row[1] != row[1]], "not a number")

    def test_no_alert_is_raised_by_healthy_nodes(self):
        for where, query in all_queries():
            if is_alert(query):
                with self.subTest(where):
                    self.assertEqual([], self.prometheus.rows(cut(query)))

    def test_every_alert_looks_at_something(self):
        for where, query in all_queries():
            if is_alert(query):
                with self.subTest(where):
                    self.assertTrue(self.prometheus.rows(without_threshold(query)))

    def test_every_metric_that_is_asked_for_is_there(self):
        known = set(self.prometheus.api("label/__name__/values"))
        for where, query in all_queries():
            with self.subTest(where):
                self.assertEqual(set(), set(re.findall(METRIC, query)) - known)

    def test_the_owners_watts_are_the_meters(self):
        meters = self.total("sum by (instance, meter_id) (rate(wattribute_meter_energy_joules_total{meter")
        owned = self.total("topk(10, sum by (kind, id, name, namespace, pod) (rate(")
        self.assertAlmostEqual(EXPORTERS * 800, meters, delta=EXPORTERS * 80)
        self.assertAlmostEqual(meters, owned, delta=0.02 * meters)

    def test_a_pods_watts_are_its_share(self):
        watts = self.total("sum by (namespace, pod) (rate(wattribute_workload_energy_joules_total{pod!=\"\"}[")
        self.assertAlmostEqual(EXPORTERS * 600, watts, delta=EXPORTERS * 90)

    def test_a_gpu_that_was_given_and_is_not_used_is_found(self):
        rows = [query for _, query in queries(f"{SOURCE_ROOT}/docs/promql.md") if query.startswith(
            "wattribute_workload_gpu_allocated\n  unless")]
        self.assertEqual({("container", "hidden", gpu_node.UUIDS[1])}, {
            (labels["kind"], labels["name"], labels["uuid"]) for labels, _ in self.prometheus.rows(cut(rows[0]))})

    def test_dcgm_exporters_metrics_are_joined_by_uuid(self):
        shares = self.total("label_replace(sum by (namespace, pod, meter_id)")  # of 300 W a third, and of 500 W all
        self.assertAlmostEqual(EXPORTERS * (1 / 3 + 1), shares, delta=EXPORTERS * 0.3)
        self.assertAlmostEqual(2 * EXPORTERS * 0.99, self.total("sum by (UUID, GPU_I_ID, kind, id,"))

    def test_a_bill_has_an_uncertainty_where_the_estimator_divides(self):
        uncertainty, energy = ({(labels["instance"], labels["meter_id"], labels.get("name", "")): value
                                for labels, value in self.prometheus.rows(
                                    f"sum by (instance, meter_id, name) (wattribute_workload_energy_{what}_total)")}
                               for what in ("uncertainty_joules", "joules"))
        self.assertEqual({key for key in energy if key[1] in gpu_node.UUIDS}, set(uncertainty))
        for (_, board, name), value in uncertainty.items():
            with self.subTest(board=board, name=name):
                self.assertTrue(value == 0 if board == gpu_node.UUIDS[1] and name == gpu_node.POD_NAME else value >= 0)
        shared = {key: value for key, value in uncertainty.items() if key[2] == JOB_ID}
        self.assertEqual(EXPORTERS, len(shared))
        for key, value in shared.items():
            self.assertGreater(value, 0)
            self.assertLessEqual(value, energy[key])

    def test_the_memory_of_programs_is_shown_for_every_board(self):
        for what in ("known_programs", "used_processes", "suspended_processes"):
            rows = self.prometheus.rows(f"wattribute_program_memory_{what}")
            self.assertEqual({"0", "1"}, {labels["gpu"] for labels, _ in rows})
            self.assertEqual(2 * EXPORTERS, len(rows))

    def test_a_whole_bill_outlives_the_page(self):
        """Ten minutes later, when everything that was not scraped since is gone."""
        whole = [(where, query) for where, query in all_queries() if "max_over_time" in query]
        self.assertGreater(len(whole), 3)
        for where, query in whole:
            with self.subTest(where):
                rows = self.prometheus.rows(query, time=time.time() + 600)
                billed = [labels for labels, value in rows if value > 0]
                self.assertTrue(billed)
                if "id" in billed[0]:
                    self.assertIn(JOB_ID, {labels["id"] for labels in billed})  # beside real ones

    def test_the_books_balance_to_the_microjoule(self):
        self.assertEqual(0, self.total("round("))


if __name__ == "__main__":
    harness.main()
