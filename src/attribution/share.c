#include "attribution/share.h"

#include <errno.h>
#include <stdlib.h>

static int by_remainder(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    if (x->remainder_high != y->remainder_high)
        return x->remainder_high > y->remainder_high ? -1 : 1;
    if (x->remainder_low != y->remainder_low)
        return x->remainder_low > y->remainder_low ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int by_index(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return x->index < y->index ? -1 : 1;
}

uint64_t share_split(uint64_t total, struct share *shares, size_t count)
{
    unsigned __int128 sum = 0;
    uint64_t divided = 0;

    for (size_t i = 0; i < count; i++)
        sum += shares[i].weight;
    if (sum == 0) {
        for (size_t i = 0; i < count; i++)
            shares[i].amount = 0;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned __int128 quota = (unsigned __int128)total * shares[i].weight;
        unsigned __int128 remainder = quota % sum;

        shares[i].amount = (uint64_t)(quota / sum);
        shares[i].remainder_high = (uint64_t)(remainder >> 64);
        shares[i].remainder_low = (uint64_t)remainder;
        shares[i].index = i;
        divided += shares[i].amount;
    }
    if (divided < total) {
        /* Fewer units are left than there are shares with a remainder. */
        qsort(shares, count, sizeof(*shares), by_remainder);
        for (size_t i = 0; divided < total; i++, divided++)
            shares[i].amount++;
        qsort(shares, count, sizeof(*shares), by_index);
    }
    return divided;
}

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
