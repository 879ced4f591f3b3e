/*
 * Capabilities of the collector: what each source and feature needs, for which file, and what is
 * lost without it. All others are given up at the start, however it is started. The table in
 * docs/systemd.md is made from this one (a test compares them).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/options.h"

/* What is known of a run. */
struct capability_context {
    const struct options *options;
    const char *kernel_release; /* "6.1.0-18-amd64" */
    bool has_children;          /* `serve` */
    bool runs_command;          /* `run` */
    bool writes_file;           /* `record`, `run` */
    bool reads_traces;          /* `replay` */
};

struct capability_use {
    const char *feature;
    unsigned capability;
    const char *name;
    const char *object; /* file or call */
    const char *loss;
    bool (*is_needed)(const struct capability_context *context);
};

extern const struct capability_use capability_uses[];
extern const size_t capability_uses_count;

/* The set, as 1 << CAP_NAME. */
uint64_t capabilities_needed(const struct capability_context *context);
