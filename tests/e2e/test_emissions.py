"""Emission factors from public services: asked as they want it, and billed to the nanogram."""
import contextlib
import json
import os
import shlex
from decimal import Decimal

import harness
from certificates import Authority
from emissions_harness import (AGE, DOWN, ERRORS, FACTOR, FIRST_J, JOULES_PER_KWH, NANOGRAM, NO_PROXY, STALE, UP,
                               BillsTestCase, EmissionsTestCase, set_up_site)
from harness import (HARDWARE_ENERGY, METER_ENERGY, METER_GRAMS, Exporter, children, environment_of, is_running,
                     process_status, run, wait_until)
from servers import require
from servers.emissions import HOUR_S, PROVIDERS, ElectricityMaps, Entsoe, Rte, UkCarbonIntensity, WattTime, refusing
from servers.proxy import Proxy

READ = "reading emission factors"
BACK_IN_TIME = "a provider of emission factors went back in time: the later figure stays"
FRANCE = Decimal("44.179")  # of the table, per kWh
TICK_J = 8  # of a trace: the most that comes in 100 ms


def setUpModule():
    site = set_up_site()
    # First, as they are asked at some time of the first minute.
    Network.real = start_real(site) if os.geteuid() == 0 else None


def start_real(site):
    """All of them where they really are, as far as a daemon can see that has an /etc/hosts of its own."""
    pid = os.getpid()  # other runs on this machine have other addresses
    network = f"127.{64 + pid % 128}.{pid // 128 % 256}"
    services = [site.stack.enter_context(provider(site.named, address=(f"{network}.{i}", 443)))
                for i, provider in enumerate(PROVIDERS, 1)]
    with open(site.path("hosts"), "w") as hosts:
        hosts.writelines(f"{each.server.server_address[0]} {each.host}\n" for each in services)
    with open(site.path("resolv.conf"), "w") as resolver:
        resolver.write("nameserver 127.0.0.1\n")
    mounts = " && ".join(f"mount --bind {shlex.quote(site.path(name))} /etc/{name}" for name in ("hosts", "resolv.conf"))
    names = ",".join(f"{each.name}:{each.zone}" for each in services)
    return services, site.stack.enter_context(Exporter(
        f"--emissions.providers={names}", f"--emissions.ca-file={site.authority.crt}",
        f"--emissions.keys-file={site.keys}", env=NO_PROXY,
        wrapper=("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mounts} && exec "$@"', "sh")))


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


class Bills(BillsTestCase):
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
            self.assertLessEqual(border, pages[first].value(HARDWARE_ENERGY) - FIRST_J + TICK_J)
        # And by hand: all joules of all pages.
        ends = [*borders, pages[-1].value(METER_ENERGY)]
        begins = [Decimal(0), *borders]
        by_hand = sum((end - begin) * factor for begin, end, factor in zip(begins, ends, factors)) / JOULES_PER_KWH
        self.assertLessEqual(abs(pages[-1].value(METER_GRAMS) - by_hand), NANOGRAM)


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
            self.assertIn("a day old or more", exporter.wait_for_log(DOWN)["error"])
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
            page = exporter.wait_for_page("that is no answer", lambda page: page.value(ERRORS, provider="rte") >= 3)
            self.assertEqual((kept, 0), (page.value(FACTOR, provider="rte"), page.value(UP, provider="rte")))
            self.assertEqual(1, len(exporter.log(BACK_IN_TIME)), "it is said once")

    def test_the_next_in_the_list_stands_in_but_none_of_another_kind_or_country(self):
        rte, watttime, uk, emaps, entsoe = chain = [
            self.start(each) for each in (Rte, WattTime, UkCarbonIntensity, ElectricityMaps, Entsoe)]
        rte.answer = emaps.answer = refusing(500, "out of order")
        with self.exporter(*chain, more=("--emissions.factor=123",)) as exporter:
            self.wait_for(exporter, watttime, uk, entsoe)
            self.wait_in_force(exporter, "entsoe")
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


class Network(EmissionsTestCase):
    real = None

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
        services, exporter = self.real
        page = self.wait_for(exporter, *services, seconds=90)
        for service in services:
            self.assert_shown(page, service)
            self.assertEqual([], service.complaints)
            self.assertEqual({service.host}, set(service.server_names))
            self.assertEqual({service.host}, {headers["Host"] for _, headers in service.requests})
            if service.name != "watttime":  # which has news every five minutes
                self.assertEqual(1, len(service.requests), "as seldom as it has news")
        self.assertEqual("rte", self.in_force(page))
        self.assert_no_secret(exporter)


class Processes(EmissionsTestCase):
    def test_nobody_asks_unless_told_to(self):
        for flags in ((), ("--emissions.zone=FR",), ("--emissions.providers=owid:FR,global",),
                      ("--emissions-enabled=false",)):
            with Exporter(*flags) as exporter:
                exporter.page()
                self.assertEqual([exporter.server()], children(exporter.pid), flags)
                self.assertIsNone(exporter.child("fetcher"))
        refused = run("serve", "--listen-address=127.0.0.1:0", "--emissions.providers=rte", "--emissions.interval=1s")
        self.assertEqual(2, refused.returncode)
        self.assertIn(b"--emissions.interval", refused.stderr)

    def test_who_asks_has_no_privileges_and_dies_with_the_collector(self):
        rte = self.start(Rte)
        with self.exporter(rte, env={"SECRET_TOKEN": "hunter2"}) as exporter:
            self.wait_for(exporter, rte)
            asker = exporter.child("fetcher")
            status = process_status(asker)
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(0, int(status[name], 16), name)
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))
            self.assertNotIn(b"hunter2", environment_of(asker))
            exporter.process.kill()
            exporter.process.wait()
            wait_until("its end", lambda: not is_running(asker))


class Check(EmissionsTestCase):
    """`wattribute check` asks each once, as the daemon would."""

    def check(self, *services, keys=True, env=None, more=()):
        done = harness.run("check", "--json", *self.site.flags(*services, keys=keys), *more,
                           env={**NO_PROXY, **(env or {})})
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
            self.assertIn(f"{service.grams:.3f} g/kWh", finding["detail"])
        self.assertEqual("in force: 23.500 g/kWh, rte, zone FR, signal average, basis direct", found["emissions"]["detail"])

    def test_what_is_wrong_and_what_to_do(self):
        maps, entsoe, rte = self.start(ElectricityMaps), self.start(Entsoe), self.start(Rte)
        maps.answer = refusing(403, "zone not in plan")
        found = self.check(maps, keys=False, env={"ELECTRICITY_MAPS_TOKEN": maps.secrets[0]})
        self.assertIn("zone not in plan", found["emissions: electricity_maps"]["detail"])
        self.assertIn("check the key", found["emissions: electricity_maps"]["remedy"])
        found = self.check(entsoe, rte, keys=False)
        self.assertIn("entsoe needs a key: set ENTSOE_TOKEN", found["emissions: entsoe"]["detail"])
        self.assertEqual("ok", found["emissions: rte"]["verdict"])
        self.assertEqual([], entsoe.requests)
        maps.answer = refusing(404, "no such zone")
        self.assert_remedy(maps, "check the zone, and --emissions.url if it is set")
        maps.answer = None
        for age_s in (25 * HOUR_S, -2 * HOUR_S):
            maps.age_s = age_s
            self.assert_remedy(maps, "check the clock, and the mirror if --emissions.url is set")
        found = self.check(maps, keys=False, env={"ELECTRICITY_MAPS_TOKEN": "token\n"})
        self.assertEqual("correct the key: no line break at its end", found["emissions: electricity_maps"]["remedy"])

    def assert_remedy(self, service, remedy):
        finding = self.check(service)[f"emissions: {service.name}"]
        self.assertEqual(("failed", remedy), (finding["verdict"], finding["remedy"]), finding)

    def test_an_error_is_told_to_its_end(self):
        rte = self.start(Rte)
        stranger = Authority(self.site.authority.directory, "stranger").crt
        found = self.check(rte, more=(f"--emissions.ca-file={stranger}",))["emissions: rte"]
        self.assertTrue(found["detail"].endswith("a world-readable file with its CA"), found)

    def test_what_is_old_or_unusual_is_limited(self):
        rte = self.start(Rte, "1500")
        self.assertEqual("ok", self.check(rte)["emissions: rte"]["verdict"])
        for rte.value, rte.age_s, detail, remedy in (
                (Decimal("1500.001"), 0, "1500.001 g/kWh, higher than almost any grid", "the zone"),
                (Decimal("23.5"), 3 * HOUR_S, "23.500 g/kWh, older than usual", "the clock")):
            found = self.check(rte)["emissions: rte"]
            self.assertEqual(("limited", detail), (found["verdict"], found["detail"]))
            self.assertIn(remedy, found["remedy"])

    def test_who_stands_in_is_named_and_limited(self):
        maps, rte = self.start(ElectricityMaps), self.start(Rte, "23.5")
        for services, more, verdict, detail in (
                ((maps, rte), (), "limited",
                 "23.500 g/kWh, rte, zone FR, signal average, basis direct, in place of electricity_maps"),
                ((maps, rte), ("--emissions.primary=rte",), "ok",
                 "23.500 g/kWh, rte, zone FR, signal average, basis direct"),
                ((maps,), (), "limited",
                 "44.179 g/kWh, owid, zone FRA, signal average, basis lifecycle, in place of electricity_maps"),
                ((maps,), ("--emissions.providers=global", "--emissions.primary=global"), "ok",
                 "473.007 g/kWh, global, zone world, signal average, basis lifecycle")):
            found = self.check(*services, keys=False, more=more)["emissions"]
            self.assertEqual((verdict, f"in force: {detail}"), (found["verdict"], found["detail"]))
            self.assertEqual(verdict == "limited", "remedy" in found)

    def test_a_file_that_is_wrong_is_named(self):
        rte = self.start(Rte)
        for name, flag in (("keys.yaml", "--emissions.keys-file"), ("none.crt", "--emissions.ca-file")):
            with open(self.path("keys.yaml"), "w") as file:
                file.write("no_such_key: x\n")
            os.chmod(self.path("keys.yaml"), 0o600)
            found = self.check(rte, keys=False, more=(f"{flag}={self.path(name)}",))["emissions"]
            self.assertEqual(("failed", f"correct the file of {flag}"), (found["verdict"], found["remedy"]))
        found = self.check(rte, more=("--emissions.primary=entsoe",))["emissions"]
        self.assertEqual("correct the flag", found["remedy"])

    def test_a_table_alone_is_in_force_too(self):
        france = "44.179 g/kWh, owid, zone FRA, signal average, basis lifecycle"
        for flag, factor in (("--emissions.providers=owid:FR", france), ("--emissions.zone=FR", france),
                             ("--emissions.factor=12", "12.000 g/kWh, constant, signal unstated, basis unstated")):
            findings = json.loads(harness.run("check", "--json", flag).stdout)["findings"]
            self.assertEqual([f"in force: {factor}"],
                             [each["detail"] for each in findings if each["what"].startswith("emissions")])

    def test_without_a_flag_the_world_counts_and_nobody_is_asked(self):
        findings = json.loads(harness.run("check", "--json").stdout)["findings"]
        found = [finding for finding in findings if finding["what"].startswith("emissions")]
        self.assertEqual([("limited", "the world average, 473.007 g/kWh: no zone is configured")],
                         [(finding["verdict"], finding["detail"]) for finding in found])

    def test_the_world_is_good_enough_for_who_names_it(self):
        findings = json.loads(harness.run("check", "--json", "--emissions.providers=global").stdout)["findings"]
        self.assertEqual([("ok", "in force: 473.007 g/kWh, global, zone world, signal average, basis lifecycle")],
                         [(each["verdict"], each["detail"]) for each in findings if each["what"] == "emissions"])


if __name__ == "__main__":
    harness.main()
