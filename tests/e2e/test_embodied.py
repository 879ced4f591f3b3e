"""Embodied carbon: a meter's grams are its rate times the time that was settled, and are divided as the joules are."""
from decimal import Decimal

import harness
from harness import METER_ENERGY, UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, Trace

METER, UNOWNED, WORKLOAD = (f"wattribute_{whose}_embodied_grams_total" for whose in ("meter", "unowned", "workload"))
WATTS = 70
GRAMS_PER_S = Decimal(10)  # 36 kg an hour: a microsecond is 10 ug
WINDOWS = 60  # more than a page of this test has seen
ROUNDING = Decimal("0.5e-9")


def steady_trace():
    """Exactly WATTS, so that joules tell the time; of two processes the first wins three of four samples."""
    trace = Trace()
    trace.gpu(0)
    for tick in range(600):
        t = tick / 10
        trace.energy(t, 0, WATTS * 100 * tick)
        trace.utilisation(t, 0, 99)
        if tick % 5 == 0:
            trace.listed(t, 0, 11, 12)
        trace.sample(t, 0, 12 if tick % 4 == 3 else 11)
    return trace


class Embodied(TestCase):
    def exporter(self, *flags):
        replay = steady_trace().write(self.path("steady.trace.gz"))
        return Exporter(f"--replay={replay}", "--attribution=timeshare", *flags)

    def page(self, exporter, joules=300):
        return exporter.wait_for_page("some seconds were settled", lambda page: page.sum(METER_ENERGY) > joules)

    def test_a_meters_grams_are_its_rate_times_its_time(self):
        with self.exporter("--emissions.embodied=gpu=36000", "--pue=2") as exporter:
            for joules in (300, 500):
                page = self.page(exporter, joules)
                grams = page.sum(METER)
                self.assertLessEqual(abs(page.sum(METER_ENERGY) / WATTS * GRAMS_PER_S - grams), ROUNDING)
                rows = page.values(WORKLOAD) + page.values(UNOWNED)
                self.assertLessEqual(abs(sum(value for _, value in rows) - grams), (len(rows) + 1) * ROUNDING)

    def test_who_pays_for_joules_pays_for_the_time(self):
        with self.exporter("--emissions.embodied=gpu=36000") as exporter:
            page = self.page(exporter)
            owned = {labels["id"]: value for labels, value in page.values(WORKLOAD)}
            self.assertEqual(2, len(owned))
            self.assertEqual(4, len(page.values(UNOWNED)))
            for ident, grams in owned.items():
                due = page.sum(WORKLOAD_ENERGY, id=ident) / WATTS * GRAMS_PER_S
                self.assertGreater(grams, 0)
                self.assertLess(abs(grams - due), WINDOWS * GRAMS_PER_S / 10**6)
            for labels, grams in page.values(UNOWNED):
                due = page.sum(UNOWNED_ENERGY, owner=labels["owner"]) / WATTS * GRAMS_PER_S
                self.assertLess(abs(grams - due), WINDOWS * GRAMS_PER_S / 10**6)

    def test_without_a_rate_nothing_is_shown(self):
        for flags in ((), ("--emissions.embodied=rest=1",), ("--emissions.embodied=gpu=1", "--emissions-enabled=false")):
            with self.subTest(flags), self.exporter(*flags) as exporter:
                self.assertEqual([], [name for name in self.page(exporter, 0).families if "embodied" in name])


if __name__ == "__main__":
    harness.main()
