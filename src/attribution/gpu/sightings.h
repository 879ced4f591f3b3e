/*
 * Sightings: when and where the driver showed each process, by the process' index in the ledger.
 *
 * One array serves all boards, as an account of the ledger is of one board only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/ledger/ledger.h"
#include "model/sample.h"

struct sighting {
    uint64_t serial;                          /* of the account: another one begins anew */
    uint64_t first_listed_us, last_listed_us; /* 0: never */
    uint64_t list_round[SAMPLE_LIST_KINDS];   /* the last round of this list that named it */
    uint64_t memory_bytes[SAMPLE_LIST_KINDS]; /* what it said */
    uint64_t window;                          /* the last window in which it is present */
    size_t window_index;                      /* its place there */
    bool is_mps_server;                       /* its samples are those of its clients */
    uint8_t tenant;                           /* its place in the estimator, from 1; 0: none */
};

struct sightings {
    struct sighting *items;
    size_t slots;
};

void sightings_done(struct sightings *sightings);

/* Makes room for every process that the ledger has and one more: to be called before one is opened.
 * 0 or -ENOMEM. */
int sightings_reserve(struct sightings *sightings, const struct ledger *ledger);

/* Begins anew if the slot had another process before: to be called when one was opened. */
void sightings_open(struct sightings *sightings, const struct ledger *ledger, uint32_t process);

/* A board that was away: windows, lists and places are counted anew, and what its processes
 * remember of them is of before. */
void sightings_restart(struct sightings *sightings, const struct ledger *ledger, uint32_t meter);

/* The clock was set back: nothing is later than now. */
void sightings_set_clock_back(struct sightings *sightings, const struct ledger *ledger,
                              uint32_t meter, uint64_t now_us);
