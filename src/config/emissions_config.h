/* Which emission factors count, as --emissions.* tells it: who is asked, and what stands in. */
#pragma once

#include "config/options.h"
#include "core/error.h"
#include "emissions/choice.h"

struct emissions_inquiry {
    const struct provider *provider;
    char zone[FACTOR_ZONE_BYTES];
    const char *url; /* NULL: the provider's own */
    size_t line;     /* of the choice */
};

/* Texts are the options'. */
struct emissions_config {
    struct choice choice; /* empty: no emissions are wanted */
    struct emissions_inquiry inquiries[CHOICE_MAX];
    size_t inquiry_count; /* 0: nothing leaves the node */
};

/* 0, or -EINVAL with what to write instead. */
int emissions_config_read(const struct options *options, struct emissions_config *ret_config,
                          struct error *err);
