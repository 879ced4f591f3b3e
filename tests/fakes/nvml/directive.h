/*
 * The lines `T_US X GPU WORDS...` of a scenario: what the driver does wrong, and what a recorded
 * trace does not hold. A directive holds from its time on; the last one of its sort is valid.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum directive_sort {
    DIRECTIVE_ERROR,      /* symbol, code */
    DIRECTIVE_HANG,       /* symbol, ms */
    DIRECTIVE_LOST,       /* 1 lost, 0 back */
    DIRECTIVE_DRIVER,     /* 0 unloaded, 1 loaded; for all GPUs */
    DIRECTIVE_MIG,        /* 0 or 1 */
    DIRECTIVE_MONITOR,    /* 0 or 1: the right to see all MIG instances */
    DIRECTIVE_DESTROYED,  /* code of calls on a MIG device that is gone */
    DIRECTIVE_NO_ENERGY,  /* 1 */
    DIRECTIVE_ACCOUNTING, /* 0 or 1 */
    DIRECTIVE_ACCOUNT,    /* pid, start us, ms, utilisation % */
    DIRECTIVE_XID,        /* number */
    DIRECTIVE_LIMIT,      /* mW */
    DIRECTIVE_THROTTLE,   /* mask */
    DIRECTIVE_ECC,        /* corrected, uncorrected */
    DIRECTIVE_FIELD,      /* field id, value */
    DIRECTIVE_PIDS,       /* text: the file */
    DIRECTIVE_RESERVED,   /* bytes */
    DIRECTIVE_SAMPLES,    /* 0 each, 1 mean */
    DIRECTIVE_LOOP,       /* 1 */
};

enum { DIRECTIVE_ALL = -1 };

struct directive {
    uint64_t t_us;
    uint64_t line; /* keeps the order of equal times */
    int gpu;       /* or DIRECTIVE_ALL */
    enum directive_sort sort;
    uint64_t values[4];
    char *text;
};

struct directives {
    struct directive *items;
    size_t count;
    size_t size;
};

/* Takes the words after the GPU. NULL, or what is wrong with them. */
const char *directives_add(struct directives *directives, uint64_t t_us, uint64_t line, int gpu,
                           char *words);
/* Puts them in order of time; call it once, after the last one. */
void directives_sort(struct directives *directives);
void directives_destroy(struct directives *directives);

/* The last directive of a sort for a GPU at a time, or NULL. For errors, hangs and fields `key` is
 * the symbol or the field id. With DIRECTIVE_ALL only those for all GPUs are looked at. */
const struct directive *directives_last(const struct directives *directives,
                                        enum directive_sort sort, uint64_t key, int gpu,
                                        uint64_t t_us);

/* The first value of directives_last, or a default. */
uint64_t directives_value(const struct directives *directives, enum directive_sort sort, int gpu,
                          uint64_t t_us, uint64_t otherwise);
