"""What workloads use on a node with cgroup v2 and all its controllers: a virtual machine in which loads of known size
run in the cgroups of a container, a pod, a job and a user. The page must say what the machine's own files say."""
import re
from decimal import Decimal

import exposition
import harness
from harness import TestCase
from servers import load, vm

CONTROLLERS = {"cpu", "cpuset", "hugetlb", "io", "memory", "pids", "rdma"}
PREFIX = "wattribute_workload_"
MIB = 1 << 20
# memory.stat is brought up to date when many pages have changed, or every 2 s.
STALE_BYTES = MIB
# A process cannot count what it does after it has said what it did. The host may stop the machine just then, and the
# machine takes that for work: 66 ms where 14 programs wanted two processors.
STOLEN_S = Decimal("0.5")
CONTAINER, POD, INNER = "1" * 64, "2" * 64, "3" * 64
GROUPS = {
    "container": f"system.slice/docker-{CONTAINER}.scope",
    "pod": "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2c9f8a79_5391_454b_88cb_86190881cb96.slice/"
           f"cri-containerd-{POD}.scope",
    "job": "system.slice/slurmstepd.scope/job_7",
    "user": "user.slice/user-1000.slice/user@1000.service",
    "inner": f"user.slice/user-1000.slice/user@1000.service/app.slice/libpod-{INNER}.scope",
    "bare": "bare.slice/bare.service",
}
OWNERS = {"container": ("container", CONTAINER), "pod": ("pod", POD), "job": ("slurm", "7"), "user": ("user", "1000"),
          "inner": ("container", f"1000/{INNER}"), "bare": ("unit", "bare.service")}
FILES = ("cpu.stat", "cpu.pressure", "memory.stat", "memory.current", "memory.swap.current", "memory.events",
         "memory.pressure", "io.stat", "io.pressure", "pids.current", "hugetlb.2MB.current", "rdma.current")
# The bare one is made last, where no controller is: when it is on the page, all have been read after they had done
# their work. The user takes longer: his name is asked for.
SCRIPT = """
dmesg -n 1
cd /sys/fs/cgroup
all=$(sed 's/[^ ]*/+&/g' cgroup.controllers)
make() {
    at=.
    for part in $(echo "$1" | tr / ' '); do
        echo "$all" >$at/cgroup.subtree_control
        at=$at/$part
        mkdir -p $at
    done
}
start() {
    name=$1 group=$2
    shift 2
    mkdir -p $group
    CGROUP=$group/cgroup.procs load "$@" >/tmp/$name.used &
}
wait_for() {
    i=0
    while ! "$@" && [ $i -lt 600 ]; do usleep 100000; i=$((i + 1)); done
}
page() { wget -q -O - http://127.0.0.1:9400/metrics 2>/dev/null; }
is_up() { page >/dev/null; }
is_done() { for name in container pod job user inner; do [ -s /tmp/$name.used ] || return 1; done; }
is_read() {
    page >/tmp/page
    for ident in @idents@; do grep -q "^wattribute_workload_cpu_seconds.*,id=.$ident\\"" /tmp/page || return 1; done
}
container=@container@ pod=@pod@ job=@job@ user=@user@ inner=@inner@ bare=@bare@

wattribute serve --listen-address=127.0.0.1:9400 --cri-socket= --docker-socket= --podman-socket= \\
    --pod-resources-socket= --process-scan-interval=1s >/tmp/log 2>&1 &
exporter=$!
wait_for is_up
echo 8 >/proc/sys/vm/nr_hugepages
for group in $container $pod $job/step_0/user/task_0 $user/own $inner; do make $group; done
echo 64M >$container/memory.max
echo 48M >${pod%/*}/memory.max
echo '20000 100000' >$pod/cpu.max
export DISK_FILE=/dev/ram0
start container $container memory_mib 16 threads 3 cpu_ms 1000 exceed_mib 128
start pod $pod cpu_ms 300
( # its environment is all that shows its GPUs: cgroup v2 has no device rules that can be read
    export SLURM_STEP_GPUS=1 SLURM_GPUS_ON_NODE=4
    start job $job/step_0/user/task_0 write_mib 4 read_mib 2 huge_mib 4 cpu_ms 200
)
start user $user/own memory_mib 8 cpu_ms 300
start inner $inner memory_mib 24 cpu_ms 600
wait_for is_done
start bare $bare cpu_ms 1
wait_for is_read
echo; echo '=== controllers'; cat cgroup.controllers
for name in container pod job user inner bare; do
    eval group=\\$$name
    for file in @files@ used; do
        echo "=== $name $file"
        if [ $file = used ]; then cat /tmp/$name.used; elif [ -e $group/$file ]; then cat $group/$file; fi
    done
done
echo '=== page'; grep 'wattribute_workload_\\|wattribute_node_job' /tmp/page
echo '=== check'; wattribute check | grep -A1 'GPUs of jobs'
echo '=== log'; cat /tmp/log
kill $exporter; wait $exporter
echo '=== end'
"""


def fill(template, values):
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def keyed(text):
    """memory.stat and its like."""
    return {key: int(value) for key, value in map(str.split, text.splitlines())}


class CgroupV2(TestCase):
    """One boot for all tests; what it wrote is in sections."""

    @classmethod
    def setUpClass(cls):
        machine = cls("boot")
        machine.setUp()
        try:
            machine.boot()
        finally:
            machine.doCleanups()
        cls.sections, cls.page = machine.sections, machine.page

    def boot(self):
        idents = " ".join(ident for _, ident in OWNERS.values())
        script = fill(SCRIPT, {**GROUPS, "files": " ".join(FILES), "idents": idents})
        console = vm.run(self, script, ["brd"], programs={"load": load.program()}, parameters="psi=1")
        self.sections = dict(re.findall(r"(?ms)^=== ([\w. ]+)\n(.*?)(?=^=== |\Z)", console))
        self.assertIn("end", self.sections, console)
        self.page = exposition.read(self.sections["page"].encode(), False)

    def file(self, group, name):
        return self.sections[f"{group} {name}"]

    def used_s(self, group):
        return load.used_s(self.file(group, "used"))

    def values(self, group, family, **labels):
        kind, ident = OWNERS[group]
        return self.page.values(PREFIX + family, kind=kind, id=ident, **labels)

    def value(self, group, family, **labels):
        kind, ident = OWNERS[group]
        return self.page.value(PREFIX + family, kind=kind, id=ident, **labels)

    def test_a_jobs_gpus_are_read_from_its_environment(self):
        self.assertEqual(3, self.page.value("wattribute_node_job_gpus_unknown"))
        self.assertRegex(self.sections["check"], r"limited +GPUs of jobs +1 of 1 job has 3 more GPUs than")
        self.assertRegex(self.sections["check"], r"limited +GPUs of jobs +0 by device rules, 1 by the job's environment")

    def cpu_s(self, group):
        return self.value(group, "cpu_seconds_total", mode="user") + \
            self.value(group, "cpu_seconds_total", mode="system")

    def cpu_stat(self, group):
        return keyed(self.file(group, "cpu.stat"))

    def test_all_controllers_are_there(self):
        self.assertLessEqual(CONTROLLERS, set(self.sections["controllers"].split()))
        self.assertNotIn("level=error", self.sections["log"])

    def test_cpu_seconds_are_those_of_the_kernel_and_of_the_processes(self):
        for group in ("container", "pod", "job", "inner"):
            with self.subTest(group):
                shown_s, used_s = self.cpu_s(group), self.used_s(group)
                print(f"{group}: {shown_s} s, {used_s} s by its processes")
                self.assertEqual(Decimal(self.cpu_stat(group)["usage_usec"]) / 10**6, shown_s)
                self.assertTrue(used_s <= shown_s <= used_s + STOLEN_S, (used_s, shown_s))

    def test_what_is_inside_of_another_workload_is_taken_from_it(self):
        whole_s, inner_s = (Decimal(self.cpu_stat(group)["usage_usec"]) / 10**6 for group in ("user", "inner"))
        self.assertAlmostEqual(whole_s - inner_s, self.cpu_s("user"), delta=whole_s / 100)
        for group, held in (("user", 8), ("inner", 24)):
            self.assertAlmostEqual(held * MIB, self.value(group, "memory_rss_bytes"), delta=2 * STALE_BYTES)
            self.assertEqual(1, self.value(group, "pids"))

    def test_a_quota_is_shown_where_there_is_one(self):
        stat = self.cpu_stat("pod")
        self.assertGreater(stat["nr_throttled"], 0)
        for family, value in (("periods", stat["nr_periods"]), ("throttled_periods", stat["nr_throttled"]),
                              ("throttled_seconds", Decimal(stat["throttled_usec"]) / 10**6)):
            self.assertEqual(value, self.value("pod", f"cpu_{family}_total"), family)
        self.assertEqual(0, self.value("container", "cpu_throttled_periods_total"))
        self.assertEqual(Decimal("0.2"), self.value("pod", "cpus"))
        self.assertGreaterEqual(self.value("container", "cpus"), 1)  # those of the machine

    def test_memory_is_what_is_held_and_the_tightest_limit_counts(self):
        for group in ("container", "pod", "job", "inner"):
            with self.subTest(group):
                stat, used = keyed(self.file(group, "memory.stat")), int(self.file(group, "memory.current"))
                self.assertAlmostEqual(stat["anon"], self.value(group, "memory_rss_bytes"), delta=STALE_BYTES)
                self.assertAlmostEqual(stat["file"], self.value(group, "memory_cache_bytes"), delta=STALE_BYTES)
                self.assertAlmostEqual(used, self.value(group, "memory_used_bytes"), delta=STALE_BYTES)
                self.assertAlmostEqual(used - stat["inactive_file"], self.value(group, "memory_working_set_bytes"),
                                       delta=STALE_BYTES)
                self.assertEqual(0, self.value(group, "memory_swap_bytes"))
        self.assertAlmostEqual(16 * MIB, self.value("container", "memory_rss_bytes"), delta=STALE_BYTES)
        self.assertEqual(64 * MIB, self.value("container", "memory_limit_bytes"))
        self.assertEqual(48 * MIB, self.value("pod", "memory_limit_bytes"))
        self.assertEqual([], self.values("job", "memory_limit_bytes"))

    def test_what_exceeds_its_limit_is_counted(self):
        events = keyed(self.file("container", "memory.events"))
        self.assertGreater(events["max"], 0)
        self.assertEqual(events["max"], self.value("container", "memory_failures_total"))
        self.assertEqual(1, self.value("container", "memory_oom_kills_total"))
        self.assertEqual(0, self.value("pod", "memory_oom_kills_total"))

    def test_bytes_are_counted_by_device(self):
        device, *pairs = self.file("job", "io.stat").split()
        stat = {key: int(value) for key, value in (pair.split("=") for pair in pairs)}
        self.assertEqual(("1:0", 2 * MIB, 4 * MIB), (device, stat["rbytes"], stat["wbytes"]))
        for family, key in (("read_bytes", "rbytes"), ("written_bytes", "wbytes"), ("reads", "rios"),
                            ("writes", "wios")):
            self.assertEqual(stat[key], self.value("job", f"io_{family}_total", device="ram0"), family)
            self.assertEqual([], self.values("pod", f"io_{family}_total"))

    def test_pressure_is_told(self):
        for group in ("container", "pod", "job", "inner"):
            for resource in ("cpu", "memory", "io"):
                for stall, total in re.findall(r"(some|full) .*total=(\d+)", self.file(group, f"{resource}.pressure")):
                    self.assertEqual(Decimal(total) / 10**6, self.value(
                        group, "pressure_seconds_total", resource=resource, stall=stall), (group, resource, stall))
        self.assertGreater(self.value("pod", "pressure_seconds_total", resource="cpu", stall="some"), 0)

    def test_tasks_are_counted(self):
        self.assertEqual((4, 1, 1), tuple(self.value(group, "pids") for group in ("container", "pod", "job")))

    def test_huge_pages_are_not_in_the_memory(self):
        self.assertEqual(4 * MIB, self.value("job", "hugetlb_bytes", page_bytes=str(2 * MIB)))
        self.assertEqual(0, self.value("pod", "hugetlb_bytes", page_bytes=str(2 * MIB)))
        self.assertLess(self.value("job", "memory_rss_bytes"), 4 * MIB)

    def test_what_the_kernel_does_not_count_is_absent(self):
        self.assertEqual("", self.file("job", "rdma.current"))
        self.assertEqual([], self.values("job", "rdma_handles"))
        shown = {name for name, labels in self.page.series if ("id", "bare.service") in labels}
        self.assertEqual({PREFIX + name for name in ("cpu_seconds_total", "cpus", "info", "pressure_seconds_total")}, shown)


if __name__ == "__main__":
    harness.main()
