/* How far a report is, on a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "report/fetch.h"

struct report_progress {
    bool is_wanted, is_shown;
    uint64_t shown_us;
};

void report_progress_init(struct report_progress *progress);
/* For a fetch_consumer; the context is a struct report_progress. */
bool report_progress_show(void *context, const struct fetch_progress *progress);
void report_progress_clear(struct report_progress *progress);
