/* Between the files of a collection: what it asks, how it asks, and what it does with answers. */
#pragma once

#include "report/collect.h"
#include "report/counters.h"

enum {
    ASK_COUNT,
    ASK_SEEN,
    ASK_STATES,
    ASK_STARTS,
    ASK_METERS,
    ASK_NAMES,
    ASK_DEVICES,
    ASK_BEFORE,
    ASK_AFTER,
    ASK_FIRST_COUNTER
};

/* What is added up. */
struct counter_kind {
    const char *name;
    enum totals_account account;
    enum totals_quantity quantity;
};

enum { COUNTER_KINDS = 10 };
extern const struct counter_kind counter_kinds[COUNTER_KINDS];

enum {
    COLLECT_TEXT_BYTES = 48 << 10, /* of a query */
    COLLECT_HOSTS_MAX = 512,       /* of a job, that are named in a query */
};

struct collection {
    const struct collect_options *options;
    struct collected *out;
    struct arena texts;
    struct fetch_task *tasks;
    size_t task_count, task_capacity;
    struct counters counters[COUNTER_KINDS];
    struct counters before[COUNTER_KINDS], after[COUNTER_KINDS]; /* restarts */
    const char *targets; /* matchers of targets; in `texts` */
    double rows;         /* the most at a time */
    /* Of a life: who had it, and when. */
    const char *hosts[COLLECT_HOSTS_MAX];
    size_t host_count;
    double first_s, last_s;
};

static inline bool collect_is_life(const struct collection *c)
{
    return c->options->job || c->options->pod;
}

/* Keeps the text for as long as the collection. NULL: out of memory. */
const char *collect_keep_text(struct collection *c, struct buffer *text);

/* Appends last_over_time(NAME{...}[RANGEs]), of the workloads that are wanted or of any row. */
void collect_put_last(const struct collection *c, struct buffer *out, const char *name,
                      bool is_workload, int64_t range_s);

/* Appends a string of PromQL, and the matchers of wanted workloads. */
void collect_put_quoted(struct buffer *out, const char *value);
void collect_put_workloads(const struct collection *c, struct buffer *out);

/* The matchers of --select, and the nodes of a job. 0 or -ENOMEM. */
int collect_set_targets(struct collection *c);

/* All that is to be asked, in order. 0 or -ENOMEM. */
int collect_add_tasks(struct collection *c);

/* Once pages are known: what their rows had before and after each restart. 0 or -ENOMEM. */
int collect_add_restart_tasks(struct collection *c);
int collect_take_restart(struct collection *c, const struct fetch_task *task,
                         const struct answer *answer);
int collect_add_task(struct collection *c, const struct fetch_task *task);

/* For a fetch_consumer whose context is a struct collection. */
int collect_take_answer(void *context, const struct fetch_task *task, const struct answer *answer);
