/* What a script says of an instant: integrals of piecewise constant functions, exact in integers.
 */
#include <string.h>

#include "truth.h"

static const uint64_t US_PER_MS = 1000;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of one round of steps: thousandths times microseconds until then. */
static uint64_t integrate_round(const struct fake_load *load, uint64_t t_us, uint64_t *ret_round_us)
{
    uint64_t at_us = 0, sum = 0;

    for (size_t i = 0; i < FAKE_STEPS_MAX; i++) {
        uint64_t step_us = load->steps[i].ms * US_PER_MS;
        uint64_t left_us = t_us > at_us ? t_us - at_us : 0;

        sum += (step_us ? smaller(left_us, step_us) : left_us) * load->steps[i].permille;
        at_us += step_us;
        if (step_us == 0)
            break;
    }
    *ret_round_us = at_us;
    return sum;
}

static uint64_t integrate(const struct fake_load *load, uint64_t t_us)
{
    uint64_t round_us, whole = integrate_round(load, UINT32_MAX * US_PER_MS, &round_us);

    if (!load->repeats)
        return integrate_round(load, t_us, &round_us);
    return t_us / round_us * whole + integrate_round(load, t_us % round_us, &round_us);
}

bool fake_is_running(const struct fake_process *process, uint64_t t_us)
{
    return t_us >= process->from_ms * US_PER_MS &&
           (process->until_ms == 0 || t_us < process->until_ms * US_PER_MS);
}

bool fake_is_in_kfd(const struct fake_process *process, uint64_t t_us)
{
    return !process->engine && !process->client_of &&
           (fake_is_running(process, t_us) ||
            (t_us >= process->from_ms * US_PER_MS && t_us < process->kfd_until_ms * US_PER_MS));
}

uint64_t fake_work(const struct fake_process *process, uint64_t t_us)
{
    uint64_t from_us = process->from_ms * US_PER_MS;

    if (process->client_of || t_us <= from_us)
        return 0;
    if (process->until_ms)
        t_us = smaller(t_us, process->until_ms * US_PER_MS);
    return integrate(&process->load, t_us - from_us);
}

unsigned fake_share(const struct fake_process *process, uint64_t t_us)
{
    if (!fake_is_running(process, t_us))
        return 0;
    return (unsigned)(fake_work(process, t_us + 1) - fake_work(process, t_us));
}

double fake_truth_j(const struct fake_process *process, uint64_t t_us)
{
    return (double)(process->watts * fake_work(process, t_us)) / 1e9;
}

size_t fake_board_count(const struct fake_script *script)
{
    size_t count = 0;

    while (count < FAKE_BOARDS_MAX && script->boards[count].chip)
        count++;
    return count;
}

size_t fake_process_count(const struct fake_script *script)
{
    size_t count = 0;

    while (count < FAKE_PROCESSES_MAX && script->processes[count].pid)
        count++;
    return count;
}

/* The board whose counter has the energy of this one. */
static unsigned counting_board(const struct fake_script *script, unsigned board)
{
    return script->boards[board].is_second_die ? board - 1 : board;
}

/* Sums over what the board's counter counts: thousandths of watts, times `of` of each process. */
static uint64_t sum_watts(const struct fake_script *script, unsigned board, uint64_t idle_permille,
                          uint64_t (*of)(const struct fake_process *process, uint64_t t_us),
                          uint64_t t_us)
{
    uint64_t sum = 0;

    if (script->boards[board].is_second_die)
        return 0;
    for (unsigned i = 0; i < fake_board_count(script); i++)
        if (counting_board(script, i) == board)
            sum += script->boards[i].idle_w * idle_permille;
    for (size_t i = 0; i < fake_process_count(script); i++)
        if (counting_board(script, script->processes[i].board) == board)
            sum += script->processes[i].watts * of(&script->processes[i], t_us);
    return sum;
}

static uint64_t share_now(const struct fake_process *process, uint64_t t_us)
{
    return fake_share(process, t_us);
}

/* Watts times thousandths times microseconds are nanojoules. */
static uint64_t energy_nj(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    return sum_watts(script, board, 1000 * t_us, fake_work, t_us);
}

uint64_t fake_energy_uj(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    return script->boards[board].first_uj + energy_nj(script, board, t_us) / 1000;
}

uint64_t fake_energy_count(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    unsigned __int128 nj =
        (unsigned __int128)script->boards[board].first_uj * 1000 + energy_nj(script, board, t_us);

    return (uint64_t)(nj * 65536 / 1000000000);
}

uint64_t fake_counter_uj(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    if (strcmp(script->boards[board].chip->driver, "amdgpu") != 0)
        return fake_energy_uj(script, board, t_us);
    return (uint64_t)((unsigned __int128)fake_energy_count(script, board, t_us) * 15625 / 1024);
}

uint64_t fake_power_uw(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    return sum_watts(script, board, 1000, share_now, t_us) * 1000;
}

uint64_t fake_board_sum(const struct fake_script *script, unsigned board, int xcc,
                        uint64_t (*of)(const struct fake_process *process, uint64_t t_us),
                        uint64_t t_us)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < fake_process_count(script); i++) {
        const struct fake_process *process = &script->processes[i];
        unsigned xccs = script->boards[board].chip->xccs;
        unsigned parts = process->partitions ? process->partitions : 1;

        if (process->board != board)
            continue;
        if (xcc < 0)
            sum += of(process, t_us) / parts;
        else if ((unsigned)xcc * parts / xccs == process->partition)
            sum += of(process, t_us);
    }
    return sum;
}

unsigned fake_busy_permille(const struct fake_script *script, unsigned board, uint64_t t_us)
{
    return (unsigned)smaller(1000, fake_board_sum(script, board, -1, share_now, t_us));
}
