/*
 * A library for LD_PRELOAD that lets a test decide which call of libc fails, and what time it is.
 *
 * FAULT_PAGE names a file of struct fault_page, which the test makes and both map;
 * tests/e2e/faults.py is the other side. Calls count from main() on. FAULT_ROLE names the child of
 * the collector that is meant instead (`server`): the collector does not hand on its environment,
 * so the shim adds what the child needs when it is spawned.
 *
 * FAULT_CLOCK is a descriptor over which the test drives the clock: see clock.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAULT_ROWS_MAX = 96, FAULT_PAGE_VERSION = 1 };

/* Beside positive errno. */
enum { FAULT_SHORT = -1, FAULT_EOF = -2 };

/* What the shim knows of a kind, written by it. */
struct fault_row {
    char kind[24];
    char errors[104];
    uint64_t calls;
};

struct fault_page {
    uint64_t version; /* written by the test; the shim ends the program if it is another */
    char kind[24];    /* which calls fail; "": none */
    int64_t error;    /* as of fault_row.errors: errno, EAI_*, FAULT_SHORT or FAULT_EOF */
    uint64_t from;    /* the first that fails, counted from 1 */
    uint64_t count;   /* how many fail */
    uint64_t failed;  /* how many did; written by the shim */
    struct fault_row rows[FAULT_ROWS_MAX];
};

/* This thread runs the program's own code; before that, a sanitizer's, which must not fail. */
extern _Thread_local bool shim_is_program;

/* The next definition of a symbol: libc's, or a sanitizer's. */
void *shim_next(const char *symbol);

/* clock.c: takes the time over, if FAULT_CLOCK is set. */
void clock_start(void);

/* waits.c: the function to call instead of libc's, or NULL. */
void *clock_replacement(const char *symbol);
