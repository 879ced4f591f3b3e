/*
 * The formats of cgroup files, v1 and v2. Pure: a parser sets the values that its text has and
 * leaves the others alone. Keys come in any order, and new kernels add more.
 */
#pragma once

#include "core/span.h"
#include "host/cgroup_hierarchy.h"
#include "model/usage.h"

/* A file's value: of enum usage_field, or of enum usage_io_field from CGROUP_IO on. */
enum { CGROUP_IO = 24, CGROUP_KEYS_MAX = 6 };
/* The bit of files that list RDMA objects, beside those of the fields. */
#define CGROUP_RDMA_BIT ((uint32_t)1 << 28)
_Static_assert((int)USAGE_FIELDS <= CGROUP_IO, "the bits of a file's fields are used up");

enum cgroup_unit { CGROUP_AS_IS, CGROUP_NANOSECONDS, CGROUP_TICKS };

struct cgroup_key {
    const char *name; /* NULL: the file is one number */
    unsigned field;
    enum cgroup_unit unit; /* times become microseconds */
};

struct cgroup_format {
    bool is_v2;
    unsigned controller; /* of enum cgroup_controller, or CONTROLLERS: v2 always has it */
    const char *name;
    void (*parse)(const struct cgroup_format *format, struct span text, struct usage *usage);
    struct cgroup_key keys[CGROUP_KEYS_MAX];
};

/*
 * Every file that is read, ended by one without a name. A file is skipped if an earlier one of the
 * same cgroup has the first of its fields (the lowest bit): old forms stand behind new ones, and v2
 * behind v1.
 */
extern const struct cgroup_format cgroup_formats[];

/* Bits of the fields that the file has. */
uint32_t cgroup_format_fields(const struct cgroup_format *format);

/* A file that holds one number. 0, -EINVAL or -ERANGE: above USAGE_VALUE_MAX, or "max". */
int cgroup_parse_number(struct span text, uint64_t *ret_value);

/* "200000 100000" of cpu.max: microseconds in each period, as thousandths of a CPU. "max", and v1's
 * -1, are none. 0, -EINVAL or -ERANGE: none. */
int cgroup_parse_quota(struct span text, uint64_t *ret_thousandths);

/* The number of CPUs in a list as of cpuset.cpus, "0-3,8". 0 or -EINVAL: no list, or an empty one,
 * as v1's have until they are set. */
int cgroup_parse_cpuset(struct span text, uint64_t *ret_cpus);

/*
 * cpuacct.usage is exact; cpuacct.stat is in ticks, and was sampled before Linux 5.18, so that it
 * did not add up. So the former is divided in the ratio of the latter. Neither half may go back
 * below `last`, as it would when the samples correct themselves.
 */
void cgroup_divide_cpu(struct usage *usage, const struct usage *last);

/* Takes over the values of these fields from `last`. */
void cgroup_keep_fields(const struct usage *last, uint32_t fields, struct usage *usage);
