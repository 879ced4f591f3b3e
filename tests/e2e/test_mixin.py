"""The rules, alerts and dashboards of mixin/ are what their source makes of them, pass promtool, and are explained; and the recording rules
count a made-up day of jobs, restarts, failed scrapes and a late node to the joule."""
import filecmp
import glob
import json
import os
import random
import re
import subprocess

import harness
from harness import SOURCE_ROOT, TestCase, prometheus_tool

MIXIN = f"{SOURCE_ROOT}/mixin"
GENERATED = f"{MIXIN}/generated"
STEP_S = 15  # of the made-up day
SCRAPE_S = 60
RETENTION_S = 300
HOURS = int(os.environ.get("MIXIN_HOURS", "8"))
RULES = "wattribute.booked"


def read(path):
    with open(path) as file:
        return file.read()


def files(directory):
    return sorted(os.path.relpath(path, directory) for path in glob.glob(f"{directory}/**/*", recursive=True)
                  if os.path.isfile(path))


class Generated(TestCase):
    def test_it_is_what_the_source_makes(self):
        made = self.path("made")
        subprocess.run([f"{MIXIN}/generate", made], check=True, timeout=200)
        self.assertEqual(files(made), files(GENERATED))
        self.assertEqual((files(made), [], []), filecmp.cmpfiles(made, GENERATED, files(made), shallow=False),
                         "run mixin/generate")

    def test_the_files_for_the_operator_have_the_same_groups(self):
        def groups(name):
            return re.findall(r"^ +(?:- name|- record|- alert|interval|for): .*", read(f"{GENERATED}/{name}.yaml"), re.MULTILINE)
        self.assertEqual([line.strip() for line in groups("rules") + groups("alerts")],
                         [line.strip() for line in groups("prometheusrule")])

    def promtool(self, *arguments):
        done = subprocess.run([prometheus_tool("promtool"), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=280)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_promtool_accepts_the_rules(self):
        for name in ("rules", "alerts"):
            count, = re.findall(r"SUCCESS: (\d+) rules found", self.promtool("check", "rules", f"{GENERATED}/{name}.yaml"))
            self.assertGreater(int(count), 20)

    def test_budgets_of_a_site_become_rules_that_do_not_repeat(self):
        made = self.path("made")
        budgets = ", ".join(f'{{ by: "{by}", value: "{value}", quantity: "{quantity}", limit: {limit} }}' for by, value, quantity, limit in (
            ("namespace", "ml", "cost", 2000), ("namespace", "chat", "cost", 20), ("user", "alice", "energy_joules", 3.6e9)))
        subprocess.run([f"{MIXIN}/generate", made, "{ _config+:: { budgets: [%s] } }" % budgets], check=True, timeout=200)
        text = self.promtool("check", "rules", f"{made}/rules.yaml")
        self.assertNotIn("duplicate", text)
        base, = re.findall(r"SUCCESS: (\d+) rules", self.promtool("check", "rules", f"{GENERATED}/rules.yaml"))
        self.assertIn(f"SUCCESS: {int(base) + 2} rules found", text)

    def test_the_rules_pass_their_tests(self):
        tests = sorted(glob.glob(f"{MIXIN}/tests/*.yaml"))
        self.assertEqual(len(tests), self.promtool("test", "rules", *tests).count("SUCCESS"))

    def test_each_alert_has_a_test_in_which_it_fires_on_one_node_only_and_a_runbook(self):
        alerts = re.findall(r"- alert: (\w+)", read(f"{GENERATED}/alerts.yaml"))
        self.assertGreater(len(alerts), 20)
        tests, manual = read(f"{MIXIN}/tests/alerts.yaml"), read(f"{SOURCE_ROOT}/docs/dashboards.md")
        for name in alerts:
            with self.subTest(name):
                self.assertRegex(tests, rf'alertname="{name}"[^\n]*exp_samples: \[\{{labels')
                self.assertRegex(manual, rf"(?m)^#### {name}$")
                self.assertIn(f'runbook_url: "docs/dashboards.md#{name.lower()}"', read(f"{GENERATED}/alerts.yaml"))

    def test_each_rule_is_named_in_the_readme(self):
        text = read(f"{MIXIN}/README.md")
        for record in re.findall(r"- record: (\S+)", read(f"{GENERATED}/rules.yaml")):
            level, quantity = re.match(r"wattribute:(node_un|[a-z]+)_?(\w*):", record).groups()
            with self.subTest(record):
                self.assertTrue(f"`{record}`" in text or f"`{level}`" in text and (
                    f"`{quantity}`" in text or quantity == "power_watts"))


class Dashboards(TestCase):
    def dashboards(self):
        paths = sorted(glob.glob(f"{GENERATED}/dashboards/*.json"))
        self.assertEqual(7, len(paths))
        return [(os.path.basename(path), json.loads(read(path))) for path in paths]

    def test_they_are_of_a_present_grafana_and_can_be_told_apart(self):
        uids = set()
        for name, dashboard in self.dashboards():
            self.assertGreaterEqual(dashboard["schemaVersion"], 38, name)
            self.assertTrue(dashboard["description"] and dashboard["title"])
            uids.add(dashboard["uid"])
        self.assertEqual(7, len(uids))

    def test_each_panel_is_described_has_a_unit_and_needs_no_plugin(self):
        for name, dashboard in self.dashboards():
            for panel in dashboard["panels"]:
                with self.subTest(name, panel=panel["title"]):
                    self.assertRegex(panel["description"], r"\.$")
                    self.assertIn(panel["type"], ("stat", "table", "timeseries"))
                    defaults = panel["fieldConfig"]["defaults"]
                    units = [defaults.get("unit")] + [
                        value["value"] for override in panel["fieldConfig"]["overrides"]
                        for value in override["properties"] if value["id"] == "unit"]
                    self.assertTrue([unit for unit in units if unit])
                    self.assertEqual({"prometheus"}, {target["datasource"]["type"] for target in panel["targets"]})

    def test_panels_do_not_overlap(self):
        for name, dashboard in self.dashboards():
            taken = [(x, y) for place in (panel["gridPos"] for panel in dashboard["panels"])
                     for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
            self.assertEqual(len(taken), len(set(taken)), name)
            self.assertLess(max(x for x, _ in taken), 24, name)
            self.assertEqual(len(dashboard["panels"]), len({panel["id"] for panel in dashboard["panels"]}), name)

    def test_each_variable_is_there(self):
        for name, dashboard in self.dashboards():
            known = {variable["name"] for variable in dashboard["templating"]["list"]}
            known |= {"__range", "__rate_interval", "__interval"}
            for panel in dashboard["panels"]:
                for target in panel["targets"]:
                    used = set(re.findall(r"\$\{?([a-z_]\w*)", target["expr"] + panel["title"]))
                    self.assertEqual(set(), used - known, f"{name}: {panel['title']}")


# --- a made-up day ---

class Node:
    """A daemon, its page, and what Prometheus has of it."""

    def __init__(self, name, since_s=0, booked=0):
        self.name, self.since_s = name, since_s
        self.rows = {("unowned", "idle"): booked, ("unowned", "gap"): 7 if booked else 0}
        self.ended = {}  # when the jobs did
        self.retired, self.retired_seen, self.retired_at, self.started_s = 0, 0, 0, since_s - (90000 if booked else 0)
        self.down_until = None
        self.seen = {}  # what was scraped last of each row, of this life of the daemon
        self.before = {}  # of its earlier lives, what was seen of each row
        self.series = {}  # (metric, labels): {time: value}
        self.first = None

    def book(self, row, joules):
        self.rows[row] = self.rows.get(row, 0) + joules

    def forget(self):
        """A restart without a state file."""
        for row, value in self.seen.items():
            self.before[row] = self.before.get(row, 0) + value
        self.rows, self.seen, self.ended = {("unowned", "idle"): 0, ("unowned", "gap"): 0}, {}, {}
        self.retired = 0

    def retire(self, now):
        for job in [job for job, when in self.ended.items() if now >= when + RETENTION_S]:
            self.retired += self.rows.pop(("job", job), 0)
            self.retired_at = now
            value = self.seen.pop(("job", job), None)
            if value is not None:
                self.before[("job", job)] = self.before.get(("job", job), 0) + value
            del self.ended[job]

    def scrape(self, now):
        if self.first is None:
            self.first = dict(self.rows)
        at = f'instance="{self.name}"'
        meter = 'meter="gpu",meter_id="g"'
        page = {f'wattribute_build_info{{{at}}}': 1, f'process_start_time_seconds{{{at}}}': self.started_s,
                f'wattribute_meter_energy_joules_total{{{at},{meter}}}': sum(self.rows.values()) + self.retired}
        for (kind, name), value in self.rows.items():
            if kind == "unowned":
                page[f'wattribute_unowned_energy_joules_total{{{at},{meter},owner="{name}"}}'] = value
            else:
                labels = f'{at},kind="slurm",id="{name}"'
                page[f'wattribute_workload_energy_joules_total{{{labels},name="{name}",{meter},tier="active",method="shared"}}'] = value
                page[f'wattribute_workload_info{{{labels},user="u{int(name) % 3}",account="physics"}}'] = 1
        if self.retired:
            page[f'wattribute_workload_energy_joules_total{{{at},kind="retired",id="{self.retired_at}",{meter},tier="active",'
                 'method="shared"}'] = self.retired
        self.seen, self.retired_seen = dict(self.rows), self.retired
        for series, value in page.items():
            self.series.setdefault(series, {})[now] = value

    def unseen(self):
        """What ended without having been scraped, of a daemon that kept its state."""
        return self.retired_seen - sum(value for (kind, _), value in self.before.items() if kind == "job")

    def counted(self):
        """What the rules can know of each job: {id: joules}."""
        counted = dict(self.before)
        for row, value in self.seen.items():
            counted[row] = counted.get(row, 0) + value
        return {name: value for (kind, name), value in counted.items() if kind == "job"}


def make_day(chance, keeps_state):
    """Two nodes and a late one, with jobs that run from seconds to hours; returns nodes and the seconds it took."""
    nodes = [Node("a"), Node("b"), Node("late", since_s=2 * 3600 + 120, booked=5_000_000)]
    end = HOURS * 3600
    jobs = []  # (begin, end, node, id, watts)
    for ident in range(HOURS * 16):
        begin = chance.randrange(0, end - 900)
        length = chance.choice((20, 90, 600, 1800, 7200))
        for node in chance.sample(nodes, 1 if chance.random() < 0.7 else 2):
            jobs.append((begin, begin + chance.randint(15, length), node, str(ident), chance.randint(20, 700)))
    restarts = {node: sorted(chance.randrange(600, end - 1200) for _ in range(HOURS // 2)) for node in nodes}
    outage = end // 2, end // 2 + 1500  # Prometheus is down
    for now in range(0, end, STEP_S):
        for node in nodes:
            if now < node.since_s:
                continue
            if restarts[node] and now >= restarts[node][0] and now >= node.since_s + 600:
                restarts[node].pop(0)
                node.down_until = now + chance.choice((15, 60, 400))
                if not keeps_state:
                    node.forget()
            down = node.down_until is not None and now < node.down_until
            if node.down_until is not None and not down:
                node.down_until, node.started_s = None, now
            for begin, last, place, ident, watts in jobs:
                if place is node and begin <= now < last:
                    if not down:
                        node.book(("job", ident), watts * STEP_S)
                    elif keeps_state:
                        node.book(("unowned", "gap"), watts * STEP_S)
                if place is node and last <= now < last + STEP_S and ("job", ident) in node.rows:
                    node.ended[ident] = now
            if not down:
                node.book(("unowned", "idle"), 60 * STEP_S)
                node.retire(now)
            if now % SCRAPE_S == 0 and not down and not outage[0] <= now < outage[1]:
                node.scrape(now)
    return nodes, end


def stale_or_missing(values, now, outage):
    """A scrape that failed, or had the series no more, marks it; one that was not made does not."""
    return "_" if outage[0] <= now < outage[1] or now - SCRAPE_S not in values else "stale"


class MadeUpDay(TestCase):
    def count(self, keeps_state, seed, tolerance):
        """The rules' sums are those of the scraped counters, for each job and all: promtool's verdict, and what it counted."""
        nodes, end = make_day(random.Random(seed), keeps_state)
        series = {name: values for node in nodes for name, values in node.series.items()}
        truth = {}
        for node in nodes:
            for ident, joules in node.counted().items():
                # Of a node that is late, only what came after its first scrape is counted.
                joules -= node.first.get(("job", ident), 0) if node.name == "late" else 0
                truth[ident] = truth.get(ident, 0) + joules
        series |= {f'truth{{id="{ident}"}}': {now: joules for now in range(0, end + 1200, SCRAPE_S)}
                   for ident, joules in truth.items() if joules}
        unseen = sum(node.unseen() for node in nodes)
        self.assertTrue(unseen > 0 or not keeps_state)
        outage = end // 2, end // 2 + 1500
        lines = [f"rule_files: [{GENERATED}/rules.yaml]", "evaluation_interval: 5m", "tests:", "  - interval: 1m",
                 "    input_series:"]
        for name, values in series.items():
            words = [str(values[now]) if now in values else stale_or_missing(values, now, outage)
                     for now in range(0, end + 1200, SCRAPE_S)]
            lines.append(f"      - {{series: '{name}', values: '{' '.join(words)}'}}")
        found = "sum by (id) (sum_over_time(wattribute:job_energy_joules:increase[1d]))"
        lines.append("    promql_expr_test:")
        for expr, value in ((f"count({found} > 0)", sum(1 for joules in truth.values() if joules)),
                            (f"abs(sum({found}) - sum(truth)) <= bool {tolerance} * sum(truth)", 1),
                            (f"count(abs({found} - on (id) truth) > {100 * tolerance} * truth) or vector(0)", 0),
                            ("sum(truth)", sum(truth.values())),
                            *([("sum(sum_over_time(wattribute:node_unseen_energy_joules:increase[1d]))", unseen)] if keeps_state else []),
                            ("sum(sum_over_time(wattribute:node_uncounted_energy_joules:increase[1d]))",
                             sum(nodes[2].first.values()))):
            lines.append(f"      - {{expr: '{expr}', eval_time: {end + 900}s, exp_samples: [{{value: {value}}}]}}")
        path = self.write("day.yaml", "\n".join(lines).encode())
        done = subprocess.run([prometheus_tool("promtool"), "test", "rules", path], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=280)
        return done.returncode, done.stdout + done.stderr, sum(truth.values())

    def test_jobs_are_counted_to_the_joule_over_restarts_that_keep_the_state(self):
        status, text, total = self.count(True, 1, tolerance=0)
        self.assertEqual(0, status, text)
        self.assertGreater(total, 10_000_000)

    def test_what_a_restart_without_a_state_file_showed_is_counted_within_a_thousandth(self):
        status, text, total = self.count(False, 2, tolerance=0.001)
        self.assertEqual(0, status, text)
        self.assertGreater(total, 10_000_000)

    def test_a_sum_that_is_wrong_is_found(self):
        status, text, _ = self.count(True, 1, tolerance=-0.001)
        self.assertEqual(1, status)
        self.assertIn("FAILED", text)


if __name__ == "__main__":
    harness.main()
