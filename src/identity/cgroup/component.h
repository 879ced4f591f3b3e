/* Text helpers for components of a cgroup path. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

bool component_is_made_of(struct span text, bool (*is_allowed)(char c));
bool component_is_decimal(struct span text);
bool component_is_hex(struct span text); /* lower case: an id with two spellings would be two */
bool component_is_container_id(struct span text); /* 64 hex digits */

/* Cuts both ends off, or returns false. */
bool component_strip(struct span *component, const char *prefix, const char *suffix);
bool component_strip_number(struct span *text, const char *delimiter); /* digits, delimiter */
bool component_parse_uid(struct span text, uint32_t *ret_uid);

/* False, without writing, if the text is empty, does not fit or contains a NUL: a name is never
 * truncated to another one. */
bool component_copy(struct span text, char *buffer, size_t size);
/* The same for a name escaped as in systemd.unit(5); `name` has CGROUP_NAME_BYTES. */
bool component_unescape(struct span text, char *name);

bool component_is_unit(struct span component);
/* Without the '_' that systemd prepends to units whose names the kernel has taken. */
struct span component_unescape_unit(struct span component);

bool component_is_user_slice(struct span component, uint32_t *ret_uid);   /* "user-1000.slice" */
bool component_is_user_manager(struct span component, uint32_t *ret_uid); /* "user@1000.service" */
