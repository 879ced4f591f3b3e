/*
 * What the files of a cgroup say, v1 and v2. Pure: each parser sets the values that its text has,
 * and leaves the others alone. Keys come in any order and grow with each kernel.
 */
#pragma once

#include "core/span.h"
#include "model/usage.h"

/* A file that holds one number. 0, -EINVAL or -ERANGE: also what is above USAGE_VALUE_MAX, and
 * "max". */
int cgroup_parse_number(struct span text, uint64_t *ret_value);

/* CPU time and throttling: cpu.stat of v2 and v1, and v1's cpuacct. */
void cpu_stat_parse(struct span text, struct usage *usage);
void cpu_stat_parse_v1(struct span text, struct usage *usage);      /* throttling only */
void cpu_stat_parse_cpuacct(struct span text, struct usage *usage); /* cpuacct.stat */
void cpu_stat_parse_cpuacct_usage(struct span text, struct usage *usage);

/*
 * cpuacct.usage is exact; cpuacct.stat comes in ticks, and before 5.18 it was sampled, too, so that
 * it did not add up. So the one is divided as the other says. Neither half may go back, which it
 * would where what is sampled changes its mind: `last` is what was there before.
 */
void cpu_stat_divide(struct usage *usage, const struct usage *last);

/* Memory: what is held, how often the limit was hit, and how many processes were killed for it. */
void memory_stat_parse(struct span text, struct usage *usage);
void memory_stat_parse_events(struct span text, struct usage *usage);

/* v1: the keys that include what is below, and the tightest limit. */
void memory_stat_parse_v1(struct span text, struct usage *usage);
void memory_stat_parse_oom_control(struct span text, struct usage *usage);

/*
 * Block IO by device, v2: lines of "MAJOR:MINOR KEY=VALUE ...". A device may stand there without
 * values, and some kernels forget the end of such a line: "253:0 8:0 rbytes=...".
 */
void io_stat_parse(struct span text, struct usage *usage);

/* v1: lines of "MAJOR:MINOR Read|Write|... VALUE". */
void io_stat_parse_blkio_bytes(struct span text, struct usage *usage);
void io_stat_parse_blkio_counts(struct span text, struct usage *usage);

/* Takes over from `last` the values of these kinds (bits of enum usage_io_field). */
void io_stat_keep(const struct usage *last, uint32_t fields, struct usage *usage);

/* Pressure stall information of v2, how long tasks waited: lines of "some|full avg10=... avg60=...
 * avg300=... total=MICROSECONDS"; only totals are taken. */
void pressure_parse_cpu(struct span text, struct usage *usage);
void pressure_parse_memory(struct span text, struct usage *usage);
void pressure_parse_io(struct span text, struct usage *usage);

/* rdma.current of v1 and v2, verbs objects by device: lines of "DEVICE hca_handle=N hca_object=N".
 * The traffic is not counted by cgroup. */
void rdma_parse(struct span text, struct usage *usage);
