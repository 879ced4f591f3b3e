/*
 * Clients: what each client of an MPS server draws. They run at the same time and every
 * utilisation sample carries the server's pid, so all that tells them apart is who was there: the
 * board's watts while some of them were, and while others were. Without such differences they pay
 * equally. Pure, bounded.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

enum { CLIENT_GROUPS_MAX = 32 };

/* Clients that were there together. */
struct client_group {
    uint32_t clients; /* a bit for each */
    double weight;    /* slots; fades */
    double watts;     /* above idle */
};

struct clients {
    struct client_group groups[CLIENT_GROUPS_MAX];
    size_t count;
};

/* Takes in a slot in which clients were busy. */
void clients_learn(struct clients *clients, const struct slot *slot, double idle_watts);

/* False if nothing is known of them. */
bool clients_divide(const struct clients *clients, uint32_t present,
                    struct intensity_shares *ret_shares);

/* A tenant's place is given to another. */
void clients_forget(struct clients *clients, uint32_t tenant);
