#include "cli/run_live.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

/* A short command is over before anybody has read it. */
static const uint64_t QUIET_US = 2 * USEC_PER_SEC;

static bool is_same_terminal(void)
{
    struct stat out, err;

    return isatty(STDOUT_FILENO) && fstat(STDOUT_FILENO, &out) == 0 &&
           fstat(STDERR_FILENO, &err) == 0 && out.st_rdev == err.st_rdev;
}

void run_live_init(struct run_live *live, bool is_allowed)
{
    *live =
        (struct run_live){.is_wanted = is_allowed && isatty(STDERR_FILENO) && !is_same_terminal()};
}

void run_live_show(struct run_live *live, uint64_t wall_us, double joules, double watts)
{
    char text[128];

    if (!live->is_wanted || wall_us < QUIET_US || tcgetpgrp(STDERR_FILENO) != getpgrp())
        return;
    snprintf(text, sizeof(text), "\r\033[Kwattribute: %.0f s, %.1f J, %.1f W\r",
             (double)wall_us / 1e6, joules, watts);
    live->is_shown = fs_write_all(STDERR_FILENO, text, strlen(text)) == 0;
}

void run_live_clear(struct run_live *live)
{
    static const char *const CLEAR = "\r\033[K";

    if (live->is_shown)
        (void)fs_write_all(STDERR_FILENO, CLEAR, strlen(CLEAR));
    live->is_shown = false;
}
