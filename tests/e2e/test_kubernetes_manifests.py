"""The manifests: valid by the schemas of Kubernetes, with flags that the program knows, and modest."""
import os
import re
import subprocess

import harness
import manifests
from harness import SOURCE_ROOT, TestCase
from servers import require
from servers.unit import Unit

API = "components/api/api.yaml"
OPENSHIFT = "components/openshift/openshift.yaml"
SERVICE_MONITOR = "components/servicemonitor/servicemonitor.yaml"
VERSIONS = ("1.31", "1.33", "1.37")
# Their kinds are not Kubernetes' own, so that its schemas do not know them.
FOREIGN = {SERVICE_MONITOR: {"ServiceMonitor"}, OPENSHIFT: {"SecurityContextConstraints"}}
INFO = "wattribute_workload_info"
CAPABILITIES = {"drop": ["ALL"], "add": ["SETUID", "SETGID", "KILL"]}
SERVER_HEALED_S = 25  # four periods of CHILD_PING_US, with some slack
PAGE_S = 2  # how long a page is waited for
PATCHES = tuple(f"components/{name}/patch.yaml" for name in ("amd", "api", "cgroup-v1"))
STATE = "/var/lib/wattribute"


class Manifests(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.yaml = require.module("yaml")
        cls.documents = manifests.documents()
        cls.pod = manifests.daemonset()["spec"]["template"]["spec"]
        cls.container, = cls.pod["containers"]

    def validate(self, name, documents):
        validate = require.cached("kubernetes/bin/kubernetes-validate")
        path = self.write(os.path.basename(name), self.yaml.safe_dump_all(documents).encode())
        for version in VERSIONS if documents else ():
            done = subprocess.run([validate, "--strict", "-k", version, path], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(0, done.returncode, f"{name}, {version}: {done.stdout}{done.stderr}")
            self.assertEqual(len(documents), (done.stdout + done.stderr).count(" passed "), name)

    def test_they_are_valid_by_the_schemas_of_kubernetes(self):
        for name, documents in self.documents.items():
            if name not in PATCHES:
                self.validate(name, [each for each in documents if each["kind"] not in FOREIGN.get(name, ())])

    def test_the_daemonset_is_valid_with_each_patch_and_with_all(self):
        for patches in (*((patch,) for patch in PATCHES), PATCHES):
            found = manifests.daemonset(*patches)
            self.validate("patched.yaml", [found])
            self.assert_mounts(found)

    def test_the_validator_finds_a_mistake(self):
        validate = require.cached("kubernetes/bin/kubernetes-validate")
        daemonset = manifests.find("daemonset.yaml", "DaemonSet")
        broken = {**daemonset, "spec": {**daemonset["spec"], "hostPid": True}}
        path = self.write("broken.yaml", self.yaml.safe_dump(broken).encode())
        done = subprocess.run([validate, "--strict", path], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertNotEqual(0, done.returncode)

    def test_the_program_knows_the_flags(self):
        verb, *flags = self.container["args"]
        self.assertEqual("serve", verb)
        # A file that does not exist stops the start after the flags before it were understood.
        done = harness.run(verb, *flags, "--config.file=/nowhere")
        self.assertIn(b"/nowhere", done.stderr)
        self.assertNotIn(b"unknown", done.stderr)
        known = harness.run("serve", "--help").stdout.decode()
        for flag in flags:
            self.assertIn(flag.split("=")[0] + "=", known)

    def assert_mounts(self, found):
        pod = found["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume["hostPath"] for volume in pod["volumes"]}
        mounts = pod["containers"][0]["volumeMounts"]
        for mount in mounts:
            volume = volumes[mount["name"]]
            self.assertIn(volume["type"], ("Directory", "DirectoryOrCreate"))
            if mount["name"] == "state":
                self.assertEqual((STATE, STATE), (volume["path"], mount["mountPath"]))
                self.assertIn({"name": "STATE_DIRECTORY", "value": STATE}, pod["containers"][0]["env"])
                continue
            self.assertTrue(mount["readOnly"], mount)
            # Where the program looks, below its --path.rootfs and --path.sysfs.
            path = os.path.join(volume["path"], mount.get("subPath", "")).rstrip("/")
            self.assertNotIn(".sock", path)
            self.assertEqual("/host" + path, mount["mountPath"])
        self.assertEqual(set(volumes), {mount["name"] for mount in mounts})

    def test_directories_are_mounted_and_only_to_be_read(self):
        self.assert_mounts(manifests.daemonset())

    def test_the_label_node_is_the_nodes_name(self):
        node, = [each for each in self.container["env"] if each["name"] == "NODE_NAME"]
        self.assertEqual({"fieldRef": {"fieldPath": "spec.nodeName"}}, node["valueFrom"])
        with Unit(), harness.Exporter(env={"NODE_NAME": "gpu-node-7"}) as exporter:
            page = exporter.wait_for_page("a workload is shown", lambda page: page.values(INFO), 40)
            self.assertEqual({"gpu-node-7"}, {labels["node"] for labels, _ in page.values(INFO)})

    def test_the_api_is_asked_with_all_that_it_needs(self):
        pod = manifests.daemonset("components/api/patch.yaml")["spec"]["template"]["spec"]
        container, = pod["containers"]
        self.assertEqual([*self.container["args"], "--kubernetes.api"], container["args"])
        self.assertIs(True, pod["automountServiceAccountToken"])
        self.assertEqual(CAPABILITIES, container["securityContext"]["capabilities"])
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])  # the rest stays
        self.assertIn("NODE_NAME", [each["name"] for each in container["env"]])
        self.assertEqual([], [mount for mount in container["volumeMounts"] if "/run" in mount["mountPath"]])
        account = manifests.find(API, "ServiceAccount")["metadata"]
        role = manifests.find(API, "ClusterRole")
        binding = manifests.find(API, "ClusterRoleBinding")
        self.assertEqual(pod["serviceAccountName"], account["name"])
        self.assertEqual([{"kind": "ServiceAccount", **account}], binding["subjects"])
        self.assertEqual(role["metadata"]["name"], binding["roleRef"]["name"])
        self.assertEqual([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}], role["rules"])

    def test_the_docs_set_the_image_once_and_by_a_line_that_does_it(self):
        for path in ("README.md", "docs/kubernetes.md", "docs/openshift-deployment.md"):
            with open(os.path.join(SOURCE_ROOT, path)) as file:
                text = file.read().replace(r"\|", "|")  # in a table
            self.assertNotIn("set image", text)
            self.assertNotRegex(text, "apply -f kubernetes/daemonset.yaml")  # whose image is nowhere
            script, = set(re.findall(r"sed '([^']*)' kubernetes/daemonset.yaml", text))
            done = subprocess.run(["sed", script, os.path.join(SOURCE_ROOT, "kubernetes/daemonset.yaml")],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
            found, = [each for each in self.yaml.safe_load_all(done.stdout) if each["kind"] == "DaemonSet"]
            container, = found["spec"]["template"]["spec"]["containers"]
            self.assertEqual("REGISTRY/" + self.container["image"], container["image"])

    def test_the_kubelet_restarts_a_collector_that_hangs_but_leaves_a_server_to_the_collector(self):
        """What they answer is in test_liveness.py."""
        liveness, readiness = (self.container[f"{name}Probe"] for name in ("liveness", "readiness"))
        self.assertEqual(({"path": "/-/healthy", "port": "metrics"}, {"path": "/-/ready", "port": "metrics"}),
                         (liveness["httpGet"], readiness["httpGet"]))
        shortest = liveness["periodSeconds"] * (liveness["failureThreshold"] - 1)
        self.assertGreater(shortest, SERVER_HEALED_S)
        for probe in (liveness, readiness):
            self.assertGreater(probe["timeoutSeconds"], PAGE_S)

    def test_it_has_no_privilege_but_root_and_the_nodes_processes(self):
        security = self.container["securityContext"]
        self.assertEqual(CAPABILITIES, security["capabilities"])
        self.assertFalse(security["privileged"] or security["allowPrivilegeEscalation"])
        self.assertTrue(security["readOnlyRootFilesystem"])
        self.assertIs(True, self.pod["hostPID"])
        self.assertIs(False, self.pod["automountServiceAccountToken"])
        self.assertFalse({"hostNetwork", "hostIPC", "serviceAccountName"} & set(self.pod))

    def test_the_service_leads_to_the_pods(self):
        service = manifests.find("daemonset.yaml", "Service")["spec"]
        template = manifests.find("daemonset.yaml", "DaemonSet")["spec"]["template"]
        self.assertLessEqual(service["selector"].items(), template["metadata"]["labels"].items())
        self.assertEqual([{"name": "metrics", "containerPort": 9400}], self.container["ports"])
        self.assertEqual([{"name": "metrics", "port": 9400, "targetPort": "metrics"}], service["ports"])

    def test_the_monitor_keeps_the_labels_of_who_used_the_joules(self):
        endpoint, = manifests.find(SERVICE_MONITOR, "ServiceMonitor")["spec"]["endpoints"]
        self.assertEqual(("metrics", True), (endpoint["port"], endpoint["honorLabels"]))

    def test_what_openshift_allows_is_what_the_pod_asks_for(self):
        allowed = manifests.find(OPENSHIFT, "SecurityContextConstraints")
        security = self.container["securityContext"]
        self.assertEqual(self.pod["hostPID"], allowed["allowHostPID"])
        self.assertEqual(security["capabilities"]["drop"], allowed["requiredDropCapabilities"])
        self.assertEqual(security["capabilities"]["add"], allowed["allowedCapabilities"])
        self.assertEqual({kind for volume in self.pod["volumes"] for kind in set(volume) - {"name"}},
                         set(allowed["volumes"]))
        for name, value in allowed.items():
            if re.match(r"allow(Priv|HostNet|HostPort|HostIPC)", name):
                self.assertIs(False, value, name)

    def test_the_image_is_of_this_version(self):
        version = harness.run("--version").stdout.decode().split()[1]
        self.assertEqual(f"wattribute:{version}", self.container["image"])


if __name__ == "__main__":
    harness.main()
