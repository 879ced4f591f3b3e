"""Emission factors from public services: asked as they want it, believed only where they make sense, and billed to the
nanogram. Whatever a service does costs its own news and nothing else, and nobody but itself is told its key."""
import concurrent.futures
import contextlib
import dataclasses
import datetime
import json
import os
import shlex
import signal
import tempfile
import time
import unittest
from collections.abc import Callable
from decimal import Decimal

import harness
from certificates import Authority
from harness import (HARDWARE_ENERGY, METER_ENERGY, METER_GRAMS, Exporter, Trace, arguments_of, children, environment_of, is_running,
                     process_status, run, wait_until)
from servers import require
from servers.emissions import (HOUR_S, PROVIDERS, ElectricityMaps, Entsoe, Request, Rte, UkCarbonIntensity, WattTime,
                               of_time, of_zone, redirecting, refusing, saying, utc)
from servers.proxy import Proxy

FACTOR, IN_FORCE, STALE, ESTIMATED, AGE = (f"wattribute_emission_factor_{name}" for name in (
    "grams_per_kwh", "in_force", "stale", "estimated", "age_seconds"))
UP, ERRORS = "wattribute_emission_provider_up", "wattribute_emission_provider_errors_total"
READ = "emission factors are read"
DOWN = "a provider of emission factors fails"
NOT_ASKED = "a provider of emission factors is not asked"
FRANCE = Decimal("44.179")  # of the table, per kWh

SECRETS = tuple(secret for provider in PROVIDERS for secret in provider.secrets)
KEYS = {"electricity_maps": ElectricityMaps.TOKEN, "entsoe": Entsoe.TOKEN,
        "watttime_username": WattTime.USER, "watttime_password": WattTime.PASSWORD}
VARIABLES = {"ELECTRICITY_MAPS_TOKEN": ElectricityMaps.TOKEN, "ENTSOE_TOKEN": Entsoe.TOKEN,
             "WATTTIME_USERNAME": WattTime.USER, "WATTTIME_PASSWORD": WattTime.PASSWORD}
# What the machine has of these is not what is tested.
NO_PROXY = dict.fromkeys(("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"), "")

FIRST_J, TICK_J = 5000, 8  # of a trace: what the counter begins with, and the most that comes in 100 ms
NANOGRAM = Decimal("1e-9")
JOULES_PER_KWH = 3600000


def write_keys(path, mode=0o600):
    with open(path, "w") as file:
        file.writelines(f"{name}: '{value}'\n" for name, value in KEYS.items())
    os.chmod(path, mode)
    return path


class Site:
    """What the tests share: an authority, a certificate, keys, and daemons that need long for what is asked of them."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-site-"))
        self.path = lambda name: os.path.join(directory, name)
        os.chmod(directory, 0o755)  # who asks is nobody
        self.authority = Authority(directory)
        self.certificate = self.authority.certify("server", "IP:127.0.0.1")
        self.named = self.authority.certify("named", *(f"DNS:{each.host}" for each in PROVIDERS))
        self.keys = write_keys(self.path("keys.yaml"))

    def start(self):
        self.slow = [self.start_slow(provider) for provider in PROVIDERS]
        self.real = self.start_real() if os.geteuid() == 0 else None

    def flags(self, *services, keys=True):
        return (f"--emissions.providers={','.join(f'{each.name}:{each.zone}' for each in services)}",
                f"--emissions.ca-file={self.authority.crt}", "--emissions.interval=1s",
                *([f"--emissions.keys-file={self.keys}"] if keys else []),
                *(f"--emissions.url={each.name}={each.url}" for each in services))

    def start_slow(self, provider):
        """One that answers at once and never ends, one that is well, and a daemon that asks both."""
        service = self.stack.enter_context(provider(self.certificate))
        other = self.stack.enter_context((UkCarbonIntensity if provider is Rte else Rte)(self.certificate))
        service.answer = Request.drip
        return service, other, self.stack.enter_context(Exporter(*self.flags(service, other), env=NO_PROXY))

    def start_real(self):
        """All of them where they really are, as far as a daemon can see that has an /etc/hosts of its own."""
        services = [self.stack.enter_context(provider(self.named, address=(f"127.83.0.{i}", 443)))
                    for i, provider in enumerate(PROVIDERS, 1)]
        with open(self.path("hosts"), "w") as hosts:
            hosts.writelines(f"{each.server.server_address[0]} {each.host}\n" for each in services)
        with open(self.path("resolv.conf"), "w") as resolver:
            resolver.write("nameserver 127.0.0.1\n")
        mounts = " && ".join(f"mount --bind {shlex.quote(self.path(name))} /etc/{name}" for name in ("hosts", "resolv.conf"))
        names = ",".join(f"{each.name}:{each.zone}" for each in services)
        return services, self.stack.enter_context(Exporter(
            f"--emissions.providers={names}", f"--emissions.ca-file={self.authority.crt}",
            f"--emissions.keys-file={self.keys}", env=NO_PROXY,
            wrapper=("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mounts} && exec "$@"', "sh")))


def setUpModule():
    site = EmissionsTestCase.site = Site()
    unittest.addModuleCleanup(site.stack.close)
    site.start()


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
        pids = [exporter.pid, exporter.front(), exporter.child("asker")]
        places = {"log": exporter.log_text(), "page": exporter.ask().body.decode(),
                  **{f"arguments of {pid}": " ".join(arguments_of(pid)) for pid in pids}}
        for pid in pids[1:]:
            places[f"environment of {pid}"] = environment_of(pid).decode(errors="replace")
        for place, text in places.items():
            for secret in SECRETS:
                self.assertNotIn(secret, text, place)


class Answers(EmissionsTestCase):
    def test_what_each_says_is_shown_and_in_force(self):
        services = self.start_all()
        with contextlib.ExitStack() as stack:
            exporters = [stack.enter_context(self.exporter(service)) for service in services]
            for service, exporter in zip(services, exporters):
                page = self.wait_for(exporter, service)
                self.assert_shown(page, service)
                self.assertEqual(service.name, self.in_force(page))
                self.assertEqual(1, len(exporter.log(READ)))

    def test_all_are_shown_and_the_primary_is_in_force(self):
        services = self.start_all()
        with self.exporter(*services, more=("--emissions.primary=watttime", "--emissions.factor=123.456789",
                                            "--emissions.signal=average", "--emissions.basis=direct")) as exporter:
            services[1].basis = "direct"
            page = self.wait_for(exporter, *services)
            for service in services:
                self.assert_shown(page, service)
            self.assertEqual("watttime", self.in_force(page))
            fixed = {labels["provider"]: (value, labels["zone"], labels["signal"], labels["basis"])
                     for labels, value in page.values(FACTOR) if labels["provider"] in ("constant", "owid", "global")}
            self.assertEqual({"constant": (Decimal("123.456789"), "", "average", "direct"),
                              "owid": (FRANCE, "FRA", "average", "lifecycle"),
                              "global": (harness.WORLD_FACTOR, "", "average", "lifecycle")},
                             {**fixed, "global": (fixed["global"][0], "", *fixed["global"][2:])})
            self.assertEqual(8, len(page.values(FACTOR)))
            self.assertEqual(5, len(page.values(AGE)))

    def test_parts_of_countries_are_asked_for_by_their_names(self):
        region, place, area = (self.start(UkCarbonIntensity, zone="13"), self.start(UkCarbonIntensity, zone="RG10"),
                               self.start(Entsoe, zone="DE-LU"))
        guess = self.start(ElectricityMaps, "41.5", zone="US-CAL-CISO")
        guess.estimated = True
        with self.exporter(region, area) as one, self.exporter(place, guess) as other:
            for exporter, service in ((one, region), (one, area), (other, place), (other, guess)):
                self.assert_shown(self.wait_for(exporter, service), service)

    def test_what_has_not_changed_is_not_sent_again(self):
        services = [self.start(provider) for provider in (Rte, ElectricityMaps, UkCarbonIntensity)]
        for service in services:
            service.has_etags = True
        with self.exporter(*services) as exporter:
            wait_until("it is said that nothing has changed", lambda: min(each.unchanged for each in services) >= 2)
            page = self.wait_for(exporter, *services)
            for service in services:
                self.assert_shown(page, service)
                service.value += 7
            self.wait_for(exporter, *services)

    def test_a_token_that_has_ended_is_asked_for_again_and_is_no_error(self):
        watttime = self.start(WattTime)
        with self.exporter(watttime) as exporter:
            wait_until("some questions", lambda: len(watttime.requests) >= 3)
            self.assertEqual(1, watttime.logins)
            watttime.tokens.clear()
            watttime.value += 7
            page = self.wait_for(exporter, watttime)
            self.assertEqual(0, page.value(ERRORS, provider="watttime"))
            self.assertEqual(2, watttime.logins)


class Bills(EmissionsTestCase):
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
        self.assert_grams_conserved(page, meter)
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

    def test_each_window_is_billed_with_the_factor_in_force_at_its_end(self):
        rte, pages = self.start(Rte, "350.5"), []
        rte.answer = refusing(503, "not yet")
        with self.exporter(rte, more=self.replay(60)) as exporter:
            self.watch(exporter, pages, "some joules", lambda page: page.value(METER_ENERGY) > 70)
            rte.answer = None
            for value in ("350.5", "20", "1", "1499.999"):
                rte.value = Decimal(value)
                self.watch(exporter, pages, f"{value} is in force", lambda page: self.factor(page) == rte.value)
                energy = pages[-1].value(METER_ENERGY)
                self.watch(exporter, pages, "some joules", lambda page: page.value(METER_ENERGY) > energy + 140)
        self.factors = [FRANCE, Decimal("350.5"), Decimal(20), Decimal(1), Decimal("1499.999")]
        shown = [self.factor(page) for page in pages]
        self.assertEqual(self.factors, sorted(set(shown), key=shown.index))
        factors = list(self.factors)
        borders = self.borders(pages)
        self.assertEqual(4, len(borders))
        for border, new in zip(borders, factors[1:]):
            first = shown.index(new)
            # Of what is read, not of what is settled, which is a second behind.
            self.assertGreaterEqual(border, pages[first - 1].value(HARDWARE_ENERGY) - FIRST_J - TICK_J)
            self.assertLessEqual(border, pages[first].value(HARDWARE_ENERGY) - FIRST_J)
        # And by hand: all joules of all pages.
        ends = [*borders, pages[-1].value(METER_ENERGY)]
        begins = [Decimal(0), *borders]
        by_hand = sum((end - begin) * factor for begin, end, factor in zip(begins, ends, factors)) / JOULES_PER_KWH
        self.assertLessEqual(abs(pages[-1].value(METER_GRAMS) - by_hand), NANOGRAM)

    def test_they_go_on_when_the_asker_is_killed(self):
        rte, pages = self.start(Rte, "350.5"), []
        with self.exporter(rte, more=self.replay(60)) as exporter:
            self.watch(exporter, pages, "it is in force", lambda page: self.factor(page) == rte.value)
            front, killed, begin = exporter.front(), [], len(pages)
            for _ in range(2):
                killed.append(exporter.child("asker"))
                os.kill(killed[-1], signal.SIGKILL)
                self.watch(exporter, pages, "another asker", lambda page: exporter.child("asker") not in (None, *killed))
            rte.value = Decimal(20)
            self.watch(exporter, pages, "it is asked again", lambda page: self.factor(page) == rte.value)
            energy = pages[-1].value(METER_ENERGY)
            self.watch(exporter, pages, "some joules", lambda page: page.value(METER_ENERGY) > energy + 140)
            self.assertEqual(front, exporter.front())
            self.factors = [Decimal("350.5"), Decimal(20)]
            self.assertEqual(self.factors, [self.factor(pages[begin]), self.factor(pages[-1])])
            first = next(i for i in range(begin, len(pages)) if pages[i].value(METER_ENERGY) > pages[begin].value(
                HARDWARE_ENERGY) - FIRST_J)
            self.assertEqual(1, len(self.borders(pages[first:])))


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
            self.wait_for(exporter, *affected, seconds=30)
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
            Fault("an answer of ten megabytes", Request.flood, "announces a longer answer"),
            Fault("an answer without end", Request.flood_in_chunks, "its answer is longer than"),
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
            wait_until("the two are asked again", lambda: min(len(rte.requests), len(uk.requests)) >= 2)
            for service in (rte, uk):
                self.assertGreaterEqual(service.requests[1][0] - service.requests[0][0], 3.9, service.name)
            # The second 401 is believed: the first may be meant for others who ask with the same token.
            self.assertEqual((2, 1, 1, 0), (len(emaps.requests), len(entsoe.requests), watttime.logins,
                                            len(watttime.requests)))
            errors = {line["provider"]: line["error"] for line in exporter.log(DOWN)}
            self.assertIn("asked too often", errors["rte"])
            self.assertIn("too many ask with it at once", errors["electricity_maps"])
            self.assertIn("the user or the password is not accepted", errors["watttime"])
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
    def test_an_answer_that_drips_is_given_up_at_the_deadline_and_others_are_asked(self):
        for service, other, exporter in self.site.slow:
            line = exporter.wait_for_log(DOWN, 45)
            limit_s = 30 if service.name == "entsoe" else 10
            self.assertIn("no complete answer within", line["error"])
            ended = datetime.datetime.fromisoformat(line["ts"]).timestamp()
            self.assertLess(abs(ended - service.requests[0][0] - limit_s), 2, service.name)
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
            asker = exporter.child("asker")
            self.assertLess(exporter.stop(), 4)
            self.assertFalse(is_running(asker))


class Choice(EmissionsTestCase):
    DAY_S = 25 * HOUR_S

    def test_an_old_value_is_stale_and_one_of_yesterday_is_no_answer(self):
        rte = self.start(Rte)
        rte.age_s = 3 * HOUR_S
        with self.exporter(rte) as exporter:
            page = self.wait_for(exporter, rte)
            self.assertEqual((1, "rte"), (page.value(STALE, **rte.labels), self.in_force(page)))
            self.assertGreater(page.value(AGE, **rte.labels), 3 * HOUR_S)
            kept = page.value(FACTOR, provider="rte")
            rte.age_s, rte.value = self.DAY_S, rte.value + 1
            page = exporter.wait_for_page("it fails", lambda page: page.value(UP, provider="rte") == 0)
            self.assertIn("a day old or more", exporter.wait_for_log(DOWN, 5)["error"])
            self.assertEqual((kept, "rte"), (page.value(FACTOR, provider="rte"), self.in_force(page)))
            rte.age_s = 0
            page = exporter.wait_for_page("it is back", lambda page: page.value(UP, provider="rte") == 1)
            self.assertEqual(rte.value, page.value(FACTOR, provider="rte"))
            self.assertEqual(0, page.value(STALE, **rte.labels))

    def test_of_one_that_only_knows_yesterday_nothing_is_believed(self):
        rte = self.start(Rte)
        rte.age_s = self.DAY_S
        with self.exporter(rte) as exporter:
            exporter.wait_for_page("it fails", lambda page: page.value(ERRORS, provider="rte") >= 1)
            page = self.wait_in_force(exporter, "owid")
            self.assertEqual([], page.values(FACTOR, provider="rte"))

    def test_a_value_that_goes_back_in_time_does_not_replace_the_later_one(self):
        rte = self.start(Rte)
        with self.exporter(rte) as exporter:
            kept = self.wait_for(exporter, rte).value(FACTOR, provider="rte")
            rte.age_s, rte.value = 2 * HOUR_S, rte.value + 7
            page = exporter.wait_for_page("that is no answer", lambda page: page.value(ERRORS, provider="rte") >= 1)
            self.assertEqual((kept, 0), (page.value(FACTOR, provider="rte"), page.value(UP, provider="rte")))

    def test_the_next_in_the_list_stands_in_but_none_of_another_kind(self):
        rte, watttime, emaps, uk = chain = [self.start(each) for each in (Rte, WattTime, ElectricityMaps, UkCarbonIntensity)]
        rte.answer = emaps.answer = refusing(500, "out of order")
        with self.exporter(*chain, more=("--emissions.factor=123",)) as exporter:
            self.wait_for(exporter, watttime, uk)
            self.wait_in_force(exporter, "uk_carbon_intensity")
            emaps.answer = None
            self.wait_in_force(exporter, "electricity_maps")
            rte.answer = None
            self.wait_in_force(exporter, "rte")
        watttime.answer = refusing(500, "out of order")
        with self.exporter(rte, watttime, more=("--emissions.primary=watttime",)) as exporter:
            page = self.wait_for(exporter, rte)
            self.assertEqual(("owid", FRANCE), (self.in_force(page), page.value(FACTOR, provider="owid")))
            watttime.answer = None
            self.wait_in_force(exporter, "watttime")
        watttime.answer = refusing(500, "out of order")
        with self.exporter(watttime, more=("--emissions.factor=123",)) as exporter:
            exporter.wait_for_page("it fails", lambda page: page.value(ERRORS, provider="watttime") >= 1)
            self.wait_in_force(exporter, "constant")
        with self.exporter(watttime) as exporter:
            exporter.wait_for_page("it fails", lambda page: page.value(ERRORS, provider="watttime") >= 1)
            self.wait_in_force(exporter, "global")


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


class Network(EmissionsTestCase):
    def test_a_proxy_of_the_environment_is_used_but_not_where_it_should_not_be(self):
        rte, uk = self.start(Rte, certificate=self.site.named), self.start(UkCarbonIntensity)
        rte.hangs_up = True
        target = f"{rte.host}:443"
        with Proxy({target: ("127.0.0.1", rte.port)}, "me:pr0xy-word") as proxy:
            rte.url = f"https://{rte.host}"
            with self.exporter(rte, uk, env={"https_proxy": proxy.url_for("me:pr0xy-word"),
                                             "no_proxy": "127.0.0.1"}) as exporter:
                self.wait_for(exporter, rte, uk)
                self.assertEqual({target}, set(proxy.asked))
                self.assertEqual({rte.host}, set(rte.server_names))
                proxy.routes = {}
                self.assertIn("502", exporter.wait_for_log(DOWN)["error"])
                self.assertNotIn("pr0xy-word", exporter.log_text())
                self.assertNotIn("pr0xy-word", exporter.ask().body.decode())

    def test_without_a_mirror_they_are_asked_at_their_real_hosts(self):
        require.root()  # for an /etc/hosts of its own
        services, exporter = self.site.real
        page = self.wait_for(exporter, *services, seconds=90)
        for service in services:
            self.assert_shown(page, service)
            self.assertEqual([], service.complaints)
            self.assertEqual({service.host}, set(service.server_names))
            self.assertEqual({service.host}, {headers["Host"] for _, headers in service.requests})
            self.assertEqual(1, len(service.requests), "as seldom as it has news")
        self.assertEqual("rte", self.in_force(page))
        self.assert_no_secret(exporter)


class Processes(EmissionsTestCase):
    def test_nobody_asks_unless_told_to(self):
        for flags in ((), ("--emissions.zone=FR",), ("--emissions.providers=owid:FR,global",),
                      ("--emissions-enabled=false",)):
            with Exporter(*flags) as exporter:
                exporter.page()
                self.assertEqual([exporter.front()], children(exporter.pid), flags)
                self.assertIsNone(exporter.child("asker"))
        refused = run("serve", "--listen-address=127.0.0.1:0", "--emissions.providers=rte", "--emissions.interval=1s")
        self.assertEqual(2, refused.returncode)
        self.assertIn(b"--emissions.interval", refused.stderr)

    def test_who_asks_has_no_privileges_and_dies_with_the_collector(self):
        rte = self.start(Rte)
        with self.exporter(rte, env={"SECRET_TOKEN": "hunter2"}) as exporter:
            self.wait_for(exporter, rte)
            asker = exporter.child("asker")
            status = process_status(asker)
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(0, int(status[name], 16), name)
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))
            self.assertNotIn(b"hunter2", environment_of(asker))
            exporter.process.kill()
            exporter.process.wait()
            wait_until("its end", lambda: not is_running(asker), 2)


class Check(EmissionsTestCase):
    """`wattribute check` asks each once, as the daemon would."""

    def check(self, *services, keys=True, env=None):
        done = harness.run("check", "--json", *self.site.flags(*services, keys=keys), env={**NO_PROXY, **(env or {})})
        for secret in (secret for service in services for secret in service.secrets):
            self.assertNotIn(secret.encode(), done.stdout + done.stderr)
        self.assertEqual(b"", done.stderr)
        findings = json.loads(done.stdout)["findings"]
        return {finding["what"]: finding for finding in findings if finding["what"].startswith("emissions")}

    def test_what_each_says_and_which_is_in_force(self):
        services = self.start_all()
        found = self.check(*services)
        for service in services:
            finding = found[f"emissions: {service.name}"]
            self.assertEqual("ok", finding["verdict"], finding)
            self.assertIn(f"it says {service.grams:.3f} g/kWh", finding["detail"])
        self.assertEqual("in force: 23.500 g/kWh, rte, zone FR, average, direct", found["emissions"]["detail"])

    def test_what_is_wrong_and_what_to_do(self):
        maps, entsoe, rte = self.start(ElectricityMaps), self.start(Entsoe), self.start(Rte)
        maps.answer = refusing(403, "zone not in plan")
        found = self.check(maps, keys=False, env={"ELECTRICITY_MAPS_TOKEN": maps.secrets[0]})
        self.assertIn("zone not in plan", found["emissions: electricity_maps"]["detail"])
        self.assertIn("look at the key", found["emissions: electricity_maps"]["remedy"])
        found = self.check(entsoe, rte, keys=False)
        self.assertIn("entsoe wants a key: set ENTSOE_TOKEN", found["emissions: entsoe"]["detail"])
        self.assertEqual("ok", found["emissions: rte"]["verdict"])
        self.assertEqual([], entsoe.requests)

    def test_without_a_flag_the_world_counts_and_nobody_is_asked(self):
        findings = json.loads(harness.run("check", "--json").stdout)["findings"]
        found = [finding for finding in findings if finding["what"].startswith("emissions")]
        self.assertEqual(["the world's average, 473.007 g/kWh, is nobody's own"],
                         [finding["detail"] for finding in found])


if __name__ == "__main__":
    harness.main()
