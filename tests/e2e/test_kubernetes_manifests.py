"""The manifests: valid by the schemas of Kubernetes, with flags that the program knows, and modest."""
import glob
import os
import re
import subprocess

import harness
from harness import SOURCE_ROOT, TestCase
from servers import require

DIRECTORY = os.path.join(SOURCE_ROOT, "kubernetes")
VERSIONS = ("1.31", "1.33", "1.37")
# Their kinds are not Kubernetes' own, so that its schemas do not know them.
FOREIGN = {"servicemonitor.yaml": {"ServiceMonitor"}, "openshift.yaml": {"SecurityContextConstraints"}}


class Manifests(TestCase):
    @classmethod
    def setUpClass(cls):
        yaml = require.module("yaml")
        cls.documents = {}
        for path in sorted(glob.glob(os.path.join(DIRECTORY, "*.yaml"))):
            with open(path) as file:
                cls.documents[os.path.basename(path)] = list(yaml.safe_load_all(file))
        cls.yaml = yaml
        daemonset = cls.find("daemonset.yaml", "DaemonSet")
        cls.pod = daemonset["spec"]["template"]["spec"]
        cls.container, = cls.pod["containers"]

    @classmethod
    def find(cls, file, kind):
        found, = [each for each in cls.documents[file] if each["kind"] == kind]
        return found

    def test_they_are_valid_by_the_schemas_of_kubernetes(self):
        validate = require.cached("kubernetes/bin/kubernetes-validate")
        for name, documents in self.documents.items():
            own = [each for each in documents if each["kind"] not in FOREIGN.get(name, ())]
            path = self.write(name, self.yaml.safe_dump_all(own).encode())
            for version in VERSIONS if own else ():
                done = subprocess.run([validate, "--strict", "-k", version, path], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(0, done.returncode, f"{name}, {version}: {done.stdout}{done.stderr}")
                self.assertEqual(len(own), (done.stdout + done.stderr).count(" passed "), name)

    def test_the_validator_finds_a_mistake(self):
        validate = require.cached("kubernetes/bin/kubernetes-validate")
        daemonset = self.find("daemonset.yaml", "DaemonSet")
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

    def test_directories_are_mounted_and_only_to_be_read(self):
        volumes = {volume["name"]: volume["hostPath"] for volume in self.pod["volumes"]}
        for mount in self.container["volumeMounts"]:
            self.assertTrue(mount["readOnly"], mount)
            self.assertNotIn(".sock", volumes[mount["name"]]["path"])
            self.assertIn(volumes[mount["name"]]["type"], ("Directory", "DirectoryOrCreate"))
            # Where the program looks, below its --path.rootfs and --path.sysfs.
            self.assertEqual("/host" + volumes[mount["name"]]["path"], mount["mountPath"])
        self.assertEqual(set(volumes), {mount["name"] for mount in self.container["volumeMounts"]})

    def test_it_has_no_privilege_but_root_and_the_nodes_processes(self):
        security = self.container["securityContext"]
        self.assertEqual({"drop": ["ALL"]}, security["capabilities"])
        self.assertFalse(security["privileged"] or security["allowPrivilegeEscalation"])
        self.assertTrue(security["readOnlyRootFilesystem"])
        self.assertIs(True, self.pod["hostPID"])
        self.assertIs(False, self.pod["automountServiceAccountToken"])
        self.assertFalse({"hostNetwork", "hostIPC", "serviceAccountName"} & set(self.pod))

    def test_the_service_leads_to_the_pods(self):
        service = self.find("daemonset.yaml", "Service")["spec"]
        template = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]
        self.assertLessEqual(service["selector"].items(), template["metadata"]["labels"].items())
        self.assertEqual([{"name": "metrics", "containerPort": 9400}], self.container["ports"])
        self.assertEqual([{"name": "metrics", "port": 9400, "targetPort": "metrics"}], service["ports"])

    def test_the_monitor_keeps_the_labels_of_who_used_the_joules(self):
        endpoint, = self.find("servicemonitor.yaml", "ServiceMonitor")["spec"]["endpoints"]
        self.assertEqual(("metrics", True), (endpoint["port"], endpoint["honorLabels"]))

    def test_what_openshift_allows_is_what_the_pod_asks_for(self):
        allowed = self.find("openshift.yaml", "SecurityContextConstraints")
        security = self.container["securityContext"]
        self.assertEqual(self.pod["hostPID"], allowed["allowHostPID"])
        self.assertEqual(security["capabilities"]["drop"], allowed["requiredDropCapabilities"])
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
