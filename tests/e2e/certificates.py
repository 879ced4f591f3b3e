"""Certificates for tests, made with openssl."""
import os
import subprocess

from servers import require


class Authority:
    """Signs certificates. Files are made in `directory`: NAME.crt, NAME.key, and both in NAME.pem."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = directory, name
        # Python 3.13 and others take no authority that does not say what its key is for.
        self.certificate = self.make(name, "-addext", "basicConstraints=critical,CA:TRUE",
                                     "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self.crt = os.path.join(directory, f"{name}.crt")

    def certify(self, name, *alternatives, purpose=None):
        """A certificate and its key, in one file, for hosts such as "IP:127.0.0.1" and "DNS:localhost"."""
        extensions = ["-addext", f"extendedKeyUsage={purpose}"] if purpose else []
        return self.make(name, "-CA", self.certificate, "-CAkey", self.certificate,
                         "-addext", "basicConstraints=critical,CA:FALSE",
                         "-addext", "subjectAltName=" + ",".join(alternatives), *extensions)

    def make(self, name, *arguments):
        path, *parts = (os.path.join(self.directory, f"{name}.{kind}") for kind in ("pem", "key", "crt"))
        subprocess.run(
            [require.command("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", parts[0], "-out", parts[1], *arguments],
            check=True, capture_output=True)
        with open(path, "wb") as whole:
            for part in parts:
                with open(part, "rb") as file:
                    whole.write(file.read())
        return path
