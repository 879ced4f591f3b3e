/* What reader.c (cycles) and workload_files.c (the files of one workload) share. */
#pragma once

#include "sources/cgroup/files.h"
#include "sources/cgroup/reader.h"
#include "sources/cgroup/recent.h"

/* The longest files are memory.stat and io.stat, of a few KiB. */
enum { CGROUP_READER_BUFFER_BYTES = 64 << 10 };

#define CGROUP_NO_LIMIT UINT64_MAX
_Static_assert(CGROUP_FILES_MAX <= 64, "a bit for each file");

struct cgroup_workload {
    struct cgroup_handle node;
    bool has_ended;
    int fds[CGROUP_FILES_MAX];
    size_t fd_count;
    uint64_t opened; /* bits of the files that were open at some time */
    uint32_t first_turn;
    bool must_open;
    bool is_read; /* at least once */
    bool is_late; /* it appeared after the first cycle */
    uint64_t limit_bytes;
    uint64_t around_id; /* once it has ended: of the item that it was in, or 0 */
};

struct cgroup_reader {
    struct hierarchies hierarchies;
    struct cgroup_files files;
    struct cgroup_tree tree;
    struct usage_owner *items;         /* by id */
    struct cgroup_workload *workloads; /* of the items */
    size_t count, capacity;
    size_t kept_files, kept_files_max;
    uint64_t last_id;
    bool has_reported;
    uint32_t turn; /* rescans, from 1 on */
    struct recents youngs;
    bool is_started; /* what appears from now on has just begun */
    bool is_attending;
    struct cgroup_reader_stats stats;
    struct usage_room room;
    char buffer[CGROUP_READER_BUFFER_BYTES];
};

/* NULL: it has ended. */
struct cgroup_node *cgroup_workload_node(const struct cgroup_reader *reader,
                                         const struct cgroup_workload *workload);

/* Reads all files of one workload. With `rescan`, those that are due are opened anew. */
void cgroup_workload_read(struct cgroup_reader *reader, size_t index, bool rescan);
void cgroup_workload_close(struct cgroup_reader *reader, struct cgroup_workload *workload);
