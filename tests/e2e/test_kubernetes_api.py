"""Names from the Kubernetes API server: real processes in cgroups of pods, and a server that knows how they are called,
or lies, or is not there. Whatever it does costs names and nothing else."""
import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
import uuid

import harness
from certificates import Authority
from harness import (PROCESS_ENERGY, SOON_S, Exporter, arguments_of, environment_of, process_status, run,
                     wait_until)
from servers import cgroups, require
from servers.kubernetes_api import KubernetesApi, ServiceAccount, pod
from test_identity import NO_RUNTIMES, IdentityTestCase, Runtime, reply

UP = "reading this node's pod names from the Kubernetes API"
DOWN = "the Kubernetes API fails: its names are missing"
DENIED = ("the Kubernetes API denies access: its names are missing; let the service account list and watch "
          "pods")
SOURCE_UP = "wattribute_source_up"
STARTS = "wattribute_child_starts_total"
WITHOUT = "names from the Kubernetes API are missing; all else is served"


class ApiTestCase(IdentityTestCase):
    @classmethod
    def setUpClass(cls):
        require.root()  # cgroups are made
        require.writable(cgroups.hierarchies())
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="wattribute-ca-"))
        cls.authority = Authority(directory)
        cls.certificate = cls.authority.certify("server", "IP:127.0.0.1", "DNS:localhost")

    def setUp(self):
        super().setUp()
        self.account = ServiceAccount(self.path("serviceaccount"), "first\n", self.authority)

    def api(self, certificate=None, **options):
        return self.enter(KubernetesApi(certificate or self.certificate, **options))

    def container(self, name="worker", uid=None):
        """A process where the kubelet would have started it, and the pod that it is in."""
        uid = uid or str(uuid.uuid4())
        ident, pid = self.process_in(uid)
        return ident, pid, pod("ml", f"{name}-0", uid, {name: ident})

    def process_in(self, uid):
        """A process in a container of this pod."""
        ident, pid = os.urandom(32).hex(), self.sleeper()
        group = f"/kubepods/burstable/pod{uid}/{ident}"
        with cgroups.making(group):
            cgroups.enter(group, pid)
        self.addCleanup(cgroups.sweep)
        self.addCleanup(cgroups.remove, f"/kubepods/burstable/pod{uid}")
        return ident, pid

    def exporter(self, api, *pids, flags=(), host="127.0.0.1", **more):
        env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(api.port), "NODE_NAME": api.node}
        if pids:
            env.update(self.gpu_with(*pids).env)
        return Exporter("--kubernetes.api", f"--kubernetes.service-account-dir={self.account.directory}",
                        "--process-scan-interval=1s", *NO_RUNTIMES, *flags, env=env, **more)

    def assert_named(self, exporter, pid, each):
        page = exporter.wait_for_page("it is shown", self.shows(pid), 25)
        container = each["status"]["containerStatuses"][0]
        ident = container["containerID"].removeprefix("containerd://")
        metadata = each["metadata"]
        self.assert_process(page, pid, namespace=metadata["namespace"], pod=metadata["name"],
                            container=container["name"], container_id=ident, pod_uid=metadata["uid"])
        self.assert_workload(page, "pod", ident, name=metadata["name"], namespace=metadata["namespace"],
                             pod=metadata["name"], container=container["name"])
        return page


class Names(ApiTestCase):
    def test_a_process_is_named_by_the_pod_that_the_list_has(self):
        ident, pid, each = self.container()
        api = self.api()
        api.put(each)
        with self.exporter(api, pid) as exporter:
            page = self.assert_named(exporter, pid, each)
            self.assertEqual("worker:1", self.info(page, "pod", ident)["image"])
            self.assert_balanced(page)
            wait_until("the watch", lambda: api.asked(watch="1"))
            self.assertEqual([{"fieldSelector": "spec.nodeName=node-a", "limit": "500", "resourceVersion": "0"},
                              {"fieldSelector": "spec.nodeName=node-a", "watch": "1", "resourceVersion": "101",
                               "allowWatchBookmarks": "true", "timeoutSeconds": "300"}], api.asked())
            self.assertEqual(1, len(exporter.log(UP)))
            self.assertLess(exporter.stop(), SOON_S)

    def test_a_pod_that_comes_later_is_named_by_the_watch(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            page = exporter.page()
            self.assertEqual([], page.values(PROCESS_ENERGY))
            self.assert_balanced(page)
            api.put(each)
            self.assert_named(exporter, pid, each)
            self.assertEqual(1, len(api.asked(watch=None)))

    def test_a_static_pod_has_the_uid_that_the_node_knows(self):
        ident, pid, each = self.container()
        known = each["metadata"]["uid"]
        each["metadata"].update(uid="of-the-mirror", annotations={
            "kubernetes.io/config.hash": known, "kubernetes.io/config.mirror": known})
        api = self.api()
        api.put(each)
        with self.exporter(api, pid) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid))
            self.assertEqual(known, self.info(page, "pod", ident)["pod_uid"])

    def test_a_static_pod_with_a_uid_of_its_own_is_a_pod(self):
        uid = "my-own-etcd-of-more-than-36-characters"
        ident, pid, each = self.container(uid=uid)
        each["metadata"].update(uid="of-the-mirror", annotations={
            "kubernetes.io/config.hash": uid, "kubernetes.io/config.mirror": uid})
        api = self.api()
        api.put(each)
        with self.exporter(api, pid) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid))
            self.assert_workload(page, "pod", ident, name="worker-0", namespace="ml", pod="worker-0",
                                 container="worker")
            self.assertEqual(uid, self.info(page, "pod", ident)["pod_uid"])

    def test_a_pause_container_has_its_pod_also_while_nothing_else_runs_in_it(self):
        uid = str(uuid.uuid4())
        ident, pid = self.process_in(uid)
        api = self.api()
        api.put(pod("ml", "pulling-0", uid, {}))  # its image is still being pulled
        with self.exporter(api, pid) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid), 25)
            self.assert_process(page, pid, namespace="ml", pod="pulling-0", container_id=ident, pod_uid=uid)
            self.assert_workload(page, "pod", ident, name="pulling-0", namespace="ml", pod="pulling-0")
            self.assert_balanced(page)

    def test_every_page_of_the_list_is_read(self):
        _, pid, each = self.container()
        api = self.api()
        api.page_size = 2
        for i in range(4):
            api.put(pod("ml", f"other-{i}", f"u-{i}", {"c": os.urandom(32).hex()}))
        api.put(each)
        with self.exporter(api, pid) as exporter:
            self.assert_named(exporter, pid, each)
            self.assertEqual([None, "2=", "4="], [query.get("continue") for query in api.asked(watch=None)])

    def test_a_host_that_is_a_name_is_looked_up(self):
        _, pid, each = self.container()
        api = self.api()
        api.put(each)
        with self.exporter(api, pid, host="localhost") as exporter:
            self.assert_named(exporter, pid, each)

    def test_thousands_of_pods_delay_no_scrape_and_crowd_out_nobody(self):
        _, pid, each = self.container()
        api = self.api()
        api.page_size = 500
        for i in range(6000):
            api.put(pod("ml", f"other-{i}", f"u-{i}", {"c": f"{i:064x}"}))
        api.put(each)
        with self.exporter(api, pid) as exporter:
            slowest = 0

            def scrape():
                nonlocal slowest
                began = time.monotonic()
                page = exporter.page()
                slowest = max(slowest, time.monotonic() - began)
                return self.shows(pid)(page)
            wait_until("it is shown", scrape, 25)
            self.assertLess(slowest, SOON_S)
            self.assert_named(exporter, pid, each)


class Resumption(ApiTestCase):
    def test_a_watch_that_ended_goes_on_from_the_last_version(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            api.bookmark()
            api.bookmark()
            wait_until("both are sent", lambda: api.sent == 102)
            api.end_watches()
            wait_until("it goes on", lambda: api.asked(watch="1", resourceVersion="102"))
            api.put(each)
            self.assert_named(exporter, pid, each)
            self.assertEqual(1, len(api.asked(watch=None)))
            self.assertEqual(1, len(exporter.log(UP)))
            self.assertEqual([], exporter.log(DOWN))

    def test_when_its_version_is_gone_it_lists_again(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            api.put(each)
            api.expire()  # the watch may not even have seen the pod
            wait_until("the second list", lambda: len(api.asked(watch=None)) >= 2)
            self.assert_named(exporter, pid, each)
            wait_until("it goes on", lambda: api.asked(watch="1", resourceVersion="102"))
            self.assertEqual([], exporter.log(DOWN))

    def test_a_token_that_was_replaced_is_used(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            api.tokens = ["first", "second"]  # the old one is good for some time
            self.account.write("second", self.authority)
            exporter.wait_for_log("the secrets of a fetcher have changed and are used from now on", 15)
            wait_until("it asks again", lambda: len(api.asked(watch="1")) >= 2)
            api.tokens = ["second"]
            api.end_watches()
            wait_until("it goes on", lambda: len(api.asked(watch="1")) >= 3)
            api.put(each)
            self.assert_named(exporter, pid, each)
            self.assertEqual([], exporter.log(DENIED))

    def test_a_token_that_only_its_owner_may_read_is_read(self):
        _, pid, each = self.container()
        self.account.write("first", self.authority, mode=0o600)
        api = self.api()
        api.put(each)
        with self.exporter(api, pid) as exporter:
            self.assert_named(exporter, pid, each)

    def test_a_fetcher_that_died_asks_again(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            os.kill(exporter.child("fetcher"), signal.SIGKILL)
            wait_until("the second list", lambda: len(api.asked(watch=None)) >= 2)
            self.assertEqual(2, exporter.wait_for_page("another one", lambda page: page.value(
                STARTS, child="kubernetes") == 2).value(STARTS, child="kubernetes"))
            api.put(each)
            self.assert_named(exporter, pid, each)

    def test_a_fetcher_that_was_stopped_goes_on(self):
        _, pid, each = self.container()
        api = self.api()
        with self.exporter(api, pid) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            fetcher = exporter.child("fetcher")
            for _ in range(3):
                os.kill(fetcher, signal.SIGSTOP)
                wait_until("it is stopped", lambda: process_status(fetcher)["State"].startswith("T"))
                os.kill(fetcher, signal.SIGCONT)
                exporter.page()
            api.put(each)
            self.assert_named(exporter, pid, each)
            self.assertEqual(fetcher, exporter.child("fetcher"))

    def test_a_server_that_starts_later_is_found(self):
        _, pid, each = self.container()
        api = KubernetesApi(self.certificate, listening=False)
        with self.exporter(api, pid) as exporter:
            self.assertIn("connection refused", exporter.wait_for_log(DOWN)["error"])
            api.listen()
            self.enter(api)
            api.put(each)
            exporter.wait_for_log(UP)
            self.assert_named(exporter, pid, each)
            self.assertEqual(1, len(exporter.log(DOWN)))


class Up(ApiTestCase):
    """wattribute_source_up, as the other sources of names have it."""

    def wait_until_up(self, exporter, expected):
        return exporter.wait_for_page(f"it is {expected}", lambda page: page.values(
            SOURCE_UP, source="kubernetes_api") == [({"source": "kubernetes_api"}, expected)], 25)

    def test_a_server_is_down_until_it_answers_and_when_it_does_no_more(self):
        api = KubernetesApi(self.certificate, listening=False)
        with self.exporter(api) as exporter:
            page = self.wait_until_up(exporter, 0)
            self.assertGreater(page.value("wattribute_source_errors_total", source="kubernetes_api"), 0)
            api.listen()
            self.enter(api)
            page = self.wait_until_up(exporter, 1)
            self.assertLess(page.value("wattribute_source_age_seconds", source="kubernetes_api"), 10)
            api.answer = lambda request: request.refuse(500, "etcd is sad")
            api.end_watches()
            self.wait_until_up(exporter, 0)
            # The front says so, and says why; the collector does not repeat it.
            self.assertEqual([], exporter.log("names may be missing: a source of them does not answer; no energy is "
                                              "lost"))

    def test_who_refuses_us_is_down(self):
        with self.exporter(self.api(token="another")) as exporter:
            self.wait_until_up(exporter, 0)

    def test_it_is_down_where_it_cannot_even_be_asked(self):
        self.account.directory = self.path("nowhere")
        with self.exporter(self.api()) as exporter:
            self.wait_until_up(exporter, 0)

    def test_a_fetcher_that_died_leaves_it_down_until_the_next_one_has_asked(self):
        api = self.api()
        with self.exporter(api) as exporter:
            self.wait_until_up(exporter, 1)
            api.answer = lambda request: request.refuse(500, "etcd is sad")
            os.kill(exporter.child("fetcher"), signal.SIGKILL)
            self.wait_until_up(exporter, 0)

    def test_without_the_flag_it_is_no_source(self):
        with Exporter() as exporter:
            self.assertEqual([], exporter.page().values(SOURCE_UP, source="kubernetes_api"))


class Refusals(ApiTestCase):
    def assert_refused(self, api, text):
        with self.exporter(api) as exporter:
            line = exporter.wait_for_log(DOWN)
            self.assertIn(text, line["error"])
            wait_until("it tries again", lambda: api.connections >= 2)
            self.assertEqual([], api.requests)  # and the token was not sent
            self.assertEqual(1, len(exporter.log(DOWN)))
            exporter.page()

    def test_a_server_of_another_authority_gets_no_token(self):
        other = Authority(self.directory, "other")
        self.assert_refused(self.api(other.certify("server", "IP:127.0.0.1")), "certificate")

    def test_a_server_with_another_name_gets_no_token(self):
        self.assert_refused(self.api(self.authority.certify("elsewhere", "IP:127.0.0.2", "DNS:elsewhere")),
                            "certificate")

    def test_a_server_without_tls_gets_no_token(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            received = []

            def listen():
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = listener.accept()
                        with connection:
                            received.append(connection.recv(65536))
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            thread = threading.Thread(target=listen, daemon=True)
            thread.start()

            class Plain:
                port, node = listener.getsockname()[1], "node-a"
            with self.exporter(Plain) as exporter:
                exporter.wait_for_log(DOWN)
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            self.assertTrue(received)
            self.assertNotIn(b"first", b"".join(received))

    def test_a_token_that_is_refused_is_told_once_and_not_tried_in_a_hurry(self):
        api = self.api(token="another")
        with self.exporter(api) as exporter:
            self.assertIn("Unauthorized", exporter.wait_for_log(DENIED)["error"])
            began = time.monotonic()
            wait_until("three seconds pass", lambda: time.monotonic() - began > 3)
            self.assertEqual(1, len(api.requests))
            self.assertLess(exporter.stop(), SOON_S)

    def test_without_a_token_nothing_is_asked(self):
        api = self.api()
        for token in ("", "two\nlines\n"):
            self.account.write(token, self.authority)
            with self.exporter(api) as exporter:
                self.assertIn("token", exporter.wait_for_log(WITHOUT)["error"])
                exporter.page()
        self.assertEqual(0, api.connections)

    def test_what_the_environment_lacks_is_told_at_the_start(self):
        good = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "NODE_NAME": "n"}
        for name in good:
            done = run("--kubernetes.api", "--listen-address=127.0.0.1:0", env={**good, name: ""})
            self.assertEqual(2, done.returncode)
            self.assertIn(name.encode(), done.stderr)
        self.assertIn(b"spec.nodeName", done.stderr)


class Lies(ApiTestCase):
    def test_errors_are_told_once_and_followed_by_pauses_that_grow(self):
        _, pid, each = self.container()
        api = self.api()
        api.put(each)
        api.answer = lambda request: request.refuse(500, "etcd is sad")
        with self.exporter(api, pid) as exporter:
            wait_until("four tries", lambda: len(api.requests) >= 4, 20)
            times = [when for when, _ in api.requests[:4]]
            pauses = [after - before for before, after in zip(times, times[1:])]
            for pause, most in zip(pauses, (1, 2, 4)):
                self.assertTrue(most / 2 <= pause < most + SOON_S, pauses)
            self.assertIn("etcd is sad", exporter.log(DOWN)[0]["error"])
            api.answer = None
            self.assert_named(exporter, pid, each)
            self.assertEqual(1, len(exporter.log(DOWN)))

    def test_a_list_that_trickles_is_given_up(self):
        _, pid, each = self.container()
        api = self.api()
        api.put(each)

        def trickle(request):
            request.send_response(200)
            request.send_header("Content-Length", "100000")
            request.end_headers()
            while not api.stopped.is_set():
                request.wfile.write(b" ")
                time.sleep(0.1)
        api.answer = trickle
        with self.exporter(api, pid) as exporter:
            self.assertIn("no complete reply", exporter.wait_for_log(DOWN, 20)["error"])
            exporter.page()
            wait_until("the next try", lambda: len(api.requests) >= 2)
            self.assertLess(exporter.stop(), SOON_S)

    def lie_in_watch(self, lie):
        _, pid, each = self.container()
        api = self.api()

        def answer(request):
            if "watch" in request.query:
                request.begin_stream()
                lie(request)
            else:
                request.list()
        api.answer = answer
        with self.exporter(api, pid) as exporter:
            error = exporter.wait_for_log(DOWN)["error"]
            with open(f"/proc/{exporter.server()}/status") as file:
                resident = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
            self.assertLess(resident, 100 << 10)
            api.answer = None
            api.put(each)
            self.assert_named(exporter, pid, each)
            self.assertGreaterEqual(len(api.asked(watch=None)), 2)
        return error

    def test_a_line_without_end_is_given_up_and_the_list_is_read_again(self):
        def endless(request):
            while True:
                request.chunk(b" " * 65536)
        self.assertIn("longer than 4194304 bytes", self.lie_in_watch(endless))

    def test_nonsense_in_a_watch_is_given_up_and_the_list_is_read_again(self):
        self.assertIn("not an event", self.lie_in_watch(lambda request: request.chunk(b"<html>\n")))

    def test_a_list_without_end_is_given_up(self):
        api = self.api()

        def answer(request):
            request.reply(b'{"kind":"PodList","metadata":{"resourceVersion":"1","continue":"x"},"items":[]}')
        api.answer = answer
        with self.exporter(api) as exporter:
            self.assertIn("no end", exporter.wait_for_log(DOWN)["error"])
            self.assertLess(len(api.requests), 100)

    def test_a_list_that_is_too_long_is_given_up(self):
        api = self.api()

        def answer(request):
            request.begin_stream()
            while True:
                request.chunk(b"[" * 65536)
        api.answer = answer
        with self.exporter(api) as exporter:
            self.assertIn("longer than 16777216 bytes", exporter.wait_for_log(DOWN)["error"])

    def test_names_of_any_size_and_content_are_cut_and_escaped(self):
        ident, pid, each = self.container()
        each["metadata"]["name"] = "\u0007evil\"\\\n{}" + "x" * 100000
        each["status"]["containerStatuses"][0]["image"] = "\u00e9" * 1000
        api = self.api()
        api.put(each)
        with self.exporter(api, pid) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid))
            shown = self.process_row(page, pid)["pod"]
            self.assertTrue(shown.startswith("\ufffd07evil\"\\\n{}xxx"), shown[:40])
            self.assertLess(len(shown), 260)
            self.assertEqual("\u00e9" * 127, self.info(page, "pod", ident)["image"])


class Confinement(ApiTestCase):
    def test_the_fetcher_has_no_privileges_and_its_secret_is_nowhere_to_be_seen(self):
        api = self.api()
        with self.exporter(api) as exporter:
            wait_until("the watch", lambda: api.asked(watch="1"))
            fetcher = exporter.child("fetcher")
            tasks = os.listdir(f"/proc/{fetcher}/task")
            self.assertEqual(1, len(tasks))
            for task in tasks:
                status = process_status(f"{fetcher}/task/{task}")
                for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"):
                    self.assertEqual(0, int(status[name], 16), name)
                self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))
                self.assertEqual(["65523"] * 4, status["Uid"].split())
            self.assertEqual(["wattribute", "fetcher", "kubernetes"], arguments_of(fetcher))
            self.assertNotIn(b"KUBERNETES", environment_of(fetcher))
            # The files of one that may be dumped are its user's, of any other root's.
            for pid in (fetcher, exporter.server()):
                self.assertEqual(0, os.stat(f"/proc/{pid}/environ").st_uid)
            self.assertEqual(1, len(os.listdir(f"/proc/{exporter.server()}/task")))

    def test_without_the_flag_there_is_no_thread_and_no_connection(self):
        api = self.api()
        with Exporter(env={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "NODE_NAME": "node-a",
                           "KUBERNETES_SERVICE_PORT": str(api.port)}) as exporter:
            self.assertEqual(1, len(os.listdir(f"/proc/{exporter.server()}/task")))
        self.assertEqual(0, api.connections)

    def assert_served_without(self, exporter, pid, text):
        self.assertIn(text, exporter.wait_for_log(WITHOUT)["error"])
        page = exporter.wait_for_page("it is shown, and not waited for", self.shows(pid), 10)
        self.assert_process(page, pid, container_id=self.process_row(page, pid)["container_id"],
                            pod_uid=self.process_row(page, pid)["pod_uid"])

    def test_without_an_account_all_else_is_served(self):
        _, pid, _ = self.container()
        api = self.api()
        self.account.directory = self.path("nowhere")
        with self.exporter(api, pid) as exporter:
            self.assert_served_without(exporter, pid, "No such file")

    def test_a_host_without_address_costs_names_only(self):
        _, pid, _ = self.container()
        api = self.api()
        with self.exporter(api, pid, host="nowhere.invalid") as exporter:
            self.assert_served_without(exporter, pid, "nowhere.invalid")

    def test_a_token_that_comes_late_is_used(self):
        _, pid, each = self.container()
        api = self.api()
        api.put(each)
        os.rename(self.account.directory, self.path("away"))
        with self.exporter(api, pid) as exporter:
            exporter.wait_for_log(WITHOUT)
            os.rename(self.path("away"), self.account.directory)
            exporter.wait_for_log(UP, 20)

    def test_a_runtime_of_the_node_is_believed_before_the_api(self):
        """Two that name the same container: the socket's word counts, whoever was first."""
        ident, pid, each = self.container()
        runtime = Runtime(self, reply(b'[{"Id":"%b","Names":["/of-docker"]}]' % ident.encode()))
        api = self.api()
        api.put(each)
        with self.exporter(api, pid, flags=(f"--docker-socket={runtime.path}",)) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid))
            self.assertEqual(("of-docker", ""), tuple(self.process_row(page, pid)[name]
                                                      for name in ("container", "pod")))


if __name__ == "__main__":
    harness.main()
