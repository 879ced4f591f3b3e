"""Authorities and certificates for tests, made with openssl."""
import os
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)


class Authority:
    """NAME.crt and NAME.key in the directory, and certificates that it signs."""

    def __init__(self, directory, name):
        self.directory = directory
        self.crt, self.key = self.paths(name)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", self.key,
                "-out", self.crt)

    def paths(self, name):
        return [os.path.join(self.directory, f"{name}.{kind}") for kind in ("crt", "key")]

    def issue(self, name, purpose, sans="DNS:localhost,IP:127.0.0.1"):
        """The paths of the certificate and its key."""
        crt, key = self.paths(name)
        request, extensions = key + ".csr", key + ".ext"
        with open(extensions, "w") as file:
            file.write(f"subjectAltName={sans}\nextendedKeyUsage={purpose}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self.key,
                "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", crt)
        return crt, key
