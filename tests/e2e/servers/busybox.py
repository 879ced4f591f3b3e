"""The image of every container: busybox and nothing else."""
import gzip
import hashlib
import io
import json
import os
import tarfile

from servers import require

APPLETS = ("sh", "sleep", "true", "cat")
# Longer than any test; the server kills it.
SLEEP = ("/bin/sleep", "600")


def root_tar():
    """A root file system, for the `import` of Docker and Podman."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            tar.addfile(entry(name, type=tarfile.DIRTYPE))
        with open(require.command("busybox"), "rb") as file:
            tar.addfile(entry("bin/busybox", size=os.fstat(file.fileno()).st_size), file)
        for name in APPLETS:
            tar.addfile(entry(f"bin/{name}", type=tarfile.SYMTYPE, linkname="busybox"))
    return target.getvalue()


def entry(name, **attributes):
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    for key, value in attributes.items():
        setattr(info, key, value)
    return info


def oci_tar(reference):
    """An image of one layer under this name, for containerd."""
    layer = root_tar()
    packed = gzip.compress(layer, 1, mtime=0)
    config = as_json({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": list(SLEEP)},
                      "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}})
    manifest = as_json({
        "schemaVersion": 2,
        "config": descriptor("config.v1+json", config),
        "layers": [descriptor("layer.v1.tar+gzip", packed)]})
    index = as_json({"schemaVersion": 2, "manifests": [
        {**descriptor("manifest.v1+json", manifest),
         "annotations": {"io.containerd.image.name": reference}}]})
    files = {"oci-layout": as_json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    for blob in (packed, config, manifest):
        files["blobs/" + digest(blob).replace(":", "/")] = blob
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, data in files.items():
            tar.addfile(entry(name, size=len(data)), io.BytesIO(data))
    return target.getvalue()


def descriptor(kind, blob):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(blob),
            "size": len(blob)}


def digest(blob):
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def as_json(value):
    return json.dumps(value).encode()
