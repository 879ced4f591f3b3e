/* Signals: those that the program handles are read from a descriptor; others that would end it by
 * default are ignored. docs/configuration.md has the table. */
#pragma once

#include <stddef.h>

/* Ignores timers, SIGUSR2, SIGIO, SIGPWR and real-time signals, which are never meant to end us.
 * SIGPIPE and SIGXFSZ, too: then the write fails. */
void signals_ignore_stray(void);

/* Keeps these pending. Before any thread starts, so that all leave them to signals_open. */
void signals_block(const int *numbers, size_t count);

/* Blocks these; a non-blocking signalfd that reads them, or -errno. */
int signals_open(const int *numbers, size_t count);
