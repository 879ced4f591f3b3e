/* Which files of a cgroup are read on this machine, and what each of them tells. */
#pragma once

#include "core/span.h"
#include "model/usage.h"
#include "sources/cgroup_hierarchy.h"

enum { CGROUP_FILES_MAX = 40, CGROUP_FILE_NAME_BYTES = 48 };

/* What a file tells: bits of enum usage_field, of enum usage_io_field from TELLS_IO_SHIFT on, and
 * TELLS_RDMA. */
enum { TELLS_IO_SHIFT = 24, TELLS_RDMA = 1 << 28 };
_Static_assert((int)USAGE_FIELDS <= TELLS_IO_SHIFT, "the bits of what a file tells are used up");

struct cgroup_file {
    char name[CGROUP_FILE_NAME_BYTES];
    int hierarchy; /* index */
    /* A file is wanted if no earlier one of the same cgroup tells the first of these: so old forms
     * stand behind new ones, and v2 behind v1. */
    uint32_t tells;
    uint64_t page_bytes; /* 0, or the size of the huge pages that it counts */
    void (*parse)(struct span text, struct usage *usage); /* NULL: it is one number */
};

struct cgroup_files {
    struct cgroup_file items[CGROUP_FILES_MAX];
    size_t count;
};

/* Lists the sizes of huge pages in the host's sysfs, once. */
void cgroup_files_choose(const struct hierarchies *hierarchies, const struct host *host,
                         struct cgroup_files *ret_files);

bool cgroup_file_is_wanted(const struct cgroup_file *file, uint32_t told);

/* Pure. What the text does not tell stays absent. */
void cgroup_file_parse_usage(const struct cgroup_file *file, struct span text, struct usage *usage);

/* Takes over what the file last told: its cgroup is gone. */
void cgroup_file_keep_usage(const struct cgroup_file *file, const struct usage *last,
                            struct usage *usage);
