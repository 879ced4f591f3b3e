/*
 * The power of the node as its BMC reports it over Redfish. A process of its own asks the BMC
 * (src/fetcher); its readings come over a socket, and are checked and integrated here.
 */
#pragma once

#include "sources/source.h"

extern const struct source_ops redfish_source;
