/* Names of this architecture's system calls; the table is made from the C library's headers by
 * tools/syscall-names. */
#pragma once

#include <stddef.h>

/* By number. NULL: the headers have no such call. */
extern const char *const syscall_names[];
extern const size_t syscall_names_count;
