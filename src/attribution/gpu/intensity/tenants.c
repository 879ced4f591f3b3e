#include "attribution/gpu/intensity/tenants.h"

uint32_t tenants_find_ended(const struct tenants *tenants, uint64_t kind)
{
    for (uint32_t t = 0; t < TENANT_OTHERS && kind != 0; t++)
        if (tenants->all[t].used && tenants->all[t].ended && tenants->all[t].kind == kind)
            return t;
    return TENANT_NONE;
}

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

uint32_t tenants_enter(struct tenants *tenants, uint32_t process, uint64_t kind, uint64_t now_us,
                       bool *ret_is_new)
{
    uint32_t place = tenants_find_ended(tenants, kind);
    uint64_t since_us = place == TENANT_NONE ? now_us : tenants->all[place].since_us;

    *ret_is_new = place == TENANT_NONE;
    if (place == TENANT_NONE)
        place = find_place(tenants);
    if (place != TENANT_OTHERS)
        tenants->all[place] =
            (struct tenant){.used = true, .process = process, .kind = kind, .since_us = since_us};
    return place;
}

void tenants_leave(struct tenants *tenants, uint32_t tenant, uint64_t now_us)
{
    tenants->all[tenant].ended = true;
    tenants->all[tenant].ended_us = now_us;
}
