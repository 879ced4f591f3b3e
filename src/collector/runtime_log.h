/* Says once, for each change, which runtimes were found, went down or came back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "identity/identity.h"

enum { RUNTIME_LOG_MAX = 24 };

struct runtime_log {
    struct {
        char name[128];
        bool up;
    } seen[RUNTIME_LOG_MAX];
    size_t count;
};

void runtime_log_note(struct runtime_log *log, struct identity *identity);
