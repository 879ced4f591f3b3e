"""tools/check-layers fails when any of its rules is broken, and only then."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Layers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "src", self.root / "src")

    def check(self):
        return subprocess.run([sys.executable, ROOT / "tools/check-layers", self.root], capture_output=True, text=True)

    def assert_broken(self, name, line, problem):
        """A line more in one file of the tree is the one problem that is found."""
        path = self.root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.exists() else ""
        path.write_text(f"{before}{line}\n")
        result = self.check()
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(result.stdout, f"src/{name}:{before.count(chr(10)) + 1}: {problem}\n")

    def test_the_tree_is_in_order(self):
        self.assertEqual(self.check().returncode, 0)

    def test_a_layer_includes_no_later_one(self):
        self.assert_broken("core/map.c", '#include "model/sample.h"', "core/ may not include model/sample.h")

    def test_folders_of_one_layer_do_not_include_each_other(self):
        self.assert_broken("attribution/share.c", '#include "identity/identity.h"',
                           "attribution/ may not include identity/identity.h")

    def test_every_folder_has_a_layer(self):
        self.assert_broken("cli/main.c", '#include "attic/old.h"', "attic/old.h is in no layer")

    def test_the_books_are_pure(self):
        self.assert_broken("attribution/share.c", "#include <time.h>", "attribution/ is pure and may not include time.h")
        shutil.copy(ROOT / "src/attribution/share.c", self.root / "src/attribution")
        self.assert_broken("attribution/share.c", '#include "core/clock.h"',
                           "attribution/ is pure and may not include core/clock.h")

    def test_a_library_has_one_user(self):
        self.assert_broken("core/map.c", "#include <zlib.h>", "only core/gzip.c may include zlib.h")

    def test_the_server_asks_nobody_and_the_collector_serves_nobody(self):
        self.assert_broken("server/server.c", '#include "client/http_client.h"',
                           "server/ may not include client/http_client.h")
        shutil.copy(ROOT / "src/server/server.c", self.root / "src/server")
        self.assert_broken("collector/collector.c", '#include "net/http_server.h"',
                           "collector/ may not include net/http_server.h")

    def test_a_header_in_a_sub_folder_is_included_only_from_its_top_folder(self):
        self.assert_broken("collector/collector.c", '#include "attribution/ledger/ledger.h"',
                           "attribution/ledger/ledger.h is inside of attribution/")

    def test_a_private_header_is_included_only_from_its_own_folder(self):
        private = '#include "attribution/ledger/ledger_private.h"'
        problem = "only attribution/ledger/ may include attribution/ledger/ledger_private.h"
        for name in ("attribution/gpu/gpu.c", "attribution/pipeline.c", "collector/collector.c"):
            with self.subTest(name):
                self.assert_broken(name, private, problem)
            shutil.copy(ROOT / "src" / name, self.root / "src" / name)

    def test_what_is_inside_may_be_included_from_within(self):
        with (self.root / "src/attribution/pipeline.c").open("a") as file:
            file.write('#include "attribution/gpu/idle.h"\n')
        self.assertEqual(self.check().returncode, 0)


if __name__ == "__main__":
    unittest.main()
