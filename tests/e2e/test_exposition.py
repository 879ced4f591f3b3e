"""The checker of metrics pages refuses each fault that it is for, and takes a good page."""
import os
import subprocess
import sys
import unittest
from decimal import Decimal

from exposition import Refused, read

TEXT = """\
# HELP node_energy_joules_total Energy, with a \\\\ and a \\n.
# TYPE node_energy_joules_total counter
node_energy_joules_total{gpu="0",name="a \\"b\\" \\\\ \\n é"} 12345678.000001
node_energy_joules_total{gpu="1",name=""} 0
# HELP node_up Up.
# TYPE node_up gauge
node_up 1
"""

OPENMETRICS = """\
# HELP node_energy_joules Energy, with a \\\\, a \\n and a \\".
# TYPE node_energy_joules counter
# UNIT node_energy_joules joules
node_energy_joules_total{gpu="0"} 12345678.000001
# HELP node_up Up.
# TYPE node_up gauge
node_up -1
# EOF
"""


def gauge(name, lines):
    return f"# HELP {name} Help.\n# TYPE {name} gauge\n{lines}\n"


class Checker(unittest.TestCase):
    def refuse(self, page, why, openmetrics=False):
        body = page if isinstance(page, bytes) else page.encode()
        with self.assertRaisesRegex(Refused, why):
            read(body, openmetrics)

    def refuse_in_both(self, page, why):
        self.refuse(page, why)
        self.refuse(page + "# EOF\n", why, openmetrics=True)

    def test_a_good_text_page_is_taken_and_read_exactly(self):
        page = read(TEXT.encode(), False)
        self.assertEqual(Decimal("12345678.000001"),
                         page.value("node_energy_joules_total", name='a "b" \\ \n é'))
        self.assertEqual(3, len(page.series))
        self.assertEqual("counter", page.families["node_energy_joules_total"].type)

    def test_a_good_openmetrics_page_is_taken_and_read_exactly(self):
        page = read(OPENMETRICS.encode(), True)
        self.assertEqual(Decimal("12345678.000001"), page.value("node_energy_joules_total"))
        self.assertEqual("joules", page.families["node_energy_joules"].unit)

    def test_a_series_that_comes_twice_is_refused(self):
        self.refuse_in_both(gauge("up", 'up{a="1",b="2"} 1\nup{b="2",a="1"} 1'), "a second sample")

    def test_a_family_in_two_pieces_is_refused(self):
        self.refuse_in_both(gauge("a", 'a{x="1"} 1') + gauge("b", "b 1") + 'a{x="2"} 1\n',
                            "not in the lines of its family")
        self.refuse_in_both(gauge("a", 'a{x="1"} 1') + gauge("b", "b 1") + gauge("a", "a 1"),
                            "not together")

    def test_a_second_type_or_help_is_refused(self):
        self.refuse_in_both("# TYPE a gauge\n# TYPE a gauge\n", "second TYPE")
        self.refuse_in_both("# HELP a x\n# HELP a x\n", "second HELP")

    def test_type_and_help_come_before_the_samples(self):
        self.refuse_in_both("# HELP a x\n# TYPE a gauge\na 1\n# HELP a x\n", "after its samples")

    def test_a_sample_without_type_or_help_is_refused(self):
        self.refuse_in_both("a 1\n", "without TYPE and HELP")
        self.refuse_in_both("# HELP a x\na 1\n", "without TYPE")
        self.refuse_in_both("# TYPE a gauge\na 1\n", "without HELP")

    def test_a_counter_without_total_is_refused(self):
        self.refuse("# HELP a x\n# TYPE a counter\na 1\n", "without _total")
        self.refuse("# HELP a x\n# TYPE a counter\na 1\n# EOF\n", "without _total", True)

    def test_in_openmetrics_the_family_of_a_counter_has_no_total(self):
        self.refuse("# HELP a_total x\n# TYPE a_total counter\na_total 1\n# EOF\n", "no _total",
                    True)

    def test_a_gauge_with_total_is_refused(self):
        self.refuse_in_both(gauge("a_total", "a_total 1"), "gauge with _total")

    def test_types_that_the_exporter_does_not_use_are_refused(self):
        self.refuse_in_both("# HELP a x\n# TYPE a histogram\n", "type histogram")

    def test_units_other_than_base_units_are_refused(self):
        for name in ("power_milliwatts", "read_ms", "size_kb", "load_percent", "clock_mhz",
                     "energy_kwh", "mass_kg", "age_second"):
            with self.subTest(name=name):
                self.refuse_in_both(gauge(name, f"{name} 1"), "not a base unit")
        self.refuse("# HELP a_ms_total x\n# TYPE a_ms_total counter\n", "not a base unit")

    def test_a_timestamp_is_refused(self):
        self.refuse_in_both(gauge("a", "a 1 1700000000000"), "timestamp")
        self.refuse_in_both(gauge("a", "a 1 1700000000.5"), "timestamp")

    def test_an_exemplar_is_refused(self):
        self.refuse(OPENMETRICS.replace(".000001", '.000001 # {x="y"} 1'), "nothing else", True)

    def test_created_is_refused(self):
        self.refuse_in_both(gauge("a_created", "a_created 1"), "_created")
        self.refuse(OPENMETRICS.replace("# HELP node_up", "node_energy_joules_created 1\n# HELP u"),
                    "_created", True)

    def test_the_labels_of_prometheus_itself_are_refused(self):
        for name in ("job", "instance", "__name__"):
            self.refuse_in_both(gauge("a", f'a{{{name}="x"}} 1'), "belongs to Prometheus")

    def test_a_label_that_comes_twice_is_refused(self):
        self.refuse_in_both(gauge("a", 'a{b="1",b="2"} 1'), "twice")

    def test_bad_escapes_are_refused(self):
        self.refuse_in_both(gauge("a", 'a{b="\\t"} 1'), "bad escape")
        self.refuse_in_both(gauge("a", 'a{b="x\\"} 1'), "bad label")
        self.refuse('# HELP a \\"x\\"\n', "bad escape")
        self.refuse_in_both("# HELP a \\t\n", "bad escape")
        self.refuse_in_both("# HELP a x\\\n", "bad escape")

    def test_a_broken_set_of_labels_is_refused(self):
        for labels in ("{}", "{b=1}", '{b="1"', '{b="1",}', '{b="1" c="2"}', '{b:c="1"}',
                       '{b="a\rb"}', '{b="\x01"}'):
            with self.subTest(labels=labels):
                self.refuse_in_both(gauge("a", f"a{labels} 1"), "label")

    def test_bytes_that_are_not_utf8_are_refused(self):
        body = TEXT.encode().replace("é".encode(), b"\xe9")
        self.refuse(body, "not UTF-8")
        self.refuse(OPENMETRICS.encode().replace(b"Up", b"\xed\xa0\x80"), "not UTF-8", True)

    def test_openmetrics_without_eof_at_its_end_is_refused(self):
        self.refuse(OPENMETRICS.replace("# EOF\n", ""), "EOF", True)
        self.refuse(OPENMETRICS + "# EOF\n", "EOF", True)
        self.refuse(OPENMETRICS + "node_up 1\n", "EOF", True)

    def test_text_with_eof_is_refused(self):
        self.refuse(TEXT + "# EOF\n", "EOF")

    def test_a_unit_that_is_not_the_end_of_the_name_is_refused(self):
        self.refuse(OPENMETRICS.replace("joules joules", "joules watts"), "UNIT watts", True)
        self.refuse(OPENMETRICS.replace("joules joules", "joules oules"), "UNIT oules", True)

    def test_a_unit_in_text_is_refused(self):
        self.refuse("# UNIT a_joules joules\n", "OpenMetrics only")

    def test_values_that_are_not_finite_decimals_are_refused(self):
        for value in ("NaN", "+Inf", "-Inf", "0x10", "1,5", "", "1_000", ".5", "1.", "１"):
            with self.subTest(value=value):
                self.refuse_in_both(gauge("a", f"a {value}"), "not a finite decimal")

    def test_exponents_are_refused_in_joules_only(self):
        self.refuse_in_both(gauge("a_joules", "a_joules 1e6"), "exponent")
        self.assertEqual(Decimal(1000000), read(gauge("a", "a 1e6").encode(), False).value("a"))

    def test_a_counter_below_zero_is_refused(self):
        self.refuse(TEXT.replace("12345678", "-1"), "below 0")

    def test_lines_that_are_nothing_known_are_refused(self):
        for line in ("", " a 1", "# a comment", "#HELP a x", "a  1", "a\t1", "a 1 ", "{a=\"b\"} 1"):
            with self.subTest(line=line):
                self.refuse_in_both("# HELP a x\n# TYPE a gauge\n" + line + "\n", "line 3")

    def test_a_last_line_without_newline_is_refused(self):
        self.refuse(TEXT[:-1], "no newline")
        self.refuse(OPENMETRICS[:-1], "no newline", True)
        self.refuse("", "no newline")

    def test_as_a_command_it_tells_good_from_bad_by_its_exit_status(self):
        command = [sys.executable, os.path.join(os.path.dirname(__file__), "exposition.py")]
        for arguments, page, status in ((["text"], TEXT, 0), (["openmetrics"], OPENMETRICS, 0),
                                        (["text"], OPENMETRICS, 1), ([], TEXT, 1)):
            with self.subTest(arguments=arguments):
                done = subprocess.run(command + arguments, input=page.encode(),
                                      capture_output=True, timeout=60)
                self.assertEqual(status, done.returncode, done)


if __name__ == "__main__":
    unittest.main()
