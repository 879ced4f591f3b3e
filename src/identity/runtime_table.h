/* Every container runtime, in the order of polling and of --help. */
#pragma once

enum { RUNTIME_TABLE_MAX = 8 };

struct runtime_ops;

extern const struct runtime_ops runtime_cri, runtime_docker, runtime_podman;
extern const struct runtime_ops *const runtime_table[]; /* NULL-terminated */
