/*
 * The measuring part of `wattribute run`: a measurement of this process, a daemon that is asked, or
 * both. A daemon knows the programs on the GPUs, and may read meters that this process may not;
 * what this process may read, it reads itself, to the millisecond at which the command begins and
 * ends.
 */
#pragma once

#include "cli/daemon_client.h"
#include "collector/measurement.h"
#include "config/options.h"
#include "host/host.h"
#include "host/machine.h"
#include "model/report.h"
#include "run/books.h"
#include "run/family.h"
#include "run/own_cgroup.h"
#include "run/result.h"

/* One time that the command runs. */
struct repetition {
    struct family family;
    struct own_cgroup cgroup;
    bool has_cgroup;
    int status;
    bool is_interrupted;
    uint64_t began_us, ended_us; /* monotonic */
    uint64_t cpu_us;
    double peak_w;
    size_t left_running;
    uint64_t missed_us; /* CPU time that its processes may have used unseen */
    uint64_t lost_us;   /* of its time the daemon told nothing */
    struct books before, after, daemon_before, daemon_after; /* without rows */
};

struct run_session {
    const struct options *options;
    struct host host;
    struct measurement *measurement;
    struct daemon_client *daemon; /* NULL: nobody is asked */
    struct books local, remote;   /* as last read */
    int signal_fd;                /* a daemon is not waited for when it is readable; -1: it is */
    uint64_t heard_us;            /* when the daemon answered last */
    uint64_t ask_us;              /* not earlier, as it failed */
    struct error trouble;         /* why it did; "": it answered */
    struct error lost_why;        /* of what is in lost_us */
    bool is_fed;                  /* the processors are read by the daemon alone */
    bool hangs;                   /* a check of a source does */
    bool has_reported;            /* the first usage was */
    struct machine machine;
    struct repetition *now; /* NULL: none runs */
    uint64_t reported_cpu_us;
    uint64_t fed_uj, divided_fed_uj; /* the daemon's counters now, and when usage was reported */
    uint64_t tick_us;                /* when the next one is due */
    uint64_t step_us, step_uj,
        step_all_uj;     /* of the last tick: time, energy of the command, of all */
    uint64_t command_uj; /* of the repetition so far */
    double watts;        /* since the last tick */
};

/* Opens what there is. Blocks until meters were read once, for two seconds at most. 0 or -errno. */
int run_session_open(struct run_session *session, const struct options *options, struct error *err);

/* False: a thread hangs, so that the program may only end by _exit(). */
bool run_session_close(struct run_session *session);

/* Reads the meters at the beginning and at the end of a repetition. */
void run_session_begin(struct run_session *session, struct repetition *repetition);
void run_session_end(struct run_session *session);

/* Reads what is due, and returns when to call it next. */
uint64_t run_session_tick(struct run_session *session);

/* Waits until what GPUs counted is divided, if the command used any. */
void run_session_settle(struct run_session *session, struct repetition *repetitions, size_t count);

void run_session_result(const struct run_session *session, const struct repetition *repetition,
                        struct result *ret_result);

/* run_daemon.c. Asks quietly, unless a user named it: then 0 or -errno. */
int run_daemon_open(struct run_session *session, struct error *err);

/* True: there is a new document. If it may not wait, a signal ends it, and a daemon that failed is
 * not asked every time. */
bool run_daemon_refresh(struct run_session *session, bool may_wait);

/* After the last document of a repetition: what it does not have is lost. */
void run_daemon_end(struct run_session *session);
void run_daemon_explain(const struct run_session *session, uint64_t lost_us, struct report *report);

/* run_explain.c: what could not be measured, and why. */
void run_session_explain(struct run_session *session, const struct result *result,
                         struct report *report);
