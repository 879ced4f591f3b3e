#include "cli/report_progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/macros.h"

enum { BAR = 30 };

static const uint64_t EVERY_US = USEC_PER_SEC / 10;

void report_progress_init(struct report_progress *progress)
{
    *progress = (struct report_progress){.is_wanted = isatty(STDERR_FILENO) == 1};
}

bool report_progress_show(void *context, const struct fetch_progress *at)
{
    static const char FULL[] = "##############################";
    struct report_progress *progress = context;
    uint64_t now_us = clock_system.monotonic_us(&clock_system);
    int filled = at->count > 0 ? (int)(BAR * at->done / at->count) : 0;
    char text[192];

    if (!progress->is_wanted ||
        (progress->is_shown && now_us < progress->shown_us + EVERY_US && at->done < at->count))
        return true;
    progress->shown_us = now_us;
    snprintf(text, sizeof(text), "\r\033[K[%-*.*s] %zu/%zu, %.1f million samples%s", BAR,
             MIN(filled, (int)BAR), FULL, at->done, at->count, (double)at->samples / 1e6,
             at->retries > 0 ? ", the server is slow: retrying" : "");
    progress->is_shown = fs_write_all(STDERR_FILENO, text, strlen(text)) == 0;
    return true;
}

void report_progress_clear(struct report_progress *progress)
{
    static const char CLEAR[] = "\r\033[K";

    if (progress->is_shown)
        (void)fs_write_all(STDERR_FILENO, CLEAR, strlen(CLEAR));
    progress->is_shown = false;
}
