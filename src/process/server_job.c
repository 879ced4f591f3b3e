#include "process/server_job.h"

#include "process/child.h"

static void pack_tls(struct buffer *block, const struct tls_settings *tls)
{
    pack_bytes(block, tls->cert.text);
    pack_bytes(block, tls->key.text);
    pack_bytes(block, tls->client_ca.text);
    pack_u64(block, tls->client_auth);
    pack_u64(block, tls->min_version);
    pack_u64(block, tls->max_version);
    pack_u64(block, tls->prefer_server_ciphers);
    pack_u64(block, tls->client_san_count);
    for (size_t i = 0; i < tls->client_san_count; i++)
        pack_text(block, tls->client_sans[i]);
    pack_u64(block, tls->curve_count);
    for (size_t i = 0; i < tls->curve_count; i++)
        pack_u64(block, tls->curves[i]);
}

static void unpack_tls(struct unpack *rest, struct tls_settings *tls)
{
    tls->cert = (struct tls_pem){"the certificate", unpack_bytes(rest)};
    tls->key = (struct tls_pem){"the key", unpack_bytes(rest)};
    tls->client_ca = (struct tls_pem){"the clients' CA", unpack_bytes(rest)};
    tls->client_auth = unpack_u64(rest, TLS_CLIENT_AUTH_COUNT - 1);
    tls->min_version = unpack_u64(rest, TLS_VERSION_COUNT - 1);
    tls->max_version = unpack_u64(rest, TLS_VERSION_COUNT - 1);
    tls->prefer_server_ciphers = unpack_u64(rest, 1) > 0;
    tls->client_san_count = unpack_u64(rest, TLS_SANS_MAX);
    for (size_t i = 0; i < tls->client_san_count; i++)
        tls->client_sans[i] = unpack_text(rest);
    tls->curve_count = unpack_u64(rest, TLS_CURVE_COUNT);
    for (size_t i = 0; i < tls->curve_count; i++)
        tls->curves[i] = unpack_u64(rest, TLS_CURVE_COUNT - 1);
}

static void pack_web_config(struct buffer *block, const struct web_config *config)
{
    pack_u64(block, config->has_tls);
    if (config->has_tls)
        pack_tls(block, &config->tls);
    pack_u64(block, config->user_count);
    for (size_t i = 0; i < config->user_count; i++) {
        pack_text(block, config->users[i].name);
        pack_text(block, config->users[i].hash);
    }
    pack_u64(block, config->header_count);
    for (size_t i = 0; i < config->header_count; i++) {
        pack_text(block, config->headers[i].name);
        pack_text(block, config->headers[i].value);
    }
}

static void unpack_web_config(struct unpack *rest, struct web_config *config)
{
    config->has_tls = unpack_u64(rest, 1) > 0;
    if (config->has_tls)
        unpack_tls(rest, &config->tls);
    config->user_count = unpack_u64(rest, WEB_CONFIG_USERS_MAX);
    for (size_t i = 0; i < config->user_count; i++) {
        config->users[i].name = unpack_text(rest);
        config->users[i].hash = unpack_text(rest);
    }
    config->header_count = unpack_u64(rest, WEB_CONFIG_HEADERS_MAX);
    for (size_t i = 0; i < config->header_count; i++) {
        config->headers[i].name = unpack_text(rest);
        config->headers[i].value = unpack_text(rest);
    }
}

int server_job_seal(const struct server_job *job, int *ret_fd)
{
    struct buffer block;

    job_begin(&block, &job->log);
    pack_u64(&block, job->listener_count);
    pack_text(&block, job->metrics_path);
    pack_u64(&block, job->text_only);
    pack_u64(&block, job->is_failing);
    pack_u64(&block, job->has_web_config);
    pack_web_config(&block, &job->web_config);
    return job_seal(&block, ret_fd);
}

int server_job_read(int fd, struct job *block, struct server_job *ret_job)
{
    struct unpack *rest = &block->rest;
    int r = job_read(fd, block);

    if (r < 0)
        return r;
    *ret_job = (struct server_job){
        .log = block->log,
        .listener_count = (size_t)unpack_u64(rest, CHILD_MORE_MAX),
        .metrics_path = unpack_text(rest),
        .text_only = unpack_u64(rest, 1) > 0,
        .is_failing = unpack_u64(rest, 1) > 0,
        .has_web_config = unpack_u64(rest, 1) > 0,
    };
    unpack_web_config(rest, &ret_job->web_config);
    r = unpack_end(rest);
    if (r < 0)
        job_done(block);
    return r;
}
