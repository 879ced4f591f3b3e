/* Descriptors: whether the limit of open files leaves room for what the program opens. */
#pragma once

#include "core/error.h"

/*
 * Raises a soft limit that is lower than usual as far as the hard one allows. 0, or -EMFILE with a
 * text if the program cannot work with what that gives. More than usual is not asked for: files of
 * cgroups stay open up to the limit, and take the kernel's memory.
 */
int descriptors_prepare(struct error *err);
