"""A strict reader of metrics pages: Prometheus text 0.0.4 and OpenMetrics 1.0.

It refuses what both formats forbid, what promtool overlooks (series given twice, families in
pieces, units such as _milliwatts), and what this exporter has decided never to emit (timestamps,
_created, the labels job and instance, types other than counter and gauge, blank lines).

As a command: python3 exposition.py text|openmetrics < page
"""
import re
import sys
from decimal import Decimal

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE_NAME = re.compile(NAME)
COMMENT = re.compile(rf"# (HELP|TYPE|UNIT) ({NAME}) (.+)")
LABEL = re.compile(rf'({NAME})="((?:[^"\\]|\\.)*)"')
VALUE = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

BASE_UNITS = frozenset(
    "joules watts seconds bytes ratio celsius hertz grams volts amperes meters".split())
GRID_UNIT = ["per", "kwh"]  # of emission factors and prices, as every grid operator tells them
# What people write instead. The last word of a name (before _total) must not be one of these.
OTHER_UNITS = frozenset(
    "joule millijoules microjoules nanojoules kilojoules megajoules mj uj nj kj wh kwh mwh "
    "watt milliwatts microwatts kilowatts megawatts mw uw kw "
    "second milliseconds microseconds nanoseconds minutes hours days ms us ns msec usec nsec "
    "byte kilobytes megabytes gigabytes kibibytes mebibytes gibibytes kb mb gb kib mib gib bits "
    "percent percentage pct permille fahrenheit kelvin "
    "kilohertz megahertz gigahertz khz mhz ghz hz "
    "gram kilograms milligrams kg mg tonnes millivolts mv milliamperes ma".split())


class Refused(Exception):
    """Says which line of a page is wrong, and why."""


class Family:
    def __init__(self, name):
        self.name = name
        self.help = self.type = self.unit = None
        self.series = []  # (sample name, labels as a sorted tuple of pairs, value)


class Page:
    """What a good page holds. A series is a sample name and a sorted tuple of label pairs."""

    def __init__(self):
        self.families = {}
        self.series = {}

    def values(self, name, /, **labels):
        """(labels as a dict, value) of the series of that name which have these labels."""
        wanted = set(labels.items())
        return [(dict(key[1]), value) for key, value in self.series.items()
                if key[0] == name and wanted <= set(key[1])]

    def value(self, name, /, **labels):
        found = self.values(name, **labels)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} series {name} with {labels} instead of one")
        return found[0][1]

    def sum(self, name, /, **labels):
        return sum((value for _, value in self.values(name, **labels)), Decimal(0))


def refuse_other_unit(name):
    words = name.split("_")
    if words[-1] == "total":
        words.pop()
    if words[-1] in OTHER_UNITS and words[-2:] != GRID_UNIT:
        raise Refused(f"{name}: '{words[-1]}' is not a base unit")


def unescape(text, allowed):
    def replace(match):
        if match[0] not in allowed:
            raise Refused(f"bad escape '{match[0]}'")
        return ESCAPES[match[0]]
    return re.sub(r"\\.?", replace, text)


class Reader:
    """Reads a page line by line; `family` is the one whose lines are being read."""

    def __init__(self, openmetrics):
        self.openmetrics = openmetrics
        self.page = Page()
        self.family = None

    def enter(self, name):
        if self.family and self.family.name == name:
            return
        if name in self.page.families:
            raise Refused(f"{name}: its lines are not together")
        refuse_other_unit(name)
        self.family = self.page.families[name] = Family(name)

    def comment(self, line):
        match = COMMENT.fullmatch(line)
        if not match:
            raise Refused("neither a sample nor HELP, TYPE or UNIT with a text")
        keyword, name, text = match.groups()
        self.enter(name)
        if self.family.series:
            raise Refused(f"{name}: {keyword} after its samples")
        if getattr(self.family, keyword.lower()) is not None:
            raise Refused(f"{name}: a second {keyword}")
        setattr(self.family, keyword.lower(), text)
        getattr(self, "check_" + keyword.lower())(name, text)

    def check_help(self, name, text):
        unescape(text, {"\\\\", "\\n", '\\"'} if self.openmetrics else {"\\\\", "\\n"})

    def check_type(self, name, text):
        if text not in ("counter", "gauge"):
            raise Refused(f"{name}: type {text}")
        total = name.endswith("_total")
        if text == "gauge" and total:
            raise Refused(f"{name}: a gauge with _total")
        if text == "counter" and self.openmetrics and total:
            raise Refused(f"{name}: in OpenMetrics a counter's family has no _total")
        if text == "counter" and not self.openmetrics and not total and not name.startswith("DCGM_"):  # theirs
            raise Refused(f"{name}: a counter without _total")

    def check_unit(self, name, text):
        if not self.openmetrics:
            raise Refused(f"{name}: UNIT exists in OpenMetrics only")
        if text not in BASE_UNITS or not name.endswith("_" + text):
            raise Refused(f"{name}: UNIT {text} is not a base unit at the end of the name")

    def sample(self, line):
        match = SAMPLE_NAME.match(line)
        if not match:
            raise Refused("neither a comment nor a sample")
        name, rest = match[0], line[match.end():]
        self.check_belongs(name)
        labels, rest = self.labels(rest)
        value = self.value(name, rest)
        key = (name, tuple(sorted(labels.items())))
        if key in self.page.series:
            raise Refused(f"a second sample of {name} {labels}")
        self.page.series[key] = value
        self.family.series.append(key + (value,))

    def check_belongs(self, name):
        family = self.family
        counter = family is not None and family.type == "counter"
        if name.endswith("_created"):
            raise Refused(f"{name}: _created is not used")
        if name.removesuffix("_total") not in self.page.families and \
                name not in self.page.families:
            raise Refused(f"{name}: without TYPE and HELP")
        if self.openmetrics and counter and name == family.name:
            raise Refused(f"{name}: a counter without _total")
        if name != family.name + ("_total" if self.openmetrics and counter else ""):
            raise Refused(f"{name}: not in the lines of its family")
        if family.type is None or family.help is None:
            raise Refused(f"{name}: without {'TYPE' if family.type is None else 'HELP'}")

    def labels(self, rest):
        labels = {}
        if not rest.startswith("{"):
            return labels, rest
        at = 1
        while True:
            match = LABEL.match(rest, at)
            if not match:
                raise Refused(f"bad label at '{rest[at:at + 40]}'")
            name, text = match.groups()
            if name in labels:
                raise Refused(f"label {name} twice")
            if name in ("job", "instance") or name.startswith("__"):
                raise Refused(f"label {name} belongs to Prometheus")
            if CONTROL.search(text):
                raise Refused(f"label {name}: a control character")
            labels[name] = unescape(text, ESCAPES)
            at = match.end() + 1
            if rest[match.end():at] == "}":
                return labels, rest[at:]
            if rest[match.end():at] != ",":
                raise Refused(f"expected ',' or '}}' after label {name}")

    def value(self, name, rest):
        if not rest.startswith(" "):
            raise Refused(f"{name}: expected a blank before the value")
        text = rest[1:]
        match = VALUE.match(text)
        if match and re.fullmatch(r" -?[0-9.eE+-]+", text[match.end():]):
            raise Refused(f"{name}: a timestamp")
        if not match or match.end() != len(text):
            raise Refused(f"{name}: '{text}' is not a finite decimal number and nothing else")
        if match[2] and "_joules" in name:
            raise Refused(f"{name}: an exponent, which cannot hold every microjoule")
        value = Decimal(text)
        if self.family.type == "counter" and value < 0:
            raise Refused(f"{name}: a counter below 0")
        return value

    def line(self, line):
        if line.startswith("#"):
            self.comment(line)
        else:
            self.sample(line)


def read(body, openmetrics):
    """The Page that these bytes are, or Refused."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"not UTF-8: {error}") from None
    if not text.endswith("\n"):
        raise Refused("the last line has no newline")
    lines = text[:-1].split("\n")
    if openmetrics and lines.pop() != "# EOF":
        raise Refused("the last line is not '# EOF'")
    reader = Reader(openmetrics)
    for number, line in enumerate(lines, 1):
        try:
            if line == "# EOF":
                raise Refused("'# EOF' is the last line, of OpenMetrics only")
            reader.line(line)
        except Refused as why:
            raise Refused(f"line {number}: {why}") from None
    return reader.page


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("text", "openmetrics"):
        sys.exit("usage: exposition.py text|openmetrics < page")
    try:
        page = read(sys.stdin.buffer.read(), sys.argv[1] == "openmetrics")
    except Refused as why:
        sys.exit(f"refused: {why}")
    print(f"good: {len(page.families)} families, {len(page.series)} series")


if __name__ == "__main__":
    main()
