"""The Helm chart and the Kustomize components, by Helm and Kustomize themselves: what they render is valid, the same, and the
manifest with what was asked for."""
import copy
import json
import os
import re
import subprocess

import harness
import manifests
import test_kubernetes_manifests
from harness import SOURCE_ROOT, TestCase
from servers import debian, require
from test_kubernetes_manifests import VERSIONS

CHART = os.path.join(SOURCE_ROOT, "packaging", "helm", "wattribute")
COMPONENTS = os.path.join(SOURCE_ROOT, "kubernetes", "components")
# Whose kinds are not Kubernetes' own.
FOREIGN = ("ServiceMonitor", "SecurityContextConstraints")
# What Helm is asked for, and the components with the same result.
SAME = {
    "default": ((), ()),
    "amd": (("--values=values-amd.yaml",), ("amd",)),
    "api": (("--set=kubernetesApi=true,runtimes=null",), ("api",)),
    "cgroup-v1": (("--set=cgroup=v1",), ("cgroup-v1",)),
    "mig": (("--values=values-mig.yaml",), ("mig",)),
    "openshift": (("--values=values-openshift.yaml",), ("openshift", "servicemonitor")),
    "servicemonitor": (("--set=serviceMonitor.enabled=true",), ("servicemonitor",)),
    "time-slicing": (("--values=values-time-slicing.yaml",), ("time-slicing",)),
    "api with time-slicing": (("--values=values-time-slicing.yaml", "--set=kubernetesApi=true,runtimes=null"),
                              ("api", "time-slicing")),
}
LABEL = "app.kubernetes.io/name"


def by_content(value):
    return json.dumps(value, sort_keys=True)


def comparable(documents):
    """By kind: without what only one of the tools writes, and lists that are sets in order."""
    found = {}
    for document in copy.deepcopy(documents):
        if document["kind"] == "Namespace":
            continue
        metadata = document["metadata"]
        metadata["labels"] = {name: value for name, value in metadata.get("labels", {}).items() if name == LABEL}
        if document["kind"] not in ("DaemonSet", "Service", "ServiceMonitor"):
            del metadata["labels"]
        spec = document.get("spec", {})
        template = spec.get("template", {})
        for labels in (spec.get("selector"), spec.get("selector", {}).get("matchLabels"),
                       template.get("metadata", {}).get("labels")):
            (labels or {}).pop("app.kubernetes.io/instance", None)
        for container in template.get("spec", {}).get("containers", ()):
            del container["imagePullPolicy"]
            for name in ("volumeMounts", "env"):
                container[name].sort(key=by_content)
            container["image"] = container["image"].rpartition("/")[2]
        template.get("spec", {}).get("volumes", []).sort(key=by_content)
        found[document["kind"]] = document
    return found


class Rendered(TestCase):
    maxDiff = None
    validate = test_kubernetes_manifests.Manifests.validate

    @classmethod
    def setUpClass(cls):
        cls.yaml = require.module("yaml")
        cls.helm = require.cached("go/bin/helm")
        cls.kustomize = require.cached("go/bin/kustomize")

    def call(self, *command, cwd=CHART, check=True):
        done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "HELM_CACHE_HOME": self.path("helm"), "HOME": self.directory})
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done if not check else done.stdout

    def rendered_by_helm(self, *options, version=VERSIONS[-1], release="wattribute"):
        text = self.call(self.helm, "template", release, CHART, "--namespace=gpu-monitoring",
                         f"--kube-version={version}", *options)
        return [each for each in self.yaml.safe_load_all(text) if each]

    def rendered_by_kustomize(self, *components):
        directory = self.path("kustomize")
        os.makedirs(directory, exist_ok=True)
        root = os.path.relpath(SOURCE_ROOT, os.path.realpath(directory))
        with open(os.path.join(directory, "kustomization.yaml"), "w") as file:
            self.yaml.safe_dump({
                "resources": [f"{root}/kubernetes"],
                "components": [f"{root}/kubernetes/components/{name}" for name in components],
                "images": [{"name": "wattribute", "newName": "registry.example/wattribute"}]}, file)
        found = list(self.yaml.safe_load_all(self.call(self.kustomize, "build", directory)))
        for document in found:
            for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
                self.assertTrue(container["image"].startswith("registry.example/wattribute:"))
                container["imagePullPolicy"] = "IfNotPresent"
        return found

    def test_helm_has_nothing_to_say_of_the_chart(self):
        for values in ("", "-amd", "-mig", "-openshift", "-time-slicing"):
            self.call(self.helm, "lint", "--strict", "--quiet", ".", f"--values=values{values}.yaml")

    def test_the_chart_renders_the_manifest(self):
        expected = [dict(each) for each in manifests.documents()["daemonset.yaml"]]
        for document in expected:
            if document["kind"] == "DaemonSet":
                document["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
        self.assertEqual(comparable(expected), comparable(self.rendered_by_helm()))

    def test_both_render_the_same_and_it_is_valid_by_the_schemas_of_kubernetes(self):
        for name, (options, components) in SAME.items():
            by_helm, by_kustomize = self.rendered_by_helm(*options), self.rendered_by_kustomize(*components)
            self.assertEqual(comparable(by_kustomize), comparable(by_helm), name)
            for documents in (by_helm, by_kustomize):
                self.validate("rendered.yaml", [each for each in documents if each["kind"] not in FOREIGN])

    def test_every_component_is_compared_and_named_in_the_manual(self):
        self.assertEqual(set(os.listdir(COMPONENTS)), {name for _, names in SAME.values() for name in names})
        with open(os.path.join(SOURCE_ROOT, "docs", "install.md")) as file:
            line = re.search(r"kubernetes/components/time-slicing +# or (.*)", file.read())[1]
        self.assertEqual(set(os.listdir(COMPONENTS)) - {"time-slicing"}, set(line.split(", ")))

    def test_the_kustomization_of_the_manual_builds(self):
        text = debian.documented("install.md", "Kustomize", "yaml")
        place = self.path("clone")
        os.mkdir(place)
        self.call("cp", "-r", os.path.join(SOURCE_ROOT, "kubernetes"), place)
        with open(os.path.join(place, "kustomization.yaml"), "w") as file:
            file.write(text)
        self.assertIn("image: REGISTRY/wattribute:", self.call(self.kustomize, "build", place))

    def test_the_commands_of_the_manual_render(self):
        install, _ = debian.documented("install.md", "Helm").splitlines()
        words = install.split()
        self.assertEqual(["helm", "install"], words[:2])
        text = self.call(self.helm, "template", *words[2:], f"--kube-version={VERSIONS[0]}", cwd=SOURCE_ROOT)
        self.assertIn('image: "REGISTRY/wattribute:', text)

    def test_options_of_openshift_are_allowed_by_its_constraint(self):
        found = {each["kind"]: each for each in self.rendered_by_helm(
            "--values=values-openshift.yaml", "--set=kubernetesApi=true,privileged=true",
            "--set=extraCapabilities={SYS_PTRACE}", "--set=extraVolumes[0].name=keys",
            "--set=extraVolumes[0].secret.secretName=keys", "--set=extraVolumeMounts[0].name=keys",
            "--set=extraVolumeMounts[0].mountPath=/etc/wattribute")}
        allowed = found["SecurityContextConstraints"]
        container, = found["DaemonSet"]["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["securityContext"]["capabilities"]["add"], allowed["allowedCapabilities"])
        self.assertTrue(allowed["allowPrivilegedContainer"] and allowed["allowPrivilegeEscalation"])
        self.assertEqual(["hostPath", "projected", "secret"], allowed["volumes"])
        self.validate("rendered.yaml", [each for kind, each in found.items() if kind not in FOREIGN])

    def test_two_releases_do_not_share_pods_or_names(self):
        one, other = (self.rendered_by_helm("--set=kubernetesApi=true", release=name) for name in ("a", "b"))
        names = [{(each["kind"], each["metadata"]["name"]) for each in documents} for documents in (one, other)]
        self.assertFalse(names[0] & names[1])
        selectors = [each["spec"]["selector"] for documents in (one, other) for each in documents
                     if each["kind"] == "DaemonSet"]
        self.assertNotEqual(*selectors)

    def test_values_that_mean_nothing_are_refused(self):
        for option in ("--set=nodeselector.a=b", "--set=cgroup=v3", "--set=service.port=0", "--set=extraArgs={serve}",
                       "--set=serviceMonitor.interval=often", "--set=image.repository="):
            done = self.call(self.helm, "template", "wattribute", CHART, f"--kube-version={VERSIONS[0]}", option, check=False)
            self.assertNotEqual(0, done.returncode, option)
            self.assertIn("values don't meet the specifications of the schema", done.stderr)


if __name__ == "__main__":
    harness.main()
