/* Who workloads are: labels of their rows, and of wattribute_workload_info beyond them. Pure. */
#pragma once

#include "core/arena.h"
#include "core/buffer.h"
#include "report/pages.h"

/* "" for what is unknown. */
struct name_details {
    struct table_entry entry;
    const struct page *page;
    const char *kind, *id;
    const char *namespace, *pod, *image, *user, *account, *job_name, *node;
};

struct names {
    struct table table;
    struct arena strings;
};

void names_init(struct names *names);
void names_done(struct names *names);

/* Series of wattribute_workload_info; what is told later wins. 0 or -ENOMEM. */
int names_take(struct names *names, const struct pages *pages, const struct answer *answer);

/* NULL: nothing is known. */
const struct name_details *names_find(const struct names *names, const struct page *page,
                                      const char *kind, const char *id);

/* The workload's own, and not that of the exporter's target. "" if it has none. */
const char *names_of_row(const struct page *page, const struct answer_series *series,
                         const char *label, const char *exported_label);

/* What a report can be by. */
enum names_by {
    NAMES_NAMESPACE,
    NAMES_USER,
    NAMES_ACCOUNT,
    NAMES_JOB,
    NAMES_POD,
    NAMES_IMAGE,
    NAMES_NODE,
    NAMES_BY_COUNT,
};

extern const char *const names_by_words[NAMES_BY_COUNT];

/* Appends the name of a row's group, "" for none, and on `about` what else is known of it. */
void names_put_group(const struct names *names, enum names_by by, const struct page *page,
                     const struct answer_series *series, struct buffer *name, struct buffer *about);
