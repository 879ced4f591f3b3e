"""`wattribute replay`: bad traces are refused by file and line, good ones are booked exactly."""
import gzip
import itertools
import json
import os
import re
import subprocess
import threading
import unittest

from harness import H200_TRACE, SOURCE_ROOT, TestCase, Trace, binary, run

HEADER = b"wattribute-trace 1\n"
GPU = b"gpu 0 uuid=GPU-0 name=x driver=1 power_limit_mw=700000\n"
BEGIN_US = Trace.BEGIN_US


def energy(t_us, counter_mj, gpu=0):
    return b"%d E %d %d\n" % (BEGIN_US + t_us, gpu, counter_mj)


def good_trace():
    trace = Trace()
    trace.gpu(0)
    trace.work(0, [11, 12], seconds=20)
    return trace


class Refusals(TestCase):
    def refuse(self, name, data, line, why):
        """`replay` and `serve` both name the file and the line, and print nothing else."""
        path = self.write(name, data)
        where = f"wattribute: trace '{path}', line {line}: "
        for arguments in (["replay", path],
                          ["serve", "--listen-address=127.0.0.1:0", "--replay", path]):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(1, done.returncode, done)
                self.assertEqual(b"", done.stdout)
                *log, error = done.stderr.decode(errors="replace").splitlines()
                self.assertTrue(error.startswith(where), error)
                self.assertRegex(error[len(where):], why)
                if arguments[0] == "replay":
                    self.assertEqual([], log)

    def test_an_empty_file_is_refused(self):
        self.refuse("empty.trace", b"", 1, "empty")

    def test_a_file_of_other_bytes_is_refused(self):
        self.refuse("binary.trace", bytes(range(256)) * 64, 1, "not a trace")
        with open(binary(), "rb") as file:
            self.refuse("program.trace", file.read(100000), 1, "not a trace|longer than")

    def test_a_trace_of_another_version_is_refused(self):
        self.refuse("new.trace", b"wattribute-trace 4\n" + GPU + energy(0, 1), 1, "version that this program does not read")

    def test_a_header_alone_is_refused(self):
        self.refuse("header.trace", HEADER, 2, "no record")

    def test_a_header_without_its_newline_is_refused(self):
        self.refuse("header.trace", HEADER[:-1], 1, "not whole|cut short")

    def test_a_trace_cut_within_a_line_is_refused(self):
        self.refuse("cut.trace", HEADER + GPU + energy(0, 1) + energy(100000, 9)[:-1], 4,
                    "cut short")

    def test_gzip_that_is_cut_short_is_refused(self):
        body = good_trace().body()
        packed = gzip.compress(body, mtime=0)
        for cut in (len(packed) // 2, len(packed) - 8, len(packed) - 1):
            path = self.write("cut.trace.gz", packed[:cut])
            done = run("replay", path)
            self.assertEqual((1, b""), (done.returncode, done.stdout), done)
            self.assertRegex(done.stderr.decode(),
                             rf"^wattribute: trace '{path}', line [0-9]+: .*cut short.*\n$")

    def test_gzip_with_a_flipped_byte_is_refused(self):
        body = good_trace().body()
        packed = gzip.compress(body, mtime=0)
        for at in (len(packed) // 2, len(packed) - 6):  # in the data, in the checksum
            flipped = bytearray(packed)
            flipped[at] ^= 0x55
            path = self.write("flipped.trace.gz", flipped)
            done = run("replay", path)
            self.assertEqual((1, b""), (done.returncode, done.stdout), done)
            self.assertRegex(done.stderr.decode(),
                             rf"^wattribute: trace '{path}', line [0-9]+: .+\n$")

    def test_a_record_that_is_earlier_than_the_one_before_it_is_refused(self):
        self.refuse("order.trace", HEADER + GPU + energy(200000, 1) + energy(100000, 2), 4,
                    "out of order")

    def test_a_gpu_that_no_line_describes_is_refused(self):
        self.refuse("undescribed.trace", HEADER + energy(0, 1), 2, "no 'gpu' line")
        self.refuse("other.trace", HEADER + GPU + energy(0, 1, gpu=1), 3, "no 'gpu' line")

    def test_a_gpu_that_is_described_twice_is_refused(self):
        self.refuse("twice.trace", HEADER + GPU + GPU + energy(0, 1), 3, "described before")

    def test_two_gpus_with_one_uuid_are_refused(self):
        second = GPU.replace(b"gpu 0", b"gpu 1")
        lists = b"".join(b"%d R %d c 1 7:1\n" % (BEGIN_US + t, gpu)
                         for t in range(0, 400000, 100000) for gpu in (0, 1))
        self.refuse("same.trace", HEADER + GPU + second + lists, 3, "uuid")

    def test_a_gpu_without_uuid_is_refused(self):
        self.refuse("anonymous.trace", HEADER + b"gpu 0 name=x\n" + energy(0, 1), 2, "uuid")

    def test_a_gpu_index_that_is_too_high_is_refused(self):
        self.refuse("index.trace", HEADER + b"gpu 4096 uuid=x\n", 2, "gpu index")
        self.refuse("index.trace", HEADER + GPU + energy(0, 1, gpu=1 << 32), 3, "gpu index")

    def test_a_list_that_is_too_long_is_refused(self):
        for count in (65537, 1 << 31, 1 << 63, (1 << 64) - 1, 1 << 64):
            self.refuse("list.trace", HEADER + GPU + b"%d R 0 c %d 1:1\n" % (BEGIN_US, count), 3,
                        "list length")

    def test_a_list_that_is_longer_than_it_says_is_refused(self):
        self.refuse("list.trace", HEADER + GPU + b"%d R 0 c 1 1:1 2:1\n" % BEGIN_US, 3,
                    "more fields")

    def test_a_list_that_is_shorter_than_it_says_is_refused(self):
        self.refuse("list.trace", HEADER + GPU + b"%d R 0 c 3 1:1 2:1\n" % BEGIN_US, 3, "list")

    def test_numbers_that_are_none_or_too_large_are_refused(self):
        for word in (b"", b"-1", b"+1", b"0x1", b"1e3", b"1.5", b"nan", b"99999999999999999999",
                     b"18446744073709551615"):
            self.refuse("number.trace", HEADER + GPU + b"%d E 0 %b\n" % (BEGIN_US, word), 3,
                        "energy counter")

    def test_a_time_that_is_none_is_refused(self):
        self.refuse("time.trace", HEADER + GPU + b"yesterday E 0 1\n", 3, "time in microseconds")
        self.refuse("time.trace", HEADER + GPU + b"18446744073709551615 E 0 1\n", 3,
                    "time in microseconds")

    def test_a_report_of_usage_that_is_not_whole_is_refused(self):
        head, workload = b"%d C 1 2 3 4 2\n" % BEGIN_US, b"%d D user 1 - - 0 0\n" % BEGIN_US
        self.refuse("cut.trace", HEADER + head + workload, 4, "cut short")
        self.refuse("mixed.trace", HEADER + head + workload + head, 4, "next workload")
        self.refuse("more.trace", HEADER + head + workload * 3, 5, "without a report")

    def test_a_nul_byte_is_refused(self):
        self.refuse("nul.trace", HEADER + GPU + energy(0, 1) + b"%d E 0 1\x00\n" % BEGIN_US, 4,
                    "NUL")

    def test_a_line_that_is_too_long_is_refused(self):
        self.refuse("long.trace", HEADER + GPU + b"%d X 0 " % BEGIN_US + b"a" * (1 << 20) + b"\n",
                    3, "longer than")

    def test_an_error_names_the_first_bad_line_and_not_the_last(self):
        self.refuse("bad.trace", HEADER + GPU + energy(0, 1) + b"nonsense\n" + energy(1, 2) +
                    b"nonsense\n", 4, "nonsense")

    def refuse_bomb(self, name, block, why):
        """300 MB in under 1 MB are refused quickly and in little memory."""
        path = self.path(name)
        with gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as file:
            file.write(HEADER + GPU)
            for _ in range(300):
                file.write(block)
        self.assertLess(os.path.getsize(path), 1_000_000)
        process = subprocess.Popen([binary(), "replay", path], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process.stdout, process.stderr:
            out, error = process.stdout.read(), process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual((1, b""), (process.returncode, out), error)
        self.assertRegex(error, rf"^wattribute: trace '{path}', line [0-9]+: .*({why}).*\n$")
        self.assertLess(usage.ru_maxrss, 128 * 1024, "KiB of memory")
        self.assertLess(usage.ru_utime + usage.ru_stime, 10, "seconds of CPU")

    def test_a_gzip_bomb_of_zeros_is_refused(self):
        self.refuse_bomb("zeros.trace.gz", b"\0" * 1_000_000, "longer than")

    def test_a_gzip_bomb_of_one_good_line_is_refused(self):
        line = energy(0, 1)
        self.refuse_bomb("lines.trace.gz", line * (1_000_000 // len(line)), "gzip bomb")

    def test_a_gzip_bomb_of_empty_names_is_refused(self):
        block = b"%d X 0\n" % BEGIN_US
        self.refuse_bomb("unknown.trace.gz", block * (1_000_000 // len(block)), "gzip bomb")


class Ledgers(TestCase):
    def ledger(self, path, *flags):
        done = run("replay", *flags, path)
        self.assertEqual((0, b""), (done.returncode, done.stderr), done)
        return json.loads(done.stdout)

    def assert_balanced(self, ledger):
        self.assertTrue(ledger["meters"])
        for meter in ledger["meters"]:
            owned = sum(process["energy_uj"] for process in ledger["processes"]
                        if process["gpu"] == meter["gpu"])
            unowned = sum(meter[name] for name in ("idle_uj", "unattributed_uj",
                                                   "gap_uj"))
            self.assertEqual(meter["energy_uj"], owned + unowned)
        for process in ledger["processes"]:
            self.assertEqual(process["energy_uj"], process["active_uj"] + process["idle_uj"])
            self.assertLessEqual(process["measured_uj"], process["energy_uj"])
            self.assertLessEqual(process["measured_uj"], (process["confidence"] + 1e-6) * process["energy_uj"])
            self.assertLessEqual(process["confidence"], 1)
            self.assertLessEqual(process.get("uncertainty_uj", 0), process["energy_uj"])

    def energy_of(self, ledger):
        return {process["pid"]: process["energy_uj"] for process in ledger["processes"]}

    def test_a_plain_text_trace_gives_the_ledger_of_the_compressed_one(self):
        trace = good_trace()
        plain = run("replay", trace.write(self.path("good.trace")))
        packed = run("replay", trace.write(self.path("good.trace.gz")))
        self.assertEqual(0, plain.returncode, plain)
        self.assertEqual(plain.stdout, packed.stdout)
        ledger = json.loads(plain.stdout)
        self.assertEqual(trace.energy_mj[0] * 1000, ledger["meters"][0]["energy_uj"])

    def test_the_same_trace_gives_the_same_bytes(self):
        first, second = run("replay", H200_TRACE), run("replay", H200_TRACE)
        self.assertEqual(0, first.returncode)
        self.assertGreater(len(first.stdout), 100)
        self.assertEqual(first.stdout, second.stdout)

    def test_the_recorded_trace_is_booked_to_the_microjoule_however_it_is_split(self):
        with gzip.open(H200_TRACE, "rt") as file:
            counters = [int(line.split()[3]) for line in file if line.split()[1:3] == ["E", "0"]]
        expected_uj = (counters[-1] - counters[0]) * 1000
        ledgers = set()
        for policy, interval, method in itertools.product(("proportional", "equal", "none"), ("100ms", "1s", "10s"),
                                                          ("intensity", "timeshare")):
            with self.subTest(policy=policy, interval=interval, method=method):
                ledger = self.ledger(H200_TRACE, f"--idle-policy={policy}",
                                     f"--sample-interval={interval}", f"--attribution={method}")
                self.assert_balanced(ledger)
                self.assertEqual([expected_uj],
                                 [meter["energy_uj"] for meter in ledger["meters"]])
                self.assertEqual(6, len(ledger["processes"]))
                if interval != "10s":  # no window that long is idle: the policies agree
                    ledgers.add(json.dumps(ledger))
        self.assertEqual(12, len(ledgers), "a flag changed nothing")

    def test_the_recorded_trace_is_booked_to_the_microjoule_however_long_it_waits(self):
        ledgers = [self.ledger(H200_TRACE, f"--attribution-delay={delay}") for delay in ("0s", "20s", "60s")]
        for ledger in ledgers:
            self.assert_balanced(ledger)
            self.assertEqual(ledgers[0]["meters"][0]["energy_uj"], ledger["meters"][0]["energy_uj"])
        self.assertEqual(3, len(set(map(json.dumps, ledgers))), "the delay changed nothing")

    def steady_trace(self):
        """70 W for 10 s, without a change that would tell the two processes apart."""
        trace = Trace()
        trace.gpu(0)
        for tick in range(101):
            trace.energy(tick / 10, 0, 1000 + tick * 7000)
            trace.utilisation(tick / 10, 0, 99)
        for second in range(10):
            trace.listed(second, 0, 1, 2)
            for fifth in range(5):
                trace.sample(second + fifth / 5 + 0.1, 0, 1 if fifth < 4 else 2)
        return trace.write(self.path("steady.trace.gz"))

    def test_70_watts_for_10_seconds_split_80_to_20_are_560_and_140_joules(self):
        ledger = self.ledger(self.steady_trace(), "--attribution=timeshare")
        self.assert_balanced(ledger)
        self.assertEqual(700_000_000, ledger["meters"][0]["energy_uj"])
        self.assertEqual({1: 560_000_000, 2: 140_000_000}, self.energy_of(ledger))
        self.assertEqual([0, 0], [process["confidence"] for process in ledger["processes"]])
        self.assertFalse([process for process in ledger["processes"] if "uncertainty_uj" in process])

    def test_who_draws_the_same_is_booked_by_time(self):
        ledger = self.ledger(self.steady_trace())
        self.assert_balanced(ledger)
        self.assertAlmostEqual(560_000_000, self.energy_of(ledger)[1], delta=700_000)
        self.assertTrue(all(process["uncertainty_uj"] > 0 for process in ledger["processes"]), ledger)

    def test_who_is_learned_to_draw_more_is_booked_more_than_its_time(self):
        """Turns of a second each, 200 W and 600 W; then both at once, by halves: 400 W."""
        trace, counter_mj = Trace(), 1000
        trace.gpu(0)
        for tick in range(1, 801):
            second = (tick - 1) // 10
            pid = 1 + second % 2 if second < 60 else 1 + tick // 2 % 2
            counter_mj += (20_000 if pid == 1 else 60_000) if second < 60 else 40_000
            trace.energy(tick / 10, 0, counter_mj)
            trace.utilisation(tick / 10, 0, 99)
            if tick % 10 == 1:
                trace.listed(tick / 10, 0, 1, 2)
            if tick % 2 == 1:
                trace.sample(tick / 10, 0, pid)
        path = trace.write(self.path("two-draws.trace.gz"))
        drawn = {}
        for method in ("timeshare", "intensity"):
            ledger = self.ledger(path, f"--attribution={method}")
            self.assert_balanced(ledger)
            drawn[method] = self.energy_of(ledger)
        self.assertGreater(drawn["intensity"][2], drawn["timeshare"][2])
        self.assertAlmostEqual(3, drawn["intensity"][2] / drawn["intensity"][1], delta=0.5)
        self.assertTrue(all(process["confidence"] > 0 for process in ledger["processes"]), ledger)

    def test_an_idle_power_that_is_told_divides_a_board_that_never_rests(self):
        """Of the 300 W that it always draws, 75.5 W are known to be idle; nothing shows them."""
        trace = Trace()
        ident = trace.gpu(0)
        trace.gpu(1)
        for gpu in (0, 1):
            trace.work(gpu, [11, 12], seconds=20, watts=300)
        path = trace.write(self.path("busy.trace.gz"))
        for flag, told_uj in ((["--gpu.idle-watts=75.5"], [1510_000_000] * 2),
                              ([f"--gpu.idle-watts={ident}=75.5"], [1510_000_000, 0]),
                              (["--gpu.idle-watts=40", "--gpu.idle-watts=1=75.5"], [800_000_000, 1510_000_000]),
                              ([], [0, 0])):
            for policy, method in itertools.product(("none", "proportional"), ("intensity", "timeshare")):
                with self.subTest(flag=flag, policy=policy, method=method):
                    ledger = self.ledger(path, *flag, f"--idle-policy={policy}", f"--attribution={method}")
                    self.assert_balanced(ledger)
                    self.assertEqual([trace.energy_mj[gpu] * 1000 for gpu in (0, 1)],
                                     [meter["energy_uj"] for meter in ledger["meters"]])
                    idle_uj = [meter["idle_uj"] if policy == "none" else sum(
                        process["idle_uj"] for process in ledger["processes"] if process["gpu"] == meter["gpu"])
                        for meter in ledger["meters"]]
                    self.assertEqual(told_uj, idle_uj)

    def test_a_counter_that_goes_back_is_a_reset_and_what_it_then_shows_is_a_gap(self):
        trace = Trace()
        trace.gpu(0)
        for tick in range(40):
            counter_mj = 50_000_000 + tick * 7000 if tick < 20 else (tick - 19) * 7000
            trace.energy(tick / 10, 0, counter_mj)
            trace.utilisation(tick / 10, 0, 99)
        ledger = self.ledger(trace.write(self.path("reset.trace.gz")))
        self.assert_balanced(ledger)
        meter = ledger["meters"][0]
        self.assertEqual(1, meter["resets"])
        self.assertEqual(7_000_000, meter["gap_uj"])
        self.assertEqual((19 + 20) * 7_000_000, meter["energy_uj"])

    def test_a_jump_that_the_board_cannot_have_used_is_not_believed(self):
        trace = Trace()
        trace.gpu(0)
        for tick in range(40):
            trace.energy(tick / 10, 0, tick * 7000 + (10**9 if tick >= 20 else 0))
            trace.utilisation(tick / 10, 0, 99)
        ledger = self.ledger(trace.write(self.path("jump.trace.gz")))
        self.assert_balanced(ledger)
        meter = ledger["meters"][0]
        self.assertEqual(1, meter["resets"])
        self.assertEqual((19 + 19) * 7_000_000, meter["energy_uj"])

    def test_the_examples_of_the_documentation_are_right(self):
        with open(os.path.join(SOURCE_ROOT, "docs/trace-format.md"), encoding="utf-8") as file:
            blocks = [block.removeprefix("\n") for block in file.read().split("```")[1::2]]
        examples = [(trace, ledger) for trace, ledger in zip(blocks, blocks[1:])
                    if trace.startswith("wattribute-trace")]
        self.assertEqual(3, len(examples))
        for trace, ledger in examples:
            done = run("replay", "--attribution=timeshare", self.write("example.trace", trace.encode()))
            self.assertEqual(ledger, done.stdout.decode())

    def test_the_meters_of_a_node_are_booked_to_the_microjoule(self):
        lines, counter_uj = [], 0
        for second in range(0, 100, 5):
            t_us = BEGIN_US + second * 1_000_000
            lines += [f"{t_us} J rapl package 0 {counter_uj} 0",
                      f"{t_us} C {2_000_000 + second} 40000000 0 0 2" + (" f" if second == 0 else ""),
                      f"{t_us} D unit a.service - - 1000000 0", f"{t_us} D user 1000 - - {second} 0"]
            counter_uj += 123_456_789 + second
        ledger = self.ledger(self.write("node.trace", HEADER + "\n".join(lines).encode() + b"\n"))
        meter, = ledger["meters"]
        owned = sum(workload["energy_uj"] for workload in ledger["workloads"])
        unowned = sum(meter[name] for name in ("idle_uj", "system_uj", "unattributed_uj", "gap_uj"))
        self.assertEqual(meter["energy_uj"], owned + unowned)
        self.assertEqual(counter_uj - 123_456_789 - 95, meter["energy_uj"])
        self.assertEqual({"unit", "user"}, {workload["kind"] for workload in ledger["workloads"]})

    def test_records_of_unknown_kinds_change_nothing(self):
        trace = good_trace()
        before = run("replay", trace.write(self.path("known.trace"))).stdout
        for t in range(20):
            trace.add(t + 0.05, "Z", 0, b"what ever a=b")
        self.assertEqual(before, run("replay", trace.write(self.path("unknown.trace"))).stdout)


class Node:
    """A procfs and a sysfs with one package and one unit, both of which move."""

    def __init__(self, path):
        self.path, self.steps, self.ending = path, 0, threading.Event()
        self.put("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 x rw")
        self.put("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 1 kB\nMemAvailable: 512 kB")
        self.put("sys/class/powercap/intel-rapl:0/name", "package-0")
        self.put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850")
        self.step()
        self.thread = threading.Thread(target=self.run)

    def put(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="ascii") as file:
            file.write(f"{text}\n")
            file.truncate()

    def step(self):
        self.steps += 1
        self.put("proc/stat", f"cpu {self.steps * 10} 0 0 {self.steps * 10} 0 0 0 0 0 0")
        self.put("sys/class/powercap/intel-rapl:0/energy_uj", 262143000000 + self.steps * 200
                 if self.steps < 20 else self.steps * 200)
        self.put("sys/fs/cgroup/system.slice/a.service/cpu.stat", f"usage_usec {self.steps * 50000}")

    def run(self):
        while not self.ending.wait(0.1):
            self.step()

    def __enter__(self):
        self.thread.start()
        return [f"--path.procfs={self.path}/proc", f"--path.sysfs={self.path}/sys", f"--path.rootfs={self.path}"]

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()


class Recordings(TestCase):
    def test_what_a_node_did_replays_to_the_ledger_that_was_booked_live(self):
        trace = self.path("node.trace.gz")
        with Node(self.path("node")) as paths:
            done = run("record", "-o", trace, "--duration=8s", *paths, env={"SECRET": "do-not-record-this"})
        self.assertEqual((0, b""), (done.returncode, done.stderr), done)
        ledger = json.loads(done.stdout)
        meter, = ledger["meters"]
        self.assertEqual(("package", "0"), (meter["meter"], meter["meter_id"]))
        workload, = ledger["workloads"]
        self.assertEqual(("unit", "a.service"), (workload["kind"], workload["id"]))
        self.assertGreater(workload["energy_uj"], 0)
        self.assertEqual(done.stdout, run("replay", trace).stdout)
        with gzip.open(trace, "rb") as file:
            text = file.read()
        self.assertEqual({b"J", b"C", b"D", b"O"}, {line.split()[1] for line in text.splitlines()[1:]})
        self.assertEqual([b"unit a.service name=a.service"],
                         re.findall(rb"^\d+ O (.*)$", text, re.MULTILINE))
        self.assertNotIn(b"do-not-record-this", text)

    def test_names_can_be_left_out_of_a_recording(self):
        trace = self.path("node.trace.gz")
        with Node(self.path("node")) as paths:
            done = run("record", "-o", trace, "--duration=6s", "--no-record.names", *paths)
        self.assertEqual((0, b""), (done.returncode, done.stderr), done)
        self.assertEqual(done.stdout, run("replay", trace).stdout)
        with gzip.open(trace, "rb") as file:
            self.assertEqual({b"J", b"C", b"D"}, {line.split()[1] for line in file.read().splitlines()[1:]})

    def test_without_a_meter_there_is_nothing_to_record(self):
        node = Node(self.path("node"))
        os.remove(os.path.join(node.path, "sys/class/powercap/intel-rapl:0/name"))
        with node as paths:
            done = run("record", "-o", self.path("none.trace.gz"), *paths)
        self.assertEqual(1, done.returncode, done)
        self.assertIn(b"nothing to record", done.stderr)
        self.assertFalse(os.path.exists(self.path("none.trace.gz")))


if __name__ == "__main__":
    unittest.main()
