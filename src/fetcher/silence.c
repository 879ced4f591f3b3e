#include "fetcher/silence.h"

#include <errno.h>

#include "core/macros.h"

static const uint64_t LONG_US = 60 * USEC_PER_SEC;

bool silence_is_unanswered(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -EPROTO || r == -ETIMEDOUT ||
           r == -EKEYREJECTED;
}

bool silence_is_long(uint64_t *since_us, int r, uint64_t now_us)
{
    if (!silence_is_unanswered(r))
        *since_us = 0;
    else if (*since_us == 0)
        *since_us = now_us;
    return *since_us > 0 && now_us - *since_us >= LONG_US;
}
