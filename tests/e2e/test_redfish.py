"""The node's power from its BMC over Redfish: a service that answers, lies, hangs or is somebody else. Whatever it does
costs its own readings and nothing else, and nobody but the BMC is told the password."""
import hashlib
import os
import ssl
import subprocess
import tempfile

import harness
from certificates import Authority
from harness import HARDWARE_ENERGY, SOON_S, Exporter, connect, fill, run, wait_until
from servers import require
from servers.kubernetes_api import KubernetesApi, ServiceAccount
from servers.redfish import (GPU, NODE, PASSWORD, ROOT, SESSIONS, SYSTEM, USER, Redfish, Request, collection, link)

FOUND = "reading the node's power from the BMC by Redfish"
DOWN = "source is down; its series go stale"
BACK = "source is back"
DIED = "a fetcher ended and is started again"
NO_NAMES = "names from the Kubernetes API are missing; all else is served"
STARTS = "wattribute_child_starts_total"
ENVIRONMENT = f"{NODE}/EnvironmentMetrics"
POWER = "wattribute_node_power_watts"
UP = "wattribute_source_up"


class RedfishTestCase(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-"))
        cls.authority = Authority(directory)
        cls.certificate = cls.authority.certify("server", "IP:127.0.0.1", "DNS:localhost")

    def setUp(self):
        super().setUp()
        self.credentials = self.write_credentials(PASSWORD)

    def write_credentials(self, password, mode=0o600):
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        path = self.write("credentials.yaml", f'username: {USER}\npassword: "{quoted}"\n'.encode())
        os.chmod(path, mode)
        return path

    def bmc(self, certificate=None):
        bmc = Redfish(certificate or self.certificate)
        self.addCleanup(bmc.__exit__)
        return bmc

    def flags(self, bmc, *more, trust=True):
        return (f"--redfish.url={bmc.url}", f"--redfish.credentials-file={self.credentials}",
                *([f"--redfish.ca-file={self.authority.crt}"] if trust else []), *more)

    def exporter(self, bmc, *more, trust=True, **options):
        return Exporter("--redfish.interval=1s", *self.flags(bmc, *more, trust=trust), **options)

    def wait_for_power(self, exporter, watts=None, seconds=20):
        def is_told(page):
            found = [float(value) for _, value in page.values(POWER, source="redfish")]
            return bool(found) and (watts is None or abs(found[0] - watts) < 0.001)
        return exporter.wait_for_page("the BMC's power is shown", is_told, seconds)

    def wait_for_error(self, exporter, text, seconds=15):
        line = exporter.wait_for_log(DOWN, seconds)
        self.assertEqual("redfish", line["source"])
        self.assertIn(text, line["error"])
        page = exporter.page()
        self.assertEqual(0, page.value(UP, source="redfish"))
        return page

    def assert_no_secret(self, exporter):
        for text in (PASSWORD, "token-1", USER):
            self.assertNotIn(text, exporter.log_text())


class Readings(RedfishTestCase):
    def test_the_power_is_shown_and_its_integral_is_the_energy(self):
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            wait_until("some readings", lambda: len(bmc.served) >= 6, 20)
            page = exporter.page()
            watts = float(page.value(POWER, source="redfish"))
            energy = float(page.value(HARDWARE_ENERGY, meter="node", meter_id="redfish"))
            count = 1 + next(i for i, (_, each) in enumerate(bmc.served) if abs(each - watts) < 0.001)
            self.assertGreaterEqual(count, 4)
            told = bmc.served[:count]
            expected = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(told, told[1:]))
            # Each end is a time of ours instead of the BMC's: an answer is on its way for a while.
            self.assertAlmostEqual(expected, energy, delta=0.5 * watts)
            self.assertEqual(1, page.value(UP, source="redfish"))
            self.assertEqual(ENVIRONMENT, exporter.log(FOUND)[0]["resource"])
            for pid in (exporter.pid, exporter.server()):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    self.assertNotIn(PASSWORD.encode(), file.read())
            self.assertEqual([], exporter.log(DOWN))
            self.assertEqual(1, bmc.connections)
            self.assertLess(exporter.stop(), SOON_S)
            self.assert_no_secret(exporter)
        self.assertEqual(1, bmc.logins)
        self.assertEqual([f"{SESSIONS}/1"], bmc.deleted)
        self.assertEqual({}, bmc.tokens)
        # The search is made once; then each reading is one question.
        self.assertEqual(1, len(bmc.asked("GET", f"{ROOT}/Chassis")))
        self.assertEqual(len(bmc.served), len(bmc.asked("GET", ENVIRONMENT)))

    def test_the_inputs_of_the_supplies_that_are_there_are_summed(self):
        bmc = self.bmc()
        bmc.with_supplies(("Enabled", bmc.read), ("Absent", 5000), ("Enabled", 300), ("StandbyOffline", None))
        bmc.watts = (311.5 for _ in iter(int, 1))
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter, 611.5)
            self.assertEqual("inputs of the power supplies", exporter.log(FOUND)[0]["what"])

    def test_of_two_power_controls_the_one_of_the_system_is_taken(self):
        bmc = self.bmc()
        bmc.with_power({"Name": "CPU", "PhysicalContext": "CPU", "PowerConsumedWatts": 150},
                       {"Name": "other", "PhysicalContext": "Chassis", "PowerConsumedWatts": 90},
                       {"Name": "System", "PowerConsumedWatts": lambda: 612, "RelatedItem": [link(SYSTEM)]})
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter, 612)

    def test_a_reading_that_is_null_is_none_and_another_place_is_looked_for(self):
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            bmc.with_power({"PowerConsumedWatts": 777})
            bmc.resources[ENVIRONMENT] = {"PowerWatts": {"Reading": None}}
            self.wait_for_error(exporter, "no plausible power")
            self.wait_for_power(exporter, 777)
            exporter.wait_for_log(BACK)
            self.assertEqual([ENVIRONMENT, f"{NODE}/Power"], [line["resource"] for line in exporter.log(FOUND)])

    def test_a_session_that_is_gone_is_opened_again(self):
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            bmc.tokens = {}
            before = len(bmc.served)
            wait_until("readings go on", lambda: len(bmc.served) >= before + 3)
            self.assertEqual(2, bmc.logins)
            self.assertEqual([], exporter.log(DOWN))
        self.assertEqual([f"{SESSIONS}/2"], bmc.deleted)

    def test_a_slow_logout_is_waited_for(self):
        bmc = self.bmc()
        bmc.faults[f"{SESSIONS}/1"] = Request.take_time
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            with connect(exporter.address) as client:
                fill(client)  # the front waits for it while the logout is under way
                exporter.stop()
        self.assertEqual([f"{SESSIONS}/1"], bmc.deleted)

    def test_without_sessions_user_and_password_go_along(self):
        bmc = self.bmc()
        bmc.faults[SESSIONS] = lambda request: request.reply(b"{}", 201)
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            self.assertEqual(1, len(bmc.asked("POST")))
        self.assertEqual([], bmc.asked("DELETE"))

    def test_names_of_pods_are_asked_for_at_the_same_time(self):
        require.root()  # the front changes its root
        bmc, account = self.bmc(), ServiceAccount(self.path("serviceaccount"), "first\n", self.authority)
        with KubernetesApi(self.certificate) as api:
            env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port), "NODE_NAME": api.node}
            with self.exporter(bmc, "--kubernetes.api", f"--kubernetes.service-account-dir={account.directory}",
                               env=env) as exporter:
                self.wait_for_power(exporter)
                exporter.wait_for_log("reading this node's pod names from the Kubernetes API")
        self.assertEqual([f"{SESSIONS}/1"], bmc.deleted)

    def test_without_the_flag_there_is_nothing_of_it(self):
        with Exporter() as exporter:
            page = exporter.page()
            self.assertEqual([], page.values(UP, source="redfish"))
            self.assertEqual(1, len(os.listdir(f"/proc/{exporter.server()}/task")))


class Faults(RedfishTestCase):
    def survive(self, fault, says, path=ENVIRONMENT, seconds=15):
        """The source is down with this text, the page is served, and it comes back with the answers."""
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            bmc.faults[path] = fault
            self.wait_for_error(exporter, says, seconds)
            del bmc.faults[path]
            exporter.wait_for_log(BACK, 15)
            before = len(bmc.served)
            wait_until("readings go on", lambda: len(bmc.served) > before)
            self.assert_no_secret(exporter)
            self.assertLess(exporter.stop(), SOON_S)
        self.assertEqual(1, len(bmc.deleted))
        return bmc

    def test_an_answer_that_breaks_off(self):
        self.survive(Request.truncate, "request to")

    def test_an_answer_of_ten_megabytes(self):
        self.survive(Request.flood, "reply is longer than")

    def test_an_answer_that_never_comes(self):
        self.survive(Request.hang, "no complete reply within 5 s")

    def test_an_answer_that_drips(self):
        self.survive(Request.drip, "no complete reply within 5 s")

    def test_one_that_hangs_does_not_hold_up_the_end(self):
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)
            bmc.faults[ENVIRONMENT] = bmc.faults[f"{SESSIONS}/1"] = Request.hang
            before = len(bmc.asked("GET"))
            wait_until("it is asked", lambda: len(bmc.asked("GET")) > before)
            self.assertLess(exporter.stop(), SOON_S)

    def test_a_service_that_is_starting(self):
        bmc = self.bmc()
        bmc.faults[ROOT] = Request.busy
        with self.exporter(bmc) as exporter:
            self.wait_for_error(exporter, "status 503: the service is starting")
            del bmc.faults[ROOT]
            self.wait_for_power(exporter)
        self.assertEqual(1, bmc.logins)

    def test_a_wrong_password_is_tried_once_and_not_told(self):
        self.credentials = self.write_credentials("wrong-word")
        bmc = self.bmc()
        with self.exporter(bmc) as exporter:
            self.wait_for_error(exporter, "status 401: wrong user or password")
            self.assertEqual(1, bmc.logins)
            self.assertNotIn("wrong-word", exporter.log_text())

    def test_a_redirect_to_the_same_with_a_slash_is_followed(self):
        bmc = self.bmc()
        bmc.faults[NODE] = bmc.faults[ENVIRONMENT] = Request.redirect
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)

    def test_links_and_redirects_to_other_hosts_are_not_followed(self):
        bmc, other = self.bmc(), self.bmc()
        elsewhere = other.url.rstrip("/")
        bmc.resources[f"{ROOT}/Chassis"] = collection(f"{elsewhere}{NODE}", f"//127.0.0.1:{other.port}{NODE}", GPU, NODE)
        bmc.resources[NODE]["EnvironmentMetrics"] = link(f"{elsewhere}{ENVIRONMENT}")
        bmc.with_power({"PowerConsumedWatts": 640})
        bmc.resources[NODE]["EnvironmentMetrics"] = link(ENVIRONMENT)
        bmc.faults[ENVIRONMENT] = lambda request: request.reply(b"", 307, {"Location": f"{elsewhere}{ENVIRONMENT}"})
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter, 640)
        self.assertEqual(0, other.connections)

    def test_a_gpu_is_not_the_node(self):
        bmc = self.bmc()
        bmc.resources[f"{ROOT}/Chassis"] = collection(GPU)
        with self.exporter(bmc) as exporter:
            page = self.wait_for_error(exporter, "none of the BMC's 1 chassis is the node")
            self.assertEqual([], page.values(POWER))


class Moves(RedfishTestCase):
    """Hosts that get another address, in a mount namespace with names of its own."""

    def wrapper(self, hosts):
        require.root()
        wrapper = ("unshare", "-m", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts)
        if subprocess.run([*wrapper, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no mount namespaces")
        return wrapper

    def test_a_name_with_another_address_is_looked_up_again_and_the_log_is_told_once(self):
        certificate = self.authority.certify("moved", "DNS:bmc.test", "DNS:api.test")
        hosts = self.write("hosts", b"127.0.0.2 bmc.test\n")  # where nobody listens; and api.test is nowhere
        os.chmod(hosts, 0o644)
        bmc, account = self.bmc(certificate), ServiceAccount(self.path("serviceaccount"), "first\n", self.authority)
        bmc.url = f"bmc.test:{bmc.port}"
        with KubernetesApi(certificate) as api:
            env = {"KUBERNETES_SERVICE_HOST": "api.test", "KUBERNETES_SERVICE_PORT": str(api.port), "NODE_NAME": api.node}
            with self.exporter(bmc, "--kubernetes.api", f"--kubernetes.service-account-dir={account.directory}",
                               env=env, wrapper=self.wrapper(hosts)) as exporter:
                self.wait_for_error(exporter, "connection refused")
                exporter.wait_for_log(NO_NAMES)
                self.write("hosts", b"127.0.0.1 bmc.test\n")
                self.wait_for_power(exporter, seconds=120)
                page = exporter.wait_for_page("another one", lambda page: page.value(STARTS, child="kubernetes") == 2, 60)
                self.assertEqual(2, page.value(STARTS, child="bmc"))
                self.write("hosts", b"127.0.0.1 bmc.test api.test\n")
                exporter.wait_for_log("reading this node's pod names from the Kubernetes API", 60)
                self.assertEqual([1, 1, 0], [len(exporter.log(line)) for line in (DOWN, NO_NAMES, DIED)])
        self.assertEqual(1, bmc.logins)


class Trust(RedfishTestCase):
    def assert_told_nothing(self, exporter, bmc, says):
        self.wait_for_error(exporter, says)
        self.assertIn("--redfish.ca-file", exporter.log(DOWN)[0]["error"])
        self.assertEqual([], bmc.requests)
        self.assertGreater(bmc.connections, 0)

    def fingerprint(self, certificate):
        with open(certificate.replace(".pem", ".crt")) as file:
            return hashlib.sha256(ssl.PEM_cert_to_DER_cert(file.read())).hexdigest()

    def test_who_was_not_signed_by_the_authority_is_told_nothing(self):
        stranger = Authority(self.directory, "stranger")
        bmc = self.bmc(stranger.certify("other", "IP:127.0.0.1"))
        with self.exporter(bmc) as exporter:
            self.assert_told_nothing(exporter, bmc, "NOT trusted")

    def test_who_was_not_signed_by_an_authority_of_the_system_is_told_nothing(self):
        bmc = self.bmc()
        with self.exporter(bmc, trust=False) as exporter:
            self.assert_told_nothing(exporter, bmc, "NOT trusted")

    def test_who_was_signed_for_another_host_is_told_nothing(self):
        bmc = self.bmc(self.authority.certify("elsewhere", "DNS:elsewhere.example"))
        with self.exporter(bmc) as exporter:
            self.assert_told_nothing(exporter, bmc, "name in the certificate does not match")

    def test_a_certificate_of_its_own_can_be_the_authority(self):
        own = Authority(self.directory, "own")
        certificate = own.make("self", "-addext", "subjectAltName=IP:127.0.0.1")
        bmc = self.bmc(certificate)
        with self.exporter(bmc, f"--redfish.ca-file={self.path('self.crt')}", trust=False) as exporter:
            self.wait_for_power(exporter)

    def test_a_fingerprint_stands_for_host_and_authority(self):
        stranger = Authority(self.directory, "stranger")
        bmc = self.bmc(stranger.certify("other", "DNS:elsewhere.example"))
        pin = self.fingerprint(self.path("other.pem"))
        colons = ":".join(pin[i:i + 2].upper() for i in range(0, 64, 2))
        with self.exporter(bmc, f"--redfish.certificate-sha256={colons}", trust=False) as exporter:
            self.wait_for_power(exporter)

    def test_another_certificate_than_that_of_the_fingerprint_is_told_nothing(self):
        bmc = self.bmc()
        pin = self.fingerprint(self.authority.certificate)
        with self.exporter(bmc, f"--redfish.certificate-sha256={pin}") as exporter:
            self.assert_told_nothing(exporter, bmc, "has another fingerprint")

    def test_a_name_is_looked_up_and_checked(self):
        bmc = self.bmc()
        bmc.url = f"localhost:{bmc.port}"
        with self.exporter(bmc) as exporter:
            self.wait_for_power(exporter)

    def test_insecure_believes_anybody_and_says_so(self):
        bmc = self.bmc()
        with self.exporter(bmc, "--redfish.insecure", trust=False) as exporter:
            self.wait_for_power(exporter)
            self.assertEqual(1, sum("--redfish.insecure" in line.get("msg", "") for line in exporter.log()))

    def test_plain_http_needs_insecure(self):
        bmc = Redfish()
        self.addCleanup(bmc.__exit__)
        refused = run("serve", "--listen-address=127.0.0.1:0", *self.flags(bmc, trust=False))
        self.assertEqual(2, refused.returncode)
        self.assertIn(b"use https", refused.stderr)
        with self.exporter(bmc, "--redfish.insecure", trust=False) as exporter:
            self.wait_for_power(exporter)


class Start(RedfishTestCase):
    def assert_refused(self, bmc, says, *more):
        ended = run("serve", "--listen-address=127.0.0.1:0", *self.flags(bmc, *more))
        self.assertNotEqual(0, ended.returncode)
        self.assertIn(says, ended.stderr.decode())
        self.assertNotIn(PASSWORD.encode(), ended.stderr + ended.stdout)
        self.assertEqual(0, bmc.connections)

    def test_credentials_that_others_may_read_are_refused(self):
        for mode in (0o640, 0o604, 0o660, 0o601):
            with self.subTest(mode=oct(mode)):
                self.credentials = self.write_credentials(PASSWORD, mode)
                self.assert_refused(self.bmc(), "chmod 600")

    def test_what_cannot_work_is_refused(self):
        bmc = self.bmc()
        self.assert_refused(bmc, "skips all verification", "--redfish.insecure")
        self.assert_refused(bmc, "64 hexadecimal digits", "--redfish.certificate-sha256=ab")
        self.assert_refused(bmc, "no CA certificate", f"--redfish.ca-file={self.credentials}")
        self.assert_refused(bmc, "credentials-file", "--redfish.credentials-file=/nonexistent")
        self.assert_refused(bmc, "not the address of a BMC", f"--redfish.url=https://{USER}:x@127.0.0.1/")


class Check(RedfishTestCase):
    def check(self, *flags, status):
        ended = run("check", *flags, f"--path.rootfs={self.directory}",
                    *(f"--no-collector.{source}" for source in ("nvml", "rapl", "hwmon", "cray", "ipmi")))
        self.assertEqual(status, ended.returncode)
        text = ended.stdout.decode()
        self.assertNotIn(PASSWORD, text)
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[1] == "redfish")
        return "\n".join(lines[at:at + 2])

    def test_it_says_whether_the_bmc_answers(self):
        bmc = self.bmc()
        self.assertIn("ok       redfish                  the BMC measures the node's power: 600 W",
                      self.check(*self.flags(bmc), status=0))
        self.assertEqual((1, 1), (bmc.logins, len(bmc.deleted)))
        self.assertIn("--redfish.ca-file", self.check(*self.flags(bmc, trust=False), status=1))
        bmc.faults[SESSIONS] = lambda request: request.refuse(401, "no")
        self.assertIn("correct the user and password", self.check(*self.flags(bmc), status=1))
        self.assertIn("--redfish.url", self.check(status=1))
        self.assertIn("credentials-file", self.check(*self.flags(bmc), "--redfish.credentials-file=/nonexistent", status=2))


if __name__ == "__main__":
    harness.main()
