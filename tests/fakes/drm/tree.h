/* Writing the files of a machine, by paths below its root. */
#pragma once

#include "machine.h"

_Noreturn __attribute__((format(printf, 1, 2))) void fake_die(const char *format, ...);

/* Whoever has its directory open, sees the new text. Directories around it are made. */
void fake_tree_put(const struct fake_machine *machine, const char *path, const void *data,
                   size_t len);
__attribute__((format(printf, 3, 4))) void fake_tree_print(const struct fake_machine *machine,
                                                           const char *path, const char *format,
                                                           ...);
/* Nothing happens if there is one. */
void fake_tree_link(const struct fake_machine *machine, const char *path, const char *target);
void fake_tree_make_directory(const struct fake_machine *machine, const char *path);
/* With all that is in it; it need not be there. */
void fake_tree_remove(const struct fake_machine *machine, const char *path);
