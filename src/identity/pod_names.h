/*
 * Names of pods by their uids, as the runtime says them of a sandbox or of any container in it, or
 * as the API server does. A container that nobody knows any more still has the pod that its cgroup
 * names. Not thread-safe: the directory's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/table.h"

enum {
    POD_NAMES_MAX = 16384,
    POD_NAMES_UNWANTED_MAX = 4096, /* of hints at pods that nobody was seen in */
};

struct pod_name {
    struct table_entry entry;
    char *uid;
    char *namespace, *name;
    bool wanted; /* a process was seen in it */
    bool known;  /* a runtime has told */
    bool hinted; /* somebody else has, which is good until a runtime tells */
    uint64_t used_us;
};

struct pod_names {
    struct table table;
    size_t unwanted_count;
};

void pod_names_done(struct pod_names *names);

/* A process was seen in the pod. Without room for it, it gets no name; nor does "". */
void pod_names_want(struct pod_names *names, const char *uid, uint64_t now_us);

/* Takes what a runtime says, or a hint, which never replaces that. */
void pod_names_learn(struct pod_names *names, const char *uid, const char *namespace,
                     const char *name, bool is_hint, uint64_t now_us);

/* Was a process seen in the pod, and has no runtime said yet what it is called? */
bool pod_names_is_missing(const struct pod_names *names, const char *uid);

/* NULL if nobody has told. Valid until it expires. */
const struct pod_name *pod_names_find(struct pod_names *names, const char *uid, uint64_t now_us);

/* Forgets what nobody has used since. */
void pod_names_expire(struct pod_names *names, uint64_t before_us);
