"""Every query of every dashboard of mixin/ is answered by a real Prometheus with the recording rules, and what it answers is the ledger's.

It scrapes two replays and one exporter that watches the node of gpu_node.py, once a second; the rules are evaluated every few seconds.
"""
import json
import os
import re
import subprocess
import tempfile
from contextlib import ExitStack

import gpu_node
import harness
from harness import H200_TRACE, SOURCE_ROOT, Exporter, TestCase, Trace, wait_until
from prometheus import JOB, Prometheus

INTERVAL_S, DELAY_S = 4, 3
SITE = """{ _config+:: { interval_s: %d, delay_s: %d, powerInterval_s: 2, lookback_s: 120, budgetInterval_s: 2,
  budgets: [{ by: "namespace", value: "ml", quantity: "cost", limit: 1e6 }] } }""" % (INTERVAL_S, DELAY_S)
OF_THE_SITE = ["--pue=1.25", "--emissions.embodied=gpu=28.5", "--cost.price=0.30", "--cost.currency=EUR"]
EXPORTERS = 3
BOOKED = "wattribute:%s_energy_joules:increase"
INTERVALS = 5  # how often the rules are evaluated, at least
TIMES = {"__range": "1h", "__rate_interval": "10s", "__interval": "1m"}
CONFIG = """\
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 2s}
rule_files: [%s/rules.yaml, %s/alerts.yaml]
scrape_configs:
"""


def write_trace(path):
    trace = Trace()
    for gpu in range(2):
        trace.gpu(gpu)
        trace.work(gpu, [10 + gpu, 20], seconds=20, watts=200 + 100 * gpu)
    return trace.write(path)


def variables(text):
    return set(re.findall(r"\$\{?(\w+)", re.sub(r'"\$1"', "", text)))


def fill(text, values):
    return re.sub(r"\$\{(\w+)\}|\$([A-Za-z_]\w*)", lambda found: values[found[1] or found[2]], text)


class Dashboards(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        generated = os.path.join(directory, "mixin")
        subprocess.run([f"{SOURCE_ROOT}/mixin/generate", generated, SITE], check=True, timeout=60)
        cls.dashboards = {}
        for name in sorted(os.listdir(f"{generated}/dashboards")):
            with open(f"{generated}/dashboards/{name}") as file:
                cls.dashboards[name.removesuffix(".json")] = json.load(file)
        flags, env = gpu_node.populate(stack, directory)
        live = stack.enter_context(Exporter(*OF_THE_SITE, *flags, env=env))
        live.wait_for_page("the pod, the container and the job have names", gpu_node.is_complete, 30)
        replays = [stack.enter_context(Exporter(*OF_THE_SITE, f"--replay={path}"))
                   for path in (H200_TRACE, write_trace(f"{directory}/made-up.trace.gz"))]
        cls.live = live.address
        addresses = [exporter.address for exporter in (live, *replays)]
        cls.prometheus = stack.enter_context(Prometheus(
            directory, CONFIG % (generated, generated) + JOB % ("wattribute", addresses)))
        wait_until("the rules were evaluated often enough", lambda: EXPORTERS == len(cls.prometheus.rows(
            f"count by (instance) (count_over_time({BOOKED % 'meter'}[1h]) >= {INTERVALS})")), 90)

    def values_of(self, variable):
        """What a user could choose."""
        if variable["type"] == "custom":
            return variable["query"].split(",")
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
        return self.prometheus.api(f"label/{label}/values", **{"match[]": metric})

    def choices(self, dashboard):
        """The values of all variables, one dict for each choice of a custom one."""
        chosen, several = dict(TIMES), None
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "datasource":
                continue
            variable = json.loads(json.dumps(variable))
            if variable["type"] == "query":
                variable["query"]["query"] = fill(variable["query"]["query"], chosen)
            values = self.values_of(variable)
            if variable["type"] == "custom":
                several = (variable["name"], values)
            elif variable.get("includeAll"):
                chosen[variable["name"]] = variable["allValue"]
            else:
                wanted = {"instance": self.live, "kind": "slurm", "name": gpu_node.JOB_ID}[variable["name"]]
                self.assertIn(wanted, values)
                chosen[variable["name"]] = wanted
        return [{**chosen, several[0]: value} for value in several[1]] if several else [chosen]

    def panels(self):
        """[(where, panel, [(query, filled)])], for each choice."""
        for name, dashboard in self.dashboards.items():
            for values in self.choices(dashboard):
                for panel in dashboard["panels"]:
                    yield (f"{name}: {panel['title']}", panel,
                           [fill(target["expr"], values) for target in panel["targets"]])

    def total(self, dashboard, title, target=0):
        """The sum over the rows of one target of the panel with this title."""
        found = [queries for where, _, queries in self.panels() if where == f"{dashboard}: {title}"]
        self.assertTrue(found, title)
        return sum(value for _, value in self.prometheus.rows(found[0][target], time=self.time()))

    def time(self):
        """When the rules were evaluated last."""
        return max(value for _, value in self.prometheus.rows(f"max_over_time(timestamp({BOOKED % 'meter'})[1m:1s])"))

    def counted(self, query):
        """What the counters showed at the end of the window of that evaluation."""
        return sum(value for _, value in self.prometheus.rows(query, time=self.time() - DELAY_S))

    def test_every_query_has_an_answer(self):
        asked = 0
        for where, _, queries in self.panels():
            for query in queries:
                with self.subTest(where):
                    rows = self.prometheus.rows(query)
                    self.assertTrue(rows, query)
                    self.assertFalse([row for row in rows if row[1] != row[1]], f"not a number: {query}")
                    asked += 1
        self.assertGreater(asked, 100)

    def test_every_query_of_the_manual_has_an_answer(self):
        with open(f"{SOURCE_ROOT}/docs/dashboards.md") as file:
            found = re.findall(r"^```promql rules\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(found), 3)
        for query in found:
            with self.subTest(query):
                self.assertTrue(self.prometheus.rows(query))

    def test_no_rule_has_an_error(self):
        rules = [rule for group in self.prometheus.api("rules")["groups"] for rule in group["rules"]]
        self.assertGreater(len(rules), 70)
        self.assertEqual([], [(rule["name"], rule["health"], rule.get("lastError")) for rule in rules
                              if rule["health"] != "ok"])

    def test_every_rule_has_a_row(self):
        recorded = {rule["name"] for group in self.prometheus.api("rules")["groups"] for rule in group["rules"]
                    if rule["type"] == "recording"}
        # All were scraped from their beginning, and go on.
        nothing_to_tell = {"wattribute:node_uncounted_energy_joules:increase", "wattribute:node:restarted"}
        self.assertEqual(nothing_to_tell, recorded - set(self.prometheus.api("label/__name__/values")))

    def test_no_alert_fires_but_that_it_is_a_replay(self):
        alerts = {alert["labels"]["alertname"] for alert in self.prometheus.api("alerts")["alerts"]
                  if alert["state"] == "firing"}
        self.assertLessEqual(alerts, {"WattributeReplay"})

    def assert_same(self, expected, found, what):
        self.assertGreater(expected, 0, what)
        self.assertAlmostEqual(1, found / expected, delta=1e-9, msg=f"{what}: {found}, not {expected}")

    def test_rules_sum_to_what_the_counters_show(self):
        when = self.time()
        checked = 0
        for level, counter, matchers in (
                ("meter", "meter", ""), ("unowned", "unowned", ""), ("workload", "workload", 'kind!="retired"'),
                ("namespace", "workload", 'namespace!=""'), ("pod", "workload", 'pod!=""'),
                ("job", "workload", 'kind="slurm"')):
            for quantity in ("energy_joules", "emissions_grams", "embodied_grams", "cost"):
                with self.subTest(level=level, quantity=quantity):
                    expected = sum(value for _, value in self.prometheus.rows(
                        f"wattribute_{counter}_{quantity}_total{{{matchers}}}", time=when - DELAY_S))
                    found = sum(value for _, value in self.prometheus.rows(
                        f"sum_over_time(wattribute:{level}_{quantity}:increase[1h])", time=when))
                    self.assert_same(expected, found, level)
                    checked += 1
        self.assertEqual(24, checked)

    def test_details_do_not_change_the_sum(self):
        for label in ("user", "account", "image"):
            with self.subTest(label):
                when = self.time()
                expected = sum(value for _, value in self.prometheus.rows(
                    f'sum by (instance, kind, id) (wattribute_workload_energy_joules_total) * on (instance, kind, id) '
                    f'group_left () wattribute_workload_info{{{label}!=""}}', time=when - DELAY_S))
                found = sum(value for _, value in self.prometheus.rows(
                    f"sum_over_time(wattribute:{label}_energy_joules:increase[1h])", time=when))
                self.assert_same(expected, found, label)

    def test_what_dashboards_show_is_what_was_booked(self):
        for dashboard, title, target, factor, query in (
                ("fleet", "Energy", 0, 3.6e6, "wattribute_meter_energy_joules_total"),
                ("fleet", "Nodes", 0, 1, "wattribute_build_info"),
                ("fleet", "Cost", 0, 1, "wattribute_meter_cost_total"),
                ("node", "Energy", 0, 1, f'wattribute_meter_energy_joules_total{{instance="{self.live}"}}'),
                ("workload", "Energy", 0, 1, 'wattribute_workload_energy_joules_total{kind="slurm",name="4711"}'),
                ("chargeback", "Bill by ${by}", 1, 1, 'wattribute_workload_energy_joules_total{namespace!=""}'),
                ("chargeback", "Jobs", 0, 1, 'wattribute_workload_cost_total{kind="slurm"}'),
                ("chargeback", "Nobody's", 1, 1, "wattribute_unowned_energy_joules_total"),
                ("carbon", "Operational", 0, 1, "wattribute_meter_emissions_grams_total"),
                ("carbon", "Embodied", 0, 1, "wattribute_meter_embodied_grams_total"),
                ("idle", "Who idles most", 0, 1, 'wattribute_workload_energy_joules_total{tier="idle"}'),
                ("balance", "Energy in the time range", 0, 1, "wattribute_meter_energy_joules_total")):
            with self.subTest(f"{dashboard}: {title}"):
                for attempt in range(3):  # a new evaluation between the two
                    when = self.time()
                    expected, found = self.counted(query), factor * self.total(dashboard, title, target)
                    if when == self.time():
                        break
                self.assert_same(expected, found, title)

    def test_energy_is_of_workloads_or_unowned_or_unseen(self):
        energy, workloads, unowned, unseen = (self.total("balance", "Energy in the time range", target)
                                              for target in range(4))
        self.assertAlmostEqual(energy, workloads + unowned + unseen, delta=0.02 * energy)  # of two evaluations at worst
        self.assertAlmostEqual(0, unseen, delta=1e-6)
        self.assertEqual(0, self.total("balance", "Meters minus owners"))

    def test_a_gpu_that_was_given_and_is_not_used_is_listed(self):
        found = [queries for where, _, queries in self.panels() if where == "idle: Given and unused now"]
        idle = {(labels["kind"], labels["name"]) for labels, _ in self.prometheus.rows(found[0][0])}
        self.assertIn(("container", "hidden"), idle)  # beside real ones
        self.assertEqual(set(), idle & set(gpu_node.OWNERS))


if __name__ == "__main__":
    harness.main()
