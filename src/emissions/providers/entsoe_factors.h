/* What the kinds of plants emit (data/entsoe-factors.tsv), by ENTSO-E's psrType. Data, as others
 * may want other figures; its name goes with what is computed by it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

enum { ENTSOE_KINDS_MAX = 32 };

struct entsoe_kind {
    char psr_type[4]; /* "B14" */
    bool is_storage;  /* left out of the mix */
    uint64_t mg_per_kwh;
};

struct entsoe_factors {
    char name[32];
    struct entsoe_kind kinds[ENTSOE_KINDS_MAX];
    size_t count;
};

/* The table in the program. */
void entsoe_factors_load(struct entsoe_factors *ret_factors);

/* 0, or -EBADMSG: the table is not as it should be, has a kind twice or too many. */
int entsoe_factors_parse(struct span table, struct entsoe_factors *ret_factors);

/* Index of the kind, or -ENOENT. */
int entsoe_factors_find(const struct entsoe_factors *factors, struct span psr_type);
