"""Headless Chromium, driven through tests/e2e/browser/browser.mjs."""
import json
import os
import subprocess

from harness import SOURCE_ROOT, wait_until
from servers import require


class Browser:
    """For a with statement."""

    def __init__(self):
        arguments = [require.command("node"), os.path.join(SOURCE_ROOT, "tests/e2e/browser/browser.mjs"),
                     os.path.dirname(require.cached("browser/node_modules")), require.command("chromium")]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def run(self, code, argument=None):
        """The value that this code returns: the body of an async function of `tools` (browser.mjs) and `argument`."""
        self.process.stdin.write(json.dumps({"code": code, "argument": argument}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the browser ended with {self.process.wait(30)}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"{answer['error']}\nof: {code}")
        return answer["value"]

    def open(self, url, **options):
        """A Page; the options are those of a context of Playwright's."""
        return Page(self, url, options)


class Page:
    count = 0

    def __init__(self, browser, url, options):
        Page.count += 1
        self.browser, self.name = browser, f"page{Page.count}"
        browser.run("tools.pages[argument.name] = await tools.open(argument.url, argument.options)",
                    {"name": self.name, "url": url, "options": options})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("await page.context().close(); delete tools.pages[argument.name]")

    def run(self, code, argument=None):
        """Code of the driver, which has this `page`."""
        return self.browser.run(f"const page = tools.pages[argument.name]; {{ const value = argument.value; {code} }}",
                                {"name": self.name, "value": argument})

    def get(self, expression):
        """The value of an expression in the page itself."""
        return self.run("return page.evaluate(value)", expression)

    def wait(self, expression, seconds=15):
        """Until the expression in the page is true; returns its value. Not Playwright's, which the page's policy forbids."""
        return wait_until(f"{expression} in the page", lambda: self.get(expression), seconds)

    def text(self, selector):
        return self.run("return page.textContent(value)", selector)

    def texts(self, selector):
        return self.run("return page.$$eval(value, (nodes) => nodes.map((node) => node.textContent))", selector)

    def click(self, selector):
        self.run("await page.click(value)", selector)

    def problems(self):
        return self.run("return page.problems")

    def picture(self, path, **options):
        self.run("await page.screenshot(value)", {"path": path, **options})
