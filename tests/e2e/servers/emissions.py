"""The services that tell what a grid emits, as far as they are asked. All that they say is invented.

Each answers as documented, and only to the question and key that are: anything else is put among its complaints and
refused. `value`, `age_s` and `answer`, a function of the request in place of the documented answer, may change any time.
"""
import datetime
import hashlib
import json
import re
import time
import urllib.parse
from base64 import b64encode
from decimal import ROUND_HALF_UP, Decimal

from servers import https

HOUR_S = 3600
GRAMS_PER_POUND = Decimal("453.59237")
MILLIGRAM = Decimal("0.001")
SECRET_HEADERS = ("auth-token", "authorization", "cookie", "proxy-authorization", "x-api-key")
RAW = "raw text"  # is replaced in JSON, quotes and all, by what a number should be


def utc(seconds, form="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(form)


def seconds_of(text, form):
    """None: it is not of this form."""
    try:
        return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc).timestamp()
    except (TypeError, ValueError):
        return None


class Provider(https.Service):
    """What they share. Values are of the newest whole period, and `age_s` older if wanted."""

    name = host = zone = None
    signal, basis = "average", "direct"
    media_type = "application/json"
    period_s, lag_s = 900, 0
    estimated = False
    secrets = ()
    flood_bytes = 10 << 20  # more than anybody should take

    def __init__(self, certificate, value="50", zone=None, **options):
        self.value, self.zone, self.age_s = Decimal(value), zone or self.zone, 0
        self.answer = None
        self.has_etags, self.unchanged = False, 0
        self.requests = []  # (seconds since the epoch, headers) of each that came
        self.complaints = []
        self.server_names = []  # those that clients asked for in TLS
        super().__init__(Request, certificate, **options)

    def present(self, certificate):
        super().present(certificate)
        self.context.sni_callback = lambda _, name, __: self.server_names.append(name)

    @property
    def labels(self):
        return {"provider": self.name, "zone": self.zone, "signal": self.signal, "basis": self.basis}

    @property
    def grams(self):
        """Per kWh, as it should be understood."""
        return self.value

    def newest(self):
        """The second that its value is for."""
        return (time.time() - self.lag_s) // self.period_s * self.period_s - self.age_s

    # --- what each is about ---

    def document(self, value, zone, at):
        """An answer; `value` stands there where a number should."""
        raise NotImplementedError

    def is_asked_for(self, request):
        """Whether path and query are as documented."""
        raise NotImplementedError

    def is_allowed(self, request):
        """Whether it has the key."""
        return True

    def error(self, status, message):
        return {"error": message}

    # --- answers ---

    def body(self, value=None, zone=None, at=None):
        """The documented answer, or a variation of it."""
        document = self.document(str(self.value) if value is None else value, zone or self.zone,
                                 self.newest() if at is None else at)
        return document if isinstance(document, bytes) else json.dumps(document).encode()

    def complaint(self, request):
        accepted = request.headers.get("Accept", "")
        sent = [name for name in SECRET_HEADERS if name in request.headers]
        if request.command != "GET" or request.body:
            return f"{request.command} with {len(request.body)} bytes"
        if self.media_type not in accepted:
            return f"Accept: {accepted}"
        if not request.headers.get("User-Agent", "").startswith("wattribute/"):
            return f"User-Agent: {request.headers.get('User-Agent')}"
        if len(sent) > 1 or (sent and not self.secrets):
            return f"secrets in {sent}"
        if not self.is_asked_for(request):
            return f"a question that it does not know: {request.path}"
        return None

    def respond(self, request):
        self.requests.append((time.time(), request.headers))
        complaint = self.complaint(request)
        if complaint:
            self.complaints.append(complaint)
            request.refuse(400, complaint)
        elif not self.is_allowed(request):
            request.refuse(401, "the key is not known")
        elif self.answer:
            self.answer(request)
        else:
            self.tell(request)

    def tell(self, request):
        body = self.body()
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.has_etags and request.headers.get("If-None-Match") == tag:
            self.unchanged += 1
            request.reply(b"", 304, {"ETag": tag})
        else:
            request.reply(body, headers={"ETag": tag} if self.has_etags else None)


class Request(https.Request):
    def handle_any(self):
        self.resource, _, query = self.path.partition("?")
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        self.query = dict(pairs) if len(dict(pairs)) == len(pairs) else {"twice": query}
        self.service.respond(self)

    def reply(self, body, status=200, headers=None, length=None):
        super().reply(body, status, {"Content-Type": f"{self.service.media_type}; charset=utf-8", **(headers or {})},
                      length)

    def refuse(self, status, message, **headers):
        """In the words of its service."""
        error = self.service.error(status, message)
        self.reply(error if isinstance(error, bytes) else json.dumps(error).encode(), status,
                   {name.replace("_", "-"): value for name, value in headers.items()})

    def truncate(self):
        body = self.service.body()
        self.break_off(body[:len(body) // 2])

    def flood(self):
        self.reply(self.service.body() + b" " * self.service.flood_bytes)

    def flood_in_chunks(self):
        """Without saying how much it will be; one that is not stopped never ends."""
        self.begin_stream()
        self.chunk(self.service.body())
        while not self.service.stopped.is_set():
            self.chunk(b" " * (1 << 20))

    def page(self):
        """What a captive portal says."""
        self.reply(b"<!DOCTYPE html><html><body>Please log in: <a href='https://portal.example/'>", 200,
                   {"Content-Type": "text/html"})

    def disguised_page(self):
        self.reply(b"<!DOCTYPE html><html><body>Please log in")


def saying(value):
    """An answer whose number is this text."""
    return lambda request: request.reply(request.service.body(value))


def of_zone(zone):
    return lambda request: request.reply(request.service.body(zone=zone))


def of_time(at):
    return lambda request: request.reply(request.service.body(at=at))


def refusing(status, message, **headers):
    return lambda request: request.refuse(status, message, **headers)


def redirecting(url):
    return lambda request: request.reply(b"", 302, {"Location": url + request.path})


def raw_json(document, value):
    return json.dumps(document).replace(f'"{RAW}"', value).encode()


class Rte(Provider):
    name, host, zone = "rte", "odre.opendatasoft.com", "FR"

    QUERY = {"select": "taux_co2,date_heure", "where": "taux_co2 is not null", "order_by": "date_heure desc",
             "limit": "1", "timezone": "Europe/Paris", "include_links": "false", "include_app_metas": "false"}

    def is_asked_for(self, request):
        return (request.resource == "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records" and
                request.query == self.QUERY)

    def document(self, value, zone, at):
        return raw_json({"total_count": 41, "results": [
            {"taux_co2": RAW, "date_heure": utc(at + HOUR_S, "%Y-%m-%dT%H:%M:%S+01:00")}]}, value)

    def error(self, status, message):
        return {"error_code": "ODSQLError", "message": message}


class ElectricityMaps(Provider):
    name, host, zone = "electricity_maps", "api.electricitymaps.com", "FR"
    basis = "lifecycle"
    period_s = HOUR_S
    TOKEN = "emaps-5a1d-secret"
    secrets = (TOKEN,)

    def is_asked_for(self, request):
        return request.resource == "/v3/carbon-intensity/latest" and request.query == {
            "zone": self.zone, "emissionFactorType": self.basis, "shouldUseFallbackCallerLookup": "false"}

    def is_allowed(self, request):
        return request.headers.get("auth-token") == self.TOKEN

    def document(self, value, zone, at):
        return raw_json({
            "zone": zone, "carbonIntensity": RAW, "datetime": utc(at, "%Y-%m-%dT%H:%M:%S.000Z"),
            "updatedAt": utc(at, "%Y-%m-%dT%H:%M:%S.204Z"), "createdAt": utc(at, "%Y-%m-%dT%H:%M:%S.117Z"),
            "emissionFactorType": self.basis, "isEstimated": self.estimated,
            "estimationMethod": "TIME_SLICER_AVERAGE" if self.estimated else None}, value)


class WattTime(Provider):
    """Its `value` is in pounds per MWh. `login` replaces the answer to a login; tokens end when they are deleted."""

    name, host, zone = "watttime", "api.watttime.org", "CAISO_NORTH"
    signal = "marginal"
    period_s = 300
    USER, PASSWORD = "watts", "w@tt: secret%1"
    secrets = (PASSWORD, b64encode(f"{USER}:{PASSWORD}".encode()).decode(), "wt-token-")

    def __init__(self, *arguments, **options):
        self.login, self.logins, self.tokens = None, 0, set()
        super().__init__(*arguments, **options)

    @property
    def grams(self):
        return (self.value * GRAMS_PER_POUND / 1000).quantize(MILLIGRAM, ROUND_HALF_UP)

    def is_asked_for(self, request):
        if request.resource == "/login":
            return request.query == {}
        start, end = (seconds_of(request.query.get(name), "%Y-%m-%dT%H:%MZ") for name in ("start", "end"))
        return (request.resource == "/v3/historical" and set(request.query) == {"region", "start", "end", "signal_type"}
                and request.query["region"] == self.zone and request.query["signal_type"] == "co2_moer"
                and None not in (start, end) and end - start == 1200 and 0 <= time.time() - end < 120)

    def is_allowed(self, request):
        kind, _, secret = request.headers.get("Authorization", "").partition(" ")
        if request.resource == "/login":
            return (kind, secret) == ("Basic", self.secrets[1])
        return kind == "Bearer" and secret in self.tokens

    def respond(self, request):
        if request.resource != "/login" or self.complaint(request):
            super().respond(request)
            return
        self.logins += 1
        if not self.is_allowed(request):
            request.refuse(401, "wrong user or password")
        elif self.login:
            self.login(request)
        else:
            self.tokens.add(f"wt-token-{self.logins}")
            request.reply(json.dumps({"token": f"wt-token-{self.logins}"}).encode())

    def document(self, value, zone, at):
        """Not in the order of time. What is no number is so at all times: else an older one would count."""
        older = 1 if re.fullmatch(r"[\d.]+", value) else RAW
        return raw_json({
            "data": [{"point_time": utc(at - 300, "%Y-%m-%dT%H:%M:%S+00:00"), "value": older},
                     {"point_time": utc(at, "%Y-%m-%dT%H:%M:%S+00:00"), "value": RAW,
                      "last_updated": utc(at + 72, "%Y-%m-%dT%H:%M:%S+00:00")},
                     {"point_time": utc(at - 600, "%Y-%m-%dT%H:%M:%S+00:00"), "value": older}],
            "meta": {"region": zone, "signal_type": "co2_moer", "units": "lbs_co2_per_mwh",
                     "data_point_period_seconds": 300, "warnings": [], "model": {"date": "2025-06-01"}}}, value)

    def error(self, status, message):
        return {"error": f"status {status}", "message": message}


class UkCarbonIntensity(Provider):
    """Not `estimated`: the half hour is settled, which those of a region never are."""

    name, host, zone = "uk_carbon_intensity", "api.carbonintensity.org.uk", "GB"
    period_s = 1800

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.estimated = self.zone != "GB"

    def is_asked_for(self, request):
        if self.zone == "GB":
            return request.path == "/intensity"
        kind = "regionid" if self.zone.isdigit() else "postcode"
        return request.path == f"/regional/{kind}/{self.zone}"

    def document(self, value, zone, at):
        half = {"from": utc(at, "%Y-%m-%dT%H:%MZ"), "to": utc(at + 1800, "%Y-%m-%dT%H:%MZ")}
        if zone == "GB":
            intensity = {"forecast": RAW, "actual": None} if self.estimated else {"forecast": 999, "actual": RAW}
            return raw_json({"data": [{**half, "intensity": {**intensity, "index": "moderate"}}]}, value)
        region = {"regionid": int(zone)} if zone.isdigit() else {"regionid": 12, "postcode": zone}
        return raw_json({"data": [{**region, "dnoregion": "somebody", "shortname": "somewhere", "data": [
            {**half, "intensity": {"forecast": RAW, "index": "moderate"},
             "generationmix": [{"fuel": "gas", "perc": 38.2}, {"fuel": "wind", "perc": 30.1}]}]}]}, value)

    def error(self, status, message):
        return {"error": {"code": f"{status}", "message": message}}


class Entsoe(Provider):
    """Its `value`, from 12 to 820 with at most one digit behind the point, is of nuclear power and hard coal."""

    name, host, zone = "entsoe", "web-api.tp.entsoe.eu", "FR"
    basis = "lifecycle"
    media_type = "text/xml"
    period_s, lag_s = HOUR_S, 2 * HOUR_S
    TOKEN = "entsoe-7c2e-secret"
    secrets = (TOKEN,)
    AREAS = {"FR": "10YFR-RTE------C", "DE-LU": "10Y1001A1001A82H"}
    NUCLEAR, COAL = 12, 820  # grams per kWh

    def is_asked_for(self, request):
        start, end = (seconds_of(request.query.get(name), "%Y%m%d%H%M") for name in ("periodStart", "periodEnd"))
        fixed = {name: value for name, value in request.query.items()
                 if name not in ("periodStart", "periodEnd", "securityToken")}
        return (request.resource == "/api" and "securityToken" in request.query and fixed == {
            "documentType": "A75", "processType": "A16", "in_Domain": self.AREAS[self.zone]}
            and None not in (start, end) and end - start == 12 * HOUR_S and 0 <= time.time() - end < HOUR_S + 60)

    def is_allowed(self, request):
        return request.query["securityToken"] == self.TOKEN

    def series(self, kind, zone, at, *quantities, direction="in"):
        """Hours up to the one that begins at `at`; None is left out, and so as the one before it."""
        start = at - (len(quantities) - 1) * HOUR_S
        points = "".join(f"<Point><position>{i}</position><quantity>{quantity}</quantity></Point>"
                         for i, quantity in enumerate(quantities, 1) if quantity is not None)
        return (f"<TimeSeries><mRID>{kind}</mRID><{direction}BiddingZone_Domain.mRID codingScheme='A01'>"
                f"{self.AREAS[zone]}</{direction}BiddingZone_Domain.mRID><quantity_Measure_Unit.name>MAW"
                f"</quantity_Measure_Unit.name><curveType>A03</curveType><MktPSRType><psrType>{kind}</psrType></MktPSRType>"
                f"<Period><timeInterval><start>{utc(start, '%Y-%m-%dT%H:%MZ')}</start>"
                f"<end>{utc(at + HOUR_S, '%Y-%m-%dT%H:%MZ')}</end></timeInterval><resolution>PT60M</resolution>"
                f"{points}</Period></TimeSeries>")

    def document(self, value, zone, at):
        """Megawatts such that their mean is the value; what is no number stands for those of coal. Water that is
        pumped or let down again, and an hour that only coal has told, change nothing."""
        is_number = re.fullmatch(r"\d+(\.\d)?", value)
        coal = str((Decimal(value) - self.NUCLEAR) * 10).removesuffix(".0") if is_number else value
        nuclear = str((self.COAL - Decimal(value)) * 10).removesuffix(".0") if is_number else 5000
        return ("<?xml version='1.0' encoding='UTF-8'?>\n<GL_MarketDocument "
                "xmlns='urn:iec62325.351:tc57wg16:451-6:generationloaddocument:3:0'>"
                + self.series("B14", zone, at, 1, nuclear, None)
                + self.series("B05", zone, at + HOUR_S, 1, coal, None, 9999)
                + self.series("B10", zone, at, 800, 900)
                + self.series("B10", zone, at, 700, 600, direction="out") + "</GL_MarketDocument>").encode()

    def error(self, status, message):
        return (f"<?xml version='1.0'?><Acknowledgement_MarketDocument xmlns='urn:iec62325.351:tc57wg16:451-1:"
                f"acknowledgementdocument:7:0'><Reason><code>999</code><text>{message}</text></Reason>"
                f"</Acknowledgement_MarketDocument>").encode()


PROVIDERS = (Rte, ElectricityMaps, WattTime, UkCarbonIntensity, Entsoe)
