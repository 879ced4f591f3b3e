"""--web.config.file: TLS, client certificates, users and headers, against promtool, Prometheus and
clients that mean no good."""
import base64
import contextlib
import mmap
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from certificates import Authority
from harness import SOON_S, Connection, Exporter, TestCase, connect, exchange, prometheus_tool, run, wait_until
from prometheus import Prometheus
from servers import require

PASSWORD = "hunter2"
QUICK = "$2b$04$kddmW3/WKIOo31gAQg6EFeAaeVhyi0qUjxJBOa53FmqDmKqSQYoN6"  # of hunter2
USUAL = "$2b$10$y8YhjRiElBb/8w9Cadfl6eIUy2kOk10HGKYHu4o53MmaiN1xg62Nq"  # of hunter2
OTHER = "$2b$04$DTWZ4zoQyzvu2Rj8sMZrJOpBm0DZj2bDD0xQjeZFQ3jRZ0SOl0f4i"  # of correct horse
LOOPBACK = ("DNS:localhost", "IP:127.0.0.1")
PATHS = ("/metrics", "/", "/-/healthy", "/-/ready", "/health", "/nowhere")

REQUIRED = """
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
"""

PROMETHEUS = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: right
  scheme: https
  tls_config: {{ca_file: {d}/ca.crt, cert_file: {d}/client.crt, key_file: {d}/client.key}}
  basic_auth: {{username: alice, password: hunter2}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: wrong_password
  scheme: https
  tls_config: {{ca_file: {d}/ca.crt, cert_file: {d}/client.crt, key_file: {d}/client.key}}
  basic_auth: {{username: alice, password: hunter3}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: no_password
  scheme: https
  tls_config: {{ca_file: {d}/ca.crt, cert_file: {d}/client.crt, key_file: {d}/client.key}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: wrong_authority
  scheme: https
  tls_config: {{ca_file: {d}/stranger.crt, cert_file: {d}/client.crt, key_file: {d}/client.key}}
  basic_auth: {{username: alice, password: hunter2}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: no_certificate
  scheme: https
  tls_config: {{ca_file: {d}/ca.crt}}
  basic_auth: {{username: alice, password: hunter2}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: strange_certificate
  scheme: https
  tls_config: {{ca_file: {d}/ca.crt, cert_file: {d}/strange.crt, key_file: {d}/strange.key}}
  basic_auth: {{username: alice, password: hunter2}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: plain
  basic_auth: {{username: alice, password: hunter2}}
  static_configs: [{{targets: ['{address}']}}]
"""


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_sanitized():
    with open(harness.binary(), "rb") as file:
        return b"__asan_init" in file.read()


def rss_kib(pid):
    return int(harness.process_status(pid)["VmRSS"].split()[0])


class SecureExporter(Exporter):
    """One that is asked over TLS (with a context) and with a password, unless a test does not."""

    def __init__(self, *flags, context=None, user="alice", password=PASSWORD, **options):
        super().__init__(*flags, **options)
        self.context, self.user, self.password = context, user, password

    def dial(self, timeout=10, context=None):
        sock = connect(self.address, timeout)
        context = context or self.context
        try:
            return context.wrap_socket(sock, server_hostname="localhost") if context else sock
        except BaseException:
            sock.close()
            raise

    def ask(self, path="/metrics", method="GET", context=None, timeout=10, authorization=True,
            **headers):
        connection = Connection(self.address, timeout)
        if authorization is True:
            authorization = basic(self.user, self.password)
        if authorization:
            headers["authorization"] = authorization
        try:
            connection.sock = self.dial(timeout, context)
            return connection.ask(path, method, **headers)
        finally:
            connection.close()


class WebConfigCase(TestCase):
    """With the certificates of one authority, and of a stranger, in each test's directory."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = cls.enterClassContext(tempfile.TemporaryDirectory())
        authority = Authority(cls.certificates)
        for name in ("server", "newer", "wrong-purpose"):
            authority.certify(name, *LOOPBACK, purpose="serverAuth")
        authority.certify("client", "DNS:prometheus.example", "URI:spiffe://x/prometheus",
                          purpose="clientAuth")
        Authority(cls.certificates, "stranger").certify("strange", *LOOPBACK, purpose="clientAuth")

    def setUp(self):
        super().setUp()
        shutil.copytree(self.certificates, self.directory, dirs_exist_ok=True)

    def config(self, text, name="web.yml"):
        return self.write(name, text.encode())

    def tls(self, more="", rest=""):
        return self.config("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
                           + more.strip("\n") + "\n" + rest)

    def users(self, hash_of_alice=QUICK):
        return f"basic_auth_users:\n  alice: {hash_of_alice}\n"

    def context(self, certificate=None, authority="ca"):
        context = ssl.create_default_context(cafile=self.path(authority + ".crt"))
        if certificate:
            context.load_cert_chain(self.path(certificate + ".crt"), self.path(certificate + ".key"))
        return context

    def secure(self, path, context=None, **options):
        return SecureExporter(f"--web.config.file={path}", context=context, **options)


class Scraped(WebConfigCase):
    def test_prometheus_scrapes_with_certificate_and_password_and_with_nothing_less(self):
        path = self.tls(REQUIRED, self.users(USUAL))
        with self.secure(path, self.context("client")) as exporter:
            text = PROMETHEUS.format(d=self.directory, address=exporter.address)
            with Prometheus(self.directory, text) as prometheus:
                def scraped():
                    targets = prometheus.api("targets")["activeTargets"]
                    return len(targets) == 7 and all(
                        target["health"] != "unknown" for target in targets) and {
                            target["labels"]["job"]: target["lastError"] for target in targets}
                errors = wait_until("all jobs were tried", scraped, 30)
                wait_until("samples of the right one", lambda: prometheus.api(
                    "query", query="wattribute_build_info{job='right'}")["result"], 20)
        self.assertEqual("", errors["right"])
        for job, error in (("wrong_password", "401"), ("no_password", "401"),
                           ("wrong_authority", "certificate"), ("no_certificate", ""),
                           ("strange_certificate", ""), ("plain", "")):
            self.assertNotEqual("", errors[job], job)
            self.assertIn(error, errors[job])


class Passwords(WebConfigCase):
    def test_no_path_is_answered_without_the_right_password(self):
        wrong = (None, basic("alice", "hunter3"), basic("alice", ""), basic("bob", PASSWORD),
                 basic("", ""), basic("alice", PASSWORD + "\0"), basic("alice", PASSWORD + " "),
                 basic("Alice", PASSWORD), basic("alice", "x" * 600), "Basic", "Basic ",
                 "Basic !!!!", "Bearer " + PASSWORD, "Basic " + PASSWORD, "Basic YWxpY2U=",
                 basic("alice", PASSWORD).rstrip("="), "Negotiate x", QUICK, basic("alice", QUICK))
        with self.secure(self.config(self.users())) as exporter:
            for path in PATHS:
                for authorization in wrong:
                    response = exporter.ask(path, authorization=authorization)
                    self.assertEqual(401, response.status, (path, authorization))
                    self.assertIn("Basic", response.headers["WWW-Authenticate"])
                    self.assertNotIn(b"wattribute_", response.body)
            self.assertEqual(404, exporter.ask("/nowhere").status)
            self.assertEqual(200, exporter.ask("/-/healthy").status)
            self.assertEqual(200, exporter.ask(authorization=basic("alice", PASSWORD).replace(
                "Basic", "basic")).status)
            self.assertEqual(401, exporter.ask(method="HEAD", authorization=None).status)
            exporter.page()

    def test_one_connection_is_asked_for_a_password_at_every_request(self):
        with self.secure(self.config(self.users())) as exporter:
            connection = Connection(exporter.address)
            self.addCleanup(connection.close)
            right = basic("alice", PASSWORD)
            for authorization, status in ((None, 401), (right, 200), (None, 401), (right, 200)):
                headers = {"authorization": authorization} if authorization else {}
                self.assertEqual(status, connection.ask("/metrics", **headers).status)

    def test_a_flood_of_wrong_passwords_neither_delays_a_scrape_nor_costs_memory(self):
        with self.secure(self.config(self.users(USUAL))) as exporter:
            exporter.page()  # its password is known from here on
            front = exporter.server()
            statuses, before = [], rss_kib(front)

            def guess(number):
                for attempt in range(4):
                    response = exporter.ask(authorization=basic("alice", f"{number}-{attempt}"),
                                            timeout=60)
                    statuses.append((response.status, response.headers.get("Retry-After")))
            guessers = [threading.Thread(target=guess, args=(number,)) for number in range(50)]
            for guesser in guessers:
                guesser.start()
            delays = []
            while any(guesser.is_alive() for guesser in guessers):
                began = time.monotonic()
                exporter.page()
                delays.append(time.monotonic() - began)
            for guesser in guessers:
                guesser.join()
            self.assertEqual(200, len(statuses))
            self.assertEqual({(401, None), (503, "1")}, set(statuses))
            self.assertGreater(len(delays), 3)
            self.assertLess(max(delays), SOON_S)
            # The sanitizer keeps what is freed, 256 MiB of it.
            limit_mib = 320 if is_sanitized() else 8
            self.assertLess(rss_kib(front) - before, limit_mib * 1024)
            self.assertEqual(front, exporter.server())

    def test_it_ends_soon_while_passwords_are_being_checked(self):
        with self.secure(self.config(self.users(USUAL))) as exporter:
            for number in range(9):
                sock = exporter.dial()
                self.addCleanup(sock.close)
                sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: %b\r\n\r\n"
                             % basic("alice", str(number)).encode())
            self.assertLess(exporter.stop(), SOON_S)


class Certificates(WebConfigCase):
    def accepted(self, exporter, certificate):
        try:
            return exporter.ask("/-/healthy", context=self.context(certificate)).status == 200
        except OSError:
            return False

    def test_who_is_let_in_depends_on_the_certificate_and_the_policy(self):
        names = (None, "client", "strange", "wrong-purpose")
        authority = "  client_ca_file: ca.crt\n"
        sans = "  client_allowed_sans: ['%s']\n"
        for policy, more, welcome in (
                ("NoClientCert", "", names),
                ("RequestClientCert", authority, names),
                ("RequireAnyClientCert", authority, names[1:]),
                ("RequireAnyClientCert", "", names[1:]),
                ("VerifyClientCertIfGiven", authority, (None, "client")),
                ("RequireAndVerifyClientCert", authority, ("client",)),
                ("RequireAndVerifyClientCert", authority + "  max_version: TLS12\n", ("client",)),
                ("RequireAndVerifyClientCert", authority + sans % "prometheus.example", ("client",)),
                ("RequireAndVerifyClientCert", authority + sans % "spiffe://x/prometheus",
                 ("client",)),
                ("RequireAndVerifyClientCert", authority + sans % "example", ()),
                ("RequireAnyClientCert", sans % "127.0.0.1", ("strange", "wrong-purpose"))):
            with self.subTest(policy=policy, more=more):
                path = self.tls(f"  client_auth_type: {policy}\n{more}")
                exporter = self.secure(path, self.context("client"))
                exporter.is_ready = lambda: True  # some let nobody in
                with exporter:
                    wait_until("it serves", lambda: self.accepted(exporter, "client")
                               or "client" not in welcome)
                    self.assertEqual(welcome, tuple(
                        name for name in names if self.accepted(exporter, name)))

    def test_versions_and_curves_are_as_configured(self):
        def version(exporter, curve=None, **limits):
            context = self.context()
            for name, value in limits.items():
                setattr(context, name, value)
            if curve:
                context.set_ecdh_curve(curve)
            try:
                with exporter.dial(context=context) as sock:
                    return sock.version()
            except OSError:
                return None
        old, new = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        with self.secure(self.tls("  min_version: TLS13"), self.context()) as exporter:
            self.assertEqual("TLSv1.3", version(exporter))
            self.assertIsNone(version(exporter, maximum_version=old))
        with self.secure(self.tls("  max_version: TLS12"), self.context()) as exporter:
            self.assertEqual("TLSv1.2", version(exporter))
            self.assertIsNone(version(exporter, minimum_version=new))
        with self.secure(self.tls("  curve_preferences: [CurveP384]"), self.context()) as exporter:
            self.assertEqual("TLSv1.3", version(exporter, curve="secp384r1"))
            self.assertIsNone(version(exporter, curve="prime256v1"))

    def serial(self, exporter):
        with exporter.dial() as sock:
            return sock.getpeercert()["serialNumber"]

    def replace(self, name, source):
        """As tools do it: a new file takes the old one's name."""
        shutil.copy(self.path(source), self.path(name + ".new"))
        os.rename(self.path(name + ".new"), self.path(name))

    def test_a_certificate_that_is_replaced_is_shown_to_new_connections(self):
        with self.secure(self.tls(), self.context()) as exporter:
            front, first = exporter.server(), self.serial(exporter)
            kept = Connection(exporter.address)
            self.addCleanup(kept.close)
            kept.sock = exporter.dial()
            self.assertEqual(200, kept.ask("/-/healthy").status)  # now it may rest for minutes
            self.replace("server.key", "newer.key")
            self.replace("server.crt", "newer.crt")
            wait_until("the newer certificate", lambda: self.serial(exporter) != first, 15)
            exporter.page()
            self.assertEqual(200, kept.ask("/-/healthy").status)
            # One that dies and its successor: the new one has it, too.
            os.kill(front, 9)
            exporter.server_deaths = 1
            wait_until("the next front", lambda: self.accepted(exporter, None), 10)
            self.assertNotEqual(first, self.serial(exporter))

    def test_a_broken_replacement_is_said_once_and_leaves_all_as_it_was(self):
        said = "the web config has changed and cannot be used; keeping the previous one"
        exporter = self.secure(self.tls(rest=self.users()), self.context())
        exporter.check_log = lambda: None  # it must have an error in this test
        with exporter:
            first = self.serial(exporter)
            self.write("server.crt", b"no certificate")
            error = exporter.wait_for_log(said, 15)["error"]
            self.assertIn("server.crt: not a certificate", error)
            self.assertEqual(first, self.serial(exporter))
            exporter.page()
            self.replace("server.crt", "server.key")
            wait_until("the next thing wrong with it", lambda: len(exporter.log(said)) == 2, 15)
            self.replace("server.crt", "newer.crt")
            wait_until("a key that does not belong to it", lambda: any(
                "is not the private key of" in line["error"] for line in exporter.log(said)), 15)
            self.assertEqual(first, self.serial(exporter))
            self.replace("server.key", "newer.key")
            wait_until("all is well again", lambda: self.serial(exporter) != first, 15)
            self.assertEqual(3, len(exporter.log(said)))
            self.config(self.users())
            wait_until("TLS stays on", lambda: any(
                "TLS cannot be switched off" in line["error"] for line in exporter.log(said)), 15)
            exporter.page()

    def test_users_and_headers_are_replaced_while_it_runs(self):
        frame = "http_server_config: {headers: {X-Frame-Options: %s}}\n"
        with self.secure(self.config(self.users() + frame % "deny")) as exporter:
            self.assertEqual("deny", exporter.ask().headers["X-Frame-Options"])
            self.config(f"basic_auth_users: {{bob: {OTHER}}}\n" + frame % "sameorigin")
            wait_until("alice is not known any more",
                       lambda: exporter.ask().status == 401, 15)
            exporter.user, exporter.password = "bob", "correct horse"
            for path in ("/metrics", "/", "/nowhere"):
                self.assertEqual("sameorigin", exporter.ask(path).headers["X-Frame-Options"])
            self.config("basic_auth_users: {}")
            wait_until("everybody may ask",
                       lambda: exporter.ask(authorization=None).status == 200, 15)
            self.assertIsNone(exporter.ask().headers["X-Frame-Options"])

    def test_a_file_that_is_emptied_switches_no_password_off(self):
        said = "the web config has changed and cannot be used; keeping the previous one"
        exporter = self.secure(self.config(self.users()))
        exporter.check_log = lambda: None  # it must have an error in this test
        with exporter:
            self.config("")
            self.assertIn("the file is empty", exporter.wait_for_log(said, 15)["error"])
            self.config("http_server_config: {http2: true}")
            wait_until("users are missing", lambda: any(
                "basic_auth_users is missing" in line["error"] for line in exporter.log(said)), 15)
            self.assertEqual(401, exporter.ask(authorization=None).status)
            exporter.page()

    def test_a_file_that_lost_its_client_auth_type_still_wants_certificates(self):
        said = "the web config has changed and cannot be used; keeping the previous one"
        exporter = self.secure(self.tls(REQUIRED), self.context("client"))
        exporter.check_log = lambda: None  # it must have an error in this test
        with exporter:
            self.tls()
            self.assertIn("client_auth_type is missing", exporter.wait_for_log(said, 15)["error"])
            exporter.page()
            self.tls("  client_auth_type: NoClientCert\n")
            wait_until("a client without one is let in", lambda: self.accepted(exporter, None), 15)

    def test_a_file_that_lost_its_names_of_clients_lets_no_others_in(self):
        said = "the web config has changed and cannot be used; keeping the previous one"
        exporter = self.secure(self.tls(REQUIRED + "  client_allowed_sans: [example]\n"), self.context("client"))
        exporter.check_log = lambda: None  # it must have an error in this test
        exporter.is_ready = lambda: True  # it lets nobody in
        with exporter:
            self.tls(REQUIRED + "  client_allowed_sans:\n")
            self.assertIn("client_allowed_sans is missing", exporter.wait_for_log(said, 15)["error"])
            self.assertFalse(self.accepted(exporter, "client"))
            self.tls(REQUIRED + "  client_allowed_sans: []\n")
            wait_until("the client is let in", lambda: self.accepted(exporter, "client"), 15)

    def test_headers_are_on_every_response_and_replace_our_own(self):
        headers = {"X-Frame-Options": "deny", "X-Content-Type-Options": "nosniff",
                   "X-XSS-Protection": "1; mode=block",
                   "Strict-Transport-Security": "max-age=31536000",
                   "Content-Security-Policy": "default-src 'self'"}
        text = self.users() + "http_server_config:\n  http2: true\n  headers:\n" + "".join(
            f'    {name}: "{value}"\n' for name, value in headers.items())
        with self.secure(self.tls(rest=text), self.context()) as exporter:
            for path in PATHS:
                for authorization in (True, None):
                    response = exporter.ask(path, authorization=authorization)
                    for name, value in headers.items():
                        self.assertEqual([value], response.headers.get_all(name), (path, name))


class Handshakes(WebConfigCase):
    def test_handshakes_that_drip_or_never_begin_are_cut_after_a_few_seconds(self):
        with self.secure(self.tls(), self.context()) as exporter:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = self.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
            with self.assertRaises(ssl.SSLWantReadError):
                client.do_handshake()
            hello = outgoing.read()
            silent, half, dripping = (connect(exporter.address) for _ in range(3))
            for sock in (silent, half, dripping):
                self.addCleanup(sock.close)
            began, cpu_before = time.monotonic(), cpu_s(exporter.server())
            half.sendall(hello[:-1])
            dripping.settimeout(0.2)
            ended = None
            for byte in hello[:60]:
                try:
                    dripping.send(bytes([byte]))
                    if dripping.recv(100) == b"":
                        ended = time.monotonic() - began
                        break
                except socket.timeout:
                    pass
                except OSError:
                    ended = time.monotonic() - began
                    break
                exporter.ask("/-/healthy")
            self.assertIsNotNone(ended, "a dripping handshake lives on")
            self.assertGreater(ended, 3)
            self.assertLess(ended, 15)
            self.assertLess(cpu_s(exporter.server()) - cpu_before, ended / 2, "it spins")
            for sock in (silent, half):
                sock.settimeout(8)
                self.assertEqual(b"", sock.recv(1000))

    def test_what_is_not_tls_is_not_answered(self):
        with self.secure(self.tls(), self.context()) as exporter:
            for text in (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x00",
                         b"\x16\x03\x01\xff\xff" + b"\xff" * 70000, os.urandom(4096), b"\0" * 500,
                         b"\x80\x2e\x01\x00\x02"):
                self.assertNotIn(b"wattribute_", exchange(exporter.address, text))
            exporter.page()

    def test_a_crowd_of_handshakes_leaves_scrapes_alone_and_nothing_behind(self):
        with self.secure(self.tls(), self.context()) as exporter:
            front = exporter.server()
            exporter.page()
            held = len(os.listdir(f"/proc/{front}/fd"))
            crowd = [connect(exporter.address) for _ in range(300)]
            for sock in crowd:
                self.addCleanup(sock.close)
                sock.sendall(b"\x16\x03\x01\x02\x00\x01")
            for _ in range(5):
                exporter.page()
            for sock in crowd:
                sock.close()
            wait_until("the descriptors are given back",
                       lambda: len(os.listdir(f"/proc/{front}/fd")) <= held, 15)


class Checked(WebConfigCase):
    """What is refused at the start, beside promtool."""

    def verdicts(self, path):
        """What promtool and we say."""
        theirs = subprocess.run([prometheus_tool("promtool"), "check", "web-config", path],
                                capture_output=True, timeout=20).returncode == 0
        ours = run("serve", f"--web.config.file={path}", "--listen-address=127.0.0.1:0", "--state-file=/")
        # A config that is fine gets as far as the state file, which is not.
        return theirs, b"cannot use the state file '/'" in ours.stderr, ours

    def test_files_that_promtool_refuses_are_refused_and_those_it_accepts_are_not(self):
        pair = "cert_file: server.crt, key_file: server.key"
        for text, good in (
                ("{}", True), ("tls_server_config:\n", True),
                ("basic_auth_users:\n", True), ("http_server_config: {http2: false}", True),
                (f"tls_server_config: {{{pair}}}", True),
                (f"tls_server_config: {{{pair}, min_version: TLS13}}", True),
                (f"tls_server_config: {{{pair}, prefer_server_cipher_suites: false}}", True),
                (f"tls_server_config: {{{pair}, curve_preferences: [X25519, CurveP256]}}", True),
                (f"tls_server_config: {{{pair}, client_auth_type: RequireAndVerifyClientCert, "
                 "client_ca_file: ca.crt}", True),
                (self.users(), True),
                ("http_server_config: {headers: {X-Frame-Options: deny}}", True),
                ("tls_server_config: {cert_file: server.crt}", False),
                ("tls_server_config: {key_file: server.key}", False),
                ("tls_server_config: {cert_file: nowhere.crt, key_file: server.key}", False),
                ("tls_server_config: {cert_file: server.crt, key_file: newer.key}", False),
                ("tls_server_config: {cert_file: server.key, key_file: server.key}", False),
                ("tls_server_config: {cert_file: server.crt, key_file: server.crt}", False),
                (f"tls_server_config: {{{pair}, client_auth_type: Whatever}}", False),
                (f"tls_server_config: {{{pair}, client_ca_file: ca.crt}}", False),
                (f"tls_server_config: {{{pair}, client_auth_type: RequireAndVerifyClientCert, "
                 "client_ca_file: nowhere.crt}", False),
                (f"tls_server_config: {{{pair}, min_version: TLS99}}", False),
                (f"tls_server_config: {{{pair}, curve_preferences: [P1]}}", False),
                (f"tls_server_config: {{{pair}, unknown: 1}}", False),
                (f"tls_server_config: {{{pair}, cert_file: server.crt}}", False),
                ("tls_server_config: 5", False), ("tls_server_config: [a]", False),
                ("basic_auth_users: {alice: hunter2}", False),
                ("basic_auth_users: {alice: $1$abc}", False),
                ("basic_auth_users: [alice]", False),
                ("basic_auth_users: {alice: %s, alice: %s}" % (QUICK, QUICK), False),
                ("http_server_config: {headers: {X-Frame-Options: maybe}}", False),
                ("http_server_config: {headers: {Server: me}}", False),
                ("http_server_config: {http2: maybe}", False),
                ("http_server_config: {http3: true}", False),
                ("unknown: 1", False), ("a: [", False), ("- a", False)):
            with self.subTest(text):
                theirs, ours, result = self.verdicts(self.config(text))
                self.assertEqual((good, good), (theirs, ours), result.stderr)

    def test_what_cannot_be_honoured_is_refused_with_the_reason(self):
        pair = "cert_file: server.crt, key_file: server.key"
        self.write("empty", b"")
        for text, says in (
                (f"tls_server_config: {{{pair}, cipher_suites: [TLS_AES_128_GCM_SHA256]}}",
                 "cipher_suites is not supported"),
                (f"tls_server_config: {{{pair}, min_version: TLS10}}", "'TLS10' is insecure (RFC 8996); use TLS12 or TLS13"),
                (f"tls_server_config: {{{pair}, min_version: TLS13, max_version: TLS12}}",
                 "min_version is above max_version"),
                (f"tls_server_config: {{{pair}, client_auth_type: RequireAndVerifyClientCert}}",
                 "add client_ca_file"),
                (f"tls_server_config: {{{pair}, client_auth_type: RequireAndVerifyClientCert, "
                 "client_ca_file: server.key}", "server.key: not a certificate"),
                (f"tls_server_config: {{{pair}, client_auth_type: RequireAndVerifyClientCert, "
                 "client_ca_file: empty}", "empty: is empty"),
                ("tls_server_config: {min_version: TLS13}", "no cert_file"),
                ("rate_limit: {interval: 1s}", "rate_limit is not supported"),
                ("basic_auth_users: {alice: %s}" % QUICK.replace("$04$", "$31$"),
                 "cost 31 of the hash is out of range")):
            with self.subTest(text):
                _, ours, result = self.verdicts(self.config(text))
                self.assertFalse(ours)
                self.assertIn(says, result.stderr.decode())
                self.assertNotEqual(0, result.returncode)

    def test_it_is_read_when_privileges_are_gone_and_low_ports_are_bound(self):
        require.root()
        path = self.config("http_server_config: {headers: {X-Frame-Options: deny}}")
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), open("/proc/self/maps") as maps:
            first, last = re.search(rf"(?m)^(\w+)-(\w+) .* {re.escape(path)}$", maps.read()).groups()
            # The kernel lets no one through here who has given up CAP_SYS_ADMIN and CAP_CHECKPOINT_RESTORE.
            mapped = f"/proc/{os.getpid()}/map_files/{int(first, 16):x}-{int(last, 16):x}"
            try:
                with open(mapped):
                    pass
            except PermissionError:
                require.missing("/proc/PID/map_files cannot be read: this is not the root of the machine")
            done = run("serve", f"--web.config.file={mapped}", "--listen-address=127.0.0.1:0")
            self.assertEqual(2, done.returncode)
            self.assertIn(f"{mapped}: cannot be read: Operation not permitted", done.stderr.decode())
        for port in range(600, 1024):
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                break
        with Exporter(f"--web.config.file={path}", listen=(f"127.0.0.1:{port}",)) as exporter:
            self.assertEqual("deny", exporter.ask("/metrics").headers["X-Frame-Options"])

    def test_the_examples_of_the_manual_work(self):
        with open(os.path.join(harness.SOURCE_ROOT, "docs", "web-config.md")) as file:
            blocks = re.findall(r"```(\w+)\n(.*?)```", file.read(), re.DOTALL)
        command = next(text for kind, text in blocks if kind == "sh" and "openssl" in text)
        subprocess.run(["sh", "-ec", command], cwd=self.directory, check=True, capture_output=True)
        shutil.copy(self.path("ca.crt"), self.path("clients-ca.crt"))
        files = {re.match(r"# (\S+)", text)[1]: text for kind, text in blocks if kind == "yaml"}
        for name in ("/etc/wattribute/web.yml", "/etc/wattribute/web-clients.yml"):
            theirs, ours, result = self.verdicts(self.config(files[name]))
            self.assertEqual((True, True), (theirs, ours), (name, result.stderr))
        self.write("prometheus.yml", files["prometheus.yml"].replace(
            "/etc/prometheus/server.crt", self.path("server.crt")).replace(
            "/etc/prometheus/wattribute.password", self.write("password", b"hunter2")).encode())
        subprocess.run([prometheus_tool("promtool"), "check", "config", self.path("prometheus.yml")],
                       check=True, capture_output=True, timeout=20)
        context = ssl.create_default_context(cafile=self.path("server.crt"))
        context.check_hostname = False  # it is gpu-node-1's
        path = self.config(files["/etc/wattribute/web.yml"])
        with self.secure(path, context, user="prometheus") as exporter:
            exporter.page()

    def test_the_key_and_the_hash_are_never_shown(self):
        path = self.tls(rest="basic_auth_users:\n  alice: my-secret-password\n")
        result = run("serve", f"--web.config.file={path}")
        self.assertNotEqual(0, result.returncode)
        self.assertNotIn(b"my-secret-password", result.stderr)
        self.assertIn(b"htpasswd", result.stderr)

    def test_paths_are_relative_to_the_config_and_a_missing_file_is_named(self):
        os.mkdir(self.path("sub"))
        path = self.config("tls_server_config: {cert_file: ../server.crt, key_file: gone.key}",
                           "sub/web.yml")
        result = run("serve", f"--web.config.file={path}")
        self.assertIn(b"key_file " + self.path("sub/gone.key").encode(), result.stderr)
        result = run("serve", f"--web.config.file={self.path('none.yml')}")
        self.assertIn(b"none.yml: cannot be read", result.stderr)


if __name__ == "__main__":
    unittest.main()
