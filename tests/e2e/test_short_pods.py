"""Pods that end before anybody has asked for their names: real containerd, real cgroups, no GPU."""
import contextlib
import socket
import threading
import time

import harness
from harness import Exporter, TestCase, wait_until
from servers import cgroups
from servers.containerd import Containerd

CPU = "wattribute_workload_cpu_seconds_total"
INFO = "wattribute_workload_info"
AT_ONCE = 20
ONE_SECOND = ("/bin/sleep", "1")


class SlowSocket:
    """A socket that leads to another one; what comes back is held for `delay_s`."""

    def __init__(self, test, target, delay_s):
        self.path, self.target, self.delay_s, self.closed = test.path("slow.sock"), target, delay_s, threading.Event()
        self.asked = []  # when each connection came
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.threads = []
        self.start(self.serve)
        test.addCleanup(self.close)

    def start(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self.asked.append(time.monotonic())
                self.start(self.carry, near)

    def carry(self, near):
        with near, socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError):
            far.connect(self.target)
            self.start(self.copy, near, far)
            self.closed.wait(self.delay_s)
            self.copy(far, near)

    def copy(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.closed.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class ShortPods(TestCase):
    def setUp(self):
        super().setUp()
        self.containerd = self.enterContext(Containerd())

    def exporter(self, socket_path, *flags):
        return Exporter(f"--cri-socket={socket_path}", "--docker-socket=", "--podman-socket=",
                        "--pod-resources-socket=", *flags)

    def run_short_pods(self, count=AT_ONCE):
        pods = self.containerd.run_pods([("jobs", f"short-{i}", ["main"]) for i in range(count)],
                                        command=ONE_SECOND)
        wait_until("they have ended", lambda: not any(
            cgroups.pids(f"/kubepods/burstable/pod{pod.uid}/{pod.containers[0].id}") for pod in pods), 30)
        return pods

    def assert_all_named(self, exporter, pods, seconds=40):
        ids = {pod.containers[0].id: pod for pod in pods}
        page = exporter.wait_for_page("all are shown", lambda page: all(
            page.values(CPU, id=ident) for ident in ids), seconds)
        named = {ident: (labels["namespace"], labels["pod"], labels["container"])
                 for ident in ids for labels, _ in page.values(CPU, id=ident)}
        unnamed = [ident for ident, names in named.items() if names != ("jobs", ids[ident].name, "main")]
        self.assertEqual([], unnamed, f"{len(unnamed)} of {len(ids)} have no name or a wrong one")
        return page

    def test_20_pods_of_one_second_that_start_at_once_are_all_named(self):
        with self.exporter(self.containerd.socket) as exporter:
            self.assert_all_named(exporter, self.run_short_pods())

    def test_a_runtime_that_takes_4_s_to_answer_names_them_all_the_same(self):
        slow = SlowSocket(self, self.containerd.socket, 4)
        with self.exporter(slow.path) as exporter:
            self.assert_all_named(exporter, self.run_short_pods())


if __name__ == "__main__":
    harness.main()
