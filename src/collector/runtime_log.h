/* Says once, for each change, which runtimes were found, went down or came back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/options.h"
#include "identity/identity.h"

enum { RUNTIME_LOG_MAX = 24 };

struct runtime_log {
    struct {
        char name[128];
        bool up;
    } seen[RUNTIME_LOG_MAX];
    size_t count;
};

/* Says which sockets were named and are not there. They are looked for all the same. */
void runtime_log_sockets(const struct options *options);

void runtime_log_note(struct runtime_log *log, struct identity *identity);
