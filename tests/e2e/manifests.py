"""The manifests of kubernetes/, and what kubectl and the kubelet make of them."""
import glob
import os
from typing import NamedTuple

from harness import SOURCE_ROOT
from servers import require

DIRECTORY = os.path.join(SOURCE_ROOT, "kubernetes")
# Lists that a strategic merge patch merges, and by which key; it replaces all others.
KEYS = {"containers": "name", "volumes": "name", "volumeMounts": "mountPath", "env": "name"}


class Mount(NamedTuple):
    path: str  # on the node
    sub_path: str  # below it; "": all of it, with what is mounted there
    inside: str


def documents():
    """By file below the directory. A patch is one, too; a kustomization is none."""
    yaml = require.module("yaml")
    found = {}
    for path in sorted(glob.glob(os.path.join(DIRECTORY, "**", "*.yaml"), recursive=True)):
        if os.path.basename(path) != "kustomization.yaml":
            with open(path) as file:
                found[os.path.relpath(path, DIRECTORY)] = list(yaml.safe_load_all(file))
    return found


def find(file, kind):
    found, = [each for each in documents()[file] if each["kind"] == kind]
    return found


def patched(target, patch, key=None):
    """As `kubectl patch` with a strategic merge patch."""
    if isinstance(target, dict) and isinstance(patch, dict):
        return {**target, **{name: patched(target.get(name), value, KEYS.get(name)) for name, value in patch.items()}}
    if not key or not isinstance(target, list):
        return patch
    merged = {each[key]: each for each in target}
    for each in patch:
        if each.get("$patch") == "delete":
            del merged[each[key]]
        else:
            merged[each[key]] = patched(merged.get(each[key], {}), each)
    return list(merged.values())


def daemonset(*patches):
    """Of daemonset.yaml, with these files of patches."""
    found = find("daemonset.yaml", "DaemonSet")
    for patch in patches:
        found = patched(found, *documents()[patch])
    return found


def mounts(found):
    pod = found["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    return [Mount(volumes[mount["name"]], mount.get("subPath", ""), mount["mountPath"])
            for mount in pod["containers"][0]["volumeMounts"]]
