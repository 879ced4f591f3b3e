"""/api/v1: the books as JSON, the last hour, events and the check, as clients of any kind get them."""
import base64
import contextlib
import gzip
import json
import os
import signal
import socket
import threading
import time
from decimal import Decimal

from harness import H200_TRACE, SOON_S, Connection, Exporter, TestCase, Trace, connect, main, run, wait_until

HOSTILE = "<img src=x onerror=alert(1)>\"\\\n\x1b[2J"
QUICK = "$2b$04$kddmW3/WKIOo31gAQg6EFeAaeVhyi0qUjxJBOa53FmqDmKqSQYoN6"  # of hunter2
OWNERS = ("idle", "system", "unattributed", "gap")
POD, UNIT = "a" * 64, "batch.service"


def read_json(text):
    """Numbers as they are written."""
    return json.loads(text, parse_float=Decimal, parse_constant=None)


def get(exporter, path, status=200, **headers):
    response = exporter.ask(f"/api/v1/{path}", **headers)
    if response.status != status or response.headers["Content-Type"] != "application/json":
        raise AssertionError(f"{path}: {response.status} {response.headers}: {response.body[:200]}")
    if response.headers["Cache-Control"] != "no-store":
        raise AssertionError(f"{path} may be stored: {response.headers}")
    body = response.body
    return read_json(gzip.decompress(body) if response.headers["Content-Encoding"] == "gzip" else body)


def several_meters(seconds):
    """Two boards, a processor and its memory; a pod uses all of them, a unit the processor alone. The pod and a process
    have names that are code to a browser and commands to a terminal."""
    trace = Trace()
    for gpu in (0, 1):
        trace.gpu(gpu)
        trace.work(gpu, [11 + gpu, 21 + gpu], seconds=seconds, watts=200 + 100 * gpu)
        for pid in (11 + gpu, 21 + gpu):
            trace.process(0, gpu, pid, HOSTILE.encode() if pid == 11 else b"python3",
                          b"/system.slice/docker-%s.scope" % POD.encode() if pid < 20 else b"")
    name = "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in HOSTILE)
    trace.records.append((trace.us(0), f"O container {POD} name={name}".encode()))
    for t in range(seconds + 1):
        for meter, watts in (("package", 100), ("dram", 20)):
            trace.records.append((trace.us(t), b"J rapl %s 0 %d 0" % (meter.encode(), watts * t * 1000000)))
        trace.records.append((trace.us(t + 0.001), b"C 5000000 8000000 4000000 16000000 2" + (b" f" if t == 0 else b"")))
        trace.records.append((trace.us(t + 0.001), f"D container {POD} {POD} - 3000000 3000000".encode()))
        trace.records.append((trace.us(t + 0.001), f"D unit {UNIT} - - 1000000 1000000".encode()))
    return trace


class ApiCase(TestCase):
    def assert_adds_up(self, node):
        """Every meter is its rows and what nobody owns: energy exactly, watts but for rounding."""
        for index, meter in enumerate(node["meters"]):
            rows = [row for workload in node["workloads"] for row in workload["meters"] if row["meter"] == index]
            unowned = meter["unowned"].values()
            self.assertEqual(meter["energy_joules"], sum(row["energy_joules"] for row in (*rows, *unowned)))
            self.assertEqual(0, meter["imbalance_joules"])
            parts = [row["watts"] for row in (*rows, *unowned) if "watts" in row]
            self.assertAlmostEqual(float(meter["watts"]), float(sum(parts)), delta=0.0005 * (len(parts) + 1))
        for workload in node["workloads"]:
            self.assertEqual(workload["energy_joules"], sum(row["energy_joules"] for row in workload["meters"]))
        self.assertAlmostEqual(float(node["watts"]), float(sum(meter["watts"] for meter in node["meters"])),
                               delta=0.0005 * (len(node["meters"]) + 1))

    def assert_history_adds_up(self, history):
        """Returns the watts that were booked and those that were measured, where both are known."""
        both = []
        for i in range(history["count"]):
            parts = [series["watts"][i] for series in history["series"]]
            parts += [history["others"][i]] + [history["unowned"][owner][i] for owner in OWNERS]
            booked, measured = history["booked"][i], history["measured"][i]
            if booked is None:
                self.assertEqual({None}, set(parts))
                continue
            self.assertAlmostEqual(float(booked), float(sum(parts)), delta=0.0005 * (len(parts) + 1))
            if measured is not None:
                both.append((float(booked), float(measured)))
        return both


class Demo(ApiCase):
    @classmethod
    def setUpClass(cls):
        cls.exporter = cls.enterClassContext(Exporter("--replay", H200_TRACE))
        wait_until("watts", lambda: get(cls.exporter, "node").get("watts", 0) > 0, 20)

    def test_the_books_of_the_node_add_up_and_are_those_of_the_metrics_page(self):
        node = get(self.exporter, "node")
        self.assertEqual((1, True), (node["api"], node["replay"]))
        self.assert_adds_up(node)
        meter, = node["meters"]
        self.assertEqual(("gpu", 0, False), (meter["meter"], meter["gpu"], meter["modelled"]))
        self.assertGreater(meter["measured_watts"], 0)
        names = {workload["name"] for workload in node["workloads"]}
        page = self.exporter.page()
        self.assertEqual(names, {labels["name"] for labels, _ in page.values("wattribute_workload_energy_joules_total")})
        self.assertGreaterEqual(page.value("wattribute_meter_energy_joules_total"), meter["energy_joules"])

    def test_what_is_booked_of_the_last_minute_is_what_the_counter_says_of_it(self):
        def find():
            both = self.assert_history_adds_up(get(self.exporter, "history"))
            return both if len(both) >= 3 else None
        both = wait_until("three points of history", find, 40)
        for booked, measured in both:
            # Windows of a second, on a board whose power jumps: of five seconds at most one is on the other side.
            self.assertLess(abs(booked - measured), 0.25 * measured + 5, both)
        self.assertLess(abs(sum(b for b, _ in both) / sum(m for _, m in both) - 1), 0.1, both)
        history = get(self.exporter, "history")
        self.assertEqual(5, history["interval_seconds"])
        self.assertEqual(0, history["start_time"] % 5)
        self.assertIn("training-job", {series.get("name") for series in history["series"]})
        self.assertLess(abs(history["start_time"] + 5 * history["count"] - time.time()), 15)

    def test_many_clients_get_the_same_document_made_once_a_second_at_most(self):
        documents, end = {}, time.monotonic() + 3

        def poll():
            with contextlib.closing(Connection(self.exporter.address)) as connection:
                while time.monotonic() < end:
                    body = connection.ask("/api/v1/node").body
                    documents.setdefault(json.loads(body)["generation"], set()).add(body)
        threads = [threading.Thread(target=poll) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(len(bodies) == 1 for bodies in documents.values()))
        self.assertGreater(len(documents), 1)
        self.assertLessEqual(len(documents), 4)

    def test_nothing_is_rendered_while_nobody_asks(self):
        before = get(self.exporter, "node")["generation"]
        time.sleep(3)
        self.assertEqual(before + 1, get(self.exporter, "node")["generation"])

    def test_gzip_has_the_same_document(self):
        node = get(self.exporter, "node", accept_encoding="gzip")
        self.assert_adds_up(node)
        self.assertEqual("gzip", self.exporter.ask("/api/v1/history", accept_encoding="gzip").headers["Content-Encoding"])

    def test_errors_are_json(self):
        self.assertEqual({"error": "not found"}, get(self.exporter, "nothing", 404))
        response = self.exporter.ask("/api/v1/node", "DELETE")
        self.assertEqual((405, "GET, HEAD"), (response.status, response.headers["Allow"]))
        self.assertIn("error", json.loads(response.body))
        self.assertIn("replay", get(self.exporter, "check", 404)["error"])


class Nodes(ApiCase):
    def test_several_meters_add_up_and_hostile_names_are_text(self):
        path = several_meters(30).write(self.path("node.trace.gz"))
        with Exporter("--replay", path) as exporter:
            def find():
                node = get(exporter, "node")
                measured = [meter for meter in node["meters"] if "measured_watts" in meter]  # read twice
                return node if len(measured) == 4 and node.get("watts", 0) > 300 else None
            node = wait_until("all meters", find, 20)
            self.assert_adds_up(node)
            self.assertEqual({"gpu", "package", "dram"}, {meter["meter"] for meter in node["meters"]})
            self.assertEqual(4, len(node["meters"]))
            pod, = [workload for workload in node["workloads"] if workload["id"] == POD]
            self.assertEqual(HOSTILE, pod["name"])
            self.assertEqual(4, len(pod["meters"]))
            self.assertIn(HOSTILE, {process["name"] for process in pod["processes"]})
            both = wait_until("history", lambda: self.assert_history_adds_up(get(exporter, "history")), 20)
            self.assertGreater(both[0][0], 0)
            history = get(exporter, "history")
            self.assertIn(HOSTILE, {series.get("name") for series in history["series"]})

    def test_a_history_that_is_switched_off_is_not_there(self):
        with Exporter("--no-history", "--replay", H200_TRACE) as exporter:
            self.assertIn("--no-history", get(exporter, "history", 404)["error"])
            self.assertEqual(1, get(exporter, "node")["api"])

    def test_the_page_interval_holds_for_all_documents(self):
        with Exporter("--page-interval=10s", "--replay", H200_TRACE) as exporter:
            first = get(exporter, "node")
            time.sleep(2.5)
            self.assertEqual(first, get(exporter, "node"))
            self.assertEqual(10, get(exporter, "history")["interval_seconds"])

    def test_passwords_hold_for_the_api_and_their_errors_are_json(self):
        config = self.write("web.yaml", f"basic_auth_users:\n  alice: {QUICK}\n".encode())
        authorization = "Basic " + base64.b64encode(b"alice:hunter2").decode()
        exporter = Exporter("--web.config.file", config, "--replay", H200_TRACE)
        exporter.is_ready = lambda: exporter.ask("/-/ready", authorization=authorization).status == 200
        with exporter:
            for path in ("node", "history", "events", "check"):
                self.assertIn("password", get(exporter, path, 401)["error"])
            get(exporter, "node", authorization=authorization)
            with Events(exporter, Authorization=authorization) as events:
                self.assertEqual(1, events.read()["api"])


class Events:
    """A viewer. Reads the stream event by event."""

    def __init__(self, exporter, **headers):
        self.connection = Connection(exporter.address)
        self.connection.putrequest("GET", "/api/v1/events")
        for name, value in headers.items():
            self.connection.putheader(name, value)
        self.connection.endheaders()
        self.response = self.connection.getresponse()
        self.pings = 0

    def __enter__(self):
        if self.response.status != 200 or self.response.headers["Content-Type"] != "text/event-stream":
            raise AssertionError(f"{self.response.status} {self.response.headers}")
        if (self.response.readline(), self.response.readline()) != (b"retry: 2000\n", b"\n"):
            raise AssertionError("no retry at the beginning")
        return self

    def __exit__(self, *_):
        self.connection.close()

    def read(self):
        """The next document; None at the end of the stream."""
        while True:
            line = self.response.readline()
            if not line:
                return None
            if line == b": ping\n":
                self.pings += 1
                self.response.readline()
                continue
            data, blank = self.response.readline(), self.response.readline()
            if (line, data[:6], blank) != (b"event: node\n", b"data: ", b"\n"):
                raise AssertionError(f"no event: {line!r} {data[:100]!r} {blank!r}")
            return read_json(data[6:])


class Streams(ApiCase):
    def test_events_are_the_newest_documents_a_second_apart(self):
        with Exporter("--replay", H200_TRACE) as exporter, Events(exporter) as one, Events(exporter) as other:
            documents = [one.read() for _ in range(4)]
            self.assertEqual(documents[-1], [other.read() for _ in range(4)][-1])
            for before, after in zip(documents, documents[1:]):
                self.assertEqual(before["generation"] + 1, after["generation"])
                self.assertGreaterEqual(after["time"] - before["time"], Decimal("0.99"))
            self.assertLessEqual(get(exporter, "node")["generation"], documents[-1]["generation"] + 1)

    def test_a_slow_reader_holds_nobody_up_and_too_many_are_sent_away(self):
        with Exporter("--replay", H200_TRACE) as exporter, contextlib.ExitStack() as stack:
            for _ in range(7):
                slow = stack.enter_context(contextlib.closing(connect(exporter.address)))
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                slow.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            events = stack.enter_context(Events(exporter))
            numbers = [events.read()["generation"] for _ in range(4)]
            self.assertEqual(list(range(numbers[0], numbers[0] + 4)), numbers)
            refused = exporter.ask("/api/v1/events")
            self.assertEqual((503, "60"), (refused.status, refused.headers["Retry-After"]))
            self.assertIn("/api/v1/node", json.loads(refused.body)["error"])
            self.assertEqual(200, exporter.ask("/metrics").status)

    def test_a_stream_ends_with_the_exporter_which_does_not_wait_for_it(self):
        with Exporter("--replay", H200_TRACE) as exporter, Events(exporter) as events:
            events.read()
            self.assertLess(exporter.stop(), SOON_S)
            while events.read() is not None:
                pass

    def test_a_client_that_connects_again_goes_on_after_the_server_was_killed(self):
        with Exporter("--replay", H200_TRACE) as exporter:
            with Events(exporter) as events:
                before = events.read()
                os.kill(exporter.server(), signal.SIGKILL)
                exporter.server_deaths = 1

            def connect_again():
                try:
                    with Events(exporter) as events:
                        return events.read()
                except (OSError, AssertionError):
                    return None
            after = wait_until("a stream from the next server", connect_again, SOON_S)
            self.assertEqual(before["start_time"], after["start_time"])
            self.assertGreaterEqual(after["generation"], before["generation"])


class Check(ApiCase):
    def test_the_check_is_made_once_by_a_process_of_its_own_and_kept(self):
        with Exporter() as exporter:
            self.assertIsNone(exporter.child("checker"))
            self.assertEqual({"state": "running"}, get(exporter, "check", 202))
            wait_until("the check", lambda: exporter.ask("/api/v1/check").status == 200, 30)
            report = get(exporter, "check")
            wait_until("its end", lambda: exporter.child("checker") is None)
            self.assertEqual(report, get(exporter, "check", accept_encoding="gzip"))
            self.assertIsNone(exporter.child("checker"))
            told = json.loads(run("check", "--json").stdout)
            sources = {finding["what"] for finding in report["findings"]}
            self.assertLessEqual(sources, {finding["what"] for finding in told["findings"]})
            self.assertIn("rapl", sources)

    def test_no_device_is_opened_while_an_administrator_has_them_closed(self):
        with Exporter("--sample-interval=100ms") as exporter:
            exporter.process.send_signal(signal.SIGUSR1)  # devices are closed: nobody opens them now
            wait_until("they are", lambda: exporter.log("every device is closed"))
            self.assertEqual({"state": "running"}, get(exporter, "check", 202))
            self.assertIsNone(exporter.child("checker"))
            self.assertEqual(200, exporter.ask().status)


if __name__ == "__main__":
    main()
