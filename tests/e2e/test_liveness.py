"""Processes that hang: the collector replaces a child that does not answer, and the server tells of a collector that does
not. Each is stopped here, as any other hang would stop it."""
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import tempfile
import time

import harness
from certificates import Authority
from harness import SOON_S, Exporter, TestCase, arguments_of, children, process_status, wait_until
from servers import require
from servers.emissions import Rte
from servers.kubernetes_api import KubernetesApi, ServiceAccount
from servers.redfish import PASSWORD, USER, Redfish
from test_fetcher import AskerTestCase

KINDS = ("server", "bmc", "kubernetes", "emissions")
USERS = dict(zip(KINDS, ("65521", "65522", "65523", "65524")))
STARTS, HANGS = "wattribute_child_starts_total", "wattribute_child_hangs_total"
SERVER_HANGS = "the server hangs: it was killed, and another one is started; no energy is lost"
FETCHER_HANGS = "a fetcher hangs: it was killed, and another one is started"
ORPHANED = ("the collector hangs or is stopped: metrics are not served, and /-/healthy fails until it answers; if it does "
            "not, restart it")
HEALED_S = 30  # what is promised
SILENT_S = 15  # when a collector counts as hanging
PROBES = ("/-/healthy", "/health", "/-/ready", "/metrics")


class Liveness(TestCase):
    def setUp(self):
        super().setUp()
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-"))
        os.chmod(directory, 0o755)  # for the fetcher
        authority = Authority(directory)
        certificate = authority.certify("server", "IP:127.0.0.1")
        self.bmc, self.api, self.grid = Redfish(certificate), KubernetesApi(certificate), Rte(certificate, "56.25")
        for service in (self.bmc, self.api, self.grid):
            self.addCleanup(service.__exit__)
        account = ServiceAccount(self.path("serviceaccount"), "first\n", authority)
        credentials = self.write("credentials.yaml", f"username: {USER}\npassword: {json.dumps(PASSWORD)}\n".encode())
        os.chmod(credentials, 0o600)
        self.env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.api.port),
                    "NODE_NAME": self.api.node}
        self.flags = (f"--redfish.url={self.bmc.url}", f"--redfish.credentials-file={credentials}",
                      f"--redfish.ca-file={authority.crt}", "--redfish.interval=1s",
                      "--kubernetes.api", f"--kubernetes.service-account-dir={account.directory}",
                      "--emissions.providers=rte:FR", f"--emissions.url=rte={self.grid.url}",
                      f"--emissions.ca-file={authority.crt}", "--emissions.interval=1s")

    def exporter(self):
        return Exporter(*self.flags, env=self.env)

    def wait_until_all_work(self):
        wait_until("each fetcher has news", lambda: self.bmc.served and self.api.asked(watch="1") and self.grid.requests, 20)

    def pids(self, exporter):
        """By kind; one that has ended and was not reaped yet has no arguments."""
        return {arguments[-1]: pid for pid in children(exporter.pid) if (arguments := arguments_of(pid))}

    def counts(self, page, metric):
        return {kind: page.value(metric, child=kind) for kind in KINDS}

    def status(self, exporter, path):
        try:
            return exporter.ask(path).status
        except OSError:
            return None  # there is no server at this moment

    def watch_for(self, seconds, exporter, pids):
        """For so long all of them are left alone."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual(pids, self.pids(exporter))
            self.assertEqual(200, exporter.ask("/-/healthy").status)
            time.sleep(1)

    def test_children_that_stop_are_replaced_and_those_that_answer_are_left_alone(self):
        with self.exporter() as exporter:
            self.wait_until_all_work()
            before = self.pids(exporter)
            self.assertEqual(set(KINDS), set(before))
            if os.geteuid() == 0:
                self.assertEqual(USERS, {kind: process_status(pid)["Uid"].split()[0] for kind, pid in before.items()})
            began = time.monotonic()
            for pid in before.values():
                os.kill(pid, signal.SIGSTOP)
            after = wait_until("all are replaced", lambda: (lambda pids: set(pids) == set(KINDS) and not set(
                pids.values()) & set(before.values()) and pids)(self.pids(exporter)), HEALED_S)
            wait_until("a scrape", lambda: self.status(exporter, "/metrics") == 200, HEALED_S - (time.monotonic() - began))
            page = exporter.page()
            self.assertEqual(dict.fromkeys(KINDS, 1), self.counts(page, HANGS))
            self.assertEqual(dict.fromkeys(KINDS, 2), self.counts(page, STARTS))
            self.assertEqual(1, len(exporter.log(SERVER_HANGS)))
            self.assertEqual(sorted(KINDS[1:]), sorted(line["fetcher"] for line in exporter.log(FETCHER_HANGS)))
            asked = len(self.grid.requests)
            self.watch_for(HEALED_S - 5, exporter, after)  # longer than one that does not answer would live
            self.assertGreater(len(self.grid.requests), asked)
            self.assertEqual(dict.fromkeys(KINDS, 1), self.counts(exporter.page(), HANGS))

    def test_a_collector_that_stops_is_told_by_the_server_and_ends_no_child_when_it_goes_on(self):
        with self.exporter() as exporter:
            exporter.check_log = lambda: None  # it must have an error
            self.wait_until_all_work()
            before = self.pids(exporter)
            os.kill(exporter.pid, signal.SIGSTOP)
            self.addCleanup(lambda: exporter.process.poll() is None and os.kill(exporter.pid, signal.SIGCONT))
            self.assertEqual(200, exporter.ask("/-/healthy").status)  # it may be busy
            self.assertEqual(503, exporter.ask("/-/ready").status)
            wait_until("it is unhealthy", lambda: exporter.ask("/-/healthy").status == 503, SILENT_S + SOON_S)
            for path in PROBES:
                answer = exporter.ask(path)
                self.assertEqual((503, b"the collector does not answer, see the exporter's log\n"),
                                 (answer.status, answer.body), path)
            self.assertEqual(200, exporter.ask("/").status)
            self.assertEqual(1, len(exporter.log(ORPHANED)))
            os.kill(exporter.pid, signal.SIGCONT)
            wait_until("it is healthy", lambda: exporter.ask("/-/healthy").status == 200)
            exporter.wait_for_log("the collector answers again")
            self.assertEqual(200, exporter.ask("/-/ready").status)
            page = exporter.page()
            self.assertEqual((dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 1), before),
                             (self.counts(page, HANGS), self.counts(page, STARTS), self.pids(exporter)))


class Lookups(AskerTestCase):
    def test_it_answers_while_no_name_server_answers(self):
        """Three of them, each asked twice for 2 s."""
        require.root()
        pid = os.getpid()
        addresses = [f"127.{64 + pid % 128}.{pid // 128 % 256}.{last}" for last in (1, 2, 3)]
        silent = [self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in addresses]
        for each, address in zip(silent, addresses):
            each.bind((address, 53))
            each.settimeout(20)
        path = self.write("resolv.conf", "".join(f"nameserver {address}\n" for address in addresses).encode())
        os.chmod(self.directory, 0o755)
        wrapper = (shutil.which("unshare"), "--mount", "--propagation", "private", "sh", "-c",
                   f'mount --bind {shlex.quote(path)} /etc/resolv.conf && exec "$@"', "sh")
        with self.asker(self.rte(), wrapper=wrapper) as asker:
            silent[0].recv(512)
            self.assertEqual(1, asker.ping(1))
            silent[1].recv(512)  # it was still looking up, and goes on
            self.assertEqual(2, asker.ping(2))


class ServiceManager(TestCase):
    """systemd, as far as sd_notify(3) goes."""

    def manager(self, address):
        """A socket of it; "\\0name" is an abstract one."""
        manager = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind(address)
        manager.settimeout(10)
        return manager

    def exporter(self, address, watchdog_us=None, pid="$$"):
        env = {"NOTIFY_SOCKET": address.replace("\0", "@")}
        if watchdog_us:
            env["WATCHDOG_USEC"] = str(watchdog_us)
        return Exporter(env=env, wrapper=("sh", "-c", f'WATCHDOG_PID={pid} exec "$@"', "sh"))

    def told(self, manager):
        """All that it has been told, until nothing comes for a second."""
        found = []
        manager.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                found.append(manager.recv(4096))
        manager.settimeout(10)
        return found

    def test_it_is_up_when_the_server_answers_and_tells_that_it_stops(self):
        for address in (self.path("notify"), f"\0wattribute-notify-{os.getpid()}"):
            manager = self.manager(address)
            with self.exporter(address) as exporter:
                self.assertEqual(b"READY=1\nSTATUS=Serving metrics", manager.recv(4096))
                os.kill(exporter.server(), signal.SIGKILL)  # which is not told: it is healed
                exporter.server_deaths = 1
                exporter.wait_for_log("the server ended and is started again; no energy is lost")
                exporter.stop()
            self.assertEqual([b"STOPPING=1"], self.told(manager))

    def test_without_a_server_it_is_not_up(self):
        manager = self.manager(self.path("notify"))
        config = self.write("web.yml", b"tls_server_config: {cert_file: a, key_file: b}\n")
        done = harness.run("serve", "--listen-address=127.0.0.1:0", f"--web.config.file={config}",
                           env={"NOTIFY_SOCKET": self.path("notify")})
        self.assertNotEqual(0, done.returncode)
        self.assertEqual([], self.told(manager))

    def test_the_watchdog_is_told_twice_in_its_limit_while_the_loop_turns(self):
        manager = self.manager(self.path("notify"))
        with self.exporter(self.path("notify"), watchdog_us=1000000) as exporter:
            beats = [manager.recv(4096) for _ in range(6)]
            self.assertEqual({b"READY=1\nSTATUS=Serving metrics", b"WATCHDOG=1"}, set(beats))
            self.assertEqual(5, beats.count(b"WATCHDOG=1"))
            os.kill(exporter.pid, signal.SIGSTOP)
            self.addCleanup(lambda: exporter.process.poll() is None and os.kill(exporter.pid, signal.SIGCONT))
            self.told(manager)  # which ends, as nothing comes for a second
            os.kill(exporter.pid, signal.SIGCONT)
            self.assertEqual(b"WATCHDOG=1", manager.recv(4096))

    def test_the_watchdog_of_another_process_is_not_told(self):
        manager = self.manager(self.path("notify"))
        with self.exporter(self.path("notify"), watchdog_us=1000000, pid="1"):
            self.assertEqual([b"READY=1\nSTATUS=Serving metrics"], self.told(manager))


if __name__ == "__main__":
    harness.main()
