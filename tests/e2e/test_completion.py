"""`wattribute completion`, in real shells: at a terminal as their users have it, fish by `complete -C`."""
import contextlib
import os
import subprocess
import unittest

import harness
import help_tables
from harness import TestCase, run, wait_until
from servers import require

BASH = r"""
bind '"\C-t": insert-completions'
bind -x '"\C-o": printf "%s\n" "$READLINE_LINE" >>"$SCREEN"'
"""
ZSH = r"""
zstyle ':completion:every:*' insert true
zstyle ':completion:every:*' old-matches false
zstyle ':completion:every::::' completer _all_matches _complete
zle -C every complete-word _generic
screen() { print -r -- "$BUFFER" >>$SCREEN }
zle -N screen
bindkey '^T' every
bindkey '^O' screen
"""
# A word that has characters of files in it, and one that only looks like it.
FILES = ("trace.gz", "two words.gz", "trade/one.gz")


class Terminal:
    """A shell at a terminal, in a directory with FILES."""

    def __init__(self, test, command, setup):
        self.screen = test.path("screen")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.screen)
        here, there = os.openpty()
        self.keys = here
        test.addCleanup(os.close, here)
        environment = {**test.environment(), "TERM": "dumb", "SCREEN": self.screen}
        shell = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, start_new_session=True,
                                 cwd=test.path("home"), env=environment)
        os.close(there)
        test.addCleanup(shell.wait)
        test.addCleanup(shell.kill)
        setup = test.write("setup", (setup + '\necho ready >>"$SCREEN"\n').encode())
        self.type(f". '{setup}'\n")
        self.wait_for_lines(1)

    def type(self, text):
        os.write(self.keys, text.encode())

    def lines(self):
        try:
            with open(self.screen) as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def wait_for_lines(self, count):
        def has_come():
            try:  # what it writes, so that it never waits for us
                os.set_blocking(self.keys, False)
                while os.read(self.keys, 65536):
                    pass
            except BlockingIOError:
                pass
            finally:
                os.set_blocking(self.keys, True)
            return len(self.lines()) == count
        wait_until(f"line {count}", has_come)

    def press(self, line, key):
        """What the line is after this key."""
        count = len(self.lines())
        self.type(f"\025{line}{key}\017")
        self.wait_for_lines(count + 1)
        return self.lines()[-1]


class Shell:
    """What all shells complete. Each has `complete(line)`: the words that its last one can become."""

    def setUp(self):
        super().setUp()
        self.command = require.command(self.name)
        os.makedirs(self.path("home/trade"))
        os.makedirs(self.path("bin"))
        os.symlink("/bin/true", self.path("bin/a-program-of-its-own"))
        for name in FILES:
            self.write(f"home/{name}", b"")
        done = run("completion", self.name)
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.script = self.write("script", done.stdout)

    def environment(self):
        return {"PATH": f"{self.path('bin')}:{os.environ['PATH']}", "HOME": self.path("home"), "LC_ALL": "C.UTF-8"}

    def assert_completes(self, words, line):
        # Some shells add what comes next only where one match is left.
        found = {word.rstrip("=/,") for word in self.complete("wattribute " + line)}
        self.assertEqual({word.rstrip("/") for word in words}, found, line)

    def test_the_script_has_no_error(self):
        subprocess.run([self.command, "-n", self.script], check=True)

    def test_every_verb_is_completed(self):
        self.assert_completes(help_tables.verbs(), "")
        self.assert_completes(["replay", "record", "report"], "re")

    def test_every_flag_of_every_verb_is_completed_and_no_other(self):
        for verb in help_tables.verbs():
            flags = help_tables.flags(verb)
            self.assertIn("--version", flags)
            self.assert_completes([flag for flag in flags if flag[1] == "-"],
                                  f"{verb} --")

    def test_without_a_verb_there_are_the_flags_of_serve(self):
        self.assert_completes(["--web.config.file"], "--web")
        self.assert_completes(["--log-level", "--log-format"], "--json --log")

    def test_words_that_a_flag_knows_are_completed(self):
        for line in ("serve --idle-policy=", "replay --idle-policy "):
            self.assert_completes(["proportional", "equal", "reserved", "none"], line)
        self.assert_completes(["proportional"], "--idle-policy=pr")
        self.assert_completes(["intensity"], "replay --sample-interval=1s --attribution=i")
        self.assert_completes(["gpu", "package", "dram", "rest"], "serve --emissions.embodied=")

    def test_of_a_list_the_last_word_is_completed(self):
        self.assert_completes(["entsoe", "electricity_maps"], "check --emissions.providers=e")
        self.assert_completes(["rte,owid"], "check --emissions.providers=rte,ow")
        self.assert_completes(["rte,owid,global"], "check --emissions.providers rte,owid,gl")

    def test_files_and_directories_are_completed(self):
        for line in ("--config.file=tra", "--config.file tra", "record -o tra", "replay --idle-policy=none tra"):
            self.assert_completes(["trace.gz", "trade/"], line)
        self.assert_completes(["trade/one.gz"], "replay trade/")
        self.assert_completes(["trade/"], "--path.procfs=t")

    def test_where_nothing_is_known_nothing_is_completed(self):
        for line in ("check t", "--listen-address=", "--listen-address=:9", "check --idle-policy=", "none t",
                     "--json=t", "--emissions.providers=owid:t", "replay --idle-policy=none=t"):
            self.assert_completes([], line)

    def test_a_command_of_its_own_is_completed_as_one(self):
        for line in ("run a-prog", "run -- a-prog", "run --repeat 2 a-prog", "run --json a-prog"):
            self.assert_completes(["a-program-of-its-own"], line)
        for line in ("run cat tra", "run --repeat=2 -- cat tra", "run --repeat 2 cat -n tra"):
            self.assert_completes(["trace.gz", "trade/"], line)
        self.assertNotIn("--repeat", self.complete("wattribute run cat --rep"))

    def test_its_own_argument_is_completed(self):
        self.assert_completes(["bash", "zsh", "fish"], "completion ")


class AtTerminal(Shell):
    def setUp(self):
        super().setUp()
        self.terminal = Terminal(self, self.start, f"{self.load}\n. '{self.script}'\n{self.setup}")

    def complete(self, line):
        prefix, last = line.rsplit(" ", 1)
        every = self.terminal.press(line, "\024")
        if every.strip() == line.strip():
            return set()
        flag, equals, _ = last.rpartition("=")
        words = every[len(prefix):].split()
        return {word.removeprefix(flag + equals) for word in words}


class Bash(AtTerminal, TestCase):
    name = "bash"
    start = ["bash", "--norc", "--noprofile", "-i"]
    load, setup = "", BASH

    def test_a_value_is_what_comes_next_and_a_word_is_complete(self):
        for line, then in (("wattribute che", "wattribute check "), ("wattribute --idle", "wattribute --idle-policy="),
                           ("wattribute --idle-policy=eq", "wattribute --idle-policy=equal "),
                           ("wattribute --replay=two", "wattribute --replay=two\\ words.gz "),
                           ("wattribute --path.sysfs=tr", "wattribute --path.sysfs=trade/"),
                           ("wattribute --emissions.embodied=g", "wattribute --emissions.embodied=gpu=")):
            self.assertEqual(then, self.terminal.press(line, "\t"))


class Zsh(AtTerminal, TestCase):
    name = "zsh"
    start = ["zsh", "-f", "-i"]  # with `source <(wattribute completion zsh)`
    load, setup = "autoload -Uz compinit && compinit -u", ZSH

    def test_where_zsh_looks_for_it_it_is_loaded_by_its_name(self):
        os.makedirs(self.path("functions"))
        os.rename(self.script, self.path("functions/_wattribute"))
        self.terminal = Terminal(self, self.start, f"fpath=('{self.path('functions')}' $fpath)\n{self.load}\n{self.setup}")
        self.assert_completes(["--idle-policy"], "--idle")


class Fish(Shell, TestCase):
    name = "fish"

    def complete(self, line):
        done = subprocess.run([self.command, "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", self.script, line],
                              capture_output=True, text=True, check=True, timeout=20, cwd=self.path("home"),
                              env=self.environment())
        self.assertEqual("", done.stderr)
        flag, equals, _ = line.rsplit(" ", 1)[1].rpartition("=")
        return {text.split("\t")[0].removeprefix(flag + equals) for text in done.stdout.splitlines()}


class Refused(TestCase):
    def test_an_unknown_shell_is_named(self):
        done = run("completion", "tcsh")
        self.assertEqual((2, b"", b"wattribute: unknown shell 'tcsh'; use bash, zsh or fish\n"),
                         (done.returncode, done.stdout, done.stderr))


if __name__ == "__main__":
    harness.main()
