"""Emission factors where something goes wrong: they are believed only where they make sense. Whatever a service does costs
its own news and nothing else, and nobody but itself is told its key."""
import concurrent.futures
import dataclasses
import datetime
import os
import signal
import time
from collections.abc import Callable
from decimal import Decimal

import harness
from certificates import Authority
from emissions_harness import (DOWN, ERRORS, FACTOR, FIRST_J, NO_PROXY, UP, BillsTestCase, EmissionsTestCase,
                               set_up_site, write_keys)
from harness import HARDWARE_ENERGY, METER_ENERGY, SOON_S, Exporter, is_running, run, wait_until
from servers.emissions import (HOUR_S, PROVIDERS, ElectricityMaps, Entsoe, Request, Rte, UkCarbonIntensity, WattTime,
                               of_time, of_zone, redirecting, refusing, saying, utc)

NOT_ASKED = "a provider of emission factors is not polled"
VARIABLES = {"ELECTRICITY_MAPS_TOKEN": ElectricityMaps.TOKEN, "ENTSOE_TOKEN": Entsoe.TOKEN,
             "WATTTIME_USERNAME": WattTime.USER, "WATTTIME_PASSWORD": WattTime.PASSWORD}


def setUpModule():
    site = set_up_site()
    # First, as they need long to give up.
    Slowness.slow = [start_slow(site, provider) for provider in PROVIDERS]


def start_slow(site, provider):
    """One that answers at once and never ends, one that is well, and a daemon that asks both."""
    service = site.stack.enter_context(provider(site.certificate))
    other = site.stack.enter_context((UkCarbonIntensity if provider is Rte else Rte)(site.certificate))
    service.answer = Request.drip
    return service, other, site.stack.enter_context(Exporter(*site.flags(service, other), env=NO_PROXY))


@dataclasses.dataclass
class Fault:
    """Something that services may do."""

    name: str
    answer: Callable[[Request], None] | None = None
    says: str = ""  # in the log
    spares: tuple = ()  # those that cannot do it
    garbage: bool = False
    certificate: str | None = None  # another than its own

    def befall(self, service):
        service.answer, service.garbage = self.answer, self.garbage
        service.present(self.certificate)


OTHER_ZONES = {"electricity_maps": "DE", "watttime": "PJM_CHICAGO", "uk_carbon_intensity": "12", "entsoe": "DE-LU"}


def of_other_zone(request):
    of_zone(OTHER_ZONES[request.service.name])(request)


class Faults(EmissionsTestCase):
    def survive(self, fault):
        """All of them do it at the same time: what they said last is used, and all goes on when they stop."""
        services = [self.start(provider, zone="13" if provider is UkCarbonIntensity else None) for provider in PROVIDERS]
        affected = [each for each in services if each.name not in fault.spares]
        for service in services:
            service.hangs_up = True  # another certificate is for another connection
        with self.exporter(*services) as exporter:
            self.wait_for(exporter, *services)
            for service in affected:
                fault.befall(service)
            page = exporter.wait_for_page(f"{fault.name}: all are down", lambda page: all(
                page.value(UP, provider=each.name) == 0 for each in affected), 30)
            for service in affected:
                self.assertGreaterEqual(page.value(ERRORS, provider=service.name), 1)
                self.assertEqual(service.grams, page.value(FACTOR, **service.labels))
            self.assertEqual(services[0].name, self.in_force(page))
            lines = exporter.log(DOWN)
            self.assertEqual({each.name for each in affected}, {line["provider"] for line in lines})
            for line in lines:
                self.assertIn(fault.says, line["error"], fault.name)
                self.assertTrue(line["error"].startswith(line["provider"] + ": "), line["error"])
            for service in affected:
                Fault("nothing", certificate=self.site.certificate).befall(service)
                service.value += 7
            self.wait_for(exporter, *affected, seconds=60)
            self.assertEqual(len(affected), len(exporter.log(DOWN)), "it is said once")
            self.assert_no_secret(exporter)

    def survive_all(self, *faults):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(self.survive, faults))

    def test_answers_that_are_none(self):
        elsewhere = self.start(Rte)
        self.survive_all(
            Fault("a refusal", refusing(500, "out of order"), "status 500"),
            Fault("an error that looks like an answer", refusing(200, "nothing for you"), "nothing for you"),
            Fault("an answer that breaks off", Request.truncate),
            Fault("an answer of ten megabytes", Request.flood, "reply is longer than"),
            Fault("an answer without end", Request.flood_in_chunks, "the reply is longer than"),
            Fault("a page for people", Request.page, "is a proxy in between?"),
            Fault("a page that says it is none", Request.disguised_page, "is a proxy in between?"),
            Fault("a redirect", redirecting(elsewhere.url), "redirects are not followed"))
        self.assertEqual(0, elsewhere.connections)

    def test_values_that_no_grid_has(self):
        self.survive_all(
            Fault("a text", saying('"abc"')), Fault("nothing", saying("null")), Fault("no number", saying("NaN")),
            Fault("a negative number", saying("-5"), spares=("entsoe",)),  # a plant at rest draws power
            Fault("a million", saying("1e6")),
            Fault("of tomorrow", of_time(time.time() // 3600 * 3600 + 24 * HOUR_S)),
            Fault("of another zone", of_other_zone, spares=("rte",)))

    def test_peers_that_are_not_who_they_should_be(self):
        stranger = Authority(self.directory, "stranger").certify("other", "IP:127.0.0.1")
        elsewhere = self.site.authority.certify("elsewhere", "DNS:elsewhere.example")
        self.survive_all(Fault("no TLS", garbage=True),
                         Fault("another authority", says="verification failed", certificate=stranger),
                         Fault("another name", says="does not match", certificate=elsewhere))

    def test_who_asks_for_a_pause_gets_it_and_who_refuses_a_key_is_left_alone(self):
        rte, emaps, watttime, uk, entsoe = services = self.start_all()
        uk.answer = refusing(429, "too many", Retry_After="4")
        rte.answer = lambda request: request.refuse(
            429, "too many", X_RateLimit_Reset=utc(time.time() + 5, "%Y-%m-%d %H:%M:%S+00:00"))
        emaps.answer, entsoe.answer = refusing(401, "no such token"), refusing(403, "not for you")
        watttime.login = refusing(401, "wrong user or password")
        with self.exporter(*services) as exporter:
            wait_until("the two are asked again", lambda: min(len(rte.requests), len(uk.requests)) >= 2, 30)
            for service in (rte, uk):
                self.assertGreaterEqual(service.requests[1][0] - service.requests[0][0], 3.9, service.name)
            # The second 401 is believed: the first may be meant for others who ask with the same token.
            self.assertEqual((2, 1, 1, 0), (len(emaps.requests), len(entsoe.requests), watttime.logins,
                                            len(watttime.requests)))
            errors = {line["provider"]: line["error"] for line in exporter.log(DOWN)}
            self.assertIn("too many requests", errors["rte"])
            self.assertIn("too many use it at once", errors["electricity_maps"])
            self.assertIn("user or password not accepted", errors["watttime"])
            self.assertIn("not for this zone", errors["entsoe"])
            self.assert_no_secret(exporter)

    def test_one_refusal_of_a_key_is_no_more_than_a_failure(self):
        emaps = self.start(ElectricityMaps)
        emaps.answer = refusing(401, "busy")
        with self.exporter(emaps) as exporter:
            exporter.wait_for_log(DOWN)
            emaps.answer = None
            self.wait_for(exporter, emaps)


class Slowness(EmissionsTestCase):
    slow = None

    def test_an_answer_that_drips_is_given_up_at_the_deadline_and_others_are_asked(self):
        for service, other, exporter in self.slow:
            line = exporter.wait_for_log(DOWN, 45)
            limit_s = 30 if service.name == "entsoe" else 10
            self.assertIn("no complete reply within", line["error"])
            ended = datetime.datetime.fromisoformat(line["ts"]).timestamp()
            # The time begins before the request, with the connection and perhaps a login.
            self.assertLess(abs(ended - service.requests[0][0] - limit_s), SOON_S, service.name)
            meanwhile = [request for request in list(other.requests) if request[0] < ended]
            self.assertGreaterEqual(len(meanwhile), 3, f"{service.name} holds up {other.name}")
            page = self.wait_for(exporter, other)
            self.assertEqual(0, page.value(UP, provider=service.name))
            self.assertGreaterEqual(page.value(ERRORS, provider=service.name), 1)
            self.assertEqual([], page.values(FACTOR, provider=service.name))
            self.assertEqual([], service.complaints + other.complaints)

    def test_one_that_hangs_does_not_hold_up_the_end(self):
        rte = self.start(Rte)
        rte.answer = Request.hang
        with self.exporter(rte) as exporter:
            wait_until("it is asked", lambda: rte.requests)
            asker = exporter.child("fetcher")
            self.assertLess(exporter.stop(), SOON_S)
            self.assertFalse(is_running(asker))


class Keys(EmissionsTestCase):
    def test_are_told_to_nobody_even_if_a_service_repeats_them(self):
        services = self.start_all()
        for service in services:
            service.answer = lambda request: request.refuse(500, " and ".join((
                "heard", *request.service.secrets[:2], request.headers.get("Authorization", ""))))
        with self.exporter(*services) as by_file, self.exporter(*services, keys=False, env=VARIABLES) as by_environment:
            for exporter in (by_file, by_environment):
                wait_until("all have failed", lambda: len(exporter.log(DOWN)) == len(services))
                self.assert_no_secret(exporter)
                errors = {line["provider"]: line["error"] for line in exporter.log(DOWN)}
                self.assertIn("heard and ***", errors["electricity_maps"])
                self.assertIn("heard and *** and *** and Bearer ***", errors["watttime"])
            for service in services:
                service.answer = None
            for exporter in (by_file, by_environment):
                self.wait_for(exporter, *services)
                self.assert_no_secret(exporter)

    def test_one_that_is_missing_costs_its_provider_only(self):
        services = self.start_all()
        keyless = [each for each in services if not each.secrets]
        with self.exporter(*services, keys=False) as exporter:
            page = self.wait_for(exporter, *keyless)
            errors = {line["provider"]: line["error"] for line in exporter.log(NOT_ASKED)}
            self.assertEqual({"electricity_maps", "watttime", "entsoe"}, set(errors))
            self.assertIn("ENTSOE_TOKEN", errors["entsoe"])
            for name in errors:
                self.assertEqual(0, page.value(UP, provider=name))
        self.assertEqual([0] * 3, [each.connections for each in services if each.secrets])

    def test_a_file_that_others_may_read_is_refused(self):
        emaps = self.start(ElectricityMaps)
        keys = write_keys(self.path("keys.yaml"), 0o644)
        refused = run("serve", "--listen-address=127.0.0.1:0", *self.site.flags(emaps), f"--emissions.keys-file={keys}")
        self.assertEqual(2, refused.returncode)
        self.assertIn(b"chmod 600", refused.stderr)
        self.assertNotIn(emaps.TOKEN.encode(), refused.stderr)


class Bills(BillsTestCase):
    def test_they_go_on_when_the_asker_is_killed(self):
        rte, pages = self.start(Rte, "350.5"), []
        with self.exporter(rte, more=self.replay(60)) as exporter:
            self.watch(exporter, pages, "it is in force", lambda page: self.factor(page) == rte.value)
            front, killed, begin = exporter.server(), [], len(pages)
            for _ in range(2):
                killed.append(exporter.child("fetcher"))
                os.kill(killed[-1], signal.SIGKILL)
                self.watch(exporter, pages, "another asker", lambda page: exporter.child("fetcher") not in (None, *killed))
            rte.value = Decimal(20)
            self.watch(exporter, pages, "it is asked again", lambda page: self.factor(page) == rte.value)
            energy = pages[-1].value(METER_ENERGY)
            self.watch(exporter, pages, "some joules", lambda page: page.value(METER_ENERGY) > energy + 140)
            self.assertEqual(front, exporter.server())
            self.factors = [Decimal("350.5"), Decimal(20)]
            self.assertEqual(self.factors, [self.factor(pages[begin]), self.factor(pages[-1])])
            first = next(i for i in range(begin, len(pages)) if pages[i].value(METER_ENERGY) > pages[begin].value(
                HARDWARE_ENERGY) - FIRST_J)
            self.assertEqual(1, len(self.borders(pages[first:])))


if __name__ == "__main__":
    harness.main()
