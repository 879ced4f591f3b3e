#include "process/fetcher_job.h"

#include <string.h>

const char *const fetcher_words[FETCHER_KINDS] = {"bmc", "kubernetes", "emissions"};

const char *const proxy_variables[PROXY_VARIABLES] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                                      "ALL_PROXY",   "no_proxy",    "NO_PROXY"};

static void pack_bmc(struct buffer *block, const struct bmc_job *job)
{
    pack_text(block, job->url);
    pack_text(block, job->host);
    pack_text(block, job->port);
    pack_text(block, job->user);
    pack_text(block, job->password);
    pack_bytes(block, job->ca);
    pack_bytes(block, job->certificate_sha256);
    pack_u64(block, job->is_insecure);
    pack_u64(block, job->interval_us);
}

static struct bmc_job unpack_bmc(struct unpack *rest)
{
    return (struct bmc_job){
        .url = unpack_text(rest),
        .host = unpack_text(rest),
        .port = unpack_text(rest),
        .user = unpack_text(rest),
        .password = unpack_text(rest),
        .ca = unpack_bytes(rest),
        .certificate_sha256 = unpack_bytes(rest),
        .is_insecure = unpack_u64(rest, 1) > 0,
        .interval_us = unpack_u64(rest, UINT64_MAX),
    };
}

static void pack_kubernetes(struct buffer *block, const struct kubernetes_job *job)
{
    pack_text(block, job->host);
    pack_text(block, job->port);
    pack_text(block, job->node);
    pack_text(block, job->token);
    pack_bytes(block, job->ca);
}

static struct kubernetes_job unpack_kubernetes(struct unpack *rest)
{
    return (struct kubernetes_job){
        .host = unpack_text(rest),
        .port = unpack_text(rest),
        .node = unpack_text(rest),
        .token = unpack_text(rest),
        .ca = unpack_bytes(rest),
    };
}

static void pack_emissions(struct buffer *block, const struct emissions_job *job)
{
    pack_text(block, job->ca_path);
    pack_u64(block, job->interval_us);
    pack_u64(block, job->basis);
    pack_u64(block, job->count);
    for (size_t i = 0; i < job->count; i++) {
        pack_text(block, job->polls[i].provider);
        pack_text(block, job->polls[i].zone);
        pack_text(block, job->polls[i].url);
    }
    for (size_t i = 0; i < EMISSION_KEYS_MAX; i++)
        pack_text(block, job->keys.values[i]);
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        pack_text(block, job->proxies[i]);
}

static void unpack_emissions(struct unpack *rest, struct emissions_job *job)
{
    *job = (struct emissions_job){
        .ca_path = unpack_text(rest),
        .interval_us = unpack_u64(rest, UINT64_MAX),
        .basis = (enum price_basis)unpack_u64(rest, PRICE_BASES - 1),
        .count = (size_t)unpack_u64(rest, CHOICE_MAX),
    };
    for (size_t i = 0; i < job->count; i++) {
        job->polls[i].provider = unpack_text(rest);
        job->polls[i].zone = unpack_text(rest);
        job->polls[i].url = unpack_text(rest);
    }
    for (size_t i = 0; i < EMISSION_KEYS_MAX; i++) {
        struct span key = unpack_bytes(rest);

        if (key.len < EMISSION_KEY_BYTES)
            memcpy(job->keys.values[i], key.data, key.len);
        else
            rest->is_broken = true;
    }
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        job->proxies[i] = unpack_text(rest);
}

static void pack_job(struct buffer *block, const struct fetcher_job *job)
{
    job_begin(block, &job->log);
    pack_u64(block, job->kind);
    pack_u64(block, job->is_again);
    if (job->kind == FETCHER_BMC)
        pack_bmc(block, &job->bmc);
    else if (job->kind == FETCHER_KUBERNETES)
        pack_kubernetes(block, &job->kubernetes);
    else
        pack_emissions(block, &job->emissions);
}

bool fetcher_job_is_same(const struct fetcher_job *a, const struct fetcher_job *b)
{
    struct buffer first, second;
    bool is_same;

    pack_job(&first, a);
    pack_job(&second, b);
    is_same = !buffer_failed(&first) && !buffer_failed(&second) && first.len == second.len &&
              memcmp(first.data, second.data, first.len) == 0;
    buffer_wipe(&first);
    buffer_wipe(&second);
    return is_same;
}

int fetcher_job_seal(const struct fetcher_job *job, int *ret_fd)
{
    struct buffer block;

    pack_job(&block, job);
    return job_seal(&block, ret_fd);
}

int fetcher_job_read(int fd, struct job *block, struct fetcher_job *ret_job)
{
    struct unpack *rest = &block->rest;
    struct fetcher_job *job = ret_job;
    int r = job_read(fd, block);

    if (r < 0)
        return r;
    *job = (struct fetcher_job){.log = block->log};
    job->kind = (enum fetcher_kind)unpack_u64(rest, FETCHER_KINDS - 1);
    job->is_again = unpack_u64(rest, 1) > 0;
    if (job->kind == FETCHER_BMC)
        job->bmc = unpack_bmc(rest);
    else if (job->kind == FETCHER_KUBERNETES)
        job->kubernetes = unpack_kubernetes(rest);
    else
        unpack_emissions(rest, &job->emissions);
    r = unpack_end(rest);
    if (r < 0)
        job_done(block);
    return r;
}
