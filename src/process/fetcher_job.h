/*
 * What a fetcher is told. There is one process for each trust domain, and each has the secrets and
 * destinations of its own alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/emission_keys.h"
#include "emissions/choice.h"
#include "model/price.h"
#include "process/job.h"

enum fetcher_kind { FETCHER_BMC, FETCHER_KUBERNETES, FETCHER_EMISSIONS, FETCHER_KINDS };

/* The label `child` of wattribute_child_starts_total. */
extern const char *const fetcher_words[FETCHER_KINDS];

/* The node's BMC, by Redfish. Readings go to CHILD_MORE_FD. */
struct bmc_job {
    const char *url, *host, *port;
    const char *user, *password;
    struct span ca;                 /* PEM; empty: the system's authorities */
    struct span certificate_sha256; /* the one that is trusted; empty: by its authority */
    bool is_insecure;               /* anybody may answer */
    uint64_t interval_us;
};

/* The Kubernetes API server. */
struct kubernetes_job {
    const char *host, *port, *node;
    const char *token;
    struct span ca; /* PEM */
};

/* What libcurl goes by. */
enum { PROXY_VARIABLES = 6 };
extern const char *const proxy_variables[PROXY_VARIABLES];

/* Providers of emission factors. */
struct emissions_job {
    const char *ca_path;    /* "": the system's authorities. Read again for each request */
    uint64_t interval_us;   /* 0: as often as each provider has news */
    enum price_basis basis; /* for the provider that offers both */
    struct {
        const char *provider, *zone;
        const char *url; /* instead of the provider's own: https://HOST[:PORT]; "": that */
    } polls[CHOICE_MAX];
    size_t count;
    struct emission_keys keys;
    const char *proxies[PROXY_VARIABLES]; /* "": not set */
};

struct fetcher_job {
    struct job_log log;
    enum fetcher_kind kind;
    bool is_again; /* another one died before it */
    union {
        struct bmc_job bmc;
        struct kubernetes_job kubernetes;
        struct emissions_job emissions;
    };
};

bool fetcher_job_is_same(const struct fetcher_job *a, const struct fetcher_job *b);
int fetcher_job_seal(const struct fetcher_job *job, int *ret_fd);

/* Its texts point into `block`. 0 or as job_read. */
int fetcher_job_read(int fd, struct job *block, struct fetcher_job *ret_job);
