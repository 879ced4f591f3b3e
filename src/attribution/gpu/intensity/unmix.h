/*
 * Unmix: how much of each program ran in a slot, by what each showed alone. For tenants that no
 * utilisation sample tells apart, such as clients of MPS, which run at the same time.
 *
 * The units and watts of the device are the sum over its tenants of what each shows alone, times
 * the amount of it that ran: non-negative least squares. Where others ran meanwhile of which
 * nothing is known, they show what programs do on average, give or take as much as programs differ.
 * Pure.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

struct unmixed {
    double amounts[TENANTS_MAX];    /* 1: as much as when it was alone and always busy */
    double watts[TENANTS_MAX];      /* above idle, at the reference clock: amount x watts alone */
    double explained_w, measured_w; /* of the device: the sum, and what the counter shows */
    double misfit;                  /* 1: units and watts are off by their noise */
    bool is_measured;               /* all of the programs were alone once */
};

/* False if one of the tenants (bits) is unknown, or if nothing ran. Needs GPM: watts alone do not
 * tell who drew them. `unknown` is the part of the time that was of others. Writes the variance of
 * each tenant's share of the sum, too, unless that is NULL: it takes as long as all the rest. */
bool unmix_slot(const struct intensity *intensity, const struct slot *slot, uint32_t tenants,
                double unknown, struct unmixed *ret_unmixed, double *ret_variances);
