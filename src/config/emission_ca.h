/*
 * Whether the asker will be able to read --emissions.ca-file, for who starts it: later it could
 * only fail with every question. Root's asker is nobody, and goes the way of links, too.
 */
#pragma once

#include "core/error.h"

/* "": there is none. 0, or -errno with what to do. */
int emission_ca_check(const char *path, struct error *err);
