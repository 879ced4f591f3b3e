/*
 * Every emission factor that the user configured, in order of preference, and which of them is in
 * force. Live ones become stale and then expire; the tables and constants at the end do not, so
 * there always is one. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/pack.h"
#include "emissions/factor.h"
#include "emissions/provider.h"
#include "model/price.h"

enum { CHOICE_MAX = 12 };

/* The clocks, read together: a value's time is real time, its arrival is monotonic. */
struct choice_now {
    uint64_t real_us, monotonic_us;
};

struct choice_entry {
    struct price_factor factor; /* not known until the first answer */
    bool is_live;               /* polled */
    bool is_table;              /* may stand in for any other */
    bool may_count;             /* false: only shown, as signal or country differ from the first */
    /* Of live ones. The country is the table's code, or "" if unknown. */
    char country[FACTOR_ZONE_BYTES];
    uint64_t stale_us; /* the age at which it becomes stale */
    uint64_t time_us;  /* of the value, in real time */
    uint64_t taken_us; /* of the last answer, by the monotonic clock */
    bool is_estimated; /* the provider may correct it */
    bool is_up;        /* the last poll succeeded */
    uint64_t errors;   /* polls that failed */
};

struct choice {
    struct choice_entry lines[CHOICE_MAX];
    size_t count;
};

/* Appends a factor that does not age: the user's, or a table's. Dropped when full, which all
 * providers together are not. */
void choice_add_constant(struct choice *choice, const struct price_factor *factor);
void choice_add_table(struct choice *choice, const struct price_factor *factor);

/* Appends a provider that is polled every `interval_us`. */
void choice_add_live(struct choice *choice, const struct provider *provider, const char *zone,
                     enum price_basis basis, uint64_t interval_us);

/* The line of this provider; -ENOENT. */
int choice_find(const struct choice *choice, struct span provider);

/* Makes this line the first, and lets only those count, besides tables, that have its signal, as
 * sums of both would mean nothing, and its country. */
void choice_prefer(struct choice *choice, size_t index);

/* After a poll. False: the value is an hour or more older than the last one, which stays, as some
 * cache behind the service is stuck; that counts as a failure. */
bool choice_update(struct choice_entry *line, const struct emission_factor *factor,
                   uint64_t taken_us);
void choice_fail(struct choice_entry *line);

/* Packs the values of live lines, or unpacks those that were packed `elapsed_us` ago. Providers
 * that are not configured any more are skipped. */
void choice_code(struct choice *choice, struct choice_now now, uint64_t elapsed_us,
                 struct coder *coder);

/* Age of the value or of the answer, whichever is older; 0 for lines that do not age. */
uint64_t choice_age_us(const struct choice_entry *line, struct choice_now now);
bool choice_is_stale(const struct choice_entry *line, struct choice_now now);
/* Known, and not expired. */
bool choice_is_usable(const struct choice_entry *line, struct choice_now now);

/* Index of the line in force. One must be a table. */
size_t choice_in_force(const struct choice *choice, struct choice_now now);
