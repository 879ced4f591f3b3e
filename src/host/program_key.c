#include "host/program_key.h"

#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "core/siphash.h"

enum { ID_LEN_MIN = 8, UUID_LEN = 36 };

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_alphanumeric(char c)
{
    return parse_is_digit(c) || is_letter(c);
}

static bool is_hex(char c)
{
    return parse_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static struct span skip(struct span text, size_t len)
{
    return (struct span){text.data + len, text.len - len};
}

static struct span base_name(struct span path)
{
    const char *slash;

    while (path.len > 1 && path.data[path.len - 1] == '/')
        path.len--;
    slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;
    return slash ? skip(path, (size_t)(slash + 1 - path.data)) : path;
}

/* The letters a name begins with: python3.12 and python3 are both python. */
static struct span stem(struct span name)
{
    size_t len = 0;

    while (len < name.len && (is_letter(name.data[len]) || name.data[len] == '_'))
        len++;
    return (struct span){name.data, len};
}

static bool is_same(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Can a program be called by this name? Titles have blanks, colons or brackets. */
static bool is_plain(struct span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_alphanumeric(name.data[i]) && !strchr("._+-", name.data[i]))
            return false;
    return true;
}

/* How many NULs are at the end? One ends the last argument; an empty one adds another. */
static size_t count_last_nuls(struct span arguments)
{
    size_t count = 0;

    while (count < arguments.len && arguments.data[arguments.len - 1 - count] == '\0')
        count++;
    return count;
}

/*
 * Did the process write a title over its arguments? Then the first does not name the executable, or
 * no NUL is at the end, as the kernel shows a long title (get_mm_cmdline in fs/proc/base.c), or
 * many are, which pad a short one.
 */
static bool is_overwritten(struct span executable, struct span arguments)
{
    size_t nuls = count_last_nuls(arguments);
    struct span program = base_name(executable), called = base_name(span_cut(&arguments, '\0'));

    if (nuls < 1 || nuls > 2 || called.len == 0)
        return true;
    if (called.data[0] == '-') /* a login shell */
        called = skip(called, 1);
    if (executable.len == 0)
        return !is_plain(called);
    return !is_same(program, called) &&
           (stem(program).len == 0 || !is_plain(called) || !is_same(stem(program), stem(called)));
}

static bool is_path(struct span word)
{
    return word.len > 0 && (word.data[0] == '/' || word.data[0] == '~' ||
                            (word.data[0] == '.' && memchr(word.data, '/', MIN(word.len, 3U))));
}

/* A number, a list of numbers, an address or a date: 3e-4, 1,2,3, 10.0.0.1:29500, 1024x768. */
static bool is_numeric(struct span word)
{
    bool has_digit = false;

    for (size_t i = 0; i < word.len; i++) {
        bool follows_digit = i > 0 && parse_is_digit(word.data[i - 1]);

        if (parse_is_digit(word.data[i]))
            has_digit = true;
        else if (!strchr("+-.,:", word.data[i]) &&
                 !(follows_digit && strchr("eExTZ", word.data[i])))
            return false;
    }
    return has_digit;
}

/* Is there a UUID, 8-4-4-4-12 hexadecimal digits, at the front? */
static bool begins_with_uuid(struct span text)
{
    if (text.len < UUID_LEN || (text.len > UUID_LEN && is_alphanumeric(text.data[UUID_LEN])))
        return false;
    for (size_t i = 0; i < UUID_LEN; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text.data[i] != '-' : !is_hex(text.data[i]))
            return false;
    }
    return true;
}

/* Of letters and digits: an id, a hash, an address in memory, a time stamp? */
static bool is_id(struct span token)
{
    size_t digits = 0, hex = 0;

    for (size_t i = 0; i < token.len; i++) {
        digits += parse_is_digit(token.data[i]);
        hex += is_hex(token.data[i]);
    }
    if (token.len > 2 && token.data[0] == '0' && token.data[1] == 'x' && hex == token.len - 1)
        return true;
    return digits >= ID_LEN_MIN || (token.len >= ID_LEN_MIN && hex == token.len && digits > 0);
}

/* Leaves out ids, and the digits at the end of letters and digits. Those before a letter are part
 * of a name: 7B and 70B. */
static void add_coarse_text(struct siphash *hash, struct span text)
{
    while (text.len > 0) {
        struct span token = {text.data, 0};

        if (begins_with_uuid(text)) {
            text = skip(text, UUID_LEN);
            continue;
        }
        while (token.len < text.len && is_alphanumeric(token.data[token.len]))
            token.len++;
        text = skip(text, MAX(token.len, 1U));
        if (token.len == 0)
            token.len = 1;
        else if (is_id(token))
            continue;
        while (token.len > 0 && parse_is_digit(token.data[token.len - 1]))
            token.len--;
        siphash_add(hash, token);
    }
}

/* A value or a word on its own. */
static void add_coarse(struct siphash *hash, struct span word)
{
    bool is_short_option = word.len > 2 && word.data[0] == '-' && is_letter(word.data[1]);

    if (is_path(word))
        word = base_name(word);
    if (is_short_option && is_numeric(skip(word, 2))) /* -n4 */
        word.len = 2;
    if (!is_numeric(word))
        add_coarse_text(hash, word);
}

static uint64_t coarse_key(const struct program_secret *secret, struct span executable,
                           struct span arguments)
{
    struct siphash hash = siphash_begin(secret->words);
    struct span first = span_cut(&arguments, '\0');
    struct span program = base_name(executable.len > 0 ? executable : first);

    siphash_add(&hash, stem(program).len > 0 ? stem(program) : program);
    while (arguments.len > 0) {
        struct span word = span_cut(&arguments, '\0');
        const char *equals = word.len > 0 ? memchr(word.data, '=', word.len) : NULL;

        siphash_add(&hash, (struct span){"", 1});
        if (equals) { /* --option=value, name=value */
            size_t len = (size_t)(equals + 1 - word.data);

            siphash_add(&hash, (struct span){word.data, len});
            word = skip(word, len);
        }
        add_coarse(&hash, word);
    }
    return siphash_end(&hash) ?: 1; /* 0 is no key */
}

struct program_key program_key_of(const struct program_secret *secret, struct span executable,
                                  struct span arguments)
{
    struct siphash hash = siphash_begin(secret->words);

    if (is_overwritten(executable, arguments))
        return (struct program_key){0};
    siphash_add(&hash, executable);
    siphash_add(&hash, (struct span){"", 1});
    siphash_add(&hash, arguments);
    return (struct program_key){
        .exact = siphash_end(&hash) ?: 1,
        .coarse = coarse_key(secret, executable, arguments),
    };
}
