/*
 * Signals: those that the program acts on are read from a descriptor; of the others, those that
 * would end it by default are ignored. docs/configuration.md has the table.
 */
#pragma once

#include <stddef.h>

enum { SIGNALS_NAME_BYTES = 16 };

/*
 * Ignores what ends a process by default and is never meant to end ours: timers, SIGUSR2, SIGIO,
 * SIGPWR, real-time signals. SIGPIPE and SIGXFSZ, too: the write then fails, and says why.
 */
void signals_ignore_stray(void);

/* Keeps these pending instead of having them end the process. Before any thread starts, so that
 * all of them leave the signals to signals_open. */
void signals_block(const int *numbers, size_t count);

/* Blocks these; a non-blocking signalfd that reads them, or -errno. */
int signals_open(const int *numbers, size_t count);

/* "SIGTERM", or "signal 77". */
const char *signals_name(int number, char text[SIGNALS_NAME_BYTES]);
