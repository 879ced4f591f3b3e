"""Names from a real containerd: of pods that end before anybody could ask, by a runtime that is slow, of images that
are known by their digests. And what the mounts of the DaemonSet let it do. Real cgroups, no GPU."""
import os
import subprocess

import harness
import manifests
from harness import Exporter, TestCase, wait_until
from servers import cgroups, wire
from servers.containerd import IMAGE, Containerd
from servers.slow_socket import SlowSocket

CPU = "wattribute_workload_cpu_seconds_total"
INFO = "wattribute_workload_info"
AT_ONCE = 20
ONE_SECOND = ("/bin/sleep", "1")


class CriTestCase(TestCase):
    def setUp(self):
        super().setUp()
        self.containerd = self.enterContext(Containerd())

    def exporter(self, socket_path, *flags):
        return Exporter(f"--cri-socket={socket_path}", "--docker-socket=", "--podman-socket=",
                        "--pod-resources-socket=", *flags)


class ShortPods(CriTestCase):
    def run_short_pods(self):
        pods = self.containerd.run_pods([("jobs", f"short-{i}", ["main"]) for i in range(AT_ONCE)],
                                        command=ONE_SECOND)
        wait_until("they have ended", lambda: not any(
            cgroups.pids(f"/kubepods/burstable/pod{pod.uid}/{pod.containers[0].id}") for pod in pods), 30)
        return pods

    def assert_all_named(self, exporter, pods):
        ids = {pod.containers[0].id: pod for pod in pods}
        page = exporter.wait_for_page("all are shown", lambda page: all(
            page.values(CPU, id=ident) for ident in ids), 60)
        unnamed = [ident for ident in ids for labels, _ in page.values(CPU, id=ident, mode="user") if
                   (labels["namespace"], labels["pod"], labels["container"]) != ("jobs", ids[ident].name, "main")]
        self.assertEqual([], unnamed, f"{len(unnamed)} of {len(ids)} have no name or a wrong one")

    def test_20_pods_of_one_second_that_start_at_once_are_all_named(self):
        with self.exporter(self.containerd.socket) as exporter:
            self.assert_all_named(exporter, self.run_short_pods())

    def test_a_runtime_that_takes_4_s_to_answer_names_them_all_the_same(self):
        slow = SlowSocket(self, self.containerd.socket, answer_s=4)
        with self.exporter(slow.path) as exporter:
            self.assert_all_named(exporter, self.run_short_pods())


class OtherPods(CriTestCase):
    def shown(self, exporter, *idents):
        return exporter.wait_for_page("they are shown", lambda page: all(
            page.values(CPU, id=ident) for ident in idents), 40)

    def labels(self, page, ident):
        return page.values(CPU, id=ident, mode="user")[0][0]

    def info(self, page, ident):
        found, = page.values(INFO, id=ident)
        return found[0]

    def test_an_image_that_the_list_has_by_its_digest_is_shown_by_its_name(self):
        digest = self.containerd.image_id()
        self.assertRegex(digest, "^sha256:[0-9a-f]{64}$")
        container, = self.containerd.run_pod("ml", "train-0", ["worker"], image=digest).containers
        listed = {wire.text(each, 1): each for each in wire.fields(self.containerd.call("ListContainers"))[1]}
        self.assertEqual(digest, wire.text(wire.fields(listed[container.id])[4][0], 1))
        with self.exporter(self.containerd.socket) as exporter:
            info = self.info(self.shown(exporter, container.id), container.id)
            self.assertEqual((IMAGE, "ml", "train-0", "worker"),
                             tuple(info[name] for name in ("image", "namespace", "pod", "container")))

    def test_a_static_pod_with_a_uid_of_its_own_is_a_pod(self):
        pod = self.containerd.run_pod("kube-system", "etcd-node-a", ["etcd"], uid="my-own-etcd")
        with self.exporter(self.containerd.socket) as exporter:
            page = self.shown(exporter, pod.containers[0].id, pod.sandbox_id)
            for ident, container in ((pod.containers[0].id, "etcd"), (pod.sandbox_id, "POD")):
                labels = self.labels(page, ident)
                self.assertEqual(("pod", "kube-system", "etcd-node-a", container),
                                 tuple(labels[name] for name in ("kind", "namespace", "pod", "container")))
                self.assertEqual("my-own-etcd", self.info(page, ident)["pod_uid"])

    def test_a_container_that_containerd_does_not_know_has_the_pod_of_its_sandbox(self):
        pod = self.containerd.run_pod("ml", "train-1", [])
        ident, group = "f" * 64, f"/kubepods/burstable/pod{pod.uid}/{'f' * 64}"
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with cgroups.making(group):
            self.containerd.stage.own(group)
            cgroups.enter(group, process.pid)
        with self.exporter(self.containerd.socket) as exporter:
            labels = self.labels(self.shown(exporter, ident), ident)
            self.assertEqual(("pod", "ml", "train-1", ""),
                             tuple(labels[name] for name in ("kind", "namespace", "pod", "container")))


class Mounts(CriTestCase):
    """What the pod of kubernetes/daemonset.yaml could do to its node. containerd 1.6 knows no recursiveReadOnly."""

    # Wherever something is mounted, right below, and in the roots of containers. What was made is removed again.
    TRY_TO_WRITE = """
        try() { /bin/busybox mkdir "$1/wattribute-test" && echo "$1" && /bin/busybox rmdir "$1/wattribute-test"; }
        {
            while read -r _ _ _ _ point _; do
                case $point in /host/*) for directory in "$point" "$point"/*; do try "$directory"; done; esac
            done < /proc/self/mountinfo
            for root in /host/run/containerd/state/*/k8s.io/*/rootfs; do try "$root"; done
        } 2> /dev/null
        true"""

    def mount_as_the_kubelet(self, found):
        """(path of the host, path in the container): a subPath is bound by itself first, and not recursively."""
        stage = self.containerd.stage
        for mount in manifests.mounts(found):
            source = os.path.join(mount.path, mount.sub_path).rstrip("/")
            if source == "/run/containerd":
                source = stage.directory
            elif not source.startswith("/sys/"):
                stage.run("mkdir", "-p", source)
            elif not os.path.isdir(source):
                source = source.split(",")[0]  # not every node has cpu and cpuacct in one hierarchy
            if mount.sub_path:
                target = stage.run("mktemp", "--directory", stage.path("subpath-XXXXXX"))
                stage.run("mount", "--bind", source, target)
                source = target
            yield source, mount.inside

    def written(self, mounts):
        """Where the pod could make a directory."""
        container, = manifests.daemonset()["spec"]["template"]["spec"]["containers"]
        pod = self.containerd.run_pod("gpu-monitoring", "wattribute", ["wattribute"], mounts=mounts,
                                      capabilities=container["securityContext"]["capabilities"])
        status, output = self.containerd.exec(pod.containers[0], "/bin/sh", "-c", self.TRY_TO_WRITE)
        self.assertEqual(0, status, output)
        self.containerd.remove_pod(pod)
        return output.split()

    def test_nothing_can_be_written_through_them(self):
        self.containerd.run_pod("ml", "victim", ["main"])
        is_v2 = os.path.exists(f"{cgroups.ROOT}/cgroup.controllers")
        for patches in [()] if is_v2 else [(), ("components/cgroup-v1/patch.yaml",)]:
            mounts = list(self.mount_as_the_kubelet(manifests.daemonset(*patches)))
            self.assertIn("/host/run/containerd", [inside for _, inside in mounts])
            self.assertEqual([], self.written(mounts), patches)

    def test_mounts_with_others_below_them_would_let_a_tenants_root_and_cgroups_be_written(self):
        """So that the test above proves something."""
        victim = self.containerd.run_pod("ml", "victim", ["main"]).containers[0]
        written = self.written([(self.containerd.stage.directory, "/host/run/containerd"), ("/sys", "/host/sys")])
        self.assertTrue([path for path in written if path.startswith("/host/sys/fs/cgroup")], written)
        self.assertTrue([path for path in written if victim.id in path], written)


if __name__ == "__main__":
    harness.main()
