"""The manual pages, against what --help and the manuals know."""
import os
import pathlib
import re
import subprocess
import unittest

import harness
import help_tables
from harness import SOURCE_ROOT, TestCase, run
from servers import require

PAGES = pathlib.Path(os.environ["MAN_PAGES"])
FILES = {"wattribute.yaml", "wattribute-web-config", "wattribute-tariff"}


def pages():
    return sorted(PAGES.glob("man[15]/*"))


def plain(text):
    """Without roff's escapes."""
    return re.sub(r"\\f[A-Z]|\\&", "", text).replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")


def read(name, section=1):
    return plain((PAGES / f"man{section}" / f"{name}.{section}").read_text())


def words(text):
    return " ".join(text.split())


def items(text, heading):
    """What the paragraphs below a heading begin with."""
    part, = re.findall(rf"(?ms)^\.SH {heading}$(.*?)(?=^\.SH |\Z)", text)
    return re.findall(r"(?m)^\.TP\n(?:\.BR? )?([^=:\n]+)", part)


class ManPages(TestCase):
    def test_every_verb_and_every_file_has_a_page_and_nothing_else(self):
        names = {"wattribute"} | {f"wattribute-{verb}" for verb in help_tables.verbs()}
        self.assertEqual({f"{name}.1" for name in names} | {f"{name}.5" for name in FILES},
                         {page.name for page in pages()})

    def test_a_page_has_the_flags_of_its_verb_as_help_has_them_and_no_other(self):
        for verb in help_tables.verbs():
            text, flags = words(read(f"wattribute-{verb}")), help_tables.flags(verb)
            listed = items(read(f"wattribute-{verb}"), "FLAGS")
            self.assertEqual(len(set(listed)), len(listed))
            for flag, placeholder in flags.items():
                if flag not in listed:  # an alias, or the other form of a switch
                    self.assertTrue(f"also {flag}" in text or "--" + flag[5:] in listed, (verb, flag))
                elif placeholder:
                    self.assertIn(f".TP {flag}={placeholder} ", text)
            self.assertLessEqual(set(listed), set(flags))

    def test_a_page_says_of_flags_what_help_says(self):
        for verb in help_tables.verbs():
            told = words(re.sub(r"(?m)^\.(?:TP|SS .*)$", "", read(f"wattribute-{verb}")))
            text = run(verb, "--help").stdout.decode()
            rows = re.findall(r"(?m)^  (--[\w.-]+(?:=\S+)?) ([^\n]*(?:\n {38}[^\n]*)*)", text)
            self.assertGreater(len(rows), 2)
            for flag, about in rows:
                self.assertIn(words(f"{flag} {about}."), told)
            for status in words(text.split("Exit status:")[1]).split("; "):
                self.assertIn(status + ".", told)

    def test_the_overview_has_every_verb_and_variable(self):
        text = read("wattribute")
        self.assertEqual([f"wattribute-{verb} (1)" for verb in help_tables.verbs()], items(text, "COMMANDS"))
        self.assertEqual(["EXPORTER_PORT", "SCRAPE_INTERVAL"], items(text, "ENVIRONMENT"))
        synopsis = re.findall(r"(?m)^  (wattribute \S+ \[flags\](?: .+?\.\.\.\]?)?)", run("--help").stdout.decode())
        self.assertEqual(len(help_tables.verbs()), len(synopsis))
        for line in synopsis:
            self.assertIn(words(line), words(text.replace(".B ", "")))

    def test_the_page_of_the_config_file_has_the_keys_that_it_can_have(self):
        keys = set()
        for flag in {flag for verb in help_tables.verbs() for flag in help_tables.flags(verb)}:
            name = flag.lstrip("-")
            path = self.write("w.yaml", f"{name}: [a, b]\n".encode())  # no flag has such a value
            error = run("completion", f"--config.file={path}", "bash").stderr.decode()
            if "works on the command line only" not in error and "unknown key" not in error:
                keys.add(name)
        listed = set(items(read("wattribute.yaml", 5), "KEYS"))
        self.assertEqual({"dcgm-update-frequency"}, keys - listed)  # an alias
        self.assertLessEqual(listed, keys)

    def test_pages_of_files_have_the_keys_of_their_manuals(self):
        web = (pathlib.Path(SOURCE_ROOT) / "docs/web-config.md").read_text().split("\n## Keys\n")[1].split("\n## ")[0]
        keys = re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", web)))
        self.assertIn("client_allowed_sans", keys)
        cost = (pathlib.Path(SOURCE_ROOT) / "docs/emissions.md").read_text().split("\n## Cost\n")[1]
        tariff = re.findall(r"(?m)^ *(?:- )?(\w+): ", cost.split("```yaml\n")[1].split("```")[0])
        self.assertIn("months", tariff)
        for name, wanted in (("wattribute-web-config", keys), ("wattribute-tariff", tariff)):
            text = read(name, 5)
            keys_of_page = re.findall(r"[\w-]+", " ".join(items(text, "KEYS") + re.findall(r"(?m)^\.SS (.*)$", text)))
            for key in wanted:
                self.assertIn(key, keys_of_page)

    def test_examples_in_the_pages_of_files_are_accepted(self):
        for name, flag in (("wattribute.yaml", "--config.file"), ("wattribute-tariff", "--cost.tariff-file")):
            example = read(name, 5).split(".SH EXAMPLE\n.EX\n")[1].split(".EE")[0]
            path = self.write("example.yaml", example.encode())
            done = run("check", f"{flag}={path}", "--no-collector.nvml", f"--path.sysfs={self.directory}", "--json")
            self.assertEqual((1, b""), (done.returncode, done.stderr))  # 2: refused

    def test_references_lead_to_pages(self):
        names = {page.name for page in pages()}
        for page in pages():
            text = plain(page.read_text())
            references = re.findall(r"(?m)^\.BR ([\w.-]+) \((\d)\)", text) + re.findall(r"([\w.-]+) \((\d)\)", text)
            self.assertGreater(len(references), len(help_tables.verbs()))
            self.assertLessEqual({f"{name}.{section}" for name, section in references if "wattribute" in name}, names)

    def test_mandoc_has_nothing_to_say(self):
        done = subprocess.run([require.command("mandoc"), "-Tlint", *pages()], capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))

    def test_groff_has_nothing_to_say(self):
        require.command("man")
        for page in pages():
            done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                                  env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual((0, ""), (done.returncode, done.stderr), page)
            self.assertIn("SEE ALSO", done.stdout)


if __name__ == "__main__":
    harness.main()
