/* The explicit list of sources, in the order of --help and of `check`. */
#include <assert.h>

#include "core/macros.h"
#include "sources/bmc/ipmi.h"
#include "sources/cgroup/cgroups.h"
#include "sources/dcgm/dcgm.h"
#include "sources/drm/drm.h"
#include "sources/nvml/nvml.h"
#include "sources/rapl/rapl.h"
#include "sources/sensors/cray.h"
#include "sources/sensors/hwmon.h"
#include "sources/source.h"

/* clang-format off */
const struct source_ops *const source_table[] = {
    &replay_source,
    &nvml_source,
    &dcgm_source,
    &drm_source,
    &rapl_source,
    &hwmon_source,
    &cray_source,
    &ipmi_source,
    &redfish_source,
    &cgroups_source,
    &estimate_source,
    NULL,
};
/* clang-format on */

static_assert(ARRAY_SIZE(source_table) - 1 <= SOURCE_SWITCHES_MAX, "raise SOURCE_SWITCHES_MAX");
