"""A process that blocks everybody who reads its memory costs its own names, and only until it lets them."""
import os
import secrets

import harness
from harness import Exporter, TestCase
from gpu_node import NO_METERS, process_in
from servers import cgroups
from servers.stuck_process import stuck_process

INFO = "wattribute_workload_info"
FLAGS = ["--process-scan-interval=1s", "--cri-socket=", "--docker-socket=", "--podman-socket=", "--pod-resources-socket=",
         *NO_METERS]


def info(page, job):
    return next((labels for labels, _ in page.values(INFO) if labels["kind"] == "slurm" and labels["id"] == job), None)


class StuckProcess(TestCase):
    def setUp(self):
        super().setUp()
        self.root = f"/slurm_{secrets.token_hex(4)}/uid_0"
        self.first, self.second = (str(secrets.randbelow(10**6) + base) for base in (10**6, 2 * 10**6))

    def in_job(self, pid, job):
        group = f"{self.root}/job_{job}/step_0"
        self.addCleanup(cgroups.sweep)
        self.addCleanup(cgroups.remove, group)
        with cgroups.making(group):
            cgroups.enter(group, pid)

    def stuck(self):
        os.mkdir(self.path("mount"))
        return stuck_process(self.path("mount"), SLURM_JOB_NAME="stuck")

    def wait_for_job(self, exporter, job, **labels):
        """The page that shows these labels of it."""
        return exporter.wait_for_page(f"{labels} of job {job}", lambda page: (
            labels.items() <= (info(page, job) or {}).items()))

    def test_a_job_that_blocks_its_readers_costs_only_its_own_name(self):
        with self.stuck() as stuck:
            self.in_job(stuck.pid, self.first)
            stuck.block()
            with Exporter(*FLAGS) as exporter:
                self.wait_for_job(exporter, self.first, user="root", job_name="")
                with process_in(f"{self.root}/job_{self.second}/step_0", SLURM_JOB_NAME="next"):
                    self.wait_for_job(exporter, self.second, job_name="next")
                    stuck.free()
                    self.wait_for_job(exporter, self.first, job_name="stuck")

    def test_the_exporter_ends_while_a_read_hangs(self):
        with self.stuck() as stuck:
            self.in_job(stuck.pid, self.first)
            stuck.block()
            with Exporter(*FLAGS) as exporter:
                self.wait_for_job(exporter, self.first, user="root", job_name="")


if __name__ == "__main__":
    harness.main()
