/*
 * Tenants: the places of processes in the estimator. A process that ended keeps its place until it
 * is needed: windows that it shared may still wait to be settled.
 */
#pragma once

#include "attribution/gpu/intensity/slot.h"

struct tenant {
    bool used;
    bool ended;
    uint32_t process; /* in the ledger; meaningless once it ended */
    uint64_t since_us;
    uint64_t worked_us; /* its last sample; 0: never */
    uint64_t ended_us;
};

struct tenants {
    struct tenant all[TENANTS_MAX]; /* the last is not used: it is TENANT_OTHERS */
};

/* Finds a place for a new process: a free one, else of the first that ended, else TENANT_OTHERS. */
uint32_t tenants_enter(struct tenants *tenants, uint32_t process, uint64_t now_us);

void tenants_leave(struct tenants *tenants, uint32_t tenant, uint64_t now_us);
