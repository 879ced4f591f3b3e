#include "core/token_bucket.h"

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
