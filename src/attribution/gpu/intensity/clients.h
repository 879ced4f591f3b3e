/*
 * What each of those draws that no utilisation sample tells apart: the clients of an MPS server,
 * whose samples have the server's pid, and the processes of a GPU instance in MIG mode, which have
 * none.
 *
 * Clients of known programs are unmixed by what these showed alone, as long as that explains what
 * the board shows. Else the board's power while some of them are present, and while others are,
 * tells (presence.h); without such differences they are charged by their sizes, equally as a rule,
 * and so is what these watts do not explain of a slot. Beside a process of an unknown program all
 * this is done with the clients' part, which samples tell. Pure, bounded.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

enum { CLIENT_GROUPS_MAX = 32 };

/* What a group's watts are worth at most, in slots. */
#define CLIENT_WEIGHT_MAX 25.0

/* Tenants that were present together: clients, and perhaps processes beside MPS. */
struct client_group {
    uint32_t present; /* bits: tenants */
    bool is_clients_only;
    bool is_settled; /* seen later than when the last of them had just come */
    double weight;   /* slots; fades */
    double watts;    /* above idle */
    double variance; /* of the watts of its slots */
    uint64_t seen;   /* the last of these slots, as counted */
    double sampled;  /* samples in its slots, at most so many as count */
    double beside;   /* the part of them that others than the clients and their servers have */

    /* Of those slots that could be unmixed, means by energy. */
    double unmixed_joules; /* fades */
    double misfit;         /* as in struct unmixed */
    double unexplained;    /* how far the watts of the programs are from the board's, a logarithm */
};

struct clients {
    struct client_group groups[CLIENT_GROUPS_MAX];
    size_t count;

    uint64_t slots;             /* so far */
    uint64_t came[TENANTS_MAX]; /* the first of these with each tenant; 0: none */

    /* How much each tenant ran in company, in slots that its programs explain, and the others. */
    struct client_amount {
        double weight, mean, square;
        double others, others_square, product;
    } amounts[TENANTS_MAX];

    /* How much of the device each client can use, relative to the others. 0: as one of size 1.
     * In TENANT_OTHERS: each of them. */
    double sizes[TENANTS_MAX];
};

/* Adds a slot with busy clients. */
void clients_learn(struct clients *clients, const struct intensity *intensity,
                   const struct slot *slot);

/* False if nothing is known of them, or if there is no sample where only samples could tell. */
bool clients_divide(const struct clients *clients, const struct intensity *intensity,
                    const struct slot *slot, struct intensity_shares *ret_shares);

/* NULL: these tenants (bits) were never seen together. */
const struct client_group *clients_find(const struct clients *clients, uint32_t present);

/* The slot in which the last of these (bits) came; UINT64_MAX: it was not seen yet, or cannot be
 * known, as those in TENANT_OTHERS. */
uint64_t clients_met(const struct clients *clients, uint32_t present);

/* Tenants of this group are unmixed: what is remembered of their programs counts. */
bool clients_are_unmixed(const struct client_group *group);

/* Clears a tenant's place for another process. */
void clients_forget(struct clients *clients, uint32_t tenant);
