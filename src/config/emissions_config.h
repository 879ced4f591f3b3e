/* Which emission factors count, by the flags --emissions.*: providers, and their fallbacks. */
#pragma once

#include "config/options.h"
#include "core/error.h"
#include "emissions/choice.h"

struct emissions_poll {
    const struct provider *provider;
    char zone[FACTOR_ZONE_BYTES];
    const char *url; /* NULL: the provider's own */
    size_t line;     /* of the choice */
};

/* Texts belong to the options. */
struct emissions_config {
    struct choice choice; /* empty: emissions are switched off */
    struct emissions_poll polls[CHOICE_MAX];
    size_t poll_count; /* 0: nothing leaves the node */
};

/* 0, or -EINVAL with what to write instead. */
int emissions_config_read(const struct options *options, struct emissions_config *ret_config,
                          struct error *err);

/* Checks that the fetcher, which has no privileges, will be able to read --emissions.ca-file; ""
 * is none. 0, or -errno with what to do. */
int emissions_config_check_ca(const char *path, struct error *err);
