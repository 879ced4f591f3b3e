/*
 * The shapes of single components of a cgroup path: units, users, batch jobs, machines. Pure. What
 * stands around a component is walk.c's business, containers are container.h's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

bool component_is_decimal(struct span text);
bool component_is_hex(struct span text); /* lower case: an id with two spellings would be two */

/* False, and nothing is written, if the text is empty, does not fit or holds a NUL: a name is never
 * cut to what might be another's. */
bool component_copy(struct span text, char *buffer, size_t size);

bool component_is_slice(struct span component);
bool component_is_unit(struct span component);
/* Without the '_' that systemd puts before units whose names the kernel has taken. */
struct span component_unescape_unit(struct span component);

bool component_is_user_slice(struct span component, uint32_t *ret_uid);   /* "user-1000.slice" */
bool component_is_user_manager(struct span component, uint32_t *ret_uid); /* "user@1000.service" */
bool component_is_session(struct span component);                         /* "session-2.scope" */

bool component_is_slurm_v1(struct span component); /* "slurm", "slurm_NODE" */
bool component_is_slurm_v2(struct span component); /* "slurmstepd.scope", "NODE_slurmstepd.scope" */
bool component_is_slurm_uid(struct span component, uint32_t *ret_uid);
bool component_is_slurm_job(struct span component, struct span *ret_job); /* or a SLUID */
bool component_is_slurm_step(struct span component, struct span *ret_step);
bool component_is_slurm_task(struct span component, struct span *ret_task);

/* "job.1009249[3].35464.1775318445": the id, the index in an array, a pid and a time. */
bool component_is_lsf_job(struct span component, struct span *ret_job);

bool component_is_pbs_service(struct span component); /* "pbs_jobs.service" and older names */
/* "12345[7].server", maybe escaped: the name of the server is part of the id. `job` holds
 * CGROUP_NAME_BYTES, and is unescaped. */
bool component_is_pbs_job(struct span component, char *job);

/* `name` holds CGROUP_NAME_BYTES, and is unescaped. */
bool component_is_libvirt(struct span component, char *name);       /* both forms, see the .c */
bool component_is_proxmox(struct span component, char *name);       /* "100.scope" */
bool component_is_nspawn(struct span component, char *name);        /* "systemd-nspawn@N.service" */
bool component_is_machine_scope(struct span component, char *name); /* "machine-N.scope" */
