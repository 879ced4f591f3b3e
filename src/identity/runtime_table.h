/* Every runtime there is, in the order in which they are asked and of --help. */
#pragma once

enum { RUNTIME_TABLE_MAX = 8 };

struct runtime_ops;

extern const struct runtime_ops *const runtime_table[]; /* ended by NULL */
