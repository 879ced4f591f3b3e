"""The doubles of the services that tell emission factors: they answer as documented, to the right question only."""
import http.client
import json
import socket
import ssl
import tempfile
from base64 import b64encode
from decimal import Decimal

import harness
from certificates import Authority
from servers.emissions import (PROVIDERS, ElectricityMaps, Entsoe, Request, Rte, UkCarbonIntensity, WattTime, of_zone,
                               redirecting, refusing, saying, utc)
from servers.proxy import Proxy

RTE_PATH = ("/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records?select=taux_co2%2Cdate_heure&"
            "where=taux_co2%20is%20not%20null&order_by=date_heure%20desc&limit=1&timezone=Europe%2FParis&"
            "include_links=false&include_app_metas=false")
UK_PATH = "/intensity"


class DoubleTestCase(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.authority = Authority(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-")))
        cls.certificate = cls.authority.certify("server", "IP:127.0.0.1", *(f"DNS:{each.host}" for each in PROVIDERS))
        cls.trust = ssl.create_default_context(cafile=cls.authority.crt)

    def start(self, provider, *arguments, **options):
        service = provider(self.certificate, *arguments, **options)
        self.addCleanup(service.__exit__)
        return service

    def connect(self, service):
        connection = http.client.HTTPSConnection("127.0.0.1", service.port, timeout=20, context=self.trust)
        self.addCleanup(connection.close)
        return connection

    def ask(self, service, path, **headers):
        """Status, and body as JSON or text."""
        connection = self.connect(service)
        connection.request("GET", path, headers={"User-Agent": "wattribute/0", "Accept": service.media_type, **{
            name.replace("_", "-"): value for name, value in headers.items()}})
        answer = connection.getresponse()
        body = answer.read().decode()
        return answer.status, json.loads(body) if body.startswith("{") else body


class Answers(DoubleTestCase):
    def test_of_rte(self):
        rte = self.start(Rte, "23.5")
        status, answer = self.ask(rte, RTE_PATH)
        self.assertEqual(200, status)
        row, = answer["results"]
        self.assertEqual(23.5, row["taux_co2"])
        self.assertRegex(row["date_heure"], r"^\d{4}-\d\d-\d\dT\d\d:(00|15|30|45):00\+01:00$")
        self.assertEqual([], rte.complaints)

    def test_of_electricity_maps(self):
        emaps = self.start(ElectricityMaps, zone="DE")
        path = "/v3/carbon-intensity/latest?zone=DE&emissionFactorType=lifecycle&shouldUseFallbackCallerLookup=false"
        self.assertEqual((401, {"error": "the key is not known"}), self.ask(emaps, path))
        status, answer = self.ask(emaps, path, auth_token=emaps.TOKEN)
        self.assertEqual((200, "DE", 50), (status, answer["zone"], answer["carbonIntensity"]))
        self.assertEqual([], emaps.complaints)

    def test_of_watttime(self):
        wt = self.start(WattTime, "912.4")
        end = int(wt.newest()) // 60 * 60
        path = (f"/v3/historical?region=CAISO_NORTH&start={utc(end - 1200, '%Y-%m-%dT%H:%MZ')}&"
                f"end={utc(end, '%Y-%m-%dT%H:%MZ')}&signal_type=co2_moer")
        wt.is_asked_for = lambda request: True  # the end is not of now
        self.assertEqual(401, self.ask(wt, path, Authorization="Bearer none")[0])
        self.assertEqual(401, self.ask(wt, "/login", Authorization="Basic bm9uZTpub25l")[0])
        basic = b64encode(f"{wt.USER}:{wt.PASSWORD}".encode()).decode()
        status, answer = self.ask(wt, "/login", Authorization=f"Basic {basic}")
        self.assertEqual((200, {"token": "wt-token-2"}), (status, answer))
        status, answer = self.ask(wt, path, Authorization="Bearer wt-token-2")
        newest = max(answer["data"], key=lambda point: point["point_time"])
        self.assertEqual((200, 912.4), (status, newest["value"]))
        self.assertEqual(Decimal("413.858"), wt.grams)
        self.assertEqual([], wt.complaints)

    def test_of_great_britain_and_its_parts(self):
        nation, region, place = (self.start(UkCarbonIntensity, zone=zone) for zone in (None, "13", "RG10"))
        half, = self.ask(nation, "/intensity")[1]["data"]
        self.assertEqual(50, half["intensity"]["actual"])
        nation.estimated = True
        half, = self.ask(nation, "/intensity")[1]["data"]
        self.assertEqual((50, None), (half["intensity"]["forecast"], half["intensity"]["actual"]))
        answer, = self.ask(region, "/regional/regionid/13")[1]["data"]
        self.assertEqual((13, 50), (answer["regionid"], answer["data"][0]["intensity"]["forecast"]))
        answer, = self.ask(place, "/regional/postcode/RG10")[1]["data"]
        self.assertEqual("RG10", answer["postcode"])
        self.assertEqual([], nation.complaints + region.complaints + place.complaints)

    def test_of_entsoe(self):
        entsoe = self.start(Entsoe, "50.5")
        hour = int(entsoe.newest() + entsoe.lag_s)
        path = (f"/api?documentType=A75&processType=A16&in_Domain=10YFR-RTE------C&periodStart="
                f"{utc(hour - 12 * 3600, '%Y%m%d%H%M')}&periodEnd={utc(hour, '%Y%m%d%H%M')}&securityToken=")
        self.assertEqual(401, self.ask(entsoe, path + "none")[0])
        status, answer = self.ask(entsoe, path + entsoe.TOKEN)
        self.assertEqual(200, status)
        for quantity in ("385", "7695"):  # of coal and nuclear power
            self.assertIn(f"<position>2</position><quantity>{quantity}</quantity>", answer)
        self.assertEqual(Decimal("50.5"), (385 * Decimal(820) + 7695 * Decimal(12)) / (385 + 7695))
        self.assertEqual([], entsoe.complaints)


class WrongQuestions(DoubleTestCase):
    def test_are_refused_and_remembered(self):
        for path, headers in (("/elsewhere", {}), (RTE_PATH + "&limit=1", {}), (RTE_PATH.replace("&limit=1", ""), {}),
                              (RTE_PATH, {"auth_token": "x"}), (RTE_PATH, {"Accept": "text/html"}),
                              (RTE_PATH, {"User-Agent": "curl"})):
            with self.subTest(path=path, **headers):
                rte = self.start(Rte)
                status, answer = self.ask(rte, path, **headers)
                self.assertEqual((400, "ODSQLError"), (status, answer["error_code"]))
                self.assertEqual(1, len(rte.complaints))


class Variations(DoubleTestCase):
    def test_of_what_is_said(self):
        uk = self.start(UkCarbonIntensity, zone="13")
        path = "/regional/regionid/13"
        uk.answer = saying('"abc"')
        self.assertEqual("abc", self.ask(uk, path)[1]["data"][0]["data"][0]["intensity"]["forecast"])
        uk.answer = of_zone("12")
        self.assertEqual(12, self.ask(uk, path)[1]["data"][0]["regionid"])
        uk.answer = refusing(500, "broken")
        self.assertEqual((500, {"error": {"code": "500", "message": "broken"}}), self.ask(uk, path))
        uk.answer = redirecting("https://elsewhere.example")
        self.assertEqual(302, self.ask(uk, path)[0])
        uk.answer = Request.page
        self.assertIn("<html>", self.ask(uk, path)[1])
        uk.answer = None
        self.assertEqual(200, self.ask(uk, path)[0])
        self.assertEqual([], uk.complaints)

    def test_of_how_it_is_sent(self):
        uk = self.start(UkCarbonIntensity)
        uk.answer = Request.truncate
        with self.assertRaises(http.client.IncompleteRead):
            self.ask(uk, UK_PATH)
        uk.answer = Request.flood
        self.assertEqual(200, self.ask(uk, UK_PATH)[0])
        uk.garbage = True
        with self.assertRaises(ssl.SSLError):
            self.ask(uk, UK_PATH)

    def test_one_that_never_ends_is_ended_with_the_service(self):
        uk = self.start(UkCarbonIntensity)
        for uk.answer, amount in ((Request.drip, 3), (Request.flood_in_chunks, 3 << 20)):
            connection = self.connect(uk)
            connection.request("GET", UK_PATH, headers={"User-Agent": "wattribute/0", "Accept": uk.media_type})
            self.assertEqual(amount, len(connection.getresponse().read(amount)))

    def test_what_has_not_changed_is_not_said_again(self):
        uk = self.start(UkCarbonIntensity)
        uk.has_etags = True
        connection = self.connect(uk)
        headers = {"User-Agent": "wattribute/0", "Accept": uk.media_type}
        for expected in (200, 304):
            connection.request("GET", UK_PATH, headers=headers)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(expected, answer.status)
            headers["If-None-Match"] = answer.headers["ETag"]
        self.assertEqual(1, uk.unchanged)

    def test_one_that_hangs_up_needs_a_connection_for_each_question(self):
        uk = self.start(UkCarbonIntensity)
        connection, headers = self.connect(uk), {"User-Agent": "wattribute/0", "Accept": uk.media_type}
        for uk.hangs_up, connections in ((False, 1), (True, 1), (True, 2)):
            connection.request("GET", UK_PATH, headers=headers)
            connection.getresponse().read()
            self.assertEqual(connections, uk.connections)

    def test_another_certificate_is_presented_from_now_on(self):
        uk = self.start(UkCarbonIntensity)
        self.assertEqual(200, self.ask(uk, UK_PATH)[0])
        uk.present(Authority(self.directory, "stranger").certify("other", "IP:127.0.0.1"))
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask(uk, UK_PATH)


class Tunnels(DoubleTestCase):
    def through(self, proxy, **headers):
        connection = http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=20, context=self.trust)
        connection.set_tunnel(UkCarbonIntensity.host, 443, headers)
        self.addCleanup(connection.close)
        connection.request("GET", UK_PATH, headers={"User-Agent": "wattribute/0", "Accept": "application/json"})
        return connection.getresponse().status

    def test_to_the_hosts_that_it_knows(self):
        uk = self.start(UkCarbonIntensity)
        target = f"{uk.host}:443"
        with Proxy({target: ("127.0.0.1", uk.port)}) as proxy:
            self.assertEqual(200, self.through(proxy))
            self.assertEqual([target], proxy.asked)
            proxy.routes = {}
            with self.assertRaisesRegex(OSError, "502"):
                self.through(proxy)
        self.assertEqual([uk.host], uk.server_names)

    def test_only_for_whom_it_knows(self):
        uk = self.start(UkCarbonIntensity)
        with Proxy({f"{uk.host}:443": ("127.0.0.1", uk.port)}, "me:secret") as proxy:
            with self.assertRaisesRegex(OSError, "407"):
                self.through(proxy)
            self.assertEqual(200, self.through(proxy, **{"Proxy-Authorization": "Basic bWU6c2VjcmV0"}))

    def test_and_nothing_else(self):
        with Proxy({}) as proxy, socket.create_connection(("127.0.0.1", proxy.port), 5) as connection:
            connection.sendall(b"GET http://elsewhere.example/ HTTP/1.1\r\n\r\n")
            self.assertIn(b" 405 ", connection.recv(1000))


if __name__ == "__main__":
    harness.main()
