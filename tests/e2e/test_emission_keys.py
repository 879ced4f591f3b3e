"""Keys that are changed while the exporter runs, as a Secret of a pod is: another asker uses them, and nothing else
begins anew."""
import os
import signal
from decimal import Decimal

import harness
from emissions_harness import DOWN, FACTOR, IN_FORCE, NO_PROXY, EmissionsTestCase, set_up_site
from harness import METER_ENERGY, Exporter, Trace, wait_until
from servers.emissions import ElectricityMaps

CHANGED = "the secrets of a fetcher have changed and are used from now on"
UNUSABLE = "the secrets of a fetcher have changed and cannot be used; keeping the previous ones"
DIED = "a fetcher ended and is started again"
RIGHT, WRONG = f"electricity_maps: '{ElectricityMaps.TOKEN}'\n", "electricity_maps: 'one of yesterday'\n"
OTHER = "electricity_maps: 'another one'\n"


def setUpModule():
    set_up_site()


class EmissionKeys(EmissionsTestCase):
    def setUp(self):
        super().setUp()
        self.versions = 0
        self.service = self.start(ElectricityMaps, "41.5")

    def put(self, text, mode=0o400):
        """As a kubelet does: the file is a link through one that is swapped. Returns its path."""
        self.versions += 1
        os.mkdir(self.path(f"..{self.versions}"))
        os.chmod(self.write(f"..{self.versions}/keys.yaml", text.encode()), mode)
        os.symlink(f"..{self.versions}", self.path("..new"))
        os.rename(self.path("..new"), self.path("..data"))
        if self.versions == 1:
            os.symlink("..data/keys.yaml", self.path("keys.yaml"))
        return self.path("keys.yaml")

    def exporter_with(self, keys):
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [17, 18], 60)
        return Exporter(f"--replay={trace.write(self.path('work.trace.gz'))}",
                        "--emissions.providers=electricity_maps:FR", "--emissions.interval=1s",
                        f"--emissions.url=electricity_maps={self.service.url}",
                        f"--emissions.ca-file={self.site.authority.crt}", f"--emissions.keys-file={keys}", env=NO_PROXY)

    def wait_for_value(self, exporter):
        """It is shown, and in force."""
        return exporter.wait_for_page("what it says", lambda page: [self.service.value] == [
            value for labels, value in page.values(FACTOR, **self.service.labels)
            if page.value(IN_FORCE, **labels) == 1], 20)

    def test_a_key_that_was_refused_is_replaced_and_nothing_else_begins_anew(self):
        with self.exporter_with(self.put(WRONG)) as exporter:
            self.assertIn("status 401", exporter.wait_for_log(DOWN)["error"])
            before = exporter.wait_for_page("some joules", lambda page: page.sum(METER_ENERGY) > 70)
            self.assertEqual(1, before.value(IN_FORCE, provider="owid"))
            pid, front, asker = exporter.pid, exporter.server(), exporter.child("fetcher")
            path = self.put(RIGHT)
            after = self.wait_for_value(exporter)
            self.assert_counters_grow(before, after)
            self.assertGreater(after.sum(METER_ENERGY), before.sum(METER_ENERGY))
            self.assertEqual((pid, front), (exporter.pid, exporter.server()))
            self.assertNotIn(exporter.child("fetcher"), (None, asker))
            self.assertEqual([path], [line["file"] for line in exporter.log(CHANGED)])
            self.assertEqual([], exporter.log(DIED))
            self.assert_no_secret(exporter)
            self.assertNotIn("one of yesterday", exporter.log_text())

    def test_one_that_cannot_be_used_is_said_once_and_those_before_stay(self):
        exporter = self.exporter_with(self.put(RIGHT))
        exporter.check_log = lambda: None  # it must have errors in this test
        with exporter:
            self.wait_for_value(exporter)
            asker = exporter.child("fetcher")
            self.put(RIGHT, 0o644)
            self.assertIn("chmod 600", exporter.wait_for_log(UNUSABLE, 15)["error"])
            os.unlink(self.path("..data"))
            wait_until("that it is gone is said", lambda: len(exporter.log(UNUSABLE)) == 2, 15)
            self.assertIn("No such file", exporter.log(UNUSABLE)[1]["error"])
            self.assertEqual(asker, exporter.child("fetcher"))
            os.kill(asker, signal.SIGKILL)
            self.service.value += Decimal(7)
            self.wait_for_value(exporter)  # of the next one, which has them too
            asker = exporter.child("fetcher")
            self.service.is_allowed = lambda request: True
            self.put(OTHER)
            exporter.wait_for_log(CHANGED, 15)
            wait_until("another asker", lambda: exporter.child("fetcher") not in (None, asker))
            self.service.value += Decimal(7)
            self.wait_for_value(exporter)
            self.assertEqual((2, 1), (len(exporter.log(UNUSABLE)), len(exporter.log(DIED))))
            self.assert_no_secret(exporter)

    def test_the_same_keys_in_another_file_are_no_news(self):
        with self.exporter_with(self.put(RIGHT)) as exporter:
            self.wait_for_value(exporter)
            asker = exporter.child("fetcher")
            self.put("# of today\n" + RIGHT, 0o600)
            before = len(self.service.requests)
            # It is looked at every five seconds, and asked every second.
            wait_until("it is asked for longer", lambda: len(self.service.requests) > before + 8, 30)
            self.assertEqual(asker, exporter.child("fetcher"))
            self.assertEqual([], exporter.log(CHANGED))


if __name__ == "__main__":
    harness.main()
