"""How much of the active energy does a ledger book to the wrong process? Compares `replay` with a known truth.

TV, the misattributed part, is half the sum over processes of |booked share - true share|: 0 % is perfect. Shares,
because the power cap makes true joules uncertain by more than true shares (see bench/ground-truth).
"""
import collections
import gzip
import json
import pathlib
import statistics
import subprocess
import tempfile

METHODS = ("timeshare", "intensity")
CONFIDENT = 0.8  # a booking above this says of itself that it is nearly measured
DECIMATED = "EP"  # the kinds of record that --decimate keeps once a second
PERIOD_US = 950_000  # of them, at least: readings jitter

Truth = collections.namedtuple("Truth", "residual_percent joules")
Score = collections.namedtuple("Score", "tv confident_count confident_error")


def read_truth(text):
    """A .truth.tsv: the residual, and joules by pid."""
    residual, joules = 0.0, {}
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "# additivity_residual_percent":
            residual = float(fields[1])
        elif not line.startswith("#") and fields[0] != "name":
            joules[int(fields[2])] = float(fields[6])
    return Truth(residual, joules)


def booked_joules(ledger):
    """Active joules by pid."""
    joules = collections.Counter()
    for process in ledger["processes"]:
        joules[process["pid"]] += process["active_uj"] / 1e6
    return joules


def imbalance_uj(ledger):
    """What the GPUs' meters counted and nobody was booked."""
    meters = [m for m in ledger["meters"] if "gpu" in m]
    unowned = sum(m["idle_uj"] + m["unattributed_uj"] + m.get("gap_uj", 0) for m in meters)
    return sum(m["energy_uj"] for m in meters) - unowned - sum(p["energy_uj"] for p in ledger["processes"])


def shares(joules, pids):
    total = sum(joules.get(pid, 0) for pid in pids)
    return {pid: joules.get(pid, 0) / total for pid in pids} if total > 0 else None


def score(ledger, true_joules):
    """TV in 0 to 1, and the relative error of what was booked with confidence (None without such a booking)."""
    true, booked = shares(true_joules, true_joules), shares(booked_joules(ledger), true_joules)
    if not true or not booked:
        return Score(1.0, 0, None)
    confident = {p["pid"] for p in ledger["processes"] if p["confidence"] > CONFIDENT and true.get(p["pid"], 0) > 0}
    weight = sum(true[pid] for pid in confident)
    error = sum(abs(booked[pid] - true[pid]) for pid in confident) / weight if confident else None
    return Score(sum(abs(booked[pid] - true[pid]) for pid in true) / 2, len(confident), error)


def uncertainties(ledger, true_joules):
    """(uncertainty, error) in joules, for each process that has an uncertainty in the ledger. The error is how far the
    process is from its true share of what all of them were booked, so that a residual of the truth is no error."""
    true, booked = shares(true_joules, true_joules), booked_joules(ledger)
    expected, total = collections.Counter(), sum(booked[pid] for pid in true_joules)
    for process in ledger["processes"]:
        if "uncertainty_uj" in process and true and process["pid"] in true:
            expected[process["pid"]] += process["uncertainty_uj"] / 1e6
    return [(joules, abs(booked[pid] - true[pid] * total)) for pid, joules in expected.items()]


def uncertainty_summary(pairs):
    if not pairs:
        return "uncertainty: the ledger has none"
    expected, actual = (statistics.median(column) for column in zip(*pairs))
    ratio = f", {expected / actual:.1f} times" if actual > 0 else ""
    return (f"uncertainty: {sum(error <= joules for joules, error in pairs)} of {len(pairs)} processes within their "
            f"uncertainty; median uncertainty {expected:.1f} J, median error {actual:.1f} J{ratio}")


def decimate(lines):
    """The lines of a trace, with one reading of energy and power a second."""
    last_us = {}
    for line in lines:
        words = line.split(" ", 3)
        if len(words) > 3 and words[1] in DECIMATED and words[0].isdigit():
            key, t_us = (words[1], words[2]), int(words[0])
            if t_us - last_us.get(key, -PERIOD_US) < PERIOD_US:
                continue
            last_us[key] = t_us
        yield line


def replay_lines(program, lines, method, after=()):
    with tempfile.NamedTemporaryFile(suffix=".trace.gz") as file:
        file.write(gzip.compress("".join(lines).encode(), compresslevel=1))
        file.flush()
        return replay(program, file.name, method, after=after)


def last_ledger(text):
    """`replay` prints one for each of its traces."""
    ledger, decoder, text = None, json.JSONDecoder(), text.strip()
    while text:
        ledger, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
    return ledger


def replay(program, trace, method, is_decimated=False, after=()):
    """The ledger, or why there is none. `after`: traces that are replayed before it, for what is remembered of them."""
    if is_decimated:
        with gzip.open(trace, "rt") as lines:
            return replay_lines(program, decimate(lines), method)
    done = subprocess.run([program, "replay", f"--attribution={method}", *map(str, after), str(trace)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return None, lines[0] if lines else f"exit status {done.returncode}"
    return last_ledger(done.stdout), None


def is_shared(name):
    return "-solo-" not in name


def cell(result):
    return "refused" if result is None else f"{100 * result.tv:.1f}%"


def calibration(result):
    if result is None or result.confident_error is None:
        return "-"
    return f"{result.confident_count}: {100 * result.confident_error:.1f}%"


def summary(label, rows):
    """Medians over the traces that a method could book."""
    words = []
    for method in METHODS:
        values = [100 * row[method].tv for row in rows if row[method]]
        if values:
            words.append(f"{method} median {statistics.median(values):.1f}% worst {max(values):.1f}%")
    return f"{label}: {len(rows)} traces, TV " + ", ".join(words) if words else f"{label}: no trace"


def score_trace(program, trace, refusals, is_decimated):
    """One row, and how many of its ledgers do not balance."""
    name = trace.name[:-len(".trace.gz")]
    truth = read_truth(trace.with_name(name + ".truth.tsv").read_text())
    row, unbalanced = {"name": name, "residual": truth.residual_percent, "uncertainties": []}, 0
    for method in METHODS:
        ledger, refusal = replay(program, trace, method, is_decimated)
        row[method] = None if refusal else score(ledger, truth.joules)
        if refusal:
            refusals.setdefault(method, refusal)
            continue
        if method == "intensity":
            row["uncertainties"] = uncertainties(ledger, truth.joules)
        if imbalance_uj(ledger) != 0:
            print(f"{name}: {method} does not balance by {imbalance_uj(ledger)} uJ", flush=True)
            unbalanced += 1
    return row, unbalanced


def recordings(folder):
    return [trace for trace in sorted(pathlib.Path(folder).glob("*.trace.gz"))
            if is_shared(trace.name) and trace.with_name(trace.name[:-len(".trace.gz")] + ".truth.tsv").exists()]


def report_folder(program, folder, is_decimated):
    refusals, rows, unbalanced = {}, [], 0
    print(f"\n{folder}: a booking with confidence above {CONFIDENT} counts as confident\n"
          f"{'trace':40s} {'residual':>8s} {'timeshare':>9s} {'intensity':>9s} {'confident bookings: error':>26s}")
    for trace in recordings(folder):
        row, bad = score_trace(program, trace, refusals, is_decimated)
        rows.append(row)
        unbalanced += bad
        print(f"{row['name']:40s} {row['residual']:+7.1f}% {cell(row['timeshare']):>9s} {cell(row['intensity']):>9s} "
              f"{calibration(row['intensity'] or row['timeshare']):>26s}", flush=True)
    print(summary("varied (staggered, bursty, long)", [row for row in rows if "-stag-" in row["name"]]))
    print(summary("all without MPS", [row for row in rows if "-mps-" not in row["name"]]))
    print(summary("all", rows))
    print(uncertainty_summary([pair for row in rows for pair in row["uncertainties"]]))
    for method, why in refusals.items():
        print(f"{method}: {why}")
    is_scored = any(row["timeshare"] for row in rows)
    return 1 if unbalanced or not is_scored else 0


def report(program, folders, is_decimated=False):
    """Prints a table for each folder. 0 if something was scored and every ledger balances."""
    return max(report_folder(program, folder, is_decimated) for folder in folders)
