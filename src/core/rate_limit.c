#include "core/rate_limit.h"

#include "core/macros.h"

enum { TOKEN_MICRO = 1000000 };

void token_bucket_init(struct token_bucket *bucket, uint32_t per_second, uint32_t burst,
                       uint64_t now_us)
{
    *bucket = (struct token_bucket){
        .per_second = per_second,
        .burst = burst,
        .tokens_micro = (uint64_t)burst * TOKEN_MICRO,
        .filled_us = now_us,
    };
}

static void fill(struct token_bucket *bucket, uint64_t now_us)
{
    uint64_t full = (uint64_t)bucket->burst * TOKEN_MICRO, gained;

    if (now_us <= bucket->filled_us)
        return;
    /* Tokens a second are millionths a microsecond. */
    if (__builtin_mul_overflow(now_us - bucket->filled_us, bucket->per_second, &gained))
        gained = full;
    bucket->tokens_micro += MIN(gained, full - bucket->tokens_micro);
    bucket->filled_us = now_us;
}

bool token_bucket_take(struct token_bucket *bucket, uint64_t now_us)
{
    fill(bucket, now_us);
    if (bucket->tokens_micro < TOKEN_MICRO)
        return false;
    bucket->tokens_micro -= TOKEN_MICRO;
    return true;
}

static uint64_t earn_us(const struct allowance *allowance, uint64_t used_us)
{
    return used_us * 100 / allowance->percent;
}

uint64_t allowance_when(const struct allowance *allowance)
{
    uint64_t ahead_us = earn_us(allowance, allowance->burst_us);

    return allowance->earned_us - MIN(allowance->earned_us, ahead_us);
}

void allowance_use(struct allowance *allowance, uint64_t used_us, uint64_t now_us)
{
    allowance->earned_us = MAX(allowance->earned_us, now_us) + earn_us(allowance, used_us);
}
