"""What the compiler and the linker were told to harden is in the program. usage: test_hardening.py PROGRAM"""
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
FLAGS = {"Advanced Micro Devices X86-64": "-fcf-protection=full", "AArch64": "-mbranch-protection=standard"}


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, PROGRAM], check=True, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


class Hardening(unittest.TestCase):
    def segment(self, name):
        found = re.search(rf"^ *{name} .*$", readelf("--program-headers"), re.MULTILINE)
        self.assertIsNotNone(found, name)
        return found.group()

    def test_it_is_loaded_at_a_random_address(self):
        self.assertRegex(readelf("--file-header"), r"Type: +DYN \(Position-Independent Executable file\)")

    def test_functions_are_bound_at_the_start_and_read_only_from_then_on(self):
        dynamic = readelf("--dynamic")
        self.assertRegex(dynamic, r"\(FLAGS\) +BIND_NOW")
        self.assertRegex(dynamic, r"\(FLAGS_1\) +Flags: NOW")
        self.segment("GNU_RELRO")
        self.assertNotIn(" .got.plt ", readelf("--sections"), "with RELRO alone this part stays writable")

    def test_no_memory_is_writable_and_executable(self):
        self.assertRegex(self.segment("GNU_STACK"), r" RW +0x")
        self.assertNotIn(" RWE ", readelf("--program-headers"))

    def test_it_is_not_told_where_to_find_libraries(self):
        self.assertNotRegex(readelf("--dynamic"), r"\((RPATH|RUNPATH)\)")

    def test_every_file_is_compiled_with_the_flags_that_harden_it(self):
        machine = re.search(r"Machine: +(.*)", readelf("--file-header")).group(1).strip()
        producers = re.findall(r"DW_AT_producer +: .*?: (GNU C.*|.*clang.*)", readelf(
            "--debug-dump=info", "--dwarf-depth=1"))
        self.assertGreater(len(producers), 100, "is it built without debug information?")
        for flag in ("-fstack-protector-strong", "-fstack-clash-protection", FLAGS[machine]):
            self.assertEqual([], [line for line in producers if flag not in line], flag)

    def test_calls_that_overflow_are_checked(self):
        self.assertRegex(readelf("--dyn-syms"), r"__(v?snprintf|memcpy|read)_chk")


if __name__ == "__main__":
    unittest.main()
