"""Recordings of a real H200 with known truth: who pays, and how sure the ledger says it is."""
import gzip
import os
import pathlib
import statistics
import sys
import tempfile

from harness import SOURCE_ROOT, TestCase, binary, main

sys.path.insert(0, os.path.join(SOURCE_ROOT, "bench"))
import attribution_score

RECORDINGS = pathlib.Path(SOURCE_ROOT) / "tests/recordings"


def without(kind, trace, folder):
    """A copy of the recording that lacks one kind of record."""
    copy = pathlib.Path(folder) / trace.name
    with gzip.open(trace, "rt") as lines, gzip.open(copy, "wt") as out:
        out.writelines(line for line in lines if line.split(" ", 2)[1] != kind)
    return copy


class Recording:
    def __init__(self, trace):
        self.trace = trace
        self.name = trace.name[:-len(".trace.gz")]
        self.truth = attribution_score.read_truth(trace.with_name(self.name + ".truth.tsv").read_text())

    def ledger(self, method, trace=None):
        ledger, refusal = attribution_score.replay(binary(), trace or self.trace, method)
        assert refusal is None, refusal
        return ledger

    def tv(self, method, trace=None):
        return attribution_score.score(self.ledger(method, trace), self.truth.joules).tv


ALL = [Recording(trace) for trace in sorted(RECORDINGS.glob("*.trace.gz"))]
VARIED = [r for r in ALL if "-stag-" in r.name]
TIME_SLICED = [r for r in ALL if "-mps-" not in r.name]
MPS = [r for r in ALL if "-mps-" in r.name]


class Recordings(TestCase):
    def test_there_are_recordings_of_every_kind(self):
        self.assertGreaterEqual(len(VARIED), 5)
        self.assertGreaterEqual(len(MPS), 2)
        self.assertGreaterEqual(len(TIME_SLICED), len(VARIED) + 2)

    def test_the_books_balance_to_the_microjoule(self):
        for recording in ALL:
            for method in attribution_score.METHODS:
                with self.subTest(recording.name, method=method):
                    self.assertEqual(attribution_score.imbalance_uj(recording.ledger(method)), 0)

    def test_where_shares_vary_at_most_four_percent_go_to_the_wrong_process(self):
        self.assertLessEqual(statistics.median(r.tv("intensity") for r in VARIED), 0.04)

    def test_so_it_is_at_most_six_percent_on_a_board_without_gpm(self):
        with tempfile.TemporaryDirectory() as folder:
            errors = [r.tv("intensity", without("G", r.trace, folder)) for r in VARIED]
        self.assertLessEqual(statistics.median(errors), 0.06)

    def test_it_is_never_two_points_worse_than_the_time_share(self):
        for recording in TIME_SLICED:
            with self.subTest(recording.name):
                self.assertLessEqual(recording.tv("intensity"), recording.tv("timeshare") + 0.02)

    def test_what_is_booked_with_confidence_is_right_within_five_percent(self):
        confident = 0
        for recording in TIME_SLICED:
            score = attribution_score.score(recording.ledger("intensity"), recording.truth.joules)
            confident += score.confident_count
            if score.confident_count:
                with self.subTest(recording.name):
                    self.assertLess(score.confident_error, 0.05)
        self.assertGreater(confident, 0)

    def test_where_shares_hardly_vary_it_says_that_it_does_not_know(self):
        for recording in TIME_SLICED:
            if "-co-" in recording.name:
                for process in recording.ledger("intensity")["processes"]:
                    with self.subTest(recording.name, pid=process["pid"]):
                        self.assertLess(process["confidence"], 0.5)

    def test_clients_of_mps_pay_and_the_server_does_not_and_nobody_is_sure(self):
        for recording in MPS:
            with self.subTest(recording.name):
                active = {p["pid"]: p for p in recording.ledger("intensity")["processes"] if p["active_uj"] > 0}
                self.assertEqual(set(active), set(recording.truth.joules))
                for process in active.values():
                    self.assertLess(process["confidence"], 0.2)


if __name__ == "__main__":
    main()
