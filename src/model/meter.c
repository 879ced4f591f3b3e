#include "model/meter.h"

const char *const meter_words[METER_KINDS] = {
    [METER_GPU] = "gpu",   [METER_PACKAGE] = "package", [METER_DRAM] = "dram",
    [METER_REST] = "rest", [METER_CORE] = "core",       [METER_UNCORE] = "uncore",
    [METER_PSYS] = "psys", [METER_MODULE] = "module",   [METER_NODE] = "node",
};
