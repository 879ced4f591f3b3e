"""The servers of the other tests: each does what they need of it, and leaves nothing behind."""
import contextlib
import json
import os
import secrets
import subprocess
import sys

import harness
from harness import TestCase, is_running, wait_until
from servers import cgroups, wire
from servers.containerd import Containerd
from servers.docker import Dockerd
from servers.kubelet import Kubelet, claim, claimed, devices, pod
from servers.podman import Podman
from servers.slurm import Slurm
from servers.unit import Unit

ID = "^[0-9a-f]{64}$"
RUNNING = {1: wire.message({2: wire.message({1: 1})})}  # a filter of ListContainers


def command_lines():
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", errors="replace") as file:
            lines.append(file.read().replace("\0", " "))
    return lines


class ServerTestCase(TestCase):
    def assert_everywhere(self, path, pid):
        """It has this cgroup in every hierarchy."""
        self.assertEqual({path}, set(cgroups.of(pid).values()))

    def assert_no_trace(self, stage, pids=(), groups=()):
        self.assertFalse(os.path.exists(stage.directory))
        self.assertEqual([], [pid for pid in pids if is_running(pid)])
        self.assertEqual([], [line for line in command_lines() if stage.directory in line])
        self.assertEqual([], [path for path in groups if cgroups.exists(path)])
        for file in ("/proc/self/mountinfo", "/proc/net/unix"):
            with open(file) as lines:
                self.assertEqual([], [line for line in lines if stage.directory in line])


class Docker(ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.docker = cls.enterClassContext(Dockerd())

    def names(self):
        listed = self.docker.ask("GET", "/v1.40/containers/json")
        return [name for each in listed for name in each["Names"]]

    def test_a_container_has_its_id_below_docker_in_every_hierarchy(self):
        container = self.docker.run("plain", labels={"team": "red"})
        self.assertRegex(container.id, ID)
        self.assert_everywhere(f"/docker/{container.id}", container.pid)
        found = self.docker.ask("GET", f"/v1.40/containers/{container.id}/json")
        self.assertEqual(("/plain", {"team": "red"}, container.pid),
                         (found["Name"], found["Config"]["Labels"], found["State"]["Pid"]))

    def test_a_cgroup_parent_gives_it_the_path_of_a_pod(self):
        parent = "/kubepods/burstable/pod2c9f8a79-5391-454b-88cb-86190881cb96"
        container = self.docker.run(cgroup_parent=parent)
        self.assert_everywhere(f"{parent}/{container.id}", container.pid)

    def test_it_ends_with_its_process(self):
        container = self.docker.run("short")
        self.assertIn("/short", self.names())
        container.kill()
        wait_until("docker has noticed", lambda: "/short" not in self.names())
        wait_until("its cgroup is gone", lambda: not cgroups.exists(f"/docker/{container.id}"))

    def test_it_can_be_renamed(self):
        container = self.docker.rename(self.docker.run("before"), "after")
        self.assertIn("/after", self.names())
        self.docker.remove(container)
        self.assertNotIn("/after", self.names())

    def test_a_request_for_gpus_is_in_what_the_api_tells(self):
        created = self.docker.create("gpus", DeviceRequests=[
            {"Count": -1, "Capabilities": [["gpu"]]}])
        found = self.docker.ask("GET", f"/v1.40/containers/{created}/json")
        request, = found["HostConfig"]["DeviceRequests"]
        self.assertEqual((-1, [["gpu"]]), (request["Count"], request["Capabilities"]))


class Pods(ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.containerd = cls.enterClassContext(Containerd())

    def running(self):
        answer = wire.fields(self.containerd.call("ListContainers", RUNNING))
        return {wire.text(each, 1): each for each in answer.get(1, [])}

    def test_a_pod_has_its_containers_and_its_sandbox_in_its_cgroup(self):
        made = self.containerd.run_pod("ml", "train-0", ["worker", "sidecar"])
        parent = f"/kubepods/burstable/pod{made.uid}"
        for container in made.containers:
            self.assertRegex(container.id, ID)
            self.assert_everywhere(f"{parent}/{container.id}", container.pid)
        self.assert_everywhere(f"{parent}/{made.sandbox_id}", self.containerd.sandbox_pid(made))

    def test_its_containers_are_labelled_as_by_the_kubelet(self):
        made = self.containerd.run_pod("ml", "train-1", ["worker"], labels={"app": "train"})
        container = made.container("worker")
        listed = self.running()[container.id]
        self.assertEqual(made.sandbox_id, wire.text(listed, 2))
        self.assertEqual({
            "io.kubernetes.pod.name": "train-1", "io.kubernetes.pod.namespace": "ml",
            "io.kubernetes.pod.uid": made.uid, "io.kubernetes.container.name": "worker",
        }, wire.text_map(listed, 8))
        sandbox, = [each for each in wire.fields(self.containerd.call("ListPodSandbox"))[1]
                    if wire.text(each, 1) == made.sandbox_id]
        self.assertEqual("train", wire.text_map(sandbox, 5)["app"])

    def test_a_guaranteed_pod_has_no_level_of_service(self):
        uid = "5f2c1d9e7b3a4c60812e9f0a6d4b7c35"
        parent = f"/kubepods/pod{uid}"
        container, = self.containerd.run_pod("ml", "exact", ["main"], uid, parent).containers
        self.assert_everywhere(f"{parent}/{container.id}", container.pid)

    def test_a_container_ends_with_its_process(self):
        container = self.containerd.run_pod("ml", "short", ["main"]).containers[0]
        container.kill()
        wait_until("containerd has noticed", lambda: container.id not in self.running())

    def test_containers_outlive_a_restart_of_the_daemon(self):
        container = self.containerd.run_pod("ml", "long", ["main"]).containers[0]
        self.containerd.daemon.stop()
        self.assertTrue(is_running(container.pid))
        self.assertFalse(os.path.exists(self.containerd.socket))
        self.containerd.start()
        self.assertIn(container.id, self.running())

    def test_a_pod_that_is_removed_is_gone(self):
        made = self.containerd.run_pod("ml", "gone", ["main"])
        self.containerd.remove_pod(made)
        self.assertFalse(is_running(made.containers[0].pid))
        self.assertNotIn(made.containers[0].id, self.running())


class PodmanContainers(ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.podman = cls.enterClassContext(Podman())
        cls.socket = cls.podman.service()

    def listed(self):
        answer = harness.ask(f"unix:{self.socket}", "/v4.0.0/libpod/containers/json")
        return {each["Id"]: each for each in json.loads(answer.body)}

    def test_a_container_and_its_monitor_are_below_libpod_parent(self):
        container = self.podman.run("plain")
        self.assertRegex(container.id, ID)
        self.assert_everywhere(f"/libpod_parent/libpod-{container.id}", container.pid)
        monitor = cgroups.of(self.podman.monitor_pid(container))
        self.assertIn("/libpod_parent/conmon", monitor.values())

    def test_the_api_tells_name_pid_and_pod(self):
        pod_id = self.podman.create_pod("thepod")
        container = self.podman.run("member", pod="thepod", labels={"team": "red"})
        listed = self.listed()[container.id]
        self.assertEqual((["member"], container.pid, pod_id, "thepod", {"team": "red"}),
                         tuple(listed[key] for key in ("Names", "Pid", "Pod", "PodName", "Labels")))

    def test_a_cgroup_parent_is_obeyed(self):
        parent = f"/wattribute-test-{secrets.token_hex(4)}/inner"
        container = self.podman.run("placed", cgroup_parent=parent)
        self.assert_everywhere(f"{parent}/libpod-{container.id}", container.pid)

    def test_it_ends_with_its_process(self):
        container = self.podman.run("short")
        container.kill()
        wait_until("podman has noticed", lambda: container.id not in self.listed())


class SlurmJobs(ServerTestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = cls.enterClassContext(Slurm())

    def test_a_job_has_its_step_and_task_in_some_hierarchies_and_nothing_in_others(self):
        job = self.slurm.sbatch()
        pid = self.slurm.wait_for_process(job)
        paths = cgroups.of(pid)
        self.assertEqual(f"/slurm_{self.slurm.node}/uid_0/job_{job}/step_batch", paths["freezer"])
        for controller in ("memory", "cpuacct"):
            self.assertEqual(f"{paths['freezer']}/task_0", paths[controller])
        self.assertEqual("/", paths["name=systemd"])
        self.assertEqual({pid}, self.slurm.pids(job))
        self.slurm.cancel(job)
        self.assertFalse(is_running(pid))

    def test_a_job_has_its_name_and_account_in_its_environment(self):
        pid = self.slurm.wait_for_process(self.slurm.sbatch(job_name="tune", account="physics"))
        with open(f"/proc/{pid}/environ") as file:
            environment = file.read().split("\0")
        self.assertIn("SLURM_JOB_NAME=tune", environment)
        self.assertIn("SLURM_JOB_ACCOUNT=physics", environment)

    def test_a_container_that_a_job_starts_is_in_both(self):
        podman = self.enter(Podman())
        job, container = self.slurm.run_podman(podman, "inner")
        parent = self.slurm.task_cgroup(job)
        self.assert_everywhere(f"{parent}/libpod-{container.id}", container.pid)
        self.assertIn(container.pid, self.slurm.pids(job))
        container.kill()
        self.slurm.cancel(job)

    def test_a_container_of_docker_can_be_below_a_job(self):
        docker = self.enter(Dockerd())
        job = self.slurm.sbatch()
        self.slurm.wait_for_process(job)
        container = docker.run(cgroup_parent=self.slurm.task_cgroup(job))
        self.assert_everywhere(f"{self.slurm.task_cgroup(job)}/{container.id}", container.pid)

    def enter(self, context):
        result = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return result


class PodResources(TestCase):
    def setUp(self):
        super().setUp()
        self.kubelet = Kubelet().__enter__()
        self.addCleanup(self.kubelet.__exit__)
        self.channel = self.kubelet.grpc.insecure_channel(f"unix://{self.kubelet.socket}")
        self.addCleanup(self.channel.close)

    def call(self, method, request=b""):
        return self.channel.unary_unary(f"/v1.PodResourcesLister/{method}")(
            request, timeout=10, wait_for_ready=True)

    def assert_refused(self, status, method, request=b""):
        with self.assertRaises(self.kubelet.grpc.RpcError) as caught:
            self.call(method, request)
        self.assertEqual(status, caught.exception.code().name)

    def test_it_lists_the_devices_of_a_container_byte_for_byte_as_the_kubelet(self):
        gpu = "GPU-8f6b0c1e-0000-0000-0000-000000000000::3"
        self.kubelet.pods = [pod("ml", "train-0", {"worker": [devices("nvidia.com/gpu", gpu)]})]
        self.assertEqual(b"\x0a\x56\x0a\x07train-0\x12\x02ml\x1a\x47\x0a\x06worker\x12\x3d"
                         b"\x0a\x0envidia.com/gpu\x12\x2b" + gpu.encode(), self.call("List"))

    def test_it_lists_claims_and_numa_nodes(self):
        self.kubelet.pods = [pod("ml", "p", {
            "c": [devices("nvidia.com/mig-1g.10gb", "MIG-1", "MIG-2", numa_node=0),
                  claim("c", "ml", claimed("gpu.nvidia.com", "node1", "gpu-0", share_id="s"))]})]
        listed, = wire.fields(self.call("List"))[1]
        container = wire.fields(wire.fields(listed)[3][0])
        self.assertEqual({1: [b"nvidia.com/mig-1g.10gb"], 2: [b"MIG-1", b"MIG-2"],
                          3: [b"\x0a\x00"]}, wire.fields(container[2][0]))
        resource = wire.fields(wire.fields(container[5][0])[4][0])
        self.assertEqual({2: [b"gpu.nvidia.com"], 3: [b"node1"], 4: [b"gpu-0"], 5: [b"s"]},
                         resource)

    def test_its_pods_change_while_it_runs(self):
        self.assertEqual(b"", self.call("List"))
        self.kubelet.pods.append(pod("ml", "late", {}))
        self.assertEqual("late", wire.text(wire.fields(self.call("List"))[1][0], 1))
        self.assertEqual("late", wire.text(wire.fields(self.call("Get", wire.message(
            {1: "late", 2: "ml"})))[1][0], 1))
        self.kubelet.pods.clear()
        self.assertEqual(b"", self.call("List"))
        self.assertEqual(4, self.kubelet.calls)

    def test_it_refuses_as_it_is_told(self):
        self.assert_refused("UNIMPLEMENTED", "NoSuchMethod")
        self.assert_refused("NOT_FOUND", "Get", wire.message({1: "x", 2: "y"}))
        self.kubelet.error = "RESOURCE_EXHAUSTED"
        self.assert_refused("RESOURCE_EXHAUSTED", "List")
        self.kubelet.error = None
        self.assertEqual(b"", self.call("List"))

    def test_it_comes_back_after_a_restart(self):
        self.call("List")
        self.kubelet.stop()
        self.assertFalse(os.path.exists(self.kubelet.socket))
        self.kubelet.start()
        self.assertEqual(b"", self.call("List"))


class Units(ServerTestCase):
    def test_a_unit_has_its_name_in_the_hierarchies_of_systemd(self):
        with Unit() as unit:
            self.assertRegex(unit.name, r"^wattribute-test-\w+\.service$")
            paths = cgroups.of(unit.pid)
            self.assertEqual({f"/system.slice/{unit.name}"},
                             {paths[key] for key in ("", "name=systemd") if key in paths})
        self.assertFalse(is_running(unit.pid))
        self.assertFalse(cgroups.exists(unit.cgroup))

    def test_a_cgroup_that_exists_is_left_alone(self):
        with Unit() as unit:
            with self.assertRaises(AssertionError):
                Unit(unit.cgroup).__enter__()
            self.assertTrue(is_running(unit.pid))


class NothingIsLeft(ServerTestCase):
    """Even where the daemon dies with containers running."""

    def setUp(self):
        super().setUp()
        self.parent = f"/wattribute-test-{secrets.token_hex(4)}"

    def test_of_docker(self):
        with Dockerd() as docker:
            container = docker.run(cgroup_parent=f"{self.parent}/inner")
            docker.daemon.process.kill()
        self.assert_no_trace(docker.stage, [container.pid], [self.parent])

    def test_of_containerd(self):
        with Containerd() as containerd:
            made = containerd.run_pod("ml", "p", ["a", "b"], cgroup_parent=f"{self.parent}/inner")
            sandbox = containerd.sandbox_pid(made)
            containerd.daemon.process.kill()
        pids = [sandbox, *(each.pid for each in made.containers)]
        self.assert_no_trace(containerd.stage, pids, [self.parent])

    def test_of_podman(self):
        with Podman() as podman:
            container = podman.run("c", cgroup_parent=f"{self.parent}/inner")
            monitor = podman.monitor_pid(container)
            podman.service()
            podman.daemon.process.kill()
        self.assert_no_trace(podman.stage, [container.pid, monitor], [self.parent])

    def test_of_slurm_with_a_container_in_a_job(self):
        with Podman() as podman, Slurm() as slurm:
            plain = slurm.wait_for_process(slurm.sbatch())
            _, container = slurm.run_podman(podman, "inner")
        self.assert_no_trace(slurm.stage, [plain, container.pid], [slurm.root])
        self.assert_no_trace(podman.stage)

    def test_of_a_server_that_fails_to_start(self):
        class Broken(Dockerd):
            def start(self):
                super().start()
                raise RuntimeError
        broken = Broken()
        with self.assertRaises(RuntimeError):
            broken.__enter__()
        self.assert_no_trace(broken.stage)

    def test_of_a_test_that_is_killed(self):
        Containerd().require()
        code = f"""
from servers.containerd import Containerd
with Containerd() as containerd:
    pod = containerd.run_pod("ml", "p", ["a"], cgroup_parent="{self.parent}/inner")
    print(containerd.stage.directory, pod.containers[0].pid, flush=True)
    input()
"""
        test = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True,
                                stdout=subprocess.PIPE, cwd=os.path.dirname(harness.__file__))
        with test:
            directory, pid = test.stdout.readline().split()
            self.assertTrue(is_running(int(pid)))
            test.kill()
        wait_until("all is cleared away", lambda: not (
            is_running(int(pid)) or os.path.exists(directory) or cgroups.exists(self.parent)), 30)


if __name__ == "__main__":
    harness.main()
