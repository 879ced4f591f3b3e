/*
 * One call of an NVML function: the lock, the counter, the errors and hangs of the scenario, and
 * the moment of the trace that it answers from.
 */
#pragma once

#include "fake.h"

/* Holds the lock until it goes out of scope. */
struct call {
    struct fake *fake;
    enum symbol symbol;
    int code;                        /* not NVML_SUCCESS: the function returns it at once */
    int gpu;                         /* DIRECTIVE_ALL for a call without device */
    const struct instance *instance; /* of a call on a MIG device, else NULL */
    struct play play;
};

void call_end(struct call *call);
#define _call_ __attribute__((cleanup(call_end)))

/* A call without device, and one with. Errors, hangs and the state of the GPU are applied. */
struct call call_begin(enum symbol symbol);
struct call call_begin_device(enum symbol symbol, void *dev);

/* A call that MIG devices have, too. */
struct call call_begin_any(enum symbol symbol, void *dev);

/* For a call that names its GPU in another way: opens it, and, once the GPU is known, applies. */
struct call call_open(enum symbol symbol);
int call_apply(struct call *call, int gpu);

/* nvmlInit: reads the scenario and starts the clock where that was not done. */
struct call call_begin_init(enum symbol symbol);
int call_init(struct call *call);
int call_shutdown(struct call *call);

const struct gpu *call_gpu(const struct call *call);
/* The layout that is valid now, or NULL where the trace has none, and the MIG mode. */
const struct record *call_layout(const struct call *call);
bool call_is_mig(const struct call *call);
/* The handle of the MIG device with this index in the layout. */
void *call_mig_handle(const struct call *call, const struct instance *instance);
/* The record of a kind that is valid now, or NULL where the trace has none of that kind. */
const struct record *call_record(const struct call *call, enum kind kind);
/* The directive of a sort that is valid now, or NULL; `key` as in directives_last. */
const struct directive *call_last(const struct call *call, enum directive_sort sort, uint64_t key);
/* The first value of the directive that is valid now, or a default. */
uint64_t call_directive(const struct call *call, enum directive_sort sort, uint64_t otherwise);
uint64_t call_stamp_us(const struct call *call, int64_t elapsed_us);
/* Looks at the file of pids; call it before pids_map. */
const struct pids *call_pids(struct call *call);

/* The energy counter in mJ; what it cannot say it answers with the code of nvmlReturn. */
int call_energy_mj(const struct call *call, uint64_t *ret_mj);

/* Copies a text with its end; INSUFFICIENT_SIZE leaves the buffer alone. */
int copy_out(char *buf, unsigned len, const char *text);
