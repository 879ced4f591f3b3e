#include "model/sample.h"

/* Graphics, SM, occupancy, integer, tensor, HMMA, DRAM, fp64, fp32, fp16 (nvml.h:
 * NVML_GPM_METRIC_*). */
const uint8_t sample_gpm_ids[SAMPLE_GPM_COUNT] = {1, 2, 3, 4, 5, 7, 10, 11, 12, 13};
