/*
 * The GPUs of batch jobs, systemd units and virtual machines, by what the host shows of them:
 *
 *   - the device rules of their cgroups, with cgroup v1 and where they name GPUs one by one;
 *   - the environment of a job's processes, where the rules do not constrain it. The scheduler
 * wrote it, but the job's user can write it, too: it counts as the job's own word;
 *   - the command line of a machine's QEMU (vm_gpus.h).
 *
 * Where rules name GPUs, or forbid all of them, the environment does not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "host/host.h"
#include "identity/gpu_access.h"
#include "identity/gpus/attachments.h"
#include "identity/process_table.h"
#include "model/workload.h"

/* What a process of a Slurm job is part of: only the step that a variable was made for may tell its
 * GPUs. Steps inherit the environment of the batch script, also on other nodes. */
enum job_step {
    JOB_STEP_BATCH, /* the script, or an interactive step: SLURM_JOB_GPUS */
    JOB_STEP_TASKS, /* of srun: SLURM_STEP_GPUS */
    JOB_STEP_NONE,  /* neither, and all other schedulers */
};

/* Pure. By the text of /proc/PID/cgroup. */
enum job_step job_gpus_find_step(struct span cgroup_file);

/*
 * Pure. Adds the GPUs that /proc/PID/environ of a job names:
 *   Slurm     SLURM_JOB_GPUS or SLURM_STEP_GPUS: ordinals, which ConstrainDevices does not change.
 *             With MIG, the uuids of CUDA_VISIBLE_DEVICES: Slurm counts MIG devices, too.
 *   PBS, LSF  CUDA_VISIBLE_DEVICES, if it has uuids. PBS writes these; the indices of LSF count
 *             from 0 in each job where it enforces them, which cannot be seen.
 * A list with anything else in it is left out as a whole.
 */
void job_gpus_parse_environ(enum workload_kind kind, enum job_step step, struct span environment,
                            struct gpu_access_list *gpus);

/*
 * Pure. How many GPUs of this node the step has, by SLURM_GPUS_ON_NODE; 0: it does not say. With
 * --gpu-bind the variables above have those of one task only, and with ConstrainDevices Slurm 22.05
 * writes the step's first GPU into all tasks: then this is more than all processes name together.
 */
uint32_t job_gpus_parse_count(enum workload_kind kind, enum job_step step, struct span environment);

/* Pure. The GPUs that device rules name one by one. False: they do not constrain GPUs, and prove
 * nothing. */
bool job_gpus_read_rules(struct span rules, struct gpu_access_list *gpus);

struct job_gpus_count {
    size_t jobs;           /* that run here */
    size_t by_rules;       /* have GPUs by device rules; units, too */
    size_t by_environment; /* have GPUs by their own word */
    size_t incomplete;     /* have more GPUs, by their own count, than anything names: */
    size_t unknown;        /* that many, of all of them */
};

/* Inspects one owner, as the scan does. 0, or -errno: none of its processes tells. */
int job_gpus_find(const struct host *host, const struct process_table *processes,
                  const struct process_table_owner *owner, uint32_t timeout_ms,
                  struct gpu_access_list *gpus);

/* Inspects all jobs and units once, for `check`. */
struct job_gpus_count job_gpus_count(const struct host *host, const struct process_table *processes,
                                     uint32_t timeout_ms);

/* Inspects every job, unit and machine that is new, and the others once a minute, and reports them
 * as `source`. What the environment of a job once named stays while it lasts: its steps may come
 * one after another, each with GPUs of its own. A process that blocks readers of its memory delays
 * it by up to `timeout_ms`, and all of them together by about a second. */
void job_gpus_scan(const struct host *host, const struct process_table *processes,
                   struct attachments *attachments, unsigned source, uint32_t timeout_ms,
                   uint64_t now_us);
