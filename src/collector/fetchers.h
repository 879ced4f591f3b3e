/*
 * The fetchers of the collector: which are configured, the job of each with the files that it comes
 * from, and what they report. When a file changes, another process follows with the new secrets; a
 * bad file changes nothing.
 */
#pragma once

#include <stdbool.h>

#include "collector/emissions.h"
#include "config/api_config.h"
#include "config/file_stamp.h"
#include "core/buffer.h"
#include "identity/identity.h"
#include "process/child.h"
#include "process/job.h"

enum { FETCHER_FILES = 2 };

struct fetcher {
    enum fetcher_kind kind;
    bool is_wanted;
    bool is_restart;                  /* a process was started with this job */
    const char *files[FETCHER_FILES]; /* NULL: none */
    char paths[FETCHER_FILES][512];   /* of the service account */
    struct file_stamp stamps[FETCHER_FILES];
    struct buffer job; /* packed; empty: its files cannot be used yet */
    struct child child;
    int names_result;       /* as the API server's fetchers reported last; 1: nothing yet */
    unsigned ends;          /* in a row: none has lived for a minute */
    uint64_t end_logged_us; /* the last of them that was logged */
};

struct fetchers_options {
    const struct options *options;
    const struct clock *clock;
    bool with_bmc;
    const struct api_config *api; /* NULL: no names from the API server */
    struct emissions *emissions;
};

struct fetchers {
    struct fetchers_options options;
    struct fetcher items[FETCHER_KINDS];
    int readings_fds[2]; /* of the BMC: ours, and the one that each of its processes gets */
    /* To be set before the first start. */
    struct identity *identity; /* NULL: no names are wanted */
    int epoll_fd;
    uint32_t first_event; /* of the events of their channels: one for each kind, in order */
};

/* Reads all files. It must stay where it is, and what the options point to must outlive it. 0 or
 * -errno with what to do; to be closed in any case. */
int fetchers_open(struct fetchers *fetchers, const struct fetchers_options *options,
                  struct error *err);
void fetchers_close(struct fetchers *fetchers);

/* Starts those that are due by their child.restart_us. */
void fetchers_start_due(struct fetchers *fetchers);

/* Replaces those whose files have changed, and kills those that were to end by the last call. */
void fetchers_check_files(struct fetchers *fetchers);

/* Reads what one reported. One that breaks the protocol is replaced. */
void fetchers_read(struct fetchers *fetchers, enum fetcher_kind kind);

/* Once each CHILD_PING_US: replaces those that hang. */
void fetchers_ping(struct fetchers *fetchers);

/* After SIGCHLD. */
void fetchers_reap(struct fetchers *fetchers);

/* Closes all channels, and kills those that do not end: logging out of a BMC may take a while. */
void fetchers_stop(struct fetchers *fetchers);
