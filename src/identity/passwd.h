/* Users by name, from the host's /etc/passwd. No look-ups in a network: those can hang. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

/* Pure. The name of this uid in a passwd file. False if there is none, or it is too long. */
bool passwd_find(struct span text, uint32_t uid, char *ret_name, size_t size_bytes);
