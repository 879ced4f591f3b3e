"""A picture of a terminal: what `tmux capture-pane -e` prints, as SVG."""
import html
import re
import unicodedata

CELL, LINE, SIZE, MARGIN = 8.4, 19, 14, 12
FOREGROUND, BACKGROUND = "#d3d7de", "#16181d"
COLOURS = ["#3b4048", "#f0616d", "#8cc265", "#e5c07b", "#4d8fdb", "#c678dd", "#56b6c2", "#e6e9ef"]
STYLE = ("text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
         ".b{font-weight:700}.d{opacity:.6}.u{text-decoration:underline}" % SIZE)


class Pen:
    def __init__(self):
        self.set(0)

    def set(self, code):
        if code == 0:
            self.fill, self.back = None, None
            self.classes, self.is_reversed = set(), False
        elif code in (1, 2, 4):
            self.classes.add({1: "b", 2: "d", 4: "u"}[code])
        elif code == 7:
            self.is_reversed = True
        elif 30 <= code <= 37:
            self.fill = COLOURS[code - 30]
        elif 40 <= code <= 47:
            self.back = COLOURS[code - 40]
        elif code == 39:
            self.fill = None
        elif code == 49:
            self.back = None
        else:
            raise ValueError(f"no picture of SGR {code}")

    def colours(self):
        fill, back = self.fill or FOREGROUND, self.back or BACKGROUND
        return (back, fill) if self.is_reversed else (fill, back)


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def runs(line, pen):
    """(column, text, pen's look) of each piece of a line."""
    column = 0
    for escape, text in re.findall(r"\x1b\[([\d;]*)m|([^\x1b]+)", line):
        if not text:
            for code in escape.split(";"):
                pen.set(int(code or 0))
            continue
        yield column, text, (*pen.colours(), " ".join(sorted(pen.classes)))
        column += width(text)


def svg(captured, columns, title):
    lines = captured.rstrip("\n").split("\n")
    wide, high = 2 * MARGIN + columns * CELL, 2 * MARGIN + len(lines) * LINE
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" role="img">',
           f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
           f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
    pen = Pen()
    for row, line in enumerate(lines):
        y = MARGIN + row * LINE
        for column, text, (fill, back, classes) in runs(line, pen):
            x, span = MARGIN + column * CELL, width(text) * CELL
            if back != BACKGROUND:
                out.append(f'<rect x="{x:g}" y="{y:g}" width="{span:g}" height="{LINE}" fill="{back}"/>')
            if text.strip():
                kind = f' class="{classes}"' if classes else ""
                out.append(f'<text x="{x:g}" y="{y + LINE - 5:g}" fill="{fill}" textLength="{span:g}" '
                           f'lengthAdjust="spacingAndGlyphs" xml:space="preserve"{kind}>{html.escape(text)}</text>')
    return "\n".join([*out, "</svg>", ""])
