/*
 * DCGM: the activity of the units of NVIDIA boards that have no GPM (Volta to Ampere).
 *
 * It connects to the node's host engine, never starts one, and watches the profiling fields of the
 * boards that ask for counters (sources/gpu_counters.h): nothing is loaded as long as none does, or
 * no host engine runs. Its thread is its own, so a host engine that hangs delays nobody. One that
 * is absent or dies is a state, not an error: boards are then divided without units until it is
 * back.
 */
#pragma once

#include "core/span.h"
#include "sources/dcgm/dcgm_library.h"
#include "sources/gpu_counters.h"
#include "sources/source.h"

extern const struct source_ops dcgm_source;

/* Where nv-hostengine listens unless it is told otherwise (DCGM_HE_PORT_NUMBER). */
#define DCGM_ADDRESS "127.0.0.1:5555"
enum { DCGM_PORT = 5555 };

enum { DCGM_FIELDS_MAX = SAMPLE_GPM_COUNT };

/* The fields that the host engine watches of one board. */
struct dcgm_watch {
    char uuid[GPU_COUNTERS_UUID_BYTES]; /* "": none was tried */
    uint32_t id;                        /* DCGM's of the board */
    size_t field_count;                 /* 0: it cannot be watched */
    uint16_t fields[DCGM_FIELDS_MAX];
    uint64_t t_us; /* of the newest values that were read */
};

struct dcgm {
    const struct source_context *context;
    struct dcgm_library library;
    bool is_initialised, is_connected;
    uintptr_t handle;
    uint32_t groups; /* that were made, for their names */
    uint64_t retry_us;
    struct dcgm_watch watches[SAMPLE_GPU_MAX];
    struct dcgm_value values[DCGM_FIELDS_MAX];
};

/* 0, or -ENODEV with a text: nobody listens there, or it is not root. */
int dcgm_find_engine(const struct host *host, struct error *err);
/* The user who listens there, by /proc/net/tcp. -ENOENT: nobody. */
int dcgm_listener_parse(struct span table, uint32_t *ret_uid);

/* 0, or -ENODEV with a text: nobody answers, or not in this version. May block for its timeout. */
int dcgm_connect(struct dcgm *dcgm, struct error *err);
void dcgm_disconnect(struct dcgm *dcgm);

/* Watches a board. 0; -ENOTSUP with a text: its fields cannot be watched; -ENODEV: the connection
 * is lost. */
int dcgm_watch(struct dcgm *dcgm, struct dcgm_watch *watch, struct error *err);

void dcgm_check(const struct source_context *context, struct report *report);
