/* The XML of ENTSO-E's document A75, actual generation per type. Pure. */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "emissions/providers/entsoe_mix.h"

/*
 * Puts what a document says into the mix. `eic` is the area that every series of generation must be
 * of; consumption (pumping) is left out. 0, -EBADMSG, or -ENODATA: an acknowledgement, which is how
 * the service says that it has nothing.
 */
int entsoe_document_read(struct span document, const char *eic,
                         const struct entsoe_factors *factors, struct entsoe_mix *mix,
                         struct error *err);
