"""A real Prometheus scrapes the exporter in both formats, and its numbers balance."""
import os
import tempfile
import unittest
from contextlib import ExitStack

from harness import TEXT, Exporter, TestCase, Trace, ask, wait_until
from prometheus import Prometheus, serve_answers

JOBS = ("openmetrics", "text")
METERS = 3
SCRAPES = 11  # once a second: over two rounds of the trace, and more
HOSTILE_NAME = b'evil"\n\\name'

OFF_BALANCE = """\
abs(wattribute_meter_energy_joules_total
    - on (job, instance, meter, meter_id)
      (sum by (job, instance, meter, meter_id) (wattribute_workload_energy_joules_total)
       + sum by (job, instance, meter, meter_id) (wattribute_unowned_energy_joules_total)))
"""


def write_trace(path):
    trace = Trace()
    for gpu in range(METERS):
        trace.gpu(gpu, name=b'"quoted"\\and\xff')
        trace.process(0, gpu, 20, HOSTILE_NAME, b"/kube\npods")
        trace.work(gpu, [10 + gpu, 20, 30], seconds=4, watts=80 + 250 * gpu)
    return trace.write(path)


def text_only(address):
    """The address of a proxy that asks for text 0.0.4, whatever it is asked for: Prometheus 2.42
    always asks for OpenMetrics, and cannot be told not to."""
    def answer(path):
        response = ask(address, path, accept=TEXT)
        return response.status, response.headers["Content-Type"], response.body

    return serve_answers(answer)


class Scraped(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        trace = write_trace(os.path.join(directory, "work.trace.gz"))
        first, second = (stack.enter_context(Exporter("--replay", trace, "--sample-interval=200ms"))
                         for _ in JOBS)
        proxy = stack.enter_context(text_only(second.address))
        cls.prometheus = stack.enter_context(Prometheus(
            directory, openmetrics=[first.address], text=[proxy]))
        wait_until("both were scraped often enough", lambda: min(
            cls.prometheus.query("count_over_time(up[5m])").get((job, ""), 0)
            for job in JOBS) >= SCRAPES, 40)

    def test_both_targets_were_always_up(self):
        self.assertEqual({(job, ""): 1 for job in JOBS},
                         self.prometheus.query("min_over_time(up[5m])"))

    def test_no_target_has_an_error(self):
        targets = self.prometheus.api("targets")["activeTargets"]
        self.assertEqual({job: ("up", "") for job in JOBS},
                         {target["labels"]["job"]: (target["health"], target["lastError"])
                          for target in targets})

    def test_no_sample_was_refused(self):
        for problem in ("duplicate_timestamp", "out_of_order", "out_of_bounds"):
            self.assertEqual(0, self.prometheus.own(
                f"prometheus_target_scrapes_sample_{problem}_total"))
        samples = self.prometheus.query("scrape_samples_scraped")
        self.assertGreater(min(samples.values()), 50)
        self.assertEqual(samples, self.prometheus.query("scrape_samples_post_metric_relabeling"))

    def test_each_job_got_its_own_format(self):
        # Only OpenMetrics tells units, and names a counter's family without _total.
        units = {(row["target"]["job"], row["metric"]): row["unit"]
                 for row in self.prometheus.api("targets/metadata")}
        self.assertEqual("joules", units["openmetrics", "wattribute_meter_energy_joules"])
        self.assertEqual("", units["text", "wattribute_meter_energy_joules_total"])

    def test_every_meter_is_the_sum_of_its_owners(self):
        off = self.prometheus.query(OFF_BALANCE)
        meters = self.prometheus.query("wattribute_meter_energy_joules_total")
        self.assertEqual(len(JOBS) * METERS, len(meters))
        self.assertEqual(meters.keys(), off.keys())
        for meter, energy in meters.items():
            self.assertGreater(energy, 100)
            self.assertLess(off[meter], 1e-9 * energy + 1e-3, meter)

    def test_the_ledger_has_no_imbalance(self):
        imbalance = self.prometheus.query(
            "max_over_time(abs(wattribute_ledger_imbalance_joules)[5m:1s])")
        self.assertEqual([0] * len(JOBS) * METERS, list(imbalance.values()))

    def test_no_counter_of_energy_was_ever_reset(self):
        for name in ("meter", "meter_hardware", "unowned", "workload"):
            resets = self.prometheus.query(
                f"max by (job) (resets(wattribute_{name}_energy_joules_total[5m]))")
            self.assertEqual({(job, ""): 0 for job in JOBS}, resets, name)

    def test_a_hostile_name_arrives_as_it_was(self):
        rows = self.prometheus.api("query", query="my_gpu_process_active{pid='20'}")["result"]
        self.assertEqual(len(JOBS) * METERS, len(rows))
        self.assertEqual({HOSTILE_NAME.decode()}, {row["metric"]["process_name"] for row in rows})


if __name__ == "__main__":
    unittest.main()
