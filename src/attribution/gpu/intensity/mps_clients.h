/*
 * What each client of an MPS server draws. Clients run at the same time and every utilisation
 * sample has the server's pid, so only the board's power while some of them are present, and while
 * others are, tells them apart. Without such differences they are charged equally. Pure, bounded.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

enum { MPS_GROUPS_MAX = 32 };

/* Clients that were present together. */
struct mps_group {
    uint32_t clients; /* bits: tenants */
    double weight;    /* slots; fades */
    double watts;     /* above idle */
};

struct mps_clients {
    struct mps_group groups[MPS_GROUPS_MAX];
    size_t count;
};

/* Adds a slot with busy clients. */
void mps_clients_learn(struct mps_clients *clients, const struct slot *slot, double idle_watts);

/* False if nothing is known of them. */
bool mps_clients_divide(const struct mps_clients *clients, uint32_t present,
                        struct intensity_shares *ret_shares);

/* Clears a tenant's place for another process. */
void mps_clients_forget(struct mps_clients *clients, uint32_t tenant);
