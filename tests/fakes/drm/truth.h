/* What the writers of files ask of a script, besides what tests do. Work is in thousandths of all
 * that a process can use, times microseconds. */
#pragma once

#include "machine.h"

size_t fake_process_count(const struct fake_script *script);
bool fake_is_running(const struct fake_process *process, uint64_t t_us);
bool fake_is_in_kfd(const struct fake_process *process, uint64_t t_us);
uint64_t fake_work(const struct fake_process *process, uint64_t t_us);
unsigned fake_share(const struct fake_process *process, uint64_t t_us); /* at this instant */

/* AMD's accumulator, in units of 2^-16 J. */
uint64_t fake_energy_count(const struct fake_script *script, unsigned board, uint64_t t_us);

/* Over the processes of a board, each by its part of the board; of one XCC, if that is not -1. */
uint64_t fake_board_sum(const struct fake_script *script, unsigned board, int xcc,
                        uint64_t (*of)(const struct fake_process *process, uint64_t t_us),
                        uint64_t t_us);
unsigned fake_busy_permille(const struct fake_script *script, unsigned board, uint64_t t_us);
