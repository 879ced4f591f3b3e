/*
 * Tenants: which place of the estimator a process has.
 *
 * Who ended keeps its place until it is needed, so that the next process of the same kind (same
 * image and command, or same user and command) takes it over with all that was learned there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attribution/gpu/intensity/slot.h"

struct tenant {
    bool used;
    bool ended;
    uint32_t process;  /* in the ledger; meaningless once it ended */
    uint64_t kind;     /* a hash of image and command; 0: not known */
    uint64_t since_us; /* when the first of its kind came */
    uint64_t last_us;  /* when it ended */
};

struct tenants {
    struct tenant all[TENANTS_MAX]; /* the last is not used: it is TENANT_OTHERS */
};

/*
 * A place for a new process: of one of its kind that ended, else a free one, else that of whoever
 * ended first, else TENANT_OTHERS. `*ret_is_new` if what was learned at that place is of another.
 */
uint32_t tenants_enter(struct tenants *tenants, uint32_t process, uint64_t kind, uint64_t now_us,
                       bool *ret_is_new);

/* The place of one that ended and was of this kind; TENANT_NONE if there is none. */
uint32_t tenants_find_ended(const struct tenants *tenants, uint64_t kind);

void tenants_leave(struct tenants *tenants, uint32_t tenant, uint64_t now_us);
