"""`wattribute report` of a made-up month in a real Prometheus: what it says is what the ledger has, and what is missing is told.

UPDATE_PICTURES=1 writes docs/pictures/report.png.
"""
import csv
import datetime
import http.client
import io
import json
import os
import pty
import random
import re
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import zoneinfo
from collections import defaultdict

from certificates import Authority
from harness import H200_TRACE, SOURCE_ROOT, Exporter, TestCase, binary, main, prometheus_tool, run, wait_until
from made_fleet import GRAMS_PER_KWH, PRICE_PER_KWH, UJ, Fleet, Node, Workload, labels_of, write_blocks
from prometheus import Prometheus
from servers import https

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAY_S = 86400
STEP_S = 300
TIMEOUT_S = 240
SCRIPT, FORMULA = "<script>alert(1)</script>", "=cmd|' /C calc'!A0"
USERS = ["alice", "bob", "carol", "dave", SCRIPT, FORMULA]


def moment(*date):
    return int(datetime.datetime(*date, tzinfo=BERLIN).timestamp())


FROM_S, TO_S = moment(2025, 10, 1), moment(2025, 11, 1)  # with a day of 25 hours
MONTH = "--period=2025-10-01..2025-10-31"


def made_jobs():
    """500 jobs of 10 s to 18 h; users are unequal."""
    rolled = random.Random(7)
    for i in range(500):
        begin_s = rolled.randrange(FROM_S - 3600, TO_S - 600)
        length_s = int(rolled.choice([20, 90, 600, 3600, 4 * 3600, 12 * 3600]) * rolled.uniform(0.5, 1.5))
        user = rolled.choices(USERS, [9, 6, 4, 3, 2, 1])[0]
        name = str(1000 + i)
        yield Workload("slurm", name, begin_s, begin_s + length_s, name=name, watts=rolled.randrange(50, 600), user=user,
                       account=f"group-{USERS.index(user) // 2}", job_id=name, job_name=f"step-{i % 7}")


def made_month():
    jobs = list(made_jobs())
    pods = [Workload("pod", f"{i:064x}", FROM_S + i * 5 * 3600, FROM_S + i * 5 * 3600 + 40 * 3600, name=f"train-{i}",
                     namespace=["ml", "web", SCRIPT][i % 3], pod=f"train-{i}", watts=200, image=f"registry.example/train:{i % 2}")
            for i in range(12)]
    return Fleet([
        # Away for 9 hours, with restarts that its state file survives.
        Node("n1:9400", jobs[::2] + pods, True, away=[(FROM_S + 9 * DAY_S, FROM_S + 9 * DAY_S + 9 * 3600)],
             restarts=[FROM_S + 5 * DAY_S + 7, FROM_S + 20 * DAY_S + 11]),
        # Comes on the third day, begins anew on the 13th, and is lost on the 27th.
        Node("n2:9400", jobs[1::2], False, begin_s=FROM_S + 2 * DAY_S, end_s=FROM_S + 26 * DAY_S,
             restarts=[FROM_S + 2 * DAY_S, FROM_S + 12 * DAY_S + 1]),
    ], FROM_S, TO_S, STEP_S)


class Reports(TestCase):
    """Of a fleet in a Prometheus, once for all classes that have the same."""

    served = {}

    @classmethod
    def serve(cls, make):
        if make not in Reports.served:
            folder = tempfile.TemporaryDirectory(prefix="wattribute-e2e-")
            unittest.addModuleCleanup(folder.cleanup)
            fleet = make()
            fleet.write(folder.name)
            fleet.series.clear()
            prometheus = Prometheus(folder.name).__enter__()
            unittest.addModuleCleanup(prometheus.__exit__)
            Reports.served[make] = fleet, prometheus
        cls.fleet, cls.prometheus = Reports.served[make]
        cls.url = f"http://{cls.prometheus.address}"

    def report(self, *flags, url=None, status=0, **options):
        done = run("report", f"--server={url or self.url}", *flags, env={"TZ": "Europe/Berlin", **options}, timeout=TIMEOUT_S)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout.decode() if status == 0 else done.stderr.decode()

    def json(self, *flags, **options):
        return json.loads(self.report("--json", *flags, **options))

    def assert_joules(self, microjoules, joules):
        self.assertAlmostEqual(microjoules / UJ, joules, delta=1e-9 * microjoules / UJ + 1e-3)

    def assert_alike(self, expected, found):
        """But for the rounding of sums, whose order depends on what was asked at once."""
        if isinstance(expected, dict):
            self.assertEqual(set(expected), set(found))
            for key, value in expected.items():
                self.assert_alike(value, found[key])
        elif isinstance(expected, list):
            self.assertEqual(len(expected), len(found))
            for pair in zip(expected, found):
                self.assert_alike(*pair)
        elif isinstance(expected, (int, float)):
            self.assertAlmostEqual(expected, found, delta=1e-8 * abs(expected) + 1e-6)
        else:
            self.assertEqual(expected, found)


def read_terminal(fd):
    """All that comes until nobody writes to it any more, and closes it; it gives out little at a time."""
    shown = b""
    try:
        while part := os.read(fd, 4096):
            shown += part
    except OSError:
        pass
    os.close(fd)
    return shown


def names_of(groups):
    return {group["name"]: group["joules"] for group in groups}


class Refusing(https.Service):
    """In front of a Prometheus: as a large one it refuses what is long, and at times anything; `left` answers are given."""

    def __init__(self, address, points=1 << 30, token=None, left=1 << 30, trouble=(), **options):
        super().__init__(Asked, **options)
        self.address, self.points, self.token, self.left = address, points, token, left
        self.trouble, self.answered, self.refused, self.tenants = list(trouble), 0, 0, set()


class Asked(https.Request):
    def do_GET(self):
        service = self.service
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        points = (int(query["end"][0]) - int(query["start"][0])) // int(query["step"][0]) + 1
        if service.token and self.headers["Authorization"] != f"Bearer {service.token}":
            return self.give(401, b"")
        if service.trouble:
            return self.give(service.trouble.pop(), b"")
        if points > service.points or service.left <= 0:
            service.refused += 1
            status = 422 if service.left > 0 else 403
            return self.give(status, b'{"status":"error","errorType":"execution","error":"too many samples"}')
        service.left -= 1
        service.answered += 1
        service.tenants.add(self.headers["X-Scope-OrgID"])
        host, port = service.address.rsplit(":", 1)
        upstream = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
        upstream.request("GET", self.path)
        answer = upstream.getresponse()
        self.give(answer.status, answer.read())
        upstream.close()

    def give(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Month(Reports):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve(made_month)

    def ledger_of(self, key_of):
        """Microjoules by what `key_of` says of a workload."""
        workloads = {(w.kind, w.id): w for node in self.fleet.nodes for w in node.workloads}
        sums = defaultdict(int)
        for (_, *key), value in self.fleet.by_workload.items():
            sums[key_of(workloads[tuple(key)])] += value
        return sums

    def assert_is_ledger(self, by, key_of, step="1h"):
        found = self.json(MONTH, f"--by={by}", f"--resolution={step}")
        expected = {key: value for key, value in self.ledger_of(key_of).items() if value}
        groups = names_of(found["groups"])
        self.assertEqual(set(expected), {name for name, joules in groups.items() if joules})
        for name, value in expected.items():
            self.assert_joules(value, groups[name])
        return found

    def test_every_job_has_what_the_ledger_has(self):
        found = self.assert_is_ledger("job", lambda w: w.id if w.kind == "slurm" else "", "5m")
        self.assertGreater(len(found["groups"]), 440)  # the others ran where nobody scraped
        self.assertEqual({"idle", "system", "gap"}, set(names_of(found["nobody"])))
        for owner, joules in names_of(found["nobody"]).items():
            self.assert_joules(self.fleet.by_owner[owner], joules)

    def test_users_accounts_namespaces_pods_images_and_nodes_have_what_the_ledger_has(self):
        self.assert_is_ledger("user", lambda w: w.info.get("user", ""))
        self.assert_is_ledger("account", lambda w: w.info.get("account", ""))
        self.assert_is_ledger("namespace", lambda w: w.namespace)
        self.assert_is_ledger("pod", lambda w: w.pod and f"{w.namespace}/{w.pod}")
        self.assert_is_ledger("image", lambda w: w.info.get("image", ""))
        found = self.json(MONTH, "--by=node", "--resolution=1h")
        nodes = defaultdict(int)
        for (instance, *_), value in self.fleet.by_workload.items():
            nodes[instance] += value
        for name, joules in names_of(found["groups"]).items():
            self.assert_joules(nodes[name], joules)

    def test_grams_cost_and_uncertainty_are_those_of_the_energy(self):
        found = self.json(MONTH, "--resolution=1h")
        for row in (*found["groups"], *found["nobody"], found["unseen"], found["total"]):
            self.assertAlmostEqual(row["kwh"] * GRAMS_PER_KWH, row["grams"], delta=1e-6 * row["grams"] + 1e-3)
            self.assertAlmostEqual(row["kwh"] * PRICE_PER_KWH, row["cost"]["EUR"], delta=1e-6)
        self.assert_joules(sum(self.fleet.uncertainty.values()), found["total"]["uncertainty_joules"])

    def test_owners_nobody_and_the_unseen_are_the_meters(self):
        found = self.json(MONTH, "--resolution=1h")
        rows = [*found["groups"], *found["nobody"], found["unseen"]]
        self.assertAlmostEqual(found["total"]["joules"], sum(row["joules"] for row in rows), delta=0.1)
        self.assertAlmostEqual(found["total"]["joules"], sum(row["joules"] for row in found["by_node"]), delta=0.1)
        # Of jobs that ended while n1 was away nobody has the name.
        self.assertGreater(found["unseen"]["joules"], 0)
        self.assertLess(found["unseen"]["joules"], 0.01 * found["total"]["joules"])
        for row in rows:
            self.assertAlmostEqual(row["joules"], sum(row["parts"]), delta=1e-6 * abs(row["joules"]) + 0.1)

    def test_what_is_missing_is_told_with_its_node_and_times(self):
        found = self.json(MONTH, "--resolution=5m")
        missing = {(gap["node"], gap["kind"]): gap for gap in found["missing"]}
        self.assertEqual({("n1:9400", "gap"), ("n2:9400", "late"), ("n2:9400", "lost")}, set(missing))
        away = missing["n1:9400", "gap"]
        self.assertFalse(away["counters_began_anew"])
        self.assertAlmostEqual(FROM_S + 9 * DAY_S, away["from"], delta=STEP_S)
        self.assertAlmostEqual(9 * 3600, away["to"] - away["from"], delta=STEP_S)
        self.assertEqual(TO_S, missing["n2:9400", "lost"]["to"])
        self.assertAlmostEqual(FROM_S + 26 * DAY_S, missing["n2:9400", "lost"]["from"], delta=STEP_S)
        self.assertEqual(1, found["restarts"])
        self.assertEqual(0, found["late_joules"])
        text = self.report(MONTH, "--resolution=5m")
        for part in ("n1:9400: missing for 8 h 55 min", "its counters went on", "it was not seen again", "counters began anew 1 time"):
            self.assertIn(part, text)

    def test_periods_that_follow_each_other_add_up_whatever_the_step_is(self):
        whole = self.json(MONTH, "--resolution=1h")["total"]["joules"]
        parts = [self.json(f"--period=2025-10-{part}", "--resolution=30m")["total"]["joules"]
                 for part in ("01..2025-10-09", "10..2025-10-20", "21..2025-10-31")]
        # A counter that begins anew costs what was booked since the last look.
        self.assertAlmostEqual(whole, sum(parts), delta=1e-3 * whole)

    def test_the_life_of_a_job_has_its_node_gpu_begin_and_end(self):
        (instance, kind, number), value = max(
            (item for item in self.fleet.by_workload.items() if item[0][1] == "slurm"), key=lambda item: item[1])
        job = next(w for node in self.fleet.nodes for w in node.workloads if (w.kind, w.id) == (kind, number))
        found = self.json(MONTH, f"--job={number}", "--resolution=5m")
        self.assertEqual([instance], [group["name"] for group in found["groups"]])
        self.assert_joules(value, found["total"]["joules"])
        self.assertAlmostEqual(job.begin_s, found["total"].get("first", found["groups"][0]["first"]), delta=STEP_S)
        self.assertAlmostEqual(job.end_s, found["groups"][0]["last"], delta=STEP_S)
        (gpu,) = found["gpus"]
        self.assertEqual((f"GPU-{instance[:2]}-0", "NVIDIA H200, GPU 0"), (gpu["name"], gpu["about"]))
        text = self.report(MONTH, f"--job={number}", "--resolution=5m")
        self.assertIn(f"Job {number}", text)
        self.assertIn("NVIDIA H200, GPU 0", text)
        self.assertIn("is not there in this period", self.report(MONTH, "--job=nobody", status=1))

    def test_the_life_of_a_pod_is_of_its_namespace_only(self):
        found = self.json(MONTH, "--pod=web/train-1", "--resolution=5m")
        self.assert_joules(self.fleet.by_workload["n1:9400", "pod", f"{1:064x}"], found["total"]["joules"])
        self.assertEqual(0, len(self.json(MONTH, "--pod=ml/train-1", "--resolution=5m")["groups"]))

    def test_csv_has_every_row_and_no_formula(self):
        text = self.report(MONTH, "--by=user", "--resolution=1h", "--csv")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual(["nobody"] * 4 + ["total"] + ["workload"] * (len(USERS) + 1), sorted(row["account"] for row in rows))
        names = {row["name"] for row in rows if row["account"] == "workload"}
        self.assertLessEqual({SCRIPT, "'" + FORMULA, "alice"}, names)
        total = next(row for row in rows if row["account"] == "total")
        others = sum(float(row["joules"]) for row in rows if row is not total)
        self.assertAlmostEqual(float(total["joules"]), others, delta=100)
        self.assertAlmostEqual(float(total["kwh"]) * 3.6e6, float(total["joules"]), delta=100)
        self.assertIn("cost_EUR", rows[0])

    def test_what_is_no_address_period_or_step_is_refused(self):
        for flags, text in (((MONTH, "--server=ftp://x"), "--server"), (("--period=soon",), "--period"),
                            ((MONTH, "--csv", "--json"), "exclude"), ((MONTH, "--job=1", "--pod=x"), "exclude"),
                            (("--server=http://192.0.2.1", f"--server.token-file={self.write('token', b'x')}"), "https"),
                            (("--server.token-file=/nonexistent",), "--server.token-file")):
            self.assertIn(text, self.report(*flags, status=2))
        self.assertIn("no multiple", self.report(MONTH, "--resolution=7m", status=1))
        self.assertIn("has no wattribute", self.report("--period=2024-05-05", status=1))
        self.assertIn("parse error", self.report(MONTH, "--select=a b", status=1))

    def test_a_selection_leaves_out_other_targets(self):
        found = self.json(MONTH, "--by=node", "--resolution=1h", '--select=instance="n2:9400"')
        self.assertEqual(["n2:9400"], [group["name"] for group in found["groups"]])
        self.assertEqual(1, found["nodes"])

    def test_what_a_server_refuses_is_asked_in_smaller_parts_and_trouble_is_waited_for(self):
        expected = self.json(MONTH, "--by=user", "--resolution=1h")
        with Refusing(self.prometheus.address, points=45, trouble=[503, 429, 500, 502, 503]) as proxy:
            found = self.json(MONTH, "--by=user", "--resolution=1h", "--server.tenant=a", url=proxy.url)
            self.assertGreater(proxy.refused, 3)
            self.assertEqual({"a"}, proxy.tenants)
        found["server"] = expected["server"]
        self.assert_alike(expected, found)

    def test_a_report_that_was_interrupted_goes_on_where_it_stopped(self):
        kept = self.path("kept")
        flags = (MONTH, "--by=user", "--resolution=1h", f"--resume={kept}")
        expected = self.json(*flags[:3])
        with Refusing(self.prometheus.address, left=40) as proxy:
            self.report(*flags, url=proxy.url, status=1)
            first = len(os.listdir(kept))
            self.assertGreater(first, 20)
            proxy.left, proxy.answered = 1 << 30, 0
            found = self.json(*flags, url=proxy.url)
            whole = len(os.listdir(kept))
            self.assertEqual(whole - first, proxy.answered)
            proxy.answered = 0
            self.json(*flags, url=proxy.url)
            self.assertEqual(0, proxy.answered)
            # What was cut is asked again.
            name = sorted(os.listdir(kept))[0]
            os.truncate(os.path.join(kept, name), os.path.getsize(os.path.join(kept, name)) - 1)
            self.json(*flags, url=proxy.url)
            self.assertEqual(1, proxy.answered)
        found["server"] = expected["server"]
        self.assertEqual(expected, found)

    def test_what_cannot_be_kept_or_written_is_told_and_the_table_is_there(self):
        text = self.report(MONTH, "--resolution=1h", "--resume=/proc/self")
        self.assertRegex(text, r"\d+ answers could not be kept for --resume")
        done = run("report", f"--server={self.url}", MONTH, "--resolution=1h", "--html=/dev/full", env={"TZ": "Europe/Berlin"},
                   timeout=TIMEOUT_S)
        self.assertEqual(1, done.returncode)
        self.assertIn(b"cannot write '/dev/full': No space left on device", done.stderr)
        self.assertIn(b"all meters", done.stdout)

    def test_tls_and_a_token_from_a_file(self):
        authority = Authority(self.directory)
        certificate = authority.certify("server", "IP:127.0.0.1", purpose="serverAuth")
        token = self.write("token", b"s3cret\n")
        flags = ("--period=2025-10-05", "--resolution=1h", "--json")
        with Refusing(self.prometheus.address, token="s3cret", certificate=certificate) as proxy:
            self.assertIn("--server.ca-file", self.report(*flags, f"--server.token-file={token}", url=proxy.url, status=1))
            trusting = (*flags, f"--server.ca-file={authority.crt}")
            self.assertIn("--server.token-file", self.report(*trusting, url=proxy.url, status=1))
            found = json.loads(self.report(*trusting, f"--server.token-file={token}", url=proxy.url))
            self.assertGreater(found["total"]["joules"], 0)
            found = json.loads(self.report(*flags, "--server.insecure", f"--server.token-file={token}", url=proxy.url))
            self.assertGreater(found["total"]["joules"], 0)

    def test_a_server_that_is_not_there_or_wants_another_user_is_named_at_once(self):
        with Refusing(self.prometheus.address, left=0) as proxy:
            url = proxy.url
            self.assertIn("403", self.report(MONTH, url=url, status=1))
        self.assertIn("name the server with --server", self.report(MONTH, url=url, status=1))

    def test_a_terminal_shows_how_far_it_is_and_nothing_else_does(self):
        flags = [binary(), "report", f"--server={self.url}", MONTH, "--resolution=1h", "--csv"]
        ours, theirs = pty.openpty()
        seen = []
        reader = threading.Thread(target=lambda: seen.append(read_terminal(ours)))
        reader.start()
        done = subprocess.run(flags, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)
        os.close(theirs)
        reader.join()
        shown = seen[0].decode()
        self.assertRegex(shown, r"\[#+ *\] \d+/\d+, \d+\.\d million samples")
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-40:]))  # and takes it away
        again = subprocess.run(flags, capture_output=True, timeout=TIMEOUT_S, check=True)
        self.assertEqual((done.stdout, b""), (again.stdout, again.stderr))


    def record(self, rules, from_s, to_s):
        """What Prometheus would record by these rules every 5 minutes; its own tool takes minutes for a week."""
        self.assertEqual(15, len(rules))
        lines = []
        for name, expression in rules:
            for row in self.prometheus.api("query_range", query=expression, start=from_s, end=to_s, step=STEP_S)["result"]:
                labels = labels_of(**{key: value for key, value in row["metric"].items() if key != "__name__"})
                lines += [f"{name}{labels} {value} {t_s}\n" for t_s, value in row["values"]]
        path = self.write("recorded.om", "".join([*lines, "# EOF\n"]).encode())
        write_blocks(path, self.path("data"))

    def test_the_recording_rules_of_the_manual_give_the_same(self):
        with open(os.path.join(SOURCE_ROOT, "docs/report.md")) as file:
            (rules,) = re.findall(r"^```yaml\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
        path = self.write("rules.yml", rules.encode())
        subprocess.run([prometheus_tool("promtool"), "check", "rules", path], check=True, timeout=60, capture_output=True)
        self.record(re.findall(r"- record: (\S+)\n *expr: (.+)\n", rules), FROM_S - STEP_S, FROM_S + 14 * DAY_S)
        flags = ("--period=2025-10-01..2025-10-14", "--by=job", "--resolution=1h")
        expected = self.json(*flags)
        with Prometheus(self.directory) as recorded:
            url = f"http://{recorded.address}"
            self.report(*flags, url=url, status=1)
            found = self.json(*flags, "--recorded", url=url)
        for name, joules in names_of(expected["groups"]).items():
            self.assertAlmostEqual(joules, names_of(found["groups"])[name], delta=1e-9 * joules + 1e-3)
        for part in ("joules", "grams", "uncertainty_joules", "cost", "parts"):
            self.assertEqual(json.dumps(expected["total"][part])[:9], json.dumps(found["total"][part])[:9])
        # A rule sees a node for as long as Prometheus looks back, which is 5 minutes.
        self.assertEqual([(gap["node"], gap["kind"], gap["to"]) for gap in expected["missing"]],
                         [(gap["node"], gap["kind"], gap["to"]) for gap in found["missing"]])
        self.assertEqual(1, found["restarts"])


def made_restarts():
    """Scrapes of every 15 s, in a day of restarts around ends of jobs."""
    def jobs(name, restarts):
        for i, at_s in enumerate(restarts):
            for j, (begin_s, end_s) in enumerate([(-7200, -300), (-3600, -3), (-1800, 1800), (20, 4000)]):
                yield Workload("slurm", f"{name}-{i}{j}", at_s + begin_s, at_s + end_s, user=USERS[j], watts=100 * (j + 1))

    def node(name, has_state, is_pod):
        restarts = [FROM_S + hour * 3600 + 41 for hour in (6, 12, 18)]
        return Node(f"{name}:9400", list(jobs(name, restarts)), has_state, restarts=restarts, is_pod=is_pod)

    return Fleet([node("b1", False, False), node("b2", False, True), node("b3", True, True)], FROM_S, FROM_S + DAY_S, 15)


class Restarts(Reports):
    """A look is longer than a scrape, so one has values of before and after a restart."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve(made_restarts)

    def test_jobs_and_meters_have_what_was_scraped_whatever_the_step_is(self):
        meters = sum(self.fleet.by_workload.values()) + sum(self.fleet.by_owner.values())
        for step in ("1m", "5m", "1h"):
            found = self.json("--period=2025-10-01", "--by=job", f"--resolution={step}")
            groups = names_of(found["groups"])
            for (_, _, name), value in self.fleet.by_workload.items():
                with self.subTest(name=name, step=step):
                    self.assert_joules(value, groups.get(name, 0))
            self.assert_joules(meters, found["total"]["joules"])
            self.assertEqual(0, found["unseen"]["joules"])
            for owner, joules in names_of(found["nobody"]).items():
                self.assert_joules(self.fleet.by_owner[owner], joules)
            self.assertEqual(6, found["restarts"])

    def test_the_life_of_a_job_that_a_restart_ended_is_not_counted_twice(self):
        for name in ("b1-01", "b2-12", "b3-22"):
            (value,) = [value for key, value in self.fleet.by_workload.items() if key[2] == name]
            self.assert_joules(value, self.json("--period=2025-10-01", f"--job={name}")["total"]["joules"])


class Recent(Reports):
    def test_what_is_kept_of_a_life_is_of_use_a_second_later(self):
        to_s = int(time.time()) // 60 * 60 - 4 * 3600
        fleet = Fleet([Node("n1:9400", [Workload("slurm", "7", to_s - 7000, to_s - 1000)])], to_s - 7200, to_s, 60)
        fleet.write(self.directory)
        with Prometheus(self.directory) as prometheus, Refusing(prometheus.address) as proxy:
            flags = ("--job=7", f"--resume={self.path('kept')}")
            hour = None
            while hour != time.time() // 3600:  # only the first time, or at the end of an hour
                hour = time.time() // 3600
                self.json(*flags, url=proxy.url)
                first, proxy.answered = proxy.answered, 0
                began_s = int(time.time())
                wait_until("the next second", lambda: int(time.time()) > began_s, 10)
                self.json(*flags, url=proxy.url)
            self.assertGreater(first, 20)
            self.assertEqual(1, proxy.answered)  # where it ran


class Page(Reports):
    """Needs a browser, and is skipped without."""

    @classmethod
    def setUpClass(cls):
        from servers.browser import Browser
        super().setUpClass()
        cls.browser = cls.enterClassContext(Browser())
        cls.serve(made_month)

    def test_it_asks_nobody_has_no_script_and_shows_hostile_names_as_text(self):
        path = self.path("report.html")
        self.report(MONTH, "--by=user", "--resolution=1h", f"--html={path}")
        with open(path) as file:
            text = file.read()
        self.assertNotIn("<script", text)
        self.assertIsNone(re.search(r"(?:src|href)=\"(?!data:,)", text))
        for options in ({"colorScheme": "light"}, {"colorScheme": "dark"}, {"viewport": {"width": 390, "height": 844}}):
            with self.browser.open(f"file://{path}", **options) as page:
                self.assertEqual([], page.problems())
                self.assertEqual([f"file://{path}"], [url for url in page.run("return page.requested") if not url.startswith("data:")])
                self.assertIn(SCRIPT, page.texts("tbody th bdi"))
                self.assertIn(FORMULA, page.texts("tbody th bdi"))
                self.assertEqual(len(USERS) + 1, page.get("document.querySelectorAll('.chart + .legend')[0].children.length") - 1)
                self.assertEqual(2, page.get("document.querySelectorAll('.there').length"))
                self.assertEqual(3, page.get("document.querySelectorAll('.away').length"))
                self.assertLessEqual(page.get("document.documentElement.scrollWidth"), page.get("innerWidth"))
                self.assertEqual([], page.run("return tools.audit(page)"))

    def test_the_table_has_the_figures_of_the_json(self):
        path = self.path("report.html")
        found = json.loads(self.report(MONTH, "--by=user", "--resolution=1h", "--json", f"--html={path}"))
        with self.browser.open(f"file://{path}") as page:
            shown = dict(zip(page.texts("tbody th bdi"), page.texts("tbody td:nth-child(3)")))
            for group in found["groups"]:
                self.assertAlmostEqual(group["kwh"], float(shown[group["name"] or "(no user)"].replace(",", "")), delta=0.051)
            self.assertIn(f"{found['total']['kwh']:.2f}", page.text(".figures dd").replace(",", ""))

    def test_a_job_has_a_page_and_so_has_a_day(self):
        path = self.path("report.html")
        (_, _, number), _ = max(self.fleet.by_workload.items(), key=lambda item: item[1] * (item[0][1] == "slurm"))
        for flags in ((MONTH, f"--job={number}"), ("--period=2025-10-26", "--by=job")):
            self.report(*flags, "--resolution=1h", f"--html={path}")
            with self.browser.open(f"file://{path}") as page:
                self.assertEqual([], page.problems())
                self.assertEqual([], page.run("return tools.audit(page)"))
                if flags[0] == MONTH:
                    self.assertRegex(page.text("header p"), r"from 2025-10-\d\d \d\d:00 to 2025-10-\d\d \d\d:00: \d+ h 0 min on 1 node")

    def test_the_picture_of_the_manual_can_be_taken(self):
        is_update = os.environ.get("UPDATE_PICTURES") == "1"
        path = self.path("report.html")
        self.report(MONTH, "--by=account", "--resolution=1h", f"--html={path}")
        picture = os.path.join(SOURCE_ROOT, "docs/pictures/report.png")
        taken = picture if is_update else self.path("report.png")
        with self.browser.open(f"file://{path}", viewport={"width": 1100, "height": 1000}) as page:
            page.picture(taken, fullPage=True)
        for each in (picture, taken):
            with open(each, "rb") as file:
                self.assertEqual((b"\x89PNG", 1100), (file.read(4), struct.unpack(">I", file.read(16)[-4:])[0]))


def made_day():
    rolled = random.Random(3)
    return Fleet([
        Node(f"node{i}:9400",
             [Workload("slurm", f"{i}-{j}", FROM_S + j * 14400, FROM_S + j * 14400 + rolled.randrange(600, 12000), name=f"{i}-{j}",
                       user=f"user{(i + j) % 17}", job_id=f"{i}-{j}") for j in range(6)],
             away=[(FROM_S + 30000, FROM_S + 40000)] if i % 50 == 7 else ())
        for i in range(200)], FROM_S, FROM_S + DAY_S, 600)


class Fleet200(Reports):
    """A day of 200 nodes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve(made_day)

    def test_a_day_of_200_nodes_is_what_the_ledger_has(self):
        found = self.json("--period=2025-10-01", "--by=user", "--resolution=10m")
        expected = defaultdict(int)
        users = {(w.kind, w.id): w.info["user"] for node in self.fleet.nodes for w in node.workloads}
        for (_, *key), value in self.fleet.by_workload.items():
            expected[users[tuple(key)]] += value
        self.assertEqual(set(expected), set(names_of(found["groups"])))
        for name, value in expected.items():
            self.assert_joules(value, names_of(found["groups"])[name])
        self.assertEqual(200, found["nodes"])
        self.assertEqual(4, len(found["missing"]))


class Demo(Reports):
    """The real exporter, scraped by a real Prometheus."""

    def test_a_report_of_the_demo_has_every_joule_that_was_scraped(self):
        with Exporter("--replay", H200_TRACE, "--cost.price=0.30", "--cost.currency=EUR") as exporter, \
                Prometheus(self.directory, wattribute=[exporter.address]) as prometheus:
            wait_until("all workloads of the demo", lambda: len(prometheus.rows("sum by (id) (wattribute_workload_energy_joules_total) > 0")) >= 6,
                       60)
            exporter.stop()
            ended_s = time.time()
            wait_until("the look after the last scrape has passed", lambda: time.time() > ended_s + 7, 20)
            booked = prometheus.rows("sum(max_over_time(wattribute_meter_energy_joules_total[1h]))")[0][1]
            begin, now = (datetime.datetime.fromtimestamp(t_s, BERLIN) for t_s in (ended_s - 120, ended_s))
            period = f"--period={begin:%Y-%m-%d}..{now:%Y-%m-%d}"
            found = {by: self.json(period, f"--by={by}", "--resolution=5s", url=f"http://{prometheus.address}")
                     for by in ("namespace", "user", "job", "node")}
        self.assertEqual(1, found["node"]["nodes"])
        for by, report in found.items():
            self.assertAlmostEqual(booked, report["total"]["joules"], delta=1e-6 * booked, msg=by)
            self.assertEqual(0, report["unseen"]["joules"], by)
            self.assertEqual(0, report["late_joules"])
            (late,) = report["findings"]
            self.assertIn("its exporter began then", late)
        self.assertIn("bob", names_of(found["user"]["groups"]))
        self.assertIn("4711", names_of(found["job"]["groups"]))
        self.assertGreater(found["node"]["total"]["cost"]["EUR"], 0)


if __name__ == "__main__":
    main()
