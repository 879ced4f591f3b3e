#include "attribution/bookings.h"

#include <errno.h>
#include <stdlib.h>

void bookings_done(struct bookings *bookings)
{
    free(bookings->items);
    free(bookings->shares);
    *bookings = (struct bookings){0};
}

int bookings_begin(struct bookings *bookings, size_t capacity)
{
    void *grown;

    bookings->count = 0;
    if (capacity <= bookings->capacity)
        return 0;
    if (!(grown = reallocarray(bookings->items, capacity, sizeof(*bookings->items))))
        return -ENOMEM;
    bookings->items = grown;
    if (!(grown = reallocarray(bookings->shares, capacity, sizeof(*bookings->shares))))
        return -ENOMEM;
    bookings->shares = grown;
    bookings->capacity = capacity;
    return 0;
}

void bookings_add_workload(struct bookings *bookings, uint32_t workload, enum tier tier,
                           enum method method, uint64_t weight)
{
    bookings->shares[bookings->count].weight = weight;
    bookings->items[bookings->count++] = (struct booking){.process = LEDGER_NONE,
                                                          .to_workload = true,
                                                          .workload = workload,
                                                          .tier = tier,
                                                          .method = method};
}

void bookings_add_unowned(struct bookings *bookings, enum unowned owner, uint64_t energy_uj,
                          uint64_t weight)
{
    bookings->shares[bookings->count].weight = weight;
    bookings->items[bookings->count++] =
        (struct booking){.process = LEDGER_NONE, .unowned = owner, .energy_uj = energy_uj};
}

bool bookings_divide(struct bookings *bookings, uint64_t energy_uj)
{
    bool divided = share_split(energy_uj, bookings->shares, bookings->count) == energy_uj;

    for (size_t i = 0; i < bookings->count; i++)
        bookings->items[i].energy_uj += bookings->shares[i].amount;
    return divided;
}
