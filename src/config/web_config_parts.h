/* The web config from inside: what the files that read it share. */
#pragma once

#include <stdbool.h>

#include "config/web_config.h"
#include "config/yaml_fields.h"

/* A config that is being read. */
struct web_config_draft {
    struct web_config config;
    struct span directory; /* with its slash; empty: the current one */
    struct error *err;
    bool wants_http2; /* passed over: it is an offer to clients, and they all speak HTTP/1.1 */
    bool tls_is_mentioned;
    struct yaml_reader_node tls_place; /* for what is wrong with the section as a whole */
};

/* Kept as long as the config. NULL when out of memory, which is said then. */
char *web_config_copy(struct web_config_draft *draft, const char *text);

/* The section of TLS, and whether its keys go together: after the whole file, whose own faults come
 * first. */
yaml_fields_setter web_config_set_tls;
int web_config_check_tls(const struct yaml_fields *yaml);

#define DETAILS(list) .details = (list), .detail_count = ARRAY_SIZE(list)
