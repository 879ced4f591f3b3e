/*
 * The fetchers as the collector sees them: which are wanted, what each is told, and the files that
 * it comes from. A file that changes brings another process, with the new secrets; one that is bad
 * leaves things as they are.
 */
#pragma once

#include <stdbool.h>

#include "collector/emissions.h"
#include "config/api_config.h"
#include "config/file_stamp.h"
#include "config/redfish_config.h"
#include "process/child.h"
#include "process/fetcher_job.h"

enum { FETCHER_FILES = 2 };

/* What a job's texts point into. */
struct fetcher_secrets {
    struct redfish_config redfish;
    struct api_secrets api;
};

struct fetcher {
    enum fetcher_kind kind;
    bool is_wanted;
    bool has_job; /* its files could be read */
    const struct options *options;
    const struct api_config *api;      /* of FETCHER_KUBERNETES */
    const struct emissions *emissions; /* of FETCHER_EMISSIONS */
    const char *files[FETCHER_FILES];  /* "": none */
    char paths[FETCHER_FILES][512];    /* of those that are made up */
    struct file_stamp stamps[FETCHER_FILES];
    struct fetcher_job job;
    struct fetcher_secrets *secrets; /* NULL: none yet */
    struct child child;
};

struct fetchers {
    struct fetcher items[FETCHER_KINDS];
    int readings_fds[2]; /* of the BMC: ours, and the one that each of its processes gets */
};

struct fetchers_options {
    const struct options *options;
    bool with_bmc;
    const struct api_config *api; /* NULL: the API server is not asked */
    const struct emissions *emissions;
};

/* Reads all files. It must stay where it is, and what the options lead to must outlive it. 0 or
 * -errno with what to do; to be closed in any case. */
int fetchers_open(struct fetchers *fetchers, const struct fetchers_options *options,
                  struct error *err);
void fetchers_close(struct fetchers *fetchers);

/* Starts one that is wanted, has a job and does not run. Its channel is child.channel_fd. 0 or
 * -errno: then it is due again. */
int fetcher_start(const struct fetchers *fetchers, struct fetcher *fetcher, uint64_t now_us,
                  struct error *err);

/* What is logged where that fails. */
const char *fetcher_cannot_start(const struct fetcher *fetcher);

/* Whether its files have changed; logged. Those of a process that is held up end it by force. */
void fetcher_look(struct fetcher *fetcher);

/* After SIGCHLD: true if it has ended, which is logged unless it was asked to. */
bool fetcher_reap(struct fetcher *fetcher, uint64_t now_us);

/* It said what makes no sense: it is replaced. */
void fetcher_break(struct fetcher *fetcher, int error);

/* Asks all to end, and ends them by force after a while: logging out of a BMC may take some. */
void fetchers_stop(struct fetchers *fetchers);
