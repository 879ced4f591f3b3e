"""A real Prometheus that scrapes every second."""
import json
import os
import re
import subprocess
import threading
import urllib.parse
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import ask, prometheus_tool, wait_until

CONFIG = """\
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
"""
JOB = """\
- job_name: %s
  honor_labels: true
  static_configs: [{targets: %s}]
"""


class Prometheus:
    """A server of our own in a private directory, for a with statement; jobs are lists of addresses.

    With `config_text`, that is its configuration. Samples are kept, however old they are."""

    def __init__(self, directory, config_text=None, flags=(), **jobs):
        config = os.path.join(directory, "prometheus.yml")
        with open(config, "w") as file:
            file.write(config_text or CONFIG + "".join(JOB % job for job in jobs.items()))
        self.log_path = os.path.join(directory, "prometheus.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [prometheus_tool("prometheus"), f"--config.file={config}",
                 f"--storage.tsdb.path={directory}/data", "--web.listen-address=127.0.0.1:0",
                 "--storage.tsdb.retention.time=100y", *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory)

    def __enter__(self):
        try:
            self.address = wait_until("Prometheus says where it listens", self.find_address, 30)
            wait_until("Prometheus is ready", lambda: self.ask("/-/ready").status == 200, 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *ignored):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def find_address(self):
        with open(self.log_path) as file:
            text = file.read()
        if self.process.poll() is not None:
            raise AssertionError(f"Prometheus ended:\n{text}")
        found = re.search(r'msg="Listening on" address=(\S+)', text)
        return found and found[1]

    def ask(self, path):
        return ask(self.address, path)

    def api(self, path, **parameters):
        answer = json.loads(self.ask(f"/api/v1/{path}?" + urllib.parse.urlencode(parameters)).body)
        if answer["status"] != "success":
            raise AssertionError(answer)
        return answer["data"]

    def rows(self, text, **parameters):
        """[(labels, value)] of an instant query; a scalar is one without labels."""
        data = self.api("query", query=text, **parameters)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def query(self, text):
        """{(job, meter_id or ""): value} of an instant query."""
        return {(labels["job"], labels.get("meter_id", "")): value
                for labels, value in self.rows(text)}

    def own(self, name):
        """The sum over a metric that Prometheus has of itself."""
        lines = self.ask("/metrics").body.decode().splitlines()
        values = [float(line.split()[-1]) for line in lines
                  if line.startswith((name + " ", name + "{"))]
        if not values:
            raise AssertionError(f"Prometheus has no {name}")
        return sum(values)


def queries(path):
    """[(line, query)] of each promql block of a page."""
    with open(path) as file:
        text = file.read()
    return [(text[:found.start()].count("\n") + 2, found[1])
            for found in re.finditer(r"^```promql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


@contextmanager
def serve_answers(answer):
    """The address of another exporter: `answer` gets a path and returns status, content type and body."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, content_type, body = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "127.0.0.1:%d" % server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def serve_page(page):
    """The same page, whatever is asked."""
    return serve_answers(lambda _: (200, "text/plain; version=0.0.4", page.encode()))
