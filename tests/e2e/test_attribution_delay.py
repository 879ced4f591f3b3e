"""Energy of a shared GPU waits until more is known of who drew what: pending meanwhile, and never lost."""
import time

import harness
from harness import HARDWARE_ENERGY, METER_ENERGY, Exporter, TestCase, Trace

PENDING = "wattribute_energy_pending_joules"
BEGIN_MJ, WATTS = 5_000_000, 70
WATCHED_S = 66
# The open window, the second in which late samples come, and that ticks of the trace use a little more than WATTS.
SLACK_S = 4
BETWEEN_SCRAPES_S = 0.5


class Watch:
    """The pages of one exporter. Energy is in seconds of the board at WATTS."""

    def __init__(self, test, *flags):
        self.test, self.page, self.seen = test, None, []
        self.exporter = Exporter(*flags, settles_at_once=False)

    def scrape(self):
        """Adds what the board has counted, and how much of that is pending and settled. Each page must be sound."""
        page = self.exporter.page()
        counted = page.value(HARDWARE_ENERGY) - BEGIN_MJ // 1000
        pending, settled = page.value(PENDING), page.value(METER_ENERGY)
        self.test.assertEqual(counted, pending + settled)
        self.test.assert_balanced(page)
        if self.page:
            self.test.assert_counters_grow(self.page, page)
        self.page = page
        self.seen.append([float(joules) / WATTS for joules in (counted, pending, settled)])
        return self.seen[-1][0]


class Delay(TestCase):
    def watch(self, *flags):
        watch = Watch(self, *flags)
        watch.exporter.__enter__()
        self.addCleanup(watch.exporter.__exit__, None, None, None)
        return watch

    def test_shared_energy_is_pending_until_its_delay_is_over_and_no_longer(self):
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [11, 12], seconds=WATCHED_S + 20, counter_mj=BEGIN_MJ, watts=WATTS)
        replay = f"--replay={trace.write(self.path('shared.trace.gz'))}"
        watches = {60: self.watch(replay), 10: self.watch(replay, "--attribution-delay=10s"),
                   0: self.watch(replay, "--attribution=timeshare")}
        while min([watch.scrape() for watch in watches.values()]) < WATCHED_S:
            time.sleep(BETWEEN_SCRAPES_S)
        for delay, watch in watches.items():
            with self.subTest(delay=delay):
                self.assertLess(max(pending for _, pending, _ in watch.seen), delay + SLACK_S)
                self.assertGreater(watch.seen[-1][2], 0)
        # It does wait: of the first half of its delay nothing is booked.
        for delay in (60, 10):
            self.assertGreater(max(counted for counted, _, settled in watches[delay].seen if settled == 0), delay / 2)


if __name__ == "__main__":
    harness.main()
