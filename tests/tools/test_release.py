"""What is released: one version everywhere, notes for its tag, and a source archive that is the same bytes whoever packs it."""
import datetime
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# File, and how it has the version.
VERSIONS = {
    "CHANGELOG.md": r"\A# .*?^## ([\d.]+) - ",
    "kubernetes/daemonset.yaml": r"^ +image: wattribute:(\S+)",
    "packaging/debian/changelog": r"\Awattribute \((\S+)-\d+\) ",
    "packaging/helm/wattribute/Chart.yaml": r"^(?:version|appVersion): (\S+)$",
    "packaging/rpm/wattribute.spec": r"^Version: +(\S+)$",
    "docs/install.md": r"wattribute[_-](\d+\.\d+\.\d+)",
    "docs/kubernetes.md": r"wattribute:(\d+\.\d+\.\d+)",
}


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def call(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120,
                          **options).stdout


class Release(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="wattribute-release-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.version = re.search(r"^  version: '(.*)',$", read("meson.build"), re.MULTILINE)[1]

    def dist(self, tree, name, **options):
        path = call(sys.executable, os.path.join(tree, "tools", "dist"), os.path.join(self.directory, name), **options).strip()
        with open(path, "rb") as file:
            return path, file.read()

    def test_it_has_one_version_everywhere(self):
        for path, pattern in VERSIONS.items():
            self.assertEqual({self.version}, set(re.findall(pattern, read(path), re.MULTILINE | re.DOTALL)), path)

    def test_it_has_one_date_everywhere(self):
        day = datetime.date.fromisoformat(re.search(rf"^## {re.escape(self.version)} - (\S+)$", read("CHANGELOG.md"),
                                                    re.MULTILINE)[1])
        self.assertIn(f"'{day}'", read("docs/man/meson.build"))
        self.assertRegex(read("packaging/debian/changelog"), rf"(?m)^ -- .*>  {day:%a, %d %b %Y} ")
        self.assertIn(f"* {day:%a %b %d %Y} ", read("packaging/rpm/wattribute.spec"))

    def test_the_workflow_makes_what_the_makefile_has(self):
        workflow = read(".github/workflows/ci.yml")
        targets = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)[1].split()
        made = " ".join(re.findall(r"(?:run: make|what:) ([a-z ]+)[}\n]", workflow)).split()
        self.assertLessEqual({"dist", "deb", "rpm", "image"}, set(made))
        self.assertLessEqual(set(made), set(targets))
        for tool in (".ci/run", "tools/release-notes"):
            self.assertIn(tool, workflow)
            self.assertTrue(os.access(os.path.join(ROOT, tool), os.X_OK), tool)

    def test_its_notes_are_its_section_of_the_changelog(self):
        tool = os.path.join(ROOT, "tools", "release-notes")
        notes = call(tool, self.version)
        self.assertIn("### Added", notes)
        self.assertNotRegex(notes, "(?m)^## ")
        self.assertIn(notes, read("CHANGELOG.md"))
        self.assertEqual(1, subprocess.run([tool, "9.9.9"], stderr=subprocess.DEVNULL).returncode)

    def test_the_archive_is_the_same_bytes_from_an_unpacked_archive_that_was_built_in_under_another_umask_and_zone(self):
        path, archive = self.dist(ROOT, "first")
        tree = os.path.join(self.directory, f"wattribute-{self.version}")
        with tarfile.open(path) as packed:
            self.assertEqual({f"wattribute-{self.version}"}, {member.name.split("/")[0] for member in packed})
            for member in packed:
                self.assertEqual(("root", "root", 0), (member.uname, member.gname, member.uid))
                packed.extract(member, self.directory)
        for name in ("build", "build-sanitize", "tools/__pycache__", ".cache"):
            os.mkdir(os.path.join(tree, name))
            with open(os.path.join(tree, name, "left"), "w") as file:
                file.write("not source")
        for name in ("meson.build", "tools/dist", "README.md"):
            os.chmod(os.path.join(tree, name), 0o700 if name == "tools/dist" else 0o600)
        again = self.dist(tree, "second", env={**os.environ, "TZ": "Asia/Tokyo"}, umask=0o077)[1]
        self.assertEqual(archive, again)


if __name__ == "__main__":
    unittest.main()
