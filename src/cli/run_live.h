/*
 * The line that shows what a long command has used so far, on a terminal. Nothing is shown where
 * the command's output goes to the same terminal, or while another process group has it. The line
 * is written over, and removed at the end; the cursor stays at its beginning, so that a message of
 * the command replaces it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct run_live {
    bool is_wanted, is_shown;
};

/* Are its conditions given? */
void run_live_init(struct run_live *live, bool is_allowed);
void run_live_show(struct run_live *live, uint64_t wall_us, double joules, double watts);
void run_live_clear(struct run_live *live);
