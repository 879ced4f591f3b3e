#include "attribution/gpu/intensity/tenants.h"

static uint32_t find_place(const struct tenants *tenants)
{
    uint32_t oldest = TENANT_OTHERS;

    for (uint32_t t = 0; t < TENANT_OTHERS; t++) {
        const struct tenant *tenant = &tenants->all[t];

        if (!tenant->used)
            return t;
        if (tenant->ended &&
            (oldest == TENANT_OTHERS || tenant->ended_us < tenants->all[oldest].ended_us))
            oldest = t;
    }
    return oldest;
}

uint32_t tenants_enter(struct tenants *tenants, uint32_t process, uint64_t now_us)
{
    uint32_t place = find_place(tenants);

    if (place != TENANT_OTHERS)
        tenants->all[place] = (struct tenant){.used = true, .process = process, .since_us = now_us};
    return place;
}

void tenants_leave(struct tenants *tenants, uint32_t tenant, uint64_t now_us)
{
    tenants->all[tenant].ended = true;
    tenants->all[tenant].ended_us = now_us;
}
