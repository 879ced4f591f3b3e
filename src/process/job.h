/*
 * Job: a child's configuration, secrets included, in one sealed block of memory at CHILD_JOB_FD.
 * Nothing is in its arguments, its environment or on a disk. When the web config changes, the
 * server is sent another job; a fetcher is replaced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/emission_keys.h"
#include "core/buffer.h"
#include "core/log.h"
#include "core/span.h"
#include "emissions/choice.h"
#include "model/price.h"
#include "sources/source.h"

struct job_log {
    enum log_level level;
    enum log_format format;
};

struct server_job {
    struct job_log log;
    size_t listener_count; /* from CHILD_MORE_FD on */
    const char *metrics_path;
    bool text_only;         /* --compat: never OpenMetrics */
    bool is_failing;        /* the servers before it ended early: not ready until it is healthy */
    struct span web_config; /* packed by web_config_pack; empty: none, then and later */
};

/* One process for each trust domain, with the secrets and destinations of its own alone. */
enum fetcher_kind { FETCHER_BMC, FETCHER_KUBERNETES, FETCHER_EMISSIONS, FETCHER_KINDS };

/* The exit status of a fetcher that asks for another one: its host has not answered for long and
 * may have got another address, which only a new process can look up. */
enum { FETCHER_RESTART = 3 };

/* The label `child` of wattribute_child_starts_total. */
extern const char *const fetcher_words[FETCHER_KINDS];

/* The node's BMC, by Redfish. Readings go to CHILD_MORE_FD. */
struct bmc_job {
    const char *url, *host, *port;
    const char *user, *password;
    struct span ca;                 /* PEM; empty: the system's authorities */
    struct span certificate_sha256; /* the one that is trusted; empty: by its authority */
    bool is_insecure;               /* no certificate is verified */
    uint64_t interval_us;
};

/* The Kubernetes API server. */
struct kubernetes_job {
    const char *host, *port, *node;
    const char *token;
    struct span ca; /* PEM */
};

/* The environment variables that libcurl reads. */
enum { PROXY_VARIABLES = 6 };
extern const char *const proxy_variables[PROXY_VARIABLES];

/* Providers of emission factors. */
struct emissions_job {
    const char *ca_path;    /* "": the system's authorities. Read again for each request */
    uint64_t interval_us;   /* 0: each provider's own */
    enum price_basis basis; /* for the provider that offers both */
    struct {
        const char *provider, *zone;
        const char *url; /* instead of the provider's own: https://HOST[:PORT]; "": that */
    } polls[CHOICE_MAX];
    size_t count;
    struct emission_keys keys;
    const char *proxies[PROXY_VARIABLES]; /* "": not set */
};

/* The sources of this node, looked at while the collector reads them. */
struct checker_job {
    struct job_log log;
    const char *procfs_path, *sysfs_path, *rootfs_path;
    uint64_t interval_us;
    const char *off[SOURCE_SWITCHES_MAX]; /* sources that are switched off */
    size_t off_count;
    bool has_model, model_by_table; /* as in struct source_estimate */
    uint64_t model_idle_uw, model_full_uw;
};

struct fetcher_job {
    struct job_log log;
    enum fetcher_kind kind;
    bool is_restart; /* started again after another one died */
    union {
        struct bmc_job bmc;
        struct kubernetes_job kubernetes;
        struct emissions_job emissions;
    };
};

/* A descriptor, or -errno. */
int server_job_seal(const struct server_job *job);
int checker_job_seal(const struct checker_job *job);

/* Packs the job but for `is_restart`, so that two jobs can be compared; to be wiped by the caller.
 */
void fetcher_job_pack(struct fetcher_job *job, struct buffer *ret_packed);
int fetcher_job_seal(const struct buffer *packed, bool is_restart);

/* The memory that the texts of a job are in. */
struct job {
    char *bytes;
    size_t len;
};

/* 0, -EPROTO (no block, not sealed, or not of this form) or -errno. */
int server_job_read(int fd, struct job *ret_block, struct server_job *ret_job);
int checker_job_read(int fd, struct job *ret_block, struct checker_job *ret_job);
int fetcher_job_read(int fd, struct job *ret_block, struct fetcher_job *ret_job);

/* Wipes it. Accepts a zeroed struct. */
void job_done(struct job *block);
