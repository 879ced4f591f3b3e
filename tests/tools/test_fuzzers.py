"""tools/check-fuzzers fails when a parser has no fuzzer or a fuzzer no corpus, and only then."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Fuzzers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "src", self.root / "src")
        shutil.copytree(ROOT / "fuzz", self.root / "fuzz")

    def problems(self):
        result = subprocess.run([sys.executable, ROOT / "tools/check-fuzzers", self.root], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1 if result.stdout else 0, result.stderr)
        return result.stdout

    def test_the_tree_is_in_order(self):
        self.assertEqual(self.problems(), "")

    def test_a_parser_needs_a_fuzzer(self):
        (self.root / "src/host/new.h").write_text("int new_parse_file(struct span text);\n")
        self.assertEqual(self.problems(), "src/host/new.h:1: no fuzzer calls new_parse_file\n")

    def test_a_detour_is_one(self):
        path = self.root / "fuzz/fuzz_poll.c"
        path.write_text(path.read_text().replace("poll_fetch", "poll_other"))
        self.assertIn("fuzz_poll.c does not use poll_fetch", self.problems())

    def test_a_fuzzer_is_built_and_has_a_corpus(self):
        (self.root / "fuzz/fuzz_new.c").write_text("")
        self.assertEqual(self.problems(), "fuzz/meson.build: fuzz_new.c is not built, or not there\n")

    def test_a_corpus_has_a_fuzzer(self):
        (self.root / "fuzz/corpus/new").mkdir()
        self.assertEqual(self.problems(),
                         "fuzz/corpus: new has a corpus without a fuzzer, or a fuzzer without a corpus\n")


if __name__ == "__main__":
    unittest.main()
