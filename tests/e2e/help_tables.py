"""What --help knows: verbs, and the flags of each as they can be written."""
import re

from harness import run


def verbs():
    """Each with its argument, or ''."""
    text = run("--help").stdout.decode()
    found = re.findall(r"(?m)^  wattribute (\[?[a-z]+\]?) \[flags\](?: (.+?)\.\.\.)?", text)
    return {verb.strip("[]"): argument for verb, argument in found}


def flags(verb):
    """Each flag that this verb takes, with its placeholder, or '' of a switch: also aliases and --no- forms."""
    found = {}
    text = run(verb, "--help").stdout.decode()
    rows = re.findall(r"(?m)^  --([\w.-]+)(?:=(\S+))? ([^\n]*(?:\n {38}[^\n]*)*)", text)
    general = text[text.index("\nGeneral:"):]
    for name, placeholder, about in rows:
        found["--" + name] = placeholder
        for alias in re.findall(r"also (--?[\w.-]+)", " ".join(about.split())):
            found[alias] = placeholder
        if not placeholder and f"\n  --{name} " not in general:
            found["--no-" + name] = ""
    return found
