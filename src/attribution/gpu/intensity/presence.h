/*
 * Presence: what clients draw, by the watts of the board while some of them were present, and while
 * others were. Pure.
 *
 * A client that begins to work as another one comes looks like that one, and one contrast is always
 * explained without a rest. So what is found of a slot counts as certain only as far as every part
 * of the evidence could be missed: each group of clients by itself, and all that was seen before
 * these were together.
 */
#pragma once

#include "attribution/gpu/intensity/clients.h"

/* Divides a slot with clients, and no other processes, that drew so many watts above idle. False if
 * nothing is known of any. */
bool presence_divide(const struct clients *clients, const struct slot *slot, double measured_w,
                     struct intensity_shares *ret_shares);
