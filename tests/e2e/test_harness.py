"""What the end-to-end tests say about themselves: skipped is neither passed nor silent."""
import os
import subprocess
import sys
import unittest
import unittest.mock

import harness
from servers import require

HEAD = "import unittest\nimport harness\n"
SKIPPED = """
class Skipped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no such daemon")
    def test(self):
        pass
"""
ONE_SKIPPED = """
class OneSkipped(unittest.TestCase):
    def test(self):
        self.skipTest("not today")
"""
PASSED = """
class Passed(unittest.TestCase):
    def test(self):
        pass
"""
FAILED = """
class Failed(unittest.TestCase):
    def test(self):
        self.fail()
"""


class Main(harness.TestCase):
    def outcome(self, *parts):
        """Exit status and stdout of a test file."""
        path = self.write("test_it.py", "".join([HEAD, *parts, "harness.main()\n"]).encode())
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=30,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)})
        return done.returncode, done.stdout

    def test_a_file_of_which_nothing_ran_is_skipped_and_says_why(self):
        status, text = self.outcome(SKIPPED, ONE_SKIPPED)
        self.assertEqual(77, status)
        self.assertIn("skipped: setUpClass (__main__.Skipped): no such daemon\n", text)
        self.assertRegex(text, "skipped: test .*OneSkipped.*: not today\n")

    def test_a_file_of_which_something_ran_has_passed_and_names_what_was_skipped(self):
        status, text = self.outcome(SKIPPED, PASSED)
        self.assertEqual(0, status)
        self.assertIn("skipped: setUpClass (__main__.Skipped): no such daemon\n", text)

    def test_a_failure_is_a_failure_whatever_was_skipped(self):
        self.assertEqual(1, self.outcome(SKIPPED, FAILED)[0])

    def test_a_file_without_tests_fails(self):
        self.assertEqual(1, self.outcome()[0])


class Missing(unittest.TestCase):
    def test_what_is_not_installed_skips_the_test_and_names_the_remedy(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("CI", None)
            with self.assertRaisesRegex(unittest.SkipTest, "^no-such-daemon .*tools/setup servers"):
                require.command("no-such-daemon")

    def test_where_ci_is_set_it_fails(self):
        with unittest.mock.patch.dict(os.environ, CI="true"):
            with self.assertRaises(AssertionError):
                require.command("no-such-daemon")
            with self.assertRaises(AssertionError):
                require.module("no_such_module")


if __name__ == "__main__":
    harness.main()
