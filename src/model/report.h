/* The findings of `wattribute check`, with remedies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/macros.h"

enum { REPORT_FINDINGS_MAX = 512 };

enum verdict {
    VERDICT_OK,
    VERDICT_LIMITED, /* it works, with less than there could be */
    VERDICT_MISSING, /* it is not there */
    VERDICT_FAILED,  /* it is there and does not work */
    VERDICT_COUNT,
};

/* What all of it comes to, also as the exit status of `check`. */
enum report_outcome {
    REPORT_WORKS = 0,   /* everything that is there does */
    REPORT_NOTHING = 1, /* there is nothing to book */
    REPORT_REFUSED = 2, /* `serve` does not start with these flags */
    REPORT_FAILED = 3,  /* there is something to book, but something else failed */
};

struct finding {
    char what[64];
    enum verdict verdict;
    char detail[sizeof(struct error)]; /* as long as one */
    const char *remedy;                /* NULL: nothing to do */
};

struct report {
    struct finding findings[REPORT_FINDINGS_MAX];
    size_t count;
    /* For the summary. */
    size_t verdicts[VERDICT_COUNT]; /* of all findings, also of those beyond the cap */
    size_t meters;                  /* without GPUs and the model */
    size_t gpus;
    bool has_shared_gpu; /* of NVIDIA: several processes use it */
    bool has_model;      /* the power of the processors is estimated */
    size_t workloads;
    bool is_hung;    /* a thread that reports hangs, and goes on to use its context */
    bool is_refused; /* `serve` does not start with these flags */
};

enum report_outcome report_outcome(const struct report *report);

/* Adds a finding; those beyond the cap are only counted. `remedy` must outlive the report. */
void report_add(struct report *report, const char *what, enum verdict verdict, const char *remedy,
                const char *format, ...) PRINTF(5, 6);

/* Adds the findings, GPUs and meters of another. */
void report_take(struct report *report, const struct report *other);

/* Both end with the summary. Names in findings are anybody's, and control no terminal. */
void report_print_text(const struct report *report, bool in_colour, struct buffer *out);
void report_print_json(const struct report *report, struct buffer *out);
