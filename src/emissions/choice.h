/*
 * The choice: every factor that the user named, in the order in which they count, and which of them
 * is in force. What is asked for gets old, first stale and then of no more use; the tables and
 * constants at the end do not, so there always is one. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emissions/factor.h"
#include "emissions/provider.h"
#include "model/price.h"

enum { CHOICE_MAX = 12 };

/* The clocks, read together: the value's time is of the world, when it came is not. */
struct choice_now {
    uint64_t real_us, monotonic_us;
};

struct choice_line {
    struct price_factor factor; /* not known: nobody has told it yet */
    bool is_live;               /* asked for again and again */
    bool is_table;              /* counts for want of anything else, whatever the first is */
    bool may_count;             /* false: only shown, as its signal or country is not the first's */
    /* Of live ones. The country is the table's code, or "" if nobody says it. */
    char country[FACTOR_ZONE_BYTES];
    uint64_t stale_us; /* the age from which it is */
    uint64_t time_us;  /* what the value is for, in real time */
    uint64_t taken_us; /* when it was told last, by the monotonic clock */
    bool is_estimated; /* by the provider, which may correct it */
    bool is_up;        /* the last question was answered */
    uint64_t errors;   /* questions that were not */
};

struct choice {
    struct choice_line lines[CHOICE_MAX];
    size_t count;
};

/* The next to count: a figure that holds for ever, the user's or a table's. What does not fit is
 * left out, as all the providers do. */
void choice_add_constant(struct choice *choice, const struct price_factor *factor);
void choice_add_table(struct choice *choice, const struct price_factor *factor);

/* The next to count: a provider that is asked every `interval_us`. */
void choice_add_live(struct choice *choice, const struct provider *provider, const char *zone,
                     enum price_basis basis, uint64_t interval_us);

/* The line of this provider; -ENOENT. */
int choice_find(const struct choice *choice, struct span provider);

/* Makes this line the first, and leaves out of the count what is of another signal, as sums of both
 * would mean nothing, or of another country, whose power plants are others; but no table. */
void choice_prefer(struct choice *choice, size_t index);

/* The answer to a question, and that there was none. A value that is older by an hour than the last
 * one is no answer: somewhere behind the service something stands still. Then false. */
bool choice_take(struct choice_line *line, const struct emission_factor *factor, uint64_t taken_us);
void choice_miss(struct choice_line *line);

/* Of a line that is known: the older of the value and the answer; 0 of those that do not age. */
uint64_t choice_age_us(const struct choice_line *line, struct choice_now now);
bool choice_is_stale(const struct choice_line *line, struct choice_now now);
/* Known, and not too old to be used. */
bool choice_is_usable(const struct choice_line *line, struct choice_now now);

/* Index of the line in force. One must be a table. */
size_t choice_in_force(const struct choice *choice, struct choice_now now);
