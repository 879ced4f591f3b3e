/*
 * The state behind the NVML functions. NVML has no context argument, so there is one for the
 * process, behind one lock.
 */
#pragma once

#include <pthread.h>

#include "pids.h"
#include "play.h"
#include "scenario.h"
#include "symbols.h"

enum {
    FAKE_SAMPLES = 256,
    FAKE_EVENT_SETS = 64,
};

/* Handles are numbers in the shape of a pointer that no program may follow. */
enum handle_sort {
    HANDLE_DEVICE = 1,
    HANDLE_SAMPLE = 2,
    HANDLE_EVENT_SET = 3,
    HANDLE_MIG = 4,
};

struct gpm_sample {
    uint32_t serial;   /* 0: free */
    int gpu;           /* -1: nothing taken yet */
    uint32_t instance; /* all ones: the whole board */
    struct play play;
};

struct event_set {
    uint32_t serial; /* 0: free */
    uint64_t types[SCENARIO_GPUS];
    int64_t since_us[SCENARIO_GPUS]; /* of the registration: earlier events are not told */
    /* The last event told, in the order of events: time, directive, GPU. */
    int64_t told_us;
    size_t told_directive;
    int told_gpu;
};

struct fake {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct scenario *scenario;
    struct play_clock clock;
    struct pids pids;
    unsigned init_count;
    uint32_t generation; /* of the device handles: counts the initialisations from zero */
    unsigned unloads_at_init;
    uint32_t serial; /* of samples and event sets */
    uint64_t calls[SYMBOL_COUNT];
    uint64_t stale_uses;
    unsigned hanging;
    uint64_t releases;
    struct gpm_sample samples[FAKE_SAMPLES];
    struct event_set event_sets[FAKE_EVENT_SETS];
};

struct fake *fake_lock(void);
void fake_unlock(struct fake *fake);

/* 0, or -EINVAL with the reason on stderr. The fake must have no scenario. */
int fake_read_scenario(struct fake *fake, const char *path);

void *handle_make(enum handle_sort sort, uint32_t serial, unsigned index);
/* The index in a handle if it has this sort, or -1; the serial is for the caller to compare. */
int handle_open(enum handle_sort sort, void *handle, uint32_t *ret_serial);
