"""The exporter on a live NVML: the whole program, with a fake libnvidia-ml.so.1 in place of the driver's."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from harness import (METER_ENERGY, PROCESS_ENERGY, SOON_S, WORKLOAD_ENERGY, Exporter, TestCase, binary, run,
                     wait_until)

FAKE = os.environ["FAKE_NVML_DIR"]
SCENARIOS = os.path.join(os.environ["SOURCE_ROOT"], "tests/fakes/nvml/scenarios")


def fake(scenario, directory=FAKE, **more):
    return {"LD_LIBRARY_PATH": directory, "FAKE_NVML_SCENARIO": os.path.join(SCENARIOS, scenario), **more}


def source_up(page, source):
    values = [value for labels, value in page.values("wattribute_source_up") if labels["source"] == source]
    return values[0] if values else None


class Live(TestCase):
    def test_processes_that_share_a_board_are_booked_and_the_books_balance(self):
        with Exporter(env=fake("time-slicing.trace")) as exporter:
            page = exporter.wait_for_page("energy of three processes", lambda page: sum(
                value > 0 for _, value in page.values(PROCESS_ENERGY)) >= 3)
            self.assert_balanced(page)
            self.assert_processes_sum_to_workloads(page)
            self.assertEqual(0, page.value("wattribute_replay_active"))
            self.assertEqual(1, source_up(page, "nvml/0"))
            self.assertEqual(150754820096, page.value("gpu_memory_total_bytes", gpu="0"))

    def test_a_board_that_hangs_is_down_and_the_other_goes_on(self):
        with Exporter(env=fake("hang.trace")) as exporter:
            page = exporter.wait_for_page("GPU 1 hangs", lambda page: source_up(page, "nvml/1") == 0)
            self.assertEqual(1, source_up(page, "nvml/0"))
            other = [value for labels, value in page.values("wattribute_meter_energy_joules_total")
                     if labels["meter_id"].startswith("GPU-00000000")][0]
            exporter.wait_for_page("GPU 0 goes on", lambda page: [
                value for labels, value in page.values("wattribute_meter_energy_joules_total")
                if labels["meter_id"].startswith("GPU-00000000")][0] > other)
            page = exporter.wait_for_page("GPU 1 is back", lambda page: source_up(page, "nvml/1") == 1)
            self.assert_balanced(page)

    def test_a_board_that_hangs_while_it_is_opened_does_not_hold_up_the_other(self):
        with open(os.path.join(SCENARIOS, "eight-gpus.trace"), "rb") as file:
            lines = file.read().split(b"\n", 9)
        scenario = self.write("opening.trace", b"\n".join(
            [*lines[:9], b"1800000000000000 X 0 hang nvmlDeviceGetUUID 6000", *lines[9:]]))
        with Exporter(env={**fake("eight-gpus.trace"), "FAKE_NVML_SCENARIO": scenario}) as exporter:
            page = exporter.wait_for_page("the other seven are read", lambda page: len(
                [value for _, value in page.values(METER_ENERGY) if value > 0]) == 7, 6)
            self.assertEqual(0, source_up(page, "nvml/0"))
            self.assertEqual(1, source_up(page, "nvml/7"))
            exporter.wait_for_page("it is read, too", lambda page: source_up(page, "nvml/0") == 1)

    def test_sigterm_ends_it_soon_while_every_board_hangs(self):
        with open(os.path.join(SCENARIOS, "eight-gpus.trace"), "rb") as file:
            lines = file.read().split(b"\n", 9)
        scenario = self.write("hanging.trace", b"\n".join([*lines[:9], *(
            b"1800000002000000 X %d hang nvmlDeviceGetPowerUsage 9000" % gpu for gpu in range(8)), *lines[9:]]))
        with Exporter(env={**fake("eight-gpus.trace"), "FAKE_NVML_SCENARIO": scenario}) as exporter:
            exporter.wait_for_page("all hang", lambda page: all(
                source_up(page, f"nvml/{gpu}") == 0 for gpu in range(8)))
            self.assertLess(exporter.stop(), SOON_S)

    def test_sigusr1_closes_every_device_for_a_minute_and_what_is_used_meanwhile_is_a_gap(self):
        with open(os.path.join(SCENARIOS, "time-slicing.trace"), "rb") as file:
            scenario = self.write("looped.trace", file.read() + b"1800000020000000 X * loop\n")
        with Exporter(env={**fake("time-slicing.trace"), "FAKE_NVML_SCENARIO": scenario}) as exporter:
            exporter.wait_for_page("energy is settled", lambda page: page.sum(METER_ENERGY) > 0)
            exporter.process.send_signal(signal.SIGUSR1)
            page = exporter.wait_for_page("it is closed", lambda page: source_up(page, "nvml/0") is None and not any(
                value for _, value in page.values("my_gpu_process_active")))
            self.assertIsNone(source_up(page, "nvml"))
            self.assert_balanced(page)
            self.assertTrue(exporter.log("SIGUSR1: closing every device for a minute"))
            self.assertTrue(exporter.log("every device is closed"))
            page = exporter.wait_for_page("it is read again", lambda page: source_up(page, "nvml/0") == 1, 80)
            page = exporter.wait_for_page("the gap is booked", lambda page: page.sum(
                "wattribute_unowned_energy_joules_total", owner="gap") > 0)
            self.assert_balanced(page)

    def test_sigusr1_says_that_a_device_is_open_until_the_read_that_hangs_returns(self):
        with open(os.path.join(SCENARIOS, "time-slicing.trace"), "rb") as file:
            lines = file.read().split(b"\n", 2)
        hang = b"1800000002000000 X 0 hang nvmlDeviceGetPowerUsage 5000"
        scenario = self.write("hanging.trace", b"\n".join([*lines[:2], hang, lines[2]]))
        with Exporter("--process-scan-interval=1s",
                      env={**fake("time-slicing.trace"), "FAKE_NVML_SCENARIO": scenario}) as exporter:
            exporter.wait_for_page("it hangs", lambda page: source_up(page, "nvml/0") == 0)
            exporter.process.send_signal(signal.SIGUSR1)
            wait_until("it says so", lambda: exporter.log(
                "a device is still open: a read of it hangs, and it is closed when that returns"))
            self.assertFalse(exporter.log("every device is closed"))
            self.assertEqual(0, source_up(exporter.page(), "nvml/0"))
            wait_until("it is closed", lambda: exporter.log("every device is closed"))
            page = exporter.page()
            self.assertIsNone(source_up(page, "nvml/0"))
            self.assert_balanced(page)

    def test_a_driver_that_appears_later_is_picked_up(self):
        empty = self.path("driver")
        os.mkdir(empty)
        with Exporter("--process-scan-interval=1s", env=fake("time-slicing.trace", empty)) as exporter:
            self.assertIsNone(source_up(exporter.page(), "nvml"))
            shutil.copy(os.path.join(FAKE, "libnvidia-ml.so.1"), empty)
            page = exporter.wait_for_page("the board is read", lambda page: source_up(page, "nvml/0") == 1)
            self.assert_balanced(page)

    def test_a_process_is_named_by_its_executable_and_belongs_to_its_user(self):
        sleeper = subprocess.Popen(["sleep", "60"], user=65534 if os.geteuid() == 0 else None)
        try:
            pids = self.write("pids", f"101 {sleeper.pid}\n".encode())
            with Exporter(env=fake("time-slicing.trace", FAKE_NVML_PIDS=pids)) as exporter:
                page = exporter.wait_for_page("the process is there", lambda page: page.sum(
                    PROCESS_ENERGY, pid=str(sleeper.pid)) > 0)
                rows = [labels for labels, _ in page.values(PROCESS_ENERGY) if labels["pid"] == str(sleeper.pid)]
                self.assertEqual("sleep", rows[0]["process_name"])
                started = page.value("my_gpu_process_start_time_seconds", pid=str(sleeper.pid))
                self.assertLess(abs(float(started) - time.time()), 60)
                # Whom the tests run as, or in which unit or container; the others have only their pids.
                self.assertEqual(page.sum(PROCESS_ENERGY, pid=str(sleeper.pid)),
                                 page.sum(WORKLOAD_ENERGY) - page.sum(WORKLOAD_ENERGY, kind="process"))
        finally:
            sleeper.kill()
            sleeper.wait()


class Verbs(TestCase):
    def test_a_recording_replays_to_the_ledger_that_was_booked_live(self):
        trace = self.path("live.trace.gz")
        done = run("record", "-o", trace, "--duration=4s", env=fake("time-slicing.trace"))
        self.assertEqual(0, done.returncode, done)
        ledger = json.loads(done.stdout)
        self.assertGreater(ledger["meters"][0]["energy_uj"], 0)
        self.assertEqual(done.stdout, run("replay", trace).stdout)

    def test_the_activity_that_dcgm_knows_is_read_recorded_and_replayed(self):
        procfs, trace = self.path("proc"), self.path("dcgm.trace.gz")
        os.makedirs(f"{procfs}/net")
        self.write("proc/net/tcp", b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
                                   b"   0: 0100007F:15B3 00000000:0000 0A 0:0 00:00000000 00000000 0 0 1674 1\n")
        env = fake("time-slicing.trace", f"{FAKE}:{FAKE}/../dcgm",
                   FAKE_DCGM_GPUS="GPU-00000000-0000-4000-8000-000000000000")
        flags = (f"--path.procfs={procfs}", "--process-scan-interval=1s")
        done = run("record", "-o", trace, "--duration=6s", *flags, env=env)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(gzip.open(trace).read(), rb"\d G 0 1=50(\.0*)? 2=50")
        self.assertEqual(done.stdout, run("replay", trace).stdout)
        with Exporter(*flags, env=env) as exporter:
            exporter.wait_for_page("DCGM is read", lambda page: source_up(page, "dcgm") == 1)
        done = run("record", "-o", self.path("off.trace.gz"), "--duration=4s", "--no-collector.dcgm", *flags, env=env)
        self.assertNotIn(b" G 0 ", gzip.open(self.path("off.trace.gz")).read())

    def test_a_recording_of_partitioned_boards_has_their_instances_and_replays_to_the_same_ledger(self):
        for scenario, records in (
                ("a100-mig.trace", (r" B 0 1 7 98 5 2:0:0:3:1:14:20937965568:1c\.3g\.20gb:MIG-",
                                    r" R 0 c 3 101:536870912:2:0 102:536870912:2:1 104:536870912:9:0\n",
                                    r" K 0 2 used 1073741824\n")),
                ("h100-mig.trace", (r" B 1 1 7 132 1 0:0:0:7:7:132:85094039552:7g\.80gb:MIG-",
                                    r" G 0 i=13 1=100 2=70 3=35 ")),
                ("vgpu-host.trace", (r" V 0 2 3251634178:4294967296:u:0f4f1cbb-", r" Y 0 3251634179 \d+ 20 5 0 0\n"))):
            with self.subTest(scenario):
                trace = self.path(scenario)
                done = run("record", "-o", trace, "--duration=4s", env=fake(scenario))
                self.assertEqual(0, done.returncode, done)
                self.assertEqual(done.stdout, run("replay", trace).stdout)
                with gzip.open(trace, "rt") as file:
                    text = file.read()
                self.assertNotRegex(text, r" [SU] 0 " if "mig" in scenario else "^$")
                for record in records:
                    self.assertRegex(text, record)

    def test_a_recording_does_not_overwrite_a_file(self):
        existing = self.write("there", b"precious")
        done = run("record", "-o", existing, "--duration=1s", env=fake("time-slicing.trace"))
        self.assertEqual(2, done.returncode)
        self.assertIn(b"does not exist", done.stderr)
        with open(existing, "rb") as file:
            self.assertEqual(b"precious", file.read())

    def test_a_recording_ends_well_by_a_hangup_of_its_terminal_and_not_by_stray_signals(self):
        trace = self.path("live.trace.gz")
        with subprocess.Popen([binary(), "record", "-o", trace], stdout=subprocess.PIPE,
                              env={**os.environ, **fake("time-slicing.trace")}) as recorder:
            try:
                wait_until("it has written", lambda: os.path.exists(trace) and os.path.getsize(trace) > 0)
                for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE):
                    recorder.send_signal(number)
                self.assertIsNone(recorder.poll())
                recorder.send_signal(signal.SIGHUP)
                ledger = recorder.communicate(timeout=SOON_S)[0]
            finally:
                recorder.kill()
            self.assertEqual(0, recorder.returncode)
        self.assertEqual(ledger, run("replay", trace).stdout)

    def test_a_recording_that_does_not_fit_says_so_and_names_the_file(self):
        trace = self.path("live.trace.gz")
        limit = 64
        shrink = ("import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (%d, %d)); "
                  "os.execv(sys.argv[1], sys.argv[1:])" % (limit, limit))
        done = run("record", "-o", trace, "--duration=1m",
                   wrapper=(sys.executable, "-c", shrink), env=fake("time-slicing.trace"))
        self.assertEqual((1, b""), (done.returncode, done.stdout))
        self.assertEqual(f"wattribute: cannot write '{trace}': File too large; it is incomplete, and 'replay' "
                         "refuses it\n", done.stderr.decode())
        self.assertEqual(limit, os.path.getsize(trace))
        self.assertEqual(1, run("replay", trace).returncode)

    def test_check_tells_what_is_there(self):
        done = run("check", "--json", f"--path.sysfs={self.directory}", f"--path.rootfs={self.directory}",
                   env=fake("time-slicing.trace"))
        self.assertEqual(0, done.returncode, done)
        self.assertEqual(1, json.loads(done.stdout)["summary"]["gpus"])
        verdicts = {finding["what"]: finding["verdict"] for finding in json.loads(done.stdout)["findings"]}
        for what in ("nvidia library", "nvidia driver", "gpu 0", "gpu 0: energy counter", "gpu 0: process list"):
            self.assertEqual("ok", verdicts[what], what)

    def test_check_tells_what_is_missing_and_what_to_do(self):
        done = run("check", env={"LD_LIBRARY_PATH": self.path("nowhere")})
        self.assertRegex(done.stdout.decode(), r"missing +nvidia library .*\n +-> install NVIDIA's driver")
        done = run("check", "--json", env=fake("no-counter.trace"))
        finding = [f for f in json.loads(done.stdout)["findings"] if f["what"] == "gpu 0: energy counter"][0]
        self.assertEqual("limited", finding["verdict"])
        self.assertIn("integrated", finding["remedy"])


if __name__ == "__main__":
    unittest.main()
