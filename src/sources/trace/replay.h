/*
 * The replay source: a recorded trace, played in real time and over again, so that everything
 * behind the sources can be seen at work without a GPU.
 */
#pragma once

#include "sources/source.h"

extern const struct source_ops replay_source;
