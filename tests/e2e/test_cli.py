"""The command line: what is wrong is said in one line, and where it listens is where it is told."""
import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import time
import unittest

from harness import H200_TRACE, SOON_S, Exporter, TestCase, Trace, ask, binary, run, wait_until

LOOPBACK = "--listen-address=127.0.0.1:0"
ACTIVATE = ("import os, sys; os.dup2(int(sys.argv[1]), 3); "
            "os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[2], sys.argv[2:])")


def activate(file):
    """A wrapper that starts the program as systemd would, with this file as descriptor 3."""
    return sys.executable, "-c", ACTIVATE, str(file.fileno())


def limited(soft, hard):
    """A wrapper with these limits of open files."""
    return sys.executable, "-c", ("import os, resource, sys; "
                                  f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); "
                                  "os.execv(sys.argv[1], sys.argv[1:])")


class Refusals(TestCase):
    def refuse(self, *arguments, words, **how):
        """Status 2, nothing on stdout, and one line on stderr with these words in this order."""
        done = run(*arguments, **how)
        self.assertEqual((2, b""), (done.returncode, done.stdout), done)
        text = done.stderr.decode()
        self.assertRegex(text, r"\Awattribute: [^\n]+\n\Z")
        at = 0
        for word in words:
            self.assertIn(word, text[at:], text)
            at = text.index(word, at) + len(word)

    def test_an_unknown_flag_is_refused_with_the_one_that_was_meant(self):
        self.refuse("--listen-adress=:1", words=["--listen-adress", "did you mean --listen-address",
                                                 "--help"])
        self.refuse("--frobnicate", words=["--frobnicate", "--help"])

    def test_an_unknown_switch_of_a_source_is_refused_with_the_one_that_was_meant(self):
        self.refuse("--no-collector.rpal", words=["--no-collector.rpal",
                                                  "did you mean --no-collector.rapl"])
        path = self.write("w.yaml", b"collector.rpal: false\n")
        self.refuse(f"--config.file={path}", words=[f"{path}:1:1", "did you mean 'collector.rapl'"])

    def test_a_flag_with_a_value_has_no_negation_and_none_is_suggested(self):
        self.refuse("--no-replay", words=["--no-replay", "--replay takes a value", "leave it out", "--help"])
        self.refuse("--no-o", words=["--no-o", "--output takes a value"])
        done = run("--no-repaly")
        self.assertNotIn(b"did you mean", done.stderr)

    def test_what_is_no_regular_file_is_refused_at_once(self):
        pipe, unix = self.path("pipe"), self.path("socket")
        os.mkfifo(pipe, 0o604)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(unix)
        credentials = self.write("credentials", b"username: a\npassword: b\n")
        os.chmod(credentials, 0o600)
        bmc = ("--redfish.url=https://127.0.0.1:1/",)
        for flag, more in (("--config.file", ()), ("--web.config.file", ()), ("--cost.tariff-file", ()), ("--replay", ()),
                           ("--emissions.keys-file", ("--emissions.providers=rte",)),
                           ("--emissions.ca-file", ("--emissions.providers=rte",)),
                           ("--redfish.credentials-file", bmc),
                           ("--redfish.ca-file", (*bmc, f"--redfish.credentials-file={credentials}"))):
            for path in (pipe, unix, "/dev/zero"):
                with self.subTest(flag=flag, path=path):
                    done = run(LOOPBACK, *more, f"{flag}={path}", timeout=SOON_S)
                    self.assertEqual((2, b""), (done.returncode, done.stdout), done)
                    self.assertRegex(done.stderr.decode(), rf"{path}.*[Nn]ot a regular file")

    def test_an_unknown_command_is_refused(self):
        self.refuse("repaly", words=["repaly", "replay", "--help"])

    def test_a_surplus_argument_is_refused(self):
        self.refuse("serve", "now", words=["now", "--help"])
        self.refuse("replay", *map(str, range(65)), words=["'64'", "at most 64 arguments"])

    def test_a_missing_argument_is_refused(self):
        self.refuse("replay", words=["replay", "TRACE"])
        self.refuse("--metrics-path", words=["--metrics-path", "needs a value"])

    def test_bad_values_are_refused_with_what_is_allowed(self):
        for flag, words in (("--sample-interval=fast", ["fast", "250ms"]),
                            ("--sample-interval=1ms", ["1ms", "100ms to 1m"]),
                            ("--sample-interval=1h", ["1h", "100ms to 1m"]),
                            ("--sample-interval=-1s", ["-1s", "duration"]),
                            ("--max-processes=0", ["'0'", "1 to 1048576"]),
                            ("--max-workloads=many", ["many", "1 to 1048576"]),
                            ("--idle-policy=fair", ["fair", "proportional, equal, reserved or none"]),
                            ("--attribution=magic", ["magic", "timeshare or intensity"]),
                            ("--attribution-delay=61s", ["61s", "0s to 1m"]),
                            ("--attribution-delay=soon", ["soon", "duration"]),
                            ("--log-level=loud", ["loud", "debug, info, warn or error"]),
                            ("--log-format=xml", ["xml", "logfmt or json"]),
                            ("--metric-prefix=9gpu", ["9gpu", "my_gpu_process"]),
                            ("--metric-prefix=wattribute", ["wattribute", "another"]),
                            ("--metrics-path=metrics", ["metrics", "begin with '/'"]),
                            ("--metrics-path=/-/ready", ["/-/ready", "another path"]),
                            ("--compat=dcgm", ["dcgm", "my-gpu-exporter"]),
                            ("--pue=0.99", ["0.99", "1 to 10"]),
                            ("--pue=1,2", ["1,2", "1 to 10", "1.25"]),
                            ("--pue=1.2345678", ["1.2345678", "six decimals"]),
                            ("--emissions.factor=5001", ["5001", "0 to 5000"]),
                            ("--emissions.zone=Atlantis", ["Atlantis", "--emissions.factor"]),
                            ("--emissions.embodied=cpu=1", ["cpu=1", "gpu, package, dram or rest", "gpu=28.5"]),
                            ("--cost.currency=euro", ["euro", "three capital letters"]),
                            ("--cost.price=0.3", ["--cost.currency", "both"]),
                            ("--cost.tariff-file=", ["--cost.tariff-file", "empty"]),
                            ("--listen-address=localhost", ["localhost", "HOST:PORT"]),
                            ("--listen-address=:70000", ["70000", "0 to 65535"]),
                            ("--listen-address=unix:relative", ["unix:relative", "absolute"])):
            with self.subTest(flag=flag):
                self.refuse(flag, words=words)

    def test_flags_of_another_command_are_refused(self):
        self.refuse("replay", "--listen-address=:1", "x.trace",
                    words=["--listen-address", "replay"])

    def test_an_unreadable_config_file_is_refused(self):
        missing = self.path("missing.yaml")
        self.refuse(f"--config.file={missing}",
                    words=[missing, "No such file", "check the path"])
        self.refuse(f"--config.file={self.directory}", words=[self.directory, "Is a directory"])

    def test_an_unknown_key_is_refused_with_its_place(self):
        path = self.write("w.yaml", b"# comment\nmetrics-path: /m\nidle-polcy: equal\n")
        self.refuse(f"--config.file={path}",
                    words=[f"{path}:3:1", "idle-polcy", "did you mean 'idle-policy'"])

    def test_a_bad_value_in_a_config_file_is_refused_even_where_a_flag_replaces_it(self):
        path = self.write("w.yaml", b"sample-interval: fast\n")
        self.refuse(f"--config.file={path}", "--sample-interval=1s",
                    words=[f"{path}:1:18", "sample-interval", "fast", "250ms"])

    def test_a_config_file_that_is_not_yaml_is_refused(self):
        path = self.write("w.yaml", b"listen-address: [\n")
        self.refuse(f"--config.file={path}", words=[path, "not YAML"])
        path = self.write("binary.yaml", bytes(range(128, 256)))
        self.refuse(f"--config.file={path}", words=[path, "UTF-8"])

    def test_an_address_in_use_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.refuse(f"--listen-address={address}",
                        words=[address, "Address already in use", "--listen-address"])

    def test_a_unix_socket_in_use_is_refused_and_left_alone(self):
        path = self.path("taken.sock")
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(path)
            taken.listen()
            self.refuse(f"--listen-address=unix:{path}", words=[path, "Address already in use"])
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)

    def test_an_address_of_another_machine_is_refused(self):
        self.refuse("--listen-address=192.0.2.1:0", words=["192.0.2.1:0", "Cannot assign"])

    def test_if_one_of_several_addresses_fails_none_is_served(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.refuse(LOOPBACK, f"--listen-address={address}", words=[address])

    def test_an_unreadable_trace_is_refused_by_replay(self):
        missing = self.path("missing.trace.gz")
        self.refuse("replay", missing, words=[missing, "No such file"])

    def test_an_unreadable_trace_is_refused_by_serve(self):
        missing = self.path("missing.trace.gz")
        self.refuse(LOOPBACK, f"--replay={missing}", words=[missing, "No such file"])

    def test_a_directory_is_no_trace(self):
        self.refuse(LOOPBACK, "--replay=/tmp", words=["/tmp", "is a directory"])

    def test_a_file_that_is_too_large_is_the_users_mistake(self):
        large = self.write("large", b"#" * (2 << 20))
        os.chmod(large, 0o600)
        bmc = ("--redfish.url=https://127.0.0.1:1/",)
        for flag, more in (("--config.file", ()), ("--web.config.file", ()), ("--cost.tariff-file", ()),
                           ("--emissions.keys-file", ("--emissions.providers=rte",)), ("--redfish.credentials-file", bmc)):
            with self.subTest(flag=flag):
                self.refuse(LOOPBACK, *more, f"{flag}={large}", words=[large])

    def test_a_file_of_the_kernel_is_no_trace(self):
        self.refuse(LOOPBACK, "--replay=/proc/self/status", words=["/proc/self/status", "is not a regular file"])
        # Reading it would block. CAP_SYSLOG is given up before.
        self.refuse(LOOPBACK, "--replay=/proc/kmsg", words=["/proc/kmsg", "Operation not permitted"
                                                            if os.geteuid() == 0 else "denied"])

    def test_a_directory_for_proc_that_is_not_there_is_refused(self):
        self.refuse(LOOPBACK, "--path.procfs=/nonexistent", words=["/nonexistent", "No such file"])

    def test_exporter_port_moves_the_default_address(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refuse(env={"EXPORTER_PORT": str(port)},
                        words=[f"cannot listen on :{port}:", "Address already in use"])

    def test_bad_environment_variables_are_refused(self):
        for name, value in (("EXPORTER_PORT", "0"), ("EXPORTER_PORT", "65536"),
                            ("EXPORTER_PORT", "http"), ("SCRAPE_INTERVAL", "0"),
                            ("SCRAPE_INTERVAL", "3601"), ("SCRAPE_INTERVAL", "10s")):
            with self.subTest(name=name, value=value):
                self.refuse(LOOPBACK, env={name: value}, words=[name, value, "use 1 to"])

    def test_a_low_limit_of_open_files_is_told_with_what_is_needed(self):
        for limit in (8, 24, 36, 64, 127):
            for command in (("serve", LOOPBACK), ("check",), ("record", "-o", self.path("trace.gz"))):
                with self.subTest(limit=limit, command=command[0]):
                    self.refuse(*command, wrapper=limited(limit, limit),
                                words=[f"the limit of open files is {limit}", "128", "LimitNOFILE", "ulimit -n"])

    def test_descriptors_that_are_no_listening_sockets_are_refused(self):
        with open(os.devnull) as file:
            self.refuse(wrapper=activate(file), pass_fds=(file.fileno(),), env={"LISTEN_FDS": "1"},
                        words=["LISTEN_FDS", "descriptor 3", "not a listening", "ListenStream="])


class Pipes(TestCase):
    def test_replay_reads_a_pipe_as_it_reads_a_file(self):
        with gzip.open(H200_TRACE) as trace:
            done = subprocess.run([binary(), "replay", "/dev/stdin"], input=trace.read(), capture_output=True, timeout=60)
        self.assertEqual(run("replay", H200_TRACE, timeout=60).stdout, done.stdout)
        self.assertTrue(done.stdout)

    def test_an_empty_config_file_may_be_dev_null(self):
        with Exporter("--config.file=/dev/null") as exporter:
            self.assertEqual(200, exporter.ask().status)


class Texts(TestCase):
    def test_help_names_every_flag_on_stdout(self):
        done = run("--help")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        for flag in (b"--listen-address", b"--sample-interval", b"--idle-policy", b"--replay",
                     b"--config.file", b"--metric-prefix", b"--max-processes", b"EXPORTER_PORT",
                     b"SCRAPE_INTERVAL", b"replay [flags] TRACE"):
            self.assertIn(flag, done.stdout)

    def test_help_of_a_command_is_about_that_command(self):
        done = run("replay", "--help")
        self.assertEqual(0, done.returncode)
        self.assertIn(b"--idle-policy", done.stdout)
        self.assertNotIn(b"--listen-address", done.stdout)

    def test_version_is_one_line(self):
        done = run("--version")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, rb"\Awattribute [0-9]+\.[0-9]+\.[0-9]+.*\n\Z")

    def test_help_works_even_where_the_environment_is_wrong(self):
        self.assertEqual(0, run("--help", env={"EXPORTER_PORT": "x"}).returncode)


class Check(TestCase):
    def check(self, *flags):
        """On a node without a meter and a runtime, of this one's processes: its status, its last line, its summary as
        JSON."""
        for folder in ("sys", "root"):
            os.makedirs(self.path(folder), exist_ok=True)
        flags = ("check", f"--path.sysfs={self.path('sys')}", f"--path.rootfs={self.path('root')}",
                 "--no-collector.nvml", "--no-collector.ipmi", *flags)
        done, parsed = run(*flags), run(*flags, "--json")
        report = json.loads(parsed.stdout)
        self.assertEqual((b"", done.returncode), (done.stderr, parsed.returncode))
        self.assertEqual((1, done.returncode), (report["version"], report["summary"]["status"]))
        return done.returncode, done.stdout.decode().splitlines()[-1], report["summary"]

    def test_without_a_meter_the_status_is_1_and_the_last_line_says_so(self):
        status, line, summary = self.check()
        self.assertEqual((1, 0, 0), (status, summary["meters"], summary["gpus"]))
        self.assertRegex(line, r"\A0 GPUs, 0 other meters, [1-9]\d* workloads?; \d+ limited, \d+ missing: nothing to measure\Z")

    def test_with_something_to_measure_the_status_is_0_and_the_last_line_counts_it(self):
        status, line, summary = self.check("--model.idle-watts=1", "--model.full-watts=2")
        self.assertEqual((0, True), (status, summary["model"]))
        self.assertRegex(line, r"\A0 GPUs, 0 other meters, a model of the processors, \d+ workloads?; \d+ limited, \d+ missing\Z")
        meter = self.path("sys/class/hwmon/hwmon0")
        os.makedirs(meter)
        for name, value in (("name", b"power_meter\n"), ("power1_average", b"300000000\n")):
            self.write(f"sys/class/hwmon/hwmon0/{name}", value)
        status, line, summary = self.check()
        self.assertEqual((0, 1), (status, summary["meters"]))
        self.assertRegex(line, r"\A0 GPUs, 1 other meter, ")

    def test_what_is_there_and_does_not_work_is_status_3_and_comes_first_in_the_last_line(self):
        os.makedirs(self.path("sys/class/hwmon/hwmon0"))
        self.write("sys/class/hwmon/hwmon0/name", b"power_meter\n")
        self.write("sys/class/hwmon/hwmon0/power1_average", b"never\n")
        status, line, summary = self.check("--model.idle-watts=1", "--model.full-watts=2")
        self.assertEqual((3, 1), (status, summary["failed"]))
        self.assertRegex(line, r"\A0 GPUs, .*; 1 failed, \d+ limited, \d+ missing\Z")
        self.assertEqual(1, self.check()[0])  # nothing else can be measured
        status, line, _ = self.check("--model.idle-watts=1", "--model.full-watts=2", "--no-collector.hwmon")
        self.assertEqual(0, status)
        self.assertNotIn("failed", line)

    def test_a_runtime_that_does_not_answer_is_status_3(self):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(self.path("docker.sock"))
        status, _, summary = self.check(f"--docker-socket={self.path('docker.sock')}", "--model.idle-watts=1",
                                        "--model.full-watts=2")
        self.assertEqual((3, 1), (status, summary["failed"]))

    def test_flags_that_serve_refuses_are_status_2(self):
        status, line, _ = self.check("--cost.tariff-file=/nonexistent", "--model.idle-watts=1", "--model.full-watts=2")
        self.assertEqual(2, status)
        self.assertIn("does not start", line)

    def test_one_owner_is_one_owner(self):
        os.makedirs(self.path("proc/1"))
        for name, text in (("stat", b"1 (init) S 0 1 1 0 -1 4194560 " + b"0 " * 44), ("cgroup", b"0::/init.scope\n"),
                           ("status", b"Uid:\t0\t0\t0\t0\n"), ("comm", b"init\n")):
            self.write(f"proc/1/{name}", text)
        done = run("check", f"--path.procfs={self.path('proc')}")
        self.assertRegex(done.stdout.decode(), r"(?m)^ok +owners +1 process of 1 owner$")


class Recording(TestCase):
    def refuse(self, *flags):
        """On a node without a meter."""
        trace = self.path("node.trace.gz")
        os.makedirs(self.path("sys"), exist_ok=True)
        done = run("record", "-o", trace, f"--path.sysfs={self.path('sys')}", "--no-collector.nvml",
                   "--no-collector.ipmi", *flags)
        self.assertEqual((1, b""), (done.returncode, done.stdout), done)
        self.assertFalse(os.path.exists(trace))
        return done.stderr.decode()

    def test_without_a_meter_there_is_no_file_and_one_line_says_what_was_looked_for(self):
        for flags in ((), ("--duration=100ms",)):
            text = self.refuse(*flags)
            self.assertRegex(text, r"\Awattribute: nothing to record, no file is written: [^\n]+\n\Z")
            for words in ("RAPL", "hwmon", "switched off: nvml, ipmi", "'wattribute check'"):
                self.assertIn(words, text)

    def test_a_directory_that_is_not_there_is_named(self):
        done = run("record", "-o", self.path("missing/node.trace.gz"))
        self.assertEqual(2, done.returncode)
        self.assertIn(b"missing/node.trace.gz': No such file or directory\n", done.stderr)


class Output(TestCase):
    def test_a_text_that_cannot_be_written_is_a_failure_that_says_why(self):
        for arguments in (("check",), ("--help",), ("replay", H200_TRACE)):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([binary(), *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.assertEqual((1, b"wattribute: cannot write to standard output: No space left on device\n"),
                                 (done.returncode, done.stderr))


class Serving(TestCase):
    def test_a_flag_wins_over_exporter_port(self):
        with Exporter(env={"EXPORTER_PORT": "1"}) as exporter:
            self.assertTrue(exporter.address.startswith("127.0.0.1:"))
            self.assertEqual(1, len(exporter.log("listening")))

    def test_a_flag_wins_over_the_config_file(self):
        path = self.write("w.yaml", b'metrics-path: /file\nlisten-address: ["192.0.2.1:1"]\n')
        with Exporter(f"--config.file={path}", "--metrics-path=/flag") as exporter:
            self.assertEqual(200, exporter.ask("/flag").status)
            self.assertEqual(404, exporter.ask("/file").status)

    def test_the_config_file_is_used(self):
        path = self.write("w.yaml", b"metrics-path: /file\nlisten-address: 127.0.0.1:0\n")
        with Exporter(f"--config.file={path}", listen=()) as exporter:
            self.assertEqual(200, exporter.ask("/file").status)

    def test_scrape_interval_is_the_process_scan_interval(self):
        # A process that ends after 1 s, with no retention, goes at the next scan. By default that
        # is 10 s after the start.
        trace = Trace()
        trace.gpu(0)
        trace.work(0, [11], seconds=1)
        for tick in range(11, 200):
            trace.energy(tick / 10, 0, 6_000_000 + tick * 5000)
            trace.listed(tick / 10, 0)
        with Exporter("--replay", trace.write(self.path("short.trace")), "--metric-retention=0s",
                      "--sample-interval=100ms", env={"SCRAPE_INTERVAL": "1"}) as exporter:
            exporter.wait_for_page("the process", lambda page: page.values("my_gpu_process_active"))
            exporter.wait_for_page("its end",
                                   lambda page: not page.values("my_gpu_process_active"))
            self.assertLess(time.monotonic() - exporter.started, 8)

    def test_an_inherited_socket_is_served_instead_of_the_addresses(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = "127.0.0.1:%d" % listener.getsockname()[1]
            with Exporter(wrapper=activate(listener), pass_fds=(listener.fileno(),),
                          env={"LISTEN_FDS": "1"}) as exporter:
                self.assertEqual([address], [line["address"] for line in exporter.log("listening")])
                self.assertEqual(200, ask(address).status)

    def test_a_socket_that_is_meant_for_another_process_is_not_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = "127.0.0.1:%d" % listener.getsockname()[1]
            with Exporter(env={"LISTEN_FDS": "1", "LISTEN_PID": "1"}) as exporter:
                self.assertNotEqual(address, exporter.address)
                self.assertEqual(200, exporter.ask().status)

    def test_it_runs_with_as_few_open_files_as_it_says(self):
        for soft, hard in ((128, 128), (24, 4096)):  # the second: a soft limit is raised
            with self.subTest(soft=soft, hard=hard), Exporter(wrapper=limited(soft, hard)) as exporter:
                for _ in range(3):
                    exporter.page()

    def test_a_unix_socket_is_served(self):
        address = "unix:" + self.path("metrics.sock")
        with Exporter(listen=(address,)) as exporter:
            self.assertEqual(address, exporter.address)
            self.assertEqual(1, exporter.page().value("wattribute_front_starts_total"))
        self.assertFalse(os.path.exists(self.path("metrics.sock")))

    def test_a_unix_socket_that_a_killed_process_left_is_taken_over(self):
        path = self.path("metrics.sock")
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
        with Exporter(listen=("unix:" + path,)) as exporter:
            self.assertEqual(200, exporter.ask().status)

    def test_several_addresses_are_all_served(self):
        unix = "unix:" + self.path("metrics.sock")
        with Exporter(listen=("127.0.0.1:0", unix, "127.0.0.1:0")) as exporter:
            addresses = [line["address"] for line in exporter.log("listening")]
            self.assertEqual(3, len(set(addresses)))
            self.assertIn(unix, addresses)
            for address in addresses:
                self.assertEqual(200, ask(address).status, address)

    def test_ipv6_loopback_is_served(self):
        with Exporter(listen=("[::1]:0",)) as exporter:
            self.assertTrue(exporter.address.startswith("[::1]:"))
            self.assertEqual(200, exporter.ask().status)

    def test_without_a_meter_it_warns_is_ready_and_serves_its_own_metrics(self):
        with Exporter() as exporter:
            warnings = [line["msg"] for line in exporter.log() if line.get("level") == "warn"]
            self.assertEqual(1, len(warnings), warnings)
            self.assertIn("no energy meter was found", warnings[0])
            self.assertEqual(200, exporter.ask("/-/ready").status)
            self.assertEqual(200, exporter.ask("/-/healthy").status)
            page = exporter.page()
            self.assertEqual(0, page.value("wattribute_replay_active"))
            self.assertEqual(1, page.value("wattribute_build_info"))
            self.assertFalse(page.values("wattribute_meter_energy_joules_total"))

    def test_sources_that_are_switched_off_have_no_series_and_are_named_where_no_meter_is_left(self):
        path = self.write("w.yaml", b"collector.hwmon: false\n")
        flags = ("--no-collector.nvml", "--collector.rapl=false", "--no-collector.cray",
                 "--no-collector.ipmi", "--no-collector.cgroups", f"--config.file={path}")
        with Exporter(*flags) as exporter:
            warnings = [line for line in exporter.log() if line.get("level") == "warn"]
            self.assertEqual(["nvml, rapl, hwmon, cray, ipmi, cgroups"],
                             [line["switched_off"] for line in warnings])
            page = exporter.page()
            for source in ("nvml", "rapl", "hwmon", "cray", "ipmi", "cgroups"):
                self.assertEqual([], page.values("wattribute_source_up", source=source))

    def test_in_empty_trees_no_source_is_up_and_the_log_says_why(self):
        empty = self.path("empty")
        os.mkdir(empty)
        flags = [f"--path.{tree}={empty}" for tree in ("procfs", "sysfs", "rootfs")]
        with Exporter(*flags, "--process-scan-interval=1s", "--model.idle-watts=1", "--model.full-watts=2",
                      "--no-collector.nvml") as exporter:
            page = exporter.wait_for_page("both sources are down", lambda page: {
                labels["source"]: value for labels, value in page.values("wattribute_source_up")} ==
                {"processes": 0, "model": 0, "cgroups": 0})
            self.assertGreater(page.value("wattribute_source_errors_total", source="processes"), 0)
            wait_until("it is told", lambda: "procfs has no processes" in
                       [line.get("error") for line in exporter.log() if line.get("source") == "processes"])

    def test_a_socket_that_was_named_and_is_not_there_is_said(self):
        with Exporter("--docker-socket=/nonexistent/d.sock", "--cri-socket=/etc/passwd", "--podman-socket=") as exporter:
            exporter.page()
            self.assertEqual({("docker-socket", "/nonexistent/d.sock"), ("cri-socket", "/etc/passwd")}, {
                (line["flag"], line["path"]) for line in exporter.log(
                    "names may be missing: a configured socket does not exist; it is tried again")})

    def test_check_says_what_is_switched_off(self):
        done = run("check", "--json", "--no-collector.nvml", "--no-collector.cgroups")
        findings = {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}
        for source in ("nvml", "cgroups"):
            self.assertEqual(f"switched off by --collector.{source}", findings[source]["detail"])
        self.assertNotIn("nvidia library", findings)
        self.assertNotIn("switched off", findings["ipmi"]["detail"])

    def test_pue_is_shown_exactly_if_it_was_given(self):
        with Exporter("--pue=1.230001") as exporter:
            self.assertEqual("1.230001", str(exporter.page().value("wattribute_pue_ratio")))
        path = self.write("w.yaml", b"pue: 1\n")
        with Exporter(f"--config.file={path}") as exporter:
            self.assertEqual(1, exporter.page().value("wattribute_pue_ratio"))
        with Exporter() as exporter:
            self.assertEqual([], exporter.page().values("wattribute_pue_ratio"))

    def silent(self, *flags):
        """The log of a start and end, where the log cannot tell the address."""
        address = "unix:" + self.path("metrics.sock")
        exporter = Exporter(*flags, listen=(address,))
        exporter.address = address
        try:
            wait_until("it is ready", exporter.is_ready)
            exporter.stop()
            return exporter.log_text()
        finally:
            exporter.__exit__(*sys.exc_info())

    def test_json_logs_are_a_json_object_a_line(self):
        lines = [json.loads(line) for line in self.silent("--log-format=json").splitlines()]
        listening, = (line for line in lines if line["msg"] == "listening")
        self.assertEqual("unix:" + self.path("metrics.sock"), listening["address"])

    def test_log_level_error_keeps_a_good_start_silent(self):
        self.assertEqual("", self.silent("--log-level=error"))


if __name__ == "__main__":
    unittest.main()
