#include "sources/node_integral.h"

/* mW times us is nJ, and a trapezoid is half a rectangle. */
enum { HALF_NJ_PER_UJ = 2000 };

void node_integral_add(struct node_integral *integral, uint64_t at_us, uint64_t power_mw,
                       uint64_t hold_us)
{
    uint64_t elapsed_us = at_us - integral->last_us;

    if (integral->has_last && elapsed_us <= hold_us) {
        uint64_t half_nj = (integral->last_mw + power_mw) * elapsed_us + integral->carry;

        integral->counter_uj += half_nj / HALF_NJ_PER_UJ;
        integral->carry = (uint32_t)(half_nj % HALF_NJ_PER_UJ);
    } else if (integral->has_last) {
        integral->breaks++;
    }
    integral->has_last = true;
    integral->last_us = at_us;
    integral->last_mw = power_mw;
}
