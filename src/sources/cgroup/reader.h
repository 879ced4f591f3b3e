/*
 * Reader: what the cgroups of all workloads have used. Files stay open, and each is read once a
 * cycle, in one piece: an open descriptor never shows another cgroup, even if one of the same name
 * is created (measured: ENODEV). Not thread-safe.
 *
 * A workload that ends takes its counters with it. cgroup_reader_attend reads short workloads, and
 * the last seconds of long ones, between two cycles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "host/cgroup_hierarchy.h"
#include "host/host.h"
#include "model/scopes.h"
#include "model/usage.h"
#include "sources/cgroup/parse.h"
#include "sources/cgroup/tree.h"

enum {
    CGROUP_FILES_MAX = 40,
    CGROUP_FILE_NAME_BYTES = 48,
    /* The longest files are memory.stat and io.stat, of a few KiB. */
    CGROUP_READER_BUFFER_BYTES = 64 << 10,
    /* More that begin at the same time are read by cycles only. */
    RECENT_MAX = 256,
};
_Static_assert(CGROUP_FILES_MAX <= 64, "a bit for each file");

#define CGROUP_READER_NEVER UINT64_MAX
#define CGROUP_NO_LIMITS    ((struct cgroup_limits){UINT64_MAX, UINT64_MAX, UINT64_MAX})

/* A file that cgroups have on this machine. */
struct cgroup_file {
    char name[CGROUP_FILE_NAME_BYTES];
    int hierarchy;                      /* index */
    const struct cgroup_format *format; /* NULL: the size of huge pages in use */
    uint64_t page_bytes;                /* of those */
    uint32_t fields;                    /* bits; see cgroup_format_fields */
};

struct cgroup_files {
    struct cgroup_file items[CGROUP_FILES_MAX];
    size_t count;
};

/*
 * Workloads that have just begun, and when each is read again. A short one may end before the next
 * cycle, and v1 does not report when: so it is read whenever its age has grown by an eighth, until
 * that is as long as a cycle. At most a ninth of its life goes unseen (or 50 ms), for about 45
 * reads in all.
 */
struct recents {
    struct {
        uint64_t id;
        uint64_t born_us; /* when it was first read */
        uint64_t due_us;  /* 0: at once */
    } items[RECENT_MAX];
    size_t count;
};

struct cgroup_workload {
    struct cgroup_handle node;
    int fds[CGROUP_FILES_MAX];
    size_t fd_count;
    uint64_t opened; /* bits of the files that were ever open */
    uint32_t first_turn;
    bool must_open;
    bool is_read; /* at least once */
    bool is_late; /* it appeared after the first cycle */
    struct cgroup_limits limits;
    uint64_t around_id; /* once it has ended: of the item around it, or 0 */
};

struct cgroup_reader {
    struct hierarchies hierarchies;
    struct cgroup_files files;
    struct cgroup_tree tree;
    /* What was read, in the order of appearance, ended workloads with their last values until they
     * are reported. Valid until the reader is called again. */
    struct usage_owner *items;         /* by id */
    struct cgroup_workload *workloads; /* of the items */
    size_t count, capacity;
    size_t kept_files, kept_files_max;
    uint64_t last_id;
    bool has_reported;
    uint32_t turn; /* rescans, from 1 on */
    struct recents recents;
    struct scopes scopes; /* of the items that have not ended */
    bool is_started;      /* what appears from now on has just begun */
    bool is_attending;
    size_t files_failed; /* of the last cycle: could be opened but not read, or were too large */
    size_t unkept;       /* workloads whose files are opened each time: too many descriptors */
    struct usage_storage room;
    char buffer[CGROUP_READER_BUFFER_BYTES];
};

/*
 * The host stays the caller's. Reads CGROUP_WORKLOADS_MAX workloads, whatever --max-workloads says:
 * the ledger sums up those beyond it, and for that their usage must be known. Of one scope as many
 * are read as have room there (model/scopes.h): the usage of others stays with the workload around
 * them. Keeps descriptors up to the soft RLIMIT_NOFILE, less some for others; each
 * costs 4.7 KB of kernel memory that is charged to us (measured, Linux 6.18). 0, -ENOMEM, or
 * -ENOENT: no cgroup file system is mounted.
 */
int cgroup_reader_new(const struct host *host, cgroup_find_owner *find_owner,
                      struct cgroup_reader **ret_reader);
void cgroup_reader_free(struct cgroup_reader *reader);

/*
 * One cycle: finds what has come and gone, and reads. With `rescan`, all directories are listed and
 * limits read again; the first cycle is one. A file that fails costs its own values, for this
 * cycle. May block as long as the file system does.
 */
void cgroup_reader_read(struct cgroup_reader *reader, bool rescan);

/*
 * Between two cycles, whenever tree.inotify_fd is readable and at the time that the last call
 * returned (CGROUP_READER_NEVER: at the next event): finds what has come and gone, and reads what
 * has begun or may be about to end. Does nothing before the first cycle. Costs as much as happens;
 * the caller must bound that.
 */
uint64_t cgroup_reader_attend(struct cgroup_reader *reader, uint64_t now_us);

/* The items have been counted: the next cycles are compared with them, and ended ones are
 * dropped. */
void cgroup_reader_set_reported(struct cgroup_reader *reader);

/* Due at once; no two have the same id. */
void recents_add(struct recents *recents, uint64_t id);
void recents_remove(struct recents *recents, uint64_t id);

/* Calls `read` for those that are due, and drops those that are old. Returns when the next is due,
 * or CGROUP_READER_NEVER. `read` returns whether the kernel will report the end, and must not add
 * or remove any. */
uint64_t recents_read(struct recents *recents, uint64_t now_us,
                      bool (*read)(void *context, uint64_t id), void *context);

/* From here on: files.c, for reader.c only. */

/* Lists the sizes of huge pages in the host's sysfs, once. */
void cgroup_files_choose(const struct hierarchies *hierarchies, const struct host *host,
                         struct cgroup_files *ret_files);

/* Reads all files of one workload. With `rescan`, those that are due are opened anew. */
void cgroup_workload_read(struct cgroup_reader *reader, size_t index, bool rescan);
void cgroup_workload_close(struct cgroup_reader *reader, struct cgroup_workload *workload);

/* limits.c: reads the limits of the workload, once a turn. */
void cgroup_limits_update(struct cgroup_reader *reader, struct cgroup_workload *workload,
                          struct cgroup_node *node);
