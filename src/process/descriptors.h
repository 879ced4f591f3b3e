/* Descriptors: the limit of open files. */
#pragma once

#include <sys/resource.h>

#include "core/error.h"

/* Raises the soft limit to `wanted`, as far as the hard one allows. Returns the limit, or
 * RLIM_INFINITY where it is unknown. */
rlim_t descriptors_raise(rlim_t wanted);

/* Raises it to the usual 1024, and no more: files of cgroups stay open up to the limit, and take
 * the kernel's memory. 0, or -EMFILE with a text if that is not enough. */
int descriptors_prepare(struct error *err);
