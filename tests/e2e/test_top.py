"""`wattribute top` in a real terminal (tmux): keys, sizes, signals, a daemon that goes and comes back, names that mean harm;
and --once and --json, for scripts. UPDATE_PICTURES=1 draws docs/pictures/top.svg."""
import contextlib
import json
import os
import re
import shlex
import signal
import time

import harness
import terminal_picture
from certificates import Authority
from counting_node import WATTS, CountingNode
from harness import H200_TRACE, SOURCE_ROOT, Exporter, binary, children, process_status, run, wait_until
from servers import node_api, require
from servers.node_api import NodeApi
from tmux import Tmux, is_here

PICTURE = os.path.join(SOURCE_ROOT, "docs/pictures/top.svg")
READY = "q quit"
HOSTILE = ["\x1b]0;owned\x07", "\x1b[2J\x1b[31mred", "\x9b5m", "a\r\nb\tc\x7f", "‮fdp.exe", "zero​width", "漢字" * 40,
           "é" * 50, "<img src=x onerror=alert(1)>", "\x1bP+q\x1b\\", "\x0e\x0f", "\x1b[?1049l\x1bc"]


def quoted(*words):
    return " ".join(shlex.quote(str(word)) for word in words)


class TopTestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        if not is_here():
            require.missing("tmux is not installed: run 'tools/setup test'")

    def api(self, document=None):
        return self.enter(NodeApi(document or node_api.document()))

    def terminal(self, *arguments, **more):
        return self.enter(Tmux(*arguments, **more))

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def start(self, terminal, api, *flags, wrapper=(), ready=READY, seconds=10):
        """Runs top, and says its exit status afterwards. Without an API it measures by itself."""
        flags = [*([f"--daemon={api.url}"] if api else []), "--interval=500ms", *flags]
        terminal.run("stty -a > " + self.path("before"))
        terminal.run(quoted(*wrapper, binary(), "top", *flags) + "; echo status $?; stty -a > " + self.path("after"))
        return terminal.wait_for(ready, seconds)

    def top(self, terminal):
        """Its pid."""
        shell, = (int(pid) for pid in terminal.state("pane_pid"))
        found = [pid for pid in children(shell) if process_status(pid)["Name"] == "wattribute"]
        self.assertEqual(1, len(found), found)
        return found[0]

    def assert_ends(self, terminal, status):
        """With the terminal as it was: modes, cursor, and the screen before."""
        screen = terminal.wait_for(f"status {status}")
        self.assertNotIn(READY, screen)
        self.assertEqual(["0", "1", "0"], terminal.state("alternate_on", "cursor_flag", "keypad_cursor_flag"))
        wait_until("stty", lambda: os.path.exists(self.path("after")) and os.path.getsize(self.path("after")))
        with open(self.path("before")) as before, open(self.path("after")) as after:
            self.assertEqual(before.read(), after.read())

    def names(self, screen):
        """The workloads of the table, from above."""
        return re.findall(r"training-job|llm-server-0|gpu-health\.service|4711|old-experiment|carol", screen)


BY_WATTS = ["training-job", "llm-server-0", "gpu-health.service", "4711", "old-experiment", "carol"]


class Screen(TopTestCase):
    def test_the_node_is_shown_on_a_terminal_of_80_by_24(self):
        terminal = self.terminal()
        screen = self.start(terminal, self.api())
        for text in ("gpu-07", "326.4 W = 307.0 workloads + 17.1 idle + 2.2 unattributed", "measured 327.8", "NVIDIA H200",
                     "time sliced", "120 GiB of 140 GiB", "ml/training-job", "193.4", "59.2%", "34.9 kJ", "61.2 GiB", "█"):
            self.assertIn(text, screen)
        self.assertEqual(BY_WATTS, self.names(screen))
        self.assertEqual(["1", "0"], terminal.state("alternate_on", "cursor_flag"))
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_keys_sort_select_open_and_close(self):
        terminal = self.terminal(120, 30)
        self.start(terminal, self.api())
        terminal.type("r")
        wait_until("the order is reversed", lambda: self.names(terminal.screen())[:2] == ["old-experiment", "4711"])
        terminal.type("r", "s")
        screen = terminal.wait_for("ENERGY▼")
        self.assertEqual(["training-job", "llm-server-0", "4711"], self.names(screen)[:3])
        terminal.type("<", "<")
        self.assertEqual("4711", self.names(terminal.wait_for("WORKLOAD▲"))[0])
        terminal.type(">")
        terminal.wait_for("WATTS▼")
        terminal.type("Down", "j", "Up", "Enter")
        screen = terminal.wait_for("Esc back")
        self.assertIn("pod chat/llm-server-0", screen)
        terminal.type("Escape")
        terminal.wait_for(READY)
        terminal.type("Home", "Enter")
        screen = terminal.wait_for("python3")
        for text in ("by kubelet", "registry.example/train:7", "34.9 kJ ± 770 J (2.2%)", "4242", "dataloader", "gpu GPU-79185bc1"):
            self.assertIn(text, screen)
        terminal.type("Enter", "h")
        terminal.wait_for("order by the next column")
        terminal.type("x", "End", "Enter")
        terminal.wait_for("it has ended")
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_a_filter_is_typed_and_cleared(self):
        terminal = self.terminal()
        self.start(terminal, self.api())
        terminal.write("/SLURMx")
        terminal.wait_for("no workload matches the filter")
        terminal.type("BSpace", "Enter")
        screen = terminal.wait_for('"SLURM": 1 of 6')
        self.assertEqual(["4711"], self.names(screen))
        terminal.type("Escape")
        self.assertEqual(BY_WATTS, self.names(terminal.wait_without('"SLURM"')))
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_space_freezes_the_figures_and_asks_nobody(self):
        terminal, api = self.terminal(), self.api()
        self.start(terminal, api)
        terminal.type("Space")
        terminal.wait_for("FROZEN")
        api.document = node_api.document(node="another")
        asked = api.requests
        terminal.type("s")
        terminal.wait_for("ENERGY▼")
        self.assertNotIn("another", terminal.screen())
        self.assertLessEqual(api.requests, asked + 1)
        terminal.type("Space")
        terminal.wait_for("another")

    def test_it_follows_the_size_of_the_terminal(self):
        terminal = self.terminal()
        self.start(terminal, self.api())
        for columns, rows, text in ((200, 60, "MEMORY"), (40, 10, "ml/training-job"), (3, 2, " w"), (80, 24, READY)):
            terminal.resize(columns, rows)
            screen = terminal.wait_for(text)
            self.assertLessEqual(max(map(len, screen.split("\n"))), columns)
        self.assertEqual(BY_WATTS, self.names(terminal.screen()))
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_busy_processors_are_shown_from_the_second_document_on(self):
        terminal = self.terminal(160, 24)
        seconds = iter(range(1000))

        def busier():
            document = node_api.document()
            document["workloads"][3]["cpu_seconds"] = next(seconds) * 2.5
            return document
        self.start(terminal, self.api(busier), "--interval=1s")
        wait_until("2.5 processors", lambda: re.search(r"4711.* 2\.[345]\d ", terminal.screen()))

    def test_without_utf_8_or_colours_all_is_still_there(self):
        terminal = self.terminal(env={"LC_ALL": "C", "NO_COLOR": "1"})
        screen = self.start(terminal, self.api())
        self.assertIn("WATTSv", screen)
        self.assertIn("###", screen)
        self.assertTrue(screen.isascii())
        self.assertIsNone(re.search(rb"\x1b\[[\d;]*\b[34]\dm", terminal.raw()))
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_colours_are_used_where_there_are(self):
        terminal = self.terminal()
        self.start(terminal, self.api())
        self.assertRegex(terminal.raw(), rb"\x1b\[[\d;]*32m")

    def test_hostile_names_never_reach_the_terminal(self):
        workloads = [{"kind": "pod", "id": str(i), "name": name, "namespace": name[::-1], "watts": i, "energy_joules": 1,
                      "processes": [{"pid": i, "name": name}], "details": {"user": name}} for i, name in enumerate(HOSTILE)]
        document = node_api.document(workloads=workloads, node=HOSTILE[0])
        document["gpus"][0].update(name=HOSTILE[1], sharing=HOSTILE[2])
        document["sources"] = [{"name": HOSTILE[1], "up": False}]
        terminal = self.terminal(100, 40)
        self.start(terminal, self.api(document))
        for _ in HOSTILE:
            terminal.type("j", "Enter")
            terminal.wait_for("Esc back")
            terminal.type("Escape")
            terminal.wait_for(READY)
        raw = terminal.raw().decode(errors="surrogateescape")
        self.assertIn("?]0;owned?", raw)
        for text in ("]0;owned\x07", "\x1b]", "\x1bP", "\x1bc", "\x9b", "‮", "​", "\x1b[31mred"):
            self.assertNotIn(text, raw)
        self.assertEqual("1", terminal.state("alternate_on")[0])
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_a_daemon_that_goes_leaves_a_band_and_comes_back(self):
        terminal, api = self.terminal(), self.api()
        api.hangs_up = True  # after each reply
        self.start(terminal, api)
        port = api.port
        api.__exit__()
        screen = terminal.wait_for("NO ANSWER for ")
        self.assertEqual(BY_WATTS, self.names(screen))  # the last that is known
        terminal.type("s")  # keys go on
        terminal.wait_for("ENERGY▼")
        terminal.wait_for("NO ANSWER for 2 s")
        self.enter(NodeApi(node_api.document(node="again"), address=("127.0.0.1", port)))
        self.assertIn("again", terminal.wait_without("NO ANSWER"))
        terminal.type("q")
        self.assert_ends(terminal, 0)

    def test_a_daemon_that_hangs_holds_up_no_key(self):
        terminal, api = self.terminal(), self.api()
        self.start(terminal, api)
        api.document = api.stopped.wait  # answers when the test ends
        wait_until("it waits", lambda: terminal.state("alternate_on") == ["1"])
        terminal.type("s")
        terminal.wait_for("ENERGY▼", harness.SOON_S)
        terminal.type("q")
        terminal.wait_for("status 0", harness.SOON_S)

    def test_a_daemon_that_starts_is_waited_for(self):
        terminal, api = self.terminal(), self.api()
        api.status = 503
        self.start(terminal, api, ready="waiting for the first figures")
        terminal.wait_for("NO ANSWER")
        api.status = 200
        terminal.wait_for("ml/training-job")

    def test_replies_that_are_no_document_leave_a_band(self):
        terminal, api = self.terminal(), self.api()
        self.start(terminal, api)
        for body, text in ((b"<html>", "no JSON"), (b'{"api": 2}', "version 2 of the API"), (b"[" * 100000, "no JSON"),
                           (b'{"api": 1, "node": "bare"}', "no meter has been read yet")):
            api.document = body
            terminal.wait_for(text)


class Ends(TopTestCase):
    def test_the_terminal_is_restored_however_it_ends(self):
        api = self.api()
        for number, status in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131), (signal.SIGINT, 0)):
            with self.subTest(number), Tmux() as terminal:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path("after"))
                self.start(terminal, api)
                os.kill(self.top(terminal), number)
                self.assert_ends(terminal, status)

    def test_ctrl_c_quits(self):
        terminal = self.terminal()
        self.start(terminal, self.api())
        terminal.type("C-c")
        self.assert_ends(terminal, 0)

    def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back(self):
        terminal, api = self.terminal(), self.api()
        terminal.run("stty -a > " + self.path("before"))
        terminal.run("set -m; " + quoted(binary(), "top", f"--daemon={api.url}", "--interval=500ms"))
        terminal.wait_for(READY)
        for _ in range(2):
            terminal.type("C-z")
            terminal.wait_for("Stopped")
            self.assertEqual(["0", "1"], terminal.state("alternate_on", "cursor_flag"))
            terminal.run("clear; fg")
            terminal.wait_for(READY)
            terminal.type("s")
        terminal.wait_for("▼")
        terminal.resize(120, 30)
        terminal.wait_for("ml/training-job")
        terminal.type("q")
        terminal.run("echo status $?; stty -a > " + self.path("after"))
        terminal.resize(80, 24)
        terminal.wait_for("status 0")
        self.assertEqual(["0", "1"], terminal.state("alternate_on", "cursor_flag"))

    def test_it_ends_with_its_terminal(self):
        api = self.api()
        with Tmux() as terminal:
            self.start(terminal, api)
            pid = self.top(terminal)
        wait_until("it has ended", lambda: not harness.is_running(pid))

    def test_a_terminal_that_cannot_show_a_screen_is_an_error(self):
        api = self.api()
        for kind in ("dumb", "no-such-terminal", ""):
            with self.subTest(kind), Tmux() as terminal:
                terminal.run(f"TERM={kind} " + quoted(binary(), "top", f"--daemon={api.url}") + "; echo status $?")
                self.assertIn("print a table with --once", terminal.wait_for("status 1").replace("\n", ""))


class Output(TopTestCase):
    def test_once_prints_one_table(self):
        done = run("top", "--once", f"--daemon={self.api().url}", env={"LC_ALL": "C"})
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        lines = done.stdout.decode("ascii").splitlines()
        self.assertIn("326.4 W = 307.0 workloads + 17.1 idle + 2.2 unattributed  measured 327.8", lines[1])
        heading = lines.index(next(line for line in lines if line.startswith("KIND")))
        self.assertEqual("KIND WORKLOAD WATTSv SHARE ENERGY +- GPU MEM CPU MEMORY CO2 EUR".split(), lines[heading].split())
        self.assertEqual(BY_WATTS, self.names("\n".join(lines[heading:])))
        self.assertRegex(lines[heading + 1],
                         r"^pod +ml/training-job +193\.4 +59\.2% +34\.9 kJ +2\.2% 61\.2 GiB +0\.00 12\.0 GiB +544 mg +0\.0020$")

    def test_once_needs_no_ncurses(self):
        done = run("top", "--once", f"--daemon={self.api().url}", env={"LD_DEBUG": "files"})
        self.assertEqual(0, done.returncode)
        self.assertIn(b"libcurl", done.stderr)
        self.assertNotIn(b"ncurses", done.stderr)

    def test_json_is_the_document_unchanged(self):
        body = json.dumps(node_api.document()).encode() + b"\n"
        done = run("top", "--json", f"--daemon={self.api(body).url}")
        self.assertEqual((0, body, b""), (done.returncode, done.stdout, done.stderr))

    def test_names_in_the_table_control_no_terminal(self):
        workloads = [{"kind": "pod", "id": str(i), "name": name, "watts": i} for i, name in enumerate(HOSTILE)]
        done = run("top", "--once", f"--daemon={self.api(node_api.document(workloads=workloads)).url}",
                   env={"LC_ALL": "C.UTF-8"})
        self.assertEqual(0, done.returncode)
        text = done.stdout.decode()
        self.assertIn("?]0;owned?", text)
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f‮​]", text))

    def test_failures_are_told_and_have_a_status(self):
        api = self.api()
        for flags, status, text in (
                (("--daemon=http://127.0.0.1:1",), 1, "does wattribute run there?"),
                (("--daemon=unix:/nowhere/x.sock",), 1, "no such socket"),
                (("--daemon=nowhere",), 2, "--daemon: not the address of a daemon"),
                ((f"--daemon={api.url}", "--interval=1ms"), 2, "--interval"),
                ((f"--daemon={api.url}", "--daemon.ca-file=/nowhere"), 2, "--daemon.ca-file")):
            done = run("top", "--once", *flags)
            self.assertEqual((status, b""), (done.returncode, done.stdout), flags)
            self.assertIn(text, done.stderr.decode())
        for body, status, text in ((b"<html>", 200, "no JSON"), (b"{}", 404, "of this version"), (b"{}", 401, "wants a password"),
                                   (b"{}", 503, "nothing to show yet"), (b"x" * (65 << 20), 200, "longer than")):
            api.document, api.status = body, status
            done = run("top", "--once", f"--daemon={api.url}")
            self.assertEqual((1, b""), (done.returncode, done.stdout), text)
            self.assertIn(text, done.stderr.decode())


class Daemon(TopTestCase):
    def demo(self, *flags, **more):
        """As `make run` plays it."""
        return Exporter(f"--replay={H200_TRACE}", *flags, **more)

    def wait_for_watts(self, exporter, *flags):
        def document():
            done = run("top", "--json", f"--daemon={exporter}", *flags)
            self.assertEqual(0, done.returncode, done.stderr)
            return json.loads(done.stdout)
        return wait_until("workloads draw watts", lambda: next(
            (d for d in [document()] if sum(w.get("watts", 0) > 1 for w in d["workloads"]) >= 2), None), 60)

    def test_the_demo_is_shown_over_its_unix_socket_with_its_band(self):
        socket = "unix:" + self.path("socket")
        with self.demo(listen=(socket,)):
            self.wait_for_watts(socket)
            done = run("top", "--once", f"--daemon={socket}", env={"LC_ALL": "C.UTF-8"})
        text = done.stdout.decode()
        self.assertEqual(0, done.returncode)
        for part in ("REPLAY of a recorded trace", "NVIDIA H200", "training-job", " W = "):
            self.assertIn(part, text)
        self.check_balance(text)

    def check_balance(self, text):
        """What the balance says adds up, to its last digit."""
        line = next(line for line in text.splitlines() if " W = " in line)
        whole, rest = line.split(" W = ")
        parts = [float(part) for part in re.findall(r"([\d.]+) (?:workloads|idle|system|unattributed|gap)", rest)]
        self.assertAlmostEqual(float(whole), sum(parts), delta=0.05 * (len(parts) + 3))

    def test_tls_and_a_password_are_spoken(self):
        authority = Authority(self.directory)
        authority.certify("server", "IP:127.0.0.1", "DNS:localhost")
        self.write("web.yaml", f"tls_server_config: {{cert_file: {self.path('server.crt')}, key_file: {self.path('server.key')}}}\n"
                   "basic_auth_users:\n  alice: $2b$04$kddmW3/WKIOo31gAQg6EFeAaeVhyi0qUjxJBOa53FmqDmKqSQYoN6\n".encode())
        secret = self.write("secret.yaml", b"username: alice\npassword: hunter2\n")
        os.chmod(secret, 0o600)
        exporter = self.demo(f"--web.config.file={self.path('web.yaml')}")
        exporter.is_ready = lambda: True  # only who has the password may know
        with exporter:
            flags = (f"--daemon=https://{exporter.address}", f"--daemon.ca-file={authority.crt}")
            wait_until("it answers", lambda: run("top", "--json", *flags, f"--daemon.credentials-file={secret}").returncode == 0)
            self.assertIn(b"--daemon.ca-file", run("top", "--json", flags[0]).stderr)
            self.assertIn(b"--daemon.credentials-file", run("top", "--json", *flags).stderr)

    # In a network of its own nothing listens on the usual port.
    ALONE = ("unshare", "--net")
    MODEL = ("--model.idle-watts=50", "--model.full-watts=100")

    def test_without_a_daemon_the_screen_is_of_what_it_measures_and_no_thread_of_it_takes_the_signal(self):
        require.root()
        terminal = self.terminal(100, 24)
        screen = self.start(terminal, None, *self.MODEL, wrapper=self.ALONE, ready="no daemon: measured here", seconds=30)
        self.assertIn("estimated", screen)
        os.kill(self.top(terminal), signal.SIGTERM)
        self.assert_ends(terminal, 143)

    def test_without_a_daemon_it_waits_for_the_watts_of_a_node_with_cgroups(self):
        require.root()
        with CountingNode(self.path("node")) as node:
            os.makedirs(f"{node.path}/sys/fs/cgroup")
            with_cgroups = (*self.ALONE, "--mount", "sh", "-c", f'mount --rbind /sys/fs/cgroup {node.path}/sys/fs/cgroup; exec "$@"', "sh")
            done = run("top", "--json", *node.flags[1:], wrapper=with_cgroups, timeout=60)
        self.assertEqual(0, done.returncode, done.stderr)
        meter, = json.loads(done.stdout)["meters"]
        # Of one window, whose ends are not those of the readings.
        self.assertGreater(meter["watts"], 0.6 * WATTS)
        self.assertLess(meter["watts"], 1.4 * WATTS)

    def test_without_a_daemon_it_measures_by_itself(self):
        require.root()
        done = run("top", "--json", *self.MODEL, wrapper=self.ALONE, timeout=40)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(b"no daemon answers", done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual("model", next(m["meter_id"] for m in document["meters"] if m["modelled"]))
        self.assertGreater(document["watts"], 0)

    def test_the_picture_of_the_manual_is_of_the_demo(self):
        """The size and the words; with UPDATE_PICTURES=1 it is drawn anew."""
        columns, rows = 100, 16
        if os.environ.get("UPDATE_PICTURES"):
            socket, terminal = "unix:" + self.path("socket"), self.terminal(columns, rows)
            with self.demo("--attribution-delay=5s", "--cost.price=0.21", "--cost.currency=EUR", listen=(socket,), settles_at_once=False,
                           wrapper=("unshare", "--uts", "sh", "-c", 'hostname gpu-07 && exec "$@"', "sh")):
                terminal.run(quoted(binary(), "top", f"--daemon={socket}"))
                end = time.monotonic() + 170  # by then all of them have worked
                wait_until("every workload draws watts", lambda: time.monotonic() > end, 200)
                terminal.type("j")
                wait_until("the cursor", lambda: "\x1b[7m" in terminal.screen("-e"))
                picture = terminal_picture.svg(terminal.screen("-e", "-N"), columns, "wattribute top, of the demo")
            with open(PICTURE, "w") as file:
                file.write(picture)
        with open(PICTURE) as file:
            picture = file.read()
        for text in ("<svg", "training-job", "REPLAY", "NVIDIA H200", "q</text>"):
            self.assertIn(text, picture)


if __name__ == "__main__":
    harness.main()
