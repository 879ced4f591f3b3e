#include "attribution/share.h"

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
