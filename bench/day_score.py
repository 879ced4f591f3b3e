"""Scores recorded days (bench/truth_day.py): who pays in each shared phase, and how sure the ledger is of it.

In per cent of the active energy that went to the wrong process, beside the plain time share:

    whole     one replay of the whole day: what was learned earlier may help, and must not harm
    fresh     a replay of the phase alone, as after a restart without any memory
"""
import collections
import gzip
import json
import pathlib
import statistics

import attribution_score

METHOD = "intensity"
SURE = 0.5  # above this confidence a booking is listed with its error
LEAD_US, GAP_US, TAIL_US = 16_000_000, 3_000_000, 4_000_000  # of a phase that is replayed alone
HARM_POINTS = 2  # worse than the time share by more is told

Row = collections.namedtuple("Row", "day phase residual timeshare whole fresh")
Booking = collections.namedtuple("Booking", "phase name confidence true booked")
Result = collections.namedtuple("Result", "rows sure uncertainties")


def truth_path(trace):
    return trace.with_name(trace.name[:-len(".trace.gz")] + ".truth.json")


def recordings(folder):
    return [trace for trace in sorted(pathlib.Path(folder).glob("*.trace.gz")) if truth_path(trace).exists()]


def lines_of_phase(lines, before, phase):
    """The phase alone, and what leads to it since the phase before; N records of all, which are written once."""
    first_us = max(phase["context_us"] - LEAD_US, before["end_us"] + GAP_US if before else 0)
    last_us = phase["end_us"] + TAIL_US
    for line in lines:
        words = line.split(" ", 2)
        if not words[0].isdigit() or words[1] == "N" or first_us <= int(words[0]) <= last_us:
            yield line


def balanced(ledger, refusal):
    if refusal:
        raise ValueError(refusal)
    if attribution_score.imbalance_uj(ledger) != 0:
        raise ValueError(f"does not balance by {attribution_score.imbalance_uj(ledger)} uJ")
    return ledger


def percent(ledger, truth):
    return 100 * attribution_score.score(ledger, truth).tv


def sure_bookings(ledger, phase):
    booked = attribution_score.booked_joules(ledger)
    confidence = {p["pid"]: p.get("confidence", 0) for p in ledger["processes"]}
    return [Booking(phase["phase"], p["name"], confidence[p["pid"]], p["active_joules"], booked[p["pid"]])
            for p in phase["processes"] if confidence.get(p["pid"], 0) > SURE and p["active_joules"] > 0]


def score_day(program, trace, is_decimated=False):
    """Raises ValueError if a replay fails or does not balance."""
    phases = json.loads(truth_path(trace).read_text())["phases"]
    with gzip.open(trace, "rt") as file:
        lines = list(attribution_score.decimate(file) if is_decimated else file)
    whole = balanced(*attribution_score.replay_lines(program, lines, METHOD))
    result = Result([], [], [])
    for before, phase in zip([None, *phases], phases):
        if len(phase["processes"]) < 2:
            continue
        truth = {p["pid"]: p["active_joules"] for p in phase["processes"]}
        fresh = balanced(*attribution_score.replay_lines(program, lines_of_phase(lines, before, phase), METHOD))
        result.rows.append(Row(trace.name[:-len(".trace.gz")], phase["phase"], phase["residual_percent"],
                               phase["timeshare_tv_percent"], percent(whole, truth), percent(fresh, truth)))
        result.sure.extend(sure_bookings(whole, phase))
        result.uncertainties.extend(attribution_score.uncertainties(whole, truth))
    return result


def worse(row):
    return [which for which in ("whole", "fresh") if getattr(row, which) > row.timeshare + HARM_POINTS]


def print_day(result):
    for row in result.rows:
        harm = f"   worse: {' '.join(worse(row))}" if worse(row) else ""
        print(f"{row.day:16s} {row.phase:16s} {row.residual:+7.1f}% {row.timeshare:8.1f}% {row.whole:7.1f}% "
              f"{row.fresh:6.1f}%{harm}")
    for b in result.sure:
        print(f"confident {b.confidence:.2f}: {b.name} in {b.phase} used {b.true:.0f} J, booked {b.booked:.0f} J "
              f"({100 * (b.booked / b.true - 1):+.0f} %)", flush=True)


def summary(rows):
    if not rows:
        return "no shared phase"
    words = []
    for which in ("timeshare", "whole", "fresh"):
        values = [getattr(row, which) for row in rows]
        words.append(f"{which} median {statistics.median(values):.1f}% worst {max(values):.1f}%")
    harmed = {which: sum(which in worse(row) for row in rows) for which in ("whole", "fresh")}
    return (f"{len(rows)} phases: {', '.join(words)}; worse than the time share by more than {HARM_POINTS} points: "
            f"whole {harmed['whole']}, fresh {harmed['fresh']}")


def report(program, folders, is_decimated=False):
    """Prints a table. 0 if something was scored and every ledger balances."""
    rows, pairs, failed = [], [], 0
    print(f"\n{'day':16s} {'phase':16s} {'residual':>8s} {'timeshare':>9s} {'whole':>8s} {'fresh':>7s}")
    for trace in (trace for folder in folders for trace in recordings(folder)):
        try:
            result = score_day(program, trace, is_decimated)
        except ValueError as error:
            print(f"{trace.name}: {error}")
            failed += 1
            continue
        print_day(result)
        rows += result.rows
        pairs += result.uncertainties
    print(summary(rows))
    print(attribution_score.uncertainty_summary(pairs))
    return 1 if failed or not rows else 0
