"""The metrics page: both formats, hostile names, exact books."""
import glob
import gzip
import os
import subprocess
import tempfile
import time
import unittest
from decimal import Decimal

import exposition
from harness import (H200_TRACE, METER_ENERGY, OPENMETRICS, PROCESS_ENERGY, SOURCE_ROOT, TEXT,
                     UNOWNED_ENERGY, WORKLOAD_ENERGY, Connection, Exporter, TestCase, Trace,
                     prometheus_tool, wait_until)
from servers import require

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FAST = ("--sample-interval=100ms",)


def has_settled(page):
    energy = [value for _, value in page.values(METER_ENERGY)]
    return energy and min(energy) > 0


def three_gpus(seconds, start_s=0):
    """Three GPUs; pid 12 works on two of them, as a job."""
    trace = Trace()
    for gpu, pids in enumerate(([11, 12], [12, 13, 14], [15])):
        trace.gpu(gpu)
        for pid in pids:
            trace.process(0, gpu, pid, b"worker", b"/slurm/uid_1/job_8/step_0" if pid == 12 else b"", start_s)
        trace.work(gpu, pids, seconds, counter_mj=1_000_000 * (gpu + 1), watts=70 + 200 * gpu)
    return trace


class Formats(TestCase):
    """On a page that does not change: the trace of a real H200, in windows of a second."""

    @classmethod
    def setUpClass(cls):
        cls.exporter = cls.enterClassContext(Exporter("--replay", H200_TRACE))
        cls.exporter.wait_for_page("settled energy", has_settled)

    def of_one_snapshot(self, **headers):
        """The text page, and what these headers get of the same snapshot: the text before and after
        is the same to the last byte of its CPU time."""
        def find():
            before = self.exporter.ask(accept=TEXT)
            other = self.exporter.ask(**headers)
            after = self.exporter.ask(accept=TEXT)
            return (before, other) if before.body == after.body else None
        return wait_until("three scrapes of one snapshot", find)

    def test_the_text_page_passes_the_strict_checker(self):
        page = self.exporter.page(TEXT)
        self.assertEqual(1, page.value("wattribute_replay_active"))

    def test_the_openmetrics_page_passes_the_strict_checker(self):
        page = self.exporter.page(OPENMETRICS)
        self.assertEqual("joules", page.families["wattribute_meter_energy_joules"].unit)

    def test_the_parser_of_the_python_client_reads_the_same_series(self):
        self.assert_parsed_alike(self.exporter.ask(accept=OPENMETRICS).body)

    def test_the_parser_of_the_python_client_reads_the_golden_pages(self):
        pages = glob.glob(f"{SOURCE_ROOT}/tests/golden/*.openmetrics.txt")
        self.assertGreater(len(pages), 2)
        for page in pages:
            with self.subTest(page), open(page, "rb") as file:
                self.assert_parsed_alike(file.read())

    def assert_parsed_alike(self, body):
        parser = require.module("prometheus_client.openmetrics.parser")
        families = list(parser.text_string_to_metric_families(body.decode()))
        ours = exposition.read(body, True)
        self.assertEqual({name: (family.type, family.help, family.unit or "")
                          for name, family in ours.families.items()},
                         {family.name: (family.type, family.documentation, family.unit)
                          for family in families})
        self.assertEqual({series: float(value) for series, value in ours.series.items()},
                         {(sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
                          for family in families for sample in family.samples})

    def test_promtool_finds_nothing_in_the_text_page(self):
        done = subprocess.run([prometheus_tool("promtool"), "check", "metrics"],
                              input=self.exporter.ask(accept=TEXT).body, capture_output=True,
                              timeout=60)
        self.assertEqual((0, b"", b""), (done.returncode, done.stdout, done.stderr))

    def test_both_formats_hold_the_same_series_and_values(self):
        text, openmetrics = self.of_one_snapshot(accept=OPENMETRICS)
        self.assertEqual(exposition.read(text.body, False).series,
                         exposition.read(openmetrics.body, True).series)

    def test_the_gzip_body_is_the_identity_body(self):
        for accept in (TEXT, OPENMETRICS):
            with self.subTest(accept=accept):
                def find():
                    plain = self.exporter.ask(accept=accept)
                    packed = self.exporter.ask(accept=accept, accept_encoding="gzip")
                    again = self.exporter.ask(accept=accept)
                    return (plain, packed) if plain.body == again.body else None
                plain, packed = wait_until("three scrapes of one snapshot", find)
                self.assertEqual("gzip", packed.headers["Content-Encoding"])
                self.assertIsNone(plain.headers["Content-Encoding"])
                self.assertLess(len(packed.body), len(plain.body))
                self.assertEqual(plain.body, gzip.decompress(packed.body))

    def test_gzip_comes_only_to_those_who_take_it(self):
        for encoding in ("identity", "gzip;q=0", "br"):
            response = self.exporter.ask(accept_encoding=encoding)
            self.assertIsNone(response.headers["Content-Encoding"], encoding)

    def test_the_content_type_is_that_of_the_format_that_was_asked_for(self):
        prometheus_2_42 = ("application/openmetrics-text;version=1.0.0,"
                           "application/openmetrics-text;version=0.0.1;q=0.75,"
                           "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
        for accept, content_type in ((TEXT, TEXT_TYPE), (OPENMETRICS, OPENMETRICS_TYPE),
                                     (prometheus_2_42, OPENMETRICS_TYPE), ("*/*", TEXT_TYPE),
                                     ("text/html", TEXT_TYPE)):
            response = self.exporter.ask(accept=accept)
            self.assertEqual(content_type, response.headers["Content-Type"], accept)
        self.assertEqual(TEXT_TYPE, self.exporter.ask().headers["Content-Type"])

    def test_a_connection_serves_many_requests(self):
        connection = Connection(self.exporter.address)
        self.addCleanup(connection.close)
        connection.connect()
        socket = connection.sock
        for path, accept in (("/metrics", TEXT), ("/metrics", OPENMETRICS), ("/nowhere", TEXT),
                             ("/-/healthy", TEXT), ("/-/ready", TEXT), ("/", TEXT),
                             ("/metrics", TEXT)):
            response = connection.ask(path, accept=accept)
            self.assertEqual(404 if path == "/nowhere" else 200, response.status)
            self.assertIs(socket, connection.sock, "it was closed after " + path)

    def test_head_has_the_headers_of_get_and_no_body(self):
        get, head = self.of_one_snapshot(method="HEAD", accept=TEXT)
        self.assertEqual(200, head.status)
        self.assertEqual(b"", head.body)
        for name in ("Content-Type", "Content-Length", "Vary"):
            self.assertEqual(get.headers[name], head.headers[name])
        self.assertEqual(str(len(get.body)), head.headers["Content-Length"])

    def test_scrapes_of_one_snapshot_are_the_same_bytes(self):
        text, again = self.of_one_snapshot(accept=TEXT)
        self.assertEqual(text.body, again.body)


class Names(TestCase):
    # What comes, and what is shown: U+FFFD and its digits for each byte that cannot be.
    HOSTILE = {
        b'"': '"', b"\\": "\\", b"\n": "\n", b'\\n"\n\\\\': '\\n"\n\\\\',
        b"a b": "a b", b'"} 1\nevil{x="': '"} 1\nevil{x="', b"# EOF\n": "# EOF\n",
        b"\x01\x1b[2J\r\t\x7f": "\ufffd01\ufffd1b[2J\ufffd0d\ufffd09\ufffd7f",
        b"\xff\xfe": "\ufffdff\ufffdfe", b"a\xe9z": "a\ufffde9z", b"\xc3": "\ufffdc3",
        b"": "", b"%s%n": "%s%n", "é 漢 🔥".encode(): "é 漢 🔥", b"{}": "{}", b"x" * 4096: "x" * 4096,
    }
    # Here it is only said that what is shown is valid: overlong forms, surrogates, beyond U+10FFFF.
    MALFORMED = [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x94"]

    def trace_of(self, names, field):
        """A process each, with the name in that field of its N record."""
        trace = Trace()
        trace.gpu(0)
        pids = range(100, 100 + len(names))
        for pid, name in zip(pids, names):
            trace.process(0, 0, pid, **{"name": b"worker", field: name})
        trace.work(0, list(pids), seconds=10)
        return trace.write(self.path("names.trace.gz"))

    def pages(self, trace, *flags):
        with Exporter("--replay", trace, *FAST, *flags) as exporter:
            exporter.wait_for_page("settled energy", has_settled)
            return exporter.page(TEXT), exporter.page(OPENMETRICS)

    def test_hostile_process_names_come_out_escaped_and_valid(self):
        names = [*self.HOSTILE, *self.MALFORMED]
        for page in self.pages(self.trace_of(names, "name")):
            for pid, name in enumerate(names, 100):
                shown = page.values("my_gpu_process_active", pid=str(pid))
                self.assertEqual(1, len(shown), name)
                if name in self.HOSTILE:
                    self.assertEqual(self.HOSTILE[name], shown[0][0]["process_name"])
            self.assert_balanced(page)

    def test_hostile_cgroup_names_come_out_escaped_and_valid(self):
        # The kernel has no newlines and no more than 255 bytes in a name.
        names = [name for name in self.HOSTILE if name and b"\n" not in name and len(name) < 240]
        units = [b"/system.slice/" + name + b".service" for name in names]
        for page in self.pages(self.trace_of(units, "cgroup")):
            shown = {labels["id"] for labels, _ in page.values(WORKLOAD_ENERGY, kind="unit")}
            self.assertEqual({self.HOSTILE[name] + ".service" for name in names}, shown)
            self.assert_balanced(page)

    def test_cgroups_that_differ_only_in_bytes_that_cannot_be_shown_make_no_series_twice(self):
        names = [b"/\xff.service", b"/\xfe.service", b"/\x01.service", b"/\x02.service"]
        for page in self.pages(self.trace_of(names, "cgroup")):
            self.assertEqual(4, len({labels["id"] for labels, _ in page.values(WORKLOAD_ENERGY, kind="unit")}))
            self.assert_balanced(page)

    def test_hostile_gpu_names_come_out_escaped_and_valid(self):
        trace = Trace()
        names = [name for name in self.HOSTILE if name and not set(name) & set(b" \n_")]
        for gpu, name in enumerate([*names, *self.MALFORMED]):
            uuid = trace.gpu(gpu, name=name)
            self.assertTrue(uuid)
            trace.work(gpu, [7], seconds=10)
        for page in self.pages(trace.write(self.path("gpus.trace.gz"))):
            for gpu, name in enumerate(names):
                shown = page.values("wattribute_gpu_info", gpu=str(gpu))
                self.assertEqual([self.HOSTILE[name]], [labels["name"] for labels, _ in shown])
            self.assert_balanced(page)

    def test_gpus_that_differ_only_in_bytes_that_cannot_be_shown_make_no_series_twice(self):
        trace = Trace()
        for gpu, uuid in enumerate((b"GPU-\xff", b"GPU-\xfe", b'GPU-"', b"GPU-\x01")):
            trace.gpu(gpu, uuid=uuid)
            trace.work(gpu, [7], seconds=10)
        for page in self.pages(trace.write(self.path("gpus.trace.gz"))):
            self.assertEqual(4, len(page.values(METER_ENERGY)))
            self.assert_balanced(page)


class Options(TestCase):
    def serve(self, *flags):
        trace = three_gpus(10).write(self.path("three.trace.gz"))
        return Exporter("--replay", trace, *FAST, *flags)

    def test_metric_prefix_names_the_process_families_and_nothing_else(self):
        with self.serve("--metric-prefix=acme_gpu") as exporter:
            for page in (exporter.page(TEXT), exporter.page(OPENMETRICS)):
                self.assertEqual(1, page.value("acme_gpu_active", pid="11"))
                self.assertEqual(2, len(page.values("acme_gpu_energy_joules_total", pid="11")))
                self.assertFalse([name for name in page.families if name.startswith("my_gpu")])
                self.assertTrue(page.values(METER_ENERGY))

    def test_metrics_path_moves_the_page(self):
        with self.serve("--metrics-path=/deep/energy") as exporter:
            response = exporter.ask("/deep/energy")
            self.assertEqual(200, response.status)
            self.assertTrue(exposition.read(response.body, False).values(METER_ENERGY))
            self.assertEqual(404, exporter.ask("/metrics").status)
            self.assertIn(b"/deep/energy", exporter.ask("/").body)

    def test_the_page_changes_at_most_once_in_the_page_interval(self):
        """This is the only client, so a page is made between its request and its answer, but for the first: that may be
        from the start."""
        interval, began = 2, []
        with Exporter("--replay", H200_TRACE, f"--page-interval={interval}s", *FAST) as exporter:
            states = []

            def next_state():
                asked = time.monotonic()
                text = exporter.ask(accept=TEXT).body
                energy = [line for line in text.splitlines() if b"_energy_joules" in line]
                energy = [line for line in energy if not line.startswith(b"#")]
                if not states or set(energy) != states[-1]:
                    if len(began) > 1:
                        self.assertGreaterEqual(time.monotonic() - began[-1], interval)
                    began.append(asked)
                    states.append(set(energy))
                return len(states) == 3
            wait_until("three states of the page", next_state, 30)

    def test_compat_my_gpu_exporter_adds_its_names(self):
        with self.serve("--compat=my-gpu-exporter", "--compat=my-gpu-exporter") as exporter:
            page = exporter.wait_for_page("settled energy", has_settled)
            self.assertEqual("gauge", page.families["my_gpu_process_energy_joules"].type)
            gauges = page.values("my_gpu_process_energy_joules")
            self.assertEqual(6, len(gauges))
            for labels, value in gauges:
                self.assertEqual(page.sum(PROCESS_ENERGY, pid=labels["pid"], gpu=labels["gpu"]),
                                 value)
            self.assertEqual(page.value(METER_ENERGY, meter_id="GPU-00000002"),
                             page.value("my_gpu_process_gpu_energy_joules_total", gpu="2"))

    def test_the_old_gauge_has_the_labels_of_the_other_families_of_processes(self):
        with self.serve("--compat=my-gpu-exporter") as exporter:
            page = exporter.wait_for_page("settled energy", has_settled)
            gauges = [labels for labels, _ in page.values("my_gpu_process_energy_joules")]
            self.assertEqual({"pid", "gpu", "process_name", "pod", "namespace", "container", "pod_uid",
                              "container_id"}, set(gauges[0]))
            self.assertEqual(gauges, [labels for labels, _ in page.values("my_gpu_process_active")])

    def test_with_compat_every_client_gets_text(self):
        protobuf = ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
                    "encoding=delimited")
        prometheus = f"{protobuf};q=0.9,{OPENMETRICS};q=0.8,{TEXT};q=0.5,*/*;q=0.1"
        with self.serve("--compat=my-gpu-exporter") as exporter:
            for accept in (OPENMETRICS, prometheus, protobuf, TEXT, "image/png"):
                for encoding in ("identity", "gzip"):
                    with self.subTest(accept=accept, encoding=encoding):
                        response = exporter.ask(accept=accept, accept_encoding=encoding)
                        self.assertEqual(200, response.status)
                        self.assertEqual(TEXT_TYPE, response.headers["Content-Type"])
                        body = gzip.decompress(response.body) if encoding == "gzip" else response.body
                        self.assertTrue(exposition.read(body, False).values("my_gpu_process_energy_joules"))

    def test_what_the_caps_on_processes_and_workloads_cut_stays_booked(self):
        for flag in ("--max-processes=2", "--max-workloads=1"):
            with self.subTest(flag=flag), self.serve(flag) as exporter:
                page = exporter.wait_for_page("settled energy", has_settled)
                self.assert_balanced(page)
                self.assert_processes_sum_to_workloads(page)
                self.assertGreater(page.sum(WORKLOAD_ENERGY, kind="other", id="other"), 0)
                limit = flag[2:].split("=")[0]
                self.assertGreater(page.value("wattribute_series_dropped_total", limit=limit), 0)

    def test_without_compat_no_other_exporters_name_is_used(self):
        with self.serve() as exporter:
            self.assertFalse({"my_gpu_process_energy_joules",
                              "my_gpu_process_gpu_energy_joules_total"} &
                             set(exporter.page().families))


def collect_pages(exporter, enough):
    """Pages that differ, up to one that is enough."""
    pages = []

    def collect():
        page = exporter.page()
        if not pages or page.series != pages[-1].series:
            pages.append(page)
        return enough(page)
    wait_until("enough pages", collect, 30)
    return pages


class Books(TestCase):
    """A trace of 2 s that was played more than twice."""

    @classmethod
    def setUpClass(cls):
        trace = three_gpus(2)
        two_rounds = Decimal(max(trace.energy_mj.values())) / 1000 * 2
        with tempfile.TemporaryDirectory() as directory:
            path = trace.write(os.path.join(directory, "loop.trace.gz"))
            with Exporter("--replay", path, *FAST) as exporter:
                cls.pages = collect_pages(
                    exporter, lambda page: page.value(METER_ENERGY, meter_id="GPU-00000002") >
                    two_rounds * Decimal("1.1"))

    def test_pages_were_seen_on_both_sides_of_the_seam(self):
        self.assertGreater(len(self.pages), 12)

    def test_every_meter_is_exactly_the_sum_of_its_owners_on_every_page(self):
        for page in self.pages:
            self.assert_balanced(page)
        self.assertEqual(3, len(self.meters(self.pages[-1])))
        self.assertGreater(self.pages[-1].sum(WORKLOAD_ENERGY), 0)

    def test_the_processes_of_a_gpu_sum_exactly_to_its_workloads(self):
        for page in self.pages:
            self.assert_processes_sum_to_workloads(page)

    def test_a_process_and_its_workload_have_the_same_energy(self):
        page = self.pages[-1]
        for gpu in (0, 1):
            energy = page.sum(PROCESS_ENERGY, pid="12", gpu=str(gpu))
            self.assertGreater(energy, 0)
            self.assertEqual(energy, page.sum(WORKLOAD_ENERGY, kind="slurm", id="8",
                                              meter_id=f"GPU-{gpu:08d}"))

    def test_the_only_process_of_a_gpu_has_all_of_its_energy_as_measured(self):
        page = self.pages[-1]
        self.assertEqual(page.value(METER_ENERGY, meter_id="GPU-00000002"),
                         page.value(PROCESS_ENERGY, pid="15", energy_estimated="false"))
        self.assertEqual(0, page.value(PROCESS_ENERGY, pid="15", energy_estimated="true"))

    def test_no_counter_goes_back_where_the_trace_begins_again(self):
        for before, after in zip(self.pages, self.pages[1:]):
            self.assert_counters_grow(before, after)

    def test_where_the_trace_begins_again_is_neither_a_gap_nor_a_reset(self):
        self.assertEqual(0, self.pages[-1].sum(UNOWNED_ENERGY, owner="gap"))
        self.assertEqual(0, self.pages[-1].sum("wattribute_source_resets_total"))


class Turnover(TestCase):
    def test_the_books_balance_while_processes_end_and_workloads_are_retired(self):
        # With start times, each round of the trace has new processes, and none is retained.
        trace = three_gpus(2, start_s=1)
        flags = ("--metric-retention=0s", "--process-scan-interval=1s")
        path = trace.write(self.path("loop.trace.gz"))
        with Exporter("--replay", path, *FAST, *flags) as exporter:
            pages = collect_pages(
                exporter, lambda page: page.sum(WORKLOAD_ENERGY, kind="retired") > 0)
        for page in pages:
            self.assert_balanced(page)
        for before, after in zip(pages, pages[1:]):
            for name in (METER_ENERGY, UNOWNED_ENERGY):
                for labels, value in before.values(name):
                    self.assertGreaterEqual(after.value(name, **labels), value)


if __name__ == "__main__":
    unittest.main()
