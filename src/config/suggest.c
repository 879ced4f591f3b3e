#include "config/suggest.h"

#include "core/macros.h"

enum { NAME_MAX_LEN = 64 };

/* Levenshtein's distance, one row at a time. Both lengths are at most NAME_MAX_LEN. */
static size_t edit_distance(struct span a, struct span b)
{
    size_t row[NAME_MAX_LEN + 1];

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a.data[i - 1] != b.data[j - 1]);

            row[j] = MIN(replaced, MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b.len];
}

void suggest_consider(struct suggestion *best, struct span wanted, const char *candidate)
{
    struct span name = span_of(candidate);
    size_t limit = MAX(wanted.len / 3, (size_t)2), distance;

    /* One letter is near to everything, so it says nothing. */
    if (wanted.len > NAME_MAX_LEN || name.len > NAME_MAX_LEN || name.len < 2)
        return;
    distance = edit_distance(wanted, name);
    if (distance > limit || distance >= name.len || (best->name && distance >= best->distance))
        return;
    *best = (struct suggestion){candidate, distance};
}
