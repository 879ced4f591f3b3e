"""Scores recorded days (bench/truth_day.py): who pays in each shared phase, and how sure the ledger is of it.

In per cent of the active energy that went to the wrong process, beside the plain time share:

    whole     one replay of the whole day: what was learned earlier may help, and must not harm
    fresh     a replay of the phase alone, as after a restart without any memory

Both may come after the replay of another day: then it is known what was remembered there.

Then each process of the whole replay, with two errors. One is that of its joules, the other that of its share of what
all processes of the phase were booked: the residual of the truth is a part of the first only.
"""
import collections
import gzip
import json
import pathlib
import statistics

import attribution_score

METHOD = "intensity"
SURE, HALF_SURE = 0.8, 0.5  # levels of confidence
ALLOWED_PERCENT = 15  # nine of ten that are at least half sure are off by no more
LEAD_US, GAP_US, TAIL_US = 16_000_000, 3_000_000, 4_000_000  # of a phase that is replayed alone
HARM_POINTS = 2  # worse than the time share by more is told

Row = collections.namedtuple("Row", "day phase residual timeshare whole fresh")
# In joules; `fair` is the true share of what all were booked. Confidence and uncertainty are None where there is none.
Booking = collections.namedtuple("Booking", "day phase name true booked fair confidence uncertainty")


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


def bookings(ledger, day, phase):
    booked, rows = attribution_score.booked_joules(ledger), {p["pid"]: p for p in ledger["processes"]}
    total = sum(booked[p["pid"]] for p in phase["processes"])
    true_total = sum(p["active_joules"] for p in phase["processes"])
    for p in phase["processes"]:
        row = rows.get(p["pid"], {})
        yield Booking(day, phase["phase"], p["name"], p["active_joules"], booked[p["pid"]],
                      p["active_joules"] / true_total * total if true_total > 0 else 0.0, row.get("confidence"),
                      row["uncertainty_uj"] / 1e6 if "uncertainty_uj" in row else None)


def score_day(program, trace, is_decimated=False, after=()):
    """The rows and the bookings. Raises ValueError if a replay fails or does not balance."""
    name = trace.name[:-len(".trace.gz")]
    phases = json.loads(truth_path(trace).read_text())["phases"]
    with gzip.open(trace, "rt") as file:
        lines = list(attribution_score.decimate(file) if is_decimated else file)
    whole = balanced(*attribution_score.replay_lines(program, lines, METHOD, after))
    rows, booked = [], []
    for before, phase in zip([None, *phases], phases):
        if len(phase["processes"]) < 2:
            continue
        truth = {p["pid"]: p["active_joules"] for p in phase["processes"]}
        alone = lines_of_phase(lines, before, phase)
        fresh = balanced(*attribution_score.replay_lines(program, alone, METHOD, after))
        rows.append(Row(name, phase["phase"], phase["residual_percent"], phase["timeshare_tv_percent"],
                        percent(whole, truth), percent(fresh, truth)))
        booked += bookings(whole, name, phase)
    return rows, booked


def worse(row):
    return [which for which in ("whole", "fresh") if getattr(row, which) > row.timeshare + HARM_POINTS]


def off_percent(booked, right):
    """Nobody is off who was booked nothing and used nothing."""
    return 100 * (booked / right - 1) if right > 0 else float("inf") if booked > 0 else 0.0


def joules_off(b):
    return off_percent(b.booked, b.true)


def share_off(b):
    return off_percent(b.booked, b.fair)


def print_rows(rows):
    print(f"\n{'day':16s} {'phase':16s} {'residual':>8s} {'timeshare':>9s} {'whole':>8s} {'fresh':>7s}")
    for row in rows:
        harm = f"   worse: {' '.join(worse(row))}" if worse(row) else ""
        print(f"{row.day:16s} {row.phase:16s} {row.residual:+7.1f}% {row.timeshare:8.1f}% {row.whole:7.1f}% "
              f"{row.fresh:6.1f}%{harm}")


def print_bookings(booked):
    print(f"\n{'day':16s} {'phase':16s} {'process':22s} {'used':>8s} {'booked':>8s} {'off':>7s} {'of share':>8s} "
          f"{'confidence':>10s} {'uncertainty':>11s}")
    for b in booked:
        confidence = "-" if b.confidence is None else f"{b.confidence:.2f}"
        uncertainty = "-" if b.uncertainty is None else f"{b.uncertainty:.0f} J"
        beyond = "   beyond" if b.uncertainty is not None and abs(b.booked - b.fair) > b.uncertainty else ""
        print(f"{b.day:16s} {b.phase:16s} {b.name:22s} {b.true:6.0f} J {b.booked:6.0f} J {joules_off(b):+6.1f}% "
              f"{share_off(b):+7.1f}% {confidence:>10s} {uncertainty:>11s}{beyond}")


def confidence_summary(booked):
    sure, half = ([b for b in booked if (b.confidence or 0) > level] for level in (SURE, HALF_SURE))
    worst = [max((abs(off(b)) for b in sure), default=0) for off in (joules_off, share_off)]
    good = [sum(abs(off(b)) <= ALLOWED_PERCENT for b in half) for off in (joules_off, share_off)]
    return (f"confidence above {SURE}: {len(sure)} processes, worst {worst[0]:.1f}% off, of share {worst[1]:.1f}%; "
            f"above {HALF_SURE}: {len(half)} processes, {good[0]} within {ALLOWED_PERCENT}%, of share {good[1]}")


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


def report(program, folders, is_decimated=False, after=()):
    """Prints tables. 0 if something was scored and every ledger balances."""
    rows, booked, failed = [], [], 0
    for trace in (trace for folder in folders for trace in recordings(folder)):
        try:
            more_rows, more_booked = score_day(program, trace, is_decimated, after)
        except ValueError as error:
            print(f"{trace.name}: {error}")
            failed += 1
            continue
        rows += more_rows
        booked += more_booked
    print_rows(rows)
    print_bookings(booked)
    print("\n" + summary(rows))
    print(confidence_summary(booked))
    print(attribution_score.uncertainty_summary([(b.uncertainty, abs(b.booked - b.fair)) for b in booked
                                                 if b.uncertainty is not None]), flush=True)
    return 1 if failed or not rows else 0
