"""The process that asks for emission factors: what it says on its channel, what it may do, and that nobody but the
service is told the key. It is started as the collector starts it."""
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import tempfile
import threading
import unittest
from decimal import Decimal

import harness
from certificates import Authority
from harness import arguments_of, environment_of, is_running, process_status, wait_until
from servers.emissions import ElectricityMaps, Rte, refusing
from servers.proxy import Proxy
from servers.wire import varint

KEY = ElectricityMaps.TOKEN
USER, PASSWORD = "someone", "hunter2-proxy"
CHANNEL_FD, JOB_FD = 3, 4
MAGIC, INFO, LOGFMT, EMISSIONS = 0x31627757, 1, 0, 2  # of the job
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
RECORD = struct.Struct("=IiQQQII488s")  # channel_factor
PING = struct.Struct("=Q")  # channel_ping
LIFECYCLE, DIRECT = 1, 2
SECOND_US, HOUR_US = 1000000, 3600000000
LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1  # a system call, and its flag that asks for the version


def kernel_has_landlock():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION) > 0


class Factor:
    def __init__(self, record):
        (self.index, self.result, self.mg_per_kwh, self.time_us, self.taken_us, self.is_estimated, self.basis,
         why) = RECORD.unpack(record)
        self.why = why.rstrip(b"\0").decode()


def pack(*fields):
    """As core/pack: numbers, and texts after their length."""
    return b"".join(varint(field) if isinstance(field, int) else
                    varint(len(field.encode())) + field.encode() + b"\0" for field in fields)


def emissions_job(polls, key, ca, interval_us, proxies):
    return pack(MAGIC, INFO, LOGFMT, EMISSIONS, ca, interval_us, 0, len(polls),
                *(word for poll in polls for word in poll), key, *[""] * 7,
                *(proxies.get(name, "") for name in PROXIES), 0)


def sealed(block):
    fd = os.memfd_create("job", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, block)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    return fd


class Asker:
    """`wattribute fetcher` with the other end of its channel, for a with statement."""

    log = harness.Exporter.log
    log_text = harness.Exporter.log_text

    def __init__(self, *polls, key="", ca="", interval_us=SECOND_US, proxies=None, cut=None, wrapper=()):
        self.directory = tempfile.TemporaryDirectory()
        self.log_path = os.path.join(self.directory.name, "log")
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = ((wrapper[0], [*wrapper, harness.binary(), "fetcher"]) if wrapper else
                   (harness.binary(), ["wattribute", "fetcher"]))
        job = sealed(emissions_job(polls, key, ca, interval_us, proxies or {})[:cut])
        with theirs, open(self.log_path, "wb") as log:
            # Beyond those that they become.
            given = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (log, theirs, job)]
            self.pid = os.posix_spawn(
                *command, {},
                file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in zip(given, (2, CHANNEL_FD, JOB_FD))])
            for fd in (*given, job):
                os.close(fd)
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None:
                self.stop()
                self.check_log()
        finally:
            if self.status is None:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            if error_type is not None:
                print(f"--- log of the asker\n{self.log_text()}---")
            self.channel.close()
            self.directory.cleanup()

    def check_log(self):
        text = self.log_text()
        for trouble in ("Sanitizer", "runtime error:", "level=error", KEY, PASSWORD):
            if trouble in text:
                raise AssertionError(f"the log has '{trouble}':\n{text}")

    def next(self, seconds=20):
        """Its next record."""
        self.channel.settimeout(seconds)
        record = self.channel.recv(RECORD.size + 1)
        if len(record) != RECORD.size:
            raise AssertionError(f"a record of {len(record)} bytes")
        return Factor(record)

    def ping(self, number, seconds=5):
        """The number that comes back, before any other record."""
        self.channel.settimeout(seconds)
        self.channel.send(PING.pack(number))
        return PING.unpack(self.channel.recv(RECORD.size + 1))[0]

    def wait_for(self, what, condition):
        return wait_until(what, lambda: (lambda factor: condition(factor) and factor)(self.next()), 20)

    def stop(self):
        """As the collector asks it to end."""
        if self.status is None:
            self.channel.close()
            wait_until("the end of the asker", self.has_ended)
        if self.status != 0:
            raise AssertionError(f"status {self.status}")

    def has_ended(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.status = status
        return pid != 0


class AskerTestCase(harness.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-"))
        os.chmod(directory, 0o755)  # nobody reads the authority
        cls.authority = Authority(directory)
        cls.certificate = cls.authority.certify("server", "IP:127.0.0.1", "DNS:api.test")

    def setUp(self):
        super().setUp()
        self.maps, self.grid = ElectricityMaps(self.certificate, "56.25"), Rte(self.certificate, "56.25")
        self.maps.estimated = True
        for service in (self.maps, self.grid):
            self.addCleanup(service.__exit__)

    def asker(self, *inquiries, **options):
        return Asker(*inquiries, ca=self.authority.crt, **options)

    def electricity_maps(self):
        return "electricity_maps", "FR", self.maps.url

    def rte(self):
        return "rte", "FR", self.grid.url


class Records(AskerTestCase):
    def test_what_each_provider_says_comes_with_its_number(self):
        with self.asker(self.electricity_maps(), self.rte(), key=KEY) as asker:
            found = {}
            wait_until("a record of each", lambda: found.update({(f := asker.next()).index: f}) or len(found) == 2)
            for index, (estimated, basis) in enumerate(((1, LIFECYCLE), (0, DIRECT))):
                factor = found[index]
                self.assertEqual((0, 56250, estimated, basis, ""),
                                 (factor.result, factor.mg_per_kwh, factor.is_estimated, factor.basis, factor.why))
                self.assertEqual(0, factor.time_us % (HOUR_US // 4))
                self.assertGreater(factor.taken_us, 0)
            self.maps.value = self.grid.value = Decimal("61.5")
            asker.wait_for("the new value", lambda factor: factor.mg_per_kwh == 61500)
            self.assertEqual([], asker.log())  # the collector logs what it is told

    def test_each_failure_comes_with_its_reason(self):
        self.grid.answer = refusing(500, "not now")
        with self.asker(self.rte()) as asker:
            for _ in range(3):
                factor = asker.next()
                self.assertEqual((-errno.EREMOTEIO, 0), (factor.result, factor.mg_per_kwh))
                self.assertIn("status 500", factor.why)
            self.grid.answer = None
            asker.wait_for("an answer", lambda factor: factor.result == 0)
            self.grid.answer = refusing(503, "not now")
            asker.wait_for("a failure", lambda factor: factor.result < 0)
            self.grid.answer = None
            asker.wait_for("an answer", lambda factor: factor.result == 0)

    def test_a_service_that_somebody_else_certified_is_not_believed(self):
        with Asker(self.electricity_maps(), key=KEY) as asker:
            factor = asker.next()
            self.assertEqual(-errno.EKEYREJECTED, factor.result)
            self.assertIn("verification failed", factor.why)  # by the system's authorities: they were read
        self.assertEqual([], self.maps.requests)


class Pings(AskerTestCase):
    def test_it_answers_while_it_waits_and_while_a_service_does_not_answer(self):
        held = threading.Event()
        self.addCleanup(held.set)
        with self.asker(self.rte(), interval_us=HOUR_US) as asker:
            self.assertEqual([1, 2**64 - 1], [asker.ping(1), asker.ping(2**64 - 1)])
        self.assertEqual([], self.grid.requests)
        self.grid.answer = lambda request: held.wait(20)
        with self.asker(self.rte()) as asker:
            wait_until("it asks", lambda: self.grid.requests)
            self.assertEqual(7, asker.ping(7))

    def test_what_is_no_ping_ends_it(self):
        for record in (b"x", b"x" * 9, PING.pack(0)):
            with self.subTest(record), self.asker(self.rte(), interval_us=HOUR_US) as asker:
                wait_until("it is past its start", lambda: process_status(asker.pid)["Seccomp"] == "2", 20)
                asker.channel.send(record)
                wait_until("its end", asker.has_ended)


class Keys(AskerTestCase):
    def test_a_provider_without_a_key_is_left_out_and_the_others_are_asked(self):
        with self.asker(self.electricity_maps(), self.rte()) as asker:
            first = asker.next()
            self.assertEqual((0, -errno.ENOKEY), (first.index, first.result))
            self.assertIn("set ELECTRICITY_MAPS_TOKEN in the environment, or electricity_maps in a file for "
                          "--emissions.keys-file", first.why)
            for _ in range(2):
                factor = asker.next()
                self.assertEqual((1, 0), (factor.index, factor.result))

    def test_with_nobody_left_to_ask_it_stays(self):
        with self.asker(self.electricity_maps(), ("entsoe", "FR", ""), ("rte", "DE", "")) as asker:
            self.assertEqual([-errno.ENOKEY, -errno.ENOKEY, -errno.EINVAL], [asker.next().result for _ in range(3)])
            self.assertTrue(is_running(asker.pid))

    def test_the_key_is_neither_in_its_arguments_nor_in_its_environment(self):
        with self.asker(self.electricity_maps(), key=KEY) as asker:
            self.assertEqual(0, asker.next().result)
            self.assertEqual((b"", ["wattribute", "fetcher"]), (environment_of(asker.pid), arguments_of(asker.pid)))

    def test_without_a_job_it_does_not_start(self):
        for cut in (0, 1, 40, -1):
            with self.subTest(cut=cut):
                asker = self.asker(self.rte(), cut=cut)
                asker.check_log = asker.stop = lambda: None  # it must have an error in this test
                with asker:
                    wait_until("its end", asker.has_ended)
                    self.assertEqual(1, os.waitstatus_to_exitcode(asker.status))
                    self.assertIn("a fetcher has no job", asker.log_text())

    def test_a_key_that_is_repeated_by_the_service_is_not_shown(self):
        self.maps.is_allowed = lambda request: True
        self.maps.answer = lambda request: request.refuse(401, f"no such key: {request.headers['auth-token']}")
        with self.asker(self.electricity_maps(), key="hunter2-wrong") as asker:
            factor = asker.next()
            self.assertEqual(-errno.EACCES, factor.result)
            self.assertIn("no such key: ***", factor.why)
            self.assertNotIn("hunter2", asker.log_text())


class Proxies(AskerTestCase):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy({"api.test:443": ("127.0.0.1", self.maps.port)}, f"{USER}:{PASSWORD}")
        self.addCleanup(self.proxy.__exit__)
        self.proxy_url = self.proxy.url_for(f"{USER}:{PASSWORD}")

    def test_by_a_proxy_a_service_is_asked_that_is_nowhere_else(self):
        with self.asker(("electricity_maps", "FR", "https://api.test"), key=KEY,
                        proxies={"https_proxy": self.proxy_url}) as asker:
            factor = asker.next()
            self.assertEqual((0, 56250, ""), (factor.result, factor.mg_per_kwh, factor.why))
        self.assertEqual(["api.test:443"], self.proxy.asked)

    def test_a_host_that_no_proxy_names_is_asked_directly(self):
        with self.asker(self.rte(), proxies={"https_proxy": self.proxy_url, "no_proxy": "127.0.0.1"}) as asker:
            self.assertEqual(0, asker.next().result)
        self.assertEqual([], self.proxy.asked)

    def test_a_proxy_that_does_not_know_us_is_named_without_the_password(self):
        with self.asker(("rte", "FR", "https://api.test"), proxies={"ALL_PROXY": self.proxy.url_for(f"{USER}:hunter2-wrong")}) as asker:
            factor = asker.next()
            self.assertEqual(-errno.ECONNREFUSED, factor.result)
            self.assertIn("(407)", factor.why)
            self.assertNotIn("hunter2", factor.why + asker.log_text())
        self.assertEqual([], self.maps.requests)


class Confinement(AskerTestCase):
    def test_it_has_no_capabilities_no_new_privileges_and_a_system_call_filter(self):
        with self.asker(self.rte()) as asker:
            asker.next()
            ours, its = process_status("self"), process_status(asker.pid)
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(0, int(its[name], 16), name)
            self.assertEqual(("1", "2"), (its["NoNewPrivs"], its["Seccomp"]))
            if ours["Uid"].split()[1] == "0" and int(ours["CapEff"], 16) >> 7 & 1:
                self.assertEqual(["65524"] * 4, its["Uid"].split())
                self.assertEqual([], its["Groups"].split())

    def test_an_authority_that_is_replaced_is_read_but_no_file_elsewhere(self):
        directory, elsewhere = (self.enterContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-")) for _ in range(2))
        for path in (directory, elsewhere):
            os.chmod(path, 0o755)
        ca, new = os.path.join(directory, "ca.crt"), os.path.join(directory, "new.crt")
        shutil.copy(Authority(elsewhere).crt, ca)
        with Asker(self.rte(), ca=ca) as asker:
            self.assertEqual(-errno.EKEYREJECTED, asker.next().result)
            os.symlink(self.authority.crt, new)
            os.replace(new, ca)
            if kernel_has_landlock():
                unread = asker.wait_for("another record", lambda factor: "verification failed" not in factor.why)
                self.assertIn("no certificates can be read", unread.why)
            shutil.copy(self.authority.crt, new)
            os.replace(new, ca)
            asker.wait_for("an answer", lambda factor: factor.result == 0)

    def test_without_threads_it_ends_with_an_error_so_that_another_one_follows(self):
        prlimit = shutil.which("prlimit")
        asker = self.asker(self.electricity_maps(), self.rte(), key=KEY, wrapper=(prlimit, "--nproc=0:0"))
        asker.check_log = asker.stop = lambda: None  # it must have an error in this test
        with asker:
            wait_until("its end", asker.has_ended)
            self.assertEqual(1, os.waitstatus_to_exitcode(asker.status))
            self.assertIn("cannot start a thread for a provider of emission factors", asker.log_text())

    def test_a_crash_leaves_no_core_with_the_keys(self):
        with self.asker(self.rte()) as asker:
            asker.next()
            # The files of one that may be dumped are its user's, of any other root's.
            self.assertEqual(0, os.stat(f"/proc/{asker.pid}/environ").st_uid)

    def test_it_ends_with_the_channel_and_not_by_a_signal_to_all(self):
        with self.asker(self.rte(), interval_us=HOUR_US) as asker:
            wait_until("it is past its start", lambda: process_status(asker.pid)["Seccomp"] == "2")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                           signal.SIGALRM, signal.SIGRTMIN):
                os.kill(asker.pid, number)
            self.assertTrue(is_running(asker.pid))
            asker.stop()


if __name__ == "__main__":
    unittest.main()
