#include "host/program_key.h"

#include <string.h>

#include "core/macros.h"

enum { HEX_ID_LEN_MIN = 8 };

/* SipHash-2-4 (Aumasson, Bernstein), a byte at a time: command lines are short. */
struct siphash {
    uint64_t v[4];
    uint64_t word;
    size_t len;
};

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static void siphash_compress(struct siphash *hash, uint64_t word)
{
    hash->v[3] ^= word;
    siphash_round(hash->v);
    siphash_round(hash->v);
    hash->v[0] ^= word;
}

static struct siphash siphash_begin(const struct program_secret *secret)
{
    const uint64_t *key = secret->words;

    return (struct siphash){.v = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                                  key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}};
}

static void siphash_add(struct siphash *hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        hash->word |= (uint64_t)(unsigned char)bytes.data[i] << (hash->len % 8 * 8);
        if (++hash->len % 8 == 0) {
            siphash_compress(hash, hash->word);
            hash->word = 0;
        }
    }
}

static uint64_t siphash_end(struct siphash *hash)
{
    siphash_compress(hash, hash->word | (uint64_t)hash->len << 56);
    hash->v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        siphash_round(hash->v);
    return (hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3]) ?: 1; /* 0 is no key */
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static struct span base_name(struct span path)
{
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;

    return slash ? (struct span){slash + 1, (size_t)(path.data + path.len - slash - 1)} : path;
}

/* The letters a name begins with: python3.12 and python3 are both python. */
static struct span stem(struct span name)
{
    size_t len = 0;

    if (name.len > 0 && name.data[0] == '-') /* of a login shell */
        name = (struct span){name.data + 1, name.len - 1};
    while (len < name.len && (is_letter(name.data[len]) || name.data[len] == '_'))
        len++;
    return (struct span){name.data, len};
}

static bool is_overwritten(struct span executable, struct span arguments)
{
    struct span first = span_cut(&arguments, '\0');
    struct span program = stem(base_name(executable)), called = stem(base_name(first));

    return program.len == 0 || program.len != called.len ||
           memcmp(program.data, called.data, program.len) != 0;
}

static bool is_path(struct span word)
{
    return word.len > 0 && (word.data[0] == '/' || word.data[0] == '~' ||
                            (word.data[0] == '.' && memchr(word.data, '/', MIN(word.len, 3U))));
}

/* A number, a list of numbers, an address: 3e-4, 1,2,3, 10.0.0.1:29500. */
static bool is_numeric(struct span word)
{
    for (size_t i = 0; i < word.len; i++)
        if (!is_digit(word.data[i]) && !strchr("+-.,:eEx", word.data[i]))
            return false;
    return word.len > 0;
}

/* The length of the hexadecimal id (or uuid) at the front of a word, or of the digits; 0: none. */
static size_t varying_len(struct span word)
{
    size_t len = 0, digits = 0, letters = 0;

    while (len < word.len && strchr("0123456789abcdefABCDEF-", word.data[len])) {
        digits += is_digit(word.data[len]);
        letters += is_letter(word.data[len]);
        len++;
    }
    if (digits + letters >= HEX_ID_LEN_MIN && digits > 0 && letters > 0)
        return len;
    for (len = 0; len < word.len && is_digit(word.data[len]);)
        len++;
    return len;
}

/* Without its varying parts. */
static void add_coarse_word(struct siphash *hash, struct span word)
{
    if (is_numeric(word))
        return;
    while (word.len > 0) {
        size_t len = varying_len(word);

        if (len == 0) {
            siphash_add(hash, (struct span){word.data, 1});
            len = 1;
        }
        word = (struct span){word.data + len, word.len - len};
    }
}

static void add_coarse(struct siphash *hash, struct span word, bool is_long_option_value)
{
    if (is_path(word) && is_long_option_value)
        return;
    add_coarse_word(hash, is_path(word) ? base_name(word) : word);
}

static uint64_t coarse_key(const struct program_secret *secret, struct span executable,
                           struct span arguments)
{
    struct siphash hash = siphash_begin(secret);
    bool after_long_option = false;

    siphash_add(&hash, stem(base_name(executable)));
    (void)span_cut(&arguments, '\0');
    while (arguments.len > 0) {
        struct span word = span_cut(&arguments, '\0'), name = word;
        bool is_long_option = word.len > 2 && word.data[0] == '-' && word.data[1] == '-';

        siphash_add(&hash, (struct span){"", 1});
        if (is_long_option) {
            name = span_cut(&word, '=');
            siphash_add(&hash, name);
            add_coarse(&hash, word, true);
            after_long_option = name.data + name.len == word.data + word.len;
        } else {
            add_coarse(&hash, word, after_long_option);
            after_long_option = false;
        }
    }
    return siphash_end(&hash);
}

struct program_key program_key_of(const struct program_secret *secret, struct span executable,
                                  struct span arguments)
{
    struct siphash hash = siphash_begin(secret);

    if (is_overwritten(executable, arguments))
        return (struct program_key){0};
    siphash_add(&hash, executable);
    siphash_add(&hash, (struct span){"", 1});
    siphash_add(&hash, arguments);
    return (struct program_key){
        .exact = siphash_end(&hash),
        .coarse = coarse_key(secret, executable, arguments),
    };
}
