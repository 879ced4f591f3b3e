#include "collector/fetchers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/redfish_config.h"
#include "core/log.h"
#include "process/channel.h"

enum { RECORDS_PER_WAKE = 64 };

static const char without_names[] = "names from the Kubernetes API are missing; all else is served";

/* A session that is left behind at a BMC may lock out others. */
static const uint64_t STOP_US[FETCHER_KINDS] = {
    [FETCHER_BMC] = 3 * USEC_PER_SEC,
    [FETCHER_KUBERNETES] = USEC_PER_SEC / 10,
    [FETCHER_EMISSIONS] = USEC_PER_SEC / 10,
};

/* One that lives this long has recovered. The ends of one that does not are logged so often. */
static const uint64_t END_LOG_US = 60 * USEC_PER_SEC;

static int load_bmc(const struct options *options, struct redfish_config *config,
                    struct bmc_job *job, struct error *err)
{
    int r = redfish_config_load(options, config, err);

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
        .interval_us = options->redfish_interval_us,
    };
    return 0;
}

static int load_kubernetes(const struct api_config *config, struct api_secrets *secrets,
                           struct kubernetes_job *job, struct error *err)
{
    int r = api_secrets_read(config, secrets, err);

    if (r < 0)
        return r;
    *job = (struct kubernetes_job){
        .host = config->host,
        .port = config->port,
        .node = config->node,
        .token = secrets->token,
        .ca = {secrets->ca, secrets->ca_len},
    };
    return 0;
}

static int pack_job(const struct fetchers *fetchers, enum fetcher_kind kind, struct buffer *packed,
                    struct error *err)
{
    const struct fetchers_options *options = &fetchers->options;
    struct fetcher_job job = {
        .log = {options->options->log_level, options->options->log_format},
        .kind = kind,
    };
    /* The texts of the job point into these. */
    struct redfish_config redfish = {0};
    struct api_secrets api = {0};
    int r;

    if (kind == FETCHER_BMC)
        r = load_bmc(options->options, &redfish, &job.bmc, err);
    else if (kind == FETCHER_KUBERNETES)
        r = load_kubernetes(options->api, &api, &job.kubernetes, err);
    else
        r = emissions_make_job(options->emissions, &job.emissions, err);
    if (r == 0)
        fetcher_job_pack(&job, packed);
    redfish_config_done(&redfish);
    api_secrets_done(&api);
    explicit_bzero(&job, sizeof(job));
    if (r == 0 && buffer_failed(packed))
        r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

/* 1: it has a new job; 0: the same as before; or -errno, and the old one stays. */
static int renew_job(const struct fetchers *fetchers, struct fetcher *fetcher, struct error *err)
{
    struct buffer packed = {0}, *job = &fetcher->job;
    int r = pack_job(fetchers, fetcher->kind, &packed, err);

    if (r == 0 && (packed.len != job->len || memcmp(packed.data, job->data, job->len) != 0)) {
        struct buffer old = *job;

        *job = packed;
        packed = old;
        fetcher->is_restart = false;
        r = 1;
    }
    buffer_wipe(&packed);
    return r;
}

static bool renew_stamps(struct fetcher *fetcher)
{
    bool has_changed = false;

    for (size_t i = 0; i < FETCHER_FILES; i++)
        has_changed |= file_stamp_update(&fetcher->stamps[i], fetcher->files[i]);
    return has_changed;
}

static void name_files(const struct fetchers_options *options, struct fetcher *fetcher)
{
    static const char *const names[FETCHER_FILES] = {"token", "ca.crt"};

    if (fetcher->kind == FETCHER_BMC) {
        fetcher->files[0] = options->options->redfish_credentials_path;
        fetcher->files[1] = options->options->redfish_ca_path;
    } else if (fetcher->kind == FETCHER_EMISSIONS) {
        fetcher->files[0] = options->options->emissions_keys_path;
    } else if (options->api) {
        for (size_t i = 0; i < FETCHER_FILES; i++) {
            snprintf(fetcher->paths[i], sizeof(fetcher->paths[i]), "%.490s/%s",
                     options->api->directory, names[i]);
            fetcher->files[i] = fetcher->paths[i];
        }
    }
}

/* The kubelet may write the token later; a user's mistake must be corrected by the user. */
static int open_fetcher(const struct fetchers *fetchers, struct fetcher *fetcher, struct error *err)
{
    const struct options *options = fetchers->options.options;
    int r;

    name_files(&fetchers->options, fetcher);
    if (!fetcher->is_wanted)
        return 0;
    (void)renew_stamps(fetcher);
    r = renew_job(fetchers, fetcher, err);
    if (r < 0 && fetcher->kind == FETCHER_KUBERNETES) {
        log_warn(without_names, "error", err->text);
        return 0;
    }
    if (r < 0)
        return r;
    if (fetcher->kind == FETCHER_BMC && options->redfish_insecure)
        log_warn("--redfish.insecure: the certificate of the BMC is not verified, and any server "
                 "that answers gets its password",
                 "url", options->redfish_url);
    fetcher->child.restart_us = 0;
    return 0;
}

int fetchers_open(struct fetchers *fetchers, const struct fetchers_options *options,
                  struct error *err)
{
    const bool is_wanted[FETCHER_KINDS] = {
        [FETCHER_BMC] = options->with_bmc,
        [FETCHER_KUBERNETES] = options->api != NULL,
        [FETCHER_EMISSIONS] = options->emissions->config.poll_count > 0,
    };
    int r = 0;

    *fetchers = (struct fetchers){.options = *options, .readings_fds = {-1, -1}, .epoll_fd = -1};
    if (options->with_bmc)
        r = channel_open(&fetchers->readings_fds[0], &fetchers->readings_fds[1]);
    if (r < 0)
        error_format(err, "cannot make a channel: %s", strerror(-r));
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];

        fetcher->kind = (enum fetcher_kind)kind;
        fetcher->is_wanted = is_wanted[kind];
        fetcher->names_result = 1;
        child_init(&fetcher->child, "fetcher");
        fetcher->child.label = fetcher_words[kind];
        if (r == 0)
            r = open_fetcher(fetchers, fetcher, err);
    }
    return r;
}

void fetchers_close(struct fetchers *fetchers)
{
    if (!fetchers->options.options)
        return;
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        child_stop(&fetchers->items[kind].child, 0);
        buffer_wipe(&fetchers->items[kind].job);
    }
    cleanup_close(&fetchers->readings_fds[0]);
    cleanup_close(&fetchers->readings_fds[1]);
}

/* Names that will not come are not to be waited for. */
static void lose_names(const struct fetchers *fetchers, const struct fetcher *fetcher, int why)
{
    if (fetcher->kind != FETCHER_KUBERNETES || !fetchers->identity)
        return;
    identity_note_api_server(fetchers->identity, why, 0);
    identity_expect_names(fetchers->identity, false);
}

static int start_fetcher(const struct fetchers *fetchers, struct fetcher *fetcher, uint64_t now_us,
                         struct error *err)
{
    _cleanup_close_ int job_fd = fetcher_job_seal(&fetcher->job, fetcher->is_restart);
    int r = child_start(&fetcher->child, job_fd, &fetchers->readings_fds[1],
                        fetcher->kind == FETCHER_BMC, now_us, err);

    if (r < 0)
        return r;
    fetcher->is_restart = true;
    if (fetcher->kind == FETCHER_KUBERNETES && fetchers->identity)
        identity_expect_names(fetchers->identity, fetcher->names_result != -EHOSTUNREACH);
    return child_watch(&fetcher->child, fetchers->epoll_fd, fetchers->first_event + fetcher->kind,
                       err);
}

void fetchers_start_due(struct fetchers *fetchers)
{
    const struct clock *clock = fetchers->options.clock;
    uint64_t now_us = clock->monotonic_us(clock);
    struct error err;

    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];

        if (fetcher->is_wanted && fetcher->job.len == 0)
            lose_names(fetchers, fetcher, -ENOENT);
        if (now_us >= fetcher->child.restart_us &&
            start_fetcher(fetchers, fetcher, now_us, &err) < 0)
            log_error("cannot start a fetcher; trying again", "fetcher", fetcher_words[kind],
                      "error", err.text);
    }
}

void fetchers_check_files(struct fetchers *fetchers)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];
        struct error err;
        int r;

        if (fetcher->child.is_replaced) /* by the last call: it hangs */
            (void)child_kill(&fetcher->child);
        if (!fetcher->is_wanted || !renew_stamps(fetcher))
            continue;
        r = renew_job(fetchers, fetcher, &err);
        if (r < 0)
            log_error(
                "the secrets of a fetcher have changed and cannot be used; keeping the previous ones",
                "fetcher", fetcher_words[kind], "error", err.text);
        if (r <= 0)
            continue;
        log_info("the secrets of a fetcher have changed and are used from now on", "fetcher",
                 fetcher_words[kind], "file", fetcher->files[0]);
        if (fetcher->child.pid > 0)
            child_replace(&fetcher->child);
        else
            fetcher->child.restart_us = 0;
    }
}

/* As from any outside source: only valid names count, and a pod only where the cgroup names it. */
static int learn_container(struct identity *identity, const struct channel_container *record)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    if (record->id[0] == '\0')
        r = container_list_add_pod(&list, record->namespace, record->pod, record->pod_uid);
    else
        r = container_list_add(&list, &(struct container){
                                          .id = record->id,
                                          .name = record->container,
                                          .namespace = record->namespace,
                                          .pod = record->pod,
                                          .pod_uid = record->pod_uid,
                                          .image = record->image,
                                      });
    if (r == 0)
        identity_add_names(identity, &list);
    container_list_done(&list);
    return r;
}

/* Once per change, whichever process reports it. */
static void log_names_state(const struct api_config *api, struct fetcher *fetcher,
                            const struct channel_names_state *state)
{
    bool is_v6 = strchr(api->host, ':') != NULL;
    char url[320];

    if (state->result == fetcher->names_result)
        return;
    fetcher->names_result = state->result;
    snprintf(url, sizeof(url), "https://%s%s%s:%s", is_v6 ? "[" : "", api->host, is_v6 ? "]" : "",
             api->port);
    if (state->result == 0)
        log_info("reading this node's pod names from the Kubernetes API", "url", url, "node",
                 api->node);
    else if (state->result == -EACCES)
        log_warn("the Kubernetes API denies access: its names are missing; let the service account "
                 "list and watch pods",
                 "url", url, "error", state->why);
    else if (state->result == -EHOSTUNREACH)
        log_warn(without_names, "error", state->why);
    else
        log_warn("the Kubernetes API fails: its names are missing", "url", url, "error",
                 state->why);
}

static int read_names(const struct fetchers *fetchers, struct fetcher *fetcher)
{
    struct identity *identity = fetchers->identity;
    struct channel_names names;
    struct channel_ping pong;
    int r = channel_receive_names(fetcher->child.channel_fd, &names, &pong);

    if (r != 0)
        return r < 0 ? r : child_note_pong(&fetcher->child, &pong);
    if (names.is_state) {
        log_names_state(fetchers->options.api, fetcher, &names.state);
        identity_note_api_server(identity, names.state.result, names.state.duration_us);
        /* A name without an address may have none for days. */
        identity_expect_names(identity, names.state.result != -EHOSTUNREACH);
    } else if (learn_container(identity, &names.container) < 0) {
        log_error("out of memory: names of a container are lost");
    }
    return 0;
}

static int read_factor(const struct fetchers *fetchers, struct fetcher *fetcher)
{
    struct channel_factor factor;
    struct channel_ping pong;
    int r = channel_receive_factor(fetcher->child.channel_fd, &factor, &pong);

    if (r != 0)
        return r < 0 ? r : child_note_pong(&fetcher->child, &pong);
    emissions_take_record(fetchers->options.emissions, &factor);
    return 0;
}

/* Its readings go straight to their source. */
static int read_bmc(const struct fetchers *fetchers, struct fetcher *fetcher)
{
    struct channel_ping pong;
    int r = channel_receive_ping(fetcher->child.channel_fd, &pong);

    (void)fetchers;
    return r < 0 ? r : child_note_pong(&fetcher->child, &pong);
}

void fetchers_read(struct fetchers *fetchers, enum fetcher_kind kind)
{
    static int (*const readers[FETCHER_KINDS])(const struct fetchers *, struct fetcher *) = {
        [FETCHER_BMC] = read_bmc,
        [FETCHER_KUBERNETES] = read_names,
        [FETCHER_EMISSIONS] = read_factor,
    };
    struct fetcher *fetcher = &fetchers->items[kind];
    int r = 0;

    if (fetcher->child.channel_fd < 0)
        return;
    for (int i = 0; i < RECORDS_PER_WAKE && r == 0; i++)
        r = readers[kind](fetchers, fetcher);
    if (r == 0 || r == -EAGAIN)
        return;
    lose_names(fetchers, fetcher, r);
    if (r != -ENOTCONN)
        log_error("a fetcher broke the protocol and is replaced", "fetcher", fetcher_words[kind],
                  "error", strerror(-r));
    /* Either it is dying, or it must: SIGCHLD brings the next one. */
    (void)child_kill(&fetcher->child);
}

void fetchers_ping(struct fetchers *fetchers)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        int r = child_ping(&fetchers->items[kind].child);

        if (r == -ETIMEDOUT)
            log_warn("a fetcher hangs: it was killed, and another one is started", "fetcher",
                     fetcher_words[kind]);
        else if (r < 0)
            log_error("a fetcher hangs and cannot be killed: what it reads is missing; give the "
                      "collector CAP_KILL, or continue or end that process",
                      "fetcher", fetcher_words[kind]);
    }
}

static void log_end(struct fetcher *fetcher, int status, uint64_t now_us)
{
    const char *word = fetcher_words[fetcher->kind];
    char how[64], times[16];

    if (now_us - fetcher->child.started_us >= END_LOG_US)
        fetcher->ends = 0;
    fetcher->ends++;
    if (fetcher->ends > 1 && now_us - fetcher->end_logged_us < END_LOG_US)
        return;
    fetcher->end_logged_us = now_us;
    child_describe_end(status, how, sizeof(how));
    snprintf(times, sizeof(times), "%u", fetcher->ends);
    log_warn("a fetcher ended and is started again", "fetcher", word, "how", how, "times", times);
}

void fetchers_reap(struct fetchers *fetchers)
{
    const struct clock *clock = fetchers->options.clock;

    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &fetchers->items[kind];
        bool was_replaced = fetcher->child.is_replaced;
        uint64_t now_us = clock->monotonic_us(clock);
        int status;

        if (!child_reap(&fetcher->child, now_us, &status))
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == FETCHER_RESTART)
            fetcher->is_restart = false; /* it has ended in good order */
        else if (!was_replaced && !fetcher->child.has_hung)
            log_end(fetcher, status, now_us);
        lose_names(fetchers, fetcher, -ENOTCONN);
    }
}

void fetchers_stop(struct fetchers *fetchers)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) /* all together */
        child_replace(&fetchers->items[kind].child);
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        child_stop(&fetchers->items[kind].child, STOP_US[kind]);
}
