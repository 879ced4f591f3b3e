/*
 * Recorded names: the names that a trace has for its workloads. They replace identity, which knows
 * only the processes of this node, in a replay. Pure; not thread-safe.
 */
#pragma once

#include <stdbool.h>

#include "model/sample.h"
#include "model/snapshot.h"

enum { RECORDED_NAMES_MAX = 65536 }; /* workloads; more stay without names */

struct recorded_names;

int recorded_names_new(struct recorded_names **ret_names);
void recorded_names_free(struct recorded_names *names); /* accepts NULL */

/* Replaces the names of a workload. 1, 0: they are the same, or -ENOMEM. */
int recorded_names_learn(struct recorded_names *names, const struct sample_names *news);

/* As pipeline_find_names; `context` is the recorded names. Unknown workloads have empty names. */
/* As identity_find_vm. */
bool recorded_names_find_vm(void *context, const char *vm, bool is_uuid,
                            struct workload_owner *ret_owner);

bool recorded_names_find(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names);

/* Adds the info rows of the snapshot's workloads. The names must outlive it. */
int recorded_names_describe(const struct recorded_names *names, struct snapshot *snapshot);
