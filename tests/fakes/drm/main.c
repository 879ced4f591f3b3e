/*
 * A scripted machine in real time, for exporters that run beside: NAME DIRECTORY SECONDS.
 *
 * Writes its files below the directory, says "ready", and goes on for so long, or until whoever
 * started it ends. The file `truth` has what the script knows: "board N UJ", where the counter of
 * each board is, and "process PID UJ", what each process has caused above idle.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tree.h"
#include "truth.h"

enum { STEP_US = 20000, TRUTH_BYTES = 4096 };

static uint64_t now_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void write_truth(const struct fake_machine *machine, uint64_t t_us)
{
    const struct fake_script *script = machine->script;
    char text[TRUTH_BYTES];
    int len = 0;

    for (unsigned i = 0; i < fake_board_count(script); i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "board %u %" PRIu64 "\n", i,
                        fake_counter_uj(script, i, t_us));
    for (size_t i = 0; i < fake_process_count(script); i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "process %u %.0f\n",
                        script->processes[i].pid, fake_truth_j(&script->processes[i], t_us) * 1e6);
    fake_tree_put(machine, "truth", text, (size_t)len);
}

int main(int argc, char **argv)
{
    struct fake_machine machine;
    pid_t parent = getppid();
    uint64_t start_us, end_us;

    if (argc != 4) {
        fprintf(stderr, "usage: %s NAME DIRECTORY SECONDS\n", argv[0]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    start_us = now_us(CLOCK_MONOTONIC);
    end_us = start_us + strtoull(argv[3], NULL, 10) * 1000000;
    fake_machine_init(&machine, fake_script_find(argv[1]), argv[2],
                      now_us(CLOCK_REALTIME) / 1000000, true);
    write_truth(&machine, 0);
    puts("ready");
    fflush(stdout);
    while (getppid() == parent && now_us(CLOCK_MONOTONIC) < end_us) {
        uint64_t t_us;

        usleep(STEP_US);
        t_us = now_us(CLOCK_MONOTONIC) - start_us;
        fake_machine_write(&machine, t_us);
        write_truth(&machine, t_us);
    }
    return 0;
}
