"""What energy costs by a tariff: the price of the clock on the wall, or no start."""
import json
import os
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from harness import HARDWARE_ENERGY, Exporter, METER_ENERGY, SOURCE_ROOT, TestCase, Trace, main, run, wait_until

COST = "wattribute_meter_cost_total"
PRICE = "wattribute_price_per_kwh"
CHANGED = "the tariff has changed and is used from now on"
UNUSABLE = "the tariff has changed and cannot be used; keeping the previous one"


class Tariff(TestCase):
    def refuse(self, path, *words, env=None):
        result = run("serve", f"--cost.tariff-file={path}", "--listen-address=127.0.0.1:0", env=env)
        self.assertEqual(2, result.returncode, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr.decode())

    def replay(self, seconds=5):
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [17, 18], seconds)
        return f"--replay={trace.write(self.path('work.trace'))}"

    def assert_costs(self, page, price, pue=1):
        """Each meter is rounded to a billionth of the currency."""
        self.assertEqual(price, page.value(PRICE, currency="EUR"))
        for meter in self.meters(page):
            cost = page.value(COST, meter_id=meter, currency="EUR")
            self.assertLessEqual(
                abs(page.value(METER_ENERGY, meter_id=meter) * price * pue / 3600000 - cost), Decimal("0.5e-9"))
            self.assert_cost_conserved(page, meter)

    def assert_cost_conserved(self, page, meter):
        """Whatever the price."""
        rows = [value for kind in ("workload", "unowned")
                for _, value in page.values(f"wattribute_{kind}_cost_total", meter_id=meter)]
        self.assertLessEqual(abs(sum(rows) - page.value(COST, meter_id=meter, currency="EUR")),
                             (len(rows) + 1) * Decimal("0.5e-9"))

    def wait_for_energy(self, exporter):
        return exporter.wait_for_page("energy is booked", lambda page: page.sum(METER_ENERGY) > 0)

    def test_the_period_that_holds_now_is_billed_and_shown(self):
        # Two that never hold at once, together all day: no test waits for an hour to come.
        path = self.write("tariff.yaml", b"currency: EUR\ntimezone: Europe/Paris\nprice: 9\nperiods:\n"
                          b"  - {price: 0.2516, days: mon-sun, months: jan-dec, from: '07:00', to: '23:00'}\n"
                          b"  - {price: 0.2516, from: '23:00', to: '07:00'}\n")
        with Exporter(self.replay(), f"--cost.tariff-file={path}", "--pue=1.25") as exporter:
            self.assert_costs(self.wait_for_energy(exporter), Decimal("0.2516"), Decimal("1.25"))
            said = exporter.log("a tariff sets the price of energy")
            self.assertEqual([path], [line["file"] for line in said])
            self.assertRegex(said[0]["price"], r"^0\.251600 EUR per kWh at \S+\+0[12]00$")

    def test_the_example_of_the_manual_is_a_tariff(self):
        with open(os.path.join(SOURCE_ROOT, "docs", "emissions.md")) as file:
            example, = re.findall(r"```yaml\n(currency: .*?)```", file.read(), re.DOTALL)
        path = self.write("tariff.yaml", example.encode())
        with Exporter(self.replay(), f"--cost.tariff-file={path}") as exporter:
            page = self.wait_for_energy(exporter)
            self.assertIn(page.value(PRICE, currency="EUR"), (Decimal("0.1828"), Decimal("0.2516")))

    def test_a_price_that_never_changes_needs_no_file(self):
        with Exporter(self.replay(), "--cost.price=0.3", "--cost.currency=EUR") as exporter:
            self.assert_costs(self.wait_for_energy(exporter), Decimal("0.3"))

    def test_without_a_price_there_is_no_cost(self):
        with Exporter(self.replay()) as exporter:
            page = self.wait_for_energy(exporter)
            self.assertEqual([], page.values(PRICE))
            self.assertEqual([], page.values(COST))

    def test_a_file_that_is_wrong_is_refused_with_its_place(self):
        path = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\nperiods:\n  - price: -0.05\n")
        self.refuse(path, f"{path}:4:12: price: '-0.05' is negative", "use 0 or more")
        path = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\nperiods:\n  - {price: 1, days: weekend}\n")
        self.refuse(path, f"{path}:4:22: days: 'weekend'", "sat,sun")
        self.refuse(self.path("missing.yaml"), self.path("missing.yaml"), "No such file", "check the path")

    def replace(self, text):
        """By a rename, as editors and kubelets do."""
        os.rename(self.write("new.yaml", text), self.path("tariff.yaml"))

    def watch(self, exporter, pages, what, condition, seconds=20):
        """Every page on the way is sound, and none of its counters is less than before."""
        def find():
            page = exporter.page()
            self.assert_balanced(page)
            for meter in self.meters(page):
                self.assert_cost_conserved(page, meter)
            if pages:
                self.assert_counters_grow(pages[-1], page)
            pages.append(page)
            return condition(page)
        wait_until(what, find, seconds)
        return pages[-1]

    def test_a_file_that_changes_is_the_price_from_then_on(self):
        path, pages = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\n"), []
        with Exporter(self.replay(60), f"--cost.tariff-file={path}") as exporter:
            self.watch(exporter, pages, "some joules", lambda page: page.sum(METER_ENERGY) > 70)
            self.replace(b"currency: EUR\nprice: 0.05\n")
            first = self.watch(exporter, pages, "the new price", lambda page: page.value(PRICE) == Decimal("0.05"))
            for page in pages[:-1]:
                self.assert_costs(page, Decimal("0.2"))
            said, = exporter.log(CHANGED)
            self.assertEqual(path, said["file"])
            self.assertTrue(said["price"].startswith("0.050000 EUR per kWh at "), said)
            # All that was read by now, settled or not, may have the old price. What follows has the new one.
            read_j = first.value(HARDWARE_ENERGY) - 5000
            begin = self.watch(exporter, pages, "that is settled", lambda page: page.value(METER_ENERGY) > read_j)
            end = self.watch(exporter, pages, "some more joules", lambda page: page.value(METER_ENERGY) > read_j + 140)
            joules = end.value(METER_ENERGY) - begin.value(METER_ENERGY)
            self.assertLessEqual(abs(end.value(COST) - begin.value(COST) - joules * Decimal("0.05") / 3600000),
                                 Decimal("1e-9"))

    def test_a_change_that_cannot_be_used_is_said_once_and_the_tariff_before_stays(self):
        path = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\n")
        exporter = Exporter(self.replay(60), f"--cost.tariff-file={path}")
        exporter.check_log = lambda: None  # it must have errors in this test
        with exporter:
            self.replace(b"currency: USD\nprice: 0.1\n")
            self.assertIn("from EUR to USD while the exporter runs; restart it",
                          exporter.wait_for_log(UNUSABLE, 15)["error"])
            os.unlink(path)
            wait_until("that it is gone is said", lambda: len(exporter.log(UNUSABLE)) == 2, 15)
            self.assertIn("No such file", exporter.log(UNUSABLE)[1]["error"])
            self.assert_costs(self.wait_for_energy(exporter), Decimal("0.2"))
            self.replace(b"currency: EUR\nprice: 0.3\n")
            exporter.wait_for_page("the new price", lambda page: page.value(PRICE) == Decimal("0.3"))
            self.assertEqual((2, 1), (len(exporter.log(UNUSABLE)), len(exporter.log(CHANGED))))

    def check(self, path, status=0):
        result = run("check", "--json", f"--path.sysfs={self.directory}", f"--path.rootfs={self.directory}",
                     "--model.idle-watts=1", "--model.full-watts=2", f"--cost.tariff-file={path}")
        self.assertEqual(status, result.returncode, result.stderr)
        return [finding for finding in json.loads(result.stdout)["findings"] if finding["what"] == "tariff"]

    def test_check_tells_the_price_of_now(self):
        path = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\ntimezone: Europe/Paris\n")
        good, = self.check(path)
        self.assertEqual("ok", good["verdict"])
        self.assertRegex(good["detail"], r"^0\.200000 EUR per kWh at \S+\+0[12]00$")
        wrong, = self.check(self.path("missing.yaml"), status=2)
        self.assertEqual("failed", wrong["verdict"])
        self.assertIn("No such file", wrong["detail"])
        self.assertIn("--cost.tariff-file", wrong["remedy"])

    def test_a_machine_without_time_zones_is_told_what_to_do(self):
        nothing = {"TZDIR": self.directory}
        named = self.write("named.yaml", b"currency: EUR\nprice: 0.2\ntimezone: Europe/Paris\n")
        local = self.write("local.yaml", b"currency: EUR\nprice: 0.2\n")
        self.refuse(named, named, "Europe/Paris", "install tzdata", '"+01:00"', env=nothing)
        self.refuse(local, "TZ", "Europe/Paris", "install tzdata", env={**nothing, "TZ": "Europe/Paris"})
        path = self.write("offset.yaml", b"currency: EUR\nprice: 0.2\ntimezone: \"+05:30\"\n")
        with Exporter(self.replay(), f"--cost.tariff-file={path}", env=nothing) as exporter:
            said = exporter.wait_for_log("a tariff sets the price of energy")
            self.assertTrue(said["price"].endswith("+0530"), said)

    def test_log_lines_stay_in_utc(self):
        path = self.write("tariff.yaml", b"currency: EUR\nprice: 0.2\ntimezone: \"+14:00\"\n")
        with Exporter(self.replay(), f"--cost.tariff-file={path}") as exporter:
            now = datetime.now(timezone.utc)
            said = exporter.log("a tariff sets the price of energy")[0]
            logged = datetime.fromisoformat(said["ts"].replace("Z", "+00:00"))
            self.assertLess(abs(now - logged), timedelta(minutes=5))
            local = datetime.strptime(said["price"].split()[-1], "%Y-%m-%dT%H:%M:%S%z")
            self.assertEqual(timedelta(hours=14), local.utcoffset())
            self.assertLess(abs(now - local), timedelta(minutes=5))


if __name__ == "__main__":
    main()
