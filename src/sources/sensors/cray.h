/*
 * Energy of the node, of its CPUs and of its memory, as the controller of a Cray's blade counts it.
 * It counts the accelerators, too: those have meters of their own, and are not told of again.
 */
#pragma once

#include "sources/source.h"

extern const struct source_ops cray_source;
