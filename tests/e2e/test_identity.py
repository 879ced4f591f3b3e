"""Who is who: real processes in real containers, jobs and units are put on a fake GPU, and are billed by name.

Everything from the driver's pid to the labels is real, but for the GPU.
"""
import contextlib
import os
import socket
import subprocess
import threading

import harness
from harness import (METER_ENERGY, PROCESS_ENERGY, SOON_S, UNOWNED_ENERGY, WORKLOAD_ENERGY, Exporter, TestCase, Trace,
                     wait_until)
from servers import cgroups
from servers.containerd import Containerd
from servers.docker import Dockerd
from servers.kubelet import Kubelet, claim, claimed, devices, pod
from servers.podman import Podman
from servers.slow_socket import SlowSocket
from servers.slurm import Slurm
from servers.unit import Unit

FAKE = os.environ["FAKE_NVML_DIR"]
CPU = "wattribute_workload_cpu_seconds_total"
INFO = "wattribute_workload_info"
ALLOCATED = "wattribute_workload_gpu_allocated"
PENDING = "wattribute_energy_pending_joules"
NO_RUNTIMES = ("--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=")
TRACE_PID = 100  # the first pid of the trace; real ones are put in their place


class Gpu:
    """A busy GPU on which `slots` processes take turns; which ones can change at any time."""

    def __init__(self, test, slots):
        trace = Trace()
        self.uuid = trace.gpu(0, uuid=b"GPU-79185bc1-0000-4000-8000-000000000000")
        trace.work(0, range(TRACE_PID, TRACE_PID + slots), seconds=20)
        trace.add(20, "X", 0, b"loop")
        scenario = trace.body().replace(b" X 0 loop", b" X * loop")
        self.test, self.slots = test, slots
        self.env = {"LD_LIBRARY_PATH": FAKE, "FAKE_NVML_SCENARIO": test.write("scenario", scenario),
                    "FAKE_NVML_PIDS": test.path("pids")}

    def put(self, pids):
        lines = "".join(f"{TRACE_PID + i} {pid}\n" for i, pid in enumerate(pids))
        os.rename(self.test.write("pids.new", lines.encode()), self.test.path("pids"))


class IdentityTestCase(TestCase):
    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result

    def gpu_with(self, *pids):
        gpu = Gpu(self, len(pids))
        gpu.put(pids)
        return gpu

    def exporter(self, gpu, *flags):
        given = {flag.split("=")[0] for flag in flags}
        return Exporter("--process-scan-interval=1s", *flags,
                        *(flag for flag in NO_RUNTIMES if flag.split("=")[0] not in given), env=gpu.env)

    def sleeper(self, *wrapper):
        process = subprocess.Popen([*wrapper, "sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def shows(self, *pids):
        """A condition: all of them are on the page with energy."""
        def condition(page):
            return all(page.sum(PROCESS_ENERGY, pid=str(pid)) > 0 for pid in pids)
        return condition

    def process_row(self, page, pid):
        return next(labels for labels, _ in page.values(PROCESS_ENERGY) if labels["pid"] == str(pid))

    def assert_process(self, page, pid, **expected):
        row = self.process_row(page, pid)
        names = dict.fromkeys(("pod", "namespace", "container", "pod_uid", "container_id"), "")
        self.assertEqual({**names, **expected}, {name: row[name] for name in names})

    def assert_workload(self, page, kind, ident, **expected):
        """It has energy under these names and no others."""
        names = {**dict.fromkeys(("name", "namespace", "pod", "container"), ""), **expected}
        self.assertGreater(page.sum(WORKLOAD_ENERGY, kind=kind, id=ident, **names), 0)
        self.assertEqual(page.sum(WORKLOAD_ENERGY, kind=kind, id=ident),
                         page.sum(WORKLOAD_ENERGY, kind=kind, id=ident, **names))

    def info(self, page, kind, ident):
        return next(labels for labels, _ in page.values(INFO) if (labels["kind"], labels["id"]) == (kind, ident))


class Everybody(IdentityTestCase):
    """One of each kind at the same time on one GPU."""

    @classmethod
    def setUpClass(cls):
        cls.docker = cls.enterClassContext(Dockerd())
        cls.podman = cls.enterClassContext(Podman())
        cls.podman_socket = cls.podman.service()
        cls.containerd = cls.enterClassContext(Containerd())
        cls.slurm = cls.enterClassContext(Slurm())
        cls.kubelet = cls.enterClassContext(Kubelet())

    def flags(self):
        return (f"--docker-socket={self.docker.socket}", f"--podman-socket={self.podman_socket}",
                f"--cri-socket={self.containerd.socket}", f"--pod-resources-socket={self.kubelet.socket}")

    def test_everybody_carries_the_right_labels_and_owner(self):
        web = self.docker.run("web", env=["SLURM_JOB_ID=1", "NVIDIA_VISIBLE_DEVICES=all"])
        self.podman.create_pod("thepod")
        member = self.podman.run("member", pod="thepod")
        train = self.containerd.run_pod("ml", "train-0", ["worker", "sidecar"])
        worker, sidecar = train.container("worker"), train.container("sidecar")
        job = self.slurm.sbatch(job_name="tune", account="physics")
        task = self.slurm.wait_for_process(job)
        outer_job, inner = self.slurm.run_podman(self.podman, "inner")
        outer = self.slurm.wait_for_process(outer_job)
        unit = self.enter(Unit())
        user, root = self.sleeper("setpriv", "--reuid=4711", "--clear-groups"), self.sleeper()
        pids = [each.pid for each in (web, member, worker, sidecar, inner, unit)] + [task, outer, user, root]
        gpu = self.gpu_with(*pids)
        self.kubelet.pods = [pod("ml", "train-0", {
            "worker": [devices("nvidia.com/gpu", f"{gpu.uuid}::3")],
            "sidecar": [claim("c", "ml", claimed("gpu.nvidia.com", "node", "gpu-0", share_id="s"))],
        }), pod("ml", "ended", {"main": [devices("nvidia.com/gpu", gpu.uuid)]})]

        with self.exporter(gpu, *self.flags()) as exporter:
            page = exporter.wait_for_page("everybody is shown", lambda page: self.shows(*pids)(page) and
                                          len(page.values(ALLOCATED)) == 2, 30)
            self.assert_balanced(page)
            self.assert_processes_sum_to_workloads(page)

            self.assert_process(page, web.pid, container="web", container_id=web.id)
            self.assert_workload(page, "container", web.id, name="web", container="web")
            self.assertEqual("busybox:test", self.info(page, "container", web.id)["image"])

            self.assert_process(page, member.pid, container="member", container_id=member.id, pod="thepod")
            self.assert_workload(page, "container", member.id, name="member", container="member", pod="thepod")

            for container in (worker, sidecar):
                self.assert_process(page, container.pid, pod="train-0", namespace="ml", container=container.name,
                                    pod_uid=train.uid, container_id=container.id)
                self.assert_workload(page, "pod", container.id, name="train-0", namespace="ml", pod="train-0",
                                     container=container.name)
                self.assertEqual(1, page.value(ALLOCATED, id=container.id, container=container.name, gpu="0",
                                               uuid=gpu.uuid, source="kubelet" if container is worker else "dra",
                                               unverified=""))
                self.assertEqual(train.uid, self.info(page, "pod", container.id)["pod_uid"])

            self.assert_process(page, task)
            self.assert_workload(page, "slurm", str(job), name=str(job))
            info = self.info(page, "slurm", str(job))
            self.assertEqual(("root", "physics", str(job), "tune", "account,job_name"),
                             tuple(info[name] for name in ("user", "account", "job_id", "job_name", "unverified")))

            self.assert_process(page, inner.pid, container="inner", container_id=inner.id)
            self.assert_process(page, outer)
            self.assert_workload(page, "slurm", str(outer_job), name=str(outer_job))
            self.assertEqual(("train", ""), tuple(
                self.info(page, "slurm", str(outer_job))[name] for name in ("job_name", "container_id")))

            self.assert_process(page, unit.pid)
            self.assert_workload(page, "unit", unit.name, name=unit.name)
            self.assert_workload(page, "user", "4711", name="4711")
            self.assertGreater(page.sum(UNOWNED_ENERGY, owner="system"), 0)
            self.assertEqual(page.sum(UNOWNED_ENERGY, owner="system"), page.sum(PROCESS_ENERGY, pid=str(root)))
            for source in ("processes", "docker", "podman", "cri", "kubelet"):
                self.assertEqual(1, page.value("wattribute_source_up", source=source), source)
            inner.kill()
        self.slurm.cancel(outer_job)

    def test_a_container_that_mounts_its_own_proc_is_seen_from_outside(self):
        liar = self.docker.run("liar", CapAdd=["SYS_ADMIN"], SecurityOpt=["seccomp=unconfined"], command=(
            "/bin/busybox", "sh", "-c",
            "/bin/busybox mount -t tmpfs none /proc && /bin/busybox mkdir -p /proc/self /proc/1 && "
            "echo 0::/system.slice/innocent.service | /bin/busybox tee /proc/self/cgroup /proc/1/cgroup && "
            "exec /bin/busybox sleep 600"))
        wait_until("it has mounted it", lambda: os.path.exists(f"/proc/{liar.pid}/root/proc/1/cgroup") and
                   harness.process_status(liar.pid)["Name"] == "busybox")
        with self.exporter(self.gpu_with(liar.pid), *self.flags()) as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(liar.pid))
            self.assert_workload(page, "container", liar.id, name="liar", container="liar")

    def test_less_can_be_exposed_but_all_of_it_is_booked(self):
        web = self.docker.run()
        worker = self.containerd.run_pod("ml", "exposed", ["main"]).containers[0]
        gpu = self.gpu_with(web.pid, worker.pid)
        for what, kinds in (("containers", {"container", "pod"}), ("pods", {"pod"})):
            with self.exporter(gpu, f"--expose={what}", *self.flags()) as exporter:
                page = exporter.wait_for_page("they are shown", lambda page, kinds=kinds: kinds == {
                    labels["kind"] for labels, value in page.values(WORKLOAD_ENERGY) if value > 0})
                self.assertEqual([], page.values(PROCESS_ENERGY))
                self.assertGreater(page.sum(METER_ENERGY), 0)
                self.assertEqual(0, page.value("wattribute_ledger_imbalance_joules"))

    def test_without_kubernetes_pods_have_no_names(self):
        worker = self.containerd.run_pod("ml", "nameless", ["main"]).containers[0]
        with self.exporter(self.gpu_with(worker.pid), "--kubernetes-enabled=false", *self.flags()) as exporter:
            # Docker and Podman might know it: they are asked for 15 s.
            page = exporter.wait_for_page("it is shown", self.shows(worker.pid), 30)
            self.assert_workload(page, "pod", worker.id)
            self.assertFalse([1 for labels, _ in page.values("wattribute_source_up") if labels["source"] == "cri"])

    def test_containers_that_have_ended_when_their_runtime_is_asked_are_named(self):
        def ask_late(path):
            return SlowSocket(self, path, question_s=4).path

        with Exporter(f"--docker-socket={ask_late(self.docker.socket)}",
                      f"--podman-socket={ask_late(self.podman_socket)}",
                      "--cri-socket=", "--pod-resources-socket=") as exporter:
            short = ("/bin/sleep", "1")
            containers = [self.docker.run("short-of-docker", command=short),
                          self.podman.run("short-of-podman", command=short)]
            page = exporter.wait_for_page("both are shown", lambda page: all(
                page.values(CPU, id=container.id) for container in containers), 60)
            self.assertEqual([container.name for container in containers],
                             [page.values(CPU, id=container.id)[0][0]["container"] for container in containers])

    def test_a_runtime_that_restarts_is_asked_again(self):
        first = self.containerd.run_pod("ml", "before", ["main"]).containers[0]
        gpu = self.gpu_with(first.pid, first.pid)
        with self.exporter(gpu, *self.flags()) as exporter:
            exporter.wait_for_page("the first is shown", self.shows(first.pid))
            self.containerd.daemon.stop()
            self.containerd.start()
            second = self.containerd.run_pod("ml", "after", ["main"]).containers[0]
            gpu.put([first.pid, second.pid])
            page = exporter.wait_for_page("the second is shown", self.shows(second.pid), 25)
            self.assert_workload(page, "pod", second.id, name="after", namespace="ml", pod="after", container="main")
            self.assert_workload(page, "pod", first.id, name="before", namespace="ml", pod="before", container="main")
            self.assert_balanced(page)


class Churn(IdentityTestCase):
    ROUNDS, AT_ONCE = 50, 20

    def spawn(self, group):
        """A short process, moved to where a container's or unit's would be."""
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        cgroups.enter(group, process.pid)
        return process

    def test_a_thousand_short_processes_are_booked_to_their_workloads(self):
        docker = self.enter(Dockerd())
        boxes = [docker.run(name) for name in ("red", "blue")]
        groups = [f"/docker/{box.id}" for box in boxes]
        gpu = self.gpu_with(*[boxes[0].pid] * self.AT_ONCE)
        with self.exporter(gpu, f"--docker-socket={docker.socket}", "--metric-retention=2s",
                           "--max-processes=100") as exporter, contextlib.ExitStack() as stack:
            before = exporter.wait_for_page("energy is settled", lambda page: page.sum(WORKLOAD_ENERGY) > 0)
            for _ in range(self.ROUNDS):
                processes = [self.spawn(groups[i % 2]) for i in range(self.AT_ONCE)]
                for process in processes:
                    stack.callback(process.wait)
                    stack.callback(process.kill)
                gpu.put([process.pid for process in processes])
                settled = before.sum(METER_ENERGY)
                after = exporter.wait_for_page("time has passed", lambda page, settled=settled: page.sum(
                    METER_ENERGY) > settled)
                self.assert_balanced(after)
                for box in boxes:
                    self.assertGreaterEqual(after.sum(WORKLOAD_ENERGY, id=box.id),
                                            before.sum(WORKLOAD_ENERGY, id=box.id), box.name)
                before = after
                stack.pop_all().close()
            gpu.put([box.pid for box in boxes] * (self.AT_ONCE // 2))
            page = exporter.wait_for_page("the last is forgotten", lambda page: len(
                {labels["pid"] for labels, _ in page.values(PROCESS_ENERGY)}) <= 2, 30)
            self.assert_balanced(page)
            owners = {(labels["kind"], labels["name"]) for labels, value in page.values(WORKLOAD_ENERGY) if value > 0}
            self.assertEqual({("container", "red"), ("container", "blue")}, owners)
            red, blue = (float(page.sum(WORKLOAD_ENERGY, id=box.id)) for box in boxes)
            self.assertLess(abs(red - blue), 0.35 * (red + blue))


class Runtime:
    """Something on a unix socket that is not what it should be: `answer(connection)` for each connection."""

    def __init__(self, test, answer):
        self.path = test.path("runtime.sock")
        self.answer, self.calls = answer, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.connections = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        test.addCleanup(self.close)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                self.calls += 1
                threading.Thread(target=self.talk, args=[connection], daemon=True).start()

    def talk(self, connection):
        with contextlib.suppress(OSError):
            connection.recv(65536)
            self.answer(connection)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.thread.join()


def reply(body, status=b"200 OK"):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        connection.close()
    return answer


def endless(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"[" + b" " * 0xffff + b"\r\n"
    while True:
        connection.sendall(chunk)


def silent(connection):
    connection.recv(1)


class Lies(IdentityTestCase):
    """A runtime that hangs or lies costs names, and nothing else."""

    def container(self):
        """A process in a cgroup of Docker's shape."""
        ident = os.urandom(32).hex()
        group = f"/docker/{ident}"
        pid = self.sleeper()
        with cgroups.making(group):
            cgroups.enter(group, pid)
        self.addCleanup(cgroups.sweep)
        self.addCleanup(cgroups.remove, group)
        return ident, pid

    def assert_served_without_names(self, answer, is_up):
        ident, pid = self.container()
        runtime = Runtime(self, answer)
        with self.exporter(self.gpu_with(pid), f"--docker-socket={runtime.path}") as exporter:
            page = exporter.wait_for_page("energy is pending", lambda page: page.sum(PENDING) > 200)
            self.assertEqual([], page.values(PROCESS_ENERGY))
            self.assert_balanced(page)
            page = exporter.wait_for_page("it is shown in the end", self.shows(pid), 25)
            self.assert_workload(page, "container", ident)
            self.assert_process(page, pid, container_id=ident)
            self.assert_balanced(page)
            self.assertEqual(is_up, page.value("wattribute_source_up", source="docker"))
            # Under sanitizers what was freed stays for a while.
            self.assertLess(page.value("process_resident_memory_bytes"), 600e6)
            self.assertLess(runtime.calls, 12)
            self.assertLess(exporter.stop(), SOON_S)

    def test_one_that_never_answers(self):
        self.assert_served_without_names(silent, is_up=0)

    def test_one_that_never_stops(self):
        self.assert_served_without_names(endless, is_up=0)

    def test_one_that_knows_nothing(self):
        self.assert_served_without_names(reply(b"[]"), is_up=1)

    def test_names_of_any_size_and_content_are_cut_and_escaped(self):
        ident, pid = self.container()
        name = '\\u0007\\"evil\\\\\\n{}' + "x" * 100000
        runtime = Runtime(self, reply(b'[{"Id":"%b","Names":["/%b"],"Image":7,"Labels":[]}, 5, null]'
                                      % (ident.encode(), name.encode())))
        with self.exporter(self.gpu_with(pid), f"--docker-socket={runtime.path}") as exporter:
            page = exporter.wait_for_page("it is shown", self.shows(pid))
            shown = self.process_row(page, pid)["container"]
            self.assertTrue(shown.startswith("\ufffd07\"evil\\\n{}xxx"), shown[:40])
            self.assertLess(len(shown), 600)

    def test_nobody_can_pass_for_another(self):
        victim, victim_pid = self.container()
        own, _ = self.container()
        forged = f"/docker/{own}/docker/{victim}"
        pid = self.sleeper()
        with cgroups.making(forged):
            cgroups.enter(forged, pid)
        runtime = Runtime(self, reply(b'[{"Id":"%b","Names":["/precious"]},{"Id":"%b","Names":["/precious"]}]'
                                      % (victim.encode(), own.encode())))
        with self.exporter(self.gpu_with(victim_pid, pid), f"--docker-socket={runtime.path}") as exporter:
            page = exporter.wait_for_page("both are shown", self.shows(victim_pid, pid))
            self.assert_workload(page, "container", victim, name="precious", container="precious")
            self.assertEqual(page.sum(WORKLOAD_ENERGY, id=victim), page.sum(PROCESS_ENERGY, pid=str(victim_pid)))
            self.assert_workload(page, "container", f"{own}/{victim}")

    def test_who_was_given_a_cgroup_is_billed_for_what_is_named_in_it(self):
        victim, victim_pid = self.container()
        service = self.enter(Unit())
        pid = self.sleeper()
        forged = f"{service.cgroup}/docker/{victim}"
        with cgroups.making(forged, only_systemd=True):
            cgroups.give(service.cgroup, 4711, only_systemd=True)
            cgroups.enter(forged, pid, only_systemd=True)
        gpu = self.gpu_with(victim_pid, pid)
        with self.exporter(gpu) as exporter:
            page = exporter.wait_for_page("both are shown", self.shows(victim_pid, pid), 25)
            for ident, owned in ((victim, victim_pid), (f"4711/{victim}", pid)):
                self.assert_workload(page, "container", ident)
                self.assertEqual(page.sum(WORKLOAD_ENERGY, id=ident), page.sum(PROCESS_ENERGY, pid=str(owned)))
        trace = self.path("node.trace.gz")
        done = harness.run("record", "-o", trace, "--duration=6s", *NO_RUNTIMES, env=gpu.env)
        self.assertEqual((0, done.stdout), (done.returncode, harness.run("replay", trace).stdout), done.stderr)
        with Exporter("--replay", trace) as exporter:
            page = exporter.wait_for_page("both are shown", self.shows(victim_pid, pid), 25)
            self.assertEqual({victim, f"4711/{victim}"},
                             {labels["id"] for labels, _ in page.values(WORKLOAD_ENERGY, kind="container")})

    def test_a_process_that_moves_is_billed_where_it_is(self):
        ident, _ = self.container()
        pid = self.sleeper()
        with self.exporter(self.gpu_with(pid)) as exporter:
            exporter.wait_for_page("it is the system's", lambda page: page.sum(UNOWNED_ENERGY, owner="system") > 0)
            cgroups.enter(f"/docker/{ident}", pid)
            page = exporter.wait_for_page("it is the container's", lambda page: page.sum(
                WORKLOAD_ENERGY, id=ident) > 0)
            self.assert_balanced(page)
            self.assert_processes_sum_to_workloads(page)


class Ends(IdentityTestCase):
    def test_counters_of_a_workload_outlive_its_processes(self):
        with Unit() as unit:
            stays = self.sleeper()
            gpu = self.gpu_with(unit.pid, stays)
            with self.exporter(gpu) as exporter:
                before = exporter.wait_for_page("it is shown", self.shows(unit.pid))
                gpu.put([stays, stays])
                unit.process.kill()
                page = exporter.wait_for_page("it has ended", lambda page: page.value(
                    "my_gpu_process_active", pid=str(unit.pid)) == 0)
                wait_until("it is gone", lambda: not harness.is_running(unit.pid))
                self.assertGreaterEqual(page.sum(WORKLOAD_ENERGY, id=unit.name),
                                        before.sum(WORKLOAD_ENERGY, id=unit.name))
                self.assert_balanced(page)


if __name__ == "__main__":
    harness.main()
