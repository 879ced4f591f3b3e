/* Token bucket: so many a second, and after a rest some more at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
