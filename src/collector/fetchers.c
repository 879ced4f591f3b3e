#include "collector/fetchers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "process/channel.h"

/* A session that is left behind at a BMC may lock out others. */
static const uint64_t STOP_US[FETCHER_KINDS] = {
    [FETCHER_BMC] = 3 * USEC_PER_SEC,
    [FETCHER_KUBERNETES] = USEC_PER_SEC / 10,
    [FETCHER_EMISSIONS] = USEC_PER_SEC / 10,
};

/* What is logged of each. */
static const struct {
    const char *ended, *cannot_start, *changed, *bad;
} messages[FETCHER_KINDS] = {
    [FETCHER_BMC] =
        {
            "the process that asks the BMC ended and is started again; its readings pause",
            "cannot start the process that asks the BMC; trying again",
            "the credentials of the BMC have changed and are used from now on",
            "the credentials of the BMC have changed and cannot be used; those before stay",
        },
    [FETCHER_KUBERNETES] =
        {
            "the process that asks the Kubernetes API ended and is started again; the names that it "
            "told stay",
            "cannot start the process that asks the Kubernetes API; trying again",
            "the service account has another token, which is used from now on",
            "names from the Kubernetes API are missing; all else is served",
        },
    [FETCHER_EMISSIONS] =
        {
            "the process that asks for emission factors ended and is started again; the last factors "
            "stay",
            "cannot start the process that asks for emission factors; trying again",
            "the keys of emission factors have changed and are used from now on",
            "the keys of emission factors have changed and cannot be used; those before stay",
        },
};

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void free_secrets(struct fetcher_secrets *secrets)
{
    if (!secrets)
        return;
    redfish_config_done(&secrets->redfish);
    api_secrets_done(&secrets->api);
    free(secrets);
}

static int load_bmc(const struct fetcher *fetcher, struct fetcher_secrets *secrets,
                    struct bmc_job *job, struct error *err)
{
    struct redfish_config *config = &secrets->redfish;
    int r = redfish_config_load(fetcher->options, config, err);

    if (r < 0)
        return r;
    *job = (struct bmc_job){
        .url = config->url,
        .host = config->host,
        .port = config->port,
        .user = config->user,
        .password = config->password,
        .ca = {config->ca, config->ca_len},
        .certificate_sha256 = {(const char *)config->certificate_sha256,
                               config->is_pinned ? sizeof(config->certificate_sha256) : 0},
        .is_insecure = config->is_insecure,
        .interval_us = fetcher->options->redfish_interval_us,
    };
    return 0;
}

static int load_kubernetes(const struct fetcher *fetcher, struct fetcher_secrets *secrets,
                           struct kubernetes_job *job, struct error *err)
{
    const struct api_config *config = fetcher->api;
    int r = api_secrets_read(config, &secrets->api, err);

    if (r < 0)
        return r;
    *job = (struct kubernetes_job){
        .host = config->host,
        .port = config->port,
        .node = config->node,
        .token = secrets->api.token,
        .ca = {secrets->api.ca, secrets->api.ca_len},
    };
    return 0;
}

/* A job with the secrets of now, which it points into. */
static int load(const struct fetcher *fetcher, struct fetcher_secrets *secrets,
                struct fetcher_job *job, struct error *err)
{
    *job = (struct fetcher_job){
        .log = {fetcher->options->log_level, fetcher->options->log_format},
        .kind = fetcher->kind,
    };
    switch (fetcher->kind) {
    case FETCHER_BMC:
        return load_bmc(fetcher, secrets, &job->bmc, err);
    case FETCHER_KUBERNETES:
        return load_kubernetes(fetcher, secrets, &job->kubernetes, err);
    case FETCHER_EMISSIONS:
        return emissions_make_job(fetcher->emissions, &job->emissions, err);
    case FETCHER_KINDS:
        break;
    }
    return -EINVAL;
}

/* 1: it has another job than before; 0: the same; or -errno, and the one before stays. */
static int renew_job(struct fetcher *fetcher, struct error *err)
{
    struct fetcher_secrets *secrets = calloc(1, sizeof(*secrets));
    struct fetcher_job job;
    bool is_same = false;
    int r = secrets ? load(fetcher, secrets, &job, err) : error_set(err, -ENOMEM, "out of memory");

    if (r == 0)
        is_same = fetcher->has_job && fetcher_job_is_same(&job, &fetcher->job);
    if (r == 0 && !is_same) {
        free_secrets(fetcher->secrets);
        fetcher->job = job;
        fetcher->secrets = secrets;
        fetcher->has_job = true;
        return 1;
    }
    free_secrets(secrets);
    explicit_bzero(&job, sizeof(job));
    return r;
}

static bool renew_stamps(struct fetcher *fetcher)
{
    bool has_changed = false;

    for (size_t i = 0; i < FETCHER_FILES; i++)
        has_changed |= file_stamp_renew(&fetcher->stamps[i], fetcher->files[i]);
    return has_changed;
}

static void name_files(struct fetcher *fetcher)
{
    const struct options *options = fetcher->options;
    const char *first = "", *second = "";

    if (fetcher->kind == FETCHER_BMC) {
        first = or_empty(options->redfish_credentials_path);
        second = or_empty(options->redfish_ca_path);
    } else if (fetcher->kind == FETCHER_EMISSIONS) {
        first = or_empty(options->emissions_keys_path);
    } else if (fetcher->api) {
        snprintf(fetcher->paths[0], sizeof(fetcher->paths[0]), "%.490s/token",
                 fetcher->api->directory);
        snprintf(fetcher->paths[1], sizeof(fetcher->paths[1]), "%.490s/ca.crt",
                 fetcher->api->directory);
        first = fetcher->paths[0];
        second = fetcher->paths[1];
    }
    fetcher->files[0] = first;
    fetcher->files[1] = second;
}

/* The kubelet may write the token later; a user's mistake is for the user to mend. */
static int open_fetcher(struct fetcher *fetcher, struct error *err)
{
    int r;

    name_files(fetcher);
    child_init(&fetcher->child, "fetcher");
    if (!fetcher->is_wanted)
        return 0;
    (void)renew_stamps(fetcher);
    r = renew_job(fetcher, err);
    if (r > 0 && fetcher->kind == FETCHER_BMC && fetcher->job.bmc.is_insecure)
        log_warn(
            "--redfish.insecure: whoever answers as the BMC is believed, and told its password",
            "url", fetcher->job.bmc.url);
    if (r < 0 && fetcher->kind == FETCHER_KUBERNETES) {
        log_warn(messages[fetcher->kind].bad, "error", err->text);
        return 0;
    }
    return r < 0 ? r : 0;
}

int fetchers_open(struct fetchers *fetchers, const struct fetchers_options *options,
                  struct error *err)
{
    const bool is_wanted[FETCHER_KINDS] = {
        [FETCHER_BMC] = options->with_bmc,
        [FETCHER_KUBERNETES] = options->api != NULL,
        [FETCHER_EMISSIONS] = emissions_are_fetched(options->emissions),
    };
    int r = 0;

    *fetchers = (struct fetchers){.readings_fds = {-1, -1}};
    if (options->with_bmc)
        r = channel_open(&fetchers->readings_fds[0], &fetchers->readings_fds[1]);
    if (r < 0)
        error_format(err, "cannot make a channel: %s", strerror(-r));
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];

        fetcher->kind = (enum fetcher_kind)kind;
        fetcher->is_wanted = is_wanted[kind];
        fetcher->options = options->options;
        fetcher->api = options->api;
        fetcher->emissions = options->emissions;
        if (r == 0)
            r = open_fetcher(fetcher, err);
        else
            child_init(&fetcher->child, "fetcher");
    }
    return r;
}

void fetchers_close(struct fetchers *fetchers)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];

        child_stop(&fetcher->child, 0);
        free_secrets(fetcher->secrets);
        fetcher->secrets = NULL;
        explicit_bzero(&fetcher->job, sizeof(fetcher->job));
    }
    cleanup_close(&fetchers->readings_fds[0]);
    cleanup_close(&fetchers->readings_fds[1]);
}

int fetcher_start(const struct fetchers *fetchers, struct fetcher *fetcher, uint64_t now_us,
                  struct error *err)
{
    int job_fd, r;

    if (!fetcher->has_job || fetcher->child.pid > 0)
        return 0;
    r = fetcher_job_seal(&fetcher->job, &job_fd);
    if (r < 0)
        return child_fail(&fetcher->child, r, now_us, err);
    r = child_start(&fetcher->child, job_fd, &fetchers->readings_fds[1],
                    fetcher->kind == FETCHER_BMC, now_us, err);
    close(job_fd);
    fetcher->job.is_again = true;
    return r;
}

void fetcher_look(struct fetcher *fetcher)
{
    bool had_job = fetcher->has_job, was_again = fetcher->job.is_again;
    struct error err;
    int r;

    if (!fetcher->is_wanted)
        return;
    if (fetcher->child.is_replaced) /* since the last look: it is held up */
        child_kill(&fetcher->child);
    if (!renew_stamps(fetcher))
        return;
    fetcher->job.is_again = false; /* it is no difference */
    r = renew_job(fetcher, &err);
    if (r <= 0)
        fetcher->job.is_again = was_again;
    if (r < 0)
        log_error(messages[fetcher->kind].bad, "error", err.text);
    if (r <= 0)
        return;
    log_info(messages[fetcher->kind].changed, "file", fetcher->files[0]);
    if (had_job)
        child_replace(&fetcher->child);
    else
        fetcher->child.restart_us = 1; /* at once */
}

bool fetcher_reap(struct fetcher *fetcher, uint64_t now_us)
{
    bool was_asked_to = fetcher->child.is_replaced;
    char how[64];
    int status;

    if (!child_reap(&fetcher->child, now_us, &status))
        return false;
    if (!was_asked_to)
        log_warn(messages[fetcher->kind].ended, "how",
                 child_describe_end(status, how, sizeof(how)));
    return true;
}

void fetcher_break(struct fetcher *fetcher, int error)
{
    if (error != -ENOTCONN)
        log_error("a fetcher broke the protocol and is replaced", "fetcher",
                  fetcher_words[fetcher->kind], "error", strerror(-error));
    /* Either it is dying, or it must: SIGCHLD brings the next one. */
    child_kill(&fetcher->child);
}

const char *fetcher_cannot_start(const struct fetcher *fetcher)
{
    return messages[fetcher->kind].cannot_start;
}

void fetchers_stop(struct fetchers *fetchers)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) /* all together */
        child_replace(&fetchers->items[kind].child);
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        child_stop(&fetchers->items[kind].child, STOP_US[kind]);
}
