"""The built-in page in Chromium: what is seen, whatever the names are, while daemons come and go, and what it costs.

UPDATE_PICTURES=1 writes the pictures of docs/pictures, which takes some minutes.
"""
import gzip
import os
import re
import ssl
import struct
import time
import unittest

from certificates import Authority
from harness import H200_TRACE, SOURCE_ROOT, Exporter, TestCase, Trace, main, wait_until
from servers.browser import Browser
from servers.node_page import NodePage, document, history, workload
from test_web_config import LOOPBACK, PASSWORD, QUICK, SecureExporter

DRAWN = "document.body.dataset.drawn !== undefined"
NAMES = "#workload-table > tbody .title"
STATE = "document.getElementById('connection').dataset.state"
PHONE = {"viewport": {"width": 390, "height": 844}, "deviceScaleFactor": 2, "hasTouch": True, "isMobile": True}
DEMO = {"training-job", "llm-server-0", "old-experiment", "4711 plasma", "gpu-health.service", "bob"}

FRAME_MS = 50  # of script, at 1,000 workloads
HEAP_BYTES = 20 << 20


class PageTest(TestCase):
    browser = None  # one for all

    @classmethod
    def setUpClass(cls):
        if not PageTest.browser:
            PageTest.browser = Browser()
            unittest.addModuleCleanup(PageTest.browser.__exit__)

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def open(self, url, **options):
        """A page that shows something, and has nothing to complain about when the test ends."""
        page = self.enter(self.browser.open(url, **options))
        page.wait(DRAWN)
        return page

    def assert_clean(self, page):
        self.assertEqual([], page.problems())


def shown_names(page):
    return set(page.texts(NAMES))


class Demo(PageTest):
    """The real daemon, playing the trace of an H200."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = cls.enterClassContext(Exporter("--replay", H200_TRACE))
        cls.url = f"http://{cls.exporter.address}/"

    def test_the_page_shows_the_demo_with_its_names_and_moves(self):
        page = self.open(self.url)
        wait_until("all workloads of the demo", lambda: DEMO <= shown_names(page), 20)
        self.assertTrue(page.get("getComputedStyle(document.getElementById('replay')).display !== 'none'"))
        self.assertIn("balance", page.text("#balance"))
        self.assertEqual(1, page.get("document.querySelectorAll('#chart canvas').length"))
        self.assertIn("NVIDIA H200", page.text("#gpus h3"))
        first = page.text("#watts")
        wait_until("other watts", lambda: page.text("#watts") not in ("–", first), 20)
        self.assert_clean(page)

    def test_workloads_and_what_nobody_owns_are_what_the_meters_say(self):
        page = self.open(self.url)
        wait_until("energy", lambda: DEMO <= shown_names(page), 20)
        rows = page.get("[...document.querySelectorAll('#workload-table > :is(tbody, tfoot) > tr')].map((row) => "
                        "row.querySelector('td.of-energy').title)")
        joules = [float(row.split()[0].replace(",", "")) for row in rows]
        hidden = page.get("document.getElementById('more').hidden")
        self.assertTrue(hidden)
        self.assertAlmostEqual(sum(joules[:-1]), joules[-1], places=4)

    def test_the_page_survives_the_daemon_s_restart_and_says_that_it_was_away(self):
        exporter = self.enter(Exporter("--replay", H200_TRACE))
        address = exporter.address
        page = self.open(f"http://{address}/")
        wait_until("all workloads of the demo", lambda: DEMO <= shown_names(page), 20)
        exporter.stop()
        page.wait(f"{STATE} === 'lost'")
        self.assertIn("connection lost", page.text("#connection"))
        self.assertEqual("Connection lost", page.text("#announcements"))
        before = page.get("document.body.dataset.drawn")
        with Exporter("--replay", H200_TRACE, listen=(address,)):
            page.wait(f"['live', 'polling'].includes({STATE})", 30)
            page.wait(f"document.body.dataset.drawn !== '{before}'", 30)
            wait_until("all workloads of the demo", lambda: DEMO <= shown_names(page), 20)
        self.assertEqual([], [problem for problem in page.problems() if "ERR_" not in problem])

    def test_a_replay_has_nothing_to_check_and_says_so(self):
        page = self.open(self.url)
        page.click("#check > summary")
        page.wait("document.getElementById('check-state').textContent.includes('a replay has no sources')")

    def test_what_is_missing_on_the_node_is_told_with_what_helps_when_that_is_opened(self):
        exporter = self.enter(Exporter("--model.idle-watts=5", "--model.full-watts=50"))
        page = self.open(f"http://{exporter.address}/")
        self.assertFalse(page.get("getComputedStyle(document.getElementById('replay')).display !== 'none'"))
        self.assertEqual([], page.run("return page.requested.filter((url) => url.includes('api/v1/check'))"))
        page.click("#check > summary")
        page.wait("document.querySelectorAll('#check-list li').length > 3", 40)
        self.assertIn("rapl", page.texts("#check-list .name"))
        self.assertTrue(any(page.texts("#check-list li:has([data-state=missing]) .remedy")))
        self.assert_clean(page)

    def test_axe_finds_nothing_serious_in_light_and_dark_and_on_a_phone(self):
        for options in ({"colorScheme": "light"}, {"colorScheme": "dark"}, PHONE):
            page = self.open(self.url, **options)
            wait_until("all workloads of the demo", lambda: DEMO <= shown_names(page), 20)
            page.click(f"{NAMES} >> nth=0")
            page.click("#chart-data > summary")
            self.assertEqual([], page.run("return tools.audit(page)"), options)
            self.assert_clean(page)


class Files(TestCase):
    """What browsers keep of the page."""

    def test_each_file_that_the_page_names_comes_compressed_and_only_once(self):
        with Exporter("--replay", H200_TRACE) as exporter:
            index = exporter.ask("/").body.decode()
            paths = ["/" + path for path in re.findall(r'(?:href|src)="(page/[^"]+)"', index)]
            script = exporter.ask("/page/page.js").body.decode()
            paths += ["/page/" + name for name in re.findall(r"from '\./([\w.]+)'", script)]
            self.assertGreater(len(paths), 8)
            for path in paths:
                plain, packed = exporter.ask(path), exporter.ask(path, accept_encoding="gzip")
                self.assertEqual((200, 200), (plain.status, packed.status), path)
                self.assertEqual(plain.body, gzip.decompress(packed.body))
                self.assertNotEqual(plain.headers["ETag"], packed.headers["ETag"])
                again = exporter.ask(path, accept_encoding="gzip", if_none_match=packed.headers["ETag"])
                self.assertEqual((304, b"", packed.headers["ETag"]), (again.status, again.body, again.headers["ETag"]))


class Secure(PageTest):
    def test_the_page_is_shown_over_tls_to_who_has_the_password_also_where_it_is_in_the_address(self):
        Authority(self.directory).certify("server", *LOOPBACK, purpose="serverAuth")
        config = self.write("web.yml", b"tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
                            b"basic_auth_users: {alice: %b}\n" % QUICK.encode())
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        exporter = self.enter(SecureExporter("--replay", H200_TRACE, f"--web.config.file={config}", context=context))
        for address, options in ((exporter.address, {"httpCredentials": {"username": "alice", "password": PASSWORD}}),
                                 (f"alice:{PASSWORD}@{exporter.address}", {})):
            page = self.open(f"https://{address}/", ignoreHTTPSErrors=True, **options)
            page.wait(f"{STATE} === 'live'")
            wait_until("all workloads of the demo", lambda page=page: DEMO <= shown_names(page), 20)
            self.assert_clean(page)


class Names(PageTest):
    HOSTILE = ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', "</title><b>x", "&lt;b&gt;", "javascript:alert(1)",
               "{{version}}", "__proto__", "\u202eevil", "a" * 200]

    def test_hostile_names_are_text_also_those_that_the_daemon_found(self):
        trace = Trace()
        trace.gpu(0, name=b"<b>GPU</b>")
        names = [name for name in self.HOSTILE if "/" not in name and not name.startswith("_")]  # which systemd puts before names
        pids = list(range(100, 100 + len(names)))
        for pid, name in zip(pids, names):
            trace.process(0, 0, pid, name.encode(), b"/system.slice/" + name.encode() + b".service")
        trace.work(0, pids, seconds=30)
        exporter = self.enter(Exporter("--replay", trace.write(self.path("names.trace.gz")), "--sample-interval=100ms"))
        page = self.open(f"http://{exporter.address}/")
        wait_until("all names", lambda: {f"{name}.service" for name in names} <= shown_names(page), 20)
        page.run("for (const button of await page.$$('#workload-table > tbody > tr > th button')) await button.click()")
        self.assertIn("<img src=x onerror=alert(1)>", page.texts(".details tbody th"))
        self.assert_nothing_ran(page)

    def assert_nothing_ran(self, page):
        self.assertEqual(0, page.get("document.querySelectorAll('main img, main script, main b').length"))
        self.assert_clean(page)

    def test_hostile_text_in_any_field_of_the_document_is_text(self):
        evil = self.HOSTILE[0]
        doc = document([workload(i, 10.0 + i, name=name, id=name, namespace=name, container=name, kind=name,
                                 details={"image": name, name: name}, gpus=[{"gpu": name, "uuid": name, "source": name}])
                        for i, name in enumerate(self.HOSTILE)])
        doc.update(node=evil, version=evil, currency=evil)
        doc["gpus"][0].update(name=evil, uuid=evil, sharing=evil)
        doc["meters"].append({**doc["meters"][0], "meter": evil, "gpu": None})
        doc["sources"][0].update(name=evil)
        service = self.enter(NodePage(doc))
        service.check = {"summary": {"gpus": evil}, "findings": [{"what": evil, "verdict": evil, "detail": evil, "remedy": evil}]}
        page = self.open(service.url)
        page.click(f"{NAMES} >> nth=0")
        page.click("#check > summary")
        page.wait("document.querySelectorAll('#check-list li').length === 1")
        self.assertEqual(set(self.HOSTILE), shown_names(page))
        self.assertEqual(evil, page.text("#node-name"))
        self.assert_nothing_ran(page)


class Table(PageTest):
    def setUp(self):
        super().setUp()
        self.workloads = [workload(1, 10.0, name="alpha", energy_joules=9000.0), workload(2, 30.0, name="beta", energy_joules=100.0),
                          workload(3, 20.0, name="gamma", kind="slurm", details={"user": "carol"})]
        self.service = self.enter(NodePage(document(self.workloads)))

    def test_a_click_sorts_and_another_one_reverses(self):
        page = self.open(self.service.url)
        self.assertEqual(["beta", "gamma", "alpha"], page.texts(NAMES))
        page.click("th.of-name > button")
        self.assertEqual(["alpha", "beta", "gamma"], page.texts(NAMES))
        page.click("th.of-name > button")
        self.assertEqual(["gamma", "beta", "alpha"], page.texts(NAMES))
        page.click("th.of-energy > button")
        self.assertEqual(["gamma", "alpha", "beta"], page.texts(NAMES))
        self.assertEqual(["none", "none", "none", "descending"], page.get(
            "[...document.querySelectorAll('#workload-table > thead th')].slice(0, 4).map((th) => th.ariaSort)"))

    def test_the_filter_finds_names_kinds_and_users_and_says_how_many(self):
        page = self.open(self.service.url)
        for words, names in (("bet", ["beta"]), ("slurm", ["gamma"]), ("carol", ["gamma"]), ("ML", ["beta", "gamma", "alpha"]),
                             ("a ml", ["beta", "gamma", "alpha"]), ("nothing", [])):
            page.run("await page.fill('#filter', value)", words)
            self.assertEqual(names, page.texts(NAMES), words)
        self.assertEqual("0 of 3", page.text("#count"))
        self.assertEqual("0 workloads match", page.text("#announcements"))

    def test_a_row_opens_to_its_processes_and_closes_by_the_keyboard(self):
        page = self.open(self.service.url)
        page.run("await page.keyboard.press('/')")
        self.assertEqual("filter", page.get("document.activeElement.id"))
        page.run("while (await page.evaluate('document.activeElement.ariaExpanded') === null) await page.keyboard.press('Tab')")
        page.run("await page.keyboard.press('Enter')")
        self.assertEqual("true", page.get("document.activeElement.ariaExpanded"))
        self.assertEqual("beta", page.get("document.activeElement.textContent"))
        self.assertEqual(["python3"], page.texts(".details table:nth-of-type(2) tbody th"))
        self.service.show(document(self.workloads, generation=2))
        page.wait("document.body.dataset.drawn === '2'")
        self.assertEqual(1, page.get("document.querySelectorAll('.details').length"))
        page.run("await page.keyboard.press('Enter')")
        self.assertEqual(0, page.get("document.querySelectorAll('.details').length"))

    def test_a_column_without_figures_is_not_shown_and_what_is_unknown_is_no_zero(self):
        page = self.open(self.service.url)
        shown = "getComputedStyle(document.querySelector('th.of-cost')).display !== 'none'"
        self.assertFalse(page.get(shown))
        self.service.show({**document([{**self.workloads[0], "cost": 0.25}, *self.workloads[1:]], generation=2), "currency": "EUR"})
        page.wait("document.body.dataset.drawn === '2'")
        self.assertTrue(page.get(shown))
        self.assertEqual(["", "", "0.250 EUR"], page.texts("#workload-table > tbody > tr > td.of-cost"))

    def test_energy_of_workloads_that_are_not_exposed_has_a_row(self):
        doc = document([workload(i, 10.0) for i in range(3)])
        hidden = doc["workloads"].pop()
        page = self.open(self.enter(NodePage(doc)).url)
        row = "#workload-table > tfoot tr:has(th:has-text('Not exposed')) td.of-energy"
        self.assertEqual(hidden["energy_joules"], float(page.run("return page.getAttribute(value, 'title')", row).split()[0].replace(",", "")))

    def test_a_name_that_nobody_sees_is_replaced_by_the_id(self):
        names = ["\u00a0 ", "\ufeff", "\u2028", "\u200b", "", "a b"]
        page = self.open(self.enter(NodePage(document([workload(i, 10.0 - i, name=name) for i, name in enumerate(names)]))).url)
        self.assertEqual([f"id-{i:04}" for i in range(5)] + ["a b"], page.texts(NAMES))
        self.assertEqual([], page.run("return tools.audit(page)"))

    def test_the_books_that_do_not_balance_are_told_loudly(self):
        doc = document(self.workloads)
        doc["meters"][0]["imbalance_joules"] = 0.000001
        self.service.show(doc)
        page = self.open(self.service.url)
        self.assertEqual("wrong", page.get("document.getElementById('balance').className"))
        self.assertIn("0.000001 J", page.text("#balance"))

    def test_a_workload_keeps_its_colour_whoever_else_there_is(self):
        colour = "document.querySelector('#workload-table > tbody .swatch').dataset.style"
        pages = [self.open(self.service.url) for _ in range(2)]
        self.assertEqual(pages[0].get(colour), pages[1].get(colour))
        before = pages[0].get(colour)
        self.service.show(document([*self.workloads, *(workload(i, 5.0) for i in range(10, 30))], generation=2))
        pages[0].wait("document.body.dataset.drawn === '2'")
        self.assertEqual(before, pages[0].get(colour))


class Connection(PageTest):
    def test_where_there_are_no_events_the_page_polls(self):
        service = self.enter(NodePage(document([workload(1, 10.0)]), has_events=False))
        page = self.open(service.url)
        page.wait(f"{STATE} === 'polling'")
        service.show(document([workload(1, 20.0)], generation=2))
        page.wait("document.body.dataset.drawn === '2'")

    def test_below_the_path_of_a_proxy_every_address_is_relative(self):
        service = self.enter(NodePage(document([workload(1, 10.0)]), prefix="/nodes/a"))
        page = self.open(service.url)
        page.wait(f"{STATE} === 'live'")
        self.assertTrue(all(request.startswith("/nodes/a/") or not request.startswith("/nodes") for request in service.requests))
        self.assertEqual([], page.run("return page.requested.filter((url) => !url.startsWith('data:') && !url.includes('/nodes/a/'))"))
        self.assertEqual(["metrics", "api/v1/node", "-/healthy", "-/ready"], page.get(
            "[...document.querySelectorAll('footer nav a')].map(({ href }) => href.split('/nodes/a/')[1])"))
        self.assert_clean(page)

    def test_nothing_is_asked_or_drawn_while_the_page_is_hidden(self):
        service = self.enter(NodePage(document([workload(1, 10.0)])))
        page = self.open(service.url)
        page.wait(f"{STATE} === 'live'")
        hide = ("Object.defineProperty(document, 'hidden', { value: %s, configurable: true }); "
                "document.dispatchEvent(new Event('visibilitychange'))")
        page.run("await page.evaluate(value)", hide % "true")
        self.assertEqual("paused", page.get(STATE))
        asked = len(service.requests)
        service.show(document([workload(1, 20.0)], generation=2))
        time.sleep(1)
        self.assertEqual("1", page.get("document.body.dataset.drawn"))
        self.assertEqual(asked, len(service.requests))
        page.run("await page.evaluate(value)", hide % "false")
        page.wait("document.body.dataset.drawn === '2'")

    def test_another_version_of_the_daemon_is_told(self):
        service = self.enter(NodePage({**document([workload(1, 10.0)]), "version": "9.9"}))
        page = self.open(service.url)
        self.assertIn("wattribute 9.9 runs now", page.text("#upgraded"))


class Chart(PageTest):
    def test_the_chart_s_table_has_the_hour_that_the_daemon_remembers(self):
        doc = document([workload(i, 10.0 * i) for i in range(1, 20)])
        service = self.enter(NodePage(doc, past=history(doc)))
        page = self.open(service.url)
        page.click("#chart-data > summary")
        page.wait("document.querySelectorAll('#chart-data tbody tr').length === 14")  # 12 workloads, others, idle
        rows = page.get("Object.fromEntries([...document.querySelectorAll('#chart-data tbody tr')].map((row) => "
                        "[row.cells[0].textContent, row.cells[2].textContent]))")
        self.assertEqual("70.0 W", rows["Idle"])
        self.assertAlmostEqual(190, float(rows["trainer-0019"].split()[0]), delta=15)
        self.assert_clean(page)
        self.assertIn("Power by workload, stacked, 59 min", page.get("document.getElementById('chart').ariaLabel"))

    def test_the_chart_covers_the_time_that_was_chosen(self):
        doc = document([workload(1, 10.0)])
        service = self.enter(NodePage(doc, past=history(doc)))
        page = self.open(service.url)
        page.wait("document.getElementById('chart').ariaLabel.includes('59 min')")
        page.run("await page.check('#window input[value=\"300\"]', { force: true })")
        page.wait("/, [45] min/.test(document.getElementById('chart').ariaLabel)")


    def test_without_a_history_the_chart_begins_now(self):
        service = self.enter(NodePage(document([workload(1, 10.0)], now=1001.0), past=None))
        page = self.open(service.url)
        for generation in range(2, 5):
            service.show(document([workload(1, 10.0)], generation, now=1000.0 + generation))
            page.wait(f"document.body.dataset.drawn === '{generation}'")
        self.assertIn("stacked, 3.0 s.", page.get("document.getElementById('chart').ariaLabel"))


    def table(self, page):
        """The chart as a table: what is drawn now, by owner."""
        if not page.get("document.getElementById('chart-data').open"):
            page.click("#chart-data > summary")
            page.wait("document.querySelector('#chart-data tbody tr') !== null")
        return page.get("Object.fromEntries([...document.querySelectorAll('#chart-data tbody tr')].map((row) => "
                        "[row.cells[0].textContent, row.cells[1].textContent]))")

    def show(self, service, page, doc):
        service.show(doc)
        page.wait(f"document.body.dataset.drawn === '{doc['generation']}'")

    def test_who_draws_most_now_takes_the_layers_of_those_that_ended(self):
        old = [workload(i, 50.0) for i in range(1, 13)]
        service = self.enter(NodePage(document(old, now=1000.0)))
        page = self.open(service.url)
        ended = [{**each, "watts": 0} for each in old]
        new = [workload(i, 60.0) for i in range(21, 24)]
        for step in range(2, 5):
            self.show(service, page, document(ended + new, step, now=1000.0 + step))
        table = self.table(page)
        self.assertEqual({"trainer-0021": "60.0 W", "trainer-0022": "60.0 W", "trainer-0023": "60.0 W"},
                         {name: watts for name, watts in table.items() if name in ("trainer-0021", "trainer-0022", "trainer-0023")})
        self.assertEqual("0.0 W", table["Other workloads"])  # what the three before them drew
        self.assert_clean(page)

    def test_a_meter_that_is_lost_holds_up_nobody_s_layers(self):
        def with_lost(number, lost):
            doc = document([workload(1, 100.0 + number)], number, now=1000.0 + number)
            doc["meters"][0]["settled_time"] = doc["time"] - 1
            doc["meters"].append({**doc["meters"][0], "meter_id": "GPU-1", "gpu": 1, "watts": 0, "settled_time": 1000.0})
            if lost:
                del doc["meters"][1]["measured_watts"]
            return doc
        service = self.enter(NodePage(with_lost(1, False)))
        page = self.open(service.url)
        for number in range(2, 30):
            service.show(with_lost(number, number > 5))
        page.wait("document.body.dataset.drawn === '29'")
        self.assertEqual("129.0 W", self.table(page)["trainer-0001"])

    def test_a_clock_that_is_set_back_does_not_stop_the_chart(self):
        service = self.enter(NodePage(document([workload(1, 10.0)], now=5000.0)))
        page = self.open(service.url)
        for number in range(2, 5):
            self.show(service, page, document([workload(1, 10.0 * number)], number, now=4000.0 + number))
        self.assertEqual("40.0 W", self.table(page)["trainer-0001"])


class Size(PageTest):
    def test_no_phone_has_to_be_scrolled_sideways(self):
        doc = document([workload(i, 10.0, name="a-very-long-name-of-a-training-job-" * 3 + str(i), cost=1.0, cpu_seconds=5.0) for i in range(5)])
        service = self.enter(NodePage({**doc, "currency": "EUR", "node": "node-" * 30}, past=history(doc)))
        for width in (320, 390):
            page = self.open(service.url, **{**PHONE, "viewport": {"width": width, "height": 700}})
            page.click(f"{NAMES} >> nth=0")
            page.click("#chart-data > summary")
            self.assertEqual(width, page.get("document.documentElement.scrollWidth"))

    def metric(self, page, name):
        return page.run("return (await page.session.send('Performance.getMetrics')).metrics.find(({ name }) => name === value).value", name)

    def test_a_thousand_workloads_are_drawn_within_the_limits_of_time_and_memory(self):
        def busy(generation):
            return document([workload(i, 1.0 + (i * 7 + generation * 13) % 50, details={"user": "carol", "image": f"trainer:{i}"})
                             for i in range(1000)], generation)
        service = self.enter(NodePage(busy(1), past=history(busy(1))))
        page = self.open(service.url)
        self.assertEqual(100, len(page.texts(NAMES)))
        page.run("""page.session = await page.context().newCDPSession(page);
            await page.session.send('Performance.enable', { timeDomain: 'threadTicks' })""")
        script_s = []  # of the processor's time, since the beginning
        for generation in range(2, 22):
            script_s.append(self.metric(page, "ScriptDuration"))
            service.show(busy(generation))
            page.wait(f"document.body.dataset.drawn === '{generation}'")
        script_s.append(self.metric(page, "ScriptDuration"))
        frames_ms = sorted((after - before) * 1000 for before, after in zip(script_s, script_s[1:]))
        page.run("await page.session.send('HeapProfiler.collectGarbage')")
        heap = self.metric(page, "JSHeapUsedSize")
        print(f"1,000 workloads: a frame takes {frames_ms[10]:.1f} ms of script (at most {frames_ms[-1]:.1f}), "
              f"the heap is {heap / 2**20:.1f} MiB")
        self.assertLess(frames_ms[10], FRAME_MS)
        self.assertLess(heap, HEAP_BYTES)
        page.click("#more button")
        self.assertEqual(200, len(page.texts(NAMES)))
        self.assert_clean(page)


class Pictures(PageTest):
    """Of the docs: of the demo on a node of another name, after three minutes."""

    DIRECTORY = os.path.join(SOURCE_ROOT, "docs", "pictures")
    TRACE_S = 180
    WIDE = {"viewport": {"width": 1160, "height": 1130}, "deviceScaleFactor": 1.5}
    OPTIONS = {"page-light": {**WIDE, "colorScheme": "light"}, "page-dark": {**WIDE, "colorScheme": "dark"},
               "page-phone": {**PHONE, "colorScheme": "dark"}}

    def size_of(self, path):
        with open(path, "rb") as file:
            head = file.read(24)
        self.assertEqual(b"\x89PNG\r\n\x1a\n", head[:8])
        return struct.unpack(">II", head[16:])

    def test_the_pictures_of_the_docs_are_of_the_page_s_size(self):
        is_update = os.environ.get("UPDATE_PICTURES") == "1"
        exporter = self.enter(Exporter("--replay", H200_TRACE, "--attribution-delay=5s", "--cost.price=0.28", "--cost.currency=EUR",
                                       "--emissions.zone=FR", env={"NODE_NAME": "gpu-07"}, settles_at_once=False))
        time.sleep(self.TRACE_S if is_update else 0)
        for name, options in self.OPTIONS.items():
            page = self.open(f"http://{exporter.address}/", **options)
            page.wait("document.querySelectorAll('#legend li').length > 2")
            path = os.path.join(self.DIRECTORY if is_update else self.directory, f"{name}.png")
            page.picture(path)
            self.assertEqual(self.size_of(path), self.size_of(os.path.join(self.DIRECTORY, f"{name}.png")), name)
            self.assert_clean(page)


if __name__ == "__main__":
    main()
