/* What the asker is told: whom to ask for emission factors, and how. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/price.h"

enum { ASKER_INQUIRIES_MAX = 8 };

/* As given; "" for what was not. All texts must outlive the asker. */
struct asker_flags {
    const char *ca_path;
    uint64_t interval_us;   /* 0: as often as each provider has news */
    bool is_again;          /* an asker died before this one */
    enum price_basis basis; /* for the provider that offers both */
    struct {
        const char *provider, *zone;
        const char *url; /* instead of the provider's own: https://HOST[:PORT] */
    } inquiries[ASKER_INQUIRIES_MAX];
    size_t count;
};
