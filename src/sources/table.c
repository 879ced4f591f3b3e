/* The explicit list of sources. */
#include "sources/cgroups.h"
#include "sources/cray.h"
#include "sources/hwmon.h"
#include "sources/ipmi.h"
#include "sources/model.h"
#include "sources/nvml.h"
#include "sources/rapl.h"
#include "sources/redfish.h"
#include "sources/replay.h"
#include "sources/source.h"

const struct source_ops *const source_table[] = {
    &replay_source, &nvml_source,    &rapl_source,    &hwmon_source, &cray_source,
    &ipmi_source,   &redfish_source, &cgroups_source, &model_source, NULL,
};
