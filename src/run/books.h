/*
 * The books of a run, in microjoules since they were opened: what each meter counted, what of it is
 * the command's, and what the processes on GPUs used. They come from snapshots of a measurement in
 * this process, from documents of a running daemon, or each meter from one of them. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"
#include "model/meter.h"
#include "model/sample.h"
#include "model/snapshot.h"

enum { BOOKS_METERS_MAX = 128, BOOKS_ID_BYTES = 96, BOOKS_ROWS_MAX = 65536 };

/* The workload that the command is in the books of a measurement. */
#define BOOKS_COMMAND_ID "wattribute run"

struct books_meter {
    enum meter_kind kind;
    char id[BOOKS_ID_BYTES];
    uint32_t gpu;
    bool is_modelled;
    bool is_of_daemon;
    uint64_t counted_uj; /* with what is not divided yet */
    uint64_t divided_uj; /* of it, what is */
    uint64_t idle_uj;    /* of that, what no work caused and nobody pays for */
    uint64_t command_uj; /* and what is the command's. Of GPUs see the rows */
    double grams, cost;  /* of what is divided; not told by a daemon */
    uint64_t past_counted_uj, past_divided_uj,
        past_idle_uj; /* before the daemon was started anew */
    double idle_w;    /* the idle power, where a daemon has learned it; 0: unknown */
};

/* A process on a GPU. */
struct books_row {
    uint32_t gpu, pid;
    uint64_t start_us; /* 0: unknown */
    uint64_t energy_uj, uncertain_uj;
    uint64_t past_uj, past_uncertain_uj; /* of it, before the daemon was started anew */
    char name[64];
};

struct books {
    struct books_meter meters[BOOKS_METERS_MAX];
    size_t meter_count;
    struct books_row *rows;
    size_t row_count, row_capacity;
    bool has_grams, has_cost;
    double grams_per_kwh, cost_per_kwh; /* now, with the PUE */
    char currency[4];
    uint64_t started_us; /* when the daemon was, since the epoch; 0: these are of none */
};

void books_done(struct books *books);

/* A snapshot of a measurement. Meters of GPUs, and those that a daemon told, are taken from it only
 * if it has them. 0 or -ENOMEM. */
int books_take_snapshot(struct books *books, const struct snapshot *snapshot);

/* Meters of the processors and the memory that a daemon reads, and that nothing was booked of
 * yet. */
void books_open_meters(struct books *books, const struct books *of_daemon);

/*
 * The document /api/v1/node of a daemon: its GPUs, with their processes, and what this process
 * cannot read itself. If the daemon was started anew, and counts from 0, its books go on. 0, or
 * -EBADMSG (no such document), -ENOTSUP (it plays a trace, and measures nothing of this node) or
 * -ENOMEM.
 */
int books_take_document(struct books *books, struct span text, struct error *err);

/* The readings of the processors and the memory in these books, as samples of a measurement whose
 * own sources have none. Returns how many; their texts stay the books'. */
size_t books_copy_samples(const struct books *books, uint64_t t_us, struct sample *samples,
                          size_t room);

/* NULL: it was not there yet. */
const struct books_meter *books_find(const struct books *books, enum meter_kind kind,
                                     const char *id);
