#include "process/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/pack.h"
#include "process/child.h"

enum { MAGIC = 0x31627757, MAX_BYTES = 16 << 20 };

const char *const fetcher_words[FETCHER_KINDS] = {"bmc", "kubernetes", "emissions"};

const char *const proxy_variables[PROXY_VARIABLES] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                                      "ALL_PROXY",   "no_proxy",    "NO_PROXY"};

static void code_log(struct coder *coder, struct job_log *log)
{
    if (code_u64(coder, MAGIC, MAGIC) != MAGIC)
        coder->in.is_broken = true;
    log->level = (enum log_level)code_u64(coder, log->level, LOG_LEVEL_ERROR);
    log->format = (enum log_format)code_u64(coder, log->format, LOG_FORMAT_JSON);
}

static void code_server(struct coder *coder, struct server_job *job)
{
    code_log(coder, &job->log);
    job->listener_count = code_u64(coder, job->listener_count, CHILD_MORE_MAX);
    job->metrics_path = code_text(coder, job->metrics_path);
    job->text_only = code_u64(coder, job->text_only, 1);
    job->is_failing = code_u64(coder, job->is_failing, 1);
    job->web_config = code_bytes(coder, job->web_config);
}

static void code_checker(struct coder *coder, struct checker_job *job)
{
    code_log(coder, &job->log);
    job->procfs_path = code_text(coder, job->procfs_path);
    job->sysfs_path = code_text(coder, job->sysfs_path);
    job->rootfs_path = code_text(coder, job->rootfs_path);
    job->interval_us = code_u64(coder, job->interval_us, UINT64_MAX);
    job->off_count = code_u64(coder, job->off_count, SOURCE_SWITCHES_MAX);
    for (size_t i = 0; i < job->off_count; i++)
        job->off[i] = code_text(coder, job->off[i]);
    job->has_model = code_u64(coder, job->has_model, 1);
    job->model_by_table = code_u64(coder, job->model_by_table, 1);
    job->model_idle_uw = code_u64(coder, job->model_idle_uw, UINT64_MAX);
    job->model_full_uw = code_u64(coder, job->model_full_uw, UINT64_MAX);
}

static void code_bmc(struct coder *coder, struct bmc_job *job)
{
    job->url = code_text(coder, job->url);
    job->host = code_text(coder, job->host);
    job->port = code_text(coder, job->port);
    job->user = code_text(coder, job->user);
    job->password = code_text(coder, job->password);
    job->ca = code_bytes(coder, job->ca);
    job->certificate_sha256 = code_bytes(coder, job->certificate_sha256);
    job->is_insecure = code_u64(coder, job->is_insecure, 1);
    job->interval_us = code_u64(coder, job->interval_us, UINT64_MAX);
}

static void code_kubernetes(struct coder *coder, struct kubernetes_job *job)
{
    job->host = code_text(coder, job->host);
    job->port = code_text(coder, job->port);
    job->node = code_text(coder, job->node);
    job->token = code_text(coder, job->token);
    job->ca = code_bytes(coder, job->ca);
}

static void code_emissions(struct coder *coder, struct emissions_job *job)
{
    job->ca_path = code_text(coder, job->ca_path);
    job->interval_us = code_u64(coder, job->interval_us, UINT64_MAX);
    job->basis = (enum price_basis)code_u64(coder, job->basis, PRICE_BASES - 1);
    job->count = code_u64(coder, job->count, CHOICE_MAX);
    for (size_t i = 0; i < job->count; i++) {
        job->polls[i].provider = code_text(coder, job->polls[i].provider);
        job->polls[i].zone = code_text(coder, job->polls[i].zone);
        job->polls[i].url = code_text(coder, job->polls[i].url);
    }
    for (size_t i = 0; i < EMISSION_KEYS_MAX; i++) {
        const char *key = code_text(coder, job->keys.values[i]);

        if (strlen(key) >= EMISSION_KEY_BYTES)
            coder->in.is_broken = true;
        else if (key != job->keys.values[i])
            memcpy(job->keys.values[i], key, strlen(key) + 1);
    }
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        job->proxies[i] = code_text(coder, job->proxies[i]);
}

static void code_fetcher(struct coder *coder, struct fetcher_job *job)
{
    code_log(coder, &job->log);
    job->kind = (enum fetcher_kind)code_u64(coder, job->kind, FETCHER_KINDS - 1);
    if (job->kind == FETCHER_BMC)
        code_bmc(coder, &job->bmc);
    else if (job->kind == FETCHER_KUBERNETES)
        code_kubernetes(coder, &job->kubernetes);
    else
        code_emissions(coder, &job->emissions);
}

/* Wipes what was packed. */
static int seal(struct buffer *packed)
{
    int fd = -1;
    int r = buffer_failed(packed) ? -ENOMEM : fs_create_sealed(packed->data, packed->len, &fd);

    buffer_wipe(packed);
    return r < 0 ? r : fd;
}

int server_job_seal(const struct server_job *job)
{
    struct server_job copy = *job;
    struct buffer packed;

    buffer_init(&packed, MAX_BYTES);
    code_server(&(struct coder){.out = &packed}, &copy);
    return seal(&packed);
}

int checker_job_seal(const struct checker_job *job)
{
    struct checker_job copy = *job;
    struct buffer packed;

    buffer_init(&packed, MAX_BYTES);
    code_checker(&(struct coder){.out = &packed}, &copy);
    return seal(&packed);
}

void fetcher_job_pack(struct fetcher_job *job, struct buffer *ret_packed)
{
    buffer_init(ret_packed, MAX_BYTES);
    code_fetcher(&(struct coder){.out = ret_packed}, job); /* which changes nothing in it */
}

int fetcher_job_seal(const struct buffer *packed, bool is_restart)
{
    struct buffer whole;

    buffer_init(&whole, MAX_BYTES);
    buffer_bytes(&whole, packed->data, packed->len);
    pack_u64(&whole, is_restart);
    return seal(&whole);
}

static int begin_read(int fd, struct job *ret_block, struct coder *coder)
{
    off_t size = lseek(fd, 0, SEEK_END);

    if (size <= 0 || size > MAX_BYTES || fs_check_sealed(fd, (uint64_t)size) < 0)
        return -EPROTO;
    *ret_block = (struct job){.bytes = malloc((size_t)size), .len = (size_t)size};
    if (!ret_block->bytes)
        return -ENOMEM;
    if (pread(fd, ret_block->bytes, ret_block->len, 0) != size) {
        job_done(ret_block);
        return -EPROTO;
    }
    *coder = (struct coder){.in.rest = {ret_block->bytes, ret_block->len}};
    return 0;
}

static int end_read(const struct coder *coder, struct job *block)
{
    int r = unpack_end(&coder->in);

    if (r < 0)
        job_done(block);
    return r;
}

int server_job_read(int fd, struct job *ret_block, struct server_job *ret_job)
{
    struct coder coder;
    int r = begin_read(fd, ret_block, &coder);

    if (r < 0)
        return r;
    *ret_job = (struct server_job){0};
    code_server(&coder, ret_job);
    return end_read(&coder, ret_block);
}

int checker_job_read(int fd, struct job *ret_block, struct checker_job *ret_job)
{
    struct coder coder;
    int r = begin_read(fd, ret_block, &coder);

    if (r < 0)
        return r;
    *ret_job = (struct checker_job){0};
    code_checker(&coder, ret_job);
    return end_read(&coder, ret_block);
}

int fetcher_job_read(int fd, struct job *ret_block, struct fetcher_job *ret_job)
{
    struct coder coder;
    int r = begin_read(fd, ret_block, &coder);

    if (r < 0)
        return r;
    memset(ret_job, 0, sizeof(*ret_job)); /* the whole union */
    code_fetcher(&coder, ret_job);
    ret_job->is_restart = code_u64(&coder, 0, 1);
    return end_read(&coder, ret_block);
}

void job_done(struct job *block)
{
    if (block->bytes)
        explicit_bzero(block->bytes, block->len);
    free(block->bytes);
    *block = (struct job){0};
}
