/* The power limits of a board. */
#include "power_limits.h"

/* Of the H200 (measured); its default and maximum are the same. */
enum { LIMIT_MIN_MW = 200000 };

int limits_get_mw(const struct call *call, enum power_limit limit, uint64_t *ret_mw)
{
    uint64_t limit_mw = call_gpu(call)->power_limit_mw;

    if (limit == LIMIT_CURRENT)
        limit_mw = call_directive(call, DIRECTIVE_LIMIT, limit_mw);
    if (limit_mw == 0)
        return NVML_NOT_SUPPORTED;
    if (limit == LIMIT_MIN && limit_mw > LIMIT_MIN_MW)
        limit_mw = LIMIT_MIN_MW;
    *ret_mw = limit_mw;
    return NVML_SUCCESS;
}
