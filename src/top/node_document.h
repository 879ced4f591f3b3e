/*
 * What a node says of itself: the document of /api/v1/node (docs/api.md), as structs.
 *
 * Numbers that it does not have are NAN, texts "". Nothing in it is trusted: texts may hold any
 * bytes but NUL, numbers any value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"

enum node_unowned { NODE_IDLE, NODE_SYSTEM, NODE_UNATTRIBUTED, NODE_GAP, NODE_UNOWNED_COUNT };

extern const char *const node_unowned_words[NODE_UNOWNED_COUNT];

struct document_meter {
    const char *meter, *id;
    double gpu; /* its index */
    bool is_modelled;
    double watts, measured_watts, energy_joules, pending_joules, imbalance_joules;
    double settled_time; /* up to which its energy is booked */
    double unowned_watts[NODE_UNOWNED_COUNT], unowned_joules[NODE_UNOWNED_COUNT];
};

/* The part of a workload on one meter. */
struct document_share {
    size_t meter; /* index */
    double watts, energy_joules, uncertainty_joules, confidence;
};

struct document_process {
    const char *name;
    double pid, gpu, energy_joules, uncertainty_joules, gpu_memory_bytes, start_time;
};

/* A GPU that a workload was allocated. */
struct document_allocation {
    const char *uuid, *source;
    double gpu, gpu_instance;
    bool is_unverified;
};

struct document_workload {
    const char *kind, *id, *name, *namespace, *pod, *container;
    const char *image, *user, *account, *job_id, *job_name, *unverified; /* details */
    double watts;                                                        /* NAN: it has ended */
    double energy_joules, uncertainty_joules, emissions_grams, cost;
    double gpu_memory_bytes, cpu_seconds, memory_bytes;
    double cpu_cores; /* set by node_document_compare */
    struct document_share *shares;
    size_t share_count;
    struct document_process *processes;
    size_t process_count;
    struct document_allocation *allocations;
    size_t allocation_count;
};

struct document_gpu {
    const char *uuid, *name, *driver, *sharing;
    double gpu, utilisation_percent, memory_used_bytes, memory_total_bytes, temperature_celsius,
        watts;
    size_t instance_count;
};

struct document_source {
    const char *name;
    bool is_up;
    double age_seconds, errors;
};

struct node_document {
    const char *version, *node, *currency;
    double time, start_time; /* seconds since the epoch */
    double watts;            /* booked, of all meters */
    double price_per_kwh, grams_per_kwh;
    bool is_replay;
    struct document_meter *meters;
    size_t meter_count;
    struct document_workload *workloads;
    size_t workload_count;
    struct document_gpu *gpus;
    size_t gpu_count;
    struct document_source *sources;
    size_t source_count;
    struct document_workload **by_identity; /* the workloads by kind and id */
    struct arena arena;                     /* owns it all */
};

/* Pure. -EBADMSG: not the document of a node, with a text; -ENOMEM. */
int node_document_parse(struct span text, struct node_document **ret_document, struct error *err);

/* Accepts NULL. */
void node_document_free(struct node_document *document);

/* The workload with the identity of this one of another document; NULL: there is none. */
struct document_workload *node_document_find(const struct node_document *document,
                                             const struct document_workload *like);

/* Sets the CPUs that each workload used since an earlier document, which may be NULL. Of two that
 * are nearly of the same time it keeps what the earlier one has. */
void node_document_compare(struct node_document *document, const struct node_document *before);

/* What the hardware counted, of the meters that have a counter; NAN: of none. */
double node_document_measured_watts(const struct node_document *document);

/* How many seconds the books are behind, of the meter that is furthest behind; 0: of none. */
double node_document_seconds_behind(const struct node_document *document);

/* The watts of nobody, of all meters. */
double node_document_unowned_watts(const struct node_document *document, enum node_unowned owner);
