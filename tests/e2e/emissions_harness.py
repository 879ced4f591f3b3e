"""What the tests of emission factors share: a site of certificates and keys, services that are asked as their providers
want it, and what pages show of them."""
import contextlib
import os
import tempfile
import time
import unittest
from decimal import Decimal

import harness
from certificates import Authority
from harness import METER_ENERGY, METER_GRAMS, Exporter, Trace, arguments_of, environment_of, wait_until
from servers.emissions import PROVIDERS, ElectricityMaps, Entsoe, WattTime

FACTOR, IN_FORCE, STALE, ESTIMATED, AGE = (f"wattribute_emission_factor_{name}" for name in (
    "grams_per_kwh", "in_force", "stale", "estimated", "age_seconds"))
UP, ERRORS = "wattribute_emission_provider_up", "wattribute_emission_provider_errors_total"
DOWN = "a provider of emission factors fails"

SECRETS = tuple(secret for provider in PROVIDERS for secret in provider.secrets)
KEYS = {"electricity_maps": ElectricityMaps.TOKEN, "entsoe": Entsoe.TOKEN,
        "watttime_username": WattTime.USER, "watttime_password": WattTime.PASSWORD}
# What the machine has of these is not what is tested.
NO_PROXY = dict.fromkeys(("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"), "")

FIRST_J = 5000  # of a trace: what the counter begins with
NANOGRAM = Decimal("1e-9")
JOULES_PER_KWH = 3600000


def write_keys(path, mode=0o600):
    with open(path, "w") as file:
        file.writelines(f"{name}: '{value}'\n" for name, value in KEYS.items())
    os.chmod(path, mode)
    return path


class Site:
    """What the tests of a module share: an authority, certificates, keys, and what its setUpModule() leaves to the stack."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-site-"))
        self.path = lambda name: os.path.join(directory, name)
        os.chmod(directory, 0o755)  # who asks is nobody
        self.authority = Authority(directory)
        self.certificate = self.authority.certify("server", "IP:127.0.0.1")
        self.named = self.authority.certify("named", *(f"DNS:{each.host}" for each in PROVIDERS))
        self.keys = write_keys(self.path("keys.yaml"))

    def flags(self, *services, keys=True):
        return (f"--emissions.providers={','.join(f'{each.name}:{each.zone}' for each in services)}",
                f"--emissions.ca-file={self.authority.crt}", "--emissions.interval=1s",
                *([f"--emissions.keys-file={self.keys}"] if keys else []),
                *(f"--emissions.url={each.name}={each.url}" for each in services))


def set_up_site():
    """For setUpModule()."""
    site = EmissionsTestCase.site = Site()
    unittest.addModuleCleanup(site.stack.close)
    return site


class EmissionsTestCase(harness.TestCase):
    site = None

    def start(self, provider, *arguments, certificate=None, **options):
        """A question that it does not know fails the test."""
        service = provider(certificate or self.site.certificate, *arguments, **options)
        self.addCleanup(lambda: self.assertEqual([], service.complaints, service.name))
        self.addCleanup(service.__exit__)
        return service

    def start_all(self):
        values = ("23.5", "41", "912.4", "181", "50.5")
        return [self.start(provider, value) for provider, value in zip(PROVIDERS, values)]

    def exporter(self, *services, more=(), keys=True, env=None):
        return Exporter(*self.site.flags(*services, keys=keys), *more, env={**NO_PROXY, **(env or {})})

    # --- pages ---

    def says(self, page, service):
        """It has answered, and what it says now is shown."""
        return (page.value(UP, provider=service.name) == 1 and
                [service.grams] == [value for _, value in page.values(FACTOR, **service.labels)])

    def wait_for(self, exporter, *services, seconds=15):
        return exporter.wait_for_page(f"what {[each.name for each in services]} say",
                                      lambda page: all(self.says(page, each) for each in services), seconds)

    def wait_in_force(self, exporter, provider, seconds=15):
        return exporter.wait_for_page(f"{provider} is in force", lambda page: self.in_force(page) == provider, seconds)

    def in_force(self, page):
        found = [labels["provider"] for labels, value in page.values(IN_FORCE) if value == 1]
        self.assertEqual(1, len(found), found)
        return found[0]

    def assert_shown(self, page, service):
        self.assertEqual(service.grams, page.value(FACTOR, **service.labels), service.name)
        self.assertEqual(0, page.value(STALE, **service.labels), service.name)
        self.assertEqual(service.estimated, page.value(ESTIMATED, **service.labels), service.name)
        self.assertEqual(1, page.value(UP, provider=service.name, zone=service.zone))
        self.assertEqual(0, page.value(ERRORS, provider=service.name, zone=service.zone))
        age_s = time.time() - service.newest()
        shown_s = float(page.value(AGE, **service.labels))
        # A period may have ended since it was asked.
        self.assertLess(min(abs(age_s - shown_s), abs(age_s + service.period_s - shown_s)), 5, service.name)

    def assert_no_secret(self, exporter):
        """Not where others can read it."""
        pids = [exporter.pid, exporter.server(), exporter.child("fetcher")]
        places = {"log": exporter.log_text(), "page": exporter.ask().body.decode(),
                  **{f"arguments of {pid}": " ".join(arguments_of(pid)) for pid in pids}}
        for pid in pids[1:]:
            places[f"environment of {pid}"] = environment_of(pid).decode(errors="replace")
        for place, text in places.items():
            for secret in SECRETS:
                self.assertNotIn(secret, text, place)


class BillsTestCase(EmissionsTestCase):
    """On a GPU whose joules are known: each tick's energy differs, so a sum is one of whole ticks only if it is in
    the list."""

    def replay(self, seconds):
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [11, 12, 13], seconds)
        self.sums, energy_mj = [Decimal(0)], 0
        for tick in range(1, seconds * 10 + 1):
            energy_mj += 70 * 100 + tick * 37 % 97
            self.sums.append(Decimal(energy_mj) / 1000)
        return f"--replay={trace.write(self.path('work.trace.gz'))}", "--sample-interval=100ms"

    def scrape(self, exporter, pages):
        page = exporter.page()
        meter, = self.meters(page)
        self.assertEqual(page.value(METER_ENERGY), page.sum(harness.WORKLOAD_ENERGY) + page.sum(harness.UNOWNED_ENERGY))
        self.assert_grams_conserved(page, meter_id=meter)
        if pages:
            self.assert_counters_grow(pages[-1], page)
        pages.append(page)
        return page

    def factor(self, page):
        return page.value(FACTOR, provider=self.in_force(page))

    def watch(self, exporter, pages, what, condition):
        wait_until(what, lambda: condition(self.scrape(exporter, pages)), 20)

    def assert_one_change(self, before, after):
        """Between these pages: at the end of a tick that was over, and not yet settled."""
        old, new = self.factors[0], self.factors[1]
        begin, end = before.value(METER_ENERGY), after.value(METER_ENERGY)
        grams = (after.value(METER_GRAMS) - before.value(METER_GRAMS)) * JOULES_PER_KWH
        border = (grams + begin * old - end * new) / (old - new)
        nearest = min(self.sums, key=lambda each: abs(each - border))
        self.assertLessEqual(abs(nearest - border), NANOGRAM * JOULES_PER_KWH / abs(old - new))
        self.assertTrue(begin <= nearest <= end, (begin, border, end))
        return nearest

    def borders(self, pages):
        """The joules at which each factor gave way to the next one. All that was billed is explained by them."""
        found = []
        for before, after in zip(pages, pages[1:]):
            joules = after.value(METER_ENERGY) - before.value(METER_ENERGY)
            grams = after.value(METER_GRAMS) - before.value(METER_GRAMS)
            if abs(grams - joules * self.factors[0] / JOULES_PER_KWH) > NANOGRAM:
                found.append(self.assert_one_change(before, after))
                self.factors.pop(0)
        return found
