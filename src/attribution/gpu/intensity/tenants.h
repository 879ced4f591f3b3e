/*
 * Tenants: the places of processes in the estimator.
 *
 * A process that ended keeps its place until it is needed, so that the next one of the same kind
 * (same image and command, or same user and command) inherits what was learned there.
 */
#pragma once

#include "attribution/gpu/intensity/slot.h"

struct tenant {
    bool used;
    bool ended;
    uint32_t process;  /* in the ledger; meaningless once it ended */
    uint64_t kind;     /* a hash of image and command; 0: unknown */
    uint64_t since_us; /* when the first of its kind came */
    uint64_t ended_us;
};

struct tenants {
    struct tenant all[TENANTS_MAX]; /* the last is not used: it is TENANT_OTHERS */
};

/* Finds a place for a new process: of an ended one of its kind, else a free one, else of the first
 * that ended, else TENANT_OTHERS. `*ret_is_new` if what was learned there is of another kind. */
uint32_t tenants_enter(struct tenants *tenants, uint32_t process, uint64_t kind, uint64_t now_us,
                       bool *ret_is_new);

/* The place of an ended process of this kind, or TENANT_NONE. */
uint32_t tenants_find_ended(const struct tenants *tenants, uint64_t kind);

void tenants_leave(struct tenants *tenants, uint32_t tenant, uint64_t now_us);
