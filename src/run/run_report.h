/* The report of `wattribute run`: text for people, and JSON that `wattribute diff` reads. Pure. */
#pragma once

#include "core/buffer.h"
#include "model/report.h"
#include "run/compare.h"
#include "run/result.h"

struct run_report {
    char *const *argv;
    const char *node;
    uint64_t time_us;   /* when it began, since the epoch */
    const char *daemon; /* whom it asked; NULL: nobody */
    bool has_own_cgroup;
    const struct result *runs;      /* at least one */
    size_t count, wanted;           /* fewer: one of them failed */
    const struct report *findings;  /* what could not be measured, and what to do */
    const struct run_summary *last; /* of the same command; NULL: none is known */
};

void run_report_text(const struct run_report *report, struct buffer *out);
void run_report_json(const struct run_report *report, struct buffer *out);

/* "python3 train.py --epochs 1", quoted where a shell would need it, and not longer than the
 * buffer.
 */
void run_report_command(char *const *argv, char *text, size_t size_bytes);
