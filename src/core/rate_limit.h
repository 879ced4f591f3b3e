/* How often something may be done, or how long: a rate, and after a rest some more at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Token bucket: so many a second. */
struct token_bucket {
    uint32_t per_second, burst;
    uint64_t tokens_micro; /* millionths of a token */
    uint64_t filled_us;
};

/* Full. */
void token_bucket_init(struct token_bucket *bucket, uint32_t per_second, uint32_t burst,
                       uint64_t now_us);

/* False: there is none left. Times before the last one count as the last one. */
bool token_bucket_take(struct token_bucket *bucket, uint64_t now_us);

/* Allowance: time that may be used, as a share of all time. */
struct allowance {
    uint32_t percent; /* above 0 */
    uint64_t burst_us;
    uint64_t earned_us; /* when all that was used will have been earned */
};

/* When more may be used: a time that is past, or until which to wait. */
uint64_t allowance_when(const struct allowance *allowance);

void allowance_use(struct allowance *allowance, uint64_t used_us, uint64_t now_us);
