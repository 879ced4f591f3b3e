/* Parsers of what the names and files of resctrl say (Documentation/filesystems/resctrl.rst). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "model/workload.h"

enum { RESCTRL_DOMAIN_MAX = 99999 };

/* "mon_L3_00", the directory of an L3 cache. -EINVAL: another name. */
int resctrl_parse_domain(struct span name, uint32_t *ret_id);

/* The text of mbm_total_bytes. -ENODATA: the kernel has none ("Unavailable", "Unassigned",
 * "Error"). -EINVAL: what else it may be. */
int resctrl_parse_bytes(struct span text, uint64_t *ret_bytes);

/*
 * The container whose group this is: its id of 64 hexadecimal digits is the name (runc, crun), or
 * stands at the end of it behind a mark ("goresctrl.ID", "container-ID"). False: not of one.
 */
bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES]);
