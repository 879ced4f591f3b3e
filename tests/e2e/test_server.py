"""The two processes: the server can die and is sandboxed, and both end on request."""
import json
import os
import shutil
import signal
import subprocess
import unittest
from decimal import Decimal

from harness import (H200_TRACE, HARDWARE_ENERGY, METER_ENERGY, PROCESS_ENERGY, SOON_S, Exporter, TestCase, Trace,
                     connect, fill, is_running, process_status, run, wait_until)
from servers import require

FAST = ("--sample-interval=100ms",)
CAP_SETUID, CAP_SETPCAP = 7, 8


def three_seconds_of_work():
    """And then nothing for a quarter of an hour, so that it is not played again within a test. The
    utilisation after the work lets its last window settle."""
    trace = Trace()
    trace.gpu(0)
    trace.work(0, [11, 12, 13], seconds=3)
    for t in (4, 4.2, 4.4, 900):
        trace.utilisation(t, 0, 0)
    return trace


class Death(TestCase):
    def scrape_or_none(self, exporter):
        try:
            return exporter.page()
        except (OSError, EOFError):
            return None  # the server is not there
        except AssertionError as error:
            if "status 503" in str(error):
                return None
            raise

    def test_no_joule_and_no_counter_is_lost_when_the_server_is_killed_during_scrapes(self):
        trace = three_seconds_of_work()
        path = trace.write(self.path("work.trace.gz"))
        whole = Decimal(trace.energy_mj[0]) / 1000
        pages, killed = [], []
        with Exporter("--replay", path, *FAST) as exporter:
            def scrape_and_kill():
                page = self.scrape_or_none(exporter)
                if page is None:
                    return False
                if pages:
                    self.assert_counters_grow(pages[-1], page)
                pages.append(page)
                self.assert_balanced(page)
                server = exporter.server()
                # Twice in a row is enough for the pause before a restart to grow.
                if len(killed) < 2 and server not in killed:
                    connection = connect(exporter.address)
                    self.addCleanup(connection.close)
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    os.kill(server, signal.SIGKILL)
                    killed.append(server)
                return page.value(METER_ENERGY) == whole
            wait_until("the whole trace is settled", scrape_and_kill, 20)
            self.assertEqual(2, len(killed))
            exporter.server_deaths = 2
            last = pages[-1]
            self.assertEqual(1, pages[0].value("wattribute_front_starts_total"))
            self.assertEqual(3, last.value("wattribute_front_starts_total"))
            self.assertEqual(exporter.pid, exporter.process.pid)
            self.assertIsNone(exporter.process.poll())
            exporter.stop()
            settled = exporter.log("settled")
        self.assertEqual([(str(trace.energy_mj[0] * 1000), "0")],
                         [(line["energy_uj"], line["imbalance_uj"]) for line in settled])
        undisturbed = json.loads(run("replay", "--sample-interval=100ms", path).stdout)
        self.assertEqual({str(process["pid"]): Decimal(process["energy_uj"]) / 1000000
                          for process in undisturbed["processes"]},
                         {pid: last.sum(PROCESS_ENERGY, pid=pid) for pid in ("11", "12", "13")})

    def test_scrapes_succeed_again_soon_after_a_kill(self):
        with Exporter() as exporter:
            os.kill(exporter.server(), signal.SIGKILL)
            exporter.server_deaths = 1
            wait_until("a scrape", lambda: self.scrape_or_none(exporter), SOON_S)
            exporter.wait_for_page(
                "the second start", lambda page: page.value("wattribute_front_starts_total") == 2)

    def test_a_server_that_ends_again_and_again_is_told_loudly_once_and_is_not_ready_until_it_is_well(self):
        with Exporter() as exporter:
            exporter.check_log = lambda: None  # it must have errors
            for deaths in range(1, 6):
                server = exporter.server()
                os.kill(server, signal.SIGKILL)
                wait_until("the next server", lambda: exporter.child("server") not in (None, server))
                wait_until("a scrape", lambda: self.scrape_or_none(exporter), SOON_S)
                self.assertEqual(503 if deaths >= 3 else 200, exporter.ask("/-/ready").status)
            self.assertIn(b"ended several times in a row", exporter.ask("/-/ready").body)
            told, = [line for line in exporter.log() if line["level"] == "error"]
            self.assertEqual("signal 9 (SIGKILL)", told["how"])
            self.assertIn("keeps exiting", told["msg"])
            # It is believed again after ten seconds.
            wait_until("it is well", lambda: exporter.ask("/-/ready").status == 200, 20)
            os.kill(exporter.server(), signal.SIGKILL)
            wait_until("a scrape", lambda: self.scrape_or_none(exporter), SOON_S)
            self.assertEqual(200, exporter.ask("/-/ready").status)
            self.assertEqual(1, sum(line["level"] == "error" for line in exporter.log()))

    def test_what_is_settled_at_the_end_is_what_the_counter_showed_last(self):
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [11], seconds=900)
        first_mj = 5_000_000
        with Exporter("--replay", trace.write(self.path("long.trace.gz"))) as exporter:
            exporter.wait_for_page("two seconds of it",
                                   lambda page: page.value(METER_ENERGY) > 140)
            read_uj = exporter.page().value(HARDWARE_ENERGY) * 1000000 - first_mj * 1000
            exporter.stop()
            settled = exporter.log("settled")[0]
        self.assertEqual("0", settled["imbalance_uj"])
        self.assertGreaterEqual(int(settled["energy_uj"]), read_uj)
        # Each tick's energy differs, so a sum is a sum of whole ticks only if it is in here.
        sums, total = {0}, 0
        for tick in range(1, 200):
            total += (7000 + tick * 37 % 97) * 1000
            sums.add(total)
        self.assertIn(int(settled["energy_uj"]), sums)


class Confinement(TestCase):
    def test_the_collector_gives_up_what_its_sources_do_not_need(self):
        needed = {"SYS_PTRACE": 19, "DAC_READ_SEARCH": 2, "PERFMON": 38, "SETUID": 7, "SETGID": 6, "SETPCAP": 8,
                  "KILL": 5}
        # Before Linux 6.6 also NET_ADMIN, for process events.
        allowed = sum(1 << bit for bit in needed.values())
        with Exporter("--no-process-events") as exporter:
            exporter.page()
            status = process_status(exporter.pid)
        ours = process_status(os.getpid())
        for name in ("CapPrm", "CapEff"):
            self.assertEqual(int(ours[name], 16) & allowed, int(status[name], 16), name)
        for name in ("CapInh", "CapAmb"):
            self.assertEqual(0, int(status[name], 16), name)
        if int(ours["CapEff"], 16) >> CAP_SETPCAP & 1:
            self.assertEqual(int(ours["CapBnd"], 16) & allowed, int(status["CapBnd"], 16))
        self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))

    def test_a_replay_keeps_no_capability_that_reads_the_node(self):
        with Exporter("--replay", H200_TRACE) as exporter:
            exporter.page()
            status = process_status(exporter.pid)
        self.assertEqual(0, int(status["CapEff"], 16) & (1 << 19 | 1 << 38))

    def test_the_server_has_no_capabilities_no_new_privileges_and_a_system_call_filter(self):
        with Exporter() as exporter:
            exporter.page()  # it has answered: it is past its start
            collector, server = process_status(exporter.pid), process_status(exporter.server())
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(0, int(server[name], 16), name)
        self.assertEqual("1", server["NoNewPrivs"])
        self.assertEqual("2", server["Seccomp"])
        capabilities = int(collector["CapEff"], 16)
        if capabilities >> CAP_SETPCAP & 1:
            self.assertEqual(0, int(server["CapBnd"], 16))
        if collector["Uid"].split()[1] == "0" and capabilities >> CAP_SETUID & 1:
            self.assertEqual(["65521"] * 4, server["Uid"].split())
            self.assertEqual(["65521"] * 4, server["Gid"].split())
            self.assertEqual([], server["Groups"].split())

    def test_no_other_user_can_stop_the_server(self):
        require.root()
        with Exporter() as exporter:
            exporter.page()
            for user in ("65534", "65522"):  # nobody, and another child of ours
                done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "sh", "-c",
                                       f"kill -STOP {exporter.server()}"], stderr=subprocess.PIPE, text=True)
                self.assertNotEqual(0, done.returncode)
                self.assertIn("Operation not permitted", done.stderr)
            exporter.page()

    def test_the_server_holds_no_descriptor_but_its_own(self):
        with Exporter(listen=("127.0.0.1:0", "127.0.0.1:0")) as exporter:
            server = exporter.server()

            def held():
                """Beside 0 to 2; without their numbers. None: one was closed meanwhile."""
                directory = f"/proc/{server}/fd"
                try:
                    return sorted(os.readlink(f"{directory}/{fd}").split("[")[0]
                                  for fd in os.listdir(directory) if int(fd) > 2)
                except FileNotFoundError:
                    return None
            # The event loops (libmicrohttpd 1.0 has one more), the channel and two listeners, once our connections
            # are closed.
            wait_until("the server holds what it should",
                       lambda: held() in (["anon_inode:"] * n + ["socket:"] * 3 for n in (4, 5)))

    def test_the_server_does_not_inherit_the_environment(self):
        with Exporter(env={"SECRET_TOKEN": "hunter2"}) as exporter:
            exporter.page()
            with open(f"/proc/{exporter.server()}/environ", "rb") as file:
                self.assertNotIn(b"hunter2", file.read())


# What ends a process by default. SIGUSR1 closes devices, of which a replay has none.
STRAYS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
          signal.SIGIO, signal.SIGPIPE, signal.SIGPWR, signal.SIGXFSZ, signal.SIGRTMIN, signal.SIGRTMAX)


class End(TestCase):
    def stuck_clients(self, exporter):
        """One that is silent, one in the middle of a request, one that does not read."""
        silent, half, deaf = (connect(exporter.address) for _ in range(3))
        for client in (silent, half, deaf):
            self.addCleanup(client.close)
        half.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        fill(deaf)

    def end(self, signal_number, stuck):
        trace = three_seconds_of_work().write(self.path("work.trace.gz"))
        with Exporter("--replay", trace, *FAST) as exporter:
            server = exporter.server()
            exporter.page()
            if stuck:
                self.stuck_clients(exporter)
            self.assertLess(exporter.stop(signal_number), SOON_S)
            self.assertFalse(is_running(server))
            self.assertEqual("0", exporter.log("settled")[0]["imbalance_uj"])

    def test_sigterm_ends_both_processes_soon(self):
        self.end(signal.SIGTERM, stuck=False)

    def test_sigint_ends_both_processes_soon(self):
        self.end(signal.SIGINT, stuck=False)

    def test_sigterm_ends_both_soon_while_clients_are_stuck(self):
        self.end(signal.SIGTERM, stuck=True)

    def test_sigint_ends_both_soon_while_clients_are_stuck(self):
        self.end(signal.SIGINT, stuck=True)

    def test_sigterm_to_the_whole_group_ends_both_and_still_settles(self):
        trace = three_seconds_of_work().write(self.path("work.trace"))
        with Exporter("--replay", trace) as exporter:
            server = exporter.server()
            exporter.page()
            os.kill(server, signal.SIGTERM)  # as a terminal or an init system sends it to all
            self.assertLess(exporter.stop(), SOON_S)
            self.assertFalse(is_running(server))
            self.assertEqual(1, len(exporter.log("settled")))

    def test_sigquit_settles_as_sigterm_does_and_the_log_names_what_ended_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGXCPU):
            with self.subTest(number), Exporter() as exporter:
                exporter.page()
                exporter.stop(number)
                self.assertEqual([number.name], [line["signal"] for line in exporter.log("stopping")])

    def test_no_other_signal_to_the_whole_unit_ends_anything(self):
        trace = three_seconds_of_work().write(self.path("work.trace"))
        with Exporter("--replay", trace) as exporter:
            server = exporter.server()
            before = exporter.page()
            for number in STRAYS:  # as `systemctl kill -s HUP` sends them
                for pid in (exporter.pid, server):
                    os.kill(pid, number)
            wait_until("SIGHUP is told", lambda: [line for line in exporter.log() if "SIGHUP" in line["msg"]])
            self.assert_counters_grow(before, exporter.page())
            self.assertEqual(server, exporter.server())
            self.assertEqual(1, exporter.page().value("wattribute_front_starts_total"))

    def test_sighup_is_answered_with_what_is_re_read_and_what_needs_a_restart(self):
        with Exporter() as exporter:
            exporter.process.send_signal(signal.SIGHUP)
            message = wait_until("it is told", lambda: [line["msg"] for line in exporter.log()
                                                        if line["msg"].startswith("SIGHUP")])[0]
            self.assertIn("are re-read when they change", message)
            self.assertIn("restart", message)

    def test_a_collector_that_holds_keys_cannot_be_dumped_or_traced(self):
        """The kernel then gives its files in /proc to root."""
        os.chmod(self.directory, 0o755)
        program = shutil.copy(os.environ["WATTRIBUTE"], self.path("wattribute"))
        config = self.write("web.yml", b"http_server_config: {headers: {X-Frame-Options: deny}}\n")
        as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
        wrapper = (*as_nobody, "sh", "-c", f'shift; exec "{program}" "$@"', "sh")
        with Exporter(wrapper=wrapper) as exporter:
            self.assertNotEqual(0, os.stat(f"/proc/{exporter.pid}/environ").st_uid)
        with Exporter(f"--web.config.file={config}", wrapper=wrapper) as exporter:
            self.assertEqual(0, os.stat(f"/proc/{exporter.pid}/environ").st_uid)
            self.assertEqual(200, exporter.ask("/metrics").status)

    def test_the_server_dies_with_the_collector(self):
        with Exporter() as exporter:
            exporter.page()
            server = exporter.server()
            exporter.process.kill()
            exporter.process.wait()
            wait_until("the end of the server", lambda: not is_running(server))
            with self.assertRaises(OSError):
                exporter.page()


if __name__ == "__main__":
    unittest.main()
