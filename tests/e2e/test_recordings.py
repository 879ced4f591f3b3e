"""Recordings of a real H200 with known truth: who pays, and how sure the ledger says it is."""
import gzip
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

from harness import SOURCE_ROOT, TestCase, binary, main

sys.path.insert(0, os.path.join(SOURCE_ROOT, "bench"))
import attribution_score
import day_score

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


class Day:
    """A day of real programs. Its N records carry keys of programs, by the arguments that the truth tells."""

    def __init__(self, name):
        self.trace = RECORDINGS / f"days/h200-day-{name}.trace.gz"
        self.phases = json.loads(day_score.truth_path(self.trace).read_text())["phases"]
        self.solos = [p["processes"][0]["pid"] for p in self.phases if len(p["processes"]) == 1]
        with gzip.open(self.trace, "rt") as lines:
            self.lines = list(lines)

    def keys(self):
        """By pid, the fields of an N record."""
        records = (re.fullmatch(r"\d+ N 0 (\d+) .*?( x=\d+ c=\d+)\n", line) for line in self.lines)
        return {int(record[1]): record[2] for record in records if record}

    def score(self, keys, after=()):
        """The rows and the bookings, with other keys."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / self.trace.name
            with gzip.open(trace, "wt", compresslevel=1) as out:
                for line in self.lines:
                    words = line.split(" ", 4)
                    if words[1] == "N":
                        line = re.sub(r" x=\d+ c=\d+", "", line).rstrip("\n") + keys.get(int(words[3]), "") + "\n"
                    out.write(line)
            day_score.truth_path(trace).write_text(day_score.truth_path(self.trace).read_text())
            return day_score.score_day(binary(), trace, after=after)

    def remembered(self):
        return self.score(self.keys())

    def mistaken(self, rotate):
        """Each program's memory is of another one."""
        keys = self.keys()
        solos = [keys[pid] for pid in self.solos]
        rotated = {pid: solos[(i + rotate) % len(solos)] for i, pid in enumerate(self.solos)}
        return self.score({**keys, **rotated})

    def after(self, other):
        """Programs are known from another day alone."""
        return self.score({pid: key for pid, key in self.keys().items() if pid not in self.solos}, [other.trace])


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

    def test_nobody_who_was_never_alone_is_very_sure_and_half_sure_ones_are_right(self):
        right = []
        for recording in TIME_SLICED:
            ledger = recording.ledger("intensity")
            booked = attribution_score.booked_joules(ledger)
            for process in ledger["processes"]:
                true = recording.truth.joules.get(process["pid"], 0)
                if true <= 0:
                    continue
                with self.subTest(recording.name, pid=process["pid"]):
                    self.assertLess(process["confidence"], 0.9)
                if process["confidence"] > 0.5:
                    right.append(abs(booked[process["pid"]] / true - 1) <= 0.15)
        self.assertGreater(len(right), 0)
        self.assertGreaterEqual(sum(right) / len(right), 0.9)

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


class Days(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.days = {name: Day(name) for name in ("1", "3", "choose", "check")}
        scores = [day.remembered() for day in cls.days.values()]
        cls.rows = [row for rows, _ in scores for row in rows]
        cls.bookings = [booking for _, bookings in scores for booking in bookings if booking.true >= 50]

    def test_programs_that_ran_before_are_known(self):
        whole = [row.whole for row in self.rows if row.day in ("h200-day-1", "h200-day-3")]
        self.assertEqual(len(whole), 12)
        self.assertLessEqual(statistics.median(whole), 2)
        self.assertLessEqual(max(whole), 5)

    def test_on_other_days_too(self):
        whole = [row.whole for row in self.rows if row.day not in ("h200-day-1", "h200-day-3")]
        self.assertLessEqual(statistics.median(whole), 3)
        self.assertLessEqual(max(whole), 8)

    def test_on_the_day_that_nothing_was_tuned_on(self):
        rows, bookings = Day("final").remembered()
        self.assertLessEqual(statistics.median(row.whole for row in rows), 4)
        self.assertLessEqual(max(row.whole for row in rows), 8)
        for booking in bookings:
            if booking.confidence > 0.8:
                self.assertLessEqual(abs(day_score.joules_off(booking)), 10, booking)

    def test_programs_without_a_key_are_never_much_worse_off_than_by_time_share(self):
        for name in ("1", "3"):  # every process is called python3.12
            for row in self.days[name].score({})[0]:
                allowed = 5 if row.timeshare < 1 else row.timeshare + 2
                with self.subTest(row.phase):
                    self.assertLessEqual(row.whole, allowed)
                    self.assertLessEqual(row.fresh, allowed)

    def test_programs_are_known_from_another_day(self):
        rows, _ = self.days["3"].after(self.days["1"])
        self.assertLessEqual(statistics.median(row.whole for row in rows), 4)

    def test_wrong_memories_are_found_out(self):
        for name, day in self.days.items():
            for rotate in (1, 2, 3):
                rows, bookings = day.mistaken(rotate)
                with self.subTest(name, rotate=rotate):
                    self.assertLessEqual(statistics.median(row.whole for row in rows),
                                         statistics.median(row.timeshare for row in rows) + 2)
                    self.assertLessEqual(max(row.whole for row in rows), 15)
                    for booking in bookings:
                        if booking.confidence > 0.8 and booking.true >= 50:
                            self.assertLessEqual(abs(day_score.joules_off(booking)), 10, booking)

    def test_who_is_confident_is_right(self):
        sure = [abs(day_score.joules_off(b)) for b in self.bookings if b.confidence > 0.8]
        half_sure = [abs(day_score.joules_off(b)) for b in self.bookings if b.confidence > 0.5]
        self.assertGreaterEqual(len(sure), 1)
        self.assertLessEqual(max(sure), 10)
        self.assertGreaterEqual(len(half_sure), 20)
        self.assertGreaterEqual(sum(off <= 15 for off in half_sure) / len(half_sure), 0.9)

    def test_nine_of_ten_are_within_their_uncertainty_and_it_is_not_wider_than_it_must_be(self):
        off = [abs(b.booked - b.true) for b in self.bookings]
        uncertainty = [b.uncertainty for b in self.bookings]
        self.assertGreaterEqual(sum(o <= u for o, u in zip(off, uncertainty)) / len(off), 0.9)
        self.assertLessEqual(statistics.median(uncertainty), 3 * statistics.median(off))


class MpsDays(TestCase):
    """Programs are alone first, and clients of MPS then. What is booked beside the truth is the equal split."""

    @classmethod
    def setUpClass(cls):
        cls.days = {name: Day(name) for name in ("mps-4", "mps-choose")}

    def test_clients_whose_programs_ran_alone_are_unmixed(self):
        for day in self.days.values():
            rows, bookings = day.remembered()
            with self.subTest(rows[0].day):
                self.assertLessEqual(statistics.median(row.whole for row in rows), 4)
                self.assertLessEqual(max(row.whole for row in rows), 7)
                for booking in bookings:
                    if booking.confidence > 0.5:
                        self.assertLessEqual(abs(day_score.joules_off(booking)), 15, booking)

    def test_on_the_days_that_nothing_was_tuned_on(self):
        for name, phases in (("mps-final", 6), ("mps-later", 5)):
            rows, bookings = Day(name).remembered()
            with self.subTest(name):
                self.assertEqual(len(rows), phases)
                self.assertLessEqual(statistics.median(row.whole for row in rows), 2)
                self.assertLessEqual(max(row.whole for row in rows), 4)
                within = [abs(b.booked - b.fair) <= b.uncertainty for b in bookings if b.true >= 50]
                self.assertGreaterEqual(sum(within) / len(within), 0.9)

    def test_clients_of_unknown_programs_are_no_worse_off_than_by_an_equal_split(self):
        within = []
        for day in self.days.values():
            rows, bookings = day.score({})
            for row in rows:
                with self.subTest(row.day, phase=row.phase):
                    self.assertLessEqual(row.whole, row.timeshare + 1)
                    self.assertLessEqual(row.fresh, row.timeshare + 1)
            within += [abs(b.booked - b.fair) <= b.uncertainty for b in bookings if b.true >= 50]
        self.assertGreaterEqual(sum(within) / len(within), 0.8)

    def test_beside_an_unknown_process_known_clients_are_told_apart_and_nobody_is_sure(self):
        for name, beside in (("mps-choose", "simulate_flow-medium"), ("mps-later", "price_options-large")):
            day = Day(name)
            [phase] = [phase for phase in day.phases if phase["phase"].endswith("-beside")]
            [stranger] = [p["pid"] for p in phase["processes"] if p["name"] == beside]
            rows, bookings = day.score({pid: key for pid, key in day.keys().items() if pid != stranger})
            with self.subTest(name):
                [row] = [row for row in rows if row.phase == phase["phase"]]
                self.assertLessEqual(row.whole, row.timeshare / 2)
                for booking in bookings:
                    if booking.phase == phase["phase"]:
                        self.assertLessEqual(abs(booking.booked - booking.fair), booking.uncertainty, booking)
                        self.assertLess(booking.confidence, 0.2)

    def test_wrong_memories_make_nobody_sure(self):
        for day in self.days.values():
            for rotate in (1, 2, 3):
                rows, bookings = day.mistaken(rotate)
                with self.subTest(rows[0].day, rotate=rotate):
                    self.assertLessEqual(max(booking.confidence for booking in bookings), 0.5)
                    harmed = [row.phase for row in rows if row.whole > row.timeshare + 2]
                    self.assertLessEqual(len(harmed), 2, harmed)


if __name__ == "__main__":
    main()
