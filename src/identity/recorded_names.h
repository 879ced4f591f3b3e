/*
 * Recorded names: how a trace calls its workloads. They stand in for identity, which knows only the
 * processes of this node, where a trace is played. Pure; not thread-safe.
 */
#pragma once

#include <stdbool.h>

#include "model/sample.h"
#include "model/snapshot.h"

enum { RECORDED_NAMES_MAX = 65536 }; /* workloads; those beyond stay without names */

struct recorded_names;

int recorded_names_new(struct recorded_names **ret_names);
void recorded_names_free(struct recorded_names *names); /* accepts NULL */

/* Takes what is told of a workload, in place of what was told of it before. 1, or 0 if that is
 * nothing new, or -ENOMEM. */
int recorded_names_learn(struct recorded_names *names, const struct sample_names *news);

/* As pipeline_find_names; `context` is the recorded names. Whom nobody named has no name. */
bool recorded_names_find(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names);

/* Adds the info rows of the snapshot's workloads. The names must outlive it. */
int recorded_names_describe(const struct recorded_names *names, struct snapshot *snapshot);
